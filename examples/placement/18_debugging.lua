-- Debugging: who is where? Tables of parameters and buffers.
--
--   lutra [--emulate cuda:2] examples/placement/18_debugging.lua
--
-- Nearly every device mistake is a tensor that was made after the model was moved, or that the
-- move did not see. Print shape, number type and device together, for everything that takes part,
-- and look for the odd one. Suspects: the batch, the labels, a mask made in forward, positions in
-- a plain field, the loss's weights, a state kept from an earlier run.
--
-- test:

local lt = require "lutra"
local nn = lt.nn
local device = lt.best_device()

local Tagger = nn.Module:extend "Tagger"
function Tagger:init()
  self.words = nn.Embedding(100, 16)
  self.out = nn.Linear(16, 5)
  self:register_buffer("mean", lt.zeros(16))
  self.positions = lt.randn(8, 16) -- the mistake: neither parameter nor buffer
end
function Tagger:forward(x)
  return self.out(self.words(x) - self.mean + self.positions)
end

local model = Tagger():to(device)

-- One table for all; an arrow marks who is elsewhere. Returns the names of those.
local function placement_table(m, expected)
  local strangers, seen = {}, {}
  local function row(kind, name, t)
    local arrow = t.device ~= expected and " <--" or ""
    print(("%-10s %-13s %-10s %-8s %s%s"):format(kind, name, tostring(t.shape), t.dtype, t.device,
      arrow))
    if arrow ~= "" then strangers[#strangers + 1] = name end
    seen[t] = true
  end
  for name, p in m:named_parameters() do row("parameter", name, p) end
  for name, b in m:named_buffers() do row("buffer", name, b) end
  for name, t in pairs(m) do -- plain fields: what `to` does not see
    if lt.is_tensor(t) and not seen[t] then row("FIELD", name, t) end
  end
  return strangers
end

local strangers = placement_table(model, device)

local x = lt.randint{1, 100, {2, 8}, device = device}
if device == "cpu" then
  print "skipped: on one device nobody is a stranger; see one: --emulate cuda:2"
  assert(#strangers == 0 and model(x).shape == lt.zeros(2, 8, 5).shape)
else
  assert(#strangers == 1 and strangers[1] == "positions")
  local ok, message = pcall(model, x)
  print(message)
  assert(not ok and message:find("other is on cpu", 1, true))
end

-- The cure: register it. Then the table has no stranger and the model runs.
local positions = model.positions
model.positions = nil
model:register_buffer("positions", positions)
model:to(device)
print()
assert(#placement_table(model, device) == 0)
assert(model(x).device == device)

-- The short questions: on which devices is a model, and on which one.
assert(#model:devices() == 1 and model:device() == device)

print "ok: print who is where, and the stranger shows itself"
