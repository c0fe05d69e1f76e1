--- What the program calls a value, read from a call stack when an error wants to name it.
--
-- A name is that of a variable, or the way to the value from one: "x", "batch[1]",
-- "net.layers[2].weight". Of equally near ones it is the first in the alphabet, with `_5` and its
-- like, the results of the prompt, at the end. Invariant: reads tables raw and calls nothing of the
-- user's.

local args = require "lutra.internal.args"

local names = {}

-- Entries of a table that is looked into, letters of a name, variables of a function.
local ENTRIES, LETTERS, VARIABLES = 1000, 60, 255

-- What can be looked into: the fields of a module, and the kinds of those that are registered; a
-- table; nil.
local function fields_of(value)
  if type(value) ~= "table" then return nil end
  local meta = debug.getmetatable(value)
  local state = type(meta) == "table" and rawget(meta, "__state")
  if type(state) == "table" then return state.fields, state.kinds end
  return value
end

-- How a field is written behind its table; nil when that is no name.
local function step(key)
  if type(key) == "string" and key:find "^[%a_][%w_]*$" then return "." .. key end
  local number = math.tointeger(key)
  return number and ("[%d]"):format(number)
end

-- The entries of a table that have a name, as a sorted list of {step, value, key}.
local function entries_of(fields)
  local list, count = {}, 0
  for key, value in next, fields do
    count = count + 1
    if count > ENTRIES then return {} end
    local written = step(key)
    if written then list[#list + 1] = {written, value, key} end
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

-- The way from `value` to what is looked for: ".layers[2].weight", or nil. It leads through any
-- number of modules, and through `tables` other tables. And of what is registered in a module, the
-- way to the outermost that it belongs to.
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

-- Variables as a list of {name, value}, those that hide others first. get(i) gives the i-th.
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

--- The name of the value for which is_it(value) is true: one that the user's functions above a
-- level of coroutine `co` have, the nearest of `frames` of them, else a global's; nil when there is
-- none. And the name of the module that it is a parameter or a buffer of, or nil.
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
