--- What can be set at the prompt: `:set items 100`, or options.set("items", 100) in init.lua.
--
-- One row an option; `:set` lists them, checks them and completes their names from here. Code reads
-- options.value.items.

local options = {}

--- The rows, in the order in which they are listed: name, default, doc, and what is allowed: a list
-- of words, or the least number. A default of true or false is an option that is on or off.
options.rows = {
  {name = "depth", default = 4, least = 0, doc = "nested tables that are shown"},
  {name = "items", default = 60, least = 1, doc = "items of a table that are shown"},
  {name = "width", default = 0, least = 0, doc = "columns of output; 0: those of the terminal"},
  {name = "colors", default = "auto", words = {"auto", "on", "off"},
    doc = "auto: on a terminal, unless NO_COLOR is set or TERM is dumb"},
  {name = "locals", default = true, doc = "local variables of a cell live on in later cells"},
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
  return nil, "it wants on or off"
end

local function read_word(row, value)
  if type(value) == "boolean" then value = value and "on" or "off" end
  for _, word in ipairs(row.words) do
    if word == value then return word end
  end
  return nil, "it wants one of " .. table.concat(row.words, ", ")
end

local function read_number(row, value)
  local number = math.tointeger(tonumber(value))
  if number and number >= row.least then return number end
  return nil, ("it wants a whole number from %d"):format(row.least)
end

--- Sets an option. `value` may be text, as typed. Returns true, or nil and why not.
function options.set(name, value)
  local row = by_name[name]
  if not row then return nil, ("there is no option \"%s\""):format(tostring(name)) end
  local read, why
  if type(row.default) == "boolean" then
    read, why = read_flag(value)
  elseif row.words then
    read, why = read_word(row, value)
  else
    read, why = read_number(row, value)
  end
  if read == nil then return nil, ("option %s is \"%s\": %s"):format(name, tostring(value), why) end
  options.value[name] = read
  return true
end

return options
