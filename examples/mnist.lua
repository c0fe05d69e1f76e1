-- Trains a network of 784-256-10 units to classify handwritten digits.
--
--   lutra examples/mnist.lua --data DIR [--device cpu] [--epochs 10]
--
-- DIR holds t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz. The first 9,000
-- images are for training, the last 1,000 for testing. With `--device meta` nothing is
-- read or computed: the script prints the shapes and the memory that training needs.
--
-- test: --data $DATA/mnist
-- test: --data $DATA/mnist --device cuda
-- test: --device meta

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data

local TRAINED_ON, GOAL, GOAL_EPOCHS = 9000, 0.95, 10

local options = cli.parse(arg, {
  {"data", nil, "folder with MNIST's t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz"},
  {"device", "cpu", "device to train on: cpu, cuda, mps; meta prints only the sizes"},
  {"epochs", GOAL_EPOCHS, "passes over the training images", least = 1},
  {"batch-size", 64, "images per step", least = 1},
  {"lr", 3e-3, "initial learning rate; it decays to 0"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.try(lt.device, options.device)
lt.manual_seed(options.seed)

local function make_network()
  return nn.Sequential(
    nn.Flatten(),
    nn.Linear(784, 256),
    nn.ReLU(),
    nn.Linear(256, 10))
end

-- Sizes only ------------------------------------------------------------------------

local function megabytes(count) return ("%8.2f MB"):format(count * 4 / 1e6) end

if device == "meta" then
  local net, batch = lt.with_device("meta", make_network), options["batch-size"]
  local images = lt.empty(batch, 28, 28, {device = "meta"})
  local activations = images:numel()
  for name, layer in net:named_children() do
    layer:register_forward_hook(function(_, inputs, output)
      activations = activations + output:numel()
      print(("(%s) %-52s %s -> %s"):format(name, tostring(layer), tostring(inputs[1].shape),
        tostring(output.shape)))
    end)
  end
  net(images)
  local parameters = net:num_parameters()
  print(("parameters: %d"):format(parameters))
  print("parameters      " .. megabytes(parameters))
  print("gradients       " .. megabytes(parameters))
  print("AdamW's moments " .. megabytes(2 * parameters))
  print("activations     " .. megabytes(activations))
  print("images          " .. megabytes(10000 * 784))
  print("total           " .. megabytes(4 * parameters + activations + 10000 * 784))
  return
end

-- Data --------------------------------------------------------------------------------

if not options.data then cli.fail("--data: expected the folder with MNIST's t10k files") end
local images, labels = cli.try(data.mnist, options.data, "t10k")
if images:size(1) ~= 10000 or images:size(2) ~= 28 or images:size(3) ~= 28 then
  cli.fail(("--data: expected images of shape {10000, 28, 28} in %s, got %s"):format(options.data,
    tostring(images.shape)))
end
images = images:to(device):to "float32" / 255
labels = labels:to(device)

local train = data.TensorDataset(images[{{1, TRAINED_ON}}], labels[{{1, TRAINED_ON}}])
local test_images, test_labels = images[{{TRAINED_ON + 1, -1}}], labels[{{TRAINED_ON + 1, -1}}]
local loader = data.DataLoader(train, {batch_size = options["batch-size"], shuffle = true})

-- Data augmentation: a digit moved by a pixel is the same digit, so each batch is shifted at
-- random.
local function shifted(batch)
  local by = lt.randint(-1, 1, {2}):totable()
  return batch:roll(by, {2, 3})
end

-- Training ------------------------------------------------------------------------------

local net = make_network():to(device)
local optimizer = optim.AdamW(net:parameters(), {lr = options.lr})
local step, steps = 0, options.epochs * #loader

local function accuracy()
  net:eval()
  local right = lt.no_grad(function() return net(test_images):argmax(2):eq(test_labels):sum() end)
  net:train()
  return right:item() / test_labels:size(1)
end

local reached = 0
for epoch = 1, options.epochs do
  local total = 0
  local bar = lt.progress(loader, {
    desc = ("epoch %d/%d"):format(epoch, options.epochs), leave = false,
  })
  for x, y in bar do
    optimizer.param_groups[1].lr = options.lr * (1 - step / steps)
    step = step + 1

    local loss = F.cross_entropy(net(shifted(x)), y)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    total = total + loss:detach()
    bar:set_postfix {loss = loss}
  end
  reached = accuracy()
  print(("epoch %2d: loss %.4f, test accuracy %.1f %%"):format(epoch, (total / #loader):item(),
    100 * reached))
end

-- Check the result: ten epochs are enough for 95 %.
if options.epochs >= GOAL_EPOCHS and reached < GOAL then
  cli.fail(("expected an accuracy of at least %g %%, got %.1f %%"):format(100 * GOAL,
    100 * reached))
end
