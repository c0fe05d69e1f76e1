--- Names of values in the program, read from a call stack for error messages.
--
-- A name is that of a variable, or a path that starts at one: "x", "batch[1]",
-- "net.layers[2].weight". Of several names of equal distance it is the first in alphabetical
-- order; the prompt's results (`_5`) come last. Invariant: tables are read with rawget, and no
-- user code runs.

local args = require "lutra.internal.args"

local names = {}

-- Limits: the entries of a table that is searched, the characters of a name, the variables of a
-- function.
local ENTRIES, LETTERS, VARIABLES = 1000, 60, 255

-- Returns the fields of a value that can be searched: those of a module, with the kinds of those
-- that are registered, or a table; nil for any other value.
local function fields_of(value)
  if type(value) ~= "table" then return nil end
  local meta = debug.getmetatable(value)
  local state = type(meta) == "table" and rawget(meta, "__state")
  if type(state) == "table" then return state.fields, state.kinds end
  return value
end

-- Returns the code that accesses a field, such as ".weight" or "[2]"; nil for other keys.
local function access(key)
  if type(key) == "string" and key:find "^[%a_][%w_]*$" then return "." .. key end
  local number = math.tointeger(key)
  return number and ("[%d]"):format(number)
end

-- Returns the entries of a table that can be named, as a sorted list of {code, value, key}.
local function entries_of(fields)
  local list, count = {}, 0
  for key, value in next, fields do
    count = count + 1
    if count > ENTRIES then return {} end
    local code = access(key)
    if code then list[#list + 1] = {code, value, key} end
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

-- Returns the path from `value` to the value for which is_it is true, ".layers[2].weight", or nil.
-- It passes through any number of modules, and through `tables` other tables. For a registered
-- value of a module, also returns the path to the outermost module that contains it.
local function way_below(value, is_it, tables, seen)
  local fields, kinds = fields_of(value)
  tables = kinds and tables or tables - 1
  if not fields or tables < 0 or seen[fields] then return nil end
  seen[fields] = true
  local list = entries_of(fields)
  for _, entry in ipairs(list) do
    if is_it(entry[2]) then return entry[1], kinds and kinds[entry[3]] and "" end
  end
  for _, entry in ipairs(list) do
    local rest, owner = way_below(entry[2], is_it, tables, seen)
    if rest then return entry[1] .. rest, owner and (kinds and "" or entry[1] .. owner) end
  end
end

-- Appends variables to a list of {name, value}, inner ones first, as they hide outer ones. get(i)
-- returns the i-th.
local function variables(get, list)
  local found = {}
  for i = 1, VARIABLES do
    local name, value = get(i)
    if not name then break end
    if name:sub(1, 1) ~= "(" and name ~= "_ENV" then table.insert(found, 1, {name, value}) end
  end
  return table.move(found, 1, #found, #list + 1, list)
end

local function frame_variables(co, level, f)
  local list = variables(function(i) return debug.getlocal(co, level, i) end, {})
  return variables(function(i) return debug.getupvalue(f, i) end, list)
end

local function global_variables()
  local list = {}
  for name, value in next, _G do
    if type(name) == "string" and value ~= _G then list[#list + 1] = {name, value} end
  end
  table.sort(list, function(a, b)
    local result_a, result_b = a[1]:find "^_" ~= nil, b[1]:find "^_" ~= nil
    if result_a ~= result_b then return result_b end
    return a[1] < b[1]
  end)
  return list
end

local function name_among(list, is_it)
  for _, variable in ipairs(list) do
    if is_it(variable[2]) then return variable[1] end
  end
  for _, variable in ipairs(list) do
    local way, owner = way_below(variable[2], is_it, 1, {})
    if way and #variable[1] + #way <= LETTERS then
      return variable[1] .. way, owner and variable[1] .. owner
    end
  end
end

--- Returns the name of the value for which is_it(value) is true: one in the nearest `frames` user
-- functions above a level of coroutine `co`, else that of a global; nil when there is none. Also
-- returns the name of the module that the value is a parameter or a buffer of, or nil.
function names.find(is_it, co, level, frames)
  while frames > 0 do
    level = level + 1
    local info = debug.getinfo(co, level, "Sf")
    if not info then break end
    if not args.is_library(info) then
      frames = frames - 1
      local name, owner = name_among(frame_variables(co, level, info.func), is_it)
      if name then return name, owner end
    end
  end
  return name_among(global_variables(), is_it)
end

return names
