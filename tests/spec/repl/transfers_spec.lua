-- :transfers: its table, lanes and map, as text and as SVG.

local devices = require "device_support"
local screen = require "screen_support"
local support = require "pictures_support"

local look, widest = support.look, support.widest
local is_closed, read_file = support.is_closed, support.read_file

local test = devices.emulated_it(_ENV)

local link = {arguments = "--emulate cuda:2,link=pcie4"}

describe(":transfers", function()
  test("runs the code as a cell and shows its copies, lanes and totals", function()
    local out, err = look({"x = lt.zeros{1000, 1000}", ":transfers x:to('cuda'):sum():item()",
      "_ + 1", ":transfers"}, link)
    assert.equal("", err)
    assert.truthy(out:find("^0%.?0?\nline +call +direction +count +bytes +time\n"), out)
    assert.truthy(out:find("\ntransfers:1 +to +cpu %-> cuda:0 +1 +3.8 MiB +264 µs"), out)
    assert.truthy(out:find("2 copies, 3.8 MiB, 2 blocking; 0 other waits; ", 1, true), out)
    assert.truthy(out:find("in total on pcie4\n  (virtual)", 1, true), out)
    assert.truthy(out:find("\nhost   [█░", 1, true), out)
    assert.truthy(out:find("\ncuda:0 [·→", 1, true), out)
    assert.truthy(out:find "in total; host blocked 274 µs", out)
    assert.truthy(out:find("\n1%.?0?\nline"), out) -- the result was in _; the last one again
    assert.is_nil(out:find("times are those", 1, true))
    local _, count = out:gsub("transfers:1 +to ", "")
    assert.equal(2, count)
  end)

  test("shows work on the stream that it was given to", function()
    local out, err = look({"s = lt.cuda.Stream()", "x = lt.zeros{1000, 1000, device = 'cuda:0'}",
      ":transfers lt.cuda.with_stream(s, function() for i = 1, 9 do x:exp() end end) "
        .. "x:neg() s:synchronize()"},
      {arguments = "--emulate cuda:1,link=pcie4"})
    assert.equal("", err)
    assert.truthy(out:find "\ncuda:0 default %[[·█]+%] +11%%\n", out) -- one of 14 of 131 µs
    assert.truthy(out:find "\ncuda:0 s1 +%[[·█]+%] +96%%\n", out) -- nine of them
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

  test("writes the diagram, and continues where it cannot", function()
    local path = os.tmpname()
    local out, err = look({":transfers --svg /nowhere/x.svg lt.zeros(4):to 'cuda'",
      ":transfers --svg " .. path, "6 * 7"}, link)
    assert.truthy(err:find("error: transfers: cannot write \"/nowhere/x.svg\"", 1, true), err)
    assert.truthy(out:find("the picture to " .. path, 1, true), out)
    assert.truthy(out:find "42\n")
    local text = read_file(path)
    os.remove(path)
    assert.is_true(is_closed(text))
    assert.truthy(text:find("1 copy, 16 B", 1, true), text)
    assert.truthy(text:find("cuda:0</text>", 1, true), text)
  end)

  test("shows what is left on the devices that were used", function()
    local path = os.tmpname()
    local out, err = look({"w, x = lt.zeros{1024, 1024, device = 'cuda:1'}, lt.zeros(256)",
      "net = {a = lt.zeros{64, device = 'cuda:1'}, b = lt.zeros{64, device = 'cuda:1'}}",
      -- what the loop makes is gone, whenever a collector would have run
      ":transfers --svg " .. path .. " for i = 1, 3 do local y = w:cpu() end", "w = nil x = nil",
      ":transfers", ":transfers lt.zeros(3):add(1)"},
      {arguments = link.arguments .. ",memory=64MiB"})
    assert.equal("", err)
    -- of 64 MiB, in 40 columns: 4 are 2.5, the 18 of two segments (20 and 2) that are cached 11.25
    local map = "\nmemory in use after the run:\n  cpu      x 1.0 KiB\n  cuda:1   [███"
      .. ("▒"):rep(11) .. ("·"):rep(26) .. "]\n           w 4.0 MiB, net 512 B\n"
      .. "█ tensors, ▒ cached, ░ others, · free\n"
    local first = assert(out:find(map, 1, true), out)
    assert.truthy(out:find(map, first + 1, true), out) -- the last one's, as it was
    local _, count = out:gsub("cuda:0", "")
    assert.equal(0, count)
    local text = read_file(path)
    os.remove(path)
    assert.is_true(is_closed(text))
    assert.truthy(text:find(">           w 4.0 MiB, net 512 B</text>", 1, true), text)
  end)

  test("says that no tensor is left", function()
    local out, err = look({":transfers local _ = lt.zeros(3):to('cuda'):sum():item()"}, link)
    assert.equal("", err)
    assert.truthy(out:find "\nmemory in use after the run: no tensors\n", out)
  end)

  test("says of a device that does not answer where to read why", function()
    local out, err = look({"x = lt.zeros{4, device = 'cuda'}",
      "require('lutra.core')._accelerator.memory_info = "
        .. "function() error('/lib/lutra/file.lua:12: the driver is gone', 0) end",
      ":transfers x:cpu();", ":devices"}, link)
    assert.equal("", err)
    assert.truthy(out:find("\n  cuda:0   not available, see :devices\n", 1, true), out)
    assert.truthy(out:find("\ncuda:0\n  not available: the driver is gone\n", 1, true), out)
  end)

  test("cuts names that are too long for the map, and counts the small tensors", function()
    local out = look({":set width 40",
      "a_long_name_for_a_small_tensor = lt.zeros{9, device = 'cuda'}",
      "a, b, c, d = lt.zeros(6), lt.zeros(5), lt.zeros(4), lt.zeros(3)",
      "e, f = lt.zeros(2), lt.zeros(1)", ":transfers a_long_name_for_a_small_tensor:add_(1);"},
      {arguments = link.arguments, locale = "C"})
    assert.truthy(out:find("\n  cpu      a 24 B, b 20 B, c 16 B,\n           d 12 B,\n"
      .. "           2 more variables 12 B\n  cuda:0   [#=", 1, true), out)
    assert.truthy(out:find("\n           a_long_name_for_a_sm.. 36 B\n", 1, true), out)
    assert.is_true(widest(out:match "\nmemory in use.*") <= 39, out)
  end)

  it("says when it is only the beginning", function()
    local list = {{kind = "copy", from = "cpu", to = "cuda:0", bytes = 4000, blocking = true,
      begin = 0, finish = 20, stream = "a", op = "to", where = "t.lua:1"}}
    local listener = {dropped = function() return 1234 end, events = function()
      return function() return table.remove(list) end
    end}
    local trace = require("lutra.placement.trace").new(listener)
    local only = "; 1,234 events did not fit and are missing"
    assert.truthy(trace:table(200):find("0 other waits; 20 µs in total" .. only, 1, true),
      trace:table(200))
    trace.events = {}
    assert.equal("no copies between devices, no waits" .. only, trace:table(200))
  end)

  it("expects code the first time, and code that compiles", function()
    local _, err = look({":transfers", ":transfers --svg", ":transfers x =",
      ":transfers --svgg x.svg 1 + 1", ":devices --svg=x.svg"}, {arguments = ""})
    assert.truthy(err:find('transfers: expected code, got none, and no earlier code was traced\n'
      .. 'hint: :transfers', 1, true), err)
    assert.truthy(err:find("transfers: unknown option --svgg\nhint: :transfers", 1, true), err)
    assert.truthy(err:find("devices: unknown option --svg=x.svg\nhint: :devices", 1, true), err)
    assert.truthy(err:find("transfers: expected a value for option --svg", 1, true), err)
    assert.truthy(err:find("transfers:1: ", 1, true), err)
  end)

  test("fits 40 columns, in ASCII too", function()
    local out = look({":set width 40", ":transfers lt.zeros(3):to 'cuda':sum():item()"},
      {arguments = link.arguments, locale = "C"})
    assert.is_true(widest(out:match "\nline.*") <= 39, out)
    assert.truthy(out:find "\nhost   %[[~#.]+%]")
    assert.is_nil(out:find "[\x80-\xff]")
  end)

  for _, columns in ipairs {40, 120} do
    test(("in a terminal of %d columns"):format(columns), function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns, rows = 50,
        arguments = "--no-init " .. link.arguments}
      s:expect "[1]>"
      s:enter "x = lt.zeros(999, 999)"
      s:expect "[2]>"
      s:enter ":transfers local y = x:to 'cuda'"
      s:expect "in total; host"
      s:expect "· idle"
      s:expect "98%"
      for row in s:text():gmatch "\n(%l+:?%d? +%[[^\n]*%%)" do
        assert.equal(columns - 1, utf8.len(row), row)
      end
      assert.equal(columns - 1, utf8.len(s:text():match "\n( +0[^\n]*busy)"))
      local colored = s:text(true)
      assert.truthy(colored:find "35m[\27%[%d;m]*→", colored)
      s:enter ":devices"
      s:expect "fragmentation"
      s:expect "outside its largest block"
      assert.truthy(s:text():find("█▄▒", 1, true), s:text())
    end)
  end
end)
