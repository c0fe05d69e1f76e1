--- Two failures, one after the other: the second is reported by its own text, whatever the first
-- one was. Every kind of error comes before and after every other.

local devices = require "device_support"
if devices.elsewhere("core/error_slot", _ENV) then return end

local lt = require "lutra"

local host = lt.arange(6):view(2, 3)
local device = host:to "cuda"

local function backward_with(hook)
  local x = lt.ones{3, requires_grad = true}
  x:register_hook(hook)
  x:sum():backward()
end

local function used_twice()
  local y = (lt.ones{2, requires_grad = true} * 2):exp():sum()
  y:backward()
  y:backward()
end

-- By name: what fails, and a string that the message of no other kind has.
local kinds = {
  devices = {function() return host + device end, "add: cannot use tensors on different devices"},
  devices_in_place = {function() host:mul_(device) end,
    "mul_: cannot use tensors on different devices"},
  devices_list = {function() lt.cat{host, device} end,
    "cat: cannot use tensors on different devices"},
  fused = {function() lt.elementwise("x * y")(host, device) end,
    "elementwise: expected tensors on one device"},
  out_of_memory_cuda = {function() lt.empty(1 << 34, {device = "cuda"}) end,
    'empty: out of memory on "cuda:0"'},
  out_of_memory_cpu = {function() lt.zeros(1 << 50) end, 'zeros: out of memory on "cpu"'},
  out_of_memory_result = {function() return lt.ones(1):expand(1 << 50) * 2 end,
    'mul: out of memory on "cpu"'},
  out_of_memory_pinned = {function() lt.ones(1):expand(1 << 44):pin_memory() end, "memory"},
  broadcast = {function() return lt.ones(2) - lt.ones(3) end,
    "sub: cannot broadcast the shapes {2} and {3}"},
  shape = {function() return lt.ones(2, 3):matmul(lt.ones(4, 5)) end, "matmul: "},
  view = {function() return host:view(7) end, "view: "},
  dtype = {function() return lt.ones(2):bitwise_not() end,
    'bitwise_not: expected an integer dtype or "bool"'},
  dtype_name = {function() lt.zeros(2, {dtype = "float31"}) end, "float31"},
  device_name = {function() lt.zeros(2, {device = "gpu"}) end, "gpu"},
  device_number = {function() lt.zeros(2, {device = "cuda:7"}) end, "cuda:7"},
  position = {function() return host[3] end,
    "index: cannot index dim 1 with 3: the index is out of range"},
  index_cpu = {function() return host:gather(1, lt.tensor{{9, 9, 9}}) end, "gather: "},
  index_cuda = {function()
    local _ = device:index_select(1, lt.tensor({77}, {device = "cuda"}))
    lt.cuda.synchronize()
  end, "index_select: "},
  number = {function() lt.zeros{2, dtype = "int32"}:fill_(0 / 0) end, "fill_: "},
  leaf = {function() lt.ones{2, requires_grad = true}:add_(1) end, "add_: "},
  hook = {function() backward_with(function() error("the hook failed", 0) end) end,
    "the hook failed"},
  hook_object = {function() backward_with(function() error({text = "an object"}) end) end, "table"},
  twice = {used_twice, "backward"},
  unknown_argument = {function() return host:sum{dimension = 1} end,
    "sum: expected an argument name"},
  missing_argument = {function() return host:narrow(1) end, "narrow: expected"},
  wrong_type = {function() return host:sum "one" end, "sum: expected"},
  field = {function() return host.missing end, "missing"},
  library_field = {function() return lt.missing end, "missing"},
  file = {function() return lt.load_npy "/nowhere/at/all.npy" end, "/nowhere/at/all"},
  setting = {function() lt.set_default_dtype "int64" end, "set_default_dtype: "},
  module = {function() return lt.nn.Linear(3, 4)(lt.ones(2, 5)) end, "5"},
  coroutine = {function()
    coroutine.wrap(function() return lt.ones(2):softmax(3) end)()
  end, "softmax: "},
}

-- AddressSanitizer ends a program that asks malloc for so much.
if lt.info().build == "debug" then kinds.out_of_memory_pinned = nil end

-- The parts of a message that say how much memory there is now.
local function stable(message) return (message:gsub("%d+%.%d+ MiB.*", "MiB")) end

local function message_of(kind)
  local ok, message = pcall(kinds[kind][1])
  assert.is_false(ok, kind .. " raised no error")
  if type(message) ~= "string" then return type(message) end
  return stable(message)
end

describe("after any error", function()
  local names, alone = {}, {}
  for name in pairs(kinds) do names[#names + 1] = name end
  table.sort(names)

  it("each kind has a message of its own", function()
    for _, name in ipairs(names) do
      alone[name] = message_of(name)
      assert.is_truthy(alone[name]:find(kinds[name][2], 1, true), name .. ": " .. alone[name])
    end
  end)

  for _, first in ipairs(names) do
    it("of the kind " .. first .. " the next one is reported by its own text", function()
      for _, second in ipairs(names) do
        message_of(first)
        assert.equal(alone[second], message_of(second), first .. ", then " .. second)
        assert.equal(21, host:sum():item())
      end
    end)
  end
end)
