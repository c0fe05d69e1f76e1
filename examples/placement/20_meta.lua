-- The meta device: shapes of a model, without its memory.
--
--   lutra examples/placement/20_meta.lua
--
-- A tensor on the device "meta" has a shape and a dtype and no data. Operations on it compute only
-- shapes. Use it to find out how large a model is and whether its layers fit together, without a
-- machine that could hold it.
--
-- test:

local lt = require "lutra"
local nn = lt.nn

-- PyTorch: torch.empty(1000, 1000, device="meta")
local ghost = lt.empty{1000, 1000, device = "meta"}
print(("a meta tensor: %s %s on %s"):format(ghost.shape, ghost.dtype, ghost.device))
assert(ghost.is_meta and ghost:numel() == 1000000)
assert(ghost:matmul(ghost).shape == ghost.shape)
local ok, message = pcall(function() return ghost:sum():item() end)
print("item():\n  " .. message)
assert(not ok and message:find("no data", 1, true))

-- Wrong shapes are errors.
ok, message = pcall(function() return ghost:matmul(lt.empty{5, 6, device = "meta"}) end)
print("multiplied by a {5, 6}:\n  " .. message)
assert(not ok and message:find("1000 and 5", 1, true))

-- PyTorch: with torch.device('meta'): huge_model = BigModel(). 40 layers of 16384 units would
-- need 43 GB.
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

-- The memory of training: parameters, gradients and AdamW's two moments.
print(("to train it with AdamW: %.1f GB, without the activations"):format(4 * parameters * 4 / 1e9))
local batch = lt.empty{8, WIDTH, device = "meta"}
assert(huge(batch).shape == batch.shape, "its layers fit together")

-- PyTorch: torch.cuda.mem_get_info(). Check whether it fits.
local device = lt.best_device()
if lt.accelerator.is_available() then
  local free, total = lt.accelerator.get_memory_info(device)
  print(("%s has %.2f GB, of which %.2f are free: the big model %s"):format(device, total / 1e9,
    free / 1e9, free > parameters * 4 and "fits" or "does not fit"))
  assert(0 < free and free <= total)
end

-- PyTorch: model.to_empty(device=device). Allocates the memory of the model on a device,
-- uninitialized; then set the parameters.
local plan = lt.with_device("meta", nn.Linear, 4, 2)
local real = plan:to_empty(device)
real.weight:detach():fill_(0.5)
real.bias:detach():zero_()
local y = real(lt.ones{1, 4, device = device}):detach()
print("\nthe model with data:", y)
assert(real:device() == device and lt.equal(y:cpu(), lt.full({1, 2}, 2.0)))

print "ok: sizes and shapes of a model, without its memory"
