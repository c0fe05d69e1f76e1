-- Pictures of placement: :transfers, the blocks of :devices, and the same as SVG.

local devices = require "device_support"
local lanes = require "lutra.plot.lanes"
local memory_map = require "lutra.plot.memory_map"
local program = require "program_support"
local screen = require "screen_support"

local function plain(_, text) return text end

-- What a prompt without a terminal writes for these lines, and what it complains of. options:
-- arguments, locale ("C.UTF-8").
local function look(lines, options)
  options = options or {}
  local line = ("env LC_ALL=%s NO_COLOR= %s -i --no-init %s"):format(options.locale or "C.UTF-8",
    program.quote(program.program), options.arguments or "--emulate cuda:2,memory=256MiB")
  local result = program.shell(line, table.concat(lines, "\n") .. "\n")
  return result.out:gsub("%[%d+%]> ", ""), result.err
end

local function widest(text)
  local most = 0
  for line in text:gmatch "[^\n]+" do most = math.max(most, utf8.len(line)) end
  return most
end

local function test(name, f)
  it(name, function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    f()
  end)
end

local function read_file(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- Is it XML whose elements are closed?
local function is_closed(text)
  local open = {}
  for close, name, alone in text:gmatch "<(/?)([%w]+)[^<>]-(/?)>" do
    if close == "/" then
      if table.remove(open) ~= name then return false end
    elseif alone ~= "/" then
      open[#open + 1] = name
    end
  end
  return #open == 0
end

-- 100 us: a copy that is waited for, a kernel beside work of the host, a copy on another stream to
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
    stream = "b"},
  {kind = "copy", from = "cuda:0", to = "cpu", bytes = 8, blocking = true, begin = 60,
    finish = 90, stream = "a"},
  {kind = "sync", op = "synchronize", to = "cuda:0", begin = 90, finish = 100},
}

describe("lanes", function()
  it("are the host's and each stream's", function()
    local picture = lanes.read(events)
    local names = {}
    for i, lane in ipairs(picture.lanes) do names[i] = lane.name end
    assert.same({"host", "cuda:0 s1", "cuda:0 s2", "cuda:1"}, names)
    assert.same({0, 100}, {picture.begin, picture.finish})
  end)

  it("show what takes most of each column, and what is short too", function()
    local lines = lanes.lines(lanes.read(events), {width = 37, utf8 = false, paint = plain})
    assert.same({
      "           0             100 µs",
      "host      [~~~~..####..~~~~~~~~]  80%",
      "cuda:0 s1 [>>>>########<<<<<<..]  90%",
      "cuda:0 s2 [...........>........]   2%",
      "cuda:1    [..........====......]  20%",
      "# work, > to device, < to host,",
      "= between devices, ~ the host waits,",
      ". idle",
    }, lines)
  end)

  it("are drawn in characters of UTF-8 and colours", function()
    local function paint(style, text) return ("<%s %s>"):format(style, text) end
    local lines = lanes.lines(lanes.read(events), {width = 37, utf8 = true, paint = paint})
    assert.equal("<heading cuda:1   > [<faint " .. ("·"):rep(10) .. "><number ↔↔↔↔><faint "
      .. ("·"):rep(6) .. ">]  20%", lines[5])
  end)

  it("are summed up; what is at the same time counts once", function()
    assert.equal("100 µs in all; the host waited 60 µs (60%); cuda:0 s1 was busy 90 µs (90%); "
      .. "cuda:0 s2 was busy 2 µs (2%); cuda:1 was busy 20 µs (20%)",
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
    assert.equal("0 ns in all; the host waited 0 ns (0%)", lanes.totals(picture))
  end)

  it("are none where nothing was heard", function()
    local picture = lanes.read{}
    assert.same({}, picture.lanes)
    assert.same({}, lanes.lines(picture, {width = 40, utf8 = true, paint = plain}))
  end)

  it("are drawn as SVG, at their times", function()
    local text = require("lutra.plot.lanes_svg").text(lanes.read(events), "a < b & c", {"x  1"})
    assert.is_true(is_closed(text), text)
    assert.truthy(text:find("<title>a &lt; b &amp; c</title>", 1, true))
    -- the copy to cuda:1: from 50 to 70 of 100, in 700 points from 116 on
    local x, width = text:match('<rect x="([%d.]+)" y="[%d.]+" width="([%d.]+)" [^>]*>'
      .. "<title>copy, cuda:0 %-&gt; cuda:1, 8 B, 20 µs</title>")
    assert.same({116 + 350, 140}, {tonumber(x), tonumber(width)}, text)
    assert.truthy(text:find(">x  1</text>", 1, true))
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
    assert.truthy(first:find("\n  [" .. ("."):rep(8) .. ("#"):rep(8) .. ("."):rep(24) .. "]\n", 1,
      true), first)
    assert.truthy(first:find("  1 segment, cached 16.0 MiB in 2 blocks, largest 12.0 MiB: "
      .. "fragmentation 25%", 1, true), first)
    assert.truthy(first:find("blocks: # in use, + in part, . cached, | between segments", 1, true))
    assert.is_nil(second:find "fragmentation")
    assert.is_nil(second:find "blocks:")
  end)

  test("are a part of its SVG", function()
    local path = os.tmpname()
    local out, err = look({"a = lt.zeros{1024, 1024, device = 'cuda:0'}", ":set width 40",
      ":devices --svg " .. path, ":devices"})
    assert.equal("", err)
    local text = read_file(path)
    os.remove(path)
    assert.is_true(is_closed(text), text)
    -- 4 MiB of 20 MiB of 720 points
    assert.truthy(text:find('width="144.00" height="22.00" fill="#3b6ea8"><title>4.0 MiB, in use, '
      .. "{1024, 1024}, cell[1]:1, segment for large blocks</title>", 1, true), text)
    assert.truthy(text:find("cuda:1", 1, true))
    assert.truthy(out:find("the picture to " .. path, 1, true))
    assert.is_true(widest(out:match "\ncpu.*") <= 39, out)
  end)

  it("are refused where the words or the file make no sense", function()
    local _, err = look({":devices all", ":devices --svg /nowhere/x.svg"}, {arguments = ""})
    assert.truthy(err:find('devices: what is "all"? usage: :devices [--svg FILE]', 1, true), err)
    assert.truthy(err:find("devices: cannot write /nowhere/x.svg: ", 1, true), err)
  end)
end)

local link = {arguments = "--emulate cuda:2,link=pcie4"}

describe(":transfers", function()
  test("runs the code as a cell and shows its copies, lanes and totals", function()
    local out, err = look({"x = lt.zeros{1000, 1000}", ":transfers x:to('cuda'):sum():item()",
      "_ + 1", ":transfers"}, link)
    assert.equal("", err)
    assert.truthy(out:find("^0%.?0?\nline +call +way +count +bytes +time\n"), out)
    assert.truthy(out:find("\ntransfers:1 +to +cpu %-> cuda:0 +1 +3.8 MiB +264 µs"), out)
    assert.truthy(out:find("2 copies, 3.8 MiB, 2 of them waited for; 0 waits; ", 1, true), out)
    assert.truthy(out:find("on pcie4 (virtual", 1, true), out)
    assert.truthy(out:find("\nhost   [░", 1, true), out)
    assert.truthy(out:find("\ncuda:0 [→", 1, true), out)
    assert.truthy(out:find "in all; the host waited 274 µs", out)
    assert.truthy(out:find("\n1%.?0?\nline"), out) -- the result was in _; the last one again
    assert.is_nil(out:find("times are those", 1, true))
    local _, count = out:gsub("transfers:1 +to ", "")
    assert.equal(2, count)
  end)

  test("says whose times they are without a link", function()
    local out = look{":transfers lt.zeros(3):to 'cuda'"}
    assert.truthy(out:find("times are those of the host's calls", 1, true), out)
    out = look{":transfers lt.zeros(3):add(1)"}
    assert.truthy(out:find "no copies between devices, no waits\n.*\nhost +%[.*█ work", out)
  end)

  test("shows what was heard of code that fails", function()
    local path = os.tmpname()
    local out, err = look({":transfers --svg " .. path .. " x = lt.zeros(4):to 'cuda'; error 'bad'",
      ":transfers", "x.device"}, link)
    local _, count = out:gsub("transfers:1 +to +cpu %-> cuda:0 +1 +16 B", "")
    assert.equal(2, count, out)
    assert.truthy(out:find '\n"cuda:0"\n*$', out)
    assert.truthy(err:find("error: transfers:1: bad", 1, true), err)
    assert.is_true(is_closed(read_file(path)))
    os.remove(path)
  end)

  test("writes the picture, and goes on where it cannot", function()
    local path = os.tmpname()
    local out, err = look({":transfers --svg /nowhere/x.svg lt.zeros(4):to 'cuda'",
      ":transfers --svg " .. path, "6 * 7"}, link)
    assert.truthy(err:find("error: transfers: cannot write /nowhere/x.svg", 1, true), err)
    assert.truthy(out:find("the picture to " .. path, 1, true), out)
    assert.truthy(out:find "42\n")
    local text = read_file(path)
    os.remove(path)
    assert.is_true(is_closed(text))
    assert.truthy(text:find("1 copy, 16 B", 1, true), text)
    assert.truthy(text:find("cuda:0</text>", 1, true), text)
  end)

  it("wants code the first time, and code that can be read", function()
    local _, err = look({":transfers", ":transfers --svg", ":transfers x ="}, {arguments = ""})
    assert.truthy(err:find("transfers: no code, and nothing was run before; usage: :transfers",
      1, true), err)
    assert.truthy(err:find("transfers: --svg wants a value", 1, true), err)
    assert.truthy(err:find("transfers:1: ", 1, true), err)
  end)

  test("fits 40 columns, in ASCII too", function()
    local out = look({":set width 40", ":transfers lt.zeros(3):to 'cuda':sum():item()"},
      {arguments = link.arguments, locale = "C"})
    assert.is_true(widest(out:match "\nline.*") <= 39, out)
    assert.truthy(out:find "\nhost   %[[~#.]+%]")
    assert.is_nil(out:match "\nhost[^\n]*":find "[\x80-\xff]")
  end)

  for _, columns in ipairs {40, 120} do
    test(("in a terminal of %d columns"):format(columns), function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns, rows = 40,
        arguments = "--no-init " .. link.arguments}
      s:expect "[1]>"
      s:enter "x = lt.zeros(999, 999)"
      s:expect "[2]>"
      s:enter ":transfers local y = x:to 'cuda'"
      s:expect "in all; the host"
      s:expect "· idle"
      s:expect "cuda:0 [→"
      for row in s:text():gmatch "\n(%l+:?%d? +%[[^\n]*%%)" do
        assert.equal(columns - 1, utf8.len(row), row)
      end
      local colored = s:text(true)
      assert.truthy(colored:find "\27%[[%d;:]*35m→", colored)
      s:enter ":devices"
      s:expect "fragmentation"
      s:expect "between segments"
      assert.truthy(s:text():find("█▄·", 1, true), s:text())
    end)
  end
end)

describe(":where --svg", function()
  local runs = require("lutra.plot.storage_svg").runs

  it("marks the elements that a tensor sees", function()
    assert.same({{0, 11}}, runs(0, {3, 4}, {4, 1}))
    assert.same({{0, 11}}, runs(0, {4, 3}, {1, 4})) -- turned round, they are all of them still
    assert.same({{1, 1}, {5, 5}, {9, 9}}, runs(1, {3}, {4}))
    assert.same({{1, 2}, {5, 6}, {9, 10}}, runs(1, {3, 2}, {4, 1}))
    assert.same({{7, 7}}, runs(7, {}, {}))
    assert.same({{2, 2}}, runs(2, {5, 1}, {0, 9})) -- expanded: one element, again and again
    assert.same({{0, 4}}, runs(0, {3, 3}, {1, 1})) -- overlapping
    assert.same({}, runs(3, {0, 4}, {4, 1}))
    local list, complete = runs(1, {3000}, {2})
    assert.same({{1, 5999}}, list)
    assert.is_false(complete)
  end)

  it("writes the storage with the view marked", function()
    local path = os.tmpname()
    local out, err = look({"x = lt.zeros(3, 4)", "y = x:select(2, 2)",
      ":where --svg " .. path .. " y", ":where y --svg " .. path}, {arguments = ""})
    assert.equal("", err)
    local _, count = out:gsub("the picture to ", "")
    assert.equal(2, count)
    local text = read_file(path)
    os.remove(path)
    assert.is_true(is_closed(text), text)
    -- element 5 of 12, in 720 points from 16 on
    assert.truthy(text:find '<rect x="316.00" [^>]*width="60.00" [^>]*><title>element 5</title>',
      text)
    assert.truthy(text:find("<title>bytes 4 to 39 of 48</title>", 1, true), text)
    assert.truthy(text:find("strides  {4}, not contiguous", 1, true), text)
  end)

  it("draws what has no data, or no elements", function()
    local path = os.tmpname()
    for _, expression in ipairs {"lt.zeros(0)", "lt.empty{2, device = 'meta'}", "lt.tensor(1)"} do
      local _, err = look({":where --svg " .. path .. " " .. expression}, {arguments = ""})
      assert.equal("", err)
      assert.is_true(is_closed(read_file(path)))
    end
    os.remove(path)
  end)

  it("says what cannot be drawn or written", function()
    local _, err = look({":where --svg /nowhere/x.svg lt.zeros(2)", ":where --svg x.svg {}",
      ":where --svg x.svg 3", ":where --svg x.svg"}, {arguments = ""})
    assert.truthy(err:find("where: cannot write /nowhere/x.svg: ", 1, true), err)
    assert.truthy(err:find("where: {} is a table; --svg draws one tensor", 1, true), err)
    assert.truthy(err:find("where: 3 is a number; --svg draws one tensor", 1, true), err)
    assert.truthy(err:find("where: --svg is no option, or its value is missing", 1, true), err)
  end)
end)
