-- Helper tensors: zeros, noise, masks and constants in the right place by themselves.
--
--   lutra [--emulate cuda:2] examples/placement/17_helper_tensors.lua
--
-- Inside a model one often needs a tensor that did not come in: an epsilon, noise, a mask. Take
-- device and number type from a tensor that is there; best by a function that cannot forget it.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()

-- PyTorch: eps = torch.tensor(1e-5, device=x.device, dtype=x.dtype). Right, more than is needed.
local function normalize_with_tensor(x)
  local eps = lt.tensor(1e-5, {device = x.device, dtype = x.dtype})
  return x / (x:norm{dim = -1, keepdim = true} + eps)
end

-- PyTorch: x / (x.norm(dim=-1, keepdim=True) + 1e-5). A plain number has no device and no number
-- type that could be wrong.
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

-- PyTorch: x.new_zeros(x.shape[0], 1). Another shape, x's device and number type.
local zeros = x:new_zeros(x:size(1), 1)
show("zeros:", zeros)
assert(zeros.device == device and zeros.dtype == "float16" and zeros.shape == lt.zeros(4, 1).shape)
assert(x:new_tensor{1.5, 2.5}.device == device and x:new_full({2}, 7)[1]:item() == 7)

-- PyTorch: torch.randn_like(x), torch.ones_like(x, dtype=torch.bool). x's shape, too; what is to
-- differ is said.
local noise = lt.randn_like(x)
local mask = lt.ones_like(x, {dtype = "bool"})
show("noise:", noise)
show("mask: ", mask)
assert(noise.device == device and noise.dtype == "float16" and noise.shape == x.shape)
assert(mask.device == device and mask.dtype == "bool" and mask:sum():item() == 12)

-- They follow x wherever it goes; a name of a device in the code would not.
local home = x:cpu()
assert(lt.randn_like(home).device == "cpu" and home:new_zeros(2).device == "cpu")

-- Both kinds of mistake are quiet on the CPU: a wrong number type makes results larger than meant,
-- a wrong device fails on the first card.
assert((home + lt.zeros(4, 3)).dtype == "float32")
if device == "cpu" then
  print "skipped: the wrong device does not show here (--emulate cuda:2)"
else
  local ok, message = pcall(function() return x + lt.zeros(4, 3) end)
  print("\nx + lt.zeros(4, 3), where x is on " .. device .. ":\n  " .. message)
  assert(not ok and message:find("is on cpu", 1, true))
end

print "ok: numbers, new_* and *_like never meet the wrong device"
