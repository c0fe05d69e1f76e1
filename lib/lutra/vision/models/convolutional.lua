--- VGG (Simonyan and Zisserman 2015), AlexNet (Krizhevsky 2014), MobileNetV2 (Sandler et al. 2018)
-- and SqueezeNet (Iandola et al. 2016), as in torchvision.models.

local lt = require "lutra"
local maker = require("lutra.vision.models.model").maker
local nn = lt.nn

local Net = nn.Module:extend "ConvNet"

-- With `flatten`, the classifier gets {N, features}; without, {N, C, H, W}.
function Net:init(features, avgpool, classifier, flatten)
  self.flatten = flatten ~= false
  self.features = features
  if avgpool then self.avgpool = avgpool end
  self.classifier = classifier
end

function Net:forward(x)
  x = self.features(x)
  if self.avgpool then x = self.avgpool(x) end
  if self.flatten then return self.classifier(x:flatten(2)) end
  return self.classifier(x):flatten(2)
end

local relu = function() return nn.ReLU{inplace = true} end

local M = "M" -- a pool
local plans = {
  vgg11 = {64, M, 128, M, 256, 256, M, 512, 512, M, 512, 512, M},
  vgg13 = {64, 64, M, 128, 128, M, 256, 256, M, 512, 512, M, 512, 512, M},
  vgg16 = {64, 64, M, 128, 128, M, 256, 256, 256, M, 512, 512, 512, M, 512, 512, 512, M},
  vgg19 = {64, 64, M, 128, 128, M, 256, 256, 256, 256, M, 512, 512, 512, 512, M, 512, 512, 512,
    512, M},
}

local function vgg(name, norm)
  return maker(name .. (norm and "_bn" or ""), function(classes, dropout)
    local list, from = {}, 3
    for _, v in ipairs(plans[name]) do
      if v == M then
        list[#list + 1] = nn.MaxPool2d{2, stride = 2}
      else
        list[#list + 1] = nn.Conv2d{from, v, 3, padding = 1}
        nn.init.kaiming_normal_(list[#list].weight, {mode = "fan_out", nonlinearity = "relu"})
        nn.init.zeros_(list[#list].bias)
        if norm then list[#list + 1] = nn.BatchNorm2d(v) end
        list[#list + 1] = relu()
        from = v
      end
    end
    return Net(nn.Sequential(list), nn.AdaptiveAvgPool2d{7, 7}, nn.Sequential(
      nn.Linear(512 * 7 * 7, 4096), relu(), nn.Dropout(dropout), nn.Linear(4096, 4096), relu(),
      nn.Dropout(dropout), nn.Linear(4096, classes)))
  end, "float dropout = 0.5")
end

local function alexnet(classes, dropout)
  return Net(nn.Sequential(nn.Conv2d{3, 64, 11, stride = 4, padding = 2}, relu(),
    nn.MaxPool2d{3, stride = 2}, nn.Conv2d{64, 192, 5, padding = 2}, relu(),
    nn.MaxPool2d{3, stride = 2}, nn.Conv2d{192, 384, 3, padding = 1}, relu(),
    nn.Conv2d{384, 256, 3, padding = 1}, relu(), nn.Conv2d{256, 256, 3, padding = 1}, relu(),
    nn.MaxPool2d{3, stride = 2}), nn.AdaptiveAvgPool2d{6, 6},
    nn.Sequential(nn.Dropout(dropout), nn.Linear(256 * 6 * 6, 4096), relu(), nn.Dropout(dropout),
      nn.Linear(4096, 4096), relu(), nn.Linear(4096, classes)))
end

local function conv_norm(from, to, kernel, stride, groups)
  return nn.Sequential(nn.Conv2d{from, to, kernel, stride = stride or 1,
    padding = (kernel - 1) // 2, groups = groups or 1, bias = false}, nn.BatchNorm2d(to),
    nn.ReLU6{inplace = true})
end

local InvertedResidual = nn.Module:extend "InvertedResidual"

function InvertedResidual:init(from, to, stride, ratio)
  local hidden, list = from * ratio, {}
  if ratio ~= 1 then list[1] = conv_norm(from, hidden, 1) end
  list[#list + 1] = conv_norm(hidden, hidden, 3, stride, hidden)
  list[#list + 1] = nn.Conv2d{hidden, to, 1, bias = false}
  list[#list + 1] = nn.BatchNorm2d(to)
  self.conv = nn.Sequential(list)
  self.use_res_connect = stride == 1 and from == to
end

function InvertedResidual:forward(x)
  return self.use_res_connect and x + self.conv(x) or self.conv(x)
end

local function mobilenet_v2(classes, dropout)
  local list, from = {conv_norm(3, 32, 3, 2)}, 32
  for _, row in ipairs{{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1},
    {6, 160, 3, 2}, {6, 320, 1, 1}} do
    for i = 1, row[3] do
      list[#list + 1] = InvertedResidual(from, row[2], i == 1 and row[4] or 1, row[1])
      from = row[2]
    end
  end
  list[#list + 1] = conv_norm(from, 1280, 1)
  local net = Net(nn.Sequential(list), nn.AdaptiveAvgPool2d{1, 1},
    nn.Sequential(nn.Dropout(dropout), nn.Linear(1280, classes)))
  for m in net:modules() do
    if m:type_name() == "Conv2d" then nn.init.kaiming_normal_(m.weight, {mode = "fan_out"}) end
  end
  nn.init.normal_(net.classifier[2].weight, 0, 0.01)
  nn.init.zeros_(net.classifier[2].bias)
  return net
end

local Fire = nn.Module:extend "Fire"

function Fire:init(from, squeeze, e1, e3)
  self.squeeze = nn.Conv2d{from, squeeze, 1}
  self.squeeze_activation = relu()
  self.expand1x1 = nn.Conv2d{squeeze, e1, 1}
  self.expand1x1_activation = relu()
  self.expand3x3 = nn.Conv2d{squeeze, e3, 3, padding = 1}
  self.expand3x3_activation = relu()
end

function Fire:forward(x)
  x = self.squeeze_activation(self.squeeze(x))
  return lt.cat({self.expand1x1_activation(self.expand1x1(x)),
    self.expand3x3_activation(self.expand3x3(x))}, 2)
end

local function squeezenet(old)
  local function pool() return nn.MaxPool2d{3, stride = 2, ceil_mode = true} end
  return function(classes, dropout)
    local list = old and {nn.Conv2d{3, 96, 7, stride = 2}, relu(), pool(), Fire(96, 16, 64, 64),
      Fire(128, 16, 64, 64), Fire(128, 32, 128, 128), pool(), Fire(256, 32, 128, 128),
      Fire(256, 48, 192, 192), Fire(384, 48, 192, 192), Fire(384, 64, 256, 256), pool(),
      Fire(512, 64, 256, 256)}
      or {nn.Conv2d{3, 64, 3, stride = 2}, relu(), pool(), Fire(64, 16, 64, 64),
        Fire(128, 16, 64, 64), pool(), Fire(128, 32, 128, 128), Fire(256, 32, 128, 128), pool(),
        Fire(256, 48, 192, 192), Fire(384, 48, 192, 192), Fire(384, 64, 256, 256),
        Fire(512, 64, 256, 256)}
    return Net(nn.Sequential(list), nil, nn.Sequential(nn.Dropout(dropout),
      nn.Conv2d{512, classes, 1}, relu(), nn.AdaptiveAvgPool2d{1, 1}), false)
  end
end

return {
  --- models.vgg11{weights = nil, progress = true, num_classes = 1000, dropout = 0.5}: see
  -- models.resnet18.
  vgg11 = vgg("vgg11"),
  --- models.vgg11_bn{weights, progress, num_classes, dropout}: vgg11 with batch normalization.
  vgg11_bn = vgg("vgg11", true),
  --- models.vgg13{weights, progress, num_classes, dropout}: see models.resnet18.
  vgg13 = vgg("vgg13"),
  --- models.vgg13_bn{weights, progress, num_classes, dropout}: vgg13 with batch normalization.
  vgg13_bn = vgg("vgg13", true),
  --- models.vgg16{weights, progress, num_classes, dropout}: see models.resnet18.
  vgg16 = vgg("vgg16"),
  --- models.vgg16_bn{weights, progress, num_classes, dropout}: vgg16 with batch normalization.
  vgg16_bn = vgg("vgg16", true),
  --- models.vgg19{weights, progress, num_classes, dropout}: see models.resnet18.
  vgg19 = vgg("vgg19"),
  --- models.vgg19_bn{weights, progress, num_classes, dropout}: vgg19 with batch normalization.
  vgg19_bn = vgg("vgg19", true),
  --- models.alexnet{weights, progress, num_classes, dropout = 0.5}: see models.resnet18.
  alexnet = maker("alexnet", alexnet, "float dropout = 0.5"),
  --- models.mobilenet_v2{weights, progress, num_classes, dropout = 0.2}: see models.resnet18.
  mobilenet_v2 = maker("mobilenet_v2", mobilenet_v2, "float dropout = 0.2"),
  --- models.squeezenet1_0{weights, progress, num_classes, dropout = 0.5}: see models.resnet18.
  squeezenet1_0 = maker("squeezenet1_0", squeezenet(true), "float dropout = 0.5"),
  --- models.squeezenet1_1{weights, progress, num_classes, dropout = 0.5}: see models.resnet18.
  squeezenet1_1 = maker("squeezenet1_1", squeezenet(false), "float dropout = 0.5"),
}
