--- plot.Figure: the series of a plot, which is drawn as text, SVG or PNG.

local lt = require "lutra"
local args = require "lutra.internal.args"
local axes = require "lutra.internal.plot.axes"
local atomic_file = require "lutra.internal.atomic_file"
local colors = require "lutra.plot.colors"
local contours = require "lutra.plot.contours"
local data = require "lutra.internal.plot.data"
local pixels = require "lutra.internal.plot.pixels"
local scene = require "lutra.plot.scene"

local Figure = {__name = "Figure"}
Figure.__index = Figure

local COMMON = ", string? title = nil, string? xlabel = nil, string? ylabel = nil, "
  .. "string? xscale = nil, string? yscale = nil, floats? xlim = nil, "
  .. "floats? ylim = nil"
local STYLE = ", string? label = nil, any? color = nil"
local IMAGE = 128 -- pixels of the longer side of a heat map that are drawn

-- Returns a figure without series. `extent` are values of x and of y that the axes contain beside
-- those of the series.
function Figure.new()
  return setmetatable({series = {}, extent = {{}, {}},
    options = {xscale = "linear", yscale = "linear"}}, Figure)
end

-- Stores the common options of a call that are given.
local function set_options(self, title, xlabel, ylabel, xscale, yscale, xlim, ylim)
  local o = self.options
  for name, value in pairs{title = title, xlabel = xlabel, ylabel = ylabel, xlim = xlim,
    ylim = ylim} do
    o[name] = value
  end
  for name, limits in pairs{xlim = xlim, ylim = ylim} do
    args.check(#limits == 2 and limits[1] < limits[2],
      "plot: expected {low, high} for argument '%s'", name)
  end
  for name, scale in pairs{xscale = xscale, yscale = yscale} do
    args.check(scale == "linear" or scale == "log",
      "plot: expected 'linear' or 'log' for argument '%s', got %q", name, scale)
    o[name] = scale
  end
end

-- Returns a tensor or a list as a tensor on the CPU.
local function tensor_of(title, name, value)
  local ok, t = pcall(data.tensor, value, title)
  if not ok then args.fail("%s", tostring(t):gsub("^.-: cannot", title .. ": cannot", 1)) end
  args.check(not t.dtype:find "complex", "%s: expected real numbers for argument '%s'", title, name)
  return t:to("cpu"):to "float64"
end

-- Returns a vector as a list of numbers.
local function numbers_of(title, name, value)
  local t = tensor_of(title, name, value)
  args.check(t.ndim <= 1, "%s: expected 1 dimension for argument '%s', got shape %s", title, name,
    t.shape)
  return t:reshape(-1):totable()
end

-- Adds a series with the next color of the palette.
local function add(self, series, label, color)
  args.check(not self.image_data, "plot: cannot add a series to an image")
  local i = #self.series + 1
  series.label, series.color = label, color or colors.of(i)
  series.kind_of_color = colors.kind(i)
  self.series[i] = series
  return self
end

-- Returns the values of a call of line or scatter as lists x and y.
local function pair(title, x, y)
  if y == nil then x, y = nil, x end
  local ys = numbers_of(title, "y", y)
  local xs = x ~= nil and numbers_of(title, "x", x) or nil
  args.check(not xs or #xs == #ys, "%s: expected as many x as y, got %d and %d", title,
    xs and #xs or 0, #ys)
  local points = {}
  for i, v in ipairs(ys) do points[i] = {xs and xs[i] or i, v} end
  return points
end

local XY = "list|Tensor x, list|Tensor? y = nil" .. STYLE .. COMMON
local parse_line = args.signature("line", XY)
local parse_scatter = args.signature("scatter", XY)

--- Adds a curve through the points (x, y), vectors or lists of numbers; with one of them it is y,
-- over 1 to n. NaN and infinities are gaps, on logarithmic axes also numbers up to 0. Returns the
-- figure. Options: label (in the legend), color (a name, "#rrggbb" or {r, g, b}), and those of the
-- figure: title, xlabel, ylabel, xscale and yscale ("linear" or "log"), xlim and ylim, {low, high}.
function Figure:line(...)
  local x, y, label, color, title, xlabel, ylabel, xscale, yscale, xlim, ylim = parse_line(...)
  color = colors.parse("line", color)
  add(self, {kind = "line", points = pair("line", x, y)}, label, color)
  set_options(self, title, xlabel, ylabel, xscale, yscale, xlim, ylim)
  return self
end

--- Adds points (x, y): see Figure:line.
function Figure:scatter(...)
  local x, y, label, color, title, xlabel, ylabel, xscale, yscale, xlim, ylim = parse_scatter(...)
  color = colors.parse("scatter", color)
  add(self, {kind = "scatter", points = pair("scatter", x, y)}, label, color)
  set_options(self, title, xlabel, ylabel, xscale, yscale, xlim, ylim)
  return self
end

local parse_hist = args.signature("hist", "list|Tensor x, int(>=1) bins = 10, floats? range = nil"
  .. STYLE .. COMMON)

--- Adds a histogram of the finite values of x, of any shape: their numbers in `bins` equal parts of
-- `range`, {low, high}, that of the values by default. Options: see Figure:line.
function Figure:hist(...)
  local x, bins, range, label, color, title, xlabel, ylabel, xscale, yscale, xlim, ylim =
    parse_hist(...)
  color = colors.parse("hist", color)
  local t = tensor_of("hist", "x", x):reshape(-1)
  t = t:masked_select(lt.isfinite(t))
  args.check(not range or #range == 2 and range[1] < range[2],
    "hist: expected {low, high} for argument 'range'")
  args.check(range or t:numel() > 0, "hist: expected a finite value for argument 'x', got none")
  local lo, hi = axes.range(range and range[1] or t:min():item(), range and range[2]
    or t:max():item())
  t = t:masked_select(t:ge(lo):logical_and(t:le(hi)))
  local bars, counts = {}, data.counts(t, lo, hi, bins)
  for i, count in ipairs(counts) do
    local from, to = axes.at(lo, hi, (i - 1) / bins), axes.at(lo, hi, i / bins)
    bars[i] = {from, to, count, name = ("%.4g .. %.4g"):format(from, to)}
  end
  add(self, {kind = "bars", bars = bars}, label, color)
  set_options(self, title, xlabel, ylabel, xscale, yscale, xlim, ylim)
  return self
end

local parse_bar = args.signature("bar", "list|Tensor x, list|Tensor? height = nil" .. STYLE
  .. COMMON)

--- Adds bars of the heights: over the numbers or names x, or with one argument over 1 to n.
-- Options: see Figure:line.
function Figure:bar(...)
  local x, height, label, color, title, xlabel, ylabel, xscale, yscale, xlim, ylim = parse_bar(...)
  color = colors.parse("bar", color)
  local heights = numbers_of("bar", "height", height == nil and x or height)
  local names = height ~= nil and x or nil
  local is_named = type(names) == "table" and type(names[1]) == "string"
  if names and not is_named then names = numbers_of("bar", "x", names) end
  args.check(not names or #names == #heights, "bar: expected as many x as heights, got %d and %d",
    names and #names or 0, #heights)
  local bars, categories = {}, {}
  for i, h in ipairs(heights) do
    local at = names and not is_named and names[i] or i
    local name = is_named and tostring(names[i]) or ("%g"):format(at)
    bars[i] = {at - 0.4, at + 0.4, h == h and math.abs(h) < math.huge and h or 0, name = name}
    categories[i] = {value = at, text = name}
  end
  add(self, {kind = "bars", bars = bars}, label, color)
  if is_named then self.categories = categories end
  set_options(self, title, xlabel, ylabel, xscale, yscale, xlim, ylim)
  return self
end

local function set_image(self, rows, range)
  args.check(#self.series == 0 and not self.image_data,
    "plot: cannot add an image to a figure with other series")
  self.image_data = {rows = rows, range = range}
end

local parse_image = args.signature("image", "Tensor input" .. COMMON)

--- Draws an image, {H, W}, {C, H, W} or {H, W, C} with 1, 3 or 4 channels: bytes, or floats from 0
-- to 1 (other ranges are scaled). Returns the figure.
function Figure:image(...)
  local x, title, xlabel, ylabel = parse_image(...)
  local rows = lt.no_grad(function()
    local ok, list = pcall(pixels.split, x:detach():cpu(), 1)
    if not ok then args.fail("%s", tostring(list)) end
    local lo, hi = pixels.range(list)
    local w, h = pixels.fit(list[1]:size(3), list[1]:size(2), 4 * IMAGE, 4 * IMAGE)
    return pixels.rows(pixels.scale(list[1], lo, hi, w, h))
  end)
  for _, row in ipairs(rows) do
    for i, v in ipairs(row) do if type(v) == "number" then row[i] = {v, v, v} end end
  end
  set_image(self, rows)
  set_options(self, title, xlabel, ylabel)
  return self
end

-- Returns a matrix as a list of rows.
local function matrix_of(title, name, value)
  local z = tensor_of(title, name, value)
  args.check(z.ndim == 2 and z:numel() > 0,
    "%s: expected a matrix for argument '%s', got shape %s", title, name, z.shape)
  return z
end

local parse_heatmap = args.signature("heatmap", "list|Tensor z, float? vmin = nil, "
  .. "float? vmax = nil" .. COMMON)

--- Draws a matrix {H, W} as colors from vmin to vmax, by default its least and largest finite
-- value; NaN is white. Row 1 is at the top.
function Figure:heatmap(...)
  local value, low, high, title, xlabel, ylabel = parse_heatmap(...)
  local z = matrix_of("heatmap", "z", value)
  local least, most = data.range(z)
  local lo, hi = axes.range(low or least or 0, high or most or 1)
  local stride = math.ceil(math.max(z:size(1), z:size(2)) / IMAGE)
  local rows = {}
  for r = 1, z:size(1), stride do
    local row, list = {}, z[r]:totable()
    for c = 1, #list, stride do
      row[#row + 1] = colors.map(list[c] == list[c] and axes.share(list[c], lo, hi) or 0 / 0)
    end
    rows[#rows + 1] = row
  end
  set_image(self, rows, {lo, hi})
  set_options(self, title, xlabel, ylabel)
  return self
end

local parse_contour = args.signature("contour", "list|Tensor x, list|Tensor? y = nil, "
  .. "list|Tensor? z = nil, int|floats levels = 7" .. COMMON)

--- Adds the contour lines of a matrix z {H, W}, over the vectors x {W} and y {H}; with one argument
-- it is z, over 1 to W and 1 to H, which are the ends of the axes. `levels` is their number or a
-- list of values; a constant matrix has no lines. Options: see Figure:line.
function Figure:contour(...)
  local x, y, z, levels, title, xlabel, ylabel, xscale, yscale, xlim, ylim = parse_contour(...)
  if z == nil then
    args.check(y == nil, "contour: expected x, y and z, or z, got two of them")
    x, z = nil, x
  end
  local m = matrix_of("contour", "z", z)
  local h, w = m:size(1), m:size(2)
  local function places(name, value, n)
    if value == nil then return lt.arange(n, {device = "cpu"}):totable() end
    local list = numbers_of("contour", name, value)
    args.check(#list == n, "contour: expected %d numbers for argument '%s', got %d", n, name, #list)
    return list
  end
  local xs, ys = places("x", x, w), places("y", y, h)
  if type(levels) == "number" then
    local lo, hi = data.range(m)
    args.check(lo, "contour: expected a finite value for argument 'z', got none")
    local list = {}
    for i = 1, lo < hi and levels or 0 do list[i] = axes.at(lo, hi, i / (levels + 1)) end
    levels = list
  end
  for d, list in ipairs{xs, ys} do
    for _, v in ipairs(list) do table.insert(self.extent[d], v) end
  end
  local grid = m:totable()
  for i, level in ipairs(levels) do
    add(self, {kind = "line", points = contours.points(grid, xs, ys, level)},
      ("%.4g"):format(level), colors.map(#levels > 1 and (i - 1) / (#levels - 1) * 0.9 or 0.5))
  end
  set_options(self, title, xlabel, ylabel, xscale, yscale, xlim, ylim)
  return self
end

-- ---- drawing

-- Returns log10 of a positive finite number, else nil; for linear axes finite numbers.
local function mapping(scale)
  return function(v)
    if not v or v ~= v or math.abs(v) == math.huge then return nil end
    if scale == "linear" then return v end
    return v > 0 and math.log(v, 10) or nil
  end
end

-- Returns the range of an axis: as given, or that of the values.
local function range_of(limits, map, values)
  local lo, hi
  for _, v in ipairs(values) do
    if not lo or v < lo then lo = v end
    if not hi or v > hi then hi = v end
  end
  if limits then lo, hi = map(limits[1]) or lo, map(limits[2]) or hi end
  return {axes.range(lo or 0, hi or 1)}
end

-- Returns the shares of the segment from p to q at which it enters and leaves the ranges x and y;
-- nil where it is outside (Liang and Barsky 1984).
local function inside(p, q, x, y)
  local first, last = 0.0, 1.0
  for d, range in ipairs{x, y} do
    local from, length = p[d], q[d] - p[d]
    if length == 0 then
      if from < range[1] or from > range[2] then return nil end
    else
      local a, b = (range[1] - from) / length, (range[2] - from) / length
      first, last = math.max(first, math.min(a, b)), math.min(last, math.max(a, b))
    end
  end
  if first <= last then return first, last end
end

-- Returns the parts of a curve inside the ranges x and y, with gaps between them.
local function clipped_line(points, x, y)
  local list = {}
  local function put(p, q, share)
    list[#list + 1] = {p[1] + (q[1] - p[1]) * share, p[2] + (q[2] - p[2]) * share}
  end
  for i, p in ipairs(points) do
    local q = points[i + 1]
    if p[1] and inside(p, p, x, y) then list[#list + 1] = p end
    local first, last
    if p[1] and q and q[1] then first, last = inside(p, q, x, y) end
    if first and first > 0 and first < last then put(p, q, first) end
    if not first or last < 1 then
      if first and first < last then put(p, q, last) end
      list[#list + 1] = {}
    end
  end
  return list
end

-- Limits the series to the ranges of the axes: parts of curves, points and bars.
local function clip(view)
  local x, y = view.x, view.y
  for _, s in ipairs(view.series) do
    if s.kind == "line" then
      s.points = clipped_line(s.points, x, y)
    else
      for i, p in ipairs(s.points or {}) do
        if p[1] and not inside(p, p, x, y) then s.points[i] = {} end
      end
    end
    local bars = {}
    for _, b in ipairs(s.bars or {}) do
      if b[2] > x[1] and b[1] < x[2] then
        bars[#bars + 1] = {math.max(b[1], x[1]), math.min(b[2], x[2]),
          math.max(math.min(b[3], y[2]), y[1]), name = b.name, value = b.value}
      end
    end
    if s.bars then s.bars = bars end
  end
end

-- Returns the view of the figure: see lutra.plot.scene.
local function view_of(self)
  local o = self.options
  local view = {title = o.title, xlabel = o.xlabel, ylabel = o.ylabel, series = {},
    image = self.image_data, categories = self.categories}
  if view.image then return view end
  local map_x, map_y = mapping(o.xscale), mapping(o.yscale)
  local xs, ys = {}, {}
  for _, v in ipairs(self.extent[1]) do xs[#xs + 1] = map_x(v) end
  for _, v in ipairs(self.extent[2]) do ys[#ys + 1] = map_y(v) end
  for i, s in ipairs(self.series) do
    local new = setmetatable({}, {__index = s})
    if s.points then
      new.points = {}
      for k, p in ipairs(s.points) do
        local x, y = map_x(p[1]), map_y(p[2])
        new.points[k] = x and y and {x, y} or {}
        if x and y then xs[#xs + 1], ys[#ys + 1] = x, y end
      end
    else
      new.bars = {}
      for _, b in ipairs(s.bars) do
        local x1, x2, y = map_x(b[1]), map_x(b[2]), map_y(b[3])
        if x1 and x2 and y then
          new.bars[#new.bars + 1] = {x1, x2, y, name = b.name, value = b[3]}
          xs[#xs + 1], xs[#xs + 2], ys[#ys + 1] = x1, x2, y
          -- The axis of a bar is 0, with logarithms the power of ten below it.
          ys[#ys + 1] = o.yscale == "linear" and 0 or math.ceil(y) - 1
        end
      end
    end
    view.series[i] = new
  end
  view.x, view.y = range_of(o.xlim, map_x, xs), range_of(o.ylim, map_y, ys)
  if o.xlim or o.ylim then clip(view) end
  for _, s in ipairs(view.series) do
    if s.bars then s.floor = math.max(view.y[1], o.yscale == "linear" and 0 or view.y[1]) end
  end
  view.x_ticks = o.xscale == "log" and scene.log_ticks or axes.ticks
  view.y_ticks = o.yscale == "log" and scene.log_ticks or axes.ticks
  return view
end

local parse_size = "int(>=100) width = 640, int(>=100) height = 440"
local parse_svg = args.signature("svg", parse_size)

--- Returns the figure as the text of an SVG picture of that size in pixels.
function Figure:svg(...)
  local width, height = parse_svg(...)
  local pen = require("lutra.plot.svg_pen").new(width, height)
  scene.draw(pen, view_of(self))
  return pen:finish(self.options.title or "plot")
end

local parse_pixels = args.signature("pixels", parse_size)

--- Returns the figure as an image, uint8 {3, height, width}.
function Figure:pixels(...)
  local width, height = parse_pixels(...)
  local pen = require("lutra.plot.raster_pen").new(width, height)
  scene.draw(pen, view_of(self))
  return pen:finish()
end

local parse_save = args.signature("save", "string path, " .. parse_size)

--- Writes the figure to a file: SVG, PNG (by libpng) or text, by the end of its name: .svg, .png or
-- .txt. The size is in pixels. Raises an error for any other name.
function Figure:save(...)
  local path, width, height = parse_save(...)
  args.path("save", "path", path)
  local kind = (path:match "%.(%w+)$" or ""):lower()
  if kind == "png" then return lt.vision.io.write_png(self:pixels(width, height), path) end
  args.check(kind == "svg" or kind == "txt",
    "save: expected a file name that ends in .svg, .png or .txt for argument 'path', got %q", path)
  local text = kind == "svg" and self:svg(width, height) or tostring(self) .. "\n"
  local ok, why = atomic_file.write(path, function(put) put(text) end)
  if not ok then args.fail("save: cannot write %s", why) end
end

--- Returns the figure as text for the terminal.
function Figure:__tostring() return require("lutra.plot.terminal").text(view_of(self)) end

-- In a notebook a figure is shown as SVG.
function Figure:__mimebundle()
  return {["image/svg+xml"] = require("lutra.internal.plot.svg").scoped(self:svg())}
end

return Figure
