--- The command :plot: curves, points and histograms in the terminal and in notebooks.

local command_line = require "lutra.repl.command_line"
local inspect = require "lutra.repl.inspect"

local plot = {}

--- `:plot x` draws a tensor or a list of numbers over 1..n, the rows of a matrix as up to eight
-- curves; `:plot x, y` draws y over x, with --points as points. --hist draws a histogram, --bins N
-- sets its number of bins. Values that are not finite are gaps. For a long tensor each column
-- shows the least and the largest value, computed on its device. In a
-- notebook the plot is an SVG picture.
function plot.plot(session, text)
  local expression, options = command_line.options("plot", text,
    {hist = "flag", bins = "value", points = "flag"})
  local values = inspect.values(session, "plot", expression)
  local rich = require "lutra.repl.rich.plot"
  require("lutra.repl.rich.show")(rich.text(values, options), function()
    return {["image/svg+xml"] = rich.svg(values, options)}
  end)
end

return plot
