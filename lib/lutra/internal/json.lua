--- JSON (RFC 8259): a strict parser of untrusted text, and a writer.
--
-- Invariant: json.decode either returns the value of the whole text or nil and one line with the
-- byte at which the text is wrong. It never recurses deeper than DEPTH. json.encode returns valid
-- UTF-8 for any strings.

local ordered_map = require "lutra.internal.ordered_map"

local json = {}

-- Not methods of strings, which a program can change: the kernel depends on this file.
local byte, find, format = string.byte, string.find, string.format
local gsub, match, sub = string.gsub, string.match, string.sub

local DEPTH = 200

--- The value of null: a unique value, because nil cannot be stored in a table.
json.null = setmetatable({}, {__name = "null", __tostring = function() return "null" end})

-- ---- reading

local escapes = {['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r",
  t = "\t"}

-- Raises the error of a string that is wrong at byte `at`; json.decode returns it.
local function wrong(at, expected) error({at = at, expected = expected}, 0) end

local function skip(text, at) return find(text, "[^ \n\r\t]", at) or #text + 1 end

-- Returns the character of a \u escape with four hexadecimal digits at `at`, or of two that are a
-- surrogate pair, and the position after it.
local function unicode(text, at)
  local digits = match(text, "^%x%x%x%x", at + 2) or wrong(at, "four hexadecimal digits")
  local code = tonumber(digits, 16)
  if code >= 0xDC00 and code <= 0xDFFF then wrong(at, "a first surrogate") end
  if code < 0xD800 or code > 0xDFFF then return utf8.char(code), at + 6 end
  local low = tonumber(match(text, "^\\u(%x%x%x%x)", at + 6) or wrong(at, "a second surrogate"), 16)
  if low < 0xDC00 or low > 0xDFFF then wrong(at, "a second surrogate") end
  return utf8.char(0x10000 + (code - 0xD800) * 0x400 + low - 0xDC00), at + 12
end

-- Reads the string whose opening quote is at `at`.
local function read_string(text, at)
  local first, last = find(text, '^[^"\\%c]*', at + 1)
  if byte(text, last + 1) == 34 then return sub(text, first, last), last + 2 end
  local parts = {}
  at = at + 1
  while true do
    first, last = find(text, '^[^"\\\0-\31]*', at)
    parts[#parts + 1] = sub(text, first, last)
    at = last + 1
    local c = sub(text, at, at)
    if c == '"' then return table.concat(parts), at + 1 end
    if c ~= "\\" then wrong(at, "the end of the string") end
    local e = sub(text, at + 1, at + 1)
    if e == "u" then
      parts[#parts + 1], at = unicode(text, at)
    else
      parts[#parts + 1] = escapes[e] or wrong(at, "a valid escape")
      at = at + 2
    end
  end
end

local function read_number(text, at)
  local digits = match(text, "^%-?%d+", at) or wrong(at, "a value")
  if find(digits, "^%-?0%d") then wrong(at, "a number without leading zeros") end
  local last = at + #digits
  local fraction = match(text, "^%.%d+", last) or ""
  local exponent = match(text, "^[eE][+-]?%d+", last + #fraction) or ""
  local whole = digits .. fraction .. exponent
  local value = fraction == "" and exponent == "" and math.tointeger(tonumber(digits))
  return value or tonumber(whole) * 1.0, at + #whole
end

local words = {t = {"true", true}, f = {"false", false}, n = {"null", json.null}}
local read_value

local function read_array(text, at, depth)
  local list, n = {}, 0
  at = skip(text, at + 1)
  if byte(text, at) == 93 then return list, at + 1 end
  while true do
    n = n + 1
    list[n], at = read_value(text, at, depth)
    at = skip(text, at)
    local c = byte(text, at)
    if c == 93 then return list, at + 1 end
    if c ~= 44 then wrong(at, "',' or ']'") end
    at = skip(text, at + 1)
  end
end

local function read_object(text, at, depth)
  local pairs_list, seen, n = {}, {}, 0
  at = skip(text, at + 1)
  if byte(text, at) == 125 then return ordered_map.new(), at + 1 end
  while true do
    if byte(text, at) ~= 34 then wrong(at, "a name in quotes") end
    local key, after = read_string(text, at)
    if seen[key] then wrong(at, "each name once") end
    seen[key] = true
    at = skip(text, after)
    if byte(text, at) ~= 58 then wrong(at, "':'") end
    local value
    value, at = read_value(text, skip(text, at + 1), depth)
    n = n + 1
    pairs_list[n] = {key, value}
    at = skip(text, at)
    local c = byte(text, at)
    if c == 125 then return ordered_map.new(pairs_list), at + 1 end
    if c ~= 44 then wrong(at, "',' or '}'") end
    at = skip(text, at + 1)
  end
end

function read_value(text, at, depth)
  local c = sub(text, at, at)
  if c == '"' then return read_string(text, at) end
  if c == "{" or c == "[" then
    if depth == DEPTH then wrong(at, format("at most %d nested values", DEPTH)) end
    return (c == "{" and read_object or read_array)(text, at, depth + 1)
  end
  local word = words[c]
  if word then
    if sub(text, at, at + #word[1] - 1) ~= word[1] then wrong(at, "a value") end
    return word[2], at + #word[1]
  end
  return read_number(text, at)
end

--- Parses a JSON text, which must be UTF-8. Objects become ordered tables, arrays lists, null
-- json.null; integers that fit become integers. Returns nil and the reason for any other text, also
-- when a name occurs twice in an object.
function json.decode(text)
  local valid, bad = utf8.len(text)
  if not valid then return nil, format("expected UTF-8 at byte %d", bad) end
  local ok, value, at = pcall(function()
    local value, at = read_value(text, skip(text, 1), 0)
    at = skip(text, at)
    if at <= #text then wrong(at, "the end of the text") end
    return value, at
  end)
  if ok then return value, at end
  if type(value) ~= "table" then error(value, 0) end
  return nil, format("expected %s at byte %d", value.expected, value.at)
end

-- ---- writing

local codes = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r"}

--- Returns a string, which must be UTF-8, as JSON.
function json.quote(s)
  return '"' .. gsub(s, '[%c"\\]', function(c)
    return codes[c] or format("\\u%04x", byte(c))
  end) .. '"'
end

--- Returns a finite number as JSON; a float always has a point or an exponent, so that it is read
-- as a float again.
function json.number(x)
  if math.type(x) == "integer" then return format("%d", x) end
  local text = format("%.17g", x)
  if tonumber(format("%.15g", x)) == x then text = format("%.15g", x) end
  text = gsub(text, ",", ".", 1) -- of a locale
  return find(text, "[.e]") and text or text .. ".0"
end

--- Returns the string as valid UTF-8: each byte that belongs to no character becomes U+FFFD.
function json.valid_utf8(s)
  local length, bad = utf8.len(s)
  if length then return s end
  local parts, at = {}, 1
  while not length do
    parts[#parts + 1] = sub(s, at, bad - 1)
    parts[#parts + 1] = "\u{FFFD}"
    at = bad + 1
    length, bad = utf8.len(s, at)
  end
  parts[#parts + 1] = sub(s, at)
  return table.concat(parts)
end

local list_mark = {__name = "JSON array"}

--- Marks a table as an array for json.encode, which takes an empty table for an object. Returns it.
function json.array(list) return setmetatable(list, list_mark) end

local write

local function write_array(list, parts)
  parts[#parts + 1] = "["
  for i = 1, #list do
    if i > 1 then parts[#parts + 1] = "," end
    write(list[i], parts)
  end
  parts[#parts + 1] = "]"
end

-- Returns the names of an object: in its order when it has one (__pairs), else sorted.
local function names_of(object)
  local names, ordered = {}, getmetatable(object)
  for name in pairs(object) do
    if type(name) ~= "string" then
      error(format("json: expected strings as names of an object, got %s", type(name)), 0)
    end
    names[#names + 1] = name
  end
  if not (ordered and ordered.__pairs) then table.sort(names) end
  return names
end

local function write_object(object, parts)
  parts[#parts + 1] = "{"
  for i, name in ipairs(names_of(object)) do
    if i > 1 then parts[#parts + 1] = "," end
    parts[#parts + 1] = json.quote(json.valid_utf8(name))
    parts[#parts + 1] = ":"
    write(object[name], parts)
  end
  parts[#parts + 1] = "}"
end

-- Appends the text of a value to `parts`.
function write(value, parts)
  local kind = type(value)
  if kind == "string" then
    parts[#parts + 1] = json.quote(json.valid_utf8(value))
  elseif kind == "number" then
    local finite = value == value and value ~= math.huge and value ~= -math.huge
    parts[#parts + 1] = finite and json.number(value) or "null"
  elseif kind == "boolean" then
    parts[#parts + 1] = tostring(value)
  elseif value == json.null then
    parts[#parts + 1] = "null"
  elseif kind == "table" then
    local is_list = getmetatable(value) == list_mark or #value > 0
    if is_list then write_array(value, parts) else write_object(value, parts) end
  else
    error(format("json: cannot encode a %s", kind), 0)
  end
end

--- Returns a value as JSON: a table with values at 1 to n, or of json.array, as an array, another
-- as an object. A number that is not finite becomes null, a byte that is not UTF-8 U+FFFD. Raises
-- an error for functions, userdata, and names that are not strings.
function json.encode(value)
  local parts = {}
  write(value, parts)
  return table.concat(parts)
end

-- Returns the position after the string whose opening quote is at `at` in valid JSON.
local function string_end(text, at)
  at = at + 1
  while true do
    at = find(text, '["\\]', at)
    if byte(text, at) == 34 then return at + 1 end
    at = at + 2
  end
end

--- Returns a value as JSON of many lines, each level indented by one space: see json.encode.
function json.indented(value)
  local text, parts, depth, at = json.encode(value), {}, 0, 1
  local function new_line() parts[#parts + 1] = "\n" .. (" "):rep(depth) end
  while at <= #text do
    local c = sub(text, at, at)
    local after = at + 1
    if c == '"' then
      after = string_end(text, at)
    elseif find(text, "^%[%]", at) or find(text, "^{}", at) then
      after = at + 2
    elseif c == "]" or c == "}" then
      depth = depth - 1
      new_line()
    elseif not c:find "[%[{,:]" then
      after = find(text, "[%]},]", at) or #text + 1
    end
    parts[#parts + 1] = sub(text, at, after - 1)
    if (c == "[" or c == "{") and after == at + 1 then depth = depth + 1 end
    if (c == "[" or c == "{") and after == at + 1 or c == "," then new_line() end
    if c == ":" then parts[#parts + 1] = " " end
    at = after
  end
  return table.concat(parts)
end

return json
