--- Formats values as the prompt prints them.
--
-- Strings are quoted; tables are written as Lua constructors (sorted; limited in depth, number of
-- items and line width); values with a __tostring are formatted by it. Invariant: formatting ends
-- for every value, also cyclic tables, and raises no error except those of Ctrl-C and of a tensor's
-- device. The only metamethods called are __tostring, __in_columns (of the library: text of at most
-- so many columns) and __pairs (for objects with an order); when one of them fails, the error is
-- shown in place of the value.

local host = require "lutra.repl.host"
local limits = require("lutra.repl.options").value
local numbers = require "lutra.internal.numbers"
local style = require "lutra.repl.style"

local format_value = {}

-- The limit on the items of nested tables in total, as a multiple of limits.items.
local most_in_all = 30

-- ---- strings

local escapes = {["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\\"] = "\\\\", ['"'] = '\\"'}

local function escape_bytes(text)
  return (text:gsub(".", function(c) return ("\\%03d"):format(c:byte()) end))
end

-- Control characters that move the cursor or change the direction of text: U+0080 to U+009F, the
-- line and paragraph separators, and the bidirectional marks.
local movers = {"\xC2[\x80-\x9F]", "\xE2\x80[\xA8-\xAE]", "\xE2\x81[\xA6-\xA9]"}

-- Escapes a string that is valid UTF-8.
local function escape_valid(text)
  text = text:gsub('[%c\\"]', function(c) return escapes[c] or escape_bytes(c) end)
  if not text:find "[\xC2\xE2]" then return text end
  for _, mover in ipairs(movers) do text = text:gsub(mover, escape_bytes) end
  return text
end

--- Escapes a string for quotes, so that it is valid UTF-8 without control characters.
function format_value.escape(text)
  local parts, at = {}, 1
  while at <= #text do
    local valid, bad = utf8.len(text, at)
    local last = valid and #text or bad - 1
    parts[#parts + 1] = escape_valid(text:sub(at, last))
    if not valid then parts[#parts + 1] = escape_bytes(text:sub(bad, bad)) end
    at = last + (valid and 1 or 2)
  end
  return table.concat(parts)
end

local escape = format_value.escape

-- Quotes a string; the part beyond `most` bytes is replaced by the number of its bytes.
local function quote(text, most)
  if #text <= most then return '"' .. escape(text) .. '"' end
  local cut = most
  while cut > 0 and text:byte(cut + 1) & 0xC0 == 0x80 do cut = cut - 1 end -- not within a character
  return ('"%s..." --[[%d bytes]]'):format(escape(text:sub(1, cut)), #text)
end

-- ---- keys

local reserved = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
    return then true until while]]):gmatch "%a+" do
  reserved[word] = true
end

local order = {boolean = 1, number = 2, string = 3}

local function by_key(a, b)
  local type_a, type_b = type(a), type(b)
  if type_a ~= type_b then
    local place_a, place_b = order[type_a] or 4, order[type_b] or 4
    if place_a ~= place_b then return place_a < place_b end
    return type_a < type_b
  end
  if type_a == "number" or type_a == "string" then return a < b end
  if type_a == "boolean" then return not a and b end
  return ("%p"):format(a) < ("%p"):format(b)
end

-- Returns the first `count` keys of `t` that are not in `skip`, sorted, and whether there are more.
-- Of a million keys most are compared only with the last one that is kept.
local function first_keys(t, skip, count)
  local keys, n, last, more = {}, 0, nil, false
  for key in next, t do
    if not skip[key] then
      if last ~= nil and not by_key(key, last) then
        more = true
      else
        n = n + 1
        keys[n] = key
      end
      if n > 2 * count + 100 then
        table.sort(keys, by_key)
        for i = count + 1, n do keys[i] = nil end
        n, last, more = count, keys[count], true
      end
    end
  end
  table.sort(keys, by_key)
  for i = count + 1, n do keys[i] = nil end
  return keys, more or n > count
end

-- ---- values of each type

-- Returns the field `name` of a metatable, also of a protected one.
local function metafield(value, name)
  local meta = debug.getmetatable(value)
  return type(meta) == "table" and rawget(meta, name) or nil
end

-- Returns the error of a failed metamethod as a short line.
local function reason(message)
  local text = type(message) == "string" and message or "an error of type " .. type(message)
  text = escape(text:match "^[^\n]*")
  return #text > 100 and text:sub(1, 97) .. "..." or text
end

local function name_of(value)
  local name = metafield(value, "__name")
  return type(name) == "string" and escape(name) or nil
end

-- Formats a value by tostring, which may run the user's __tostring, or by `fit` to at most `width`
-- columns.
local function text_of(value, fit, width)
  if type(value) == "number" then return numbers.text(value) end
  local ok, text = pcall(fit or tostring, value, width)
  if ok then return tostring(text) end
  -- Ctrl-C ends all formatting; an error in formatting a tensor is an error of its device.
  if host.interrupts() > 0 or metafield(value, "__name") == "tensor" then error(text, 0) end
  return ("<%s: __tostring failed: %s>"):format(name_of(value) or type(value), reason(text))
end

local narrowest = 20 -- the minimum width of a tensor's lines

-- Formats a value like text_of, and tensors and tables of the library to the width of the
-- terminal.
local function fitted(value, column)
  local fit = metafield(value, "__in_columns")
  if type(fit) == "function" then
    return text_of(value, fit, math.max(narrowest, style.width() - column - 1))
  end
  local core = package.loaded["lutra.core"]
  if not core or not core.is_tensor(value) then return text_of(value) end
  local linewidth = core.get_printoptions().linewidth
  local width = math.max(narrowest, style.width() - column)
  if linewidth <= width then return text_of(value) end
  local _ <close> = setmetatable({}, {__close = function()
    core.set_printoptions{linewidth = linewidth}
  end})
  core.set_printoptions{linewidth = width}
  return text_of(value)
end

local function describe_function(f)
  local info = debug.getinfo(f, "Su")
  if info.what == "C" then return "function: builtin" end
  local names = {}
  for i = 1, info.nparams do names[i] = debug.getlocal(f, i) end
  if info.isvararg then names[#names + 1] = "..." end
  return ("function(%s) --[[%s:%d]]"):format(table.concat(names, ", "), info.short_src,
    info.linedefined)
end

local function indent_lines(text, indent)
  return (text:gsub("\n", "\n" .. (" "):rep(indent)))
end

-- ---- tables

local write

local function key_text(key, state, indent)
  if type(key) == "string" and key:match "^[%a_][%w_]*$" and not reserved[key] then return key end
  return "[" .. write(key, state, indent, indent) .. "]"
end

-- Counts one more item; returns whether it may be shown.
local function room(state, texts)
  if #texts >= limits.items or state.left <= 0 then return false end
  state.left = state.left - 1
  return true
end

local function add_pair(texts, key, value, state, indent)
  local name = key_text(key, state, indent)
  texts[#texts + 1] = name .. " = " .. write(value, state, indent, indent + #name + 3)
end

-- Returns the items of an object with a __pairs.
local function ordered_items(t, state, indent)
  local list, texts = {}, {}
  local ok, message = pcall(function()
    for key, value in pairs(t) do
      list[#list + 1] = {key, value}
      if #list > limits.items then break end
    end
  end)
  for _, item in ipairs(list) do
    if not room(state, texts) then
      texts[#texts + 1] = "..."
      break
    end
    add_pair(texts, item[1], item[2], state, indent)
  end
  if not ok then texts[#texts + 1] = ("--[[ __pairs failed: %s ]]"):format(reason(message)) end
  return texts
end

-- Returns the items of a table as strings, at most limits.items: first those of its list, then the
-- other keys.
local function items(t, state, indent)
  if metafield(t, "__pairs") then return ordered_items(t, state, indent) end
  local texts, in_list, n = {}, {}, rawlen(t)
  for i = 1, n do
    local value = rawget(t, i)
    if value == nil then break end
    if not room(state, texts) then
      texts[#texts + 1] = ("... %d items"):format(n)
      return texts
    end
    in_list[i] = true
    texts[i] = write(value, state, indent, indent)
  end
  local keys, more = first_keys(t, in_list, limits.items - #texts)
  for _, key in ipairs(keys) do
    more = more or not room(state, texts)
    if state.left <= 0 then break end
    add_pair(texts, key, rawget(t, key), state, indent)
  end
  if more then texts[#texts + 1] = "..." end
  return texts
end

-- Returns the width of a line in columns; in bytes for invalid UTF-8.
local function columns(text) return utf8.len(text) or #text end

local longest_in_row = 20 -- the maximum width of an item that shares its line with others

local function shares_line(text)
  if text == "true" or text == "false" then return true end
  return not text:find "^[%a_{]" and not text:find("\n", 1, true) and not text:find(" = ", 1, true)
    and columns(text) <= longest_in_row
end

-- Returns the items as lines of at most `width` columns; consecutive numbers and short strings
-- share a line.
local function filled(texts, width)
  local lines, open = {}, false -- open: items may be appended to the last line
  for _, text in ipairs(texts) do
    local shares = shares_line(text)
    local last = lines[#lines]
    if open and shares and columns(last) + 2 + columns(text) <= width then
      lines[#lines] = last .. ", " .. text
    else
      lines[#lines + 1] = text
    end
    open = shares
  end
  return lines
end

local function write_table(t, state, indent, column)
  local name = name_of(t)
  name = name and name .. " " or ""
  if state.open[t] then return "{--[[ itself, " .. state.depth - state.open[t] .. " up ]]}" end
  if next(t) == nil and not metafield(t, "__pairs") then return name .. "{}" end
  if state.depth >= limits.depth or state.left <= 0 then return name .. "{...}" end
  state.open[t] = state.depth
  state.depth = state.depth + 1
  local texts = items(t, state, indent + 2)
  state.depth = state.depth - 1
  state.open[t] = nil

  local line = name .. "{" .. table.concat(texts, ", ") .. "}"
  if not line:find("\n", 1, true) and columns(line) + column <= style.width() then return line end
  local space = (" "):rep(indent + 2)
  local lines = filled(texts, style.width() - indent - 3)
  return name .. "{\n" .. space .. table.concat(lines, ",\n" .. space) .. ",\n"
    .. (" "):rep(indent) .. "}"
end

-- Returns the text of a value that starts at `column` of a line with the indentation `indent`.
function write(value, state, indent, column)
  local kind = type(value)
  if kind == "string" then
    return quote(value, state.depth == 0 and limits.text or limits.text // 5)
  end
  if kind == "table" and not metafield(value, "__tostring") then
    return write_table(value, state, indent, column)
  end
  if kind == "function" then return describe_function(value) end
  if kind == "thread" then return ("coroutine --[[%s]]"):format(coroutine.status(value)) end
  return indent_lines(fitted(value, column), column)
end

--- Returns the text of one value.
function format_value.value(value)
  return write(value, {open = {}, depth = 0, left = most_in_all * limits.items}, 0, 0)
end

--- Returns the text of several results: on one line separated by tabs when they are short, else one
-- per line.
function format_value.values(...)
  local texts, one_line, width = {}, true, 0
  for i = 1, select("#", ...) do
    texts[i] = format_value.value((select(i, ...)))
    width = width + columns(texts[i]) + 4
    one_line = one_line and not texts[i]:find("\n", 1, true)
  end
  return table.concat(texts, one_line and width < style.width() and "\t" or "\n")
end

return format_value
