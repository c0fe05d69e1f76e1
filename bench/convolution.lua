-- The child process of bench/convolution.py: reads lines `op sizes... direction library threads`
-- from standard input, and prints for each the seconds of one call. The sizes of `conv` are batch,
-- channels, height, width, output channels, kernel, stride, padding, groups; of `norm` the first
-- four. direction: forward, or backward (all gradients).
local lt = require "lutra"
local core = require "lutra.core"

local F = lt.nn.functional
local prepared = {}

-- Returns the function that is measured.
local function prepare(op, s, backward)
  lt.manual_seed(1)
  local x = lt.randn(s[1], s[2], s[3], s[4])
  local w = op == "conv" and lt.randn(s[5], s[2] // s[9], s[6], s[6]) or lt.ones(s[2])
  local b = lt.zeros(op == "conv" and s[5] or s[2])
  local function forward()
    if op == "conv" then return F.conv2d(x, w, b, s[7], s[8], 1, s[9]) end
    return F.batch_norm(x, nil, nil, w, b, true)
  end
  if not backward then return function() forward():free() end end
  for _, t in ipairs {x, w, b} do t:requires_grad_(true) end
  local y = forward()
  local g = lt.randn(y.shape)
  return function()
    for _, t in ipairs(lt.autograd.grad(y, {x, w, b}, {grad_outputs = g, retain_graph = true})) do
      t:free()
    end
  end
end

for line in io.lines() do
  local op, sizes, direction, library, threads = line:match "(%a+) ([%d ]+) (%a+) (%a+) (%d+)"
  lt.set_num_threads(tonumber(threads))
  lt.backends.onednn.enabled = library == "onednn"
  local key = op .. sizes .. direction
  if not prepared[key] then
    local s = {}
    for n in sizes:gmatch "%d+" do s[#s + 1] = tonumber(n) end
    prepared = {[key] = prepare(op, s, direction == "backward")}
  end
  local f = prepared[key]
  f()
  local start = core.clock()
  f()
  local calls = math.max(1, math.floor(0.02 / (core.clock() - start)))
  start = core.clock()
  for _ = 1, calls do f() end
  print((core.clock() - start) / calls)
  io.stdout:flush()
end
