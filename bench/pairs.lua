-- The child process of bench/pairs.py. Reads commands from standard input, one a line:
--
--   info           prints the version and the instruction set
--   prepare TEXT   runs TEXT, Lua code that returns the function to measure, and calls the function
--                  once; "\n" is a newline. Prints the seconds of this first call
--   run SECONDS    calls it for about so many seconds and prints the seconds of one call
--
-- Prints "error MESSAGE" when a command fails.
local lt = require "lutra"
local core = require "lutra.core"

lt.set_num_threads(tonumber(arg[1]) or 2)

local env = setmetatable({lt = lt, nn = lt.nn, F = lt.nn.functional, optim = lt.optim},
  {__index = _G})
local f

local commands = {}

function commands.info()
  return ("Lutra %s (%s)"):format(core._VERSION, lt.backends.cpu.get_cpu_capability())
end

function commands.prepare(text)
  f = nil
  collectgarbage()
  lt.manual_seed(1)
  f = assert(load(text:gsub("\\n", "\n"), "=row", "t", env))()
  local start = core.clock()
  f()
  return ("%.9g"):format(core.clock() - start)
end

-- As bench/timing.py does.
function commands.run(seconds)
  seconds = tonumber(seconds)
  f()
  local calls, elapsed = 1, 0
  while elapsed < seconds / 2 do
    if elapsed > 0 then
      calls = math.max(calls + 1, math.floor(calls * math.min(seconds / elapsed, 100)))
    end
    local start = core.clock()
    for _ = 1, calls do f() end
    elapsed = core.clock() - start
  end
  return ("%.9g"):format(elapsed / calls)
end

for line in io.lines() do
  local name, rest = line:match "^(%a+) (.*)$"
  local ok, answer = pcall(commands[name], rest)
  print(ok and answer or "error " .. tostring(answer):gsub("\n.*", ""))
  io.stdout:flush()
end
