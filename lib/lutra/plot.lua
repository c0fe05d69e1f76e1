--- lt.plot: plots of tensors in the terminal, as SVG and as PNG.
--
--     local p = lt.plot.line(losses, {label = "loss", xlabel = "step", yscale = "log"})
--     p:line(validation, {label = "validation"})
--     print(p)
--     p:save "loss.svg"
--
-- Each function makes a figure with one series; the figure's methods of the same names add more.

local Figure = require "lutra.plot.figure"

local plot = {}

--- plot.line(x, y = nil, {label, color, title, xlabel, ylabel, xscale, yscale, xlim, ylim}): a
-- figure with a curve: see Figure:line.
function plot.line(...) return Figure.new():line(...) end

--- plot.scatter(x, y = nil, options): a figure with points: see Figure:line.
function plot.scatter(...) return Figure.new():scatter(...) end

--- plot.hist(x, bins = 10, options): a figure with a histogram: see Figure:hist.
function plot.hist(...) return Figure.new():hist(...) end

--- plot.bar(x, height = nil, options): a figure with bars: see Figure:bar.
function plot.bar(...) return Figure.new():bar(...) end

--- plot.image(input, options): a figure with an image: see Figure:image.
function plot.image(...) return Figure.new():image(...) end

--- plot.heatmap(z, vmin = nil, vmax = nil, options): a figure with a matrix as colors: see
-- Figure:heatmap.
function plot.heatmap(...) return Figure.new():heatmap(...) end

--- plot.contour(x, y = nil, z = nil, levels = 7, options): a figure with contour lines: see
-- Figure:contour.
function plot.contour(...) return Figure.new():contour(...) end

--- plot.histogram(x, bins = 10, options): another name of plot.hist.
plot.histogram = plot.hist

--- plot.figure(): a figure without series.
function plot.figure() return Figure.new() end

return require("lutra.internal.strict_table").strict(plot, "plot")
