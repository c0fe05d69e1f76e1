-- The child process of bench/elementwise_math.py: reads lines `op n threads` from standard input
-- and prints for each the seconds of one call, the mean over a short time.
local lt = require "lutra"
local core = require "lutra.core"

local FUNCTIONS = {gelu_tanh = function(x) return lt.F.gelu(x, "tanh") end}
local inputs = {}

-- Returns numbers in the op's domain, the same as bench/elementwise_math.py.
local function input(op, n)
  local x = inputs[n]
  if not x then
    lt.manual_seed(1)
    inputs = {[n] = lt.rand(n) * 1.8 - 0.9}
    x = inputs[n]
  end
  if op:find "^log" and op ~= "logsigmoid" then return x:abs() * 10 + 0.01 end
  if op == "acosh" then return x:abs() * 10 + 1 end
  if op == "asin" or op == "acos" or op == "atanh" then return x end
  return x * 5
end

for line in io.lines() do
  local op, n, threads = line:match "(%S+) (%d+) (%d+)"
  n = tonumber(n)
  lt.set_num_threads(tonumber(threads))
  local x, f = input(op, n), FUNCTIONS[op] or lt[op] or lt.F[op]
  local calls = math.max(1, 1000000 // n)
  f(x):free()
  local start = core.clock()
  for _ = 1, calls do f(x):free() end
  print((core.clock() - start) / calls)
  io.stdout:flush()
end
