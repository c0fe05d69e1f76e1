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

-- PyTorch: torch.empty(1000, 1000, device="meta")
local ghost = lt.empty{1000, 1000, device = "meta"}
print(("a ghost: %s %s on %s"):format(ghost.shape, ghost.dtype, ghost.device))
assert(ghost.is_meta and ghost:numel() == 1000000)
assert(ghost:matmul(ghost).shape == ghost.shape)
local ok, message = pcall(function() return ghost:sum():item() end)
print("asked for a number:\n  " .. message)
assert(not ok and message:find("no data", 1, true))

-- Wrong shapes are found all the same.
ok, message = pcall(function() return ghost:matmul(lt.empty{5, 6, device = "meta"}) end)
print("multiplied by a {5, 6}:\n  " .. message)
assert(not ok and message:find("1000 and 5", 1, true))

-- PyTorch: with torch.device('meta'): huge_model = BigModel(). 40 layers of 16384 units: 43 GB of
-- numbers, of which not one is stored.
local WIDTH, LAYERS = 16384, 40
local function BigModel()
  local layers = {}
  for i = 1, LAYERS do layers[i] = nn.Linear(WIDTH, WIDTH) end
  return nn.Sequential(table.unpack(layers))
end
local huge = lt.with_device("meta", BigModel)

-- PyTorch: sum(p.numel() for p in huge_model.parameters()). num_parameters() is the same.
local parameters = 0
for p in huge:parameters() do parameters = parameters + p:numel() end
print(("\nparameters of the big model: %d (%.1f GB)"):format(parameters, parameters * 4 / 1e9))
assert(parameters == LAYERS * (WIDTH * WIDTH + WIDTH) and parameters == huge:num_parameters())
assert(huge:device() == "meta")

-- What training would hold: parameters, gradients and AdamW's two numbers for each.
print(("to train it with AdamW: %.1f GB, without the activations"):format(4 * parameters * 4 / 1e9))
local batch = lt.empty{8, WIDTH, device = "meta"}
assert(huge(batch).shape == batch.shape, "its layers fit together")

-- PyTorch: torch.cuda.mem_get_info(). Does it fit here?
local device = lt.best_device()
if lt.accelerator.is_available() then
  local free, total = lt.accelerator.get_memory_info(device)
  print(("%s has %.2f GB, of which %.2f are free: the big model %s"):format(device, total / 1e9,
    free / 1e9, free > parameters * 4 and "fits" or "does not fit"))
  assert(0 < free and free <= total)
end

-- PyTorch: model.to_empty(device=device). A plan becomes a model: it gets memory, on any device,
-- with whatever lies there, and then wants numbers.
local plan = lt.with_device("meta", nn.Linear, 4, 2)
local real = plan:to_empty(device)
real.weight:detach():fill_(0.5)
real.bias:detach():zero_()
local y = real(lt.ones{1, 4, device = device}):detach()
print("\na plan that got numbers:", y)
assert(real:device() == device and lt.equal(y:cpu(), lt.full({1, 2}, 2.0)))

print "ok: sizes and shapes of a model, before any memory is spent on it"
