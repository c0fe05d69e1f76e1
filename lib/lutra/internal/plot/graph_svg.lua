--- An autograd graph as an SVG picture: layers from the tensor at the top down to the leaves.
--
-- A box is one layer below the lowest box with an edge to it. An edge that spans several layers
-- has a bend in each, so that it does not cross boxes. Within a layer, boxes are ordered by the
-- mean position of the boxes with edges to them.

local escape = require("lutra.internal.plot.svg").escape
local texts = require "lutra.internal.text"

local graph_svg = {}

local LETTER, HEIGHT, GAP_X, GAP_Y, MARGIN = 7.2, 40, 18, 36, 16
local BENDS = 40 -- the maximum number of layers in which an edge has a bend

local function box_texts(item)
  if item.cut then return "...", "" end
  if not item.number then return item.name or "leaf", item.shape end
  local small = item.shape or ""
  if item.freed then
    small = small .. " freed"
  elseif item.saved > 0 then
    small = small .. " saves " .. texts.bytes(item.saved)
  end
  return item.name, small
end

local function new_box(item)
  local name, small = box_texts(item)
  local width = math.max(texts.width(name), texts.width(small)) * LETTER + 16
  return {item = item, name = name, small = small, width = width, above = {}, layer = 1}
end

-- Returns the boxes in order from the top, with their layers, and the edges between them. A leaf
-- has a box for each edge to it, so that a parameter that is used often draws no long lines.
local function place_boxes(g)
  local boxes, list, links = {}, {}, {}
  local function box_of(item)
    local box = boxes[item]
    if not box then
      box = new_box(item)
      list[#list + 1] = box
      if item.number then boxes[item] = box end
    end
    return box
  end
  for i = #g.by_age, 1, -1 do -- a node is older than the nodes with edges to it
    local node = g.by_age[i]
    local box = box_of(node)
    for _, below in ipairs(node.below) do
      local other = box_of(below)
      other.layer = math.max(other.layer, box.layer + 1)
      links[#links + 1] = {box, other}
    end
  end
  return list, links
end

-- Returns the layers as lists of boxes and bends, and the edges as lists of those.
local function make_layers(g)
  local list, links = place_boxes(g)
  local layers, edges = {}, {}
  local function put(box)
    layers[box.layer] = layers[box.layer] or {}
    table.insert(layers[box.layer], box)
  end
  for _, box in ipairs(list) do put(box) end
  for i, link in ipairs(links) do
    local from, to = link[1], link[2]
    local way = {from}
    for layer = from.layer + 1, math.min(to.layer - 1, from.layer + BENDS) do
      local bend = {width = 4, above = {way[#way]}, layer = layer}
      put(bend)
      way[#way + 1] = bend
    end
    table.insert(to.above, way[#way])
    way[#way + 1] = to
    edges[i] = way
  end
  return layers, edges
end

-- Orders each layer by the layer above it and assigns positions to the boxes.
local function lay_out(layers)
  local widest = 0
  for y, layer in ipairs(layers) do
    for i, box in ipairs(layer) do
      local sum = 0
      for _, above in ipairs(box.above) do sum = sum + above.rank end
      box.wish, box.first = #box.above > 0 and sum / #box.above or i, i
    end
    table.sort(layer, function(a, b)
      if a.wish ~= b.wish then return a.wish < b.wish end
      return a.first < b.first
    end)
    local x = 0
    for i, box in ipairs(layer) do
      box.rank, box.x, box.y = i, x + box.width / 2, MARGIN + (y - 1) * (HEIGHT + GAP_Y)
      x = x + box.width + GAP_X
    end
    layer.width = x - GAP_X
    widest = math.max(widest, layer.width)
  end
  for _, layer in ipairs(layers) do
    local shift = MARGIN + (widest - layer.width) / 2
    for _, box in ipairs(layer) do box.x = box.x + shift end
  end
  return widest + 2 * MARGIN, 2 * MARGIN + #layers * (HEIGHT + GAP_Y) - GAP_Y
end

local function edge_path(way)
  local parts = {("M%.1f %.1f"):format(way[1].x, way[1].y + HEIGHT)}
  local x, y = way[1].x, way[1].y + HEIGHT
  local function curve_to(to_x, to_y)
    local middle = (y + to_y) / 2
    parts[#parts + 1] = ("C%.1f %.1f %.1f %.1f %.1f %.1f"):format(x, middle, to_x, middle, to_x,
      to_y)
    x, y = to_x, to_y
  end
  for i = 2, #way do
    curve_to(way[i].x, way[i].y - (i == #way and 2 or 0))
    if i < #way then
      y = way[i].y + HEIGHT
      parts[#parts + 1] = ("L%.1f %.1f"):format(x, y)
    end
  end
  return ('<path class="edge" d="%s"/>'):format(table.concat(parts, " "))
end

local function box_svg(box)
  local class = box.item.number and "node" or "leaf"
  local left = box.x - box.width / 2
  local rect = ('<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%d" rx="6"/>'):format(
    class, left, box.y, box.width, HEIGHT)
  local function text(y, name, what)
    if what == "" then return "" end
    return ('<text class="%s" x="%.1f" y="%.1f">%s</text>'):format(name, box.x, box.y + y,
      escape(what))
  end
  return rect .. text(17, "name", box.name) .. text(32, "small", box.small)
end

local head = [[
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">
<title>%s</title>
<style>
svg { background: #ffffff; }
.node { fill: #e8f0fb; stroke: #3b6ea8; }
.leaf { fill: #eaf6ea; stroke: #4a8a4a; }
.edge { fill: none; stroke: #777777; marker-end: url(#arrow); }
text { font-family: monospace; text-anchor: middle; fill: #222222; }
.name { font-size: 12px; }
.small { font-size: 10px; fill: #555555; }
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><path d="M0 0 L8 4 L0 8 Z" fill="#777777"/></marker></defs>
]]

--- Returns the SVG of a graph (lutra.internal.plot.graph) with a title.
function graph_svg.text(g, title)
  local layers, edges = make_layers(g)
  local width, height = lay_out(layers)
  width, height = math.ceil(width), math.ceil(height)
  local parts = {head:format(width, height, width, height, escape(title))}
  for _, way in ipairs(edges) do parts[#parts + 1] = edge_path(way) .. "\n" end
  for _, layer in ipairs(layers) do
    for _, box in ipairs(layer) do
      if box.item then parts[#parts + 1] = box_svg(box) .. "\n" end
    end
  end
  parts[#parts + 1] = "</svg>\n"
  return table.concat(parts)
end

return graph_svg
