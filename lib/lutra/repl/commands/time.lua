--- The commands :time and :timeit.
--
-- The clock is read only when no device that the program has used is still running: devices are
-- synchronized before the first and before the last reading, and the report names them.

local cell = require "lutra.repl.cell"
local command_line = require "lutra.repl.command_line"
local host = require "lutra.repl.host"
local lexer = require "lutra.repl.lexer"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local time = {}

local function core() return require "lutra.core" end

local function synchronize() return require("lutra.profiler").synchronize() end

local function now() return core()._trace.now() * 1e-9 end

local function report(text)
  io.stdout:write(texts.wrap_sentence(text, style.width()), "\n")
end

-- Returns "; synchronised: cuda:0", or "" when no accelerator was used.
local function synchronized_text(devices)
  return #devices > 0 and "; synchronized: " .. table.concat(devices, ", ") or ""
end

local function signed_bytes(n) return (n < 0 and "-" or "+") .. texts.bytes(math.abs(n)) end

-- ---- :time

local usage_time = ":time x:matmul(y)"

-- Returns the bytes of tensors on all devices, and of Lua's heap.
local function memory() return core().memory_live(), collectgarbage "count" * 1024 end

--- `:time CODE` runs the code once, as a cell: its value is shown and stored in _. Then it prints
-- the elapsed time, the processor time of all threads, and by how much the allocated memory has
-- grown.
function time.time(session, text)
  local _, code = command_line.leading_options("time", text, {}, usage_time)
  local f, made = session:compile(code, "time")
  if not f then error(made:match "^[^\n]*", 0) end -- without the excerpt of the line
  synchronize()
  local tensors, heap = memory()
  local cpu, start = os.clock(), now()
  local results = table.pack(f())
  local devices = synchronize()
  local wall = now() - start
  cpu = os.clock() - cpu
  local tensors_after, heap_after = memory()
  session:results(results, made.quiet)
  report(("%s (CPU %s, all threads); tensors %s, Lua %s%s"):format(texts.seconds(wall),
    texts.seconds(cpu), signed_bytes(tensors_after - tensors),
    signed_bytes(math.floor(heap_after - heap)), synchronized_text(devices)))
end

-- ---- :timeit

local usage_timeit = ":timeit [-n LOOPS] [-r RUNS] x:matmul(y)"
local least_run = 0.2 -- seconds

-- Returns whether the code may be put into a loop, which it must not leave.
local function can_loop(code)
  for _, token in ipairs(lexer.significant(code)) do
    local word = token[2]
    if word == "return" or word == "break" or word == "goto" or word == "::" then return false end
  end
  return true
end

-- Returns the source of a function that runs the code so many times. A newline ends a comment.
local function loop_text(code)
  if load("return " .. code, "=timeit", "t") then
    return ("return function(lutra_n) for _ = 1, lutra_n do local _ = %s\nend end"):format(code)
  end
  if can_loop(code) then
    return ("return function(lutra_n) for _ = 1, lutra_n do %s\nend end"):format(code)
  end
  return ("return function(lutra_n) local function run() %s\nend "
    .. "for _ = 1, lutra_n do run() end end"):format(code)
end

-- Returns a function that runs the code n times; it sees the session's variables, and its own
-- locals stay local.
local function compile(session, code)
  local status, message = cell.read(code, "=timeit")
  if status == "complete" and not message.body then
    error("timeit: expected code, got none\nhint: " .. usage_timeit, 0)
  end
  local make, why
  if status == "complete" then
    make, why = session:compile(loop_text(code), "timeit")
  else
    make, why = session:compile(code, "timeit") -- reports the error
  end
  host.sources.timeit = code
  if not make then error(why:match "^[^\n]*", 0) end
  local loop = make()
  session.mains[loop] = true
  return loop
end

local function measure(loop, n)
  local start = now()
  loop(n)
  synchronize()
  return now() - start
end

-- 1, 2, 5, 10, 20, ...
local function next_count(n)
  local leading = n // math.tointeger(10 ^ math.floor(math.log(n, 10) + 1e-9))
  return leading == 2 and n // 2 * 5 or 2 * n
end

-- Returns a number of loops that the clock can measure. Also warms up.
local function choose_count(loop)
  local n = 1
  while measure(loop, n) < least_run do n = next_count(n) end
  return n
end

-- Returns mean and standard deviation of a list.
local function statistics(list)
  local sum, squares = 0, 0
  for _, t in ipairs(list) do sum = sum + t end
  local mean = sum / #list
  for _, t in ipairs(list) do squares = squares + (t - mean) ^ 2 end
  return mean, math.sqrt(squares / #list)
end

--- `:timeit [-n LOOPS] [-r RUNS] CODE` measures runs of so many loops each; without -n, the number
-- of loops makes a run take 0.2 s. The code's value is not shown. The garbage collector runs as in
-- a program, and its time is included.
function time.timeit(session, text)
  local known = {["-n"] = command_line.count, ["-r"] = command_line.count}
  known["--n"], known["--r"] = known["-n"], known["-r"]
  local values, code = command_line.leading_options("timeit", text, known, usage_timeit)
  local n, runs = values["-n"] or values["--n"], values["-r"] or values["--r"] or 7
  local loop = compile(session, code)
  synchronize()
  if n then loop(1) end
  n = n or choose_count(loop)
  local list = {}
  for i = 1, runs do
    collectgarbage() -- earlier garbage is not part of this run
    list[i] = measure(loop, n) / n
  end
  local mean, deviation = statistics(list)
  local devices = synchronize()
  report(("%s ± %s per loop (mean ± std. dev. of %s, %s each)%s"):format(texts.seconds(mean),
    texts.seconds(deviation), texts.plural(runs, "run"), texts.plural(n, "loop"),
    #devices > 0 and "; synchronized after each run: " .. table.concat(devices, ", ") or ""))
end

return time
