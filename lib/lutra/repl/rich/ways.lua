--- The ways to show a value that lt.display takes by name, {as = "image"}.
--
-- Each is a function of the value, which returns the text for the terminal and a function that
-- returns the other forms as strings by MIME type. They raise errors for values of other types.

local args = require "lutra.internal.args"
local core = require "lutra.core"

local ways = {}

-- The limits of the text of a graph, as those of :grad.
local LINES, NODES = 60, 1000

-- Raises an error for tensors that cannot be drawn: freed and complex ones.
local function check_drawn(value)
  args.check(not core._is_freed(value), "display: cannot draw a tensor that was freed")
  args.check(not core.is_tensor(value) or not value:is_complex(),
    "display: expected a real tensor for argument 'value', got \"%s\"\nhint: x:abs() or x.real",
    core.is_tensor(value) and value.dtype or "")
end

local function picture(svg)
  return {["image/svg+xml"] = require("lutra.internal.plot.svg").scoped(svg)}
end

local function as_plot(value, options)
  check_drawn(value)
  local plot, values = require "lutra.repl.rich.plot", {n = 1, value}
  return plot.text(values, options), function() return picture(plot.svg(values, options)) end
end

--- A tensor or a list of numbers as a curve.
function ways.plot(value) return as_plot(value, {}) end

--- A tensor or a list of numbers as points.
function ways.points(value) return as_plot(value, {points = true}) end

--- A tensor or a list of numbers as a histogram.
function ways.hist(value) return as_plot(value, {hist = true}) end

--- A tensor as an image.
function ways.image(value)
  check_drawn(value)
  local image = require "lutra.repl.rich.image"
  return image.text(value), function() return {["image/png"] = image.png(value)} end
end

-- Names no leaf of a graph.
local function nameless() end

--- The autograd graph of a tensor.
function ways.graph(x)
  local has_graph = core.is_tensor(x) and not core._is_freed(x) and not x.is_leaf
  args.expect(has_graph, "display", "a tensor with an autograd graph", "value", x)
  local graph = require "lutra.repl.rich.graph"
  local read = require("lutra.internal.plot.graph").read(x, NODES, nameless)
  return graph.text(read, LINES), function()
    return picture(graph.svg(x, "autograd graph", nameless))
  end
end

--- A module or nested tables as a tree.
function ways.tree(value)
  args.expect(type(value) == "table", "display", "a module or a table", "value", value)
  local tree = require "lutra.repl.rich.tree"
  return tree.text(value), function() return {["text/html"] = tree.html(value)} end
end

--- The text of the prompt, and no other form.
function ways.text(value)
  return require("lutra.repl.format_value").value(value), function() return {} end
end

return ways
