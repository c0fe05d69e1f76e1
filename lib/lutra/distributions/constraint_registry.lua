--- lt.distributions.biject_to, transform_to: transforms from unconstrained numbers to the values
-- that meet a constraint, by the kinds of constraints.

local args = require "lutra.internal.args"
local transforms = require "lutra.distributions.transforms"

local registry = {}

-- The transforms of both functions: kind of constraint -> function of the constraint and of the
-- function that is called, for the parts of a constraint.
local common = {}

function common.real() return transforms.identity_transform end
function common.positive() return transforms.ExpTransform() end
common.nonnegative = common.positive
function common.greater_than(c)
  return transforms.ComposeTransform{transforms.ExpTransform(),
    transforms.AffineTransform(c.lower_bound, 1)}
end
common.greater_than_eq = common.greater_than
function common.less_than(c)
  return transforms.ComposeTransform{transforms.ExpTransform(),
    transforms.AffineTransform(c.upper_bound, -1)}
end
function common.interval(c)
  local low, high = c.lower_bound, c.upper_bound
  if type(low) == "number" and low == 0 and type(high) == "number" and high == 1 then
    return transforms.SigmoidTransform()
  end
  return transforms.ComposeTransform{transforms.SigmoidTransform(),
    transforms.AffineTransform(low, high - low)}
end
common.half_open_interval, common.unit_interval = common.interval, common.interval
function common.corr_cholesky() return transforms.CorrCholeskyTransform() end
function common.independent(c, find)
  return transforms.IndependentTransform(find(c.base_constraint), c.reinterpreted_batch_ndims)
end
local function all(list, find)
  local found = {}
  for i, c in ipairs(list) do found[i] = find(c) end
  return found
end
function common.cat(c, find)
  return transforms.CatTransform(all(c.cseq, find), c.dim, c.lengths)
end
function common.stack(c, find) return transforms.StackTransform(all(c.cseq, find), c.dim) end

-- Defines registry[name], with the transforms in `own` beside the common ones.
local function define(name, own)
  local function find(constraint)
    local meta = getmetatable(constraint)
    args.expect(type(meta) == "table" and meta.__name == "Constraint", name, "a constraint",
      "constraint", constraint)
    local make = own[constraint.kind] or common[constraint.kind]
    args.check(make, "%s: cannot transform numbers to %s", name, tostring(constraint))
    return make(constraint, find)
  end
  registry[name] = find
end

define("biject_to", {
  simplex = function() return transforms.StickBreakingTransform() end,
})

local function positive_definite() return transforms.PositiveDefiniteTransform() end

define("transform_to", {
  simplex = function() return transforms.SoftmaxTransform() end,
  lower_cholesky = function() return transforms.LowerCholeskyTransform() end,
  positive_definite = positive_definite,
  positive_semidefinite = positive_definite,
})

return registry
