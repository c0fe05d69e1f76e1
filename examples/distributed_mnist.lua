-- Classifies digits, trained by several processes: each computes the gradients of a part of each
-- batch, and all make the same step with their average.
--
--   lutra --nproc 2 examples/distributed_mnist.lua --data DIR
--   lutra examples/distributed_mnist.lua --data DIR                 (one process)
--   lutra --nproc 2 examples/distributed_mnist.lua --data DIR --device cuda   (a GPU for each)
--
-- DIR holds t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz. The first 9,000 images are for
-- training, the last 1,000 for testing.
--
-- test: --data $DATA/mnist

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data
local dist = lt.distributed

local TRAINED_ON, GOAL, GOAL_EPOCHS = 9000, 0.92, 5

local options = cli.parse(arg, {
  {"data", nil, "folder with MNIST's t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz"},
  {"device", "cpu", "device to train on: cpu, or cuda for a GPU for each process"},
  {"epochs", GOAL_EPOCHS, "passes over the training images", least = 1},
  {"batch-size", 60, "images per step, of all processes together", least = 1},
  {"lr", 3e-3, "learning rate"},
  {"seed", 1, "seed of the random numbers"},
})
if not options.data then cli.fail("--data: expected the folder with MNIST's t10k files") end

-- Processes ---------------------------------------------------------------------------

-- Without a library for communication there is one process, and no group.
local rank, size = 0, 1
if dist.is_available() then
  dist.init_process_group()
  rank, size = dist.get_rank(), dist.get_world_size()
end
local device = options.device
if device == "cuda" then
  device = cli.try(lt.device, ("cuda:%d"):format(dist.get_node_local_rank(0)))
  lt.cuda.set_device(device)
end
local function print_once(...)
  if rank == 0 then print(...) end
end

-- Data --------------------------------------------------------------------------------

local images, labels = cli.try(data.mnist, options.data, "t10k")
images = images:to(device):to "float32" / 255
labels = labels:to(device)
local train = data.TensorDataset(images[{{1, TRAINED_ON}}], labels[{{1, TRAINED_ON}}])

-- Each process has its own part of the images, another one in each epoch.
local sampler = data.DistributedSampler(train, {num_replicas = size, rank = rank,
  seed = options.seed})
local loader = data.DataLoader(train, {batch_size = math.max(options["batch-size"] // size, 1),
  sampler = sampler})

-- Training ------------------------------------------------------------------------------

lt.manual_seed(options.seed)
local net = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
net = net:to(device)
local model = dist.is_initialized() and nn.parallel.DistributedDataParallel(net) or net
local optimizer = optim.AdamW(model:parameters(), {lr = options.lr})

-- Returns the sum of a tensor over the processes.
local function total(x)
  if dist.is_initialized() then dist.all_reduce(x) end
  return x
end

-- Returns the share of right answers. Each process computes those of its part of the test images.
local function accuracy()
  local count = images:size(1) - TRAINED_ON
  local part = {TRAINED_ON + 1 + rank, -1, size}
  local right = lt.no_grad(function()
    return net(images[{part}]):argmax(2):eq(labels[{part}]):sum()
  end)
  return total(right):item() / count
end

local reached = 0
for epoch = 1, options.epochs do
  sampler:set_epoch(epoch)
  local loss_sum = lt.zeros({}, {device = device})
  for x, y in loader do
    local loss = F.cross_entropy(model(x), y)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    loss_sum:add_(loss:detach())
  end
  reached = accuracy()
  print_once(("epoch %d: loss %.4f, test accuracy %.1f %%"):format(epoch,
    total(loss_sum):item() / size / #loader, 100 * reached))
end

-- Check the result: the same parameters in all processes, and digits are recognized.
for name, p in net:named_parameters() do
  local sums = {}
  if dist.is_initialized() then dist.all_gather_object(sums, p:detach():sum():item()) end
  for r = 2, size do
    if sums[r] ~= sums[1] then
      cli.fail(("expected the same parameter %s on all ranks, got other values on rank %d"):format(
        name, r - 1))
    end
  end
end
if dist.is_initialized() then dist.destroy_process_group() end
if options.epochs >= GOAL_EPOCHS and reached < GOAL then
  cli.fail(("expected an accuracy of at least %g %%, got %.1f %%"):format(100 * GOAL,
    100 * reached))
end
