--- The forms in which a notebook can show a value: strings by MIME type.
--
-- The text is that of the prompt. A value defines further forms by the metamethod
-- __mimebundle(value), which returns strings by MIME type (of images and other binary types, the
-- bytes); tensors, modules and large nested tables have forms of their own.
--
-- Invariant: a form that fails is left out. Only what formatting the text raises is raised, as at
-- the prompt: Ctrl-C and errors of a tensor's device.

local args = require "lutra.internal.args"
local format_value = require "lutra.repl.format_value"
local host = require "lutra.repl.host"

local rich = {}

local LIMIT = 1 << 20 -- the maximum number of bytes of a form that was not asked for
local LINES = 40 -- tables with a longer text are also shown as a tree

-- ---- MIME types

-- Types whose data are text.
local textual = {"^text/", "^image/svg%+xml$", "^application/json$", "%+json$", "%+xml$",
  "^application/javascript$", "^application/xml$"}

local function is_text(mime)
  for _, pattern in ipairs(textual) do
    if mime:find(pattern) then return true end
  end
  return false
end

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

--- Returns bytes in base64 (RFC 4648).
function rich.base64(bytes)
  local parts, digit = {}, {}
  for i = 0, 63 do digit[i] = DIGITS:sub(i + 1, i + 1) end
  for at = 1, #bytes - 2, 3 do
    local a, b, c = bytes:byte(at, at + 2)
    local word = a << 16 | b << 8 | c
    parts[#parts + 1] = digit[word >> 18] .. digit[word >> 12 & 63] .. digit[word >> 6 & 63]
      .. digit[word & 63]
  end
  local rest = #bytes % 3
  if rest > 0 then
    local a, b = bytes:byte(#bytes - rest + 1, #bytes)
    local word = a << 16 | (b or 0) << 8
    parts[#parts + 1] = digit[word >> 18] .. digit[word >> 12 & 63]
      .. (b and digit[word >> 6 & 63] or "=") .. "="
  end
  return table.concat(parts)
end

--- Returns forms with binary ones in base64, and with `text` as text/plain when they have none.
function rich.encode(forms, text)
  local encoded = {["text/plain"] = text}
  for mime, data in pairs(forms) do
    encoded[mime] = is_text(mime) and data or rich.base64(data)
  end
  return encoded
end

-- ---- forms of values

--- Calls f(...), which returns forms; returns those that are strings by MIME type, none when it
-- fails. Raises the error of Ctrl-C.
function rich.attempt(f, ...)
  local ok, forms = pcall(f, ...)
  if not ok and host.interrupts() > 0 then error(forms, 0) end
  local kept = {}
  for mime, data in next, ok and type(forms) == "table" and forms or {} do
    if rich.is_mime(mime) and type(data) == "string" then kept[mime] = data end
  end
  return kept
end

--- Returns whether a value is the name of a MIME type, such as "text/html".
function rich.is_mime(name)
  return type(name) == "string" and name:find "^%a[%w.+-]*/[%w.+_-]+$" ~= nil
end

-- Returns the field `name` of a metatable, also of a protected one.
local function metafield(value, name)
  local meta = debug.getmetatable(value)
  return type(meta) == "table" and rawget(meta, name) or nil
end

local function html(module, value, options)
  return {["text/html"] = require("lutra.repl.rich." .. module).html(value, options)}
end

-- Returns whether a table contains a tensor or a table.
local function is_nested(t)
  local core = require "lutra.core"
  for _, item in next, t do
    if type(item) == "table" or core.is_tensor(item) then return true end
  end
  return false
end

local function line_count(text) return select(2, text:gsub("\n", "")) + 1 end

-- Returns the forms of a value besides its text.
local function forms_of(value, options, text)
  local hook = metafield(value, "__mimebundle")
  if hook then return hook(value) end
  local core = package.loaded["lutra.core"]
  if not core then return nil end
  if core.is_tensor(value) then return html("tensor", value, options) end
  if type(value) ~= "table" then return nil end
  if require("lutra.repl.inspect").is_module(value) then return html("tree", value) end
  local plain = args.is_plain(value) or not metafield(value, "__tostring") and is_nested(value)
  if plain and line_count(text) > LINES and is_nested(value) then return html("tree", value) end
end

--- Returns the forms of a value as strings by MIME type: text/plain, and those of text/html,
-- image/svg+xml, image/png (in base64) and others that it has. options: those of
-- lutra.repl.rich.tensor for tensors.
function rich.bundle(value, options)
  local text = format_value.value(value)
  local forms = rich.attempt(forms_of, value, options or {}, text)
  for mime, data in pairs(forms) do
    if #data > LIMIT then forms[mime] = nil end
  end
  return rich.encode(forms, text)
end

--- Returns the forms of several results: those of the only one; else the text, and the HTML of all
-- below each other when each has some.
function rich.results(...)
  local n = select("#", ...)
  if n == 1 then return rich.bundle((...)) end
  local parts, bundle = {}, {["text/plain"] = format_value.values(...)}
  for i = 1, n do
    local forms = rich.bundle((select(i, ...)))
    parts[#parts + 1] = forms["text/html"]
  end
  if n > 0 and #parts == n then bundle["text/html"] = table.concat(parts) end
  return bundle
end

return rich
