-- lt.distributed.checkpoint: checkpoints that all ranks write and read, with the same and with
-- another number of ranks, and training that goes on from them.
local ranks = require "ranks_support"
local support = require "program_support"
local lt = require "lutra"
local has = support.has

local CK = [[
local checkpoint, fsdp = dist.checkpoint, dist.fsdp
local Sharded = checkpoint.ShardedTensor
local dir = os.getenv "CHECKPOINT"
local function net()
  lt.manual_seed(3)
  return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Sequential(nn.Linear(7, 3), nn.Tanh()),
    nn.Linear(3, 1))
end
-- The part of a vector 1, 2, ... that this rank has, the first ranks one element more.
local function part(n)
  local count = n // size + (rank < n % size and 1 or 0)
  local first = rank * (n // size) + math.min(rank, n % size) + 1
  return lt.arange(first, first + count - 1):to "float32", first
end
local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok)
  return message
end
]]

describe("lt.distributed.checkpoint", function()
  if not ranks.available() then
    pending "needs mpirun"
    return
  end

  local folder, other
  before_each(function()
    folder = support.folder()
    other = folder .. "/a/b"
  end)
  after_each(function() support.remove(folder) end)
  local function check(count, body, options)
    options = options or {}
    options.env = {CHECKPOINT = other}
    return ranks.check(count, CK .. body, options)
  end

  it("saves sharded and whole tensors, and loads them with any number of ranks", function()
    check(3, [[
local x, first = part(20)
checkpoint.save({
  w = Sharded(x, {4, 5}, {first = first}), whole = lt.arange(1, 6):view(2, 3),
  scalar = lt.tensor(7), empty = lt.zeros(0, 3), epoch = 12,
  nested = {name = "run", list = {1.5, true, 1 / 3}},
  half = lt.tensor{1.5, -2, dtype = "bfloat16"}, flags = lt.tensor{true, false},
  keys = {lt.ones(1), ["1"] = lt.full({1}, 2), ["#1"] = lt.full({1}, 3), ["~2"] = lt.full({1}, 4),
    ["#true"] = lt.full({1}, 5), [true] = lt.full({1}, 6), ["true"] = lt.full({1}, 7)},
}, {checkpoint_id = dir})]])
    for _, count in ipairs {1, 2, 3, 5} do
      check(count, [[
local x, first = part(20)
local state = {
  w = Sharded(lt.zeros(x:numel()), {4, 5}, {first = first}), whole = lt.zeros(2, 3),
  scalar = lt.tensor(0), empty = lt.zeros(0, 3), epoch = 0,
  nested = {name = "", list = {0, false, 0}}, half = lt.zeros(2, {dtype = "bfloat16"}),
  flags = lt.tensor{false, false}, keys = {}}
local keys = {1, "1", "#1", "~2", "#true", true, "true"}
for _, key in ipairs(keys) do state.keys[key] = lt.zeros(1) end
checkpoint.load(state, {checkpoint_id = dir})
for i, key in ipairs(keys) do assert(state.keys[key]:item() == i, tostring(key)) end
assert(lt.equal(state.w.tensor, x))
assert(lt.equal(state.w:full_tensor(), lt.arange(1, 20):view(4, 5):float()))
assert(lt.equal(state.whole, lt.arange(1, 6):view(2, 3):float()))
assert(state.scalar:item() == 7 and state.epoch == 12 and state.nested.name == "run")
assert(state.nested.list[1] == 1.5 and state.nested.list[2] == true)
assert(state.nested.list[3] == 1 / 3)
assert(state.half[2]:item() == -2 and state.flags[1]:item() == true)
-- A sharded tensor loads into a whole one, also one that is not contiguous.
local w = lt.zeros(5, 4):t()
checkpoint.load({w = w}, {checkpoint_id = dir})
assert(lt.equal(w, lt.arange(1, 20):view(4, 5):float()))]])
    end
    -- The index is one of a safetensors file in several parts.
    local tensors = lt.load_safetensors(other .. "/checkpoint.safetensors.index.json")
    assert(lt.equal(tensors.whole, lt.arange(1, 6):view(2, 3)))
  end)

  it("works in one process without a process group", function()
    check(1, "", {setup = [[
local x = lt.zeros(3)
dist.checkpoint.save({x = lt.ones(3)}, {checkpoint_id = os.getenv "CHECKPOINT"})
dist.checkpoint.load({x = x}, os.getenv "CHECKPOINT")
assert(lt.equal(x, lt.ones(3)))
dist.init_process_group()]]})
  end)

  local TRAIN = [[
local F = lt.F
local function step(m, opt, i)
  lt.manual_seed(100 + i)
  local x = lt.randn(4 * size, 5)
  opt:zero_grad()
  m(x):pow(2):mean():backward()
  opt:step()
end
local function values(m)
  local list = {}
  for _, x in pairs(m:state_dict()) do
    if Sharded.is(x) then x = x:full_tensor() end
    list[#list + 1] = x:flatten():clone()
  end
  return lt.cat(list)
end
]]
  for _, case in ipairs {
    {"a module and an optimizer", [[
local function make() local m = net() return m, optim.AdamW(m:parameters(), {lr = 0.1}) end
local function save(m, opt) checkpoint.save({m = m, opt = opt}, {checkpoint_id = dir}) end
local function load(m, opt) checkpoint.load({m = m, opt = opt}, {checkpoint_id = dir}) end]]},
    {"an optimizer with sharded state", [[
local function make()
  local m = net()
  return m, dist.optim.ZeroRedundancyOptimizer(m:parameters(),
    {optimizer_class = optim.AdamW, lr = 0.1})
end
local function save(m, opt) checkpoint.save({m = m, opt = opt}, {checkpoint_id = dir}) end
local function load(m, opt) checkpoint.load({m = m, opt = opt}, {checkpoint_id = dir}) end]]},
    {"sharded parameters", [[
local function make()
  local m = fsdp.FSDP(net(), {auto_wrap_policy = {nn.Sequential}})
  fsdp.set_state_dict_type(m, "sharded")
  return m, optim.AdamW(m:parameters(), {lr = 0.1})
end
local function save(m, opt)
  checkpoint.save({m = m:state_dict(), opt = fsdp.optim_state_dict(m, opt)}, {checkpoint_id = dir})
end
local function load(m, opt)
  -- An optimizer has state after a step, here with zeros for gradients.
  for p in m:parameters() do p.grad = lt.zeros_like(p) end
  opt:step()
  local state = {m = m:state_dict(), opt = fsdp.optim_state_dict(m, opt)}
  checkpoint.load(state, {checkpoint_id = dir})
  m:load_state_dict(state.m)
  opt:load_state_dict(fsdp.optim_state_dict_to_load(m, opt, state.opt))
end]]},
    {"a sharded module and its optimizer", [[
local function make()
  local m = fsdp.FSDP(net(), {auto_wrap_policy = {nn.Sequential}})
  return m, optim.AdamW(m:parameters(), {lr = 0.1})
end
local function save(m, opt) checkpoint.save({m = m, opt = opt}, {checkpoint_id = dir}) end
local function load(m, opt) checkpoint.load({m = m, opt = opt}, {checkpoint_id = dir}) end]]},
    {"whole state dicts of sharded parameters", [[
local function make()
  local m = fsdp.FSDP(net(), {auto_wrap_policy = {nn.Sequential}})
  return m, optim.AdamW(m:parameters(), {lr = 0.1})
end
local function save(m, opt)
  local options = {"full", rank0_only = true, offload_to_cpu = true}
  fsdp.state_dict_type(m, options, function()
    local state = {m = m:state_dict(), opt = fsdp.optim_state_dict(m, opt)}
    if rank == 0 then lt.save(state, dir .. ".st") end
  end)
  dist.barrier()
end
local function load(m, opt)
  local state = lt.load(dir .. ".st")
  m:load_state_dict(state.m)
  opt:load_state_dict(fsdp.optim_state_dict_to_load(m, opt, state.opt))
end]]},
  } do
    it("resumes training with the same numbers: " .. case[1], function()
      os.execute("mkdir -p " .. folder .. "/a")
      check(2, TRAIN .. case[2] .. "\n" .. [[
local m, opt = make()
for i = 1, 3 do step(m, opt, i) end
save(m, opt)
for i = 4, 6 do step(m, opt, i) end
local after = values(m)
if rank == 0 then lt.save(after, dir .. ".after") end]])
      check(2, TRAIN .. case[2] .. "\n" .. [[
local m, opt = make()
load(m, opt)
for i = 4, 6 do step(m, opt, i) end
assert(lt.equal(values(m), lt.load(dir .. ".after")))]])
    end)
  end

  it("loads a sharded module with another number of ranks, and into a plain one", function()
    check(3, [[
local m = fsdp.FSDP(net(), {auto_wrap_policy = {nn.Sequential}})
lt.no_grad(function() for p in m:parameters() do p:add_(1) end end)
fsdp.state_dict_type(m, "sharded", function()
  checkpoint.save({model = m:state_dict()}, {checkpoint_id = dir})
end)]])
    for _, count in ipairs {1, 2, 4} do
      check(count, [[
local m = fsdp.FSDP(net())
fsdp.set_state_dict_type(m, "sharded")
local state = {model = m:state_dict()}
checkpoint.load(state, {checkpoint_id = dir})
m:load_state_dict(state.model)
local plain = net()
checkpoint.load({model = plain}, {checkpoint_id = dir})
fsdp.set_state_dict_type(m, "full")
local whole, expected = m:state_dict(), net():state_dict()
for name, x in pairs(plain:state_dict()) do
  assert(lt.equal(x, expected[name] + 1) and lt.equal(x, whole[name]), name)
end]])
    end
  end)

  it("loads an optimizer of a sharded module with another number of ranks", function()
    for _, original in ipairs {false, true} do
      local make = ([[
local m = fsdp.FSDP(net(), {auto_wrap_policy = {nn.Sequential}, use_orig_params = %s})
local opt = optim.SGD(m:parameters(), {lr = 0, momentum = 0.5})
]]):format(original)
      check(3, make .. [[
-- The first gradient, here the parameter, is the buffer of the momentum.
for p in m:parameters() do p.grad = p:detach():clone() end
opt:step()
checkpoint.save({m = m, opt = opt}, {checkpoint_id = dir})]])
      for _, count in ipairs {1, 2, 4} do
        check(count, make .. [[
checkpoint.load({m = m, opt = opt}, {checkpoint_id = dir})
for p in m:parameters() do assert(lt.equal(opt.state[p].momentum_buffer, p)) end]])
      end
    end
    -- With use_orig_params it is that of the plain module, too.
    has(check(2, [[
local m, list = net(), {}
for p in m:parameters() do list[#list + 1] = p end
local opt = optim.SGD(list, {lr = 0, momentum = 0.5})
checkpoint.load({m = m, opt = opt}, {checkpoint_id = dir})
for p in m:parameters() do assert(lt.equal(opt.state[p].momentum_buffer, p)) end
local other = fsdp.FSDP(net(), {auto_wrap_policy = {nn.Linear}})
print(fails(checkpoint.load, {opt = optim.SGD(other:parameters(), {lr = 0, momentum = 0.5})},
  {checkpoint_id = dir}))]]), "SGD: load_state_dict: expected 3 parameters in group 1, got 6")
  end)

  it("refuses a local state dict of another number of ranks", function()
    check(2, [[
local m = fsdp.FSDP(net())
fsdp.set_state_dict_type(m, "local")
checkpoint.save({model = m:state_dict()}, {checkpoint_id = dir})
local state = {model = m:state_dict()}
checkpoint.load(state, {checkpoint_id = dir})
m:load_state_dict(state.model)]])
    has(check(3, [[
local m = fsdp.FSDP(net())
fsdp.set_state_dict_type(m, "local")
print(fails(checkpoint.load, {model = m:state_dict()}, {checkpoint_id = dir}))]]),
      'for "model._flat_param" of the checkpoint, got {2, ')
  end)

  it("keeps the former checkpoint when a save fails", function()
    check(2, [[
checkpoint.save({x = lt.ones(4), y = lt.full({4}, 2)}, {checkpoint_id = dir})
-- Returns the number of files and folders after a save that fails, for which nothing is left.
local function count(expected)
  local state = {x = lt.zeros(4), y = lt.zeros(4)}
  local message = fails(checkpoint.save, state, {checkpoint_id = dir})
  assert(message:find("save: " .. expected, 1, true), message)
  dist.barrier()
  local pipe <close> = io.popen("ls " .. dir .. " | wc -l")
  local n = tonumber(pipe:read "a")
  dist.barrier()
  return n
end
-- The index cannot be written.
local json = require "lutra.internal.json"
local encode = json.encode
if rank == 0 then json.encode = function() error("no index", 0) end end
assert(count "rank 0: no index" == 4)
json.encode = encode
-- The file that a rank is to write next exists as a folder: its save fails.
if rank == 0 then os.execute("mkdir -p " .. dir .. "/shards-2-1.safetensors/full") end
dist.barrier()
assert(count "rank 1: " == 5)
local x, y = lt.zeros(4), lt.zeros(4)
checkpoint.load({x = x, y = y}, {checkpoint_id = dir})
assert(lt.equal(x, lt.ones(4)) and lt.equal(y, lt.full({4}, 2)))]])
    -- The next save replaces it, and removes all files of both, and those of a killed process.
    check(2, [[
if rank == 0 then
  os.execute("rm -r " .. dir .. "/shards-2-1.safetensors")
  os.execute("touch " .. dir .. "/shards-2-7.safetensors.1-0123abcd-0123456789abcdef.tmp")
end
dist.barrier()
checkpoint.save({x = lt.full({4}, 3)}, {checkpoint_id = dir})
local x = lt.zeros(4)
checkpoint.load({x = x}, {checkpoint_id = dir})
assert(lt.equal(x, lt.full({4}, 3)))]])
    local pipe <close> = io.popen("ls " .. other .. " | wc -l")
    assert.equal(3, tonumber(pipe:read "a"))
  end)

  it("keeps the former checkpoint when a process is killed during a save", function()
    check(2, "checkpoint.save({x = lt.ones(4)}, {checkpoint_id = dir})")
    ranks.run(2, CK .. [[
local json = require "lutra.internal.json"
json.encode = function() os.exit(9, false) end -- before the index is replaced
checkpoint.save({x = lt.zeros(4)}, {checkpoint_id = dir})]], {env = {CHECKPOINT = other}})
    check(2, [[
local x = lt.zeros(4)
checkpoint.load({x = x}, {checkpoint_id = dir})
assert(lt.equal(x, lt.ones(4)))]])
  end)

  it("reports what does not fit, on all ranks, and changes nothing", function()
    check(2, [[
local one = nn.Parameter(lt.ones(1))
checkpoint.save({x = lt.ones(4), n = 3, t = {a = 1}, c = lt.ones(2, {dtype = "complex64"}),
  opt = optim.SGD({one}, {lr = 1})}, {checkpoint_id = dir})
local x = lt.zeros(4)
local function load(state) return fails(checkpoint.load, state, {checkpoint_id = dir}) end
local function has(text, expected) assert(text:find(expected, 1, true), text) end
has(load{x = x, y = lt.zeros(1)}, 'the checkpoint lacks "y"')
has(load{x = x, n = lt.zeros(1)}, 'expected a tensor at "n" of the checkpoint, got 3')
has(load{x = 3}, 'expected 3 at "x" of the checkpoint, got a tensor')
has(load{x = x, t = 3}, 'expected 3 at "t" of the checkpoint, got a table')
has(load{x = lt.zeros(2, 2)}, 'expected shape {2, 2} for "x" of the checkpoint, got {4}')
has(load{x = x, t = {b = 1}}, 'the checkpoint lacks "t.b"')
has(load{x = rank == 1 and lt.zeros(5) or x}, "load: rank 1: expected shape {5}")
has(load{x = x, c = lt.zeros(2)}, 'expected real numbers for "c" of the checkpoint, got complex64')
local opt = optim.SGD({{params = {one}}, {params = {nn.Parameter(lt.ones(1))}}}, {lr = 2})
has(load{x = x, opt = opt}, "SGD: load_state_dict: expected 2 parameter groups, got 1")
assert(lt.equal(x, lt.zeros(4)) and opt.param_groups[1].lr == 2)
has(load{m = net()}, 'the checkpoint lacks "m"')
local function save(state) return fails(checkpoint.save, state, {checkpoint_id = dir}) end
has(save{f = print}, 'cannot save a function at "f"')
local loop = {}
loop.inner = {loop}
has(save{loop = loop}, 'cannot save "loop.inner.1": it is a table that contains itself')
has(save{x = lt.zeros(rank + 1)}, '"x" differs between ranks: float32 of shape {1} on rank 0')
has(save{x = Sharded(lt.ones(2), {5}, {first = 2 * rank + 1})}, "no rank has element 5 of 5")
has(fails(checkpoint.load, {x = x}, {checkpoint_id = dir .. "/none"}), "expected a checkpoint")
has(fails(Sharded, lt.ones(3), {2}), "expected at most 2 elements of a tensor of shape {2}")
has(fails(Sharded, lt.ones(3, 3), {9}), "expected a tensor of one dimension")
has(fails(checkpoint.save, {x = x}, {checkpoint_id = rank == 0 and dir or dir .. "/else"}),
  "save: expected the same folder on all ranks for argument 'checkpoint_id', got")
has(fails(checkpoint.save, 3), "save: ")
for _, name in ipairs {"save", "load"} do
  has(fails(checkpoint[name], {x = x}, dir, dist.GroupMember.NON_GROUP_MEMBER),
    name .. ": expected a group that this rank is in for argument 'process_group'")
end
checkpoint.load({x = x}, {checkpoint_id = dir})
assert(lt.equal(x, lt.ones(4)))]])
  end)

  it("reports missing and wrong files", function()
    check(2, [[
checkpoint.save({x = lt.ones(4), y = lt.ones(4)}, {checkpoint_id = dir})]])
    os.remove(other .. "/shards-1-1.safetensors")
    has(check(2, [[
local x = lt.zeros(4)
print(fails(checkpoint.load, {x = x, y = lt.zeros(4)}, {checkpoint_id = dir}))
assert(lt.equal(x, lt.zeros(4)))]]), "shards-1-1.safetensors")
    -- A file with other tensors of the same name.
    lt.save_safetensors(other .. "/shards-1-1.safetensors", {x = lt.ones(3), y = lt.ones(3)})
    has(check(1, "print(fails(checkpoint.load, {x = lt.zeros(4), y = lt.zeros(4)}, dir))"),
      "expected 4 elements of float32")
    check(1, [=[
local index = '{"metadata": {"format": "lutra.distributed.checkpoint 1", "values": "v", '
  .. '"world_size": 1}, "weight_map": {"x": "%s"}, "tensors": {"/x": {"shape": [%d], '
  .. '"dtype": "float32", "pieces": [["x", 1, %d]]}}}'
for _, case in ipairs {
  {"", "cannot read"}, {"{}", "it is not the index of a checkpoint"},
  {'{"metadata": {"format": "lutra.distributed.checkpoint 1"}}', "it lacks weight_map"},
  {index:format("../x", 4, 4), "expected pieces of a name in weight_map"},
  {index:format("x", 4, 5), "its pieces do not cover it"},
  {index:format("x", 4, 3), "its pieces do not cover it"},
  {index:format("x", -4, 4), "expected shape, dtype and pieces"},
} do
  local file <close> = assert(io.open(dir .. "/checkpoint.safetensors.index.json", "wb"))
  file:write(case[1])
  file:close()
  local message = fails(checkpoint.load, {x = lt.zeros(4)}, {checkpoint_id = dir})
  assert(message:find(case[2], 1, true), message)
end]=])
  end)
end)
