--- nn.Flatten: merges adjacent dimensions into one.

local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"

local Flatten = Module:extend "Flatten"

local parse = args.signature("Flatten", "dim start_dim = 2, dim end_dim = -1")

--- nn.Flatten{start_dim = 2, end_dim = -1}: merges the dimensions start_dim to end_dim (1-based;
-- negative ones count from the end), by default all but the batch. Raises an error for dimension
-- 0.
function Flatten:init(...)
  self.start_dim, self.end_dim = parse(...)
  args.check(self.start_dim ~= 0 and self.end_dim ~= 0, "Flatten: expected "
    .. "dimensions from 1 (or -1 for the last) for arguments 'start_dim' and 'end_dim', got 0")
end

--- Maps {N, *} to {N, product of *} for the default dimensions. Raises an error when the input has
-- fewer dimensions than start_dim.
function Flatten:forward(x)
  self:check_tensor(x)
  local dim = self.start_dim > 0 and self.start_dim or -self.start_dim
  if dim > math.max(x.ndim, 1) then
    self:fail("expected an input of at least %d dimensions, got shape %s", dim, tostring(x.shape))
  end
  return x:flatten(self.start_dim, self.end_dim)
end

function Flatten:extra_repr()
  return ("start_dim=%d, end_dim=%d"):format(self.start_dim, self.end_dim)
end

return Flatten
