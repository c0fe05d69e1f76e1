--- Values as the prompt prints them.
--
-- Strings are quoted, tables are written as the code that would make them (sorted, cut off at a
-- depth, a number of items and the width of the line), everything with a __tostring by that.
-- Invariant: ends for every value, cyclic tables included, and calls no metamethod but __tostring
-- and __pairs (with it __index): an object with an order of its own is shown in it.

local limits = require("lutra.repl.options").value
local style = require "lutra.repl.style"

local show = {}

local escapes = {
  ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\\"] = "\\\\", ['"'] = '\\"', ["\27"] = "\\27",
}

local function quote(text)
  return '"' .. text:gsub('[%c\\"]', function(c)
    return escapes[c] or ("\\%03d"):format(c:byte())
  end) .. '"'
end

local reserved = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
    return then true until while]]):gmatch "%a+" do
  reserved[word] = true
end

local order = {boolean = 1, number = 2, string = 3}

local function by_key(a, b)
  local ta, tb = order[type(a)] or 4, order[type(b)] or 4
  if ta ~= tb then return ta < tb end
  if ta == 2 or ta == 3 then return a < b end
  return tostring(a) < tostring(b)
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

-- The field `name` of a metatable, however it is guarded.
local function metafield(value, name)
  local meta = debug.getmetatable(value)
  return type(meta) == "table" and rawget(meta, name) or nil
end

local function indent_lines(text, indent)
  return (text:gsub("\n", "\n" .. (" "):rep(indent)))
end

local write

-- The keys to show by name: those of the object's own order, else sorted.
local function keys_of(t, in_array)
  local keys = {}
  if metafield(t, "__pairs") then
    for key in pairs(t) do keys[#keys + 1] = key end
    return keys
  end
  for key in next, t do
    if not in_array[key] then keys[#keys + 1] = key end
  end
  table.sort(keys, by_key)
  return keys
end

local function key_text(key, state, indent)
  if type(key) == "string" and key:match "^[%a_][%w_]*$" and not reserved[key] then return key end
  return "[" .. write(key, state, indent, indent) .. "]"
end

-- The items of a table as texts, at most limits.items.
local function items(t, state, indent)
  local limit = limits.items
  local texts, in_array, ordered = {}, {}, metafield(t, "__pairs")
  local n = ordered and 0 or rawlen(t)
  for i = 1, n do
    local value = rawget(t, i)
    if value == nil then break end
    in_array[i] = true
    if i > limit then
      texts[#texts + 1] = ("... %d items"):format(n)
      return texts
    end
    texts[i] = write(value, state, indent, indent)
  end
  for _, key in ipairs(keys_of(t, in_array)) do
    if #texts >= limit then
      texts[#texts + 1] = "..."
      break
    end
    local name = key_text(key, state, indent)
    local value
    if ordered then value = t[key] else value = rawget(t, key) end
    texts[#texts + 1] = name .. " = " .. write(value, state, indent, indent + #name + 3)
  end
  return texts
end

local function write_table(t, state, indent, column)
  local name = metafield(t, "__name")
  name = type(name) == "string" and name .. " " or ""
  if state.open[t] then return "{--[[ itself, " .. state.depth - state.open[t] .. " up ]]}" end
  if next(t) == nil then return name .. "{}" end
  if state.depth >= limits.depth then return name .. "{...}" end
  state.open[t] = state.depth
  state.depth = state.depth + 1
  local texts = items(t, state, indent + 2)
  state.depth = state.depth - 1
  state.open[t] = nil

  local line = name .. "{" .. table.concat(texts, ", ") .. "}"
  if #line + column <= style.width() and not line:find("\n", 1, true) then return line end
  local space = (" "):rep(indent + 2)
  return name .. "{\n" .. space .. table.concat(texts, ",\n" .. space) .. ",\n"
    .. (" "):rep(indent) .. "}"
end

-- The text of a value that starts at `column` of a line whose own text starts at `indent`.
function write(value, state, indent, column)
  local kind = type(value)
  if kind == "string" then return quote(value) end
  if kind == "table" and not metafield(value, "__tostring") then
    return write_table(value, state, indent, column)
  end
  if kind == "function" then return describe_function(value) end
  return indent_lines(tostring(value), column)
end

--- The text of one value.
function show.value(value)
  return write(value, {open = {}, depth = 0}, 0, 0)
end

--- The text of several results: on one line with tabs where they are short, else a line each.
function show.values(...)
  local texts, one_line, width = {}, true, 0
  for i = 1, select("#", ...) do
    texts[i] = show.value((select(i, ...)))
    width = width + #texts[i] + 4
    one_line = one_line and not texts[i]:find("\n", 1, true)
  end
  return table.concat(texts, one_line and width < style.width() and "\t" or "\n")
end

return show
