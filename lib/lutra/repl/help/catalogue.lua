--- The list of everything with a help page, by its name for users: the library, Lua's functions,
-- the commands, the session's variables. Searches, and the test that every name has a description,
-- use this list.

local builtin = require "lutra.repl.help.builtin"
local classes = require "lutra.repl.help.classes"
local commands = require "lutra.repl.commands"
local functions = require "lutra.repl.help.functions"
local lua = require "lutra.repl.help.lua"
local namespaces = require "lutra.internal.namespaces"
local ops = require "lutra.repl.help.ops"
local source = require "lutra.repl.help.source"

local catalogue = {}

-- The tables of the library, in the order of the list: name, module, and the field.
local libraries = {
  {"lt", "lutra"}, {"nn", "lutra.nn"}, {"F", "lutra.nn.functional"},
  {"nn.init", "lutra.nn.initializers"}, {"nn.utils", "lutra.nn.utils"},
  {"nn.utils.parametrize", "lutra.nn.utils.parametrize"},
  {"nn.utils.parametrizations", "lutra.nn.utils.parametrizations"},
  {"nn.utils.prune", "lutra.nn.utils.prune"}, {"nn.utils.fusion", "lutra.nn.utils.fusion"},
  {"nn.modules.module", "lutra.nn.modules", "module"}, {"optim", "lutra.optim"},
  {"optim.lr_scheduler", "lutra.optim.lr_scheduler"},
  {"optim.swa_utils", "lutra.optim.swa_utils"},
  {"data", "lutra.data"}, {"lt.autograd", "lutra.autograd"},
  {"lt.autograd.functional", "lutra.autograd.functional"},
  {"lt.autograd.graph", "lutra.autograd.graph"}, {"lt.amp", "lutra.amp"},
  {"lt.func", "lutra.func"}, {"lt.utils.benchmark", "lutra.utils.benchmark"},
  {"lt.utils.checkpoint", "lutra.utils.checkpoint"}, {"lt.cuda", "lutra.cuda"},
  {"lt.cuda.nvtx", "lutra.cuda", "nvtx"}, {"lt.mps", "lutra.mps"},
  {"lt.mps.profiler", "lutra.mps", "profiler"},
  {"lt.accelerator", "lutra.accelerator"}, {"lt.backends", "lutra.backends"},
  {"lt.placement", "lutra.placement"}, {"lt.profiler", "lutra.profiler"},
  {"lt.random", "lutra.random"}, {"lt.tokenizers", "lutra.tokenizers"},
  {"lt.audio", "lutra.audio"}, {"lt.plot", "lutra.plot"}, {"lt.vision", "lutra.vision"},
  {"lt.vision.transforms", "lutra.vision.transforms"},
  {"lt.vision.transforms.functional", "lutra.vision.transforms.functional"},
  {"lt.vision.datasets", "lutra.vision.datasets"}, {"lt.vision.io", "lutra.vision.io"},
  {"lt.vision.models", "lutra.vision.models"}, {"lt.vision.utils", "lutra.vision.utils"},
  {"lt.utils.tensorboard", "lutra.utils.tensorboard"}, {"lt.utils", "lutra.utils"},
  {"lt.distributions", "lutra.distributions"},
  {"lt.distributions.constraints", "lutra.distributions.constraints"},
  {"lt.distributions.transforms", "lutra.distributions.transforms"},
  {"lt.distributed", "lutra.distributed"},
  {"lt.distributed.algorithms.ddp_comm_hooks.default_hooks",
    "lutra.distributed.algorithms.ddp_comm_hooks.default_hooks"},
  {"lt.distributed.checkpoint", "lutra.distributed.checkpoint"},
  {"lt.distributed.fsdp", "lutra.distributed.fsdp"},
  {"lt.distributed.nn.functional", "lutra.distributed.nn.functional"},
  {"lt.distributed.optim", "lutra.distributed.optim"},
}

-- Loads the libraries that lt loads when they are first used, so that they are found.
local function load_all()
  local lt = require "lutra"
  require("lutra.internal.composites").load()
  require("lutra.internal.strict_table").load_all(lt)
end

--- Iterates over the tables of the library: name, table, its module, and a description when that is
-- not the opening comment of the module.
function catalogue.libraries()
  load_all()
  local i, next_space = 0, namespaces.each()
  return function()
    i = i + 1
    local row = libraries[i]
    if row then
      local t = require(row[2])
      return row[1], row[3] and rawget(t, row[3]) or t, row[2]
    end
    local name, t, doc, is_file = next_space()
    while is_file do name, t, doc, is_file = next_space() end
    return name, t, nil, doc
  end
end

--- Returns the name and the opening comment of a table of the library, or nil for any other value.
function catalogue.namespace(value)
  for name, t, module, doc in catalogue.libraries() do
    if rawequal(t, value) and doc then return name, {doc} end
    if rawequal(t, value) then
      local path = package.searchpath(module, package.path)
      return name, path and source.header("@" .. path) or nil
    end
  end
end

--- Returns a one-line description of a value, or nil.
function catalogue.summary(value)
  if type(value) == "function" then return functions.summary(value) end
  if classes.is_class(value) then return classes.summary(value) end
  local _, doc = catalogue.namespace(value)
  return doc and source.summary(doc)
end

--- Returns the public names in a table: those that begin with a letter, sorted.
function catalogue.sorted_names(t)
  local names = {}
  for name in next, t do
    if type(name) == "string" and name:match "^%a" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- Adds {name, text, value} of a class's methods with a comment; those without one are internal.
local function add_methods(list, prefix, class, seen)
  for _, name in ipairs(catalogue.sorted_names(class)) do
    local value = rawget(class, name)
    if type(value) == "function" and name ~= "init" and not seen[value] then
      seen[value] = true
      local text = functions.summary(value)
      if text then list[#list + 1] = {prefix .. ":" .. name, text, value} end
    end
  end
end

-- Adds the names of a table of the library, without ops that are listed under another name.
local function add_library(list, prefix, t, seen)
  for _, name in ipairs(catalogue.sorted_names(t)) do
    local value = rawget(t, name)
    local is_class = classes.is_class(value)
    if (type(value) == "function" or is_class) and not seen[value] then
      seen[value] = true
      list[#list + 1] = {prefix .. "." .. name, catalogue.summary(value) or "", value}
      if is_class then add_methods(list, prefix .. "." .. name, value, seen) end
    end
  end
end

--- Returns the public names of the library: a list of {name, text, value}; the text is "" without a
-- description.
function catalogue.public_names()
  local list, seen = {}, {}
  for name, t in catalogue.libraries() do add_library(list, name, t, seen) end
  local methods = require("lutra.core")._methods
  for _, name in ipairs(catalogue.sorted_names(methods)) do
    local value, op = methods[name], ops.find(methods[name])
    if not op or not op.variants["function"] and op.name:gsub("_$", "") == name:gsub("_$", "") then
      list[#list + 1] = {"x:" .. name, functions.summary(value) or "", value}
    end
  end
  for _, name in ipairs(catalogue.sorted_names(builtin.fields)) do
    list[#list + 1] = {"x." .. name, builtin.fields[name]}
  end
  return list
end

-- ---- searching

local function lua_names(list)
  for _, name in ipairs(catalogue.sorted_names(lua.names)) do
    list[#list + 1] = {name, lua.names[name][2]}
  end
end

--- Returns everything: a list of {name, text}. describe(value) returns the description of a
-- variable of the session.
function catalogue.all(session, describe)
  local list = {}
  if session then
    for name, value in session:variables() do list[#list + 1] = {name, describe(value)} end
  end
  for _, row in ipairs(commands.rows) do list[#list + 1] = {":" .. row.name, row.doc} end
  for _, entry in ipairs(catalogue.public_names()) do list[#list + 1] = entry end
  lua_names(list)
  return list
end

--- Returns the entries of catalogue.all whose name or text contains `word`, matching names first.
function catalogue.search(word, session, describe)
  word = word:lower()
  local named, told = {}, {}
  for _, entry in ipairs(catalogue.all(session, describe)) do
    if entry[1]:lower():find(word, 1, true) then
      named[#named + 1] = entry
    elseif entry[2]:lower():find(word, 1, true) then
      told[#told + 1] = entry
    end
  end
  return table.move(told, 1, #told, #named + 1, named)
end

return catalogue
