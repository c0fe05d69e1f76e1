--- What is known of two tensors on different devices that an error is about.
--
-- The core asks one function; here it looks for their names and asks all who know more.

local core = require "lutra.core"
local names = require "lutra.internal.names"

local explain = {}

local explainers = {}

--- Adds a function f(a, b). Each is {identity, memory, name, device, move}: what core._identity and
-- core._memory say of the tensor, and as far as it is known what the program calls it, "x.device",
-- and what is to be moved for it. f may set `note`, a text behind the tensor's device, and `move`,
-- and may return lines, each after a newline.
function explain.add(f) explainers[#explainers + 1] = f end

local function is_tensor(value)
  return type(value) == "userdata" and core._identity(value) ~= nil
end

-- The tensor itself has a name, or another that shares its memory has.
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

--- What core._explain wants.
function explain.tensors(identity_a, memory_a, identity_b, memory_b)
  local a = {identity = identity_a, memory = memory_a}
  local b = {identity = identity_b, memory = memory_b}
  -- From a coroutine of its own the levels of the stack are those of the stack looked at.
  coroutine.wrap(function(co)
    find_name(co, a)
    find_name(co, b)
  end)((coroutine.running()))
  local lines = {}
  for _, f in ipairs(explainers) do lines[#lines + 1] = f(a, b) end
  return a, b, table.concat(lines)
end

return explain
