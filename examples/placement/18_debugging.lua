-- Debugging: list the devices of parameters and buffers.
--
--   lutra [--emulate cuda:2] examples/placement/18_debugging.lua
--
-- Nearly every device error comes from a tensor that was created after the model was moved, or that
-- the move did not include. Print shape, dtype and device of all tensors of an operation, and look
-- for the one that differs. The six usual causes are at the end.
--
-- test:

local lt = require "lutra"
local nn, F = lt.nn, lt.F
local device = lt.best_device()

local Tagger = nn.Module:extend "Tagger"
function Tagger:init()
  self.words = nn.Embedding(100, 16)
  self.out = nn.Linear(16, 5)
  self:register_buffer("mean", lt.zeros(16))
  self.positions = lt.randn(8, 16) -- the mistake: neither a parameter nor a buffer
end
function Tagger:forward(x)
  return self.out(self.words(x) - self.mean + self.positions)
end

local model = Tagger():to(device)
local x = lt.randint{1, 100, {2, 8}, device = device}

-- PyTorch: print(x.shape, x.dtype, x.device)
print("the input:", x.shape, x.dtype, x.device)

-- PyTorch: for name, param in model.named_parameters(): print(name, param.device), and the same for
-- named_buffers(). Prints one table; an arrow marks tensors on another device. Returns their names,
-- and the number of all tensors.
local function placement_table(m, expected)
  local elsewhere, seen, count = {}, {}, 0
  local function row(kind, name, t)
    local arrow = t.device ~= expected and " <--" or ""
    print(("%-10s %-13s %-10s %-8s %s%s"):format(kind, name, tostring(t.shape), t.dtype, t.device,
      arrow))
    if arrow ~= "" then elsewhere[#elsewhere + 1] = name end
    seen[t], count = true, count + 1
  end
  for name, p in m:named_parameters() do row("parameter", name, p) end
  for name, b in m:named_buffers() do row("buffer", name, b) end
  for name, t in pairs(m) do -- plain fields: what `to` does not see
    if lt.is_tensor(t) and not seen[t] then row("FIELD", name, t) end
  end
  return elsewhere, count
end

print "\nthe model:"
local elsewhere, count = placement_table(model, device)
assert(count == 5)
if device == "cpu" then
  assert(#elsewhere == 0)
else
  assert(#elsewhere == 1 and elsewhere[1] == "positions")
end

-- The fix: register it. Then all tensors are on the device and the model runs.
model:register_buffer("positions", model.positions)
model:to(device)
print "\nthe model, its positions a buffer:"
elsewhere, count = placement_table(model, device)
assert(#elsewhere == 0 and count == 5)
assert(#model:devices() == 1 and model:device() == device) -- the same in short
local scores, labels = model(x):flatten(1, 2), lt.randint{1, 5, {16}, device = device}
assert(scores.device == device)

-- The usual causes of a device error, each with a tensor on the CPU.
local old_labels, mask, weight, state = labels:cpu(), lt.ones(16, 1), lt.ones(5), lt.zeros(16, 5)
local causes = {
  {"a batch still on the CPU", function() return model(x:cpu()) end},
  {"labels still on the CPU", function() return F.cross_entropy(scores, old_labels) end},
  {"a mask made inside forward", function() return scores * mask end},
  {"positions in a plain field", function() return Tagger():to(device)(x) end},
  {"the loss's weights", function() return F.cross_entropy(scores, labels, {weight = weight}) end},
  {"a state from before the move", function() return scores + state end},
}
print "\nthe usual causes:"
for i, cause in ipairs(causes) do
  local ok, message = pcall(cause[2])
  print(("%d. %-34s %s"):format(i, cause[1], ok and "works here"
    or message:match "on different devices: ([^\n]*)" or message))
  assert(ok == (device == "cpu") and (ok or message:find('on "cpu"', 1, true)), message)
end

if device == "cpu" then
  print "skipped: with one device nothing can be elsewhere (--emulate cuda:2)"
end
print "ok: print the devices, and look for the one that differs"
