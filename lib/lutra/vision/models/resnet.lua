--- Residual networks (He et al. 2016), as torchvision.models.resnet.

local lt = require "lutra"
local maker = require("lutra.vision.models.model").maker
local nn = lt.nn

local function conv3(from, to, stride, groups, dilation)
  return nn.Conv2d{from, to, 3, stride = stride, padding = dilation or 1, groups = groups or 1,
    dilation = dilation or 1, bias = false}
end

local function conv1(from, to, stride)
  return nn.Conv2d{from, to, 1, stride = stride or 1, bias = false}
end

local BasicBlock = nn.Module:extend "BasicBlock"
BasicBlock.expansion = 1

function BasicBlock:init(from, planes, stride, downsample)
  self.conv1 = conv3(from, planes, stride)
  self.bn1 = nn.BatchNorm2d(planes)
  self.relu = nn.ReLU{inplace = true}
  self.conv2 = conv3(planes, planes, 1)
  self.bn2 = nn.BatchNorm2d(planes)
  if downsample then self.downsample = downsample end
end

function BasicBlock:forward(x)
  local out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
  return self.relu(out + (self.downsample and self.downsample(x) or x))
end

local Bottleneck = nn.Module:extend "Bottleneck"
Bottleneck.expansion = 4

function Bottleneck:init(from, planes, stride, downsample, groups, base_width)
  local width = math.floor(planes * base_width / 64) * groups
  self.conv1 = conv1(from, width)
  self.bn1 = nn.BatchNorm2d(width)
  self.conv2 = conv3(width, width, stride, groups)
  self.bn2 = nn.BatchNorm2d(width)
  self.conv3 = conv1(width, planes * 4)
  self.bn3 = nn.BatchNorm2d(planes * 4)
  self.relu = nn.ReLU{inplace = true}
  if downsample then self.downsample = downsample end
end

function Bottleneck:forward(x)
  local out = self.relu(self.bn1(self.conv1(x)))
  out = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out)))))
  return self.relu(out + (self.downsample and self.downsample(x) or x))
end

local ResNet = nn.Module:extend "ResNet"

function ResNet:init(block, layers, num_classes, groups, width_per_group)
  self.conv1 = nn.Conv2d{3, 64, 7, stride = 2, padding = 3, bias = false}
  self.bn1 = nn.BatchNorm2d(64)
  self.relu = nn.ReLU{inplace = true}
  self.maxpool = nn.MaxPool2d{3, stride = 2, padding = 1}
  local from = 64
  local function layer(planes, count, stride)
    local list, to = {}, planes * block.expansion
    for i = 1, count do
      local step, downsample = i == 1 and stride or 1, nil
      if step ~= 1 or from ~= to then
        downsample = nn.Sequential(conv1(from, to, step), nn.BatchNorm2d(to))
      end
      list[i] = block(from, planes, step, downsample, groups or 1, width_per_group or 64)
      from = to
    end
    return nn.Sequential(list)
  end
  self.layer1 = layer(64, layers[1], 1)
  self.layer2 = layer(128, layers[2], 2)
  self.layer3 = layer(256, layers[3], 2)
  self.layer4 = layer(512, layers[4], 2)
  self.avgpool = nn.AdaptiveAvgPool2d{1, 1}
  self.fc = nn.Linear(512 * block.expansion, num_classes)
  for m in self:modules() do
    if nn.is_module(m) and m:type_name() == "Conv2d" then
      nn.init.kaiming_normal_(m.weight, {mode = "fan_out", nonlinearity = "relu"})
    end
  end
end

function ResNet:forward(x)
  x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
  x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
  return self.fc(self.avgpool(x):flatten(2))
end

local function resnet(name, block, layers, groups, width)
  return maker(name, function(classes) return ResNet(block, layers, classes, groups, width) end)
end

return {
  --- models.resnet18{weights = nil, progress = true, num_classes = 1000}: a network {N, 3, H, W} to
  -- {N, num_classes} with torchvision's parameters and names (state_dict{base = 0}). `weights` is
  -- the path of a file of its state dict, PyTorch's or lt.save's; nothing is downloaded.
  resnet18 = resnet("resnet18", BasicBlock, {2, 2, 2, 2}),
  --- models.resnet34{weights, progress, num_classes}: see models.resnet18.
  resnet34 = resnet("resnet34", BasicBlock, {3, 4, 6, 3}),
  --- models.resnet50{weights, progress, num_classes}: see models.resnet18.
  resnet50 = resnet("resnet50", Bottleneck, {3, 4, 6, 3}),
  --- models.resnet101{weights, progress, num_classes}: see models.resnet18.
  resnet101 = resnet("resnet101", Bottleneck, {3, 4, 23, 3}),
  --- models.resnet152{weights, progress, num_classes}: see models.resnet18.
  resnet152 = resnet("resnet152", Bottleneck, {3, 8, 36, 3}),
  --- models.wide_resnet50_2{weights, progress, num_classes}: see models.resnet18.
  wide_resnet50_2 = resnet("wide_resnet50_2", Bottleneck, {3, 4, 6, 3}, 1, 128),
}
