-- Buffers: tensors of a model that are not trained.
--
--   lutra [--emulate cuda:2] examples/placement/08_buffers.lua
--
-- A mask, a running mean, a table of positions: training does not change them, but they must be on
-- the model's device. A registered buffer moves with the model and is saved with it. In a plain
-- field the tensor stays on the CPU.
--
-- test:

local lt = require "lutra"
local nn = lt.nn
local device = lt.best_device()

-- PyTorch: self.register_buffer("mask", torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1))
-- true above the diagonal: a token must not attend to later tokens.
local CausalMask = nn.Module:extend "CausalMask"
function CausalMask:init(max_length)
  self:register_buffer("mask", lt.ones{max_length, max_length, dtype = "bool"}:triu(1))
end
function CausalMask:forward(x) -- PyTorch: T = x.shape[1]; return self.mask[:T, :T]
  local T = x:size(2)
  return self.mask[{{1, T}, {1, T}}]
end

local Forgetful = nn.Module:extend "Forgetful" -- the same with a plain field
function Forgetful:init(max_length)
  self.mask = lt.ones{max_length, max_length, dtype = "bool"}:triu(1)
end
Forgetful.forward = CausalMask.forward

local right, wrong = CausalMask(1024):to(device), Forgetful(1024):to(device)
print(("after to(%q): the buffer is on %s, the plain field on %s"):format(device,
  right.mask.device, wrong.mask.device))
assert(right.mask.device == device and wrong.mask.device == "cpu")

local x = lt.randn{2, 4, 8, device = device} -- 2 sequences of 4 tokens
local mask = right(x)
print("\nthe mask for 4 tokens:\n" .. tostring(mask))
assert(mask.device == device and mask.dtype == "bool")
assert(mask:sum():item() == 6) -- 3 + 2 + 1 elements above the diagonal of 4 x 4

-- Masked attention scores. The mask in the plain field is on the wrong device.
local scores = lt.randn{2, 4, 4, device = device}
local hidden = scores:masked_fill(mask, -lt.inf):softmax(-1)
assert(hidden[{1, 1, 1}]:item() == 1, "the first token attends only to itself")
if device == "cpu" then
  print "skipped: the plain field fails only with a second device (--emulate cuda:2)"
else
  local ok, message = pcall(function() return scores:masked_fill(wrong(x), -lt.inf) end)
  print("\nwith the plain field:\n  " .. message)
  assert(not ok and message:find('is on "cpu"', 1, true), message)
end

-- A buffer is not a parameter, but it is listed and saved. PyTorch: model.named_buffers()
for name, buffer in right:named_buffers() do
  print(("\nbuffer %q: %s %s on %s"):format(name, buffer.shape, buffer.dtype, buffer.device))
  assert(buffer == right.mask)
end
assert(right:num_parameters() == 0)
assert(right:state_dict().mask and not wrong:state_dict().mask)

print "ok: a registered buffer moves with the model"
