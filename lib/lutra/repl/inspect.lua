--- Types of values and the tensors reachable from them, for :whos, :devices, :where and :tree.
--
-- No user code runs: metatables are read with debug.getmetatable, modules are traversed by the
-- methods of nn.Module itself. A storage is identified by the lightuserdata of core._memory.

local core = require "lutra.core"
local numbers = require "lutra.internal.numbers"
local format_value = require "lutra.repl.format_value"
local texts = require "lutra.internal.text"

local inspect = {}

local ITEMS = 200000 -- the maximum number of items of a table that are searched
local BRIEF = 24 -- the maximum width of a string

local function metatable(value)
  local meta = debug.getmetatable(value)
  return type(meta) == "table" and meta or nil
end

--- Returns whether a value is a module; loads nothing and calls no metamethod.
function inspect.is_module(value)
  local meta = type(value) == "table" and metatable(value)
  return meta and type(rawget(meta, "__state")) == "table" and package.loaded["lutra.nn"] ~= nil
    and rawget(rawget(meta, "__state"), "entries") ~= nil
end

--- Returns whether a value is an optimizer.
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

-- Returns the __name of a metatable if it is a string.
local function class_name(value)
  local meta = metatable(value)
  local name = meta and rawget(meta, "__name")
  return type(name) == "string" and format_value.escape(name) or nil
end

--- Returns the name of a value's type: "tensor", "Parameter", a class, "number".
function inspect.type_name(value)
  if core.is_tensor(value) then return core.is_parameter(value) and "Parameter" or "tensor" end
  local kind = type(value)
  if kind == "table" or kind == "userdata" then return class_name(value) or kind end
  return math.type(value) or kind
end

local function module_class() return require("lutra.nn").Module end

-- Visits the names and tensors of a module, one level deep.
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

--- Formats a key: "w" -> "w"; 3 -> "[3]"; "a b" -> '["a b"]'.
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

--- Calls visit(path, tensor, is_grad) for every tensor reachable from a value: itself, a module's
-- parameters and buffers, entries of tables to a depth (4), each with its grad; and freed(path),
-- if given, for freed tensors. Paths begin with `path`.
function inspect.tensors(value, path, visit, depth, freed)
  walk(value, path, 0, {visit = visit, seen = {}, depth = depth or 4, freed = freed})
end

--- Returns the number of elements of a module's parameters, without freed ones; with `trainable`,
-- of those that require grad.
function inspect.num_parameters(module, trainable)
  local total = 0
  for p in module_class().parameters(module) do
    local counts = not core._is_freed(p) and (not trainable or p.requires_grad)
    if counts then total = total + p:numel() end
  end
  return total
end

--- Returns the number of bytes of a tensor's elements; 0 on meta.
function inspect.bytes(t) return t.device == "meta" and 0 or t.nbytes end

-- ---- storages

--- Returns a counter that counts each storage once: add(tensor) returns true when its storage is
-- new.
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

--- Returns the variables of a session as a list of {name, value}.
function inspect.variables(session)
  local list = {}
  for name, value in session:variables() do list[#list + 1] = {name = name, value = value} end
  return list
end

--- Returns the holders of each storage: storage -> list of {variable, path to the tensor, tensor}.
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

--- Returns the shape of a tensor as "{2, 3}".
function inspect.shape(t) return tostring(t.shape) end

--- Returns a short text of a value that is no tensor: "42", "3 items". Calls no metamethod.
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

--- Returns a value's type for messages: "a tensor", "nil", "a number".
function inspect.a(value)
  if value == nil then return "nil" end
  local name = core.is_tensor(value) and "tensor" or type(value)
  return (name:match "^[aeiou]" and "an " or "a ") .. name
end

--- Evaluates the argument of the command `name` as an expression and returns its values, packed.
-- Runs user code.
function inspect.values(session, name, text)
  if text == "" then
    error(("%s: expected an expression, got none\nhint: :%s x"):format(name, name), 0)
  end
  local f, message = session:compile(text, name)
  if not f then error(message:match "^[^\n]*", 0) end -- the line is shown with it
  return table.pack(f())
end

return inspect
