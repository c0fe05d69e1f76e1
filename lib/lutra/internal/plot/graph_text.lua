--- An autograd graph as lines of text.
--
-- The longest path stays in its column, so that a deep network is a flat list; branches are
-- indented. A node with several edges to it gets a number, is written at the last of them, and is
-- referenced by the others, so that each node appears once, below all that use it.

local texts = require "lutra.internal.text"

local graph_text = {}

local marks = {
  utf8 = {node = "● ", branch = "├─", last = "╰─", down = "│ ", refer = "↓ "},
  ascii = {node = "* ", branch = "|-", last = "`-", down = "| ", refer = "v "},
}

-- Lines consist of pieces {text, kind of color or nil}.
local function node_pieces(state, node)
  local label = node.uses > 1 and " #" .. state.label(node) or ""
  local kept = node.freed and "  freed" or node.saved > 0 and "  saves " .. texts.bytes(node.saved)
  return {node.name, "name"}, {label}, {node.shape and "  " .. node.shape or ""},
    {kept or "", "faint"}
end

local function leaf_pieces(leaf)
  if leaf.cut then return {"..."} end
  return {leaf.name or "leaf", "string"}, {"  " .. leaf.shape}
end

-- Appends a line, truncated to the width.
local function write(state, ...)
  local parts, room = {}, state.width
  for i, piece in ipairs {...} do
    local text = texts.cut(piece[1], math.max(room, 0))
    room = room - texts.width(text)
    parts[i] = piece[2] and text ~= "" and state.paint(piece[2], text) or text
  end
  state.lines[#state.lines + 1] = table.concat(parts)
end

-- Returns the entries below a node: leaves first, then nodes by height, so that the last one
-- continues in the same column.
local function sorted_below(node)
  local list = table.move(node.below, 1, #node.below, 1, {})
  local place = {}
  for i, below in ipairs(list) do place[below] = place[below] or i end
  table.sort(list, function(a, b)
    if a.height ~= b.height then return a.height < b.height end
    return place[a] < place[b]
  end)
  return list
end

-- Pushes the edges of a node on the stack, the first on top.
local function push(state, node, indent)
  local list = sorted_below(node)
  for i = #list, 1, -1 do
    state.stack[#state.stack + 1] = {below = list[i], indent = indent, last = i == #list}
  end
end

-- Processes one edge.
local function step(state, edge)
  local below, m = edge.below, state.marks
  local start = edge.indent .. (edge.last and m.last or m.branch)
  if not below.number then return write(state, {start .. " "}, leaf_pieces(below)) end
  state.left[below] = (state.left[below] or below.uses) - 1
  if state.left[below] > 0 then
    return write(state, {start .. m.refer}, {("%s #%d"):format(below.name, state.label(below))})
  end
  state.written = state.written + 1
  push(state, below, edge.last and edge.indent or edge.indent .. m.down)
  return write(state, {(edge.last and edge.indent or start) .. m.node}, node_pieces(state, below))
end

local function labels()
  local numbers, count = {}, 0
  return function(node)
    if not numbers[node] then
      count = count + 1
      numbers[node] = count
    end
    return numbers[node]
  end
end

--- Returns the lines of a graph (lutra.internal.plot.graph), at most `limit`, and the number of
-- nodes in them. options: limit, width, utf8, paint(kind, text).
function graph_text.lines(g, options)
  local state = {
    lines = {}, stack = {}, left = {}, written = 0, limit = options.limit, width = options.width,
    paint = options.paint, marks = options.utf8 and marks.utf8 or marks.ascii,
    label = labels(),
  }
  local first = g.nodes[1]
  if not first then return {}, 0 end
  first.uses = 1
  state.stack[1] = {below = first, indent = "", last = true}
  while #state.stack > 0 and #state.lines < state.limit do
    step(state, table.remove(state.stack))
  end
  return state.lines, state.written
end

return graph_text
