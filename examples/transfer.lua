-- Uses a network that PyTorch has trained for a new task: transfer learning.
--
--   lutra examples/transfer.lua --data DIR [--weights resnet18.pth] [--epochs 3] [--device cpu]
--
-- DIR holds t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz of MNIST. With the weights of
-- torchvision's resnet18 (a .pth file, as PyTorch saves it), the network's features stay as they
-- are and only a new last layer is trained on them. Without --weights, a small network is first
-- trained on the digits 0 to 4 and saved; its features then serve to tell 5 to 9 apart.
--
-- test: --data $DATA/mnist --epochs 1 --limit 1500

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data

local options = cli.parse(arg, {
  {"data", nil, "folder with MNIST's t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz",
    required = true},
  {"weights", "", "checkpoint of torchvision's resnet18, a .pth file"},
  {"epochs", 3, "passes over the images", least = 1},
  {"limit", 5000, "number of training images", least = 1},
  {"device", "cpu", "device to train on: cpu, cuda or mps"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

local images, labels = cli.try(data.mnist, options.data, "t10k")
images = (images:unsqueeze(2):float() / 255 - 0.1307) / 0.3081

-- Returns loaders for training and testing with the digits from `low` to `high`, their labels from
-- 1 on. Label 1 is the digit 0.
local function loaders(low, high)
  local chosen = (labels:ge(low + 1) & labels:le(high + 1)):nonzero():squeeze(2)
  local x, y = images[chosen], labels[chosen] - low
  local count = math.min(options.limit, #x * 4 // 5)
  local train = data.TensorDataset(x[{{1, count}}], y[{{1, count}}])
  local test = data.TensorDataset(x[{{#x * 4 // 5 + 1, -1}}], y[{{#x * 4 // 5 + 1, -1}}])
  return data.DataLoader(train, {batch_size = 64, shuffle = true}),
    data.DataLoader(test, {batch_size = 250})
end

-- Trains the parameters that require grad; returns the accuracy on the test images.
local function train(net, low, high, title)
  local training, testing = loaders(low, high)
  local trained = {}
  for p in net:parameters() do
    if p.requires_grad then trained[#trained + 1] = p end
  end
  local optimizer = optim.AdamW(trained, {lr = 2e-3})
  local losses = {}
  for epoch = 1, options.epochs do
    net:train()
    for x, y in lt.progress(training, {desc = ("%s %d"):format(title, epoch)}) do
      local loss = F.cross_entropy(net(x:to(device)), y:to(device))
      optimizer:zero_grad()
      loss:backward()
      optimizer:step()
      losses[#losses + 1] = loss:detach()
    end
  end
  print(lt.plot.line(lt.stack(losses):cpu(), {label = "loss of " .. title}))
  net:eval()
  local right, total = 0, 0
  lt.no_grad(function()
    for x, y in testing:iter() do
      right = right + net(x:to(device)):argmax(2):eq(y:to(device)):sum():item()
      total = total + #y
    end
  end)
  print(("%s: test accuracy %.1f %%"):format(title, 100 * right / total))
  return right / total
end

local reached
if options.weights ~= "" then
  -- PyTorch's checkpoint, with PyTorch's names.
  local net = lt.vision.models.resnet18()
  net:load_state_dict(cli.try(lt.load, options.weights), {base = 0})
  net:requires_grad_(false)
  net.fc = nn.Linear(512, 5)
  net:to(device)
  -- The network expects images of three channels and a larger size.
  local forward = net.forward
  function net:forward(x)
    return forward(self, F.interpolate(x:expand(-1, 3, -1, -1), {size = {64, 64}}))
  end
  reached = train(net, 5, 9, "digits 5 to 9")
else
  local function features()
    return nn.Sequential(
      nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
      nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
  end
  local first = nn.Sequential(features(), nn.Linear(800, 5)):to(device)
  train(first, 0, 4, "digits 0 to 4")
  local path = os.tmpname()
  lt.save(first[1]:state_dict(), path)

  local kept = features()
  kept:load_state_dict(lt.load(path))
  os.remove(path)
  kept:requires_grad_(false)
  local second = nn.Sequential(kept, nn.Linear(800, 5)):to(device)
  reached = train(second, 5, 9, "digits 5 to 9")
end

-- Check the result: one linear layer on features of other digits is enough.
local goal = options.limit >= 5000 and options.epochs >= 3 and 0.93
  or options.limit >= 1500 and 0.75 or 0
if reached < goal then
  cli.fail(("expected an accuracy of at least %g %%, got %.1f %%"):format(100 * goal,
    100 * reached))
end
