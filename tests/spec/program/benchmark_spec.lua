--- lt.utils.benchmark: statistics and texts as PyTorch has them for the same times
-- (tools/golden/benchmark.py), the algorithms of a Timer with a clock of the test, errors.

local devices = require "device_support"
devices.elsewhere("program/benchmark", _ENV, {any = true}) -- and here
local lt = require "lutra"
local support = require "nn_support"
local program = require "program_support"

local benchmark = lt.utils.benchmark
local Timer, Measurement, Compare = benchmark.Timer, benchmark.Measurement, benchmark.Compare
local fails = devices.fails
local golden = support.golden "benchmark"

local function near(expected, got)
  assert.is_true(math.abs(expected - got) <= 1e-12 * math.abs(expected),
    ("expected %.17g, got %.17g"):format(expected, got))
end

describe("measurements of PyTorch " .. golden.version, function()
  for number, case in ipairs(golden.measurements) do
    it("have the same statistics and text, case " .. number, function()
      local m = Measurement(case.given)
      for i, t in ipairs(case.times) do near(t, m.times[i]) end
      for _, name in ipairs {"mean", "median", "iqr"} do
        if case[name] == 0 then assert.equal(0, m[name]) else near(case[name], m[name]) end
      end
      assert.equal(case.significant_figures, m.significant_figures)
      assert.equal(case.has_warnings, m.has_warnings)
      for i, threshold in ipairs {0.01, 0.1, 0.3} do
        assert.equal(case.meets[i], m:meets_confidence(threshold))
      end
      assert.equal(case.meets[2], m:meets_confidence())
      assert.equal(case.title, m.title)
      assert.equal(case.row, m.as_row_name)
      assert.equal("<lt.utils.benchmark.Measurement>\n" .. case.text, tostring(m))
    end)
  end

  for number, case in ipairs(golden.tables) do
    it("are compared in the same table, case " .. number, function()
      local results = {}
      for i, given in ipairs(case.results) do results[i] = Measurement(given) end
      local c = Compare(results)
      if case.trim then c:trim_significant_figures() end
      if case.color then c:colorize{rowwise = case.color == "rows"} end
      if case.highlight then c:highlight_warnings() end
      assert.equal(case.text, tostring(c))
    end)
  end
end)

describe("lt.utils.benchmark.Measurement", function()
  local function of(times, task, number)
    return Measurement{number_per_run = number or 1, raw_times = times, task_spec = task}
  end

  it("has the fields of its task and its arguments", function()
    local m = Measurement(2, {4, 8}, {task_spec = {stmt = "f()", label = "L", sub_label = "S",
      description = "D", env = "E", setup = "g()", num_threads = 3}, metadata = "kept"})
    assert.same({"f()", "L", "S", "D", "E", "g()", 3, "kept", 2},
      {m.stmt, m.label, m.sub_label, m.description, m.env, m.setup, m.num_threads, m.metadata,
      m.number_per_run})
    assert.same({4, 8}, m.raw_times)
    assert.same({2, 4}, m.times)
    assert.same({"L: S", "S", 3}, {m.title, m.as_row_name, m.median})
    assert.equal("[Unknown]", Measurement(1, {1}).as_row_name)
  end)

  it("merges the times per call of the same task", function()
    local a = {label = "a"}
    local merged = Measurement.merge{of({4}, a, 4), of({7}, {label = "b"}), of({6, 8}, a, 2)}
    assert.equal(2, #merged)
    assert.same({1, 3, 4}, merged[1].times)
    assert.same({"a", 1, "b"}, {merged[1].label, merged[1].number_per_run, merged[2].label})
    assert.equal(2, #Measurement.merge{of({1}, {stmt = "f", num_threads = 2}),
      of({1}, {stmt = "f"})})
    assert.same({}, Measurement.merge{})
    local Mine = Measurement:extend "Mine"
    assert.equal(1, #Measurement.merge{Mine(1, {2})})
  end)

  it("refuses what is no measurement", function()
    fails("Measurement: expected at least one time for argument 'raw_times', got a table",
      Measurement, 1, {})
    fails("Measurement: expected a positive number of seconds for argument 'raw_times[2]', got 0",
      Measurement, 1, {1, 0})
    fails("'raw_times[1]', got nan", Measurement, 1, {0 / 0})
    fails("Measurement: expected an integer of at least 1 for argument 'number_per_run', got 0",
      Measurement, 0, {1})
    fails("Measurement: expected an argument name (stmt, setup, label, sub_label, description, "
      .. "env, num_threads), got 'labels'", Measurement, 1, {1}, {task_spec = {labels = "x"}})
    fails("merge: expected a Measurement for argument 'measurements[2]', got the string \"x\"",
      Measurement.merge, {of{1}, "x"})
    fails("meets_confidence: expected a number for argument 'threshold', got the string \"x\"",
      of{1}.meets_confidence, of{1}, "x")
  end)
end)

-- Returns a clock, and a function that lets its time pass.
local function fake_clock()
  local now = 0
  return function() return now end, function(seconds) now = now + seconds end
end

describe("lt.utils.benchmark.Timer", function()
  it("measures a block after a warm-up of a hundredth", function()
    local clock, pass = fake_clock()
    local calls, setups = 0, 0
    local timer = Timer{stmt = function() calls = calls + 1; pass(0.25) end, timer = clock,
      setup = function() setups = setups + 1; pass(100) end}
    local m = timer:timeit(300)
    assert.same({303, 2}, {calls, setups})
    assert.same({300, {75.0}, 0.25}, {m.number_per_run, m.raw_times, m.median})
    calls = 0
    timer:timeit{number = 5}
    assert.equal(7, calls)
  end)

  it("chooses the size of blocks and measures for min_run_time", function()
    -- 2^-20 s per call, and no time to read the clock: 0.2 / 1000 s take more than 100 calls; a
    -- block of 1000 takes about 0.00095 s, so that 210 of them take 0.2 s.
    local clock, pass = fake_clock()
    local heard = {}
    local m = Timer{stmt = function() pass(2 ^ -20) end, timer = clock}:blocked_autorange{
      callback = function(number, time) heard[#heard + 1] = {number, time} end}
    assert.equal(1000, m.number_per_run)
    assert.equal(210, #m.times)
    assert.same({1000, 1000 * 2 ^ -20}, heard[210])
    assert.equal(2 ^ -20, m.median)
    -- A call that takes longer than min_run_time is a block.
    m = Timer{stmt = function() pass(1) end, timer = clock}:blocked_autorange{min_run_time = 0.5}
    assert.same({1, {1.0}}, {m.number_per_run, m.raw_times})
    -- 2^-14 s to read the clock; 1e4 times that are 0.6 s, more than 0.25 s: a block of 1 s.
    local function slow_clock() pass(2 ^ -14) return clock() end
    m = Timer{stmt = function() pass(2 ^ -10) end, timer = slow_clock}:blocked_autorange(nil, 0.25)
    assert.equal(1000, m.number_per_run)
  end)

  it("measures until times vary little, or for max_run_time", function()
    local clock, pass = fake_clock()
    local blocks, seconds = 0, {1, 3, 1, 3, 1, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}
    local timer = Timer{stmt = function() blocks = blocks + 1; pass(seconds[blocks] or 2) end,
      timer = clock}
    blocks = -1 -- the first call finds the size of a block
    seconds[0] = 1
    local m = timer:adaptive_autorange(0.3, 1, 100)
    -- The quartiles of 1, 3, 1, 3, 1, 3 and six times 2 are 1.75 and 2.25: 0.5 < 0.3 * 2.
    assert.same({1, 12}, {m.number_per_run, #m.times})
    blocks = -1
    m = timer:adaptive_autorange{threshold = 0.3, max_run_time = 7.5}
    assert.same({1, 3, 1, 3}, m.raw_times)
    blocks = 20
    assert.equal(4, #timer:adaptive_autorange().times)
  end)

  it("runs strings with their own variables", function()
    local list = {}
    _G.benchmark_spec_outside = 5
    Timer{stmt = "local y = base * 2\nadd(y + benchmark_spec_outside) leaked = 1",
      setup = "local base = start + 1", globals = {start = 20, add = function(y) list[#list + 1] = y
      end}}:timeit(2)
    _G.benchmark_spec_outside = nil
    assert.same({47, 47, 47, 47}, list)
    assert.is_nil(rawget(_G, "leaked"))
    Timer("lt.ones(2) + 1 -- a comment", "local x = 1 -- another"):timeit(1)
    local count = 0
    local function tick() count = count + 1 return count end
    for _, stmt in ipairs {"if tick() then return end", "tick() goto done ::done::",
      "for _ = 1, 3 do tick() break end", "return tick()", "tick()", "tick() + 1"} do
      count = 0
      Timer(stmt, {globals = {tick = tick}}):timeit(1)
      assert.equal(3, count, stmt)
    end
    assert.equal(2, Timer():timeit(2).number_per_run)
  end)

  it("describes its measurements", function()
    local timer = Timer{stmt = "\n    local a = 1\n      a = 2\n  ", setup = "  x = 1 ",
      label = "L", sub_label = "S", description = "D", env = "E", num_threads = 2}
    local m = timer:timeit(1)
    assert.same({"local a = 1\n  a = 2", "x = 1", "L", "S", "D", "E", 2},
      {m.stmt, m.setup, m.label, m.sub_label, m.description, m.env, m.num_threads})
    assert.equal("Timer(L)", tostring(timer))
    assert.truthy(Timer(function() end):timeit(1).stmt:find "^function <.*benchmark_spec.lua:%d+>$")
    assert.equal("function", Timer(collectgarbage):timeit(1).stmt)
  end)

  it("sets the threads while it measures, and changes nothing else", function()
    local before = lt.get_num_threads()
    local seen
    local function stmt() seen = {lt.get_num_threads(), lt.is_grad_enabled()} end
    Timer{stmt = stmt, num_threads = 3}:timeit(1)
    assert.same({3, true}, seen)
    Timer{stmt = stmt}:timeit(1)
    assert.same({1, true}, seen)
    lt.no_grad(function() Timer{stmt = stmt}:timeit(1) end)
    assert.same({1, false}, seen)
    assert.is_true(lt.is_grad_enabled())
    assert.equal(before, lt.get_num_threads())
    local fail = Timer{stmt = function() error("stop", 0) end, num_threads = before + 1}
    for _, name in ipairs {"timeit", "blocked_autorange", "adaptive_autorange"} do
      local ok, message = pcall(fail[name], fail)
      assert.same({false, "stop", before}, {ok, message, lt.get_num_threads()})
    end
    local _, message = pcall(function() Timer("local y\nnil_value.x = 1"):timeit(1) end)
    assert.truthy(message:find("stmt:2: attempt to index a nil value", 1, true), message)
  end)

  it("waits for devices before it reads the clock", function()
    if not devices.can_emulate "cuda" then return pending "no emulated cuda in this build" end
    local path = program.file [[
local lt = require "lutra"
local x = lt.ones{100, device = "cuda"}
local timer = lt.utils.benchmark.Timer{stmt = function() x = x + 1 end}
local profile = lt.profiler.profile(function() timer:timeit(3) end, {synchronize = false})
local kinds = {}
for event in profile:events() do
  if event.kind == "op" or event.kind == "wait" then kinds[#kinds + 1] = event.kind end
end
print(table.concat(kinds, " "))
]]
    local result = program.run("--emulate cuda:1 " .. path)
    os.remove(path)
    assert.same({0, "wait op op wait wait op op op wait\n"}, {result.status, result.out},
      result.err)
  end)

  it("refuses what it cannot measure", function()
    fails("Timer: expected Lua code for argument 'stmt', got an error: stmt:1: ", Timer, "x = = 1")
    fails("Timer: expected Lua code for argument 'stmt', got an error: stmt:1: ", Timer,
      "end while true do")
    fails("Timer: expected Lua code for argument 'setup', got an error: setup:2: ", Timer, "",
      "\nlocal y\nx =")
    fails("Timer: cannot compile stmt and setup: setup and stmt:2: ", Timer, "a = 2",
      "local a <const> = 1")
    fails("Timer: expected a string or a function for argument 'stmt', got 1", Timer, 1)
    fails("Timer: expected 'lua' for argument 'language', got \"c++\": Lutra runs no other "
      .. "language", Timer, {language = "c++"})
    fails("Timer: global_setup is not supported: it is for code in C++", Timer,
      {global_setup = "#include <x>"})
    fails("Timer: expected an integer from 1 to 1024 for argument 'num_threads', got 1025", Timer,
      {num_threads = 1025})
    fails("Timer: expected an integer of at least 1 for argument 'num_threads', got 0", Timer,
      {num_threads = 0})
    fails("Timer: cannot use globals: stmt is a function", Timer, print, {globals = {x = 1}})
    fails("Timer: expected a table of variables by name for argument 'globals', got a table", Timer,
      "x()", {globals = {1}})
    fails("Timer: expected an argument name (stmt, ", Timer, {statement = "f()"})
    local timer = Timer ""
    fails("timeit: expected an integer of at least 1 for argument 'number', got 0", timer.timeit,
      timer, 0)
    fails("blocked_autorange: expected a positive number of seconds for argument 'min_run_time', "
      .. "got 0", timer.blocked_autorange, timer, nil, 0)
    fails("blocked_autorange: expected a function for argument 'callback', got 1",
      timer.blocked_autorange, timer, 1)
    fails("adaptive_autorange: expected a positive number for argument 'threshold', got -1",
      timer.adaptive_autorange, timer, -1)
    fails("adaptive_autorange: expected a positive number of seconds for argument 'max_run_time', "
      .. "got 0", timer.adaptive_autorange, timer, {max_run_time = 0})
    fails("collect_callgrind: not supported: Lutra does not count instructions",
      timer.collect_callgrind, timer)
    timer = Timer{timer = function() return "now" end}
    fails("Timer: expected a function that returns a number of seconds for argument 'timer', got "
      .. "the string \"now\"", timer.timeit, timer, 1)
    timer = Timer{timer = function() return 1 end}
    fails("Timer: cannot measure: the clock does not advance", timer.blocked_autorange, timer)
    timer = Timer("f()", "do return end")
    fails("Timer: cannot measure: setup returned", timer.timeit, timer, 1)
  end)
end)

describe("lt.utils.benchmark.Compare", function()
  local function of(seconds, task)
    return Measurement{number_per_run = 1, raw_times = {seconds}, task_spec = task}
  end

  it("shows measurements without label, description or env", function()
    local lines = {"[-------  ------]", "           |     ", "1 threads: ------",
      "      f()  |  2.0", "", "Times are in seconds (s).", ""}
    assert.equal(table.concat(lines, "\n"), tostring(Compare{of(2, {stmt = "f()"})}))
    local text = tostring(Compare{of(2, {stmt = "f()", env = "new"}), of(1, {stmt = "f()"})})
    assert.truthy(text:find("(new)" .. (" "):rep(14) .. "f()  |  2.0", 1, true), text)
    assert.truthy(text:find("(Unspecified env)  f()  |  1.0", 1, true), text)
    assert.equal("", tostring(Compare{}))
  end)

  it("prints its tables, one after the other", function()
    local path = program.file [[
local benchmark = require("lutra").utils.benchmark
local c = benchmark.Compare{benchmark.Measurement(1, {1})}
c:extend_results{benchmark.Measurement(1, {2}, {task_spec = {label = "x"}})}
c:print()
]]
    local result = program.run(path)
    os.remove(path)
    local c = Compare{of(1), of(2, {label = "x"})}
    assert.equal(tostring(c) .. "\n", result.out)
    assert.truthy(result.out:find("- x -", 1, true), result.out)
  end)

  it("aligns names that are not ASCII", function()
    local text = tostring(Compare{of(1, {sub_label = "größe", description = "ä"}),
      of(2, {sub_label = "n", description = "ä"})})
    assert.truthy(text:find("      größe  |  1.0\n      n      |  2.0\n", 1, true), text)
  end)

  it("refuses other values and stays as it was", function()
    fails("Compare: expected a Measurement for argument 'results[1]', got 1", Compare, {1})
    local c = Compare{of(1)}
    local text = tostring(c)
    fails("extend_results: expected a Measurement for argument 'results[2]', got a table",
      c.extend_results, c, {of(2), {}})
    fails("colorize: expected a boolean for argument 'rowwise', got 1", c.colorize, c, 1)
    assert.equal(text, tostring(c))
  end)
end)
