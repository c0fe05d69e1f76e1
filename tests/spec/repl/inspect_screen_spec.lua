-- The commands that look, on terminals of 40 and of 120 columns.

local devices = require "device_support"
local screen = require "screen_support"

-- Enters lines, each after the prompt of the one before.
local function enter(s, ...)
  for _, line in ipairs {...} do
    s:wait(function()
      local lines = s:lines()
      return lines[#lines] and lines[#lines]:match "^%[%d+%]>$"
    end, "no prompt")
    s:enter(line)
  end
end

-- Waits for the prompt after what was entered; the screen, and that no line was broken by its edge.
local function finish(s, text)
  s:expect(text)
  s:wait(function()
    local lines = s:lines()
    return lines[#lines]:match "^%[%d+%]>$"
  end, "no prompt")
  return s:text()
end

for _, columns in ipairs {40, 120} do
  local function test(name, options, f)
    it(name, function()
      if not screen.available() then return pending "needs tmux" end
      if options.arguments and not devices.can_emulate() then
        return pending "no emulated CUDA in this build"
      end
      options.columns, options.rows = columns, options.rows or 40
      options.arguments = "--no-init " .. (options.arguments or "")
      local s <close> = screen.open(options)
      f(s)
    end)
  end

  describe(("commands that inspect, at %d columns:"):format(columns), function()
    test(":whos", {}, function(s)
      enter(s, "x = lt.zeros(3, 4)", "y = x:t()", "net = nn.Linear(3, 4)", ":whos")
      local text = finish(s, "total on cpu")
      assert.truthy(text:find(columns == 40 and "\nx +{3, 4} +cpu +48 B +y\n"
        or "\nx +tensor +{3, 4} +float32 +cpu +48 B +y\n"), text)
      assert.truthy(text:find("total on cpu: 112 B in 3 storages", 1, true), text)
    end)

    test("long names and a tensor", {}, function(s)
      enter(s, "a_name_that_is_long = lt.zeros{10000, 28, 28}", ":whos")
      local text = finish(s, "total on cpu")
      assert.truthy(text:find(columns == 40 and "\na_name_..  {10000, ..  cpu     29.9 MiB\n"
        or "\na_name_that_is_long  tensor  {10000, 28, 28}  float32  cpu     29.9 MiB\n", 1, true),
        text)
      enter(s, "lt.zeros(2, 20)")
      text = finish(s, "shape = {2, 20}}")
      assert.truthy(text:find("\n       {0., 0., 0., 0., 0., 0., 0., 0." .. (columns == 40 and ",\n"
        or ", 0."), 1, true), text)
      enter(s, "{x = lt.zeros(9)}", "lt.get_printoptions().linewidth")
      finish(s, "\n80\n")
    end)

    test(":devices", {arguments = "--emulate cuda:2,memory=256MiB"}, function(s)
      enter(s, "x = lt.zeros{1024, 256, device = 'cuda:1'}", ":devices")
      local text = finish(s, "outside its largest")
      assert.truthy(text:find("\ncuda:1 ", 1, true), text)
      assert.truthy(text:find("\n    x  1.0 MiB\n", 1, true), text)
      assert.truthy(text:find("\n  memory   [█▒" .. ("·"):rep(columns == 40 and 24 or 38) .. "]", 1,
        true), text)
      assert.truthy(text:find("█ tensors, ▒ cached,", 1, true), text)
    end)

    test(":where", {}, function(s)
      enter(s, "x = lt.zeros(3, 4)", "y = x:t()", ":where y")
      local text = finish(s, "held by  x, y")
      assert.truthy(text:find("\nstrides  {1, 4}, not contiguous\n", 1, true), text)
      assert.truthy(text:find("\nstorage  0x%x+\n"), text)
    end)

    test(":tree", {}, function(s)
      enter(s, ":tree nn.Sequential(nn.Linear(3, 4), nn.ReLU())")
      local text = finish(s, "└─ 2  ReLU")
      assert.truthy(text:find("├─ 1  Linear 16 params, 64 B on", 1, true), text)
      assert.truthy(text:find("│  ├─ weight  {4, 3} float32\n", 1, true), text)
    end)

    test(":plot", {}, function(s)
      enter(s, ":plot lt.linspace(0, 10, 200)")
      local text = finish(s, "┬")
      local most = 0
      for line in text:match("10┤.*"):gmatch "[^\n]+" do most = math.max(most, utf8.len(line)) end
      assert.is_true(most <= columns - 1 and most >= columns - 3, text)
      enter(s, ":plot --hist --bins 3 {1, 2, 2, 4}")
      text = finish(s, "3 .. 4")
      assert.truthy(text:find "\n2 .. 3 [█]+ 2\n", text)
    end)

    test(":image", {environment = "COLORTERM=truecolor"}, function(s)
      enter(s, ":image lt.tensor{{0., 1.}, {1., 0.}}")
      finish(s, "{2, 2} float32")
      local colored = s:text(true)
      assert.truthy(colored:find "\27%[[%d;:]+m▀", colored)
      enter(s, ":image lt.rand(3, 200, 300)")
      local text = finish(s, "{3, 200, 300} float32")
      local widths = 0
      for line in text:gmatch "[^\n]+" do
        local _, count = line:gsub("▀", "")
        widths = math.max(widths, count)
      end
      assert.is_true(widths <= columns - 1 and widths >= columns / 2 - 10, text)
    end)

    test(":grad", {}, function(s)
      enter(s, "w = lt.ones{2, requires_grad = true}", "loss = (w * 2):exp():sum()", ":grad loss")
      local text = finish(s, "3 nodes, 1 leaf, saves 8 B")
      assert.truthy(text:find("\n● SumBackward  {}\n● ExpBackward  {2}  saves 8 B\n"
        .. "● MulBackward  {2}\n╰─ w  {2}\n", 1, true), text)
    end)

    test(":print", {}, function(s)
      enter(s, ":print summary", "lt.arange(1, 2)")
      assert.truthy(finish(s, "i64[2] n=2"):find("x∈[1|█   █|2]", 1, true))
      enter(s, ":print default", "lt.arange(1, 2)")
      finish(s, "tensor{1, 2}")
    end)
  end)
end
