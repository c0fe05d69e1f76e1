-- Trains a convolutional network to classify handwritten digits: 98 % of new images.
--
--   lutra examples/mnist_cnn.lua --data DIR [--device cpu] [--epochs 8]
--
-- DIR holds t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz. The first 9,000 images are
-- for training, the last 1,000 for testing. The network is that of PyTorch's example "mnist".
--
-- test: --data $DATA/mnist --epochs 1

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data

local GOALS = {[1] = 0.9, [8] = 0.98} -- epochs -> accuracy that so many epochs reach

local options = cli.parse(arg, {
  {"data", nil, "folder with MNIST's t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz",
    required = true},
  {"device", "cpu", "device to train on: cpu, cuda or mps"},
  {"epochs", 8, "passes over the training images", least = 1},
  {"batch-size", 64, "images per step", least = 1},
  {"limit", 9000, "number of training images", least = 1},
  {"lr", 2e-3, "largest learning rate"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

-- The data: images as {count, 1 channel, 28, 28}, with a mean of 0 and a deviation of 1.
local images, labels = cli.try(data.mnist, options.data, "t10k")
images = (images:unsqueeze(2):to(device):float() / 255 - 0.1307) / 0.3081
labels = labels:to(device)

local last = math.min(options.limit, 9000)
local train = data.TensorDataset(images[{{1, last}}], labels[{{1, last}}])
local loader = data.DataLoader(train, {batch_size = options["batch-size"], shuffle = true})
local test_images, test_labels = images[{{9001, -1}}], labels[{{9001, -1}}]

-- The network: two convolutions find strokes and their parts, two linear layers decide.
local net = nn.Sequential(
  nn.Conv2d(1, 32, 3), nn.ReLU(),         -- {32, 26, 26}
  nn.Conv2d(32, 64, 3), nn.ReLU(),        -- {64, 24, 24}
  nn.MaxPool2d(2), nn.Dropout(0.25),      -- {64, 12, 12}
  nn.Flatten(),
  nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Dropout(0.5),
  nn.Linear(128, 10)):to(device)
local optimizer = optim.AdamW(net:parameters(), {lr = options.lr})

-- Returns the predicted labels of the test images.
local function predict()
  net:eval()
  local predicted = lt.no_grad(function()
    local parts = {}
    for _, part in ipairs(test_images:split(250)) do parts[#parts + 1] = net(part):argmax(2) end
    return lt.cat(parts)
  end)
  net:train()
  return predicted
end

-- Training. A digit that is moved by a pixel stays the same digit, so each batch is moved at
-- random. The learning rate decays to 0.
local reached, step, steps = 0, 0, options.epochs * #loader
for epoch = 1, options.epochs do
  local bar = lt.progress(loader, {desc = ("epoch %d/%d"):format(epoch, options.epochs)})
  for x, y in bar do
    optimizer.param_groups[1].lr = options.lr * (1 - step / steps)
    step = step + 1
    local loss = F.cross_entropy(net(x:roll(lt.randint(-1, 1, {2}):totable(), {3, 4})), y)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    bar:set_postfix {loss = loss}
  end
  reached = predict():eq(test_labels):float():mean():item()
  print(("epoch %d: test accuracy %.1f %%"):format(epoch, 100 * reached))
end

-- The images that the network takes for another digit.
local predicted = predict()
local wrong = predicted:ne(test_labels):nonzero():squeeze(2)
for _, i in ipairs(wrong[{{1, math.min(3, #wrong)}}]:totable()) do
  print(("a %d that looks like a %d:"):format(test_labels[i]:item() - 1, predicted[i]:item() - 1))
  print(lt.plot.image(test_images[{i, 1}]:cpu()))
end

-- Check the result.
local goal = last == 9000 and GOALS[options.epochs] or 0
if reached < goal then
  cli.fail(("expected an accuracy of at least %g %%, got %.1f %%"):format(100 * goal,
    100 * reached))
end
