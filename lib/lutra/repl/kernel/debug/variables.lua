--- Values as DAP variables: text, type, and children by reference.
--
-- A reference is a number under which the front end asks for the children of a value. References
-- are valid while the program is stopped, or until the variables are listed again.
--
-- The names of types are those that JupyterLab knows ("int", "str"): it shows the value beside
-- them, and for other types the type. Invariant: of the user's code only __tostring and __pairs
-- run, and their errors are not passed on.

local brief = require "lutra.repl.brief"
local format_value = require "lutra.repl.format_value"
local json = require "lutra.internal.json"
local lexer = require "lutra.repl.lexer"

local variables = {}
variables.__index = variables

local WIDTH = 200 -- columns of a value
local MOST = 1000 -- children in one reply; the front end asks for further ones by pages

--- Returns an empty set of references.
function variables.new() return setmetatable({items = {}, last = 0}, variables) end

--- Adds a container. list() returns its children {name, value, expression}, or with list(first,
-- count) some of them; set(name, value) assigns one, and is nil where none can be assigned. Returns
-- the reference.
function variables:add(list, set)
  self.last = self.last + 1
  self.items[self.last] = {list = list, set = set}
  return self.last
end

--- Returns the container of a reference, or nil.
function variables:get(reference) return self.items[reference] end

local function metafield(value, name)
  local meta = debug.getmetatable(value)
  return type(meta) == "table" and rawget(meta, name) or nil
end

local simple = {boolean = "bool", string = "str", ["nil"] = "nil", ["function"] = "function",
  thread = "coroutine"}

-- Returns the name of a value's type.
local function type_of(value)
  local kind = type(value)
  if kind == "number" then return math.type(value) == "integer" and "int" or "float" end
  if simple[kind] then return simple[kind] end
  if brief.is_tensor(value) then
    local where = tostring(value.device) ~= "cpu" and " on " .. tostring(value.device) or ""
    return ("tensor %s %s%s"):format(value.shape, value.dtype, where)
  end
  local name = metafield(value, "__name")
  if type(name) == "string" then return format_value.escape(name) end
  local length = kind == "table" and rawlen(value) or 0
  return length > 0 and ("table of %d"):format(length) or kind
end

-- ---- children

local function field_expression(parent, key)
  if not parent then return nil end
  if type(key) == "string" then
    if lexer.is_name(key) then return parent .. "." .. key end
    return ("%s[%q]"):format(parent, key)
  end
  return math.type(key) == "integer" and ("%s[%d]"):format(parent, key) or nil
end

local function key_name(key)
  if type(key) == "string" then return format_value.escape(key) end
  return "[" .. brief.text(key, 40) .. "]"
end

local function by_name(a, b) return a.name < b.name end

-- Returns the fields of a table in the order of its __pairs, or nil.
local function ordered_fields(t, expression)
  local each = metafield(t, "__pairs")
  if not each then return nil end
  local list = {}
  local ok = pcall(function()
    for key, value in pairs(t) do
      list[#list + 1] = {name = key_name(key), value = value,
        expression = field_expression(expression, key)}
      if #list >= MOST then break end
    end
  end)
  return ok and list or nil
end

-- Returns the fields of a table that are not in its list, sorted by name.
local function named_fields(t, expression)
  local list, length = {}, rawlen(t)
  for key, value in next, t do
    if not (math.type(key) == "integer" and key >= 1 and key <= length) then
      list[#list + 1] = {name = key_name(key), value = value, key = key,
        expression = field_expression(expression, key)}
      if #list >= 10 * MOST then break end
    end
  end
  table.sort(list, by_name)
  return list
end

-- A list of fields by position: the items of the table's list, then the named ones.
local function list_table(t, expression)
  local named = ordered_fields(t, expression)
  local length = named and 0 or rawlen(t)
  named = named or named_fields(t, expression)
  local meta = debug.getmetatable(t)
  if type(meta) == "table" and metafield(t, "__name") == nil then
    named[#named + 1] = {name = "(metatable)", value = meta}
  end
  return length, named, function(i)
    return {name = ("[%d]"):format(i), value = rawget(t, i), key = i,
      expression = field_expression(expression, i)}
  end
end

local tensor_fields = {"shape", "dtype", "device", "requires_grad", "grad", "grad_fn"}

local function list_tensor(t, expression)
  local named = {}
  for _, name in ipairs(tensor_fields) do
    local ok, value = pcall(function() return t[name] end)
    if ok and value ~= nil and type(value) ~= "function" then
      named[#named + 1] = {name = name, value = value, expression = expression .. "." .. name}
    end
  end
  local length = t:dim() > 0 and t.shape[1] or 0
  return length, named, function(i)
    local row = t[i]
    if row:dim() == 0 then row = row:item() end
    return {name = ("[%d]"):format(i), value = row, expression = field_expression(expression, i)}
  end
end

local function list_function(f)
  local named, info = {}, debug.getinfo(f, "S")
  for i = 1, 255 do
    local name, value = debug.getupvalue(f, i)
    if not name then break end
    if name ~= "_ENV" and name ~= "" then named[#named + 1] = {name = name, value = value} end
  end
  named[#named + 1] = {name = "(defined)",
    value = info.what == "C" and "in C" or ("%s:%d"):format(info.short_src, info.linedefined)}
  return 0, named
end

-- Returns a function that lists the children of a value, the number of children by index, and of
-- those by name; nil for a value without children.
local function children(value, expression)
  local make = brief.is_tensor(value) and list_tensor or type(value) == "table" and list_table
    or type(value) == "function" and list_function
  if not make then return nil end
  return function() return make(value, expression or "") end
end

local function child_count(value)
  if brief.is_tensor(value) then return value:dim() > 0 and value.shape[1] or 0 end
  return type(value) == "table" and not metafield(value, "__pairs") and rawlen(value) or 0
end

-- Returns a function that assigns a field of a table.
local function setter(t)
  if type(t) ~= "table" or metafield(t, "__pairs") then return nil end
  return function(name, value)
    local index = math.tointeger(tonumber(name:match "^%[(%-?%d+)%]$"))
    rawset(t, index or name, value)
  end
end

-- ---- replies

--- Returns a variable of the reply to `variables`. expression: Lua code for its value, or nil.
function variables:describe(name, value, expression)
  local list = children(value, expression)
  local indexed = list and child_count(value) or 0
  local result = {
    name = name,
    value = brief.text(value, WIDTH),
    type = type_of(value),
    evaluateName = expression,
    variablesReference = list and self:add(list, setter(value)) or 0,
  }
  if indexed > 100 then result.indexedVariables, result.namedVariables = indexed, 20 end
  return result
end

local function number_or(value, default)
  return math.type(value) == "integer" and value > 0 and value or default
end

-- Returns `count` children behind the first `start`: those by index, then those by name.
local function page(container, filter, start, count)
  local length, named, at = container.list()
  if filter == "named" then length = 0 end
  local total = length + (filter == "indexed" and 0 or #named)
  local list = {}
  for i = start + 1, math.min(total, start + count) do
    local ok, child = true, named[i - length]
    if i <= length then ok, child = pcall(at, i) end
    list[#list + 1] = ok and child or {name = ("[%d]"):format(i), value = "(an error)"}
  end
  return list, total
end

--- Returns the list of variables of a reference; nil when it is not valid. arguments: filter, start
-- and count of the request.
function variables:list(reference, arguments)
  local container = self:get(reference)
  if not container then return nil end
  local start = number_or(arguments.start, 0)
  local children_list, total = page(container, arguments.filter, start,
    number_or(arguments.count, MOST))
  local result = json.array {}
  for i, child in ipairs(children_list) do
    result[i] = self:describe(child.name, child.value, child.expression)
  end
  if not number_or(arguments.count) and total > start + MOST then
    result[#result + 1] = {name = "...", value = ("%d more"):format(total - start - MOST),
      type = ("%d more"):format(total - start - MOST), variablesReference = 0}
  end
  return result
end

return variables
