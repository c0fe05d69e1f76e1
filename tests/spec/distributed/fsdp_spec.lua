-- lt.distributed.fsdp: modules whose parameters are distributed over the ranks compute what one
-- process computes with the whole batch.
--
-- The integer networks have weights and inputs of few bits, in float64: all sums are exact,
-- whatever their order, so results must be equal bit for bit when the number of ranks is a power of
-- two.
local devices = require "device_support"
local ranks = require "ranks_support"
local has = require("program_support").has

local COMMON = [[
local fsdp, F = dist.fsdp, lt.F
local FSDP = fsdp.FSDP
local exact = size & (size - 1) == 0
local function same(a, b, what)
  if exact then return assert(lt.equal(a, b), what) end
  assert(lt.allclose(a, b, {rtol = 1e-12, atol = 1e-12}), what)
end
local function close(a, b, what)
  assert(lt.allclose(a, b, {rtol = 1e-9, atol = 1e-11}), what)
end
local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok)
  return message
end
local function has(text, expected) assert(text:find(expected, 1, true), text) end
-- The number of gathered parameters that were not freed.
local function gathered(m)
  local count = 0
  for module in m:modules() do
    for _, flat in ipairs(module._fsdp and module._fsdp.flats or {}) do
      if flat.full then count = count + 1 end
    end
  end
  return count
end
]]

-- A network of integers, a batch for all ranks, and training by SGD with exact numbers.
local INTEGERS = COMMON .. [[
local function linear(n, k)
  local layer = nn.Linear(n, k):double()
  lt.no_grad(function()
    layer.weight:copy_(lt.randint(-2, 2, {k, n}))
    layer.bias:copy_(lt.randint(-2, 2, {k}))
  end)
  return layer
end
local function net()
  lt.manual_seed(3)
  return nn.Sequential(linear(4, 6), nn.ReLU(), nn.Sequential(linear(6, 6), nn.ReLU(),
    linear(6, 3)), linear(3, 2))
end
local function batch(i)
  lt.manual_seed(i)
  return lt.randint(-3, 3, {4 * size, 4}):double()
end
local function own(x) return x[{{rank * 4 + 1, rank * 4 + 4}}] end
local function sgd(m) return optim.SGD(m:parameters(), {lr = 2.0 ^ -3, momentum = 0.5}) end
-- One process with the whole batch: the mean over the ranks is that of the gradients.
local function reference(steps)
  local m = net()
  local opt = sgd(m)
  for i = 1, steps do
    opt:zero_grad()
    m(batch(i)):sum():backward()
    for p in m:parameters() do p.grad:div_(size) end
    opt:step()
  end
  return m, opt
end
local function train(m, steps)
  local opt = sgd(m)
  for i = 1, steps do
    opt:zero_grad()
    m(own(batch(i))):sum():backward()
    opt:step()
  end
  return opt
end
local function compare(expected, state)
  local names = {}
  for name, x in pairs(expected:state_dict()) do
    same(x, state[name], name)
    names[#names + 1] = name
  end
  local i = 0
  for name in pairs(state) do
    i = i + 1
    assert(names[i] == name, name) -- the order of the plain module
  end
  assert(i == #names)
end
]]

-- A transformer on random numbers, which agrees within rounding.
local TRANSFORMER = COMMON .. [[
local Layer = nn.TransformerEncoderLayer
local function net()
  lt.manual_seed(3)
  local options = {dim_feedforward = 32, dropout = 0, batch_first = true}
  return nn.Sequential(nn.Embedding(11, 16), Layer(16, 2, options), Layer(16, 2, options),
    nn.Linear(16, 11)):double()
end
lt.manual_seed(5)
local X = lt.randint(1, 11, {2 * size, 5})
local mine = X[{{2 * rank + 1, 2 * rank + 2}}]
local function loss_of(m, x) return F.cross_entropy(m(x):flatten(1, 2), x:flatten()) end
local function train(m, step)
  local opt = optim.SGD(m:parameters(), {lr = 0.1, momentum = 0.9})
  for _ = 1, 3 do
    opt:zero_grad()
    step(m)
    opt:step()
  end
  return m
end
local function one_step(m) loss_of(m, mine):backward() end
local plain = train(net(), function(m) loss_of(m, X):backward() end)
local function compare(m, expected)
  expected = expected or plain
  local values = expected:state_dict()
  for name, x in pairs(m:state_dict()) do close(x, values[name:gsub("inner%.", "")], name) end
end
local Checkpointed = nn.Module:extend "Checkpointed"
function Checkpointed:init(inner) self.inner = inner end
function Checkpointed:forward(x) return lt.utils.checkpoint.checkpoint(self.inner, x) end
]]

describe("FullyShardedDataParallel", function()
  if not ranks.available() then
    pending "needs mpirun"
    return
  end

  for count = 1, 4 do
    it(("equals one process with the whole batch on %d ranks"):format(count), function()
      ranks.check(count, INTEGERS .. [[
local expected, plain_opt = reference(2)
for _, strategy in ipairs {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"} do
  for _, original in ipairs {false, true} do
    local m = FSDP(net(), {sharding_strategy = strategy, auto_wrap_policy = {nn.Sequential},
      use_orig_params = original, forward_prefetch = original})
    local opt = train(m, 2)
    assert(gathered(m) == 0)
    compare(expected, m:state_dict())
    local state = fsdp.optim_state_dict(m, opt)
    for name, p in expected:named_parameters() do
      same(plain_opt.state[p].momentum_buffer, state.state[name].momentum_buffer, name)
    end
    local x = batch(9)
    m:eval()
    lt.no_grad(function() same(expected(x), m(x), "eval") end)
    assert(gathered(m) == 0)
  end
end]])
    end)
  end

  for count = 2, 3 do
    it(("computes a transformer on %d ranks, in every order of gathering"):format(count), function()
      ranks.check(count, TRANSFORMER .. [[
for _, prefetch in ipairs {"BACKWARD_PRE", "BACKWARD_POST", "NONE"} do
  compare(train(FSDP(net(), {auto_wrap_policy = {Layer}, backward_prefetch = prefetch,
    forward_prefetch = prefetch ~= "NONE"}), one_step))
end
-- A list of modules; modules that are wrapped by hand; a function.
local n = net()
compare(train(FSDP(n, {auto_wrap_policy = {n[2], n[4]}}), one_step))
n = net()
n[3] = FSDP(n[3])
compare(train(FSDP(n), one_step))
n = FSDP(net(), {auto_wrap_policy = function(m, recurse, numel)
  return fsdp.size_based_auto_wrap_policy(m, recurse, numel, 1000)
end})
assert(tostring(n.module[2]:type_name()) == "FullyShardedDataParallel")
assert(tostring(n.module[4]:type_name()) == "Linear")
compare(train(n, one_step))]])
    end)
  end

  it("accumulates gradients, with no_sync and without", function()
    ranks.check(2, TRANSFORMER .. [[
local twice = train(net(), function(m) loss_of(m, X):backward() loss_of(m, X):backward() end)
local m = FSDP(net(), {auto_wrap_policy = {Layer}})
train(m, function()
  m:no_sync(function() one_step(m) end)
  for p in m:parameters() do assert(p.grad == nil) end
  one_step(m)
end)
compare(m, twice)
m = train(FSDP(net(), {auto_wrap_policy = {Layer}}), function(x) one_step(x) one_step(x) end)
compare(m, twice)
has(fails(m.module[2].no_sync, m.module[2], print), "expected the outermost wrapper")
has(fails(m.no_sync, m, 3), "expected a function for argument 'f'")]])
  end)

  it("clips gradients by the norm over all ranks", function()
    ranks.check(2, TRANSFORMER .. [[
for _, order in ipairs {2, 1, math.huge} do
  local norms = {}
  local clipped = train(net(), function(m)
    loss_of(m, X):backward()
    norms[#norms + 1] = nn.utils.clip_grad_norm_(m:parameters(), 0.1, order):item()
  end)
  local m, i = FSDP(net(), {auto_wrap_policy = {Layer}}), 0
  train(m, function()
    one_step(m)
    i = i + 1
    local norm = m:clip_grad_norm_(0.1, {norm_type = order}):item()
    assert(math.abs(norm - norms[i]) < 1e-9)
  end)
  compare(m, clipped)
end
local m = FSDP(net())
has(fails(m.clip_grad_norm_, m, 1, -1), "expected a number above 0 for argument 'norm_type'")
assert(FSDP(nn.ReLU()):clip_grad_norm_(1):item() == 0)
-- Gradients without elements.
for _, strategy in ipairs {"FULL_SHARD", "NO_SHARD"} do
  m = FSDP(nn.ParameterList{lt.ones(2), lt.ones(0)},
    {use_orig_params = true, sharding_strategy = strategy})
  for p in m:parameters() do p.grad = lt.full(p.shape, 3.0) end
  local norm = m:clip_grad_norm_(1, {norm_type = math.huge})
  assert(norm:item() == 3 and lt.allclose(m:parameters()().grad, lt.tensor(1.0)))
end]])
  end)

  it("skips a step on all ranks when one has a gradient that is not finite", function()
    ranks.check(3, COMMON .. [[
local m = FSDP(nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3)), {auto_wrap_policy = {nn.Linear}})
local opt = optim.SGD(m:parameters(), {lr = 1})
local scaler = lt.amp.GradScaler("cpu", {init_scale = 4})
for step, bad in ipairs {1, false, 2} do
  local before = {}
  scaler:scale(lt.ones(1))
  for p in m:parameters() do
    before[p] = p:detach():clone()
    p.grad = lt.full(p.shape, rank == bad and math.huge or 2.0)
  end
  scaler:step(opt)
  scaler:update()
  for p in m:parameters() do
    assert(lt.equal(p, bad and before[p] or before[p] - 1), "step " .. step)
  end
  assert(scaler:get_scale() == (step < 3 and 2 or 1))
end]])
  end)

  it("works with checkpointed activations, inside and around", function()
    ranks.check(2, TRANSFORMER .. [[
local inside = net()
for i = 2, 3 do inside[i] = Checkpointed(inside[i]) end
local m = train(FSDP(inside, {auto_wrap_policy = {Checkpointed}}), one_step)
compare(m)
assert(gathered(m) == 0)
local around = net()
for i = 2, 3 do around[i] = Checkpointed(FSDP(around[i])) end
compare(train(FSDP(around), one_step))
-- Other functions for saved tensors get the tensors that are no parameters.
local count = 0
m = train(FSDP(net()), function(x)
  lt.autograd.graph.saved_tensors_hooks(function(t) count = count + 1 return t end,
    function(t) return t end, function() return loss_of(x, mine) end):backward()
end)
compare(m)
assert(count > 0)]])
  end)

  it("trains a part of the parameters, and shares parameters", function()
    ranks.check(2, TRANSFORMER .. [[
local function freeze(m)
  for p in m[3]:parameters() do p:requires_grad_(false) end
  m[4].bias:requires_grad_(false)
  return m
end
local function tie(m) m[4].weight = m[1].weight return m end
local function all(m) loss_of(m, X):backward() end
compare(train(FSDP(freeze(net()), {auto_wrap_policy = {Layer}}), one_step),
  train(freeze(net()), all))
local m = train(FSDP(tie(net()), {auto_wrap_policy = {Layer}}), one_step)
compare(m, train(tie(net()), all))
assert(gathered(m) == 0)
has(fails(FSDP, tie(net()), {auto_wrap_policy = {nn.Linear}}),
  "another wrapped module has the same parameter")]])
  end)

  it("computes in a lower precision, and reduces in another one", function()
    ranks.check(2, TRANSFORMER .. [[
local m = FSDP(net():float(), {auto_wrap_policy = {Layer}, mixed_precision =
  {param_dtype = "bfloat16", reduce_dtype = "float32", buffer_dtype = "bfloat16"}})
train(m, function()
  local y = m(mine)
  assert(y.dtype == "bfloat16")
  F.cross_entropy(y:flatten(1, 2):float(), mine:flatten()):backward()
end)
local expected = plain:state_dict()
for p in m:parameters() do assert(p.dtype == "float32" and p.grad.dtype == "float32") end
for name, x in pairs(m:state_dict()) do
  assert(x.dtype == "float32" and lt.allclose(x, expected[name]:float(), {atol = 0.02}), name)
end
has(fails(FSDP, net(), {mixed_precision = {param_dtype = "int32"}}), "expected a float dtype")
-- The buffers of a module that is wrapped by hand are those of its wrapper.
local inner = nn.BatchNorm1d(2)
m = FSDP(nn.Sequential(FSDP(inner), nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm1d(2))),
  {mixed_precision = {buffer_dtype = "float64"}, auto_wrap_policy = {nn.Sequential}})
local dtypes = {}
for name, x in m:named_buffers() do
  if name:find "mean" then dtypes[#dtypes + 1] = x.dtype end
end
assert(table.concat(dtypes, " ") == "float32 float64 float64")]])
  end)

  it("keeps 1 / ranks of parameters, gradients and optimizer state", function()
    for _, count in ipairs {1, 2, 4} do
      ranks.check(count, COMMON .. [[
local H = 128
local function block() return nn.Sequential(nn.Linear(H, H), nn.ReLU(), nn.Linear(H, H)) end
local function live()
  collectgarbage() collectgarbage()
  return lt.memory_live()
end
local base = live()
do FSDP(nn.Linear(H, H))(lt.ones(1, H)) end -- without backward
assert(live() <= base, "a module that is no longer used")
local m = FSDP(nn.Sequential(nn.Linear(4, H), block(), block(), block(), block()),
  {auto_wrap_policy = {nn.Sequential}})
local whole = (4 * H + H + 8 * (H * H + H)) * 4
local block_bytes, slack = 2 * (H * H + H) * 4, 16384
assert(live() - base <= whole / size + slack, "parameters")
local opt = optim.Adam(m:parameters())
for _ = 1, 2 do
  local before = live() - base
  local loss = m(lt.randn(2, 4)):pow(2):mean()
  -- After forward only the outermost module has its parameters: one Linear of 4 inputs.
  assert(live() - base <= before + 5 * H * 4 + 40 * H * 4 + slack, "after forward")
  loss:backward()
  opt:step()
  -- Parameters, gradients, and the two moments of Adam.
  loss = nil
  assert(live() - base <= 4 * whole / size + slack, "between steps")
  opt:zero_grad()
end
-- While a block is called, it is the only one that is gathered.
local most = 0
local before = live() - base
for i = 2, 5 do
  m.module[i].module:register_forward_hook(function() most = math.max(most, live() - base) end)
end
lt.no_grad(function() m(lt.randn(2, 4)) end)
assert(most <= before + block_bytes + 5 * H * 4 + 40 * H * 4 + slack, "in forward")]])
    end
  end)

  it("ignores modules, synchronizes states and chooses modules by size", function()
    ranks.check(2, COMMON .. [[
lt.manual_seed(rank)
local n = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8), nn.BatchNorm1d(8))
local m = FSDP(n, {ignored_modules = {n[2]}, sync_module_states = true,
  auto_wrap_policy = function(x, r, numel)
    return fsdp.size_based_auto_wrap_policy(x, r, numel, 30)
  end})
local names = {}
for name, p in m:named_parameters() do names[#names + 1] = name .. tostring(p.shape) end
assert(table.concat(names, " ")
  == "_flat_param{8} module.1._flat_param{20} module.2.weight{8, 8} module.2.bias{8}")
local state, all, keys = m:state_dict(), {}, {}
for name, x in pairs(state) do
  keys[#keys + 1] = name
  dist.all_gather_object(all, x:totable())
  assert(lt.equal(lt.tensor(all[1]), lt.tensor(all[2])), name)
end
assert(table.concat(keys, " ") == "1.weight 1.bias 2.weight 2.bias 3.weight 3.bias "
  .. "3.running_mean 3.running_var 3.num_batches_tracked")
-- A parameter that an ignored module has, too, is not sharded.
n = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
n[2].weight = n[1].weight
m = FSDP(n, {ignored_modules = {n[2]}})
assert(rawequal(n[1].weight, n[2].weight) and m._flat_param:numel() == 2)
-- A module that is wrapped by hand keeps its shards.
n = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
lt.no_grad(function()
  n[1].weight:copy_(lt.arange(1, 6):view(2, 3))
  n[2].weight:fill_(rank)
end)
n[1] = FSDP(n[1])
state = FSDP(n, {sync_module_states = true}):state_dict()
assert(lt.equal(state["1.weight"], lt.arange(1, 6):view(2, 3):float()))
assert(lt.equal(state["2.weight"], lt.zeros(2, 2)))]])
  end)

  it("saves and loads state dicts of every type", function()
    ranks.check(3, INTEGERS .. [[
local expected, plain_opt = reference(1)
local m = FSDP(net(), {auto_wrap_policy = {nn.Sequential}})
local opt = train(m, 1)
local kinds = {}
for _, kind in ipairs {"full", "sharded", "local"} do
  kinds[kind] = fsdp.state_dict_type(m, kind, function() return m:state_dict() end)
end
compare(expected, kinds.full)
assert(kinds.sharded["1.weight"].shape[1] == 6 and kinds["local"]._flat_param)
for kind, state in pairs(kinds) do
  local other = FSDP(net(), {auto_wrap_policy = {nn.Sequential}})
  other:load_state_dict(state)
  compare(m:state_dict() and expected, other:state_dict())
end
for _, strategy in ipairs {"FULL_SHARD", "NO_SHARD"} do
  for _, kind in ipairs {"full", "sharded", "local"} do
    local options = {use_orig_params = true, sharding_strategy = strategy}
    local one, other = FSDP(net(), options), FSDP(net(), options)
    one:load_state_dict(kinds.full)
    other:load_state_dict(fsdp.state_dict_type(one, kind, function() return one:state_dict() end))
    compare(expected, other:state_dict())
  end
end
-- A whole one loads into the plain module, and that of the plain module into a wrapped one.
local plain = net()
plain:load_state_dict(kinds.full)
local other = FSDP(net())
other:load_state_dict(plain:state_dict())
compare(expected, other:state_dict())
-- On one rank only, on the CPU.
local one = fsdp.state_dict_type(m, {"full", rank0_only = true, offload_to_cpu = true}, function()
  return {m:state_dict(), fsdp.optim_state_dict(m, opt)}
end)
if rank == 0 then compare(expected, one[1])
else assert(next(one[1]) == nil and not one[2].state) end
-- The state of an optimizer of the plain module, by names, loads into that of the shards.
local by_name = {state = {}, param_groups = {{lr = 0.5, momentum = 0.5, params = {}}}}
for name, p in expected:named_parameters() do
  by_name.state[name] = plain_opt.state[p]
  table.insert(by_name.param_groups[1].params, name)
end
local fresh = sgd(m)
fresh:load_state_dict(fsdp.optim_state_dict_to_load(m, fresh, by_name))
assert(fresh.param_groups[1].lr == 0.5)
for p in m:parameters() do
  same(fresh.state[p].momentum_buffer, opt.state[p].momentum_buffer)
end
-- Differences are reported before anything is loaded.
local before = m:state_dict()
local bad = FSDP(nn.Sequential(linear(4, 6), nn.ReLU(), linear(6, 6), linear(3, 2)))
has(fails(m.load_state_dict, m, bad:state_dict()), "missing: ")
local wrong = m:state_dict()
wrong["1.weight"] = lt.zeros(2, 2)
has(fails(m.load_state_dict, m, wrong), "1.weight: expected shape {6, 4}, got {2, 2}")
kinds["local"]._flat_param.shape = {2, 99}
has(fails(m.load_state_dict, m, kinds["local"]),
  "expected a local state dict of 3 ranks, got one of 2")
compare({state_dict = function() return before end}, m:state_dict())
by_name.param_groups[1].params[1] = "other"
has(fails(fsdp.optim_state_dict_to_load, m, fresh, by_name), 'lacks the parameter "1.weight"')
has(fails(fsdp.optim_state_dict_to_load, m, fresh, {}), "expected a table {state = ...")
has(fails(fsdp.optim_state_dict, m, sgd(net())), "a parameter that is not in the module")
has(fails(fsdp.optim_state_dict, 3, fresh), "expected a module for argument 'model'")
has(fails(fsdp.set_state_dict_type, m, "whole"), 'expected "full", "sharded" or "local"')
has(fails(fsdp.state_dict_type, m, "full"), "expected a function for argument 'f'")]])
  end)

  it("gives the whole parameters to a function", function()
    ranks.check(2, INTEGERS .. [[
for _, strategy in ipairs {"FULL_SHARD", "NO_SHARD"} do
  local plain = net()
  local m = FSDP(net(), {auto_wrap_policy = {nn.Sequential}, sharding_strategy = strategy})
  local result = fsdp.summon_full_params(m, function(x)
    local q = plain:parameters()
    for p in x:parameters() do assert(lt.equal(p, q()) and lt.is_parameter(p)) end
    lt.no_grad(function() for p in x:parameters() do p:mul_(2) end end)
    return 7
  end)
  assert(result == 7 and gathered(m) == 0)
  lt.no_grad(function() for p in plain:parameters() do p:mul_(2) end end)
  compare(plain, m:state_dict())
  fsdp.summon_full_params(m, {writeback = false}, function(x)
    lt.no_grad(function() for p in x:parameters() do p:zero_() end end)
  end)
  compare(plain, m:state_dict())
  has(fails(fsdp.summon_full_params, m, function() error "stopped" end), "stopped")
  compare(plain, m:state_dict())
  assert(m.module[1].weight == nil)
  has(fails(fsdp.summon_full_params, m, {other = 1}, print), "expected the option writeback")
  has(fails(fsdp.summon_full_params, m, 3), "expected a function for argument 'f'")
end]])
  end)

  it("calls a module several times in a pass, and several passes before backward", function()
    for _, count in ipairs {1, 2} do
      ranks.check(count, COMMON .. [[
local function net()
  lt.manual_seed(3)
  local inner = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
  return nn.Sequential(nn.Linear(4, 8), inner, inner, nn.Linear(8, 2)):double()
end
lt.manual_seed(1)
local X, Y = lt.randn(4 * size, 4):double(), lt.randn(4 * size, 4):double()
local own = {{4 * rank + 1, 4 * rank + 4}}
local plain = net()
local loss = plain(X):pow(2):mean() + plain(Y):pow(2):mean()
loss:backward()
local m = FSDP(net(), {auto_wrap_policy = {nn.Sequential}})
assert(m.module[2] == m.module[3])
loss = m(X[own]):pow(2):mean() + m(Y[own]):pow(2):mean()
loss:backward{retain_graph = true}
local first = {}
for p in m:parameters() do first[p], p.grad = p.grad, nil end
loss:backward()
for p in m:parameters() do close(p.grad, first[p], "retained") end
-- The gradients of the elements that this rank has.
for _, wrapper in ipairs {m, m.module[2]} do
  for _, flat in ipairs(wrapper._fsdp.flats) do
    flat:each_range(function(slot, at, place, count)
      local p = (wrapper == m and plain or plain[2]):get_parameter(slot.owners[1].path)
      if count > 0 then
        close(flat.shard.grad:narrow(1, place, count), p.grad:flatten():narrow(1, at, count),
          slot.owners[1].path)
      end
    end)
  end
end
-- A module that returns its parameter.
local Weight = nn.Module:extend "Weight"
function Weight:init() self.w = nn.Parameter(lt.ones(6)) end
function Weight:forward() return self.w end
local weight = FSDP(Weight())
assert(lt.equal(lt.no_grad(weight), lt.ones(6)))
local result = weight()
result:sum():backward()
assert(lt.equal(result, lt.ones(6)) and weight._flat_param.grad[1]:item() == 1)]])
    end
  end)

  it("works on CUDA devices, as sharded optimizers and checkpoints do", function()
    if not devices.can_emulate() then return pending "needs the emulated devices" end
    ranks.check(2, COMMON .. [[
local device = "cuda:" .. rank
local function net()
  lt.manual_seed(3)
  return nn.Sequential(nn.Linear(4, 16), nn.Sequential(nn.Linear(16, 16), nn.ReLU(),
    nn.Linear(16, 16)), nn.Linear(16, 2)):double()
end
lt.manual_seed(1)
local X = lt.randn(4 * size, 4):double()
local x, whole = X[{{4 * rank + 1, 4 * rank + 4}}]:to(device), X:to(device)
local plain, m, z = net(), FSDP(net(), {auto_wrap_policy = {nn.Sequential}, device_id = rank}),
  net():to(device)
local opts = {optim.SGD(plain:parameters(), {lr = 0.1, momentum = 0.9}),
  optim.SGD(m:parameters(), {lr = 0.1, momentum = 0.9}),
  dist.optim.ZeroRedundancyOptimizer(z:parameters(), {optimizer_class = optim.SGD, lr = 0.1,
    momentum = 0.9})}
for _ = 1, 3 do
  for i, case in ipairs {{plain, X}, {m, x}, {z, whole}} do
    opts[i]:zero_grad()
    case[1](case[2]):pow(2):mean():backward()
    if i == 2 then m:clip_grad_norm_(1e6) end
    opts[i]:step()
  end
end
local expected = plain:state_dict()
for _, state in ipairs {m:state_dict(), z:state_dict()} do
  for name, value in pairs(state) do
    assert(value.device == device)
    close(value:cpu(), expected[name], name)
  end
end
opts[3]:consolidate_state_dict(0)
if rank == 0 then assert(opts[3]:state_dict().state[1].momentum_buffer.device == device) end
local names = {os.tmpname()}
os.remove(names[1])
dist.broadcast_object_list(names, 0)
local dir = names[1] .. ".d"
fsdp.set_state_dict_type(m, "sharded")
local function state() return {m = m:state_dict(), o = fsdp.optim_state_dict(m, opts[2])} end
dist.checkpoint.save(state(), {checkpoint_id = dir})
lt.no_grad(function() for p in m:parameters() do p:zero_() end end)
local loaded = state()
dist.checkpoint.load(loaded, {checkpoint_id = dir})
m:load_state_dict(loaded.m)
opts[2]:load_state_dict(fsdp.optim_state_dict_to_load(m, opts[2], loaded.o))
for name, value in pairs(m:state_dict()) do
  close(value:full_tensor():cpu(), expected[name], name)
end
dist.barrier()
if rank == 0 then os.execute("rm -r " .. dir) end]], {args = {"--emulate", "cuda:2"},
      env = {LUTRA_EMULATE_DELAY = "100", LUTRA_EMULATE_POISON = "1"}})
  end)

  it("is whole after an error in forward and in backward", function()
    ranks.check(2, INTEGERS .. [[
local m = FSDP(net(), {auto_wrap_policy = {nn.Sequential}})
has(fails(m, lt.ones(2, 5):double()), "5")
assert(gathered(m) == 0 and m.module[1].weight == nil)
-- An error in backward, when the gradients of some modules are being reduced already.
local x = batch(1)
local y = m.module[1]:register_forward_hook(function(_, _, output)
  output:register_hook(function() error "in backward" end)
end)
has(fails(function() m(own(x)):sum():backward() end), "in backward")
y:remove()
m:zero_grad()
train(m, 2)
assert(gathered(m) == 0)
compare(reference(2), m:state_dict())]])
  end)

  it("reports wrong arguments", function()
    local text = ranks.check(1, COMMON .. [[
print(fails(FSDP, 3))
print(fails(FSDP, nn.Linear(2, 2), {sharding_strategy = "HALF"}))
print(fails(FSDP, nn.Linear(2, 2), {backward_prefetch = "SOON"}))
print(fails(FSDP, nn.Linear(2, 2), {auto_wrap_policy = {3}}))
print(fails(FSDP, nn.Linear(2, 2), {auto_wrap_policy = 3}))
print(fails(FSDP, nn.Linear(2, 2), {auto_wrap_policy = nn.Linear}))
print(fails(FSDP, nn.Linear(2, 2), {auto_wrap_policy = nn.ReLU()}))
print(fails(FSDP, nn.Linear(2, 2), {ignored_modules = {3}}))
print(fails(FSDP, nn.Linear(2, 2), {cpu_offload = true}))
print(fails(FSDP, nn.Linear(2, 2), {param_init_fn = print}))
print(fails(FSDP, FSDP(nn.Linear(2, 2))))
print(fails(FSDP, lt.with_device("meta", nn.Linear, 2, 2)))
print(fails(FSDP, nn.Linear(2, 2), {process_group = dist.GroupMember.NON_GROUP_MEMBER}))
local m = FSDP(nn.Linear(2, 2))
print(fails(m.clone, m))]], {setup = [[
print(pcall(dist.fsdp.FSDP, lt.nn.Linear(2, 2)))
dist.init_process_group()]]})
    for _, expected in ipairs {
      "expected a module for argument 'module', got 3",
      "'FULL_SHARD', 'SHARD_GRAD_OP' or 'NO_SHARD' for argument 'sharding_strategy'",
      '"BACKWARD_PRE", "BACKWARD_POST" or "NONE" for argument \'backward_prefetch\'',
      "expected classes or modules for argument 'auto_wrap_policy', got 3 at 1",
      "expected a function or a list of classes or modules for argument 'auto_wrap_policy'",
      "a list of classes or modules for argument 'auto_wrap_policy', got the class Linear",
      "a list of classes or modules for argument 'auto_wrap_policy', got a ReLU",
      "expected a list of modules for argument 'ignored_modules'",
      "cpu_offload is not yet supported", "param_init_fn is not yet supported",
      "the module is wrapped already", 'cannot shard "weight": it is on meta',
      "FullyShardedDataParallel: expected a group that this rank is in for argument "
        .. "'process_group'",
      "cannot copy a FullyShardedDataParallel", "expected a process group, got none",
    } do has(text, expected) end
  end)
end)
