--- A module or nested tables as a tree: as text, and as HTML whose nodes open and close.

local format_value = require "lutra.repl.format_value"
local html = require "lutra.repl.rich.html"
local inspect = require "lutra.repl.inspect"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"
local tree_nodes = require "lutra.repl.tree_nodes"

local tree = {}

local LINES = 400 -- the maximum number of lines
local NODES = 1000 -- the maximum number of nodes
local OPEN = 12 -- trees of up to so many entries of a level are open at first
local OPTIONS = 200 -- the maximum length of the options of a module

-- ---- text

-- Returns a line about a value, and the entries below it.
local function describe(value, kind, state)
  local name, text, entries = tree_nodes.describe(value, kind, state.seen)
  local space = text:find "^%(" and " " or "  "
  return name .. (name ~= "" and text ~= "" and space or "") .. text, entries
end

local branches = {
  utf8 = {"├─ ", "│  ", "└─ ", "   "},
  ascii = {"|- ", "|  ", "`- ", "   "},
}

local function write(state, line)
  if state.left == 0 then return end
  state.left = state.left - 1
  state.lines[#state.lines + 1] = state.left == 0 and "..." or line
end

-- Adds the lines of a value and the entries below it. `first` is the prefix of its line, `rest` of
-- those that follow.
local function show(value, name, kind, first, rest, depth, state)
  if state.left == 0 then return end
  local text, entries = describe(value, kind, state)
  local front = name == "" and "" or name .. "  "
  local below = rest .. (#entries > 0 and state.branch[2] or state.branch[4])
  local used = texts.width(first .. front)
  local wrapped = texts.wrap(text, math.max(style.width() - 1 - used, 12), 0)
  local i = 0
  for line in wrapped:gmatch "[^\n]+" do
    i = i + 1
    write(state, i == 1 and first .. style.paint("name", front) .. line or below .. line)
  end
  if depth >= tree_nodes.DEPTH and #entries > 0 then return write(state, rest .. "...") end
  for k, entry in ipairs(entries) do
    local last = k == #entries
    show(entry[2], entry[1], entry[3], rest .. state.branch[last and 3 or 1],
      rest .. state.branch[last and 4 or 2], depth + 1, state)
  end
end

--- Returns the tree of a value as text for the terminal.
function tree.text(value)
  local branch = texts.is_utf8() and branches.utf8 or branches.ascii
  local state = {seen = {}, left = LINES, branch = branch, lines = {}}
  show(value, "", nil, "", "", 0, state)
  return table.concat(state.lines, "\n")
end

-- ---- HTML

-- Returns the options of a module, as its text has them between brackets; "" when its extra_repr,
-- which the user may define, fails.
local function options_of(module)
  local ok, text = pcall(function() return module:extra_repr() end)
  if not ok or type(text) ~= "string" or text == "" then return "" end
  text = format_value.escape(text)
  return "(" .. (#text > OPTIONS and text:sub(1, OPTIONS - 3) .. "..." or text) .. ")"
end

-- Returns the HTML of a node's line.
local function line(name, class, text)
  local parts = {}
  if name ~= "" then parts[1] = ('<span style="opacity:.7">%s</span>'):format(html.escape(name)) end
  if class ~= "" then parts[#parts + 1] = ("<b>%s</b>"):format(html.escape(class)) end
  if text ~= "" then parts[#parts + 1] = html.escape(text) end
  return table.concat(parts, " ")
end

-- Returns the HTML of a value and the entries below it.
local function node(value, name, kind, depth, state)
  state.left = state.left - 1
  local class, text, entries = tree_nodes.describe(value, kind, state.seen)
  if inspect.is_module(value) then class = class .. options_of(value) end
  local head = line(name, class, text)
  if #entries == 0 then return ('<div>%s</div>'):format(head) end
  local parts = {}
  for _, entry in ipairs(depth < tree_nodes.DEPTH and entries or {}) do
    if state.left <= 0 then break end
    parts[#parts + 1] = node(entry[2], entry[1], entry[3], depth + 1, state)
  end
  if #parts < #entries then parts[#parts + 1] = "<div>…</div>" end
  return html.details(head, table.concat(parts), depth == 0 or depth == 1 and #entries <= OPEN
    and inspect.is_module(value) and state.few)
end

--- Returns the HTML of a module or of a table.
function tree.html(value)
  local class, _, entries = tree_nodes.describe(value, nil, {})
  local state = {seen = {}, left = NODES, few = class ~= "" and #entries <= OPEN}
  return html.block(node(value, "", nil, 0, state))
end

return tree
