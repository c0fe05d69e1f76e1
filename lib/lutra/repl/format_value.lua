--- Values as the prompt prints them.
--
-- Strings are quoted, tables are written as the code that would make them (sorted, cut off at a
-- depth, a number of items and the width of the line), everything with a __tostring by that.
-- Invariant: ends for every value, cyclic tables included, and raises no error but those of Ctrl-C
-- and of a device that a tensor is on. No metamethod is called but __tostring, __in_columns (the
-- library's own: text of at most so many columns) and __pairs (an object with an order of its own
-- is shown in it); where one of them fails, that is what is shown.

local host = require "lutra.repl.host"
local limits = require("lutra.repl.options").value
local numbers = require "lutra.internal.numbers"
local style = require "lutra.repl.style"

local format_value = {}

-- Of a deep table of tables, items in all: this many times limits.items.
local most_in_all = 30

-- ---- strings

local escapes = {["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\\"] = "\\\\", ['"'] = '\\"'}

local function escape_bytes(text)
  return (text:gsub(".", function(c) return ("\\%03d"):format(c:byte()) end))
end

-- Characters that move or turn what stands around them: U+0080 to U+009F, the separators of lines
-- and paragraphs, and the marks of direction.
local movers = {"\xC2[\x80-\x9F]", "\xE2\x80[\xA8-\xAE]", "\xE2\x81[\xA6-\xA9]"}

-- Text that is valid UTF-8.
local function escape_valid(text)
  text = text:gsub('[%c\\"]', function(c) return escapes[c] or escape_bytes(c) end)
  if not text:find "[\xC2\xE2]" then return text end
  for _, mover in ipairs(movers) do text = text:gsub(mover, escape_bytes) end
  return text
end

--- Text for the inside of quotes: nothing in it moves the cursor or is no UTF-8.
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

-- Quoted; more than `most` bytes are cut off, and how many there are is said.
local function quote(text, most)
  if #text <= most then return '"' .. escape(text) .. '"' end
  local cut = most
  while cut > 0 and text:byte(cut + 1) & 0xC0 == 0x80 do cut = cut - 1 end -- within a character
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

-- The first `wanted` keys of `t` that are not in `skip`, sorted, and whether there are more. Of a
-- million keys few are ever compared with more than the last that is kept.
local function first_keys(t, skip, wanted)
  local keys, n, last, more = {}, 0, nil, false
  for key in next, t do
    if not skip[key] then
      if last ~= nil and not by_key(key, last) then
        more = true
      else
        n = n + 1
        keys[n] = key
      end
      if n > 2 * wanted + 100 then
        table.sort(keys, by_key)
        for i = wanted + 1, n do keys[i] = nil end
        n, last, more = wanted, keys[wanted], true
      end
    end
  end
  table.sort(keys, by_key)
  for i = wanted + 1, n do keys[i] = nil end
  return keys, more or n > wanted
end

-- ---- values of each type

-- The field `name` of a metatable, however it is guarded.
local function metafield(value, name)
  local meta = debug.getmetatable(value)
  return type(meta) == "table" and rawget(meta, name) or nil
end

-- What a failed metamethod said, as a short line.
local function reason(message)
  local text = type(message) == "string" and message or "an error of type " .. type(message)
  text = escape(text:match "^[^\n]*")
  return #text > 100 and text:sub(1, 97) .. "..." or text
end

local function name_of(value)
  local name = metafield(value, "__name")
  return type(name) == "string" and escape(name) or nil
end

-- As tostring, which may run the user's __tostring, or as `fit`, of at most `width` columns.
local function text_of(value, fit, width)
  if type(value) == "number" then return numbers.text(value) end
  local ok, text = pcall(fit or tostring, value, width)
  if ok then return tostring(text) end
  -- Ctrl-C is for all of it; and what fails in a tensor's text is its device, not the text.
  if host.interrupts() > 0 or metafield(value, "__name") == "tensor" then error(text, 0) end
  return ("<%s: __tostring failed: %s>"):format(name_of(value) or type(value), reason(text))
end

local narrowest = 20 -- columns of a tensor's lines

-- As text_of; of a tensor or a table of the library's in lines that end before the edge of the
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

-- May one more item be shown? Counts it.
local function room(state, texts)
  if #texts >= limits.items or state.left <= 0 then return false end
  state.left = state.left - 1
  return true
end

local function add_pair(texts, key, value, state, indent)
  local name = key_text(key, state, indent)
  texts[#texts + 1] = name .. " = " .. write(value, state, indent, indent + #name + 3)
end

-- The items of an object with a __pairs of its own.
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

-- The items of a table as texts, at most limits.items: first the list in it, then the other keys.
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

-- Columns of a line; bytes where it is no UTF-8.
local function columns(text) return utf8.len(text) or #text end

local longest_in_row = 20 -- columns of an item that shares its line with others

local function shares_line(text)
  if text == "true" or text == "false" then return true end
  return not text:find "^[%a_{]" and not text:find("\n", 1, true) and not text:find(" = ", 1, true)
    and columns(text) <= longest_in_row
end

-- The items as lines of at most `width` columns: numbers and short strings in a row share a line.
local function filled(texts, width)
  local lines, open = {}, false -- open: the last line takes more
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

-- The text of a value that starts at `column` of a line whose own text starts at `indent`.
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

--- The text of one value.
function format_value.value(value)
  return write(value, {open = {}, depth = 0, left = most_in_all * limits.items}, 0, 0)
end

--- The text of several results: on one line with tabs where they are short, else a line each.
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
