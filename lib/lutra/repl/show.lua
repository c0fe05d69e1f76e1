--- Values as the prompt prints them.
--
-- Strings are quoted, tables are written as the code that would make them (sorted, cut off at a
-- depth, a number of items and the width of the line), everything with a __tostring by that.
-- Invariant: ends for every value, cyclic tables included, and calls no metamethod but __tostring,
-- __name and those of ordered state dicts (__pairs).

local show = {}

--- Limits; may be changed at the prompt: require("lutra.repl.show").limits.items = 1000.
show.limits = {depth = 4, items = 60, width = 80}

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

local function has_text_of_its_own(value)
  local meta = getmetatable(value)
  return type(meta) == "table" and (meta.__tostring or meta.__name) and true
end

local function indent_lines(text, indent)
  return (text:gsub("\n", "\n" .. (" "):rep(indent)))
end

local write

local function sorted_keys(t, is_array)
  local keys = {}
  for key in next, t do
    if not is_array[key] then keys[#keys + 1] = key end
  end
  table.sort(keys, by_key)
  return keys
end

-- The items of a table as texts, at most limits.items.
local function items(t, state, indent)
  local texts, in_array, n = {}, {}, 0
  local function full()
    if #texts < show.limits.items then return false end
    texts[#texts + 1] = "..."
    return true
  end
  for i = 1, math.huge do
    local value = rawget(t, i)
    if value == nil then break end
    in_array[i] = true
    n = n + 1
    if n > show.limits.items then break end
    texts[#texts + 1] = write(value, state, indent + 2)
  end
  if n > show.limits.items then
    texts[#texts + 1] = ("... %d items"):format(rawlen(t))
    return texts
  end
  for _, key in ipairs(sorted_keys(t, in_array)) do
    if full() then break end
    local name
    if type(key) == "string" and key:match "^[%a_][%w_]*$" and not reserved[key] then
      name = key
    else
      name = "[" .. write(key, state, indent + 2) .. "]"
    end
    texts[#texts + 1] = name .. " = " .. write(rawget(t, key), state, indent + #name + 5)
  end
  return texts
end

local function write_table(t, state, indent)
  if state.open[t] then return "{--[[ itself, " .. state.open[t] .. " up ]]}" end
  if next(t) == nil then return "{}" end
  if state.depth >= show.limits.depth then return "{...}" end
  state.depth = state.depth + 1
  state.open[t] = 0
  for other in pairs(state.open) do state.open[other] = state.open[other] + 1 end
  local texts = items(t, state, indent)
  for other in pairs(state.open) do state.open[other] = state.open[other] - 1 end
  state.open[t] = nil
  state.depth = state.depth - 1

  local line = "{" .. table.concat(texts, ", ") .. "}"
  if #line + indent <= show.limits.width and not line:find("\n", 1, true) then return line end
  local space = (" "):rep(indent + 2)
  return "{\n" .. space .. table.concat(texts, ",\n" .. space) .. ",\n" .. (" "):rep(indent) .. "}"
end

function write(value, state, indent)
  local kind = type(value)
  if kind == "string" then return quote(value) end
  if kind == "table" and not has_text_of_its_own(value) then
    return write_table(value, state, indent)
  end
  if kind == "function" then return describe_function(value) end
  return indent_lines(tostring(value), indent)
end

--- The text of one value.
function show.value(value)
  return write(value, {open = {}, depth = 0}, 0)
end

--- The text of several results: on one line with tabs where they are short, else a line each.
function show.values(...)
  local texts, one_line, width = {}, true, 0
  for i = 1, select("#", ...) do
    texts[i] = show.value((select(i, ...)))
    width = width + #texts[i] + 4
    one_line = one_line and not texts[i]:find("\n", 1, true)
  end
  return table.concat(texts, one_line and width < show.limits.width and "\t" or "\n")
end

return show
