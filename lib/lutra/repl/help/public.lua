--- Every public name of the library, found by walking its tables from lt. The reference
-- (tools/docs/reference.lua), the annotations for editors (lutra.repl.stubs) and the test that both
-- are complete read this list.
--
-- A name is public when it is reachable from lt and does not begin with `_`. A method that
-- overrides one of a public class above is not listed again.

local builtin = require "lutra.repl.help.builtin"
local catalogue = require "lutra.repl.help.catalogue"
local classes = require "lutra.repl.help.classes"
local core = require "lutra.core"
local lt = require "lutra"
local ops = require "lutra.repl.help.ops"

local public = {}

-- The short names of tables in programs.
local short = {["lt.nn"] = "nn", ["lt.F"] = "F", ["lt.optim"] = "optim", ["lt.data"] = "data"}

-- Internal fields: of optimizers (subclasses define some of them, which the page of
-- optim.Optimizer describes) and of classes without a public name.
local internal = {
  optim = {read = true, read_settings = true, buffers = true, update = true, apply = true,
    initial = true, complete = true, advance = true, state_shape = true},
  ["lt.distributions"] = {parse = true, read_probs = true, set_shapes = true, check_value = true,
    constraint_of = true, a_tensor = true, enumerated = true, capacitance_tril = true,
    log_norm = true},
  [""] = {new = true, of = true},
}

-- Returns the parent of a class, or nil.
local function parent(class)
  local meta = debug.getmetatable(class)
  local index = type(meta) == "table" and rawget(meta, "__index")
  return type(index) == "table" and index or nil
end

--- Returns the ancestors of a class, the nearest first.
function public.ancestors(class)
  local list, above = {}, parent(class)
  while above and classes.is_class(above) do list[#list + 1], above = above, parent(above) end
  return list
end

-- Returns entries for the methods of a class and of its ancestors without a public name. Methods
-- of a public ancestor are omitted. `names` has the public classes.
local function class_methods(name, class, names)
  local found, hidden = {}, {}
  local function add(from)
    for _, key in ipairs(catalogue.sorted_names(from)) do
      if type(rawget(from, key)) == "function" then found[key] = found[key] or rawget(from, key) end
    end
  end
  add(class)
  local is_hidden = true
  for _, above in ipairs(public.ancestors(class)) do
    is_hidden = is_hidden and not names[above]
    if is_hidden then
      add(above)
    else
      for _, key in ipairs(catalogue.sorted_names(above)) do hidden[key] = true end
    end
  end
  local list, left_out = {}, internal[name:match "^(.-)%.?%w+$"] or {}
  for _, key in ipairs(catalogue.sorted_names(found)) do
    if key ~= "init" and not left_out[key] and not hidden[key] then
      list[#list + 1] = {name = name .. ":" .. key, key = key, kind = "method", value = found[key],
        class = name}
    end
  end
  return list
end

-- A value in several tables is described in the first of them: those with a short name come first,
-- lt.backends last.
local function rank(name) return short["lt." .. name] and 1 or name == "backends" and 3 or 2 end
local function table_order(a, b)
  if rank(a) ~= rank(b) then return rank(a) < rank(b) end
  return a < b
end

local function load_libraries()
  require("lutra.internal.composites").load()
  require("lutra.internal.strict_table").load_all(lt)
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
  return entry
end

-- Adds the table `t` that users call `path`, and the tables inside it.
local function add_table(list, seen, path, t)
  local record = {name = path, value = t, entries = {}}
  list[#list + 1] = record
  seen[t] = path
  local inner = {}
  for _, key in ipairs(catalogue.sorted_names(t)) do
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

--- Returns the public tables of the library: a list of {name, value, entries}. An entry is a table:
--   name      the full name: "lt.matmul", "nn.Linear"
--   key       its last part
--   kind      "op", "function", "class", "value" or "table"
--   value     the value
--   op        the row of the op
--   alias_of  the name under which the same value is described, or nil
--   methods   of a class: entries of kind "method" with the field `class`
function public.tables()
  load_libraries()
  local list, seen, names = {}, {}, {}
  add_table(list, seen, "lt", lt)
  for _, record in ipairs(list) do
    for _, entry in ipairs(record.entries) do
      if entry.kind == "class" then names[entry.value] = true end
    end
  end
  for _, record in ipairs(list) do
    for _, entry in ipairs(record.entries) do
      if entry.kind == "class" and not entry.alias_of then
        entry.methods = class_methods(entry.name, entry.value, names)
      end
    end
  end
  return list
end

-- Objects whose class has no public name: {title, the function that makes them, an object}.
local objects = {
  {"Trace", "lt.placement.trace", function() return (lt.placement.trace(type, 1)) end},
  {"Findings", "lt.placement.lint", function() return lt.placement.lint(type, 1) end},
  {"Profile", "lt.profiler.profile", function()
    return (lt.profiler.profile(function() end))
  end},
  {"Averages", "lt.profiler.profile", function()
    return lt.profiler.profile(function() end):key_averages()
  end},
  {"Progress", "lt.progress", function() return lt.progress{disable = true} end},
  {"Csv", "data.read_csv", function()
    return setmetatable({}, require "lutra.data.csv_data")
  end},
  {"Figure", "lt.plot.figure", function() return lt.plot.figure() end},
  {"Compiled", "lt.compile", function() return lt.compile(function(x) return x end) end},
  {"Expression", "lt.elementwise", function() return lt.elementwise "x" end},
  {"Simulation", "lt.distributed.simulate", function()
    return require("lutra.distributed.simulation.report").new({}, "")
  end},
}

--- Returns the classes whose instances are made only by functions: a list of entries {name =
-- "Trace", kind = "object", value, made_by, methods}.
function public.objects()
  local list = {}
  for i, row in ipairs(objects) do
    local class = getmetatable(row[3]())
    local methods = class_methods(row[1], class, {})
    for _, method in ipairs(methods) do method.made_by = row[2] end
    list[i] = {name = row[1], key = row[1], kind = "object", value = class, made_by = row[2],
      methods = methods}
  end
  return list
end

--- Returns the methods and fields of tensors: a list of entries {name, key, kind, value, op, text},
-- named "x:matmul" and "x.shape".
function public.tensor()
  local list = {}
  for _, key in ipairs(catalogue.sorted_names(core._methods)) do
    local value = core._methods[key]
    local op = ops.find(value)
    list[#list + 1] = {name = "x:" .. key, key = key, kind = op and "op" or "method", value = value,
      op = op}
  end
  for _, key in ipairs(catalogue.sorted_names(builtin.fields)) do
    list[#list + 1] = {name = "x." .. key, key = key, kind = "field", text = builtin.fields[key]}
  end
  return list
end

--- Returns all entries of public.tables and public.objects, including methods, then those of
-- public.tensor.
function public.entries()
  local list = {}
  for _, record in ipairs(public.tables()) do
    for _, entry in ipairs(record.entries) do
      list[#list + 1] = entry
      table.move(entry.methods or {}, 1, #(entry.methods or {}), #list + 1, list)
    end
  end
  for _, object in ipairs(public.objects()) do
    table.move(object.methods, 1, #object.methods, #list + 1, list)
  end
  local tensor = public.tensor()
  return table.move(tensor, 1, #tensor, #list + 1, list)
end

return public
