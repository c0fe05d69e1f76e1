--- Dropout of channels and dropout that keeps mean and variance.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"

local function check(title, p)
  args.check(p >= 0 and p <= 1,
    "%s: expected a probability from 0 to 1 for argument 'p', got %s", title, tostring(p))
end

-- Returns 1 with probability 1 - p, else 0, in a real dtype.
local function kept(x, sizes, p)
  local mask = lt.zeros(sizes, {dtype = tensors.real_dtype(x), device = x.device})
  return p < 1 and mask:bernoulli_(1 - p) or mask
end

-- The shape of one number for each channel of {N, C, ...}.
local function by_channel(x)
  local sizes = {}
  for d = 1, x.ndim do sizes[d] = d <= 2 and x:size(d) or 1 end
  return sizes
end

local function drop_channels(title, x, p, training, inplace)
  check(title, p)
  args.check(x.ndim >= 2, "%s: expected at least 2 dimensions for argument 'input', got %d", title,
    x.ndim)
  if not training or p == 0 or x:numel() == 0 then return x end
  local mask = kept(x, by_channel(x), p)
  if p < 1 then mask = mask / (1 - p) end
  return inplace and x:mul_(mask) or x * mask
end

for dims = 1, 3 do
  local name <const> = ("dropout%dd"):format(dims)
  local batched <const> = dims + 2
  lt._define{
    signature = "F." .. name
      .. "(Tensor input, float p = 0.5, bool training = true, bool inplace = false)",
    doc = ("While training, zeroes whole channels of {N, C, ...} with probability p and scales the "
      .. "rest by 1 / (1 - p)%s."):format(dims == 1 and "; {C, L} is one instance" or ""),
    example = ("F.%s(lt.ones(%s), 0)"):format(name, ("1, "):rep(batched - 1) .. "2"),
    fn = function(x, p, training, inplace)
      if dims == 1 and x.ndim == 2 then
        local result = drop_channels(name, x:unsqueeze(1), p, training, inplace)
        return inplace and x or result:squeeze(1)
      end
      return drop_channels(name, x, p, training, inplace)
    end,
  }
end

-- The value of dropped elements: the limit of SELU for -inf.
local FLOOR = -1.7580993408473766

-- Klambauer et al. 2017: dropped elements become FLOOR, then all are scaled and shifted so that
-- mean 0 and variance 1 are kept.
local function alpha(title, x, p, training, inplace, sizes)
  check(title, p)
  if not training or p == 0 or x:numel() == 0 then return x end
  if p == 1 then
    local zeros = kept(x, sizes, p)
    return inplace and x:mul_(zeros) or x * zeros
  end
  local scale = 1 / math.sqrt((FLOOR * FLOOR * p + 1) * (1 - p))
  local mask = kept(x, sizes, p)
  local shift = (1 - mask) * (FLOOR * scale) - FLOOR * scale * p
  if inplace then return x:mul_(mask * scale):add_(shift) end
  return x * (mask * scale) + shift
end

lt._define{
  signature = "F.alpha_dropout(Tensor input, float p = 0.5, bool training = false, "
    .. "bool inplace = false)",
  doc = "While training, sets elements to SELU's limit with probability p and scales all so that "
    .. "mean and variance are kept.",
  example = "F.alpha_dropout(lt.ones(2), 0.5)",
  fn = function(x, p, training, inplace)
    return alpha("alpha_dropout", x, p, training, inplace, x.shape)
  end,
}

lt._define{
  signature = "F.feature_alpha_dropout(Tensor input, float p = 0.5, bool training = false, "
    .. "bool inplace = false)",
  doc = "alpha_dropout of whole channels of {N, C, ...}.",
  example = "F.feature_alpha_dropout(lt.ones(2, 3, 2), 0.5)",
  fn = function(x, p, training, inplace)
    args.check(x.ndim >= 2 or not training, "feature_alpha_dropout: expected at least 2 "
      .. "dimensions for argument 'input', got %d", x.ndim)
    return alpha("feature_alpha_dropout", x, p, training, inplace, by_channel(x))
  end,
}
