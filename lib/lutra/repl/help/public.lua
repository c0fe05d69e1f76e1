--- Every public name of the library, found by walking its tables from lt. The reference
-- (tools/docs/reference.lua), the annotations for editors (lutra.repl.stubs) and the test that both
-- are complete read this list.
--
-- A name is public when it is reachable from lt and does not begin with `_`. Methods of a class that
-- only override a documented method of its parent are not listed again.

local builtin = require "lutra.repl.help.builtin"
local classes = require "lutra.repl.help.classes"
local core = require "lutra.core"
local lt = require "lutra"
local ops = require "lutra.repl.help.ops"

local public = {}

-- What programs call the tables that have a short name.
local short = {["lt.nn"] = "nn", ["lt.F"] = "F", ["lt.optim"] = "optim", ["lt.data"] = "data"}

-- Fields of classes that are there for subclasses inside the library.
local internal = {read = true, read_settings = true, options = true, buffers = true, apply = true,
  update = true}

local function sorted_names(t)
  local names = {}
  for name in next, t do
    if type(name) == "string" and name:match "^[%a][%w_]*$" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- The class that a class was made from, or nil.
local function parent(class)
  local meta = debug.getmetatable(class)
  local index = type(meta) == "table" and rawget(meta, "__index")
  return type(index) == "table" and index or nil
end

--- The classes that a class is made from, the nearest first.
function public.ancestors(class)
  local list, above = {}, parent(class)
  while above and classes.is_class(above) do list[#list + 1], above = above, parent(above) end
  return list
end

local function is_override(class, name)
  for _, above in ipairs(public.ancestors(class)) do
    if rawget(above, name) ~= nil then return true end
  end
  return false
end

local function class_methods(name, class)
  local list = {}
  for _, key in ipairs(sorted_names(class)) do
    local value = rawget(class, key)
    local own = key ~= "init" and not internal[key]
      and not (key == "extend" and parent(class) ~= nil)
    if type(value) == "function" and own and not is_override(class, key) then
      list[#list + 1] = {name = name .. ":" .. key, key = key, kind = "method", value = value,
        class = name}
    end
  end
  return list
end

-- Where a value is in several tables, it is described in the first of them: those that have a short
-- name come first, lt.backends last.
local function rank(name) return short["lt." .. name] and 1 or name == "backends" and 3 or 2 end
local function table_order(a, b)
  if rank(a) ~= rank(b) then return rank(a) < rank(b) end
  return a < b
end

local function load_libraries()
  for name in pairs(getmetatable(lt).__libraries) do local _ = lt[name] end
end

local function entry_of(path, key, value, seen)
  local entry = {name = path .. "." .. key, key = key, value = value, owner = path}
  if type(value) == "function" then
    entry.op = ops.find(value)
    entry.kind = entry.op and "op" or "function"
  elseif classes.is_class(value) then
    entry.kind = "class"
  else
    entry.kind = "value"
  end
  if entry.kind ~= "value" and not entry.op then
    entry.alias_of = seen[value]
    seen[value] = seen[value] or entry.name
  end
  if entry.kind == "class" and not entry.alias_of then
    entry.methods = class_methods(entry.name, value)
  end
  return entry
end

-- Adds the table `t` that users call `path`, and the tables inside it.
local function add_table(list, seen, path, t)
  local record = {name = path, value = t, entries = {}}
  list[#list + 1] = record
  seen[t] = path
  local inner = {}
  for _, key in ipairs(sorted_names(t)) do
    local value = rawget(t, key)
    if type(value) == "table" and not classes.is_class(value) then
      inner[#inner + 1] = key
    else
      record.entries[#record.entries + 1] = entry_of(path, key, value, seen)
    end
  end
  table.sort(inner, table_order)
  for _, key in ipairs(inner) do
    local value, full = rawget(t, key), path .. "." .. key
    full = short[full] or full
    if seen[value] then
      record.entries[#record.entries + 1] = {name = path .. "." .. key, key = key, kind = "table",
        value = value, owner = path, alias_of = seen[value]}
    elseif next(value) ~= nil then
      add_table(list, seen, full, value)
    end
  end
end

--- The public tables of the library: a list of {name, value, entries}, each entry a table:
--   name      the whole name: "lt.matmul", "nn.Linear"
--   key       its last part
--   kind      "op", "function", "class", "value" or "table"
--   value     what it is
--   op        the row of the op
--   alias_of  the name under which the same value is described, or nil
--   methods   of a class: entries of kind "method" with the field `class`
function public.tables()
  load_libraries()
  local list, seen = {}, {}
  add_table(list, seen, "lt", lt)
  return list
end

--- The methods and fields of tensors: a list of entries {name, key, kind, value, op, text}, named
-- "x:matmul" and "x.shape".
function public.tensor()
  local list = {}
  for _, key in ipairs(sorted_names(core._methods)) do
    local value = core._methods[key]
    local op = ops.find(value)
    list[#list + 1] = {name = "x:" .. key, key = key, kind = op and "op" or "method", value = value,
      op = op}
  end
  for _, key in ipairs(sorted_names(builtin.fields)) do
    list[#list + 1] = {name = "x." .. key, key = key, kind = "field", text = builtin.fields[key]}
  end
  return list
end

--- All entries of public.tables, methods of classes among them, then those of public.tensor.
function public.entries()
  local list = {}
  for _, record in ipairs(public.tables()) do
    for _, entry in ipairs(record.entries) do
      list[#list + 1] = entry
      table.move(entry.methods or {}, 1, #(entry.methods or {}), #list + 1, list)
    end
  end
  local tensor = public.tensor()
  return table.move(tensor, 1, #tensor, #list + 1, list)
end

return public
