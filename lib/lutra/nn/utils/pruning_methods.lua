--- The methods of nn.utils.prune, as classes: which elements of a parameter are set to zero.

local lt = require "lutra"
local args = require "lutra.internal.args"
local BasePruningMethod = require "lutra.nn.utils.pruning_method"

local methods = {BasePruningMethod = BasePruningMethod}

-- Returns how many of n an amount is: an integer is a number, a float from 0 to 1 a fraction,
-- rounded to the nearest integer, halves to an even one.
local function count_of(title, amount, n)
  args.expect(type(amount) == "number", title, "an integer, or a float from 0 to 1,", "amount",
    amount)
  if math.type(amount) == "integer" then
    args.check(amount >= 0 and amount <= n,
      "%s: expected at most %d elements to prune for argument 'amount', got %d", title, n, amount)
    return amount
  end
  args.check(amount >= 0 and amount <= 1,
    "%s: expected a fraction from 0 to 1 for argument 'amount', got %g", title, amount)
  local exact = amount * n
  local whole = math.floor(exact)
  local rest = exact - whole
  if rest > 0.5 or rest == 0.5 and whole % 2 == 1 then whole = whole + 1 end
  return math.tointeger(whole)
end

-- Returns the tensor of scores with zeros in `mask` for the `count` smallest of them.
local function without_smallest(scores, mask, count)
  local new = mask:clone()
  if count == 0 then return new end
  local _, indices = scores:reshape(-1):topk(count, {largest = false})
  return new:reshape(-1):index_fill(1, indices, 0):reshape(mask.shape)
end

-- Returns x with the mask of channels (a vector for dim `dim`) as a mask of its shape.
local function spread(channels, x, dim)
  local shape = {}
  for i = 1, x.ndim do shape[i] = i == dim and -1 or 1 end
  return channels:reshape(shape):expand_as(x):clone()
end

-- Defines a class whose init stores the values of its signature as fields.
local function define(name, pruning_type, signature)
  local class = BasePruningMethod:extend(name)
  class.PRUNING_TYPE = pruning_type
  local parse = args.signature(name, signature)
  local parameters = args.describe(parse)
  function class:init(...)
    local values = table.pack(parse(...))
    for i, parameter in ipairs(parameters) do self[parameter.name] = values[i] end
  end
  methods[name] = class
  return class
end

--- prune.Identity(): prunes nothing.
local Identity = define("Identity", "unstructured", "")
function Identity.compute_mask(_, _, default_mask) return default_mask end

--- prune.CustomFromMask(mask): prunes the elements where `mask` is 0.
local CustomFromMask = define("CustomFromMask", "global", "Tensor mask")
function CustomFromMask:compute_mask(_, default_mask)
  return default_mask * self.mask:to(default_mask.dtype)
end

--- prune.L1Unstructured(amount): prunes the elements with the smallest absolute values.
local L1Unstructured = define("L1Unstructured", "unstructured", "Scalar amount")
function L1Unstructured:compute_mask(t, default_mask)
  return without_smallest(t:abs(), default_mask, count_of(self:_title(), self.amount, t:numel()))
end

--- prune.RandomUnstructured(amount): prunes random elements.
local RandomUnstructured = define("RandomUnstructured", "unstructured", "Scalar amount")
function RandomUnstructured:compute_mask(t, default_mask)
  return without_smallest(lt.rand_like(t), default_mask,
    count_of(self:_title(), self.amount, t:numel()))
end

-- Returns the mask without the channels of the smallest of score(t, dim), a vector.
local function without_channels(self, t, mask, score)
  local at = BasePruningMethod._dim_of(self:_title(), self.dim, t)
  local count = count_of(self:_title(), self.amount, t:size(at))
  local channels = lt.ones(t:size(at), {dtype = mask.dtype, device = mask.device})
  return mask * spread(without_smallest(score(t, at), channels, count), t, at)
end

--- prune.RandomStructured(amount, dim = -1): prunes random channels, the indices of a dimension.
local RandomStructured = define("RandomStructured", "structured", "Scalar amount, int dim = -1")
function RandomStructured:compute_mask(t, default_mask)
  return without_channels(self, t, default_mask, function(x, at)
    return lt.rand(x:size(at), {device = x.device})
  end)
end

--- prune.LnStructured(amount, n, dim = -1): prunes the channels, the indices of a dimension, with
-- the smallest norms of order `n`.
local LnStructured = define("LnStructured", "structured", "Scalar amount, float n, int dim = -1")
function LnStructured:compute_mask(t, default_mask)
  return without_channels(self, t, default_mask, function(x, at)
    local others = {}
    for i = 1, x.ndim do
      if i ~= at then others[#others + 1] = i end
    end
    return x:norm(self.n, others)
  end)
end

return methods
