--- lt.utils.benchmark.Timer: measures how long a function or a string of code takes.
--
-- Invariant: the clock is read only when no device that the program has used is still running, and
-- the number of threads is the Timer's while code is measured and the former one afterwards, also
-- after an error.

local lt = require "lutra"
local args = require "lutra.internal.args"
local core = require "lutra.core"
local Measurement = require "lutra.utils.benchmark.measurement"
local profiler = require "lutra.profiler"
local scope_guard = require "lutra.internal.scope_guard"

local Timer = require "lutra.internal.class"("Timer", "lt.utils.benchmark.Timer")

local MAX_THREADS = 1024 -- of set_num_threads
local MAX_BLOCK = 2 ^ 31 - 1 -- calls
local STALLED = 10 ^ 6 -- calls in which every clock advances
local LEAST = 1e-9 -- seconds that any block takes, so that nothing is divided by 0

local parse = args.signature("Timer", "string|function stmt = '', string|function setup = '', "
  .. "string global_setup = '', function? timer = nil, table? globals = nil, "
  .. "string? label = nil, string? sub_label = nil, string? description = nil, "
  .. "string? env = nil, int(>=1) num_threads = 1, string language = 'lua'")

local function seconds() return core._trace.now() * 1e-9 end

-- Returns a clock that waits for the devices first; it reads `timer`.
local function clock_of(timer)
  return function()
    profiler.synchronize()
    return (timer())
  end
end

-- Returns code without the indentation that its lines share, and without spaces at its end.
local function dedented(code)
  local least
  for space in ("\n" .. code):gmatch "\n([ \t]*)[^ \t\n]" do
    if not least or #space < #least then least = space end
  end
  code = least and least ~= "" and ("\n" .. code):gsub("\n" .. least, "\n"):sub(2) or code
  return (code:gsub("^\n", ""):gsub("%s+$", ""))
end

-- Returns the text that describes the code of an argument.
local function text_of(code)
  if type(code) == "string" then return code end
  local info = debug.getinfo(code, "S")
  if info.what == "C" then return "function" end
  return ("function <%s:%d>"):format(info.short_src, info.linedefined)
end

-- Raises an error unless the string of an argument is Lua code.
local function check_code(name, code)
  if type(code) == "function" then return end
  local _, reason = load(code, "=" .. name, "t")
  args.check(not reason, "Timer: expected Lua code for argument '%s', got an error: %s", name,
    reason)
end

-- Returns whether code may leave a loop that it is put into.
local function leaves(code)
  for _, word in ipairs {"return", "break", "goto"} do
    if code:find("%f[%w_]" .. word .. "%f[^%w_]") then return true end
  end
  return code:find("::", 1, true) ~= nil
end

-- Returns the text of what is done before the loop, and of the loop's body. The newlines end
-- comments.
local function body_of(stmt)
  if type(stmt) == "function" then return "", "lutra_stmt()" end
  if load("return (" .. stmt .. "\n)", "=stmt", "t") then
    return "", "local _ = " .. stmt .. "\n"
  end
  check_code("stmt", stmt)
  if leaves(stmt) then return "local function lutra_run() " .. stmt .. "\nend ", "lutra_run()" end
  return "", stmt .. "\n"
end

-- Returns a function that calls the code n times and returns `clock` and what it read before and
-- after. The setup runs before; its local variables are visible in a statement that is a string.
local function compile(stmt, setup, clock, globals)
  check_code("setup", setup)
  local before, body = body_of(stmt)
  local name = setup == "" and "=stmt" or "=setup and stmt"
  local first = type(setup) == "function" and "lutra_setup() " or setup ~= "" and setup .. "\n"
    or ""
  local text = "local lutra_clock, lutra_stmt, lutra_setup = ... return function(lutra_n) " .. first
    .. before .. "local lutra_start = lutra_clock() for _ = 1, lutra_n do " .. body
    .. " end return lutra_clock, lutra_start, lutra_clock() end"
  local variables = {lt = lt}
  for key, value in pairs(globals) do variables[key] = value end
  local make, reason = load(text, name, "t", setmetatable(variables, {__index = _G}))
  args.check(make, "Timer: cannot compile stmt and setup: %s", reason)
  return make(clock, type(stmt) == "function" and stmt or nil,
    type(setup) == "function" and setup or nil)
end

--- benchmark.Timer{stmt, setup, timer, globals, label, sub_label, description, env,
-- num_threads = 1}: measures `stmt`, a function or a string of Lua code. `setup`, also one of them,
-- is run before each block of calls and not measured; its local variables are visible in a string.
-- `globals` is a table of variables for strings, which also see `lt` and Lua's globals; their
-- assignments to globals do not leave the Timer. `timer` is a clock, a function that returns
-- seconds. The others describe the measurement: Compare makes a table of each `label`, a row of
-- each `sub_label` and `env`, a column of each `description`. The clock is read when all devices
-- have completed their work. The garbage collector runs as in a program, and its time is included.
-- `global_setup` and other languages than "lua" are not supported. Raises an error for code that
-- does not compile.
function Timer:init(...)
  local stmt, setup, global_setup, timer, globals, label, sub_label, description, env, threads,
    language = parse(...)
  args.check(language == "lua",
    "Timer: expected 'lua' for argument 'language', got %q: Lutra runs no other language",
    language)
  args.check(global_setup == "",
    "Timer: global_setup is not supported: it is for code in C++\nhint: setup = CODE")
  args.expect(threads <= MAX_THREADS, "Timer", ("an integer from 1 to %d"):format(MAX_THREADS),
    "num_threads", threads)
  args.check(globals == nil or type(stmt) == "string" or type(setup) == "string" and setup ~= "",
    "Timer: cannot use globals: stmt is a function\nhint: a function sees its local variables")
  for key in pairs(globals or {}) do
    args.expect(type(key) == "string", "Timer", "a table of variables by name", "globals", globals)
  end
  if type(stmt) == "string" then stmt = dedented(stmt) end
  if type(setup) == "string" then setup = dedented(setup) end
  self._clock = clock_of(timer or seconds)
  self._block = compile(stmt, setup, self._clock, globals or {})
  self._task = {stmt = text_of(stmt), setup = text_of(setup), label = label,
    sub_label = sub_label, description = description, env = env, num_threads = threads}
end

function Timer:__tostring() return ("Timer(%s)"):format(self._task.label or self._task.stmt) end

-- Returns the seconds of a block of calls.
local function run(self, number)
  local clock, start, stop = self._block(number)
  args.check(clock == self._clock, "Timer: cannot measure: setup returned")
  for _, time in ipairs {start or false, stop or false} do
    args.expect(type(time) == "number" and time == time, "Timer",
      "a function that returns a number of seconds", "timer", time or nil)
  end
  local time = stop - start
  args.check(time > 0 or number < STALLED, "Timer: cannot measure: the clock does not advance")
  return math.max(time, LEAST)
end

-- Sets the number of threads until the value is closed.
local function with_threads(self)
  local guard = scope_guard(core.set_num_threads, core.get_num_threads())
  core.set_num_threads(self._task.num_threads)
  return guard
end

local function measurement(self, number, times)
  return Measurement{number_per_run = number, raw_times = times, task_spec = self._task}
end

local parse_timeit = args.signature("timeit", "int(>=1) number = 1000000")

--- timer:timeit(number = 1000000): returns the Measurement of one block of `number` calls. A
-- hundredth of them is run before, for a warm-up.
function Timer:timeit(...)
  local number = parse_timeit(...)
  local _ <close> = with_threads(self)
  run(self, math.max(number // 100, 2))
  collectgarbage()
  return measurement(self, number, {run(self, number)})
end

-- Returns the number of calls in a block that makes the time to read the clock negligible. Also
-- warms up.
local function block_size(self, min_run_time)
  local overheads = {}
  for i = 1, 5 do overheads[i] = run(self, 0) end
  table.sort(overheads)
  local number = 1
  while true do
    local time = run(self, number)
    local is_long = time >= min_run_time / 1000 and overheads[3] / time <= 1e-4
    if is_long or time > min_run_time or number * 10 > MAX_BLOCK then return number end
    number = number * 10
  end
end

-- Returns the times of blocks of `number` calls, until they sum to min_run_time and enough(times)
-- is true, or sum to max_run_time.
local function measure(self, number, enough, min_run_time, max_run_time, callback)
  local times, total = {}, 0
  collectgarbage()
  repeat
    local time = run(self, number)
    times[#times + 1] = time
    total = total + time
    if callback then callback(number, time) end
  until total >= min_run_time and enough(times) or total > max_run_time
  return times
end

-- Raises an error unless a time is a positive number of seconds.
local function check_positive(title, name, x)
  args.expect(x > 0 and x < math.huge, title, "a positive number of seconds", name, x)
end

local parse_blocked = args.signature("blocked_autorange",
  "function? callback = nil, float min_run_time = 0.2")

--- timer:blocked_autorange{callback, min_run_time = 0.2}: returns the Measurement of blocks of
-- calls that take min_run_time seconds together. The size of a block, a power of 10, makes the time
-- to read the clock negligible. callback(number, seconds) is called after each block.
function Timer:blocked_autorange(...)
  local callback, min_run_time = parse_blocked(...)
  check_positive("blocked_autorange", "min_run_time", min_run_time)
  local _ <close> = with_threads(self)
  local number = block_size(self, min_run_time)
  local function enough() return true end
  return measurement(self, number, measure(self, number, enough, min_run_time, math.huge,
    callback))
end

local parse_adaptive = args.signature("adaptive_autorange", "float threshold = 0.1, "
  .. "float min_run_time = 0.01, float max_run_time = 10, function? callback = nil")

--- timer:adaptive_autorange{threshold = 0.1, min_run_time = 0.01, max_run_time = 10, callback}:
-- as blocked_autorange, but measures until the interquartile range is smaller than `threshold`
-- times the median, or the blocks took more than max_run_time seconds.
function Timer:adaptive_autorange(...)
  local threshold, min_run_time, max_run_time, callback = parse_adaptive(...)
  args.expect(threshold > 0, "adaptive_autorange", "a positive number", "threshold", threshold)
  check_positive("adaptive_autorange", "min_run_time", min_run_time)
  check_positive("adaptive_autorange", "max_run_time", max_run_time)
  local _ <close> = with_threads(self)
  local number = block_size(self, 0.05)
  local function enough(times)
    return #times > 3 and measurement(self, number, times):meets_confidence(threshold)
  end
  return measurement(self, number, measure(self, number, enough, min_run_time, max_run_time,
    callback))
end

--- Raises an error: Lutra does not count instructions, as PyTorch's Timer does with Callgrind.
function Timer.collect_callgrind()
  args.fail("collect_callgrind: not supported: Lutra does not count instructions\n"
    .. "hint: timer:blocked_autorange() measures times")
end

return Timer
