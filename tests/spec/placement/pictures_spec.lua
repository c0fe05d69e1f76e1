-- Pictures of placement: lanes, the blocks of :devices, and the same as SVG.

local devices = require "device_support"
local lanes = require "lutra.internal.plot.lanes"
local lanes_svg = require "lutra.internal.plot.lanes_svg"
local memory_map = require "lutra.internal.plot.memory_map"
local support = require "pictures_support"
local svg = require "lutra.internal.plot.svg"

local plain, look, widest = support.plain, support.look, support.widest
local is_closed, read_file = support.is_closed, support.read_file

local test = devices.emulated_it(_ENV)

-- 100 us: a blocking copy, a kernel beside work of the host, a copy on another stream to
-- the other device, and a result that comes back.
local events = {
  {kind = "alloc", to = "cuda:0", bytes = 4, begin = 0, finish = 0},
  {kind = "copy", from = "cpu", to = "cuda:0", bytes = 4000, blocking = true, begin = 0,
    finish = 20, stream = "a", op = "to", where = "t.lua:1"},
  {kind = "op", op = "to", to = "cuda:0", bytes = 4000, begin = 0, finish = 21},
  {kind = "op", op = "mm", to = "cuda:0", bytes = 4000, begin = 20, finish = 60, stream = "a"},
  {kind = "op", op = "exp", to = "cpu", bytes = 4000, begin = 30, finish = 50},
  {kind = "copy", from = "cuda:0", to = "cuda:1", bytes = 8, begin = 50, finish = 70,
    stream = "c"},
  {kind = "copy", from = "cpu", to = "cuda:0", bytes = 8, pinned = true, begin = 55, finish = 57,
    stream = "b", default_stream = false},
  {kind = "copy", from = "cuda:0", to = "cpu", bytes = 8, blocking = true, begin = 60,
    finish = 90, stream = "a"},
  {kind = "sync", op = "synchronize", to = "cuda:0", begin = 90, finish = 100},
}

describe("lanes", function()
  it("are the host's and each stream's", function()
    local picture = lanes.read(events)
    local names = {}
    for i, lane in ipairs(picture.lanes) do names[i] = lane.name end
    assert.same({"host", "cuda:0 default", "cuda:0 s1", "cuda:1"}, names)
    assert.same({0, 100}, {picture.begin, picture.finish})
  end)

  it("distinguish the default stream from the others, whichever is used first", function()
    local function names(list)
      for i, e in ipairs(list) do
        e.kind, e.to, e.begin, e.finish, e.virtual = "op", "cuda:0", i, i + 1, true
      end
      local found = {}
      for i, lane in ipairs(lanes.read(list).lanes) do found[i] = lane.name end
      return table.concat(found, ", ", 2)
    end
    local own = {stream = "a", default_stream = true}
    local function other(stream) return {stream = stream, default_stream = false} end
    assert.equal("cuda:0", names{own, {}}) -- work that names no stream is on the default one
    assert.equal("cuda:0 s1", names{other "b"})
    assert.equal("cuda:0 default, cuda:0 s1, cuda:0 s2", names{other "b", own, other "c"})
  end)

  it("show what takes most of each column, and what is short too", function()
    local lines = lanes.lines(lanes.read(events), {width = 42, utf8 = false, paint = plain})
    assert.same({
      "                0             100 µs  busy",
      "host           [~~~~########~~~~~~~~]  40%", -- the calls of mm and of exp beside it
      "cuda:0 default [>>>>########<<<<<<..]  90%",
      "cuda:0 s1      [...........>........]   2%",
      "cuda:1         [..........====......]  20%",
      "# work, > to device, < to host,",
      "= between devices, ~ host blocked, . idle",
    }, lines)
  end)

  it("are drawn in characters of UTF-8 and colours", function()
    local function paint(style, text) return ("<%s %s>"):format(style, text) end
    local lines = lanes.lines(lanes.read(events), {width = 42, utf8 = true, paint = paint})
    assert.equal("<heading cuda:1        > [<faint " .. ("·"):rep(10) .. "><number ↔↔↔↔><faint "
      .. ("·"):rep(6) .. ">]  20%", lines[5])
  end)

  it("are summed up; what is at the same time counts once", function()
    assert.equal("100 µs in total; host blocked 60 µs (60%); cuda:0 default busy 90 µs "
      .. "(90%); cuda:0 s1 busy 2 µs (2%); cuda:1 busy 20 µs (20%)",
      lanes.totals(lanes.read(events)))
    local lane = {spans = {{kind = "work", begin = 2, finish = 8}, {kind = "work", begin = 0,
      finish = 10}, {kind = "wait", begin = 20, finish = 30}}}
    assert.equal(10, lanes.busy(lane, function(kind) return kind == "work" end))
  end)

  it("have the host copy what is not pinned", function()
    local picture = lanes.read{{kind = "copy", from = "cpu", to = "cuda:0", bytes = 8, begin = 0,
      finish = 4}}
    assert.equal("to_device", picture.lanes[1].spans[1].kind)
    assert.equal(1, #picture.lanes[2].spans)
  end)

  it("have a copy between devices in both of its streams", function()
    local picture = lanes.read{
      {kind = "op", to = "cuda:0", begin = 0, finish = 1, stream = "b", default_stream = false},
      {kind = "copy", from = "cuda:0", to = "cuda:1", bytes = 8, begin = 1, finish = 5,
        stream = "a", source_stream = "b", default_stream = true}}
    assert.same({"host", "cuda:0 s1", "cuda:1"},
      {picture.lanes[1].name, picture.lanes[2].name, picture.lanes[3].name})
    assert.same({"between", 1, 5}, {picture.lanes[2].spans[2].kind,
      picture.lanes[2].spans[2].begin, picture.lanes[2].spans[2].finish})
    assert.equal("between", picture.lanes[3].spans[1].kind)
    assert.equal(1, picture.lanes[2].share)
  end)

  test("have a copy of a program between devices in both of its streams", function()
    local out, err = look({"x = lt.ones{1000, device = 'cuda:0'}", ":transfers y = x:to 'cuda:1'"},
      {arguments = "--emulate cuda:2,link=pcie4", locale = "C"})
    assert.equal("", err)
    for _, device in ipairs {"cuda:0", "cuda:1"} do
      assert.truthy(out:find("\n" .. device .. " %[[%.=]*=[%.=]*%]"), out)
    end
  end)

  it("count what the host does to give work to a device as its work", function()
    local picture = lanes.read{{kind = "copy", from = "cpu", to = "cuda:0", bytes = 8,
      pinned = true, called = 0, issued = 5, begin = 20, finish = 30, virtual = true}}
    local span = picture.lanes[1].spans[1]
    assert.same({"work", 0, 5}, {span.kind, span.begin, span.finish})
    assert.equal(0, picture.begin)
    assert.is_true(math.abs(picture.lanes[1].share - 5 / 30) < 1e-12)
  end)

  it("take an op that is only a copy for no work, and keep work beside a copy", function()
    local picture = lanes.read{
      {kind = "copy", from = "cpu", to = "cuda:0", bytes = 8, pinned = true, begin = 5,
        finish = 9, virtual = true, stream = "a"},
      {kind = "op", to = "cuda:0", begin = 5, finish = 5, virtual = true},
      {kind = "op", to = "cpu", begin = 5, finish = 20, virtual = true},
    }
    assert.equal(1, #picture.lanes[1].spans)
    assert.equal(1, #picture.lanes[2].spans)
    assert.is_true(picture.virtual)
  end)

  it("show a wait that took no time", function()
    local picture = lanes.read{{kind = "sync", to = "cuda:0", begin = 3, finish = 3}}
    assert.equal("host [~" .. ("."):rep(27) .. "]   0%",
      lanes.lines(picture, {width = 40, utf8 = false, paint = plain})[2])
    assert.equal("0 ns in total; host blocked 0 ns (0%)", lanes.totals(picture))
  end)

  it("are none where nothing was heard", function()
    local picture = lanes.read{}
    assert.same({}, picture.lanes)
    assert.same({}, lanes.lines(picture, {width = 40, utf8 = true, paint = plain}))
  end)

  it("are drawn as SVG, at their times", function()
    local text = lanes_svg.text(lanes.read(events), "a < b & c", {"x  1"})
    assert.is_true(is_closed(text), text)
    assert.truthy(text:find("<title>a &lt; b &amp; c</title>", 1, true))
    local function box(tip)
      local x, width = text:match('<rect x="([%d.]+)" y="[%d.]+" width="([%d.]+)" [^>]*><title>'
        .. tip .. "</title>")
      return tonumber(x), tonumber(width)
    end
    -- The first copy, from 0 to 20 of 100 in 700 points, and that to cuda:1, from 50 to 70; both
    -- without half a point at each end.
    local left, wide = box "to, cpu %-&gt; cuda:0, 3.9 KiB, 20 µs, t.lua:1"
    assert.equal(139, wide)
    local x, width = box "copy, cuda:0 %-&gt; cuda:1, 8 B, 20 µs"
    assert.same({350, 139}, {math.floor(x - left + 0.5), width}, text)
    assert.truthy(text:find(">→ 3.9 KiB</text>", 1, true), text)
    assert.truthy(text:find(">← copy to the host</text>", 1, true), text)
    assert.is_nil(lanes_svg.text(lanes.read{events[2]}, "t", {}):find "copy to the host")
    assert.truthy(text:find(">x  1</text>", 1, true))
    assert.truthy(text:find ">0</text>.*>20 µs</text>.*>40 µs</text>.*>100 µs</text>", text)
  end)

  it("are drawn below a title that fits", function()
    local text = lanes_svg.text(lanes.read(events), ("f(x)\n"):rep(90), {})
    local width = tonumber(text:match 'width="(%d+)"')
    local title = text:match 'class="title"[^>]*>([^<]*)<'
    assert.truthy(title:find "^f%(x%) f%(x%) ")
    assert.truthy(title:find "%.%.$")
    assert.is_true(#title * 14 * 0.6 < width - 16, title)
  end)
end)

-- Two segments: 100 bytes with 40 in use and 10 that wait for a stream; 20, all cached.
local segments = memory_map.read{
  {total_size = 100, segment_type = "large", blocks = {
    {size = 40, state = "active_allocated", where = "t.lua:3"}, {size = 30, state = "inactive"},
    {size = 10, state = "active_awaiting_free"}, {size = 20, state = "inactive"}}},
  {total_size = 20, segment_type = "small", blocks = {{size = 20, state = "inactive"}}},
}

describe("the blocks of an allocator", function()
  local letters = {used = "#", part = "+", cached = ".", edge = "|"}
  local function row(list, width)
    local columns = memory_map.columns(list, width)
    for i, kind in ipairs(columns) do columns[i] = letters[kind] end
    return table.concat(columns)
  end

  it("are summed up", function()
    local sum = memory_map.summary(segments)
    assert.same({2, 50, 70, 3, 30}, {sum.segments, sum.used, sum.cached, sum.blocks, sum.largest})
    assert.is_true(math.abs(sum.fragmentation - 4 / 7) < 1e-12) -- 30 of 70 are in one piece
    assert.is_nil(memory_map.summary{}.fragmentation)
  end)

  it("are columns by their sizes, segment by segment", function()
    assert.equal("####...#..|..", row(segments, 13))
    assert.equal("##.+.|.", row(segments, 7))
    assert.equal("#+.", row(segments, 3)) -- 40 of 40, 10 of 40, none: no room for edges
  end)

  it("have at least a column for a segment", function()
    local tiny = {size = 1, blocks = {{size = 1, used = true}}}
    assert.equal(".........|#", row({{size = 1e6, blocks = {{size = 1e6}}}, tiny}, 11))
    local many = {}
    for i = 1, 100 do many[i] = tiny end
    assert.equal(("#"):rep(20), row(many, 20))
  end)

  test("are a part of :devices", function()
    local out, err = look({"a = lt.zeros{1024, 1024, device = 'cuda:0'}",
      "b = lt.zeros{1024, 1024, device = 'cuda:0'}", "a = nil collectgarbage()", ":devices",
      "b = nil collectgarbage() lt.cuda.empty_cache()", ":devices"},
      {arguments = "--emulate cuda:1,memory=256MiB", locale = "C"})
    assert.equal("", err)
    local first, second = out:match "(cpu.*others, %. free.*)(cpu.*)"
    -- 20 MiB: 4 cached, 4 in use, 12 cached
    assert.truthy(first:find("\n  reserved [" .. ("="):rep(8) .. ("#"):rep(8) .. ("="):rep(24)
      .. "]\n", 1, true), first)
    assert.truthy(first:find("  1 segment, cached 16.0 MiB in 2 blocks, largest 12.0 MiB: "
      .. "fragmentation 25%", 1, true), first)
    assert.truthy(first:find("= cached, : others, . free, + tensors and cache, | between segments\n"
      .. "fragmentation: ", 1, true),
      first)
    assert.is_nil(second:find "fragmentation")
    assert.is_nil(second:find "segments")
  end)

  test("are a part of its SVG", function()
    local path = os.tmpname()
    local out, err = look({"a = lt.zeros{1024, 1024, device = 'cuda:0'}", ":set width 40",
      ":devices --svg " .. path, ":devices"})
    assert.equal("", err)
    local text = read_file(path)
    os.remove(path)
    assert.is_true(is_closed(text), text)
    -- 4 MiB of 20 MiB of 720 points, without half a point at each end; its name is in it
    assert.truthy(text:find('width="143.00" height="24.00" fill="#1f4e79"><title>a, 4.0 MiB, '
      .. "in use, {1024, 1024}, cell[1]:1, segment for large blocks</title>", 1, true), text)
    assert.truthy(text:find(">a</text>", 1, true), text)
    assert.truthy(text:find(">16.0 MiB</text>", 1, true), text)
    assert.truthy(text:find("cuda:1", 1, true))
    assert.truthy(out:find("the picture to " .. path, 1, true))
    assert.is_true(widest(out:match "\ncpu.*") <= 39, out)
  end)

  it("are one box of its SVG where they are too narrow to be distinguished", function()
    local blocks = {}
    for i = 1, 2000 do blocks[i] = {size = 512, used = true} end
    for i = 2001, 3000 do blocks[i] = {size = 512, used = i % 2 == 0} end
    blocks[3001] = {size = 3000 * 512}
    blocks[3002] = {size = 1, used = true}
    local text = require("lutra.internal.plot.devices_svg").text{{title = "cuda:0", numbers = {},
      lines = {}, segments = {{size = 6000 * 512 + 1, blocks = blocks}}}}
    local boxes = {}
    local kinds = {}
    for kind, colors in pairs(svg.kinds) do kinds[colors[1]] = kinds[colors[1]] or kind end
    for x, width, fill, tip in text:gmatch('<rect x="([%d.]+)" y="[%d.]+" width="([%d.]+)" '
      .. 'height="[%d.]+" fill="([^"]*)"><title>([^<]*)') do
      boxes[#boxes + 1] = ("%s %.0f %s, %s"):format(math.floor(x - 88), tonumber(width), tip,
        fill == svg.kinds.used[1] and "used" or kinds[fill])
    end
    -- Of 720 points: 2,000 of 6,000 blocks, as 117 whole cells of 2 points, which are 17 blocks;
    -- what is left of them and the 1,000 of which each second one is used; a half that is cached.
    assert.same({"0 239 1,989 blocks, 994.5 KiB, used", "238 121 1,011 blocks, 505.5 KiB, part",
      "360 359 1.5 MiB, cached, cached", "719 1 1 block, 1 B, used"}, boxes)
  end)

  test("count what is lost because blocks are multiples of 512 bytes", function()
    local out, err = look({"x = lt.zeros{1, dtype = 'uint8', device = 'cuda:0'}",
      "y = lt.zeros{256, device = 'cuda:0'}", ":devices", "lt.cuda.memory_allocated()"})
    assert.equal("", err)
    assert.truthy(out:find("\n    y                   1.0 KiB\n    x                       1 B\n"
      .. "    rounding of blocks    511 B\n", 1, true), out)
    assert.truthy(out:find "\n1536\n", out)
    assert.truthy(out:find("  1.5 KiB in tensors", 1, true), out)
  end)

  test("are fragmented where every second one was freed", function()
    local out, err = look({"v = {}",
      "for i = 1, 10 do v[i] = lt.zeros{1024, 1024, device = 'cuda:0'} end",
      "for i = 2, 10, 2 do v[i] = nil end collectgarbage()", ":devices",
      "lt.cuda.memory_allocated(), lt.cuda.memory_reserved()"})
    assert.equal("", err)
    -- two segments of 20 MiB, of five blocks of 4 MiB each; 5 are cached: 1 - 4/20
    assert.truthy(out:find("2 segments, cached 20.0 MiB in 5 blocks, largest 4.0 MiB: "
      .. "fragmentation 80%", 1, true), out)
    assert.truthy(out:find("\n20971520\t41943040\n", 1, true), out)
  end)

  test("name a storage by the tensor, its views and gradients apart", function()
    local out, err = look({"w = lt.ones{1024, device = 'cuda:0', requires_grad = true}",
      "a_view = w:detach():view(32, 32)", "w:sum():backward() collectgarbage()",
      "p = lt.zeros(256):pin_memory()", "rest = lt.zeros{512, device = 'cuda:0'}:narrow(1, 2, 8)",
      "lt.zeros{128, device = 'cuda:0'}", ":devices"})
    assert.equal("", err)
    local list = out:match "%d%%\n(.-)cuda:1"
    assert.truthy(list:find("    w              4.0 KiB\n    w (grad)       4.0 KiB\n"
      .. "    rest           2.0 KiB\n    other tensors    512 B\n", 1, true), out)
    assert.is_nil(list:find "a_view")
    assert.truthy(out:find "\n    p +1.0 KiB  pinned\n", out)
    assert.truthy(out:find("\nother tensors: held by results", 1, true), out)
  end)

  test("are coloured where colours are on", function()
    local out = look({":set colors on", "x = lt.zeros{1024, 1024, device = 'cuda:0'}", ":devices",
      ":where x"})
    assert.truthy(out:find("  reserved [\27[36m████████\27[0m\27[35m" .. ("▒"):rep(32)
      .. "\27[0m]", 1, true), out)
    assert.truthy(out:find("  x      [\27[36m" .. ("█"):rep(40) .. "\27[0m]", 1, true), out)
  end)

  test("are left out of the SVG of a device that does not answer", function()
    local path = os.tmpname()
    local _, err = look({"local a = require 'lutra.core'._accelerator",
      "a.memory_info = function() error(('the driver is gone '):rep(50)) end",
      ":devices --svg " .. path}, {arguments = "--emulate cuda:1"})
    assert.equal("", err)
    local text = read_file(path)
    os.remove(path)
    assert.is_true(is_closed(text), text)
    assert.truthy(text:find("not available: ", 1, true), text)
    assert.is_true(tonumber(text:match 'width="(%d+)"') < 900, text)
    assert.is_nil(text:find("reserved", 1, true))
  end)

  it("are refused where the options or the file are invalid", function()
    local _, err = look({":devices all", ":devices --svg /nowhere/x.svg"}, {arguments = ""})
    assert.truthy(err:find('devices: unexpected argument "all"\nhint: :devices [--svg FILE]', 1,
      true), err)
    assert.truthy(err:find('devices: cannot write "/nowhere/x.svg": ', 1, true), err)
  end)
end)

describe("an SVG diagram", function()
  it("holds any text", function()
    assert.equal("größer &lt; &amp; &gt; &quot;", svg.escape 'größer < & > "')
    assert.equal("a?b??c", svg.escape "a\xffb\xc3\xc3c")
    assert.equal("?tab\t", svg.escape "\u{FFFE}\1tab\t")
  end)

  it("distinguishes kinds by lightness, not by colour alone", function()
    -- relative luminance, and the contrast of two, by WCAG 2.2
    local function luminance(color)
      local sum = 0
      for i, weight in ipairs {0.2126, 0.7152, 0.0722} do
        local c = tonumber(color:sub(2 * i, 2 * i + 1), 16) / 255
        sum = sum + weight * (c <= 0.04045 and c / 12.92 or ((c + 0.055) / 1.055) ^ 2.4)
      end
      return sum
    end
    local function contrast(a, b)
      a, b = luminance(a), luminance(b)
      return (math.max(a, b) + 0.05) / (math.min(a, b) + 0.05)
    end
    for _, group in ipairs {{"work", "to_device", "to_host", "idle"}, {"work", "between"},
      {"used", "part", "cached", "free"}, {"used", "others", "cached"}, {"others", "free"}} do
      for i = 2, #group do
        local a, b = svg.kinds[group[i - 1]][1], svg.kinds[group[i]][1]
        assert.is_true(contrast(a, b) >= 1.3, group[i - 1] .. " and " .. group[i])
      end
    end
    for kind, colors in pairs(svg.kinds) do -- 4.5: what WCAG 2.2 asks of text
      assert.is_true(contrast(colors[1], colors[2]) >= 4.5, kind)
    end
  end)

  it("writes into a box what there is room for", function()
    assert.truthy(svg.kind_box(0, 0, 100, 20, "used", nil, {"a long name", "name"}):find ">a long")
    assert.truthy(svg.kind_box(0, 0, 40, 20, "used", nil, {"a long name", "name"}):find ">name<")
    assert.is_nil(svg.kind_box(0, 0, 20, 20, "used", nil, {"a long name", "name"}):find "<text")
  end)
end)
