--- What is known of a value without running any code of the user's: its fields, its methods, and
-- what a call of it gives.
--
-- A thing is a table with one of
--
--     value     the value itself
--     like      "tensor" or "string": a value of that kind, which is not there yet
--     instance  the class (a table) that a call will make an object of
--     state_of  a module: the table that its state_dict() will be
--
-- Invariant: tables are read with rawget and next, metatables with debug.getmetatable, and only
-- tensors and shapes, whose C code is our own, are asked for a field. An __index that is a function
-- is never called; __names in the metatable may say in which table it looks.

local core = require "lutra.core"

local static_values = {}

local function library(name) return package.loaded[name] end

--- The field of a value's metatable, however that is guarded.
function static_values.metafield(value, field)
  local meta = debug.getmetatable(value)
  if type(meta) == "table" then return rawget(meta, field) end
end
local metafield = static_values.metafield

--- Is the value a tensor?
function static_values.is_tensor(value)
  return type(value) == "userdata" and core.is_tensor(value)
end

--- Can the value be called?
function static_values.is_callable(value)
  return type(value) == "function" or metafield(value, "__call") ~= nil
end

--- The state of a module of lutra.nn, or nil.
function static_values.module_state(value)
  if type(value) ~= "table" then return nil end
  local state = metafield(value, "__state")
  return type(state) == "table" and type(rawget(state, "fields")) == "table" and state or nil
end

-- The libraries that lt loads when they are first read: name -> module.
local function waiting(t)
  local lt = library "lutra"
  return lt ~= nil and rawequal(t, lt) and metafield(t, "__libraries") or nil
end

-- The table after `value` in the chain in which fields are looked for, and whether it only says the
-- names that a function knows.
local function following(value)
  local index = metafield(value, "__index")
  local only_names = type(index) == "function"
  if only_names then index = metafield(value, "__names") end
  return type(index) == "table" and index or nil, only_names
end

-- Iterates over the tables in which fields of the value are looked for, nearest first; see
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

-- A field of a table of the chain, raw. Of what only says names, methods are real.
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

-- The keys that module:state_dict() will have, in order.
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

--- Calls visit(name, value) for each field and method of the thing; a nearer one of a name comes
-- first. The value is nil where it is not known.
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

-- What a field of a tensor is.
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

--- The thing that is field `key` of a thing, or nil where that is not known.
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
    if module then return {value = require(module)} end -- our own, and reading it would load it
  end
  return tensor and {like = "tensor"} or nil -- x["1:3"]
end

--- Is a value a class of the library's, or one made by its extend?
function static_values.is_class(value)
  local name = type(value) == "table" and metafield(value, "__name")
  return type(name) == "string" and name:find("^class ") ~= nil and static_values.is_callable(value)
end

--- Is `class` in the chain of classes of the class `value`?
function static_values.inherits(value, class)
  for t in chain(value) do
    if rawequal(t, class) then return true end
  end
  return false
end

return static_values
