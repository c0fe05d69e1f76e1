-- lt.progress. The expected texts are tqdm's (format_meter, format_interval, format_num of tqdm
-- 4.66, worked out by hand), for a clock that the test moves.

local lt = require "lutra"
local support = require "program_support"

-- A file that keeps what is written, and the clock of a bar.
local function screen()
  local self = {text = "", now = 0}
  function self.write(_, ...)
    for i = 1, select("#", ...) do self.text = self.text .. (select(i, ...)) end
    return self
  end
  function self.flush() end
  function self.clock() return self.now end
  -- The lines drawn, without the spaces at their ends.
  function self.lines()
    local lines = {}
    for line in self.text:gmatch "[^\r\n]+" do lines[#lines + 1] = (line:gsub(" +$", "")) end
    return lines
  end
  function self.last()
    local lines = self.lines()
    return lines[#lines]
  end
  return self
end

local function bar_on(s, options)
  options.file, options.clock = s, s.clock
  if options.disable == nil then options.disable = false end
  options.ncols = options.ncols or 80
  if options.ascii == nil then options.ascii = false end
  return lt.progress(options)
end

describe("progress, the line", function()
  it("is tqdm's", function()
    local s = screen()
    local bar = bar_on(s, {total = 10000, desc = "desc", ncols = 69})
    assert.equal("desc:   0%|" .. (" "):rep(32) .. "| 0/10000 [00:00<?, ?it/s]", s.last())
    bar:set_postfix{loss = 0.12}
    s.now = 33.0480349
    bar:update(7568)
    -- room for 9 cells, 0.7568 * 9 = 6.81: 6 full ones and 6 of 8 parts
    assert.equal("desc:  76%|██████▊  | 7568/10000 [00:33<00:10, 229.00it/s, loss=0.12]", s.last())
  end)

  it("fills its bar by eighths, or by tenths in ASCII", function()
    local function drawn(ascii, n)
      local s = screen()
      local bar = bar_on(s, {total = 100, ascii = ascii, ncols = 47})
      s.now = 1
      bar:update(n)
      return s.last():match "|(.-)|"
    end
    local all = drawn(false, 100)
    assert.equal(("█"):rep(utf8.len(all)), all)
    local glyphs = {[0] = " ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}
    for _, n in ipairs {1, 33, 57, 91, 99} do
      local cells = drawn(false, n)
      local width = utf8.len(cells)
      local filled = n * width * 8 // 100
      assert.equal(("█"):rep(filled // 8) .. glyphs[filled % 8]
        .. (" "):rep(width - filled // 8 - 1), cells)
    end
    local ascii = drawn(true, 57)
    local filled = 57 * #ascii * 10 // 100
    local rest = filled % 10 > 0 and tostring(filled % 10) or " "
    assert.equal(("#"):rep(filled // 10) .. rest .. (" "):rep(#ascii - filled // 10 - 1), ascii)
  end)

  it("without a total counts", function()
    local s = screen()
    local bar = bar_on(s, {})
    assert.equal("0it [00:00, ?it/s]", s.last())
    s.now = 4
    bar:update(2)
    assert.equal("2it [00:04,  2.00s/it]", s.last())
    bar = bar_on(s, {unit = "B", desc = "read"})
    s.now = 5
    bar:update(3)
    assert.equal("read: 3B [00:01,  3.00B/s]", s.last())
  end)

  it("past its total only counts", function()
    local s = screen()
    local bar = bar_on(s, {total = 2})
    s.now = 1
    bar:update(3)
    assert.equal("3it [00:01,  3.00it/s]", s.last())
  end)

  it("writes hours from an hour on", function()
    local s = screen()
    local bar = bar_on(s, {total = 20})
    s.now = 3661
    bar:update(1)
    assert.matches("1/20 %[1:01:01<19:19:19, 3661.00s/it%]$", s.last())
  end)

  it("smooths the rate by 0.3", function()
    local s = screen()
    local bar = bar_on(s, {total = 1000})
    s.now = 1
    bar:update(10) -- 10 a second
    s.now = 2
    bar:update(20) -- then 20: means 0.3 * 20 + 0.7 * 0.3 * 10 = 8.1 over 0.3 + 0.21 = 0.51
    assert.matches("%[00:02<01:01, 15%.88it/s%]$", s.last()) -- 970 / 15.882 = 61.07 s
    s.now = 10
    bar:close() -- the last one is over the whole time
    assert.matches("30/1000 %[00:10<05:23,  3%.00it/s%]$", s.last())
    assert.matches("\n$", s.text)
  end)

  it("starts from `initial` without taking that for speed", function()
    local s = screen()
    local bar = bar_on(s, {total = 100, initial = 50})
    assert.matches("^ 50%%|", s.last())
    s.now = 2
    bar:update(10)
    assert.matches("60/100 %[00:02<00:08,  5.00it/s%]$", s.last())
  end)

  it("is cut to the width", function()
    local s = screen()
    local bar = bar_on(s, {total = 10, desc = ("é"):rep(50), ncols = 20})
    s.now = 1
    bar:update(1)
    for _, line in ipairs(s.lines()) do assert.is_true(utf8.len(line) <= 20) end
    assert.equal(("é"):rep(20), s.last())
  end)

  it("wipes what a longer line left", function()
    local s = screen()
    local bar = bar_on(s, {})
    bar:set_postfix "long text"
    s.now = 1
    bar:update(1)
    bar:set_postfix(nil)
    s.now = 2
    bar:update(1)
    local first, second = s.text:match "\r([^\r]*)\r([^\r]*)$"
    assert.equal(#first, #second)
  end)
end)

describe("progress, the postfix", function()
  local function shown(values)
    local s = screen()
    local bar = bar_on(s, {ncols = 200})
    bar:set_postfix(values)
    s.now = 1
    bar:update(1)
    return s.last():match "it/s, (.*)%]$"
  end

  it("shows numbers shortly, sorted by name", function()
    assert.equal("a=1, acc=97.5, lr=1e-5, n=12345, s=text",
      shown{a = 1, acc = 97.49999, lr = 0.00001, n = 12345, s = "text"})
    assert.equal("loss=nan", shown{loss = 0 / 0})
    assert.equal("loss=inf", shown{loss = math.huge})
    assert.equal("b=true", shown{b = true})
  end)

  it("shows a tensor's number", function()
    assert.equal("loss=0.25", shown{loss = lt.tensor(0.25)})
  end)

  it("survives a value that read error", function()
    assert.truthy(shown{loss = lt.ones(2)})
    assert.truthy(shown{loss = lt.ones{1, device = "meta"}})
  end)

  it("reads a tensor when it draws, not before", function()
    local s = screen()
    local bar = bar_on(s, {})
    local loss = lt.tensor(1.5)
    s.now = 0.01
    bar:set_postfix{loss = loss}
    bar:update(1)
    loss:fill_(2.5)
    s.now = 1
    bar:update(1)
    assert.matches("loss=2.5%]$", s.last())
    assert.is_nil(s.text:find("1.5%]"))
  end)
end)

describe("progress, drawing", function()
  it("happens at most every mininterval seconds", function()
    local s = screen()
    local bar = bar_on(s, {total = 1000, mininterval = 0.1})
    for i = 1, 1000 do
      s.now = i / 1000
      bar:update(1)
    end
    assert.is_true(#s.lines() <= 11)
    assert.is_true(#s.lines() >= 9)
  end)

  it("does not happen when stderr is no terminal, nor with disable = true", function()
    local s = screen()
    local bar = bar_on(s, {total = 10, disable = true})
    s.now = 1
    bar:update(5)
    bar:refresh()
    bar:close()
    assert.equal("", s.text)
    assert.equal(5, bar.n)
    bar = lt.progress{total = 10, file = s}
    bar:update(1)
    bar:close()
    assert.equal("", s.text)
  end)

  it("ends with close, once", function()
    local s = screen()
    local bar = bar_on(s, {total = 2})
    bar:update(2)
    s.now = 1
    bar:close()
    local text = s.text
    bar:close()
    bar:update(1)
    bar:refresh()
    assert.equal(text, s.text)
    assert.matches("^100%%", s.last())
  end)

  it("wipes the bar away without leave", function()
    local s = screen()
    local bar = bar_on(s, {total = 2, leave = false, ncols = 40})
    bar:close()
    assert.matches("\r" .. (" "):rep(40) .. "\r$", s.text)
    assert.is_nil(s.text:find "\n")
  end)

  it("makes room for a line of output", function()
    local result = support.run("-e " .. support.quote [[
      local bar = lt.progress{total = 2, ncols = 30, disable = false}
      bar:write "a line"
    ]])
    assert.equal("a line\n", result.out)
    assert.equal(4, select(2, result.err:gsub("\r", ""))) -- drawn, wiped (back and forth), drawn
  end)

  it("follows a new description", function()
    local s = screen()
    local bar = bar_on(s, {total = 2, desc = "one"})
    bar:set_description "two"
    bar:refresh()
    assert.matches("^two:   0%%", s.last())
  end)
end)

describe("progress, in a for loop", function()
  local function collect(...)
    local seen = {}
    for a, b in lt.progress(...) do seen[#seen + 1] = {a, b} end
    return seen
  end

  it("gives what it wraps", function()
    local function letters() return ("abc"):gmatch "." end
    assert.same({{"a"}, {"b"}, {"c"}}, collect(letters()))
    assert.same({{"x"}, {"y"}}, collect {"x", "y"})
    assert.same({}, collect {})
    assert.same({{1}, {2}, {3}}, collect(3))
    assert.same({}, collect(0))
    local rows = collect(lt.tensor{{1, 2}, {3, 4}})
    assert.equal(2, #rows)
    assert.equal(4, rows[2][1][2]:item())
  end)

  it("passes several values and false on", function()
    local i = 0
    assert.same({{false, 1}, {false, 2}}, collect(function()
      i = i + 1
      if i < 3 then return false, i end
    end))
  end)

  it("takes an object's length and its iterator with state", function()
    local s = screen()
    local object = setmetatable({iter = function() return ipairs {"x", "y", "z"} end},
      {__len = function() return 3 end})
    local seen = {}
    for i, v in lt.progress(object, {file = s, disable = false, clock = s.clock, ncols = 60}) do
      s.now = s.now + 1
      seen[i] = v
    end
    assert.same({"x", "y", "z"}, seen)
    local lines = s.lines()
    assert.matches("^  0%%|.*| 0/3 ", lines[1])
    assert.matches("^ 33%%|.*| 1/3 %[00:01<00:02,  1.00it/s%]$", lines[2])
    assert.matches("^100%%|.*| 3/3 ", s.last())
    assert.matches("\n$", s.text)
  end)

  it("works with a DataLoader", function()
    local set = lt.data.TensorDataset(lt.arange(5), lt.arange(5))
    local loader = lt.data.DataLoader(set, {batch_size = 2})
    local s = screen()
    local count = 0
    for x, y in lt.progress(loader, {file = s, disable = false, clock = s.clock}) do
      assert.is_true(lt.equal(x, y))
      count = count + x:size(1)
    end
    assert.equal(5, count)
    assert.matches("| 3/3 ", s.last())
    count = 0
    for x in lt.progress(loader:iter(), {total = #loader}) do count = count + x:size(1) end
    assert.equal(5, count)
  end)

  it("is closed by break and by an error, and counts finished steps", function()
    local s = screen()
    local options = {total = 10, file = s, disable = false, clock = s.clock}
    for i in lt.progress(10, options) do
      if i == 4 then break end
    end
    assert.matches("| 3/10 .*", s.last())
    assert.matches("\n$", s.text)
    s = screen()
    options.file, options.clock = s, s.clock
    assert.has_error(function()
      for i in lt.progress(10, options) do
        if i == 2 then error("stop", 0) end
      end
    end, "stop")
    assert.matches("| 1/10 ", s.last())
    assert.matches("\n$", s.text)
  end)

  it("leaves the bar in hand for a postfix", function()
    local s = screen()
    local bar = lt.progress({"a", "b"}, {file = s, disable = false, clock = s.clock})
    for x in bar do bar:set_postfix{x = x} end
    assert.matches("x=b%]$", s.last())
    assert.equal(2, bar.n)
  end)
end)

describe("progress, mistakes", function()
  local function fails(...)
    local ok, message = pcall(lt.progress, ...)
    assert.is_false(ok)
    return message
  end

  it("are refused by name", function()
    assert.matches("progress: expected an argument name %(iterable, .-%), got 'totl'",
      fails{totl = 3})
    assert.matches("progress: expected an integer of at least 0 for argument 'total', got %-1",
      fails{total = -1})
    assert.matches("for argument 'iterable', got the string \"abc\"", fails "abc")
    assert.matches("for argument 'iterable', got 2.5", fails(2.5))
    assert.matches("for argument 'iterable', got true", fails(true))
    assert.matches("progress: expected a file for argument 'file', got 3", fails{{1, 2}, file = 3})
    local strings = setmetatable({}, {__index = function(_, key) return key end})
    assert.matches("progress: expected a file for argument 'file', got a table",
      fails{{1, 2}, file = strings, disable = false})
    assert.matches("progress: expected a function that returns seconds for argument 'clock'",
      fails{{1, 2}, clock = function() end})
  end)
end)
