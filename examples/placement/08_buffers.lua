-- Buffers: tensors that belong to a model but are not learnt.
--
--   lutra [--emulate cuda:2] examples/placement/08_buffers.lua
--
-- A mask, a running mean, a table of positions: no training changes them, and yet they have to be
-- where the model is. Registered as a buffer, such a tensor moves with the model and is saved
-- with it. In a plain field it stays on the CPU.
--
-- test:

local lt = require "lutra"
local nn = lt.nn
local device = lt.best_device()

-- true above the diagonal: a word may not look at the words that come after it.
local CausalMask = nn.Module:extend "CausalMask"
function CausalMask:init(max_length)
  self:register_buffer("mask", lt.ones{max_length, max_length, dtype = "bool"}:triu(1))
end
function CausalMask:forward(x)
  local T = x:size(2)
  return self.mask[{{1, T}, {1, T}}]
end

local Forgetful = nn.Module:extend "Forgetful" -- the same with a plain field
function Forgetful:init(max_length)
  self.mask = lt.ones{max_length, max_length, dtype = "bool"}:triu(1)
end
Forgetful.forward = CausalMask.forward

local right, wrong = CausalMask(1024):to(device), Forgetful(1024):to(device)
print("registered:", right.mask.device, "plain field:", wrong.mask.device)
assert(right.mask.device == device and wrong.mask.device == "cpu")

local x = lt.randn{2, 4, 8, device = device}
local mask = right(x)
print(mask)
assert(mask.device == device and mask.dtype == "bool")
assert(mask:sum():item() == 6) -- 3 + 2 + 1 places above the diagonal of 4 x 4

-- Attention scores with the future hidden. The forgotten mask is in the wrong place for it.
local scores = lt.randn{2, 4, 4, device = device}
local hidden = scores:masked_fill(mask, -lt.inf):softmax(-1)
assert(hidden[{1, 1, 1}]:item() == 1, "the first word sees only itself")
if device == "cpu" then
  print "skipped: on one device the plain field does no harm yet (--emulate cuda:2)"
else
  local ok, message = pcall(function() return scores:masked_fill(wrong(x), -lt.inf) end)
  print(message)
  assert(not ok and message:find("mask is on cpu", 1, true), message)
end

-- A buffer is no parameter, but it is saved.
for name, buffer in right:named_buffers() do print("buffer", name, buffer.shape, buffer.device) end
assert(right:num_parameters() == 0)
assert(right:state_dict().mask and not wrong:state_dict().mask)

print "ok: what is registered as a buffer goes where the model goes"
