--- Reloads a module while its program runs.
--
-- The file runs as a separate chunk. Its results are then merged into the existing values: tables
-- keep their identity and get the new functions, so that references to the module, its classes or
-- instances call the new code; the new functions share the old file-level variables, whose state is
-- preserved.
--
-- lutra.repl.locals, which compiles the file like a cell, tells which upvalues are file-level
-- variables. Invariant: nothing is changed before the file has run to its end; afterwards only
-- fields and upvalues are set, which cannot fail.

local files = require "lutra.repl.files"
local lexer = require "lutra.repl.lexer"
local locals = require "lutra.repl.locals"

local reload = {}

local function fail(...) error("reload: " .. string.format(...), 0) end

-- ---- the old and the new

local function is_function_of(f, source)
  return type(f) == "function" and debug.getinfo(f, "S").source == source
end

local function has_functions(t)
  for _, value in next, t do
    if type(value) == "function" then return true end
  end
  return false
end

-- Iterates over the upvalues of `f`: index, name, value.
local function upvalues(f)
  local i = 0
  return function()
    i = i + 1
    local name, value = debug.getupvalue(f, i)
    if name then return i, name, value end
  end
end

-- Matches old and new values: state.tables[new] = old, state.functions[new] = old or false, and
-- state.joined[name] = {old function, index} for file-level variables. The values are traversed
-- from the module's value along equal keys and along equal names of file-level variables. Objects
-- with state (state.instances) are unchanged, except for their metatables.
local function pair(state, old, new)
  table.insert(state.waiting, {old, new})
end

local function pair_function(state, old, new)
  local known = state.functions[new]
  if known or known == false and type(old) ~= "function" then return end
  state.functions[new] = type(old) == "function" and old or false
  for i, name, value in upvalues(new) do
    local id = debug.upvalueid(new, i)
    if state.file_level[id] then
      local before = nil
      if type(old) == "function" then
        for j, old_name, old_value in upvalues(old) do
          if old_name == name then
            state.joined[name] = state.joined[name] or {old, j}
            before = old_value
          end
        end
      end
      pair(state, before, value)
    end
  end
end

-- Returns whether a table is an object with state, not a class: its methods are in its metatable.
local function is_instance(state, old, new)
  if debug.getmetatable(new) == nil or new == state.module then return false end
  return not has_functions(new) and not (type(old) == "table" and has_functions(old))
end

local function pair_table(state, old, new)
  local partner = type(old) == "table" and old or nil
  if state.shared[new] or state.tables[new] or state.alone[new] and not partner then return end
  if partner then state.tables[new] = partner else state.alone[new] = true end
  local meta = debug.getmetatable(new)
  if is_instance(state, old, new) then
    state.instances[new] = true
    if type(meta) ~= "table" or rawget(meta, "__state") then return end -- a module of lutra.nn
  else
    for key, value in next, new do pair(state, partner and rawget(partner, key), value) end
  end
  if type(meta) == "table" then pair(state, partner and debug.getmetatable(partner), meta) end
end

local function find_pairs(state, old, new)
  pair(state, old, new)
  local at = 1
  while state.waiting[at] do
    local a, b = state.waiting[at][1], state.waiting[at][2]
    if type(b) == "function" and is_function_of(b, state.source) then
      pair_function(state, a, b)
    elseif type(b) == "table" and not rawequal(a, b) then
      pair_table(state, a, b)
    end
    at = at + 1
  end
end

-- ---- the change

-- Returns the value that represents a new value in the old tables.
local function merged(state, value)
  if type(value) == "table" then return state.tables[value] or value end
  return value
end

-- Copies the fields of `new` into `old`: functions and plain values are replaced, existing tables
-- are kept and patched themselves; functions that the file no longer has are removed.
local function patch_table(state, old, new)
  for key, value in next, old do
    if is_function_of(value, state.source) and rawget(new, key) == nil then
      rawset(old, key, nil)
      state.gone = state.gone + 1
    end
  end
  if rawlen(new) > 0 and not has_functions(new) then -- a list is replaced completely
    for i = rawlen(old), rawlen(new) + 1, -1 do rawset(old, i, nil) end
  end
  for key, value in next, new do
    local put = merged(state, value)
    if type(value) == "function" and state.functions[value] == false
        and type(rawget(old, key)) ~= "function" then
      state.added = state.added + 1
    end
    if rawget(old, key) ~= put then rawset(old, key, put) end
  end
end

-- Returns the names that a string assigns to, except in declarations. In braces, `name =` is a
-- field.
local function assigned_names(text)
  local names, tokens, braces, declaring = {}, lexer.significant(text), 0, false
  for i, token in ipairs(tokens) do
    local kind, word = token[1], token[2]
    local before, after = tokens[i - 1] and tokens[i - 1][2], tokens[i + 1] and tokens[i + 1][2]
    if word == "{" then braces = braces + 1 end
    if word == "}" then braces = braces - 1 end
    if word == "local" or word == "for" then declaring = true end
    local listed = before == "local" or before == "for" or before == "," or before == "<"
    if word == "=" or word == "in" or kind == "name" and not listed then declaring = false end
    local field = before == "."
      or braces > 0 and (before == "{" or before == "," or before == ";")
    if kind == "name" and after == "=" and not declaring and not field then names[word] = true end
  end
  return names
end

local is_plain = {number = true, string = true, boolean = true}

-- The old variable keeps its state: values that functions assign, and objects. Functions and
-- tables in it are the new ones, patched; a constant gets the value in the file.
local function settle_variable(name, old_value, new_value, state)
  if old_value == nil or type(new_value) == "function" then return merged(state, new_value) end
  if type(old_value) == "function" then return new_value end
  if is_plain[type(new_value)] and not state.assigned[name] then return new_value end
  return old_value
end

-- Joins the upvalues of all new functions to the old variables.
local function join_variables(state)
  for name, place in pairs(state.joined) do
    local variable = state.variables.variables[name]
    local _, old_value = debug.getupvalue(place[1], place[2])
    local _, new_value = debug.getupvalue(variable.holder, variable.index)
    debug.setupvalue(place[1], place[2], settle_variable(name, old_value, new_value, state))
  end
  for name, variable in pairs(state.variables.variables) do
    if not state.joined[name] then
      local _, value = debug.getupvalue(variable.holder, variable.index)
      debug.setupvalue(variable.holder, variable.index, merged(state, value))
    end
  end
  for f in pairs(state.functions) do
    for i, name in upvalues(f) do
      local place = state.joined[name]
      if place and state.file_level[debug.upvalueid(f, i)] then
        debug.upvaluejoin(f, i, place[1], place[2])
      end
    end
  end
end

local function patch(state)
  for new, old in pairs(state.tables) do
    if not state.instances[new] then patch_table(state, old, new) end
  end
  join_variables(state)
end

-- ---- the file

-- Runs the file as require would; on failure, globals and the module are restored.
local function run(f, name, path)
  local before, loaded = {}, package.loaded[name]
  for key, value in next, _G do before[key] = value end
  local done = false
  local _ <close> = setmetatable({}, {__close = function()
    if done then return end
    for key in next, _G do
      if before[key] == nil then rawset(_G, key, nil) end
    end
    for key, value in next, before do rawset(_G, key, value) end
    package.loaded[name] = loaded
  end})
  local value = f(name, path)
  done = true
  return value
end

-- Returns the identities of the file-level variables that functions of the file can use.
local function identities(variables)
  local ids = {}
  for _, variable in pairs(variables.variables) do
    ids[debug.upvalueid(variable.holder, variable.index)] = true
  end
  return ids
end

-- Returns the tables that must not be patched: the libraries and the globals.
local function shared_tables()
  local shared = {[_G] = true, [package.loaded] = true, [package] = true}
  for _, module in next, package.loaded do
    if type(module) == "table" then shared[module] = true end
  end
  return shared
end

--- Returns whether the loaded module `name` is a file of the user's.
function reload.is_users(name)
  return type(name) == "string" and name ~= "lutra" and not name:match "^lutra%."
    and package.searchpath(name, package.path) ~= nil
end

--- Returns the sorted names of the loaded modules that can be reloaded.
function reload.names()
  local names = {}
  for name in next, package.loaded do
    if reload.is_users(name) then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

--- Reloads the module `name`. Returns {functions, added, gone = numbers of functions, replaced =
-- old function -> new function, value = the module, path}. An error leaves the module unchanged.
function reload.module(name)
  local old = package.loaded[name]
  local path, tried = package.searchpath(name, package.path)
  if not path then fail("cannot find a file of the module %s:\n\t%s", name, tried) end
  local text, why = files.read(path)
  if not text then fail("cannot read %s", why) end
  local source = "@" .. path
  text = text:gsub("^#[^\n]*", "")
  local plain, message = load(text, source, "t")
  if not plain then fail("cannot compile: %s", message) end

  local variables = locals.new()
  local f = variables:compile(text, source) or plain
  local value = run(f, name, path)
  if value == nil then
    local now = package.loaded[name]
    if now == nil or now == old then value = true else value = now end
  end
  local state = {
    source = source, module = value, variables = variables, file_level = identities(variables),
    shared = shared_tables(), tables = {}, alone = {}, instances = {}, functions = {}, joined = {},
    waiting = {}, added = 0, gone = 0, assigned = assigned_names(text),
  }
  state.shared[old] = nil
  find_pairs(state, old, value)
  patch(state)
  package.loaded[name] = merged(state, value)

  local count, replaced = 0, {}
  for new, before in pairs(state.functions) do
    count = count + 1
    if before then replaced[before] = new end
  end
  return {functions = count, added = state.added, gone = state.gone, replaced = replaced,
    value = package.loaded[name], path = path}
end

return reload
