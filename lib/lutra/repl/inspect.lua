--- What a value is, and which tensors hang on it: what :whos, :devices, :where and :tree show.
--
-- Nothing here runs code of the user's: metatables are read raw, modules are walked by the methods
-- of nn.Module itself. A storage stands for itself by the lightuserdata of core._memory.

local core = require "lutra.core"
local numbers = require "lutra.internal.numbers"
local format_value = require "lutra.repl.format_value"
local texts = require "lutra.internal.text"

local inspect = {}

local ITEMS = 200000 -- of a table that are looked through
local BRIEF = 24 -- columns of a string

local function metatable(value)
  local meta = debug.getmetatable(value)
  return type(meta) == "table" and meta or nil
end

--- Is it a module? Looked up raw, and without loading nn.
function inspect.is_module(value)
  local meta = type(value) == "table" and metatable(value)
  return meta and type(rawget(meta, "__state")) == "table" and package.loaded["lutra.nn"] ~= nil
    and rawget(rawget(meta, "__state"), "entries") ~= nil
end

--- Is it an optimizer?
function inspect.is_optimizer(value)
  local base = package.loaded["lutra.optim"] and require("lutra.optim").Optimizer
  local meta = base and type(value) == "table" and metatable(value)
  for _ = 1, 20 do
    if not meta then return false end
    if meta == base then return type(rawget(value, "param_groups")) == "table" end
    local above = metatable(meta)
    meta = above and rawget(above, "__index")
    if type(meta) ~= "table" then return false end
  end
  return false
end

-- The __name of a metatable, if it is a text.
local function class_name(value)
  local meta = metatable(value)
  local name = meta and rawget(meta, "__name")
  return type(name) == "string" and format_value.escape(name) or nil
end

--- The name of its type: "tensor", "Parameter", a class, "number".
function inspect.type_name(value)
  if core.is_tensor(value) then return core.is_parameter(value) and "Parameter" or "tensor" end
  local kind = type(value)
  if kind == "table" or kind == "userdata" then return class_name(value) or kind end
  return math.type(value) or kind
end

local function module_class() return require("lutra.nn").Module end

-- Iterators over names and tensors of one value, one level deep.
local function module_tensors(module, visit)
  local Module = module_class()
  for name, p in Module.named_parameters(module) do visit(name, p) end
  for name, b in Module.named_buffers(module) do visit(name, b) end
end

local function sorted_keys(t)
  local keys = {}
  for key in next, t do
    keys[#keys + 1] = key
    if #keys >= ITEMS then break end
  end
  table.sort(keys, function(a, b)
    local ta, tb = type(a), type(b)
    if ta ~= tb then return ta < tb end
    if ta == "number" or ta == "string" then return a < b end
    return false
  end)
  return keys
end
inspect.sorted_keys = sorted_keys

--- "w" -> "w"; 3 -> "[3]"; "a b" -> '["a b"]'
local function key_text(key)
  if type(key) == "string" and key:match "^[%a_][%w_]*$" then return key end
  if type(key) == "string" then return '["' .. format_value.escape(key) .. '"]' end
  if type(key) == "number" then return "[" .. numbers.text(key) .. "]" end
  return "[" .. inspect.type_name(key) .. "]"
end
inspect.key_text = key_text

local function join(path, key)
  local text = key_text(key)
  if path == "" or text:sub(1, 1) == "[" then return path .. text end
  return path .. "." .. text
end

local walk

local function walk_table(value, path, depth, state)
  for _, key in ipairs(sorted_keys(value)) do
    if core.is_tensor(key) then walk(key, path .. "[key]", depth, state) end
    walk(rawget(value, key), join(path, key), depth, state)
  end
end

function walk(value, path, depth, state)
  if core._is_freed(value) then
    if state.freed then state.freed(path) end
    return
  end
  if core.is_tensor(value) then
    state.visit(path, value)
    local grad = value.is_leaf and value.grad
    if grad and not core._is_freed(grad) then state.visit(path .. ".grad", grad, true) end
    return
  end
  if type(value) ~= "table" or state.seen[value] or depth > state.depth then return end
  state.seen[value] = true
  if inspect.is_module(value) then
    module_tensors(value, function(name, t)
      walk(t, path == "" and name or path .. "." .. name, depth, state)
    end)
  else
    walk_table(value, path, depth + 1, state)
  end
end

--- Calls visit(path, tensor, is_grad) for every tensor that hangs on a value: itself, a module's
-- parameters and buffers, what tables hold to a depth (4), each with its grad; for those that were
-- freed, freed(path), where that is given. Paths begin with `path`.
function inspect.tensors(value, path, visit, depth, freed)
  walk(value, path, 0, {visit = visit, seen = {}, depth = depth or 4, freed = freed})
end

--- The number of elements of a module's parameters, without those that were freed; with
-- `trainable`, of those that require a gradient.
function inspect.num_parameters(module, trainable)
  local total = 0
  for p in module_class().parameters(module) do
    local counts = not core._is_freed(p) and (not trainable or p.requires_grad)
    if counts then total = total + p:numel() end
  end
  return total
end

--- Bytes of the elements of a tensor; on meta they are none.
function inspect.bytes(t) return t.device == "meta" and 0 or t.nbytes end

-- ---- storages

--- Counts storages once: add(tensor) -> true when its storage is new.
function inspect.counter()
  local seen, by_device, devices = {}, {}, {}
  local counter = {by_device = by_device, devices = devices, total = 0}
  function counter.add(t)
    local memory, bytes = core._memory(t)
    if seen[memory] then return false end
    seen[memory] = true
    local device = t.device
    if not by_device[device] then
      by_device[device] = {bytes = 0, storages = 0}
      devices[#devices + 1] = device
    end
    local of = by_device[device]
    if device == "meta" then bytes = 0 end
    of.bytes, of.storages = of.bytes + bytes, of.storages + 1
    counter.total = counter.total + bytes
    return true
  end
  return counter
end

--- The variables of a session as a list of {name, value}.
function inspect.variables(session)
  local list = {}
  for name, value in session:variables() do list[#list + 1] = {name = name, value = value} end
  return list
end

--- Who holds which storage: storage -> list of {name of the variable, path to the tensor, tensor}.
function inspect.holders(variables)
  local holders = {}
  for _, v in ipairs(variables) do
    inspect.tensors(v.value, v.name, function(path, t)
      local memory = core._memory(t)
      holders[memory] = holders[memory] or {}
      table.insert(holders[memory], {name = v.name, path = path, tensor = t})
    end)
  end
  return holders
end

--- "{2, 3}" of a tensor.
function inspect.shape(t) return tostring(t.shape) end

--- A short text of a value that is no tensor: "42", "3 items". Runs no metamethod.
function inspect.brief(value)
  local kind = type(value)
  if kind == "string" then
    return '"' .. texts.cut(format_value.escape(value:sub(1, 100)), BRIEF) .. '"'
  end
  if kind == "number" or kind == "boolean" or kind == "nil" then return numbers.text(value) end
  if kind ~= "table" then return "" end
  local n = 0
  for _ in next, value do n = n + 1 end
  return texts.plural(n, "item")
end

--- "a tensor", "nil", "a number": for messages.
function inspect.a(value)
  if value == nil then return "nil" end
  local name = core.is_tensor(value) and "tensor" or type(value)
  return (name:match "^[aeiou]" and "an " or "a ") .. name
end

--- The values of an expression that was given to the command `name`, packed. Runs user code.
function inspect.values(session, name, text)
  if text == "" then
    error(("%s: expected an expression, got none\nhint: :%s x"):format(name, name), 0)
  end
  local f, message = session:compile(text, name)
  if not f then error(message:match "^[^\n]*", 0) end -- the line is shown with it
  return table.pack(f())
end

return inspect
