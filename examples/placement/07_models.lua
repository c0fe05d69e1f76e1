-- Models: the parameters and the input must be on the same device.
--
--   lutra [--emulate cuda:2] examples/placement/07_models.lua
--
-- model:to(device) moves every parameter and registered buffer. Unlike a tensor's `to` it changes
-- the model itself and returns it, so that no assignment is needed.
--
-- test:

local lt = require "lutra"
local nn = lt.nn
local device = lt.best_device()

local model = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 10))
print("the model is created on " .. model:device())
assert(model:device() == "cpu")

-- PyTorch: model = model.to(device)
assert(model:to(device) == model)
print("after model:to(device):")
for name, p in model:named_parameters() do
  print(("  %-9s %-9s %s"):format(name, tostring(p.shape), p.device))
  assert(p.device == device)
end
-- PyTorch: next(model.parameters()).device. The iterator, called once, returns the first parameter.
assert(model:parameters()().device == device and model:device() == device)

-- The input must be on the model's device. Lutra does not move it implicitly.
local x = lt.randn(4, 128)
if device ~= "cpu" then
  local ok, message = pcall(model, x)
  print("an input on the cpu:\n  " .. message)
  assert(not ok and message:find('is on "cpu"', 1, true))
  assert(message:find(('is on "%s"'):format(device), 1, true))
end
local logits = model(x:to(device))
print(("the output for x:to(device): %s on %s"):format(logits.shape, logits.device))
assert(logits.device == device and logits.shape == lt.empty(4, 10).shape)

-- Create the optimizer after the move: its state is then on the device of the parameters.
local optimizer = lt.optim.AdamW(model:parameters(), {lr = 1e-3})
logits:sum():backward()
optimizer:step()
for _, p in model:named_parameters() do
  assert(p.grad.device == device and optimizer.state[p].exp_avg.device == device)
end

-- A tensor in a plain field is neither a parameter nor a buffer: `to` does not move it.
local Scaled = nn.Module:extend "Scaled"
function Scaled:init()
  self.layer = nn.Linear(2, 2)
  self.scale = lt.ones(2) -- a plain field
end
local scaled = Scaled():to(device)
print(("a layer is on %s, a plain field on %s"):format(scaled.layer.weight.device,
  scaled.scale.device))
assert(scaled.layer.weight.device == device and scaled.scale.device == "cpu")

if device == "cpu" then
  print "skipped: the difference is visible only with a second device (--emulate cuda:2)"
end
print "ok: model:to(device) moved the parameters, and not the plain field"
