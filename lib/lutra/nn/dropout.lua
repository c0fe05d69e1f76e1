--- nn.Dropout: random zeroing of elements during training (Srivastava et al. 2014).

local lt = require "lutra"
local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"
local numbers = require "lutra.internal.numbers"

local Dropout = Module:extend "Dropout"

local parse = args.signature("Dropout", "float p = 0.5, bool inplace = false")

--- nn.Dropout(p = 0.5, inplace = false): in training mode, sets each element to zero with
-- probability `p` and divides the others by 1 - p. With `inplace`, overwrites its input. In
-- evaluation mode, returns the input unchanged. Raises an error unless 0 <= p <= 1.
function Dropout:init(...)
  self.p, self.inplace = parse(...)
  args.check(self.p >= 0 and self.p <= 1,
    "Dropout: expected a probability from 0 to 1 for argument 'p', got %g", self.p)
end

--- Maps a tensor of any shape to one of the same shape. Draws from the default generator of the
-- tensor's device.
function Dropout:forward(x)
  self:check_tensor(x)
  if not self.training or self.p == 0 then return x end
  local y = lt.dropout(x, self.p, true)
  return self.inplace and x:copy_(y) or y
end

function Dropout:extra_repr()
  return "p=" .. numbers.text(self.p, "%g") .. (self.inplace and ", inplace=true" or "")
end

return Dropout
