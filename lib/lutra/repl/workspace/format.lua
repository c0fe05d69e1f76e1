--- The format of a workspace's metadata: the variables, the tables that contain the tensors,
-- numbers, strings and booleans, as text.
--
-- Lines of tokens; the first line is the format's name and version. A value is one token:
--
--   i12 n0x1p-1 b1 "text"     themselves; \ddd in a string is a byte
--   t3 x2 o1                  table, tensor, object 3, 2, 1 of the lines that follow
--
--   tensor FILE-NAME DEVICE ROLE           numbered in the order of these lines
--   view BASE SHAPE STRIDES OFFSET         also a tensor, in the memory of tensor BASE
--   table KIND                             plain or ordered; its `item KEY VALUE` follow
--   object CLASS STATE KEY...              what has load_state_dict; the keys lead to it
--   variable SCOPE NAME ATTRIBUTE VALUE
--
-- Invariant: read(write(image)) is that image; read never runs anything of the text, and gives a
-- message for any text that write did not make. Nothing of an image is ever compiled: names are
-- names, everything else is a value.

local locals = require "lutra.repl.locals"
local lexer = require "lutra.repl.lexer"
local format_value = require "lutra.repl.format_value"

local format = {}

local title = "lutra workspace 1"

-- ---- tokens

local function quote(text)
  return '"' .. text:gsub('[%c\128-\255"\\]', function(c) return ("\\%03d"):format(c:byte()) end)
    .. '"'
end

local function number_text(x)
  if math.type(x) == "integer" then return ("i%d"):format(x) end
  if x ~= x then return "nnan" end
  if x == math.huge or x == -math.huge then return x > 0 and "ninf" or "n-inf" end
  return ("n%a"):format(x)
end

local special = {nan = math.abs(0 / 0), inf = math.huge, ["-inf"] = -math.huge}

local function token(value)
  local kind = type(value)
  if kind == "string" then return quote(value) end
  if kind == "boolean" then return value and "b1" or "b0" end
  if kind == "number" then return number_text(value) end
  return value.kind .. value.id
end

-- Returns the value of one token; nil for an invalid token.
local function read_token(text)
  local kind, rest = text:sub(1, 1), text:sub(2)
  if kind == '"' then
    if not rest:find '^[^"]*"$' then return nil end
    local bytes, good = rest:sub(1, -2), true
    bytes = bytes:gsub("\\(%d%d%d)", function(d)
      local byte = tonumber(d)
      good = good and byte < 256
      return good and string.char(byte) or ""
    end)
    return good and bytes or nil
  end
  if text == "b1" or text == "b0" then return text == "b1" end
  if kind == "n" then
    local x = special[rest] or tonumber(rest)
    return x and x * 1.0 -- -0.0 stays so
  end
  local id = rest:find "^%-?%d+$" and math.tointeger(tonumber(rest)) or nil
  if kind == "i" then return id end
  if id and (kind == "t" or kind == "x" or kind == "o") then return {kind = kind, id = id} end
end

-- ---- writing

local function row(...)
  local parts = table.pack(...)
  for i = 2, parts.n do parts[i] = token(parts[i]) end
  return table.concat(parts, " ")
end

--- Formats an image: {tensors, tables, objects, variables}, lists of
--   tensors    {name, device, role} or {base = number, shape, strides (lists), offset}
--   tables     {kind, items = list of {key, value}}
--   objects    {class, state = value, path = list of keys}
--   variables  {scope, name, attribute ("" for none), value}
-- where a value is a string, number, boolean or {kind = "t", "x" or "o", id = number}.
function format.write(image)
  local lines = {title}
  for _, t in ipairs(image.tensors) do
    lines[#lines + 1] = t.base
      and row("view", t.base, table.concat(t.shape, ","), table.concat(t.strides, ","), t.offset)
      or row("tensor", t.name, t.device, t.role)
  end
  for _, t in ipairs(image.tables) do
    lines[#lines + 1] = row("table", t.kind)
    for _, item in ipairs(t.items) do lines[#lines + 1] = row("item", item[1], item[2]) end
  end
  for _, o in ipairs(image.objects) do
    lines[#lines + 1] = row("object", o.class, o.state, table.unpack(o.path))
  end
  for _, v in ipairs(image.variables) do
    lines[#lines + 1] = row("variable", v.scope, v.name, v.attribute, v.value)
  end
  return table.concat(lines, "\n")
end

-- ---- reading

-- Parses "2,3" to {2, 3}, "" to {}; returns nil for any other text.
local function numbers(text)
  local list = {}
  if text == "" then return list end
  for digits in (text .. ","):gmatch "([^,]*)," do
    local n = digits:find "^%-?%d+$" and math.tointeger(tonumber(digits))
    if not n then return nil end
    list[#list + 1] = n
  end
  return list
end

local function is_simple(value)
  return type(value) ~= "table" and value == value -- NaN cannot be a key
end

local roles = {plain = true, parameter = true, frozen = true, grad = true}
local kinds = {plain = true, ordered = true}

local function is_device(text)
  return (text:find "^%l+$" or text:find "^%l+:%d+$") and text:match "^%l+" ~= "meta"
end

-- Functions that add the values of a line to the image, by the line's first word. They return
-- false for values that `write` does not write.
local readers = {}

function readers.tensor(image, name, device, role)
  if not is_device(device) or not roles[role] then return false end
  table.insert(image.tensors, {name = name, device = device, role = role})
end

function readers.view(image, base, shape, strides, offset)
  local sizes, steps = numbers(shape), numbers(strides)
  if not sizes or not steps or #sizes ~= #steps then return false end
  local at = #image.tensors + 1
  if base < 1 or base >= at or not image.tensors[base].name then return false end
  image.tensors[at] = {base = base, shape = sizes, strides = steps, offset = offset}
end

function readers.table(image, kind)
  if not kinds[kind] then return false end
  table.insert(image.tables, {kind = kind, items = {}})
end

function readers.item(image, key, value)
  if #image.tables == 0 or not is_simple(key) then return false end
  table.insert(image.tables[#image.tables].items, {key, value})
end

function readers.object(image, class, state, ...)
  local path = {...}
  if type(state) ~= "table" or state.kind ~= "t" or type(path[1]) ~= "string" then return false end
  for _, key in ipairs(path) do
    if not is_simple(key) then return false end
  end
  table.insert(image.objects, {class = class, state = state, path = path})
end

function readers.variable(image, scope, name, attribute, value)
  local constant = attribute == "const"
  if attribute ~= "" and not (constant and scope == "local") then return false end
  local named = scope == "local" and locals.can_keep(name)
    or scope == "global" and lexer.is_name(name)
  if not named then return false end
  table.insert(image.variables, {scope = scope, name = name, attribute = attribute, value = value})
end

-- The types of the values of each line: s string, i integer, v any value, * more of them.
local expected = {tensor = "sss", view = "issi", table = "s", item = "vv", object = "sv*",
  variable = "sssv"}

local function fits(values, pattern)
  local open = pattern:match "^(.*)%*$"
  if open and values.n < #open or not open and values.n ~= #pattern then return false end
  for i = 1, values.n do
    local letter, value = (open or pattern):sub(i, i), values[i]
    if value == nil then return false end
    if letter == "s" and type(value) ~= "string" then return false end
    if letter == "i" and math.type(value) ~= "integer" then return false end
  end
  return true
end

local function read_line(image, line)
  local word, rest = line:match "^(%l+)(.*)$"
  local values = {n = 0}
  for text in (rest or ""):gsub(' ("[^"]*")', function(s) return " " .. s:gsub(" ", "\\032") end)
    :gmatch "%S+" do
    values.n = values.n + 1
    values[values.n] = read_token(text)
  end
  if not expected[word] or not fits(values, expected[word]) then return false end
  return readers[word](image, table.unpack(values, 1, values.n)) ~= false
end

-- Returns whether every reference names an existing table, tensor or object.
local function is_whole(image)
  local count = {t = #image.tables, x = #image.tensors, o = #image.objects}
  local function known(value)
    return type(value) ~= "table" or value.id >= 1 and value.id <= count[value.kind]
  end
  for _, t in ipairs(image.tables) do
    for _, item in ipairs(t.items) do
      if not known(item[2]) then return false end
    end
  end
  for _, o in ipairs(image.objects) do
    if not known(o.state) then return false end
  end
  for _, v in ipairs(image.variables) do
    if not known(v.value) then return false end
  end
  return true
end

--- Parses a string. Returns its image, or nil and the reason.
function format.read(text)
  local image = {tensors = {}, tables = {}, objects = {}, variables = {}}
  local number = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    if number == 1 then
      if line ~= title then
        return nil, ("the file has the format \"%s\", expected \"%s\""):format(
          format_value.escape(line:sub(1, 40)), title)
      end
    elseif not read_line(image, line) then
      return nil, ("line %d of its description is not valid: %s"):format(number,
        format_value.escape(line:sub(1, 60)))
    end
  end
  if not is_whole(image) then return nil, "its description refers to a missing entry" end
  return image
end

return format
