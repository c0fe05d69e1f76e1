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
print("before:", model:device())
assert(model:device() == "cpu")

assert(model:to(device) == model)
print("after:", model:device())
for name, p in model:named_parameters() do
  print("", name, p.shape, p.device)
  assert(p.device == device)
end
-- parameters() is an iterator; calling it once gives the first parameter.
assert(model:parameters()().device == device)

-- The input goes where the model is.
local x = lt.randn(4, 128)
if device ~= "cpu" then
  local ok, message = pcall(model, x)
  print(message)
  assert(not ok and message:find("input is on cpu", 1, true))
  assert(message:find("weight is on " .. device, 1, true))
end
local logits = model(x:to(device))
print("logits:", logits.shape, logits.device)
assert(logits.device == device and logits:size(2) == 10)

-- An optimizer that is made after the move keeps its own numbers beside the parameters.
local optimizer = lt.optim.AdamW(model:parameters(), {lr = 1e-3})
logits:sum():backward()
optimizer:step()
for _, p in model:named_parameters() do assert(p.grad.device == device) end

-- A tensor in a plain field is neither a parameter nor a buffer: it stays behind.
local Scaled = nn.Module:extend "Scaled"
function Scaled:init()
  self.layer = nn.Linear(2, 2)
  self.scale = lt.ones(2) -- a plain field
end
local scaled = Scaled():to(device)
print("layer:", scaled.layer.weight.device, "plain field:", scaled.scale.device)
assert(scaled.layer.weight.device == device and scaled.scale.device == "cpu")

if device == "cpu" then print "skipped: what stays behind is seen with a second device only" end
print "ok: model:to(device) took the parameters along, and nothing else"
