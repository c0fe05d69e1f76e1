-- lt.plot: where values are drawn in SVG, PNG and text, by the definition of the axes; errors.

local lt = require "lutra"
local core = require "lutra.core"

local plot = lt.plot

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return tostring(message)
end

local function contains(text, part) assert.is_truthy(text:find(part, 1, true), text) end
local function lacks(text, part) assert.is_falsy(text:find(part, 1, true), text) end

-- A picture of 640 x 440 pixels has the axes at x 66 to 622 and y 390 (lowest) to 36.
describe("an SVG picture", function()
  it("draws points at their place between the axes", function()
    local svg = plot.line({0, 1, 4}, {title = "a < b", label = "squares"}):svg()
    contains(svg, 'points="66.00,390.00 344.00,301.50 622.00,36.00"')
    contains(svg, "<title>a &lt; b</title>")
    contains(svg, ">squares</text>")
    svg = plot.scatter(lt.tensor{10., 20}, lt.tensor{-1., 1}):svg()
    contains(svg, '<circle cx="66.00" cy="390.00"')
    contains(svg, '<circle cx="622.00" cy="36.00"')
    contains(svg, ">0.0</text>")
  end)

  it("has logarithmic axes", function()
    local p = plot.line({1, 10, 1000}, {1, 100, 10000}, {xscale = "log", yscale = "log"})
    -- log10: 0, 1, 3 of 3 and 0, 2, 4 of 4
    contains(p:svg(), 'points="66.00,390.00 251.33,213.00 622.00,36.00"')
    contains(p:svg(), ">100</text>")
    contains(p:svg(), ">10000</text>")
    local gap = plot.line({1, -1, 10, 100}, {yscale = "log"}):svg() -- no logarithm
    contains(gap, 'points="436.67,213.00 622.00,36.00"')
    contains(gap, '<circle cx="66.00" cy="390.00"')
  end)

  it("has gaps at NaN, infinities and outside the limits", function()
    local svg = plot.line{0, 1, 0 / 0, 3, 4, math.huge, 2, 2}:svg()
    local _, lines = svg:gsub("<polyline", "")
    assert.equal(3, lines)
    svg = plot.line({0, 5, 10}, {ylim = {0, 5}, xlim = {1, 3}}):svg()
    contains(svg, 'points="66.00,390.00 344.00,36.00"')
  end)

  it("draws curves up to the limits", function()
    -- from (1, -10) to (3, 10): inside from (1.5, -5) to (2.5, 5); back to (5, -10): from (3.5, 5)
    -- to (4.5, -5); the segments from (5, -10) to (6, -10) are outside
    local svg = plot.line({1, 3, 5, 6}, {-10, 10, -10, -10}, {ylim = {-5, 5}, xlim = {1, 5}}):svg()
    contains(svg, 'points="135.50,390.00 274.50,36.00"')
    contains(svg, 'points="413.50,36.00 552.50,390.00"')
    local _, lines = svg:gsub("<polyline", "")
    assert.equal(2, lines)
    lacks(svg, "<circle")
    -- a segment whose ends are both outside
    contains(plot.line({0, 10}, {ylim = {2, 4}, xlim = {1, 2}}):svg(),
      'points="177.20,390.00 288.40,36.00"')
  end)

  it("has several series, each in its color", function()
    local p = plot.line({1, 2}, {label = "one"}):line({2, 1}, {label = "two", color = "#ff0000"})
      :scatter({1}, {1}, {color = {1, 2, 3}})
    local svg = p:svg(300, 200)
    contains(svg, 'width="300" height="200"')
    contains(svg, 'stroke="#0072b2"')
    contains(svg, 'stroke="#ff0000"')
    contains(svg, 'fill="#010203"')
    contains(svg, ">two</text>")
  end)

  it("keeps texts inside the picture and apart from each other", function()
    -- labels of the y axis move it to the right
    local svg = plot.line{1e9 + 1, 1e9 + 2}:svg()
    local left = tonumber(svg:match 'points="([%d.]+),')
    assert.is_true(left > 66 + 20, left)
    contains(svg, ">1000000001.5</text>")
    -- names of bars that would touch are omitted
    local names, heights = {}, {}
    for i = 1, 30 do names[i], heights[i] = ("category %02d"):format(i), i end
    local places = {}
    for x in plot.bar(names, heights):svg():gmatch '<text x="([%d.]+)"[^>]*>category' do
      places[#places + 1] = tonumber(x)
    end
    assert.is_true(#places > 3, #places)
    for i = 2, #places do assert.is_true(places[i] - places[i - 1] > 11 * 7, i) end
    -- long titles and labels end in ".."
    svg = plot.line({1, 2}, {title = ("t"):rep(500), label = ("l"):rep(500)}):svg()
    contains(svg, "tt..</text>")
    contains(svg, "ll..</text>")
  end)

  it("has its legend where it covers no curve", function()
    local function place(y)
      local svg = plot.line(y, {label = "name"}):svg()
      local px, py = svg:match '<text x="([%d.]+)" y="([%d.]+)"[^>]*>name<'
      return (tonumber(px) > 344 and "right" or "left")
        .. (tonumber(py) < 213 and " top" or " bottom")
    end
    assert.equal("right top", place{3, 2, 1})
    assert.equal("left top", place{1, 2, 3})
    assert.equal("left bottom", place{3, 2.9, 3})
  end)

  it("draws histograms and bars", function()
    local svg = plot.hist(lt.tensor{0., 0, 0, 1, 2, 4}, 2):svg()
    -- 4 values in 0..2, 2 in 2..4: full and half of the height of 354
    contains(svg, 'x="66.50" y="36.00" width="277.00" height="354.00"')
    contains(svg, 'x="344.50" y="213.00" width="277.00" height="177.00"')
    svg = plot.bar({"cat", "dog"}, {1, 2}, {ylabel = "count"}):svg()
    contains(svg, ">cat</text>")
    contains(svg, 'height="177.00"')
    contains(svg, "rotate(-90")
    assert.equal(plot.hist, plot.histogram)
    -- logarithms: over the power of ten below the lowest bar
    svg = plot.bar({2, 20}, {yscale = "log"}):svg()
    local low, high = svg:match 'height="([%d.]+)" fill="#0072b2".-height="([%d.]+)" fill="#0072b2"'
    local log2 = math.log(2, 10)
    assert.is_true(math.abs(low - 354 * log2 / (1 + log2)) < 0.01, low)
    assert.equal(354, tonumber(high))
  end)

  it("draws contour lines where the values are", function()
    local z = lt.arange(5.):reshape(1, 5):expand(4, 5) -- z = x
    local svg = plot.contour(z, {levels = {2.5, 4.5}}):svg()
    local seen = 0
    for points in svg:gmatch 'points="([^"]*)"' do
      local x1, x2 = points:match "^([%d.]+),[%d.]+ ([%d.]+),"
      assert.equal(x1, x2) -- vertical, on an axis from 1 to 5
      assert.is_true(x1 == "274.50" or x1 == "552.50", points)
      seen = seen + 1
    end
    assert.equal(2 * 3, seen)
    -- a constant matrix
    local flat = plot.contour(lt.ones(3, 4))
    lacks(flat:svg(), "<polyline")
    contains(flat:svg(), ">4.0</text>")
    contains(tostring(flat), "(nothing to draw)")
    -- a circle of radius 1
    local g = lt.linspace(-2, 2, 81)
    local figure = plot.contour(g, g, g:unsqueeze(2) ^ 2 + g ^ 2, {levels = {1}})
    for _, p in ipairs(figure.series[1].points) do
      if p[1] then assert.is_true(math.abs(p[1] ^ 2 + p[2] ^ 2 - 1) < 2e-3) end
    end
  end)

  it("draws matrices and images", function()
    local svg = plot.heatmap(lt.tensor{{0., 1}, {0 / 0, 0.5}}):svg()
    contains(svg, 'fill="#440154"') -- the first and the last color of viridis
    contains(svg, 'fill="#fde725"')
    contains(svg, ">1</text>")
    svg = plot.image(lt.tensor{{{1., 0}}, {{0., 1}}, {{0., 0}}}):svg()
    contains(svg, 'fill="#ff0000"')
    contains(svg, 'fill="#00ff00"')
  end)
end)

describe("a plot's pixels", function()
  it("are those of its colors", function()
    local image = plot.bar({2, 1}, {color = "red"}):pixels(320, 240)
    assert.equal("{3, 240, 320}", tostring(image.shape))
    assert.equal("uint8", image.dtype)
    local function at(x, y) return tostring(image[{{}, y, x}]) end
    assert.equal('tensor{214,  39,  40, dtype = "uint8"}', at(110, 60))
    assert.equal('tensor{255, 255, 255, dtype = "uint8"}', at(280, 60)) -- above the lower bar
    assert.equal('tensor{214,  39,  40, dtype = "uint8"}', at(280, 180))
    -- a horizontal line is 1.5 pixels high
    image = plot.line({1, 1, 1}, {color = {0, 0, 0}}):pixels(320, 240)
    local dark = image[1]:narrow(2, 200, 1):lt(60):sum():item()
    assert.is_true(dark >= 1 and dark <= 3, dark)
  end)

  it("are saved", function()
    local p = plot.line{3, 1, 2}
    local path = os.tmpname()
    for _, kind in ipairs{"svg", "txt"} do
      p:save(path .. "." .. kind)
      local file <close> = assert(io.open(path .. "." .. kind))
      assert.equal(kind == "svg" and p:svg() or tostring(p) .. "\n", file:read "a")
      os.remove(path .. "." .. kind)
    end
    os.remove(path)
    contains(message_of(p.save, p, path .. ".bmp"),
      "save: expected a file name that ends in .svg, .png or .txt for argument 'path'")
    if not core._image_libraries() then return end
    p:save(path .. ".png", 200, 150)
    assert.is_true(lt.equal(p:pixels(200, 150), lt.vision.io.read_image(path .. ".png")))
    os.remove(path .. ".png")
  end)
end)

describe("a plot's text", function()
  it("has its title, labels, ticks and bars", function()
    local text = tostring(plot.line({1, 10, 100}, {yscale = "log", title = "loss", label = "train",
      xlabel = "step"}))
    for _, part in ipairs{"loss", "train", "step", "100", "10"} do contains(text, part) end
    text = tostring(plot.hist(lt.tensor{1., 1, 2, 3}, 2))
    contains(text, "1 .. 2")
    contains(text, " 2\n")
    text = tostring(plot.bar({"cat", "dog"}, {1, 2.5}))
    contains(text, "dog")
    contains(text, "2.5")
    text = tostring(plot.bar({1, 10, 1000}, {yscale = "log"}))
    local one, ten, thousand = text:match "^1 ([^ ]+) 1\n2 ([^ ]+) 10\n3 ([^ ]+) 1000$"
    assert.is_truthy(one, text) -- the values; lengths are logarithms, over the axis at 0.1
    assert.is_true(math.abs(#ten / #one - 2) < 0.1 and math.abs(#thousand / #one - 4) < 0.1, text)
    contains(tostring(plot.heatmap(lt.arange(6.):reshape(2, 3))), "from 1 to 6")
    assert.is_true(#tostring(plot.image(lt.rand(3, 8, 8))) > 8)
    contains(tostring(plot.line{0 / 0}), "(no finite values)")
    lacks(text, "\27")
    contains(tostring(plot.figure()), "(nothing to draw)")
  end)

  it("has at least two numbers at an axis", function()
    local axes = require "lutra.internal.plot.axes"
    for _, range in ipairs{{1, 30}, {0.3, 2.9}, {-7, 12}, {11, 19}, {1e6 + 1, 1e6 + 30}} do
      for count = 2, 8 do
        local ticks = axes.ticks(range[1], range[2], count)
        assert.is_true(#ticks >= 2 and #ticks <= 2 * math.max(count, 4), #ticks)
      end
    end
    assert.equal(1, #axes.ticks(2, 2.5, 3, true)) -- integers
  end)

  it("has bars as long as there is room", function()
    local text = tostring(plot.bar({"a", "b"}, {1, 2}, {title = ("t"):rep(300)}))
    local room = #text:match "^[^\n]+" -- the title is cut to it
    local first, second = text:match "\na ([^ ]+) 1\nb ([^ ]+) 2$"
    assert.is_true(math.abs(utf8.len(second) - (room - #"b " - #" 2")) <= 1, text)
    assert.is_true(math.abs(#second - 2 * #first) <= 3)
  end)

  it("does not depend on the default device", function()
    local z = lt.arange(6.):reshape(2, 3)
    for _, draw in ipairs{function() return plot.line{1, 2, 3} end,
      function() return plot.hist{1, 2, 2} end, function() return plot.contour(z) end} do
      assert.equal(tostring(draw()), tostring(lt.with_device("meta", draw)))
      assert.equal(draw():svg(), lt.with_device("meta", draw):svg())
    end
  end)

  it("is not wider than the terminal", function()
    local figure = plot.line({1, 2}, {title = ("t"):rep(300), xlabel = ("x"):rep(300),
      ylabel = ("y"):rep(300), label = ("l"):rep(300)})
    for i = 1, 30 do figure:line({i, 2}, {label = "series " .. i}) end
    local count = 0
    for line in tostring(figure):gmatch "[^\n]+" do
      assert.is_true(utf8.len(line) <= 100, line)
      for _ in line:gmatch "series %d+" do count = count + 1 end
    end
    assert.equal(30, count)
  end)
end)

describe("lt.plot reports", function()
  it("wrong arguments", function()
    contains(message_of(plot.line, {1, 2}, {1, 2, 3}), "line: expected as many x as y, got 2 and 3")
    contains(message_of(plot.line, lt.ones(2, 2)), "line: expected 1 dimension for argument 'y'")
    contains(message_of(plot.line, "x"), "line: expected ")
    contains(message_of(plot.line, {1}, {yscale = "ln"}),
      "plot: expected 'linear' or 'log' for argument 'yscale', got \"ln\"")
    for _, color in ipairs{"rde", {300, 0, 0}, {0.5, 1, 0}, {"a", "b", "c"}, {1, 2}} do
      contains(message_of(plot.line, {1}, {color = color}), "line: expected a name of a color, "
        .. "\"#rrggbb\" or {r, g, b} from 0 to 255 for argument 'color'")
    end
    contains(message_of(plot.line, {1}, {xlim = {2, 1}}), "plot: expected {low, high}")
    contains(message_of(plot.hist, {0 / 0}), "hist: expected a finite value for argument 'x'")
    contains(message_of(plot.bar, {"a"}, {1, 2}), "bar: expected as many x as heights")
    contains(message_of(plot.heatmap, lt.ones(2)), "heatmap: expected a matrix for argument 'z'")
    contains(message_of(plot.contour, {1, 2}, {1, 2}), "contour: expected x, y and z, or z")
    contains(message_of(plot.contour, {1}, {1, 2}, lt.ones(2, 2)),
      "contour: expected 2 numbers for argument 'x', got 1")
    local figure = plot.image(lt.rand(2, 2))
    contains(message_of(figure.line, figure, {1}), "plot: cannot add a series to an image")
  end)
end)
