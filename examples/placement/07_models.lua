-- Models: the parameters and what comes in must be on one device.
--
--   lutra [--emulate cuda:2] examples/placement/07_models.lua
--
-- model:to(device) moves every parameter and registered buffer. Unlike a tensor's `to` it changes
-- the model itself and gives the same model back, so that an assignment is not needed.
--
-- test:

local lt = require "lutra"
local nn = lt.nn
local device = lt.best_device()

local model = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 10))
print("the model is made on " .. model:device())
assert(model:device() == "cpu")

-- PyTorch: model = model.to(device)
assert(model:to(device) == model)
print("after model:to(device):")
for name, p in model:named_parameters() do
  print(("  %-9s %-9s %s"):format(name, tostring(p.shape), p.device))
  assert(p.device == device)
end
-- PyTorch: next(model.parameters()).device. The iterator, called once, gives the first parameter.
assert(model:parameters()().device == device and model:device() == device)

-- The input goes where the model is. Where it does not, nothing is computed in secret elsewhere.
local x = lt.randn(4, 128)
if device ~= "cpu" then
  local ok, message = pcall(model, x)
  print("an input that stayed on the cpu:\n  " .. message)
  assert(not ok and message:find("is on cpu", 1, true))
  assert(message:find("is on " .. device, 1, true))
end
local logits = model(x:to(device))
print(("the output for x:to(device): %s on %s"):format(logits.shape, logits.device))
assert(logits.device == device and logits.shape == lt.empty(4, 10).shape)

-- Make the optimizer after the move: what it keeps for each parameter is then beside it.
local optimizer = lt.optim.AdamW(model:parameters(), {lr = 1e-3})
logits:sum():backward()
optimizer:step()
for _, p in model:named_parameters() do
  assert(p.grad.device == device and optimizer.state[p].exp_avg.device == device)
end

-- A tensor in a plain field is neither a parameter nor a buffer: it stays behind.
local Scaled = nn.Module:extend "Scaled"
function Scaled:init()
  self.layer = nn.Linear(2, 2)
  self.scale = lt.ones(2) -- a plain field
end
local scaled = Scaled():to(device)
print(("a layer went to %s, a plain field is on %s"):format(scaled.layer.weight.device,
  scaled.scale.device))
assert(scaled.layer.weight.device == device and scaled.scale.device == "cpu")

if device == "cpu" then
  print "skipped: what stays behind shows with a second device only (--emulate cuda:2)"
end
print "ok: model:to(device) took the parameters along, and nothing else"
