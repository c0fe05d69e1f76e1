--- JSON (RFC 8259): a strict parser of untrusted text, and a writer.
--
-- Invariant: json.decode either returns the value of the whole text or nil and one line with the
-- byte at which the text is wrong. It never recurses deeper than DEPTH.

local ordered_map = require "lutra.internal.ordered_map"

local json = {}

local DEPTH = 200

--- The value of null: a unique value, because nil cannot be stored in a table.
json.null = setmetatable({}, {__name = "null", __tostring = function() return "null" end})

-- ---- reading

local escapes = {['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r",
  t = "\t"}

-- Raises the error of a string that is wrong at byte `at`; json.decode returns it.
local function wrong(at, expected) error({at = at, expected = expected}, 0) end

local function skip(text, at) return text:find("[^ \n\r\t]", at) or #text + 1 end

-- Returns the character of a \u escape with four hexadecimal digits at `at`, or of two that are a
-- surrogate pair, and the position after it.
local function unicode(text, at)
  local code = tonumber(text:match("^%x%x%x%x", at + 2) or wrong(at, "four hexadecimal digits"), 16)
  if code >= 0xDC00 and code <= 0xDFFF then wrong(at, "a first surrogate") end
  if code < 0xD800 or code > 0xDFFF then return utf8.char(code), at + 6 end
  local low = tonumber(text:match("^\\u(%x%x%x%x)", at + 6) or wrong(at, "a second surrogate"), 16)
  if low < 0xDC00 or low > 0xDFFF then wrong(at, "a second surrogate") end
  return utf8.char(0x10000 + (code - 0xD800) * 0x400 + low - 0xDC00), at + 12
end

-- Reads the string whose opening quote is at `at`.
local function read_string(text, at)
  local first, last = text:find('^[^"\\%c]*', at + 1)
  if text:byte(last + 1) == 34 then return text:sub(first, last), last + 2 end
  local parts = {}
  at = at + 1
  while true do
    first, last = text:find('^[^"\\\0-\31]*', at)
    parts[#parts + 1] = text:sub(first, last)
    at = last + 1
    local c = text:sub(at, at)
    if c == '"' then return table.concat(parts), at + 1 end
    if c ~= "\\" then wrong(at, "the end of the string") end
    local e = text:sub(at + 1, at + 1)
    if e == "u" then
      parts[#parts + 1], at = unicode(text, at)
    else
      parts[#parts + 1] = escapes[e] or wrong(at, "a valid escape")
      at = at + 2
    end
  end
end

local function read_number(text, at)
  local digits = text:match("^%-?%d+", at) or wrong(at, "a value")
  if digits:find "^%-?0%d" then wrong(at, "a number without leading zeros") end
  local last = at + #digits
  local fraction = text:match("^%.%d+", last) or ""
  local exponent = text:match("^[eE][+-]?%d+", last + #fraction) or ""
  local whole = digits .. fraction .. exponent
  local value = fraction == "" and exponent == "" and math.tointeger(tonumber(digits))
  return value or tonumber(whole) * 1.0, at + #whole
end

local words = {t = {"true", true}, f = {"false", false}, n = {"null", json.null}}
local read_value

local function read_array(text, at, depth)
  local list, n = {}, 0
  at = skip(text, at + 1)
  if text:byte(at) == 93 then return list, at + 1 end
  while true do
    n = n + 1
    list[n], at = read_value(text, at, depth)
    at = skip(text, at)
    local c = text:byte(at)
    if c == 93 then return list, at + 1 end
    if c ~= 44 then wrong(at, "',' or ']'") end
    at = skip(text, at + 1)
  end
end

local function read_object(text, at, depth)
  local pairs_list, seen, n = {}, {}, 0
  at = skip(text, at + 1)
  if text:byte(at) == 125 then return ordered_map.new(), at + 1 end
  while true do
    if text:byte(at) ~= 34 then wrong(at, "a name in quotes") end
    local key, after = read_string(text, at)
    if seen[key] then wrong(at, "each name once") end
    seen[key] = true
    at = skip(text, after)
    if text:byte(at) ~= 58 then wrong(at, "':'") end
    local value
    value, at = read_value(text, skip(text, at + 1), depth)
    n = n + 1
    pairs_list[n] = {key, value}
    at = skip(text, at)
    local c = text:byte(at)
    if c == 125 then return ordered_map.new(pairs_list), at + 1 end
    if c ~= 44 then wrong(at, "',' or '}'") end
    at = skip(text, at + 1)
  end
end

function read_value(text, at, depth)
  local c = text:sub(at, at)
  if c == '"' then return read_string(text, at) end
  if c == "{" or c == "[" then
    if depth == DEPTH then wrong(at, ("at most %d nested values"):format(DEPTH)) end
    return (c == "{" and read_object or read_array)(text, at, depth + 1)
  end
  local word = words[c]
  if word then
    if text:sub(at, at + #word[1] - 1) ~= word[1] then wrong(at, "a value") end
    return word[2], at + #word[1]
  end
  return read_number(text, at)
end

--- Parses a JSON text, which must be UTF-8. Objects become ordered tables, arrays lists, null
-- json.null; integers that fit become integers. Returns nil and the reason for any other text, also
-- when a name occurs twice in an object.
function json.decode(text)
  local valid, bad = utf8.len(text)
  if not valid then return nil, ("expected UTF-8 at byte %d"):format(bad) end
  local ok, value, at = pcall(function()
    local value, at = read_value(text, skip(text, 1), 0)
    at = skip(text, at)
    if at <= #text then wrong(at, "the end of the text") end
    return value, at
  end)
  if ok then return value, at end
  if type(value) ~= "table" then error(value, 0) end
  return nil, ("expected %s at byte %d"):format(value.expected, value.at)
end

-- ---- writing

local codes = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r"}

--- Returns a string, which must be UTF-8, as JSON.
function json.quote(s)
  return '"' .. s:gsub('[%c"\\]', function(c)
    return codes[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

--- Returns a finite number as JSON; a float always has a point or an exponent, so that it is read
-- as a float again.
function json.number(x)
  if math.type(x) == "integer" then return ("%d"):format(x) end
  local text = ("%.17g"):format(x)
  if tonumber(("%.15g"):format(x)) == x then text = ("%.15g"):format(x) end
  text = text:gsub(",", ".", 1) -- of a locale
  return text:find "[.e]" and text or text .. ".0"
end

return json
