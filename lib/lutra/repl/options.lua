--- Options of the prompt: `:set items 100`, or require("lutra.repl").set{items = 100} in init.lua.
--
-- Each option is a row, from which `:set` lists options, checks values and completes names. Code
-- reads options.value.items. Invariant: a value in options.value is valid for its row.

local numbers = require "lutra.internal.numbers"

local options = {}

--- The rows, in the order in which they are listed: name, default, doc, and the valid values: a
-- list of words, or the least (and the largest) number. An option with a boolean default is on or
-- off. With `bytes` the number may be written 16MiB.
options.rows = {
  {name = "depth", default = 4, least = 0, most = 100, doc = "levels of tables that are shown"},
  {name = "items", default = 60, least = 1, doc = "items of a table that are shown"},
  {name = "text", default = 1000, least = 10, doc = "bytes of a string that are shown"},
  {name = "width", default = 0, least = 0,
    doc = "columns of output; 0: the width of the terminal, 100 in a notebook"},
  {name = "colors", default = "auto", words = {"auto", "on", "off"},
    doc = "auto: on a terminal and in a notebook, unless NO_COLOR is set or TERM is dumb"},
  {name = "locals", default = true, doc = "keep the local variables of a cell for later cells"},
  {name = "results_bytes", default = 16 << 20, least = 0, bytes = true,
    doc = "device memory that _ and _1 to _9 may hold"},
}

options.value = {}
local by_name = {}
for _, row in ipairs(options.rows) do
  by_name[row.name] = row
  options.value[row.name] = row.default
end

local function read_flag(value)
  if type(value) == "boolean" then return value end
  if value == "on" or value == "true" then return true end
  if value == "off" or value == "false" then return false end
  return nil, "on or off"
end

local function read_word(row, value)
  if type(value) == "boolean" then value = value and "on" or "off" end
  for _, word in ipairs(row.words) do
    if word == value then return word end
  end
  return nil, "one of " .. table.concat(row.words, ", ")
end

local units = {b = 0, k = 10, m = 20, g = 30, t = 40}

-- Converts 16, "16", "16MiB", "16 MB" or "1.5g" to bytes, with powers of 1024.
local function read_bytes(value)
  if type(value) ~= "string" then return math.tointeger(value) end
  local number, unit = value:lower():match "^%s*([%d.]+)%s*([bkmgt]?)i?b?%s*$"
  number = tonumber(number)
  return number and math.tointeger(number * (1 << (units[unit] or 0)) // 1)
end

local function read_number(row, value)
  local number
  if row.bytes then number = read_bytes(value) else number = math.tointeger(tonumber(value)) end
  if number and number >= row.least and number <= (row.most or math.maxinteger) then
    return number
  end
  if row.bytes then return nil, "bytes, such as 1000000 or 16MiB" end
  return nil, row.most and ("an integer from %d to %d"):format(row.least, row.most)
    or ("an integer of at least %d"):format(row.least)
end

--- Returns the row of the option `name`; or nil and a message with the nearest name.
function options.find(name)
  if by_name[name] then return by_name[name] end
  local names = {}
  for _, row in ipairs(options.rows) do names[#names + 1] = row.name end
  local near = type(name) == "string" and require("lutra.internal.nearest").find(name, names)
  return nil, ("unknown option \"%s\"\nhint: %s"):format(tostring(name),
    near and ("did you mean '%s'?"):format(near) or ":set lists the options")
end

--- Sets an option. `value` may be a string, as typed. Returns true, or nil and the reason.
function options.set(name, value)
  local row, missing = options.find(name)
  if not row then return nil, missing end
  local read, why
  if type(row.default) == "boolean" then
    read, why = read_flag(value)
  elseif row.words then
    read, why = read_word(row, value)
  else
    read, why = read_number(row, value)
  end
  if read == nil then
    return nil, ("expected %s for option %s, got \"%s\""):format(why, name, tostring(value))
  end
  options.value[name] = read
  return true
end

--- Returns the value of an option as it would be typed.
function options.text(row)
  local value = options.value[row.name]
  if type(value) == "boolean" then return value and "on" or "off" end
  if row.bytes then
    for _, unit in ipairs {{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} do
      if value >= 1 << unit[1] and value % (1 << unit[1]) == 0 then
        return ("%d%s"):format(value >> unit[1], unit[2])
      end
    end
  end
  return numbers.text(value)
end

return options
