--- Softmax, log-softmax and softmin of F, whose dimension may be omitted.

local lt = require "lutra"
local ops = require("lutra.core")._ops

local warned = {} -- names of functions

-- The dimension that PyTorch takes without an argument: the first one of 0, 1 or 3 dimensions, else
-- the second one.
local function implicit(title, x)
  if not warned[title] then
    warned[title] = true
    warn(("F.%s: the choice of a dimension without argument 'dim' is deprecated: use F.%s(x, -1)")
      :format(title, title))
  end
  return (x.ndim == 0 or x.ndim == 1 or x.ndim == 3) and 1 or 2
end

-- Defines F.<name>, which calls `op` of -x if `negative`, else of x. An op of the runtime has the
-- same name, except that of softmin.
local function define(name, op, negative, doc)
  lt._define{
    signature = (name == op and "F.F_" or "F.") .. name .. "(Tensor input, dim? dim = nil, "
      .. "int _stacklevel = 3, dtype? dtype = nil)",
    doc = doc .. " Without dim it is the first dim of 0, 1 or 3 dims, else the second one, with a "
      .. "warning, as in PyTorch. `_stacklevel` has no effect.",
    example = ("F.%s(lt.tensor{1., 2.}, 1)"):format(name),
    fn = function(x, dim, _, dtype)
      dim = dim or implicit(name, x)
      if negative then x = -x end
      return ops[op](x, dim, dtype)
    end,
  }
end

define("softmax", "softmax", false, "Softmax along dim: e^x / sum(e^x).")
define("log_softmax", "log_softmax", false, "Log-softmax along dim: log(softmax(x)).")
define("softmin", "softmax", true, "Softmin along dim: softmax(-x).")
