-- Data-parallel training on CUDA devices, by NCCL: the numbers of one process with the whole batch,
-- within rounding, on rank k's device k.

local ranks = require "ranks_support"

local common = [[
local device = "cuda:" .. rank
local D = {device = device, dtype = "float64"}
local function net()
  lt.manual_seed(3)
  return nn.Sequential(nn.Linear(6, 16, D), nn.Tanh(), nn.Linear(16, 16, D), nn.Tanh(),
    nn.Linear(16, 2, D))
end
lt.manual_seed(5)
local inputs = lt.randn({8, 6}, {dtype = "float64"}):to(device)
local rows = 8 // size
-- Trains on the rows of this rank, or on all. Returns the last loss.
local function train(model, opt, whole)
  local x = whole and inputs or inputs:narrow(1, rank * rows + 1, rows)
  local loss
  for _ = 1, 5 do
    opt:zero_grad()
    loss = (model(x) - 1):pow(2):mean()
    loss:backward()
    opt:step()
  end
  return loss
end
local function adam(m) return optim.Adam(m:parameters(), {lr = 0.01}) end
local expected = net()
train(expected, adam(expected), true)
local function compare(state)
  local count = 0
  for name, x in pairs(expected:state_dict()) do
    count = count + 1
    assert(state[name].device == device, name)
    assert(lt.allclose(x, state[name], {rtol = 1e-9, atol = 1e-12}), name)
  end
  assert(count == 6)
end
]]

local function check(count, text, env)
  local arguments, missing = ranks.device_arguments(count)
  if not arguments then return pending(missing) end
  ranks.check(count, common .. text, {env = env, args = arguments})
end

describe("training by NCCL", function()
  it("is that of one process with DistributedDataParallel", function()
    check(2, [[
      local m = net()
      local ddp = nn.parallel.DistributedDataParallel{m, bucket_cap_mb = 0.001}
      train(ddp, adam(m))
      compare(m:state_dict())
    ]], {LUTRA_EMULATE_DELAY = "200"})
  end)

  it("is that of one process with ZeroRedundancyOptimizer", function()
    check(2, [[
      local m = net()
      local ddp = nn.parallel.DistributedDataParallel(m)
      train(ddp, dist.optim.ZeroRedundancyOptimizer(m:parameters(), {
        optimizer_class = optim.Adam, lr = 0.01}))
      compare(m:state_dict())
    ]])
  end)

  it("is that of one process with FullyShardedDataParallel", function()
    check(2, [[
      local m = dist.fsdp.FSDP(net())
      train(m, adam(m))
      compare(m:state_dict())
    ]])
  end)
end)
