--- Static values: the fields, methods and results of a value, found without running user code.
--
-- A static value (`thing`) is a table with one of
--
--     value     the value itself
--     like      "tensor" or "string": an unknown value of that kind
--     instance  the class (a table) of an unknown instance
--     state_of  a module: the result of its state_dict()
--
-- Invariant: tables are read with rawget and next, metatables with debug.getmetatable, and fields
-- are read only from tensors and shapes, which are implemented in C. An __index function is never
-- called; __names in the metatable may be the table in which it looks.

local core = require "lutra.core"
local strict_table = require "lutra.internal.strict_table"

local static_values = {}

local function library(name) return package.loaded[name] end

--- Returns a field of a value's metatable, also of a protected one.
function static_values.metafield(value, field)
  local meta = debug.getmetatable(value)
  if type(meta) == "table" then return rawget(meta, field) end
end
local metafield = static_values.metafield

--- Returns whether the value is a tensor.
function static_values.is_tensor(value)
  return type(value) == "userdata" and core.is_tensor(value)
end

--- Returns whether the value can be called.
function static_values.is_callable(value)
  return type(value) == "function" or metafield(value, "__call") ~= nil
end

--- Returns the state of a module of lutra.nn, or nil.
function static_values.module_state(value)
  if type(value) ~= "table" then return nil end
  local state = metafield(value, "__state")
  return type(state) == "table" and type(rawget(state, "fields")) == "table" and state or nil
end

-- Returns the libraries that lt, or a table in it, loads when they are first used: name -> module.
local function waiting(t)
  local lt = library "lutra"
  if lt ~= nil and rawequal(t, lt) then return metafield(t, "__libraries") end
  return strict_table.libraries(t)
end

-- Returns the table after `value` in the chain in which fields are looked up, and whether it only
-- lists the names that a function accepts.
local function following(value)
  local index = metafield(value, "__index")
  local only_names = type(index) == "function"
  if only_names then index = metafield(value, "__names") end
  return type(index) == "table" and index or nil, only_names
end

-- Iterates over the tables in which fields of the value are looked up, nearest first; see
-- following.
local function chain(value)
  local seen, at, only_names = {}, value, false
  if type(value) ~= "table" then at, only_names = following(value) end
  return function()
    local t, names = at, only_names
    if t == nil or seen[t] then return nil end
    seen[t] = true
    at, only_names = following(t)
    return t, names
  end
end

-- Returns a field of a table of the chain, read with rawget. In a table that only lists names,
-- only methods are values.
local function known(value, only_names)
  if only_names and type(value) ~= "function" then return nil end
  return value
end

local function tables_of(thing)
  if thing.like == "tensor" or static_values.is_tensor(thing.value) then
    return chain(core._methods)
  end
  if thing.like == "string" then return chain("") end
  return chain(thing.instance or thing.value)
end

-- Returns the keys of module:state_dict(), in order.
local function state_names(module, prefix, names, seen)
  local state = static_values.module_state(module)
  if not state or seen[module] then return names end
  seen[module] = true
  for _, name in ipairs(state.entries) do
    local value = rawget(state.fields, name)
    if state.kinds[name] == "module" then
      state_names(value, prefix .. name .. ".", names, seen)
    elseif value ~= nil and not state.transient[name] then
      names[prefix .. name] = value
    end
  end
  seen[module] = nil
  return names
end

--- Calls visit(name, value) for each field and method of a static value; the nearest of a name
-- comes first. An unknown value is nil.
function static_values.members(thing, visit)
  if thing.state_of then
    for name, value in next, state_names(thing.state_of, "", {}, {}) do visit(name, value) end
    return
  end
  if thing.like == "tensor" or static_values.is_tensor(thing.value) then
    for name in next, core._fields do visit(name, nil) end
  end
  for t, only_names in tables_of(thing) do
    for name, value in next, t do visit(name, known(value, only_names)) end
    for name, module in next, waiting(t) or {} do visit(name, library(module)) end
  end
end

-- Returns the static value of a tensor's field.
local function tensor_field(thing, name)
  local value = not core._is_freed(thing.value) and thing.value or nil
  if name == "T" or name == "mT" or name == "data" then return {like = "tensor"} end
  if name == "dtype" or name == "device" or name == "grad_fn" then return {like = "string"} end
  if name == "shape" then return {value = (value or core.empty(0)).shape} end
  if name == "grad" then
    local grad = value and value.grad
    return grad and {value = grad} or {like = "tensor"}
  end
end

--- Returns the static value of field `key` of a static value, or nil when it is unknown.
function static_values.field(thing, key)
  if thing.state_of then
    local value = state_names(thing.state_of, "", {}, {})[key]
    return value ~= nil and {value = value} or nil
  end
  local tensor = thing.like == "tensor" or static_values.is_tensor(thing.value)
  if tensor and type(key) ~= "string" then return {like = "tensor"} end
  if tensor and core._fields[key] then return tensor_field(thing, key) end
  for t, only_names in tables_of(thing) do
    local value = rawget(t, key)
    if value ~= nil then
      value = known(value, only_names)
      return value ~= nil and {value = value} or nil
    end
    local module = (waiting(t) or {})[key]
    if module then return {value = require(module)} end -- a library, which reading it would load
  end
  return tensor and {like = "tensor"} or nil -- x["1:3"]
end

--- Returns whether a value is a class of the library, or one made by its extend.
function static_values.is_class(value)
  local name = type(value) == "table" and metafield(value, "__name")
  return type(name) == "string" and name:find("^class ") ~= nil and static_values.is_callable(value)
end

--- Returns whether the class `value` is `class` or derived from it.
function static_values.inherits(value, class)
  for t in chain(value) do
    if rawequal(t, class) then return true end
  end
  return false
end

return static_values
