-- Helper tensors: zeros, noise, masks and constants on the right device.
--
--   lutra [--emulate cuda:2] examples/placement/17_helper_tensors.lua
--
-- A model often needs tensors that are not inputs: an epsilon, noise, a mask. Take device and dtype
-- from an existing tensor, with a function that does it for you.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()

-- PyTorch: eps = torch.tensor(1e-5, device=x.device, dtype=x.dtype). Correct, but long.
local function normalize_with_tensor(x)
  local eps = lt.tensor(1e-5, {device = x.device, dtype = x.dtype})
  return x / (x:norm{dim = -1, keepdim = true} + eps)
end

-- PyTorch: x / (x.norm(dim=-1, keepdim=True) + 1e-5). A Lua number has no device
-- and no dtype.
local function normalize(x)
  return x / (x:norm{dim = -1, keepdim = true} + 1e-5)
end

for _, dtype in ipairs {"float32", "float16"} do
  local x = lt.tensor{{3.0, 4.0}, {6.0, 8.0}, device = device, dtype = dtype}
  local a, b = normalize_with_tensor(x), normalize(x)
  print(("rows of length 1, %s:\n%s"):format(dtype, b))
  assert(a.device == device and b.device == device and a.dtype == dtype and b.dtype == dtype)
  assert(lt.allclose(a, b))
  assert(lt.allclose(b:cpu():float(), lt.tensor{{0.6, 0.8}, {0.6, 0.8}}, {atol = 1e-3}))
end

local x = lt.randn{4, 3, device = device, dtype = "float16"}
local function show(name, t) print(name, t.shape, t.dtype, t.device) end
print()
show("x:    ", x)

-- PyTorch: x.new_zeros(x.shape[0], 1). Another shape, the device and dtype of x.
local zeros = x:new_zeros(x:size(1), 1)
show("zeros:", zeros)
assert(zeros.device == device and zeros.dtype == "float16" and zeros.shape == lt.zeros(4, 1).shape)
assert(x:new_tensor{1.5, 2.5}.device == device and x:new_full({2}, 7)[1]:item() == 7)

-- PyTorch: torch.randn_like(x), torch.ones_like(x, dtype=torch.bool). The shape of x, too;
-- arguments override it.
local noise = lt.randn_like(x)
local mask = lt.ones_like(x, {dtype = "bool"})
show("noise:", noise)
show("mask: ", mask)
assert(noise.device == device and noise.dtype == "float16" and noise.shape == x.shape)
assert(mask.device == device and mask.dtype == "bool" and mask:sum():item() == 12)

-- They are on the device of x, wherever it is.
local on_cpu = x:cpu()
assert(lt.randn_like(on_cpu).device == "cpu" and on_cpu:new_zeros(2).device == "cpu")

-- Both mistakes raise no error on the CPU: a wrong dtype makes results larger than necessary, a
-- wrong device fails only on a GPU.
assert((on_cpu + lt.zeros(4, 3)).dtype == "float32")
if device == "cpu" then
  print "skipped: the wrong device is not visible here (--emulate cuda:2)"
else
  local ok, message = pcall(function() return x + lt.zeros(4, 3) end)
  print("\nx + lt.zeros(4, 3) with x on " .. device .. ":\n  " .. message)
  assert(not ok and message:find('is on "cpu"', 1, true))
end

print "ok: numbers, new_* and *_like are never on the wrong device"
