-- CPU or GPU: measure from which size on the GPU is faster.
--
--   lutra [--emulate cuda:2] examples/placement/19_cpu_or_gpu.lua [--largest 512] [--transfers]
--   lutra examples/placement/19_cpu_or_gpu.lua --example
--
-- Launching an operation on a GPU takes a few microseconds, however small it is; then the GPU
-- computes fast. The CPU starts at once and computes more slowly. Small products are therefore
-- faster on the CPU and large ones on the GPU; where the curves cross depends on the machine. This
-- script measures and draws them. An emulated GPU runs on your CPU and is slower; `--example` draws
-- made-up times.
--
-- A GPU is faster when operations are large and batched, data stays on it (try --transfers) and Lua
-- makes few calls (each costs some microseconds).
--
-- test: --largest 64 --repeats 2
-- test: --largest 16 --transfers
-- test: --example

local lt = require "lutra"
local cli = require "lutra.cli"

local options = cli.parse(arg, {
  {"largest", 256, "rows of the largest matrix; the smallest has 2"},
  {"repeats", 5, "measurements of each size; the minimum counts"},
  {"transfers", false, "include the copies to the device and back"},
  {"example", false, "draw made-up times: 1 us and 100 GFLOP/s against 10 us and 10 TFLOP/s"},
  {"width", math.max(30, math.min(lt.terminal_width(1) or 78, 100)), "columns of the plot"},
})
if options.largest < 4 or options.repeats < 1 or options.width < 30 then
  cli.fail "expected --largest of at least 4, --repeats of at least 1, --width of at least 30"
end
local device = options.example and "cuda:0" or lt.best_device()

local function synchronize()
  if lt.accelerator.is_available() then lt.accelerator.synchronize(device) end
end

-- Returns the seconds of a product of n x n matrices, with or without transfers.
local function measure(where, n)
  local a = lt.ones(n, n)
  local there = a:to(where)
  local product = there:matmul(there) -- the first one includes initialization
  assert(product[{1, 1}]:item() == n, "a row of ones times a column of ones")
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
  assert(product.device == (options.transfers and "cpu" or where) and best > 0)
  return best
end

-- Returns made-up seconds: a product of n x n matrices has 2 n^3 floating point operations.
local function example(where, n)
  return where == "cpu" and 1e-6 + 2 * n^3 / 100e9 or 10e-6 + 2 * n^3 / 10e12
end

-- Print a table: the seconds of each size on each device.
local places = device == "cpu" and {"cpu"} or {"cpu", device}
local rows = {}
print(("  rows" .. ("%13s"):rep(#places)):format(table.unpack(places)))
local n = 2
while n <= options.largest do
  local row = {rows = n}
  for i, where in ipairs(places) do row[i] = (options.example and example or measure)(where, n) end
  rows[#rows + 1] = row
  print(("%6d" .. ("%10.1f us"):rep(#row)):format(n, row[1] * 1e6, row[2] and row[2] * 1e6))
  n = 2 * n
end

-- Find the size from which on the GPU is faster.
local crossing
for i = #rows, 1, -1 do
  if not rows[i][2] or rows[i][2] >= rows[i][1] then break end
  crossing = i
end

-- Draw a plot: one line per size, faster to the left; from + to + is a factor of ten.
local least, most = math.huge, 0
for _, row in ipairs(rows) do
  least, most = math.min(least, table.unpack(row)), math.max(most, table.unpack(row))
end
local first, last = math.floor(math.log(least, 10)), math.ceil(math.log(most, 10))
local columns = options.width - 9
local function lane(title, times, marks, background)
  local cells = {}
  for i = 1, columns do cells[i] = background end
  for i, time in ipairs(times) do
    local share = (math.log(time, 10) - first) / (last - first)
    local column = 1 + math.floor(share * (columns - 1) + 0.5)
    cells[column] = cells[column] == background and marks:sub(i, i) or "*"
  end
  print(("%6s |%s|"):format(title, table.concat(cells)))
end

print(places[2] and ("\nc: cpu, g: %s, *: both"):format(device) or "\nc: cpu")
for i, row in ipairs(rows) do
  if i == crossing then lane("", {}, "", "-") end
  lane(row.rows, row, "cg", " ")
end
local ticks = {}
for power = first, last do ticks[#ticks + 1] = 10.0^power end
lane("", ticks, ("+"):rep(#ticks), "-")
local left, right = ("%g us"):format(ticks[1] * 1e6), ("%g us"):format(ticks[#ticks] * 1e6)
print((" "):rep(8) .. left .. (" "):rep(columns - #left - #right) .. right)

if not places[2] then
  print "skipped: a crossing takes two devices (--emulate cuda:2, or --example)"
elseif crossing then
  print(("they cross: from %d rows on, %s is faster"):format(rows[crossing].rows, device))
else
  print(("no crossing: up to %d rows, %s is not faster"):format(rows[#rows].rows, device))
end
print "ok: measure your own sizes before you choose a device"
