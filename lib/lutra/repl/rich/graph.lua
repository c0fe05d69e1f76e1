--- The autograd graph of a tensor as text and as an SVG picture: for :grad, lt.display and
-- notebooks.

local graph = require "lutra.internal.plot.graph"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local drawn = {}

local NODES = 150 -- the maximum number of nodes of a picture

--- Returns a graph (lutra.internal.plot.graph) as at most `limit` lines, with a note on its size.
function drawn.text(g, limit)
  local lines, shown = require("lutra.internal.plot.graph_text").lines(g,
    {limit = limit, width = style.width() - 1, utf8 = texts.is_utf8(), paint = style.paint})
  if shown < g.total then
    lines[#lines + 1] = ("... %s"):format(texts.plural(g.total - shown, "more node"))
  end
  if #g.nodes == g.total then
    lines[#lines + 1] = style.paint("faint", ("%s, %s, saves %s"):format(
      texts.plural(g.total, "node"), #g.leaves == 1 and "1 leaf" or #g.leaves .. " leaves",
      texts.bytes(graph.saved(g))))
  end
  return table.concat(lines, "\n")
end

--- Returns the picture of the graph of tensor x, of its nearest 150 nodes. name_of(leaf tensor)
-- returns its name or nil.
function drawn.svg(x, title, name_of)
  return require("lutra.internal.plot.graph_svg").text(graph.read(x, NODES, name_of), title)
end

return drawn
