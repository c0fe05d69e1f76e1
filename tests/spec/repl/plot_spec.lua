-- Pictures of characters: canvases, axes, charts, histograms, pixels; and :plot and :image.

local lt = require "lutra"
local axes = require "lutra.internal.plot.axes"
local blocks = require "lutra.internal.plot.blocks"
local canvas = require "lutra.internal.plot.canvas"
local chart = require "lutra.internal.plot.chart"
local data = require "lutra.internal.plot.data"
local histogram = require "lutra.internal.plot.histogram"
local pixels = require "lutra.internal.plot.pixels"
local texts = require "lutra.internal.text"
local devices = require "device_support"
local program = require "program_support"

local inf, nan = math.huge, 0 / 0

local function plain(_, text) return text end

local function look(lines, options)
  options = options or {}
  local line = ("env LC_ALL=%s TERM=xterm COLORTERM=%s %s -i --no-init %s"):format(
    options.locale or "C.UTF-8", options.colors or "", program.quote(program.program),
    options.arguments or "")
  local result = program.shell(line, table.concat(lines, "\n") .. "\n")
  return result.out:gsub("%[%d+%]> ", ""), result.err
end

describe("texts", function()
  it("say bytes and counts", function()
    local cases = {[0] = "0 B", [1023] = "1023 B", [1024] = "1.0 KiB", [1536] = "1.5 KiB",
      [5 * 2 ^ 20] = "5.0 MiB", [3 * 2 ^ 40] = "3.0 TiB", [2 ^ 52] = "4096.0 TiB"}
    for bytes, text in pairs(cases) do assert.equal(text, texts.bytes(bytes)) end
    assert.equal("0.4 MiB", texts.bytes(460992, 0.1))
    assert.equal("1,234,567", texts.count(1234567))
    assert.equal("-123", texts.count(-123))
    assert.equal("1 item", texts.plural(1, "item"))
    assert.equal("2,000 items", texts.plural(2000, "item"))
  end)

  it("are cut, filled and broken by characters", function()
    assert.equal("äöü..", texts.cut("äöüßxyz", 5))
    assert.equal("äöüß", texts.cut("äöüßxyz", 4))
    assert.equal("äöü", texts.cut("äöü", 3))
    assert.equal("ä  |", texts.pad("ä", 3) .. "|")
    assert.equal("  ä|", texts.pad("ä", 3, true) .. "|")
    assert.equal("one two\n three\n 12 KiB", texts.wrap("one two three 12 KiB", 8, 1))
    assert.equal(2, texts.width "\xff\xfe") -- no UTF-8
    assert.equal("it took\n12 ms", texts.wrap("it took 12 ms", 11, 0))
    assert.equal("it took\n12 µs, 5\nseeds", texts.wrap("it took 12 µs, 5 seeds", 12, 0))
    -- by UAX #11 two columns each; an accent of its own takes none, box-drawing one
    assert.equal(6, texts.width "漢字한")
    assert.equal(4, texts.width "e\u{301}│█→")
    assert.equal("漢..", texts.cut("漢字漢字", 5))
    assert.equal("漢字", texts.cut("漢字漢字", 4))
  end)

  it("make tables that fit", function()
    local columns = {{key = "a", title = "a", rank = 1, least = 4},
      {key = "b", title = "bb", rank = 2, least = 3, right = true},
      {key = "c", title = "c", rank = 3, least = 3}, {key = "d", title = "d", rank = 4, least = 1}}
    local rows = {{a = "first", b = "1", c = "xyz"}, {a = "second", b = "22"}}
    assert.same({"a       bb  c", "first    1  xyz", "second  22"}, texts.table(columns, rows, 40))
    assert.same({"a       bb", "first    1", "second  22"}, texts.table(columns, rows, 11))
    assert.same({"a      bb", "first   1", "sec..  22"}, texts.table(columns, rows, 9))
    assert.same({"a     bb", "firs   1", "seco  22"}, texts.table(columns, rows, 8))
    columns[1].short = function(text) return text:sub(1, 1) end
    assert.same({"a  bb  c", "f   1  xyz", "s  22"}, texts.table(columns, rows, 14))
  end)
end)

describe("a canvas", function()
  it("has eight dots in a character of braille", function()
    -- Unicode numbers the dots 1 2 3 7 down the left, 4 5 6 8 down the right
    local bits = {[1] = {0, 1, 2, 6}, [2] = {3, 4, 5, 7}}
    for x = 1, 2 do
      for y = 1, 4 do
        local c = canvas.new(1, 1, true)
        c:dot(x, y)
        assert.equal(utf8.char(0x2800 + (1 << bits[x][y])), c:lines()[1])
      end
    end
  end)

  it("has two in one of ASCII", function()
    local c = canvas.new(3, 1, false)
    c:dot(1, 1)
    c:dot(2, 2)
    c:dot(3, 1)
    c:dot(3, 2)
    assert.same({"'.:"}, c:lines())
  end)

  it("draws straight lines, and nothing outside", function()
    local c = canvas.new(4, 2, false)
    c:line(1, 4, 4, 1)
    c:line(-3, 9, -1, 12)
    assert.same({"  .'", ".'"}, c:lines())
    assert.same({"", ""}, canvas.new(4, 2, true):lines())
  end)

  it("colours what was drawn", function()
    local c = canvas.new(2, 1, false)
    c:dot(2, 1, "red")
    assert.same({" <red'>"}, c:lines(function(color, text) return "<" .. color .. text .. ">" end))
  end)
end)

describe("axes", function()
  it("have round numbers, not too many, within the range", function()
    for _, range in ipairs {{0, 1}, {-1, 1}, {1, 50}, {0.001, 0.0015}, {-3e7, 8e9}, {1e-30, 3e-30},
      {-1e308, 1e308}, {123456, 123457}, {0, 7}} do
      for count = 2, 8 do
        local lo, hi = range[1], range[2]
        local ticks = axes.ticks(lo, hi, count)
        assert.is_true(#ticks >= 1 and #ticks <= 2 * count + 1, ("%g %g"):format(lo, hi))
        local slack = (hi / 2 - lo / 2) * 1e-6
        for i, tick in ipairs(ticks) do
          assert.is_true(tick.value >= lo - slack and tick.value <= hi + slack)
          local step = ticks[2] and ticks[2].value / 2 - ticks[1].value / 2 or hi / 2 - lo / 2
          assert.is_true(math.abs(tonumber(tick.text) / 2 - tick.value / 2) < step * 0.5, tick.text)
          assert.is_true(i == 1 or ticks[i].text ~= ticks[i - 1].text)
        end
      end
    end
  end)

  it("count in whole steps where they are asked to", function()
    for _, tick in ipairs(axes.ticks(1, 3, 8, true)) do
      assert.equal(tick.value, math.floor(tick.value))
    end
  end)

  it("make room around one value", function()
    for _, value in ipairs {0, 5, -1e300, 1e-9} do
      local lo, hi = axes.range(value, value)
      assert.is_true(lo < value and value < hi)
      assert.equal(0.5, axes.share(value, lo, hi))
    end
  end)
end)

describe("a chart", function()
  local function draw(series, width, height)
    return chart.lines(series, {width = width, height = height, utf8 = false, paint = plain,
      whole = true})
  end

  it("of four points is this drawing", function()
    assert.same({
      "4+  .'",
      "2+.'",
      " +-+-+",
      "   2 4",
    }, draw({data.curve(lt.tensor{1., 2., 3., 4.}, 4)}, 6, 4))
  end)

  it("leaves gaps where a value is not finite", function()
    assert.same({
      "4+   '",
      "2+.",
      " +-+-+",
      "   2 4",
    }, draw({data.curve(lt.tensor{1., nan, inf, 4.}, 4)}, 6, 4))
  end)

  it("of one value is in the middle", function()
    local lines = draw({data.curve(lt.tensor{3, 3, 3}, 20)}, 24, 7)
    for i = 1, 5 do
      assert.equal(i == 3, lines[i]:find("[|+].*['.:]") ~= nil, lines[i])
    end
  end)

  it("of nothing is none", function()
    assert.is_nil(draw({data.curve(lt.tensor{nan, nan}, 10)}, 20, 6))
    assert.is_nil(draw({data.curve(lt.zeros(0), 10)}, 20, 6))
  end)

  it("is never wider than it may be", function()
    for width = 8, 60, 4 do
      for _, utf8_terminal in ipairs {true, false} do
        local curve = data.curve(lt.randn(500) * 1e5, chart.dots(width, utf8_terminal))
        local lines = chart.lines({curve}, {width = width, height = 9, utf8 = utf8_terminal,
          paint = plain, whole = true})
        for _, line in ipairs(lines) do assert.is_true(texts.width(line) <= width, line) end
      end
    end
  end)
end)

describe("data of a plot", function()
  local function finite(v) return v == v and v ~= inf and v ~= -inf end

  it("is the least and largest of each column", function()
    lt.manual_seed(3)
    local t = lt.randn(1003)
    t[5], t[6], t[700] = nan, inf, -inf
    for i = 801, 900 do t[i] = nan end
    local values = t:totable()
    for _, dots in ipairs {1, 7, 100, 250} do
      local bars = data.curve(t, dots).bars
      local k = math.ceil(1003 / dots)
      assert.equal(math.ceil(1003 / k), #bars)
      for i, bar in ipairs(bars) do
        local lo, hi
        for j = (i - 1) * k + 1, math.min(i * k, 1003) do
          local v = values[j]
          if finite(v) then lo, hi = math.min(lo or v, v), math.max(hi or v, v) end
        end
        assert.equal(lo, bar[2])
        assert.equal(hi, bar[3])
        assert.equal(((i - 1) * k + 1 + math.min(i * k, 1003)) / 2, bar[1])
      end
    end
  end)

  it("is every point where there is room", function()
    assert.same({points = {{1, 5.0}, {2}, {3, 7.0}}}, data.curve(lt.tensor{5, nan, 7}, 3))
    assert.same({points = {{1, 1.0}, {2, 0.0}}}, data.curve(data.tensor(lt.tensor{true, false}), 9))
    local whole = lt.tensor{1, 1 << 40, 3, 4, 5, 6, 7, 8, 9}
    assert.same({bars = {{3, 1.0, 2.0 ^ 40}, {7.5, 6.0, 9.0}}}, data.curve(whole, 2))
  end)

  it("is made of lists of numbers, of lists and of tensors of one element", function()
    assert.same({1.0, 2.5}, data.tensor({1, 2.5}, "plot"):totable())
    assert.same({{1.0, 2.0}}, data.tensor({{1, 2}}, "plot"):totable())
    local losses = {lt.tensor(0.5), lt.ones{1, requires_grad = true} * 2}
    assert.same({0.5, 2.0}, data.tensor(losses, "plot"):totable())
    for _, bad in ipairs {{"x"}, {lt.ones(2)}, {1, {2}}, {lt.ones(1), {}}} do
      assert.is_false(pcall(data.tensor, bad, "plot"))
    end
  end)

  it("has the dots of a cloud", function()
    lt.manual_seed(4)
    local n = 6000
    local x, y = lt.rand(n, {dtype = "float64"}), lt.rand(n, {dtype = "float64"})
    x[1], x[2], y[1], y[2], x[3] = 0, 1, 0, 1, nan
    local cloud = data.scatter(x, y, 30, 20).cloud
    local xs, ys, cells, count = x:totable(), y:totable(), {}, 0
    for i = 1, n do
      if finite(xs[i]) then
        local cell = math.floor(xs[i] * 29 + 0.5) * 20 + math.floor(ys[i] * 19 + 0.5)
        count = count + (cells[cell] and 0 or 1)
        cells[cell] = true
      end
    end
    assert.is_true(count > 300)
    assert.equal(count, #cloud)
    for _, p in ipairs(cloud) do
      assert.is_true(cells[math.floor(p[1] * 29 + 0.5) * 20 + math.floor(p[2] * 19 + 0.5)])
    end
  end)

  it("counts a histogram", function()
    lt.manual_seed(5)
    local t = lt.randint(0, 100, {5000}):double()
    for _, bins in ipairs {1, 3, 10, 99} do
      local expected, edges = {}, histogram.edges(0, 99, bins)
      for i = 1, bins do expected[i] = 0 end
      for _, v in ipairs(t:totable()) do
        local i = bins
        while i > 1 and v < 0 + 99 * ((i - 1) / bins) do i = i - 1 end
        expected[i] = expected[i] + 1
      end
      assert.same(expected, data.counts(t, 0, 99, bins))
      assert.equal(bins + 1, #edges)
      assert.equal(99, edges[#edges])
    end
  end)

  it("is found where the tensor is", function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local lines = {"lt.manual_seed(1)", "x = lt.randn(5000); y = lt.randn(5000)",
      "if DEVICE then x, y = x:to(DEVICE), y:to(DEVICE) end", ":plot x", ":plot x, y",
      ":plot --hist x", ":plot x:long()", ":image x:view(50, 100)", ":image x:view(10, 5, 100)"}
    local host = look(lines)
    local there, err = look({"DEVICE = 'cuda:0'", table.unpack(lines)},
      {arguments = "--emulate cuda:1"})
    assert.equal("", err)
    assert.equal(host, there)
  end)
end)

describe("a histogram", function()
  local function draw(counts, utf8_terminal)
    return histogram.lines(histogram.edges(0, #counts, #counts), counts,
      {width = 20, utf8 = utf8_terminal, paint = function(text) return text end})
  end

  it("is this drawing", function()
    -- 20 columns: two edges, a number and 6 around leave 11 for the bar
    assert.same({
      "0 .. 1 ########### 8",
      "1 .. 2 ###### 4",
      "2 .. 3 # 1",
      "3 .. 4 0",
    }, draw({8, 4, 1, 0}, false))
    assert.same({"0 .. 1 ███████████ 8", "1 .. 2 █████▌ 4", "2 .. 3 █▍ 1", "3 .. 4 0"},
      draw({8, 4, 1, 0}, true))
  end)

  it("distinguishes edges that are close", function()
    local lines = histogram.lines(histogram.edges(1000, 1000.001, 2), {1, 1},
      {width = 60, utf8 = false, paint = function(text) return text end})
    assert.truthy(lines[1]:find("1000.0005", 1, true), lines[1])
  end)
end)

describe("pixels", function()
  it("are found in any shape", function()
    local function sizes(t)
      local list, count = pixels.split(t, 5)
      return #list .. " of " .. count .. " " .. tostring(list[1].shape)
    end
    assert.equal("1 of 1 {1, 4, 6}", sizes(lt.zeros(4, 6)))
    assert.equal("1 of 1 {1, 4, 6}", sizes(lt.zeros(1, 4, 6)))
    assert.equal("1 of 1 {3, 4, 6}", sizes(lt.zeros(3, 4, 6)))
    assert.equal("1 of 1 {4, 5, 6}", sizes(lt.zeros(4, 5, 6)))
    assert.equal("1 of 1 {3, 7, 6}", sizes(lt.zeros(7, 6, 3)))
    assert.equal("5 of 9 {1, 7, 6}", sizes(lt.zeros(9, 7, 6)))
    assert.equal("2 of 2 {3, 7, 6}", sizes(lt.zeros(2, 3, 7, 6)))
    assert.equal("2 of 2 {4, 7, 6}", sizes(lt.zeros(2, 7, 6, 4)))
    for _, shape in ipairs {{5}, {2, 5, 6, 7}, {1, 1, 1, 1, 1}, {0, 4}} do
      local ok, message = pcall(pixels.split, lt.zeros(shape), 5)
      assert.is_false(ok)
      assert.matches("^image: .*" .. shape[1], message)
    end
  end)

  it("are scaled by means", function()
    lt.manual_seed(6)
    local t = lt.rand(1, 6, 9)
    local values = t[1]:totable()
    local rows = pixels.scale(t, 0, 1, 3, 2)[1]:totable()
    for y = 1, 2 do
      for x = 1, 3 do
        local sum = 0
        for j = 1, 3 do
          for i = 1, 3 do sum = sum + values[(y - 1) * 3 + j][(x - 1) * 3 + i] end
        end
        assert.near(sum / 9, rows[y][x], 1e-5)
      end
    end
    -- 3 pixels into 2: the middle one is half in each
    local two = pixels.scale(lt.tensor{{{0., 0.5, 1.}}}, 0, 1, 2, 1):flatten():totable()
    assert.near(1 / 6, two[1], 1e-6)
    assert.near(5 / 6, two[2], 1e-6)
  end)

  it("have the range of the data", function()
    local function range(t) return table.pack(pixels.range{t}) end
    assert.same({0, 255, n = 2}, range(lt.tensor({3, 200}, {dtype = "uint8"})))
    assert.same({0, 1, n = 2}, range(lt.tensor{0.2, 0.9}))
    assert.same({0, 255, n = 2}, range(lt.tensor{0, 255}))
    assert.same({0, 1, n = 2}, range(lt.tensor{true, false}))
    local lo, hi, note = pixels.range{lt.tensor{-2., nan, 6.}}
    assert.same({-2, 6, "black is -2, white is 6"}, {lo, hi, note})
    assert.same({{{0, 128, 0, 255}}}, {pixels.rows(pixels.scale(
      lt.tensor{{{-2., 2., nan, 6.}}}, -2, 6, 4, 1))})
    assert.is_false(pcall(pixels.range, {lt.tensor{nan}}))
  end)

  it("of four channels lie on white", function()
    local t = lt.tensor{{{0.}}, {{1.}}, {{0.}}, {{0.25}}} -- a quarter of green
    assert.same({{{191, 255, 191}}}, pixels.rows(pixels.scale(t, 0, 1, 1, 1)))
  end)

  it("keep their shape", function()
    assert.same({80, 20}, {pixels.fit(400, 100, 80, 50)})
    assert.same({13, 50}, {pixels.fit(25, 100, 80, 50)})
    assert.same({8, 8}, {pixels.fit(8, 8, 80, 50)})
    assert.same({80, 1}, {pixels.fit(100000, 1, 80, 50)})
  end)

  it("make a file", function()
    local grey = lt.tensor({{0, 255}, {7, 8}}, {dtype = "uint8"}):unsqueeze(1)
    assert.equal("P5\n2 2\n255\n\0\255\7\8", pixels.ppm(pixels.scale(grey, 0, 255, 2, 2)))
    local red = lt.tensor{{{1.}}, {{0.}}, {{0.}}}
    assert.equal("P6\n1 1\n255\n\255\0\0", pixels.ppm(red))
  end)
end)

describe("blocks", function()
  it("hold two pixels a character", function()
    assert.same({"\27[38;2;0;0;0;48;2;255;255;255m▀\27[38;2;1;2;3;48;2;4;5;6m▀\27[0m"},
      blocks.lines({{0, {1, 2, 3}}, {255, {4, 5, 6}}}, 2, 24))
    assert.same({"\27[38;2;9;9;9;48;2;9;9;9m▀▀\27[0m", "\27[0;38;2;9;9;9m▀▀\27[0m"},
      blocks.lines({{9, 9}, {9, 9}, {9, 9}}, 2, 24))
    assert.same({"\27[0;38;2;9;9;9m▄\27[0m "}, blocks.lines({{}, {9}}, 2, 24))
  end)

  it("choose the nearest of 256 colours", function()
    local function code(pixel) return blocks.lines({{pixel}}, 1, 8)[1]:match "38;5;(%d+)m" end
    assert.equal("196", code{255, 0, 0}) -- xterm's cube: 16 + 36 r + 6 g + b
    assert.equal("46", code{0, 255, 0})
    assert.equal("21", code{0, 0, 255})
    assert.equal("231", code(255))
    assert.equal("16", code(0))
    assert.equal("244", code(128)) -- 8 + 10 * 12
    assert.equal("67", code{95, 135, 175})
  end)

  it("are characters without colours", function()
    -- ten greys: 128 is in the sixth tenth, as is green, 0.587 of white
    assert.same({" +@"}, blocks.lines({{0, 128, 255}, {0, 128, 255}}, 3))
    assert.same({"+"}, blocks.lines({{{0, 255, 0}}}, 1))
    assert.same({"="}, blocks.lines({{{0, 255, 0}}, {100}}, 1)) -- (150 + 100) / 2
  end)
end)

describe(":plot", function()
  it("draws in the alphabet of the terminal", function()
    assert.truthy(look{":plot lt.linspace(0, 1, 50)"}:find "[⠁-⣿]")
    assert.is_nil(look({":plot lt.linspace(0, 1, 50)"}, {locale = "C"}):find "[\x80-\xff]")
  end)

  it("takes lists, ranks of tensors, x and y", function()
    local out, err = look{":plot {1, 2, 3}", ":plot lt.randn(3, 20)", ":plot lt.tensor(3.5)",
      ":plot {1, 2}, {3, 4}", ":plot --points lt.arange(5), lt.arange(5)", ":plot lt.randn(20, 9)",
      ":plot lt.ones{3, requires_grad = true} * 2", ":plot lt.tensor{true, false}",
      ":plot lt.randn(10):half()"}
    assert.equal("", err)
    assert.truthy(out:find("row 1 row 2 row 3\n", 1, true))
    assert.truthy(out:find("row 7 row 8 of 20\n", 1, true))
  end)

  it("says how many values are gaps", function()
    local out = look{":plot {1, 0/0, 3}", ":plot lt.tensor{1, 1/0, -1/0}", ":plot {1, 2}",
      ":plot --hist {1, 2, 0/0}"}
    assert.truthy(out:find("1 value is not finite\n", 1, true))
    assert.truthy(out:find("2 values are not finite\n", 1, true))
    assert.truthy(out:find("1 value not finite\n", 1, true))
  end)

  it("has a bin for each integer, where they are few", function()
    local out = look{":plot --hist lt.tensor{1, 1, 3}", ":plot --hist lt.tensor{true, false}"}
    assert.truthy(out:find "^1 %.%. 2 [█]+ 2\n2 %.%. 3 0\n3 %.%. 4 [█]+ 1\n0 %.%. 1 [█]+ 1\n", out)
    assert.truthy(look{":plot --hist {5, 5.}"}:find "^5 %.%. 5 [█]+ 2\n")
  end)

  it("counts each value once, however far apart they are", function()
    for _, x in ipairs {"{-1e308, 1e308}", "{-1e308, 1e308} --bins 3",
      "lt.tensor{math.maxinteger, math.mininteger}", "lt.tensor{math.maxinteger}"} do
      local out, err = look{":plot --hist " .. x}
      assert.equal("", err)
      local sum = 0
      for count in out:gmatch " (%d+)\n" do sum = sum + tonumber(count) end
      assert.equal(x:find "maxinteger}" and 1 or 2, sum)
      assert.is_nil(out:find "inf")
    end
  end)

  it("takes its options before or behind", function()
    local expected = "1 .. 2 .* 2\n2 .. 3 .* 1\n"
    for _, line in ipairs {"--hist --bins 2 x", "x --bins 2 --hist", "--bins 2 x"} do
      assert.truthy(look{"x = {1, 1.5, 3}", ":plot " .. line}:find(expected), line)
    end
  end)

  it("reports what it expects", function()
    local cases = {
      {"", "expected an expression, got none"},
        {"3", "plot: expected a tensor or a list of numbers, got a number"},
      {"lt.zeros(0)", "plot: cannot plot an empty tensor"},
        {"{'a'}", "cannot read the table as a list of numbers"},
      {"{0/0}", "plot: cannot plot the tensor: it has no finite value"},
      {"--hist lt.full({3}, 0/0)", "cannot plot 3 values: none is finite"},
      {"--hist lt.zeros(0)", "plot: cannot plot an empty tensor"},
      {"lt.empty{3, device = 'meta'}", 'cannot show a tensor on "meta": it has no data'},
      {"lt.zeros(2, 2, 2)", "expected a tensor of 1 or 2 dimensions, got 3"},
      {"{1}, {1, 2}", "got shapes {1} and {2}"},
        {"1, 2, 3", "expected y, or x and y, got 3 values"},
      {"--bins 0 {1}", 'expected an integer from 1 to 200 for option --bins, got "0"'},
      {"--nosuch {1}", "unknown option --nosuch"},
      {"{1} --bins", "expected a value for option --bins"},
    }
    for _, case in ipairs(cases) do
      local out, err = look{":plot " .. case[1]}
      assert.truthy(err:find(case[2], 1, true), case[1] .. "\n" .. err .. out)
      assert.is_nil(err:find "Traceback", err)
    end
  end)
end)

describe(":image", function()
  it("draws a grid of a batch that fits", function()
    local out, err = look{":image lt.rand(200, 1, 28, 28)", ":image lt.ones(2, 3, 8, 8)"}
    assert.equal("", err)
    assert.truthy(out:find("{200, 1, 28, 28} float32, 64 of 200\n", 1, true))
    for line in out:gmatch "[^\n]+" do assert.is_true(#line <= 80, line) end
    local last = out:match "64 of 200\n(.*)\n{2, 3, 8, 8}" -- 2 pictures of 8 x 8, one apart
    local _, breaks = last:gsub("\n", "")
    assert.equal(3, breaks)
    for line in last:gmatch "[^\n]+" do assert.is_true(#line > 9 and #line <= 17, line) end
  end)

  it("is plain without colours, and has as many as the terminal", function()
    local x = ":image lt.tensor{{0., 1.}, {1., 0.}}"
    assert.truthy(look{x}:find "^==\n") -- half of white
    assert.truthy(look{":set colors on", x}:find("\27[38;5;16;48;5;231m▀", 1, true))
    assert.truthy(look({":set colors on", x}, {colors = "truecolor"}):find(
      "\27[38;2;0;0;0;48;2;255;255;255m▀\27[38;2;255;255;255;48;2;0;0;0m▀\27[0m", 1, true))
  end)

  it("writes files", function()
    local folder = program.folder()
    local out, err = look{(":image --out %s/x.ppm lt.ones(3, 2, 5)"):format(folder),
      (":image lt.ones(2, 5) --out %s/x.png"):format(folder),
      ":image --out /no/x.ppm lt.ones(2, 2)"}
    assert.truthy(out:find("5 x 2 pixels to " .. folder .. "/x.ppm\n", 1, true), out)
    local file = assert(io.open(folder .. "/x.ppm", "rb"))
    assert.equal("P6\n5 2\n255\n" .. ("\255"):rep(30), file:read "a")
    file:close()
    program.remove(folder)
    assert.truthy(err:find("image: expected a file name that ends with .ppm or .pgm, got \"", 1,
      true))
    assert.truthy(err:find('image: cannot write "/no/x.ppm": No such file', 1, true))
  end)

  it("says when the disk is full, and takes names with spaces", function()
    local folder = program.folder()
    os.execute("ln -s /dev/full " .. folder .. "/x.ppm")
    local out, err = look{(":image --out %s/x.ppm lt.rand(100, 100)"):format(folder),
      (":image lt.rand(4, 4) --out '%s/a b.ppm'"):format(folder)}
    assert.equal(("wrote 4 x 4 pixels to %s/a b.ppm\n"):format(folder), (out:gsub("\n+", "\n")))
    assert.truthy(err:find(folder .. "/x.ppm\": No space left on device", 1, true), err)
    program.remove(folder)
  end)

  it("reports what it expects", function()
    local _, err = look{":image", ":image {1}", ":image lt.zeros(3)", ":image lt.zeros(0, 2)",
      ":image lt.full({2, 2}, 0/0)", ":image lt.empty{2, 2, device = 'meta'}"}
    assert.truthy(err:find("image: expected an expression, got none", 1, true))
    assert.truthy(err:find("image: expected a tensor, got a table", 1, true))
    assert.truthy(err:find("image: expected shape {H, W}, {C, H, W} or {N, C, H, W} with C of 1, 3 "
      .. "or 4, got {3}", 1, true))
    assert.truthy(err:find("image: cannot show an empty tensor of shape {0, 2}", 1, true))
    assert.truthy(err:find("image: cannot show the tensor: no value is finite", 1, true))
    assert.truthy(err:find('image: cannot show a tensor on "meta"', 1, true))
  end)
end)
