-- Times Fourier transforms; bench/fft.py runs it beside PyTorch. Reads lines `function dtype lines
-- size dim` from its input, with the dim of the lines, 1 or 2, and prints for each the microseconds
-- of one call, the minimum of several rounds. LUTRA_FFTW chooses the code: 0 Lutra's own, 1 FFTW.

local lt = require "lutra"
local core = require "lutra.core"

local function measure(f)
  for _ = 1, 2 do f() end
  local start = core.clock()
  f()
  local calls = math.max(1, math.min(5000, math.floor(0.003 / (core.clock() - start))))
  local best = math.huge
  for _ = 1, 5 do
    start = core.clock()
    for _ = 1, calls do f() end
    best = math.min(best, (core.clock() - start) / calls)
  end
  return 1e6 * best
end

for line in io.lines() do
  local name, dtype, lines, n, dim = line:match "(%S+) (%S+) (%d+) (%d+) (%d)"
  lines, n, dim = math.tointeger(lines), math.tointeger(n), math.tointeger(dim)
  local given = name == "irfft" and n // 2 + 1 or n
  local x = lt.randn(dim == 1 and {given, lines} or {lines, given}, {dtype = dtype})
  local f = lt.fft[name]
  lt.no_grad(function() print(("%.3f"):format(measure(function() f(x, n, dim) end))) end)
  io.flush()
end
