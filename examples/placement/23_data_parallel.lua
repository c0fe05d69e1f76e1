-- Data parallelism: one model, each device computes a part of the batch.
--
--   lutra [--emulate cuda:2] examples/placement/23_data_parallel.lua
--
-- With two devices each gets 32 rows of a batch of 64. Both need the model, so it is copied; both
-- compute a part of the gradient, so the parts are added. nn.DataParallel wraps a model and does
-- all of this; the training loop does not change. (PyTorch recommends DistributedDataParallel, with
-- one process per device, for speed; a Lutra program is one process, and both are the same here.)
--
-- test:
-- test on cuda:2:
-- test on cuda:4:

local lt = require "lutra"
local nn, F, optim = lt.nn, lt.F, lt.optim
local device = lt.best_device()

local function make_model()
  lt.manual_seed(1)
  return nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 3)):to(device)
end

-- Trains a model, on one device or on many. Returns the losses.
local function train(model, steps)
  local sgd, losses = optim.SGD(model:parameters(), {lr = 0.1}), {}
  local random = lt.Generator():manual_seed(2)
  for step = 1, steps do
    local x = lt.randn(64, 10, {generator = random}):to(device)
    local labels = x[{{}, 1}]:gt(0):to "int64" + 1
    sgd:zero_grad()
    local loss = F.cross_entropy(model(x), labels)
    loss:backward()
    sgd:step()
    losses[step] = loss:detach() -- on the device, so that the loop does not block
  end
  return lt.stack(losses):totable()
end

-- PyTorch: model = nn.DataParallel(model). Without a GPU it calls the wrapped model directly,
-- so that the program runs everywhere.
local single, wrapped = make_model(), nn.DataParallel(make_model())
print(wrapped)
local losses, parallel_losses = train(single, 5), train(wrapped, 5)
for step = 1, 5 do
  print(("step %d: loss %.6f alone, %.6f parallel"):format(step, losses[step],
    parallel_losses[step]))
  assert(math.abs(losses[step] - parallel_losses[step]) < 1e-4)
end
assert(losses[5] < losses[1], "the loss did not decrease")

-- The parameters are those of the model, on the first device.
for name, p in wrapped.module:named_parameters() do
  assert(p.device == device and p:allclose(single:state_dict()[name], {atol = 1e-4}))
end
-- Save the state of wrapped.module: its names have no prefix "module.".
assert(wrapped:state_dict()["module.1.weight"] and wrapped.module:state_dict()["1.weight"])
-- PyTorch: DistributedDataParallel(model, device_ids=[rank]), in one process for each device (see
-- 26_data_parallel_ranks.lua). In one process, without a process group, it is DataParallel.
assert(nn.parallel.DistributedDataParallel(make_model())(lt.ones(2, 10)).device == device)

local count = lt.cuda.device_count()
if count < 2 then
  print "skipped: the rest needs two GPUs (lutra --emulate cuda:2)"
  print "ok: the wrapped model trains like the model itself, on all devices"
  os.exit(true, true)
end

print "\nthe same by hand:"
-- 1: scatter: divide the batch, one piece per device.
local x = lt.randn(8, 10)
local pieces = nn.parallel.scatter(x, {"cuda:0", "cuda:1"})
for i, piece in ipairs(pieces) do print("scatter: piece " .. i, piece.shape, piece.device) end
assert(pieces[2].device == "cuda:1" and pieces[2]:size(1) == 4)
-- 2: replicate: copy the model. The copies are part of the autograd graph.
local model = make_model()
local replicas = nn.parallel.replicate(model, {"cuda:0", "cuda:1"})
print("replicate: models on", replicas[1]:device(), replicas[2]:device())
assert(replicas[2]:device() == "cuda:1")
-- 3: apply: each replica computes its piece. One thread queues the work on both devices.
local outputs = nn.parallel.parallel_apply(replicas, pieces)
print("apply: outputs on", outputs[1].device, outputs[2].device)
assert(outputs[1].device == "cuda:0" and outputs[2].device == "cuda:1")
-- 4: gather: concatenate the results on one device; backward scatters the gradients.
local y = nn.parallel.gather(outputs, "cuda:0")
print("gather: the whole result", y.shape, y.device)
assert(y:allclose(model(x:to "cuda:0"), {atol = 1e-6}))
y:sum():backward()
local by_hand = model[1].weight.grad:clone()
model:zero_grad()
model(x:to "cuda:0"):sum():backward()
assert(by_hand:allclose(model[1].weight.grad, {atol = 1e-5}))
assert(replicas[2][1].weight.grad == nil) -- all gradients are in the model

-- The cost: every call copies the parameters to the other devices, every backward copies as many
-- gradients back. For a large model with small batches these copies dominate.
local bytes = lt.placement.trace(function() wrapped(x:to "cuda:0") end):totals().bytes
local parameters = wrapped:num_parameters() * 4
print(("\ncopied in one call: %d bytes, of which %d are parameters"):format(bytes,
  parameters * (count - 1)))
assert(bytes >= parameters * (count - 1))

-- Fewer rows than devices: the other devices are idle.
assert(wrapped(lt.randn(1, 10)):size(1) == 1)
-- A loss inside the model is one number per device, here a vector of one element: take their mean.
local Loss = nn.Module:extend "Loss"
function Loss:init(inner) self.inner = inner end
function Loss:forward(input, labels) return F.cross_entropy(self.inner(input), labels):view(1) end
local each = nn.DataParallel(Loss(make_model()))(lt.randn(64, 10), lt.randint(3, {64}))
assert(each:numel() == count and each:mean().ndim == 0)
-- Fields that a replica sets are lost, because it is a copy. Return such values instead.

print "ok: the same losses and gradients, computed on several devices"
