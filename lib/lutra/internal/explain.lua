--- Details for errors about two tensors on different devices.
--
-- The core calls one function, which finds the names of the tensors in the program and asks other
-- modules for further details.

local core = require "lutra.core"
local names = require "lutra.internal.names"

local explain = {}

local explainers = {}

--- Adds a function f(a, b) that is called for such an error. Each argument is {identity, memory,
-- name, device, move}: the results of core._identity and core._memory for the tensor, and when
-- known its name in the program, "x.device", and the name of the value to move. f may set `note`,
-- which is shown behind the tensor's device, and `move`, and may return lines, each starting with
-- a newline.
function explain.add(f) explainers[#explainers + 1] = f end

local function is_tensor(value)
  return type(value) == "userdata" and core._identity(value) ~= nil
end

-- Sets the name of a tensor: that of a variable which holds it, or which shares its memory.
local function find_name(co, tensor)
  local name, owner = names.find(function(value)
    return is_tensor(value) and core._identity(value) == tensor.identity
  end, co, 0, 1)
  tensor.name, tensor.move = name, owner
  if not name then
    name, owner = names.find(function(value)
      return is_tensor(value) and core._memory(value) == tensor.memory
    end, co, 0, 1)
    tensor.name, tensor.move = name and "a view of " .. name, owner or name
  end
  tensor.device = name and name .. ".device"
end

--- Returns the details of two tensors and the lines of all functions: the callback of
-- core._explain.
function explain.tensors(identity_a, memory_a, identity_b, memory_b)
  local a = {identity = identity_a, memory = memory_a}
  local b = {identity = identity_b, memory = memory_b}
  -- In a coroutine of its own, this function adds no frames to the stack that it examines.
  coroutine.wrap(function(co)
    find_name(co, a)
    find_name(co, b)
  end)((coroutine.running()))
  local lines = {}
  for _, f in ipairs(explainers) do lines[#lines + 1] = f(a, b) end
  return a, b, table.concat(lines)
end

return explain
