--- Curves, points and histograms of tensors: for :plot, lt.display and notebooks.

local host = require "lutra.repl.host"
local inspect = require "lutra.repl.inspect"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local plot = {}

local DOTS = 560 -- dots of a picture in width

local ROWS = 8 -- the maximum number of curves of a matrix
local BINS, WHOLE = 12, 30 -- bins of a histogram; the maximum number of integers with a bin each
local colors = {"name", "string", "error", "keyword", "number", "warning"} -- of style.paint

local function fail(message, ...) error("plot: " .. message:format(...), 0) end

local function data() return require "lutra.internal.plot.data" end

-- Returns the columns and rows of a plot in the terminal.
local function size()
  local _, rows = host.terminal_size()
  return style.width() - 1, math.max(6, math.min(20, (rows or 24) - 4))
end

local function color(i) return colors[(i - 1) % #colors + 1] end

-- Returns the note on values that are gaps, such as "3 values are not finite".
local function not_finite(tensors)
  local bad = 0
  for _, t in ipairs(tensors) do bad = bad + select(3, data().range(t)) end
  if bad == 0 then return nil end
  return bad == 1 and "1 value is not finite" or texts.count(bad) .. " values are not finite"
end

local function check_option(name, value, least, most)
  local n = math.tointeger(tonumber(value))
  if not n or n < least or n > most then
    fail("expected an integer from %d to %d for option --%s, got \"%s\"", least, most, name, value)
  end
  return n
end

-- Returns the range of a histogram and its number of bins: as given, or for few integers one each.
local function parts_of(t, lo, hi, asked)
  if asked then
    local from, to = require("lutra.internal.plot.axes").range(lo, hi)
    return from, to, check_option("bins", asked, 1, 200)
  end
  local few = not t:is_floating_point() and hi + 0.0 - lo < WHOLE
  if few then return lo, hi + 1.0, hi - lo + 1 end
  if lo == hi then return lo, hi, 1 end
  return lo, hi, BINS
end

-- Returns the finite values of a tensor to count, their range, the number of bins, and the number
-- of other values.
local function counted(t, options)
  t = t:reshape(-1)
  local lo, hi, bad = data().range(t)
  if t:numel() == 0 then fail "cannot plot an empty tensor" end
  if not lo then fail("cannot plot %s: none is finite", texts.plural(t:numel(), "value")) end
  local from, to, bins = parts_of(t, lo, hi, options.bins)
  t = data().float(t)
  if bad > 0 then t = t:masked_select(require("lutra").isfinite(t)) end
  return t, from, to, bins, bad
end

local function draw_histogram(value, options)
  local histogram = require "lutra.internal.plot.histogram"
  local t, from, to, bins, bad = counted(value, options)
  local width = size()
  local lines = histogram.lines(histogram.edges(from, to, bins),
    data().counts(t, from, to, bins), {
      width = width, utf8 = texts.is_utf8(),
      paint = function(text) return style.paint("name", text) end,
    })
  return lines, bad > 0 and texts.plural(bad, "value") .. " not finite" or nil
end

-- Returns the series of two results, x and y, for a plot of so many dots, and a list of both.
local function series_of_pair(x, y, options, columns, rows)
  if x.ndim ~= 1 or y.ndim ~= 1 or x:numel() ~= y:numel() then
    fail("expected x and y with one dimension and as many elements, got shapes %s and %s",
      inspect.shape(x), inspect.shape(y))
  end
  local s = data().scatter(x, y, columns, rows)
  s.color, s.scattered = color(1), options.points ~= nil
  return {s}, {x, y}
end

-- Returns the series of one result, a curve, or one per row, for a plot of so many dots in width;
-- the list of the tensors that are drawn; and of a matrix the number of rows.
local function series_of_one(t, options, dots)
  if t.ndim == 0 then t = t:reshape(1) end
  if t.ndim > 2 then
    fail("expected a tensor of 1 or 2 dimensions, got %d\nhint: :plot x[1], or :image x", t.ndim)
  end
  local tensors, series = {}, {}
  for i = 1, t.ndim == 2 and math.min(t:size(1), ROWS) or 1 do
    tensors[i] = t.ndim == 2 and t:select(1, i) or t
    series[i] = data().curve(tensors[i], dots)
    series[i].color, series[i].scattered = color(i), options.points ~= nil
  end
  return series, tensors, t.ndim == 2 and t:size(1) or nil
end

local function legend(count, shown)
  local names = {}
  for i = 1, shown do names[i] = style.paint(color(i), "row " .. i) end
  if count > shown then names[#names + 1] = ("of %d"):format(count) end
  return table.concat(names, " ")
end

-- Returns what to draw of one or two results: see series_of_one.
local function series_of(values, options, columns, rows)
  local first = data().tensor(values[1], "plot")
  if values.n < 2 then return series_of_one(first, options, columns) end
  return series_of_pair(first, data().tensor(values[2], "plot"), options, columns, rows)
end

local function draw_chart(values, options)
  local width, height = size()
  local chart, is_utf8 = require "lutra.internal.plot.chart", texts.is_utf8()
  local series, tensors, rows = series_of(values, options, chart.dots(width, is_utf8),
    height * (is_utf8 and 4 or 2))
  local lines = chart.lines(series, {
    width = width, height = height, utf8 = is_utf8, paint = style.paint, whole = values.n == 1,
  })
  if not lines then
    local is_empty = not tensors[1] or tensors[1]:numel() == 0
    fail(is_empty and "cannot plot an empty tensor"
      or "cannot plot the tensor: it has no finite value")
  end
  if rows then lines[#lines + 1] = legend(rows, #series) end
  return lines, not_finite(tensors)
end

--- Returns the plot of one or two results (packed) as text for the terminal, with the options of
-- :plot. Raises an error for values that cannot be drawn.
function plot.text(values, options)
  if values.n < 1 or values.n > 2 then
    fail("expected y, or x and y, got %s", texts.plural(values.n, "value"))
  end
  local lines, note = require("lutra").no_grad(function()
    if options.hist or options.bins then
      return draw_histogram(data().tensor(values[1], "plot"), options)
    end
    return draw_chart(values, options)
  end)
  if note then lines[#lines + 1] = style.paint("faint", note) end
  return table.concat(lines, "\n")
end

-- Returns the coordinates of a series; NaN is a gap.
local function coordinates(series)
  local xs, ys, nan = {}, {}, 0 / 0
  local function add(x, y) xs[#xs + 1], ys[#ys + 1] = x or nan, y or nan end
  for _, p in ipairs(series.points or series.cloud or {}) do add(p[1], p[2]) end
  for _, bar in ipairs(series.bars or {}) do
    add(bar[1], bar[2])
    add(bar[1], bar[3])
  end
  return xs, ys
end

-- Returns the figure of one or two results.
local function figure_of(values, options)
  local figure = require("lutra.plot.figure").new()
  if options.hist or options.bins then
    local t, from, to, bins = counted(data().tensor(values[1], "plot"), options)
    return figure:hist(t, {bins = bins, range = from < to and {from, to} or nil})
  end
  local series, _, rows = series_of(values, options, DOTS, DOTS)
  for i, s in ipairs(series) do
    local xs, ys = coordinates(s)
    local add = (s.scattered or s.cloud) and figure.scatter or figure.line
    add(figure, xs, ys, {label = rows and "row " .. i or nil})
  end
  return figure
end

--- Returns the same plot as the text of an SVG picture.
function plot.svg(values, options)
  return require("lutra").no_grad(function() return figure_of(values, options):svg() end)
end

return plot
