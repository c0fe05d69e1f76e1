--- DistributedDataParallel and SyncBatchNorm on CUDA devices, by NCCL: rank k uses device k of the
-- emulated ones, or, where LUTRA_TEST_GPU is set, of the machine's.

local ranks = require "ranks_support"

-- Runs the text on ranks with a device each.
local function check(count, body, env)
  local arguments, missing = ranks.device_arguments(count)
  if not arguments then return pending(missing) end
  ranks.check(count, [[
    local DDP = nn.parallel.DistributedDataParallel
    local device = "cuda:" .. rank
    lt.cuda.set_device(device)
    local D = {dtype = "float64"}
  ]] .. body, {args = arguments, env = env})
end

-- Four steps with the whole batch and with parts of it. The results differ by the order of sums, of
-- at most 8 rows and 6 features, and by the rounding of rsqrt and tanh: 1e-11 is 4e4 times 2^-52.
local training = [[
  local function make()
    lt.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6, D), nn.BatchNorm1d(6, D), nn.Tanh(), nn.Linear(6, 3, D))
  end
  for _, options in ipairs {{}, {bucket_cap_mb = 1e-4}, {gradient_as_bucket_view = true},
    {find_unused_parameters = true}, {static_graph = true}, {device_ids = {rank}}} do
    local whole = make():to(device)
    local part = nn.SyncBatchNorm.convert_sync_batchnorm(make()):to(device)
    local model = DDP(part, options)
    local a = optim.SGD(whole:parameters(), {lr = 0.1})
    local b = optim.SGD(model:parameters(), {lr = 0.1})
    for step = 1, 4 do
      local g = lt.Generator(step)
      local x = lt.randn({8, 4}, {dtype = "float64", device = "cpu", generator = g})
      local own = x:narrow(1, rank * (8 // size) + 1, 8 // size)
      if not options.device_ids then own = own:to(device) end -- else DDP moves it
      a:zero_grad() b:zero_grad()
      whole(x:to(device)):square():mean():backward()
      model:no_sync(function() (model(own):square():mean() * 0):backward() end)
      model(own):square():mean():backward()
      a:step() b:step()
    end
    for name, p in whole:named_parameters() do
      local q = part:get_parameter(name)
      assert(q.device == device and q.grad.device == device)
      assert(lt.allclose(p, q, {rtol = 1e-11, atol = 1e-12}), name)
    end
  end
]]

describe("DistributedDataParallel on CUDA devices", function()
  it("trains as one process with the whole batch", function() check(2, training) end)

  it("orders its work on streams", function()
    check(2, training, {LUTRA_EMULATE_DELAY = "100", LUTRA_EMULATE_STRICT = "1",
      LUTRA_EMULATE_POISON = "1", LUTRA_EMULATE_ORDER = "reverse"})
  end)

  it("calls communication hooks", function()
    check(2, [[
      local hooks = dist.algorithms.ddp_comm_hooks.default_hooks
      for _, name in ipairs {"allreduce_hook", "fp16_compress_hook", "bf16_compress_hook"} do
        local model = DDP(nn.Linear(4, 2):to(device))
        model:register_comm_hook(nil, hooks[name])
        model(lt.full({3, 4}, rank + 1.0, {device = device})):sum():backward()
        local grad = model.module.weight.grad -- three rows of 1 and of 2
        assert(grad:min():item() == 4.5 and grad:max():item() == 4.5, name)
      end]])
  end)

  it("expects its device", function()
    check(1, [[
      local function fails(words, ...)
        local ok, message = pcall(...)
        assert(not ok and tostring(message):find(words, 1, true), tostring(message))
      end
      fails('on "cuda:0", the device of device_ids', DDP,
        nn.Sequential(nn.Linear(2, 2):to "cuda:0", nn.Linear(2, 2)), {device_ids = {0}})
      fails("expected one device", DDP, nn.Linear(2, 2):to "cuda:0", {device_ids = {0, 0}})
      fails("no device_ids for a module on \"cpu\"", DDP, nn.Linear(2, 2), {device_ids = {0}})]])
  end)
end)
