-- lt.distributed.optim.ZeroRedundancyOptimizer: the numbers of the plain optimizer, with the state
-- of each parameter on one rank.
local devices = require "device_support"
local ranks = require "ranks_support"
local has = require("program_support").has

-- A network whose gradients are the same on all ranks, and a comparison of parameters.
local NET = [[
local Zero = dist.optim.ZeroRedundancyOptimizer
local function net()
  lt.manual_seed(3)
  return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4), nn.Linear(4, 1))
end
local function list(m) local t = {} for p in m:parameters() do t[#t + 1] = p end return t end
local function same(a, b, what)
  local q = b:parameters()
  for p in a:parameters() do assert(lt.equal(p, q()), what) end
end
local function train(m, opt, first, last)
  for i = first, last do
    lt.manual_seed(100 + i)
    opt:zero_grad()
    m(lt.randn(6, 8)):pow(2):mean():backward()
    opt:step()
  end
end
]]

describe("ZeroRedundancyOptimizer", function()
  if not ranks.available() then
    pending "needs mpirun"
    return
  end

  for _, count in ipairs {1, 3} do
    it(("equals the plain optimizer bit for bit on %d ranks"):format(count), function()
      ranks.check(count, NET .. [[
for _, case in ipairs {{"SGD", {lr = 0.1, momentum = 0.9}}, {"AdamW", {lr = 0.1}},
  {"Adam", {lr = 0.1, amsgrad = true}}, {"RMSprop", {momentum = 0.5}}, {"Adagrad", {}},
  {"NAdam", {}}, {"Adafactor", {}}, {"Lion", {}}, {"Rprop", {}}, {"ASGD", {}}, {"Adadelta", {}},
  {"Adamax", {}}, {"RAdam", {}}} do
  local name, settings = case[1], case[2]
  for _, views in ipairs {false, true} do
    local a, b = net(), net()
    local options = {optimizer_class = optim[name], parameters_as_bucket_view = views}
    for key, value in pairs(settings) do options[key] = value end
    local x, y = optim[name](a:parameters(), settings), Zero(b:parameters(), options)
    train(a, x, 1, 4)
    train(b, y, 1, 4)
    same(a, b, name)
  end
end]])
    end)
  end

  it("gives each parameter to the rank with the fewest elements, largest first", function()
    -- By PyTorch's rule: 100 -> 0, 60 -> 1, 40 -> 1, 30 -> 0 (the first of equal ones), 30 -> 1,
    -- 10 -> 0; then in the second group 7 -> 1 (140 and 130 elements so far).
    ranks.check(2, NET .. [[
local sizes, expected = {30, 100, 10, 60, 30, 40}, {0, 0, 0, 1, 1, 1}
local params = {}
for i, n in ipairs(sizes) do params[i] = nn.Parameter(lt.ones(n)) end
local last = nn.Parameter(lt.ones(7))
local opt = Zero(params, {optimizer_class = optim.Adam, lr = 0.5})
opt:add_param_group{params = {last}, lr = 0.25}
params[7], expected[7] = last, 1
for i, p in ipairs(params) do p.grad = lt.ones(p.shape) end
opt:step()
for i, p in ipairs(params) do
  assert(opt.rank_of[p] == expected[i], i)
  assert((opt.state[p] ~= nil) == (expected[i] == rank), i)
  -- The first step of Adam is lr * sign(gradient), nearly.
  assert(lt.allclose(p, lt.full({p:numel()}, i == 7 and 0.75 or 0.5)), i)
end
opt:zero_grad()
for _, p in ipairs(params) do assert(p.grad == nil) end]])
  end)

  it("follows schedulers, groups and closures", function()
    ranks.check(2, NET .. [[
local a, b = net(), net()
local function groups(m)
  local p = list(m)
  return {{params = {p[1], p[2]}, lr = 0.5}, {params = {p[3], p[4], p[5], p[6]}}}
end
local x = optim.SGD(groups(a), {lr = 0.1, momentum = 0.5})
local y = Zero(groups(b), {optimizer_class = optim.SGD, lr = 0.1, momentum = 0.5})
local sx, sy = optim.lr_scheduler.StepLR(x, 1, {gamma = 0.5}), optim.lr_scheduler.StepLR(y, 1,
  {gamma = 0.5})
for i = 1, 3 do
  for _, t in ipairs {{a, x, sx}, {b, y, sy}} do
    local loss = t[2]:step(function()
      t[2]:zero_grad()
      lt.manual_seed(i)
      local l = t[1](lt.randn(4, 8)):pow(2):mean()
      l:backward()
      return l
    end)
    assert(loss:item() > 0)
    t[3]:step()
  end
end
assert(y.param_groups[1].lr == 0.0625)
same(a, b)]])
  end)

  it("collects its state on one rank, and loads it", function()
    ranks.check(3, NET .. [[
local a, b, c = net(), net(), net()
local x = optim.AdamW(a:parameters(), {lr = 0.1})
local y = Zero(b:parameters(), {optimizer_class = optim.AdamW, lr = 0.1})
train(a, x, 1, 3)
train(b, y, 1, 3)
local ok, message = pcall(y.state_dict, y)
assert(not ok and message:find "hint: opt:consolidate_state_dict", message)
y:consolidate_state_dict(1)
if rank == 1 then
  local expected, got = x:state_dict(), y:state_dict()
  assert(#got.state == 6 and #got.param_groups[1].params == 6)
  for i, state in ipairs(expected.state) do
    assert(state.step == got.state[i].step)
    assert(lt.equal(state.exp_avg, got.state[i].exp_avg))
    assert(lt.equal(state.exp_avg_sq, got.state[i].exp_avg_sq))
  end
  local plain = optim.AdamW(list(net()), {lr = 1})
  plain:load_state_dict(got)
  assert(plain.param_groups[1].lr == 0.1)
  assert(y:state_dict{base = 0}.state[0])
else
  assert(not pcall(y.state_dict, y))
end
-- All ranks load the state of the plain optimizer; each keeps its part.
c:load_state_dict(b:state_dict())
local z = Zero(c:parameters(), {optimizer_class = optim.AdamW, lr = 1})
z:load_state_dict(x:state_dict())
for p, state in pairs(z.state) do assert(z.rank_of[p] == rank and state.step == 3) end
train(a, x, 4, 6)
train(c, z, 4, 6)
same(a, c)
ok, message = pcall(y.state_dict, y)
train(b, y, 4, 4)
assert(not pcall(y.state_dict, y), "the state is older than the last step")
local bad = x:state_dict()
bad.param_groups[1].params[6] = nil
ok, message = pcall(z.load_state_dict, z, bad)
assert(not ok and message:find "expected 6 parameters in group 1, got 5", message)]])
  end)

  it("collects the state of CUDA devices, before a step and on a rank that has none", function()
    if not devices.can_emulate() then return pending "needs the emulated devices" end
    ranks.check(2, NET .. [[
local device = "cuda:" .. rank
local function parameters(...)
  local p = {nn.Parameter(lt.ones({4}, ...)), nn.Parameter(lt.ones({3}, ...))}
  for _, x in ipairs(p) do x.grad = lt.ones_like(x) end
  return p
end
local plain = optim.Adam(parameters(), {lr = 1})
plain:step()
local opt = Zero(parameters{device = device}, {optimizer_class = optim.Adam, lr = 1})
opt:load_state_dict(plain:state_dict())
local one = Zero({parameters{device = device}[1]}, {optimizer_class = optim.Adam, lr = 1})
for to = 0, 1 do
  opt:consolidate_state_dict(to)
  if rank == to then
    for i, state in ipairs(plain:state_dict().state) do
      local got = opt:state_dict().state[i].exp_avg
      assert(got.device == device and lt.equal(got:cpu(), state.exp_avg), i)
    end
  end
end
one:step()
one:consolidate_state_dict(1) -- the parameter belongs to rank 0
if rank == 1 then assert(one:state_dict().state[1].exp_avg.device == device) end]],
      {args = {"--emulate", "cuda:2"}})
  end)

  it("reports wrong arguments", function()
    local text = ranks.check(2, NET .. [[
local m = net()
local function fails(...) print(rank, select(2, pcall(...))) end
if rank == 0 then
  fails(Zero, m:parameters(), {lr = 0.1})
  fails(Zero, m:parameters(), {optimizer_class = optim.LBFGS})
  fails(Zero, m:parameters(), {optimizer_class = optim.SGD, lr = -1})
  fails(Zero, m:parameters(), {optimizer_class = optim.SGD, overlap_with_ddp = true})
  fails(Zero, {}, {optimizer_class = optim.SGD})
  fails(Zero, m:parameters())
  fails(Zero, m:parameters(), {optimizer_class = optim.SGD,
    process_group = dist.GroupMember.NON_GROUP_MEMBER})
  local opt = Zero(m:parameters(), {optimizer_class = optim.SGD, lr = 1})
  fails(opt.consolidate_state_dict, opt, 2)
  fails(function() opt.lr = 0.5 end)
  fails(opt.add_param_group, opt, {params = list(m)})
  print(tostring(opt))
end]])
    for _, expected in ipairs {
      "expected a class of lt.optim for argument 'optimizer_class', got nil",
      "cannot distribute the state of LBFGS: its step needs all parameters",
      "SGD: expected a number of at least 0 for argument 'lr', got -1",
      "overlap_with_ddp is not yet supported",
      "expected at least one tensor for argument 'params', got none",
      "expected a table of options for argument 'options', got nil",
      "ZeroRedundancyOptimizer: expected a group that this rank is in for argument 'process_group'",
      "consolidate_state_dict: expected a rank from 0 to 1 for argument 'to', got 2",
      "cannot set 'lr': each group of parameters has its own",
      "expected different tensors in argument 'params', got one twice",
      "ZeroRedundancyOptimizer of SGD (",
    } do has(text, expected) end
  end)

  it("requires a process group", function()
    local text = ranks.check(1, "", {setup = [[
print(pcall(dist.optim.ZeroRedundancyOptimizer, {lt.nn.Parameter(lt.ones(1))},
  {optimizer_class = lt.optim.SGD}))
dist.init_process_group()]]})
    has(text, "hint: lt.distributed.init_process_group()")
  end)
end)
