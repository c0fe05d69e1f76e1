-- CPU or GPU? It depends on the size.
--
--   lutra [--emulate cuda:2] examples/placement/19_cpu_or_gpu.lua [--largest 512]
--
-- A card needs a few microseconds to be told of an operation, however small, and then computes
-- fast. A processor starts at once and computes slower. So small products are the CPU's and large
-- ones the card's; somewhere between them the two curves cross. Where, depends on the machine:
-- this script draws it. (An emulated card is your own processor with more to do: it never wins.)
--
-- test: --largest 64 --repeats 2

local lt = require "lutra"
local cli = require "lutra.cli"
local chart = require "lutra.plot.chart"
local texts = require "lutra.plot.texts"

local options = cli.parse(arg, {
  {"largest", 256, "rows of the largest matrix; the smallest has 2"},
  {"repeats", 5, "how often each size is measured; the least time counts"},
  {"transfers", false, "count the way to the device and back, too"},
})
if options.largest < 4 or options.repeats < 1 then
  cli.fail "--largest wants at least 4, --repeats at least 1"
end
local device = lt.best_device()

local function synchronize()
  if lt.accelerator.is_available() then lt.accelerator.synchronize(device) end
end

-- Seconds of an n x n product on a device, the work alone or with its transfers. And the product.
local function measure(where, n)
  local a = lt.ones(n, n)
  local there = a:to(where)
  local product = there:matmul(there) -- the first one also loads what the work needs
  local best = math.huge
  for _ = 1, options.repeats do
    synchronize()
    local start = lt.clock()
    if options.transfers then there = a:to(where) end
    product = there:matmul(there)
    if options.transfers then product = product:cpu() end
    synchronize()
    best = math.min(best, lt.clock() - start)
  end
  return best, product
end

-- A curve for each device. One to the right is twice as many rows, one up is ten times the time.
local places = device == "cpu" and {"cpu"} or {"cpu", device}
local curves = {}
for i, where in ipairs(places) do curves[i] = {points = {}, color = where} end

local crossing -- the size from which the card is ahead, and stays ahead
local size = 2
print(("%8s  %12s  %12s"):format("rows", "cpu", places[2] or ""))
while size <= options.largest do
  local seconds, line = {}, ("%8d"):format(size)
  for i, where in ipairs(places) do
    local product
    seconds[i], product = measure(where, size)
    assert(product[{1, 1}]:item() == size, "a row of ones times a column of ones")
    table.insert(curves[i].points, {math.log(size, 2), math.log(seconds[i], 10)})
    line = line .. ("  %9.1f us"):format(1e6 * seconds[i])
  end
  print(line)
  if seconds[2] and seconds[2] < seconds[1] then crossing = crossing or size else crossing = nil end
  size = 2 * size
end

local picture = chart.lines(curves, {
  width = math.min(lt.terminal_width(1) or 78, 78), height = 16, utf8 = texts.is_utf8(),
  whole = true,
  paint = function(where, text)
    if not lt.isatty(1) then return text end
    return ("\27[%dm%s\27[0m"):format(where == "cpu" and 33 or 36, text)
  end,
})
print "\nseconds as powers of 10, over rows as powers of 2 (yellow: cpu)"
print(table.concat(picture, "\n"))
assert(#picture == 16)

if device == "cpu" then
  print "skipped: a second curve and a crossing need a second device (--emulate cuda:2)"
elseif crossing then
  print(("from %d rows on, %s is faster"):format(crossing, device))
else
  print(("up to %d rows, %s is not faster"):format(size // 2, device))
end
print "ok: measure your own sizes before you decide where they are computed"
