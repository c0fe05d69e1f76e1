--- The text that says what the tensors in a workspace's file are: the variables, the tables around
-- them, numbers, strings and booleans. It is kept in the file's metadata.
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
-- message for any text that write did not make.

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

local special = {nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge}

local function token(value)
  local kind = type(value)
  if kind == "string" then return quote(value) end
  if kind == "boolean" then return value and "b1" or "b0" end
  if kind == "number" then return number_text(value) end
  return value.kind .. value.id
end

-- The value of one token; nil when it is none.
local function read_token(text)
  local kind, rest = text:sub(1, 1), text:sub(2)
  if kind == '"' then
    if not rest:find '^[^"]*"$' then return nil end
    return (rest:sub(1, -2):gsub("\\(%d%d%d)", function(d) return string.char(tonumber(d)) end))
  end
  if text == "b1" or text == "b0" then return text == "b1" end
  if kind == "i" then return math.tointeger(tonumber(rest)) end
  if kind == "n" then return special[rest] or tonumber(rest) end
  local id = math.tointeger(tonumber(rest))
  if id and (kind == "t" or kind == "x" or kind == "o") then return {kind = kind, id = id} end
end

-- ---- writing

local function row(...)
  local parts = table.pack(...)
  for i = 2, parts.n do parts[i] = token(parts[i]) end
  return table.concat(parts, " ")
end

--- The text of an image: {tensors, tables, objects, variables}, lists of
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

local function numbers(text)
  local list = {}
  for digits in text:gmatch "%-?%d+" do list[#list + 1] = math.tointeger(tonumber(digits)) end
  return list
end

-- How the values of a line become a part of the image, by the line's first word.
local readers = {}

function readers.tensor(image, name, device, role)
  table.insert(image.tensors, {name = name, device = device, role = role})
end

function readers.view(image, base, shape, strides, offset)
  table.insert(image.tensors,
    {base = base, shape = numbers(shape), strides = numbers(strides), offset = offset})
end

function readers.table(image, kind) table.insert(image.tables, {kind = kind, items = {}}) end

function readers.item(image, key, value)
  table.insert(image.tables[#image.tables].items, {key, value})
end

function readers.object(image, class, state, ...)
  table.insert(image.objects, {class = class, state = state, path = {...}})
end

function readers.variable(image, scope, name, attribute, value)
  table.insert(image.variables, {scope = scope, name = name, attribute = attribute, value = value})
end

-- What the values of each line are, by a letter: s string, i integer, v any value, * more of them.
local wanted = {tensor = "sss", view = "issi", table = "s", item = "vv", object = "sv*",
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
  if not wanted[word] or not fits(values, wanted[word]) then return false end
  if word == "item" and #image.tables == 0 then return false end
  readers[word](image, table.unpack(values, 1, values.n))
  return true
end

-- Does every value name a table, tensor or object that is there?
local function is_whole(image)
  local count = {t = #image.tables, x = #image.tensors, o = #image.objects}
  local function known(value)
    return type(value) ~= "table" or value.id >= 1 and value.id <= count[value.kind]
  end
  for _, t in ipairs(image.tables) do
    for _, item in ipairs(t.items) do
      if not known(item[1]) or not known(item[2]) or item[1] ~= item[1] then return false end
    end
  end
  for i, t in ipairs(image.tensors) do
    if t.base and not (t.base >= 1 and t.base < i and image.tensors[t.base].name) then
      return false
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

--- The image of a text; or nil and what is wrong with it.
function format.read(text)
  local image = {tensors = {}, tables = {}, objects = {}, variables = {}}
  local number = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    if number == 1 then
      if line ~= title then
        return nil, ("it was written as \"%s\", this Lutra reads \"%s\""):format(line:sub(1, 40),
          title)
      end
    elseif not read_line(image, line) then
      return nil, ("line %d of its description makes no sense: %s"):format(number, line:sub(1, 60))
    end
  end
  if not is_whole(image) then return nil, "its description names what is not in it" end
  return image
end

return format
