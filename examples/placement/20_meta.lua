-- Meta: a model's plan, without its memory.
--
--   lutra examples/placement/20_meta.lua
--
-- A tensor on the device "meta" has a shape, a number type and nothing else. Operations on it
-- give shapes in no time. So one can ask how large a model is, and whether its layers fit
-- together, before one owns a machine that could hold it.
--
-- test:

local lt = require "lutra"
local nn = lt.nn

local ghost = lt.empty{1000, 1000, device = "meta"}
print(ghost.shape, ghost.dtype, ghost.device)
assert(ghost.is_meta and ghost:numel() == 1000000)
assert(ghost:matmul(ghost).shape == ghost.shape)
local ok, message = pcall(function() return ghost:sum():item() end)
print(message)
assert(not ok and message:find("no data", 1, true))

-- Wrong shapes are found all the same.
ok, message = pcall(function() return ghost:matmul(lt.empty{5, 6, device = "meta"}) end)
print(message)
assert(not ok and message:find("1000 and 5", 1, true))

-- 40 layers of 16384 units: 43 GB of numbers, of which not one is stored.
local WIDTH, LAYERS = 16384, 40
local function BigModel()
  local layers = {}
  for i = 1, LAYERS do layers[i] = nn.Linear(WIDTH, WIDTH) end
  return nn.Sequential(table.unpack(layers))
end
local huge = lt.with_device("meta", BigModel)

local parameters = 0
for p in huge:parameters() do parameters = parameters + p:numel() end
print(("parameters: %d (%.1f GB)"):format(parameters, parameters * 4 / 1e9))
assert(parameters == LAYERS * (WIDTH * WIDTH + WIDTH) and parameters == huge:num_parameters())

-- What training would hold: parameters, gradients and AdamW's two numbers for each.
print(("to train it with AdamW: %.1f GB, without the activations"):format(4 * parameters * 4 / 1e9))
assert(huge(lt.empty{8, WIDTH, device = "meta"}).shape == lt.empty{8, WIDTH, device = "meta"}.shape)

-- Does it fit here?
local device = lt.best_device()
local memory = lt.accelerator.is_available() and select(2, lt.accelerator.get_memory_info(device))
if memory then
  print(("%s has %.2f GB: %s"):format(device, memory / 1e9,
    memory > parameters * 4 and "it would fit" or "it does not fit"))
end

-- A plan becomes a model: to_empty gives it memory, on any device, and then it wants numbers.
local plan = lt.with_device("meta", nn.Linear, 4, 2)
local real = plan:to_empty(device)
real.weight:detach():fill_(0.5)
real.bias:detach():zero_()
local y = real(lt.ones{1, 4, device = device})
print(y)
assert(real:device() == device and lt.equal(y:detach():cpu(), lt.full({1, 2}, 2.0)))

print "ok: sizes and shapes of a model that no machine here could hold"
