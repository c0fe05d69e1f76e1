--- Samples of the gamma distribution with rate 1, and their gradients.
--
-- Samples are drawn by the method of Marsaglia and Tsang (2000): for all elements at once, and then
-- for those that were rejected. The gradient of a sample z with respect to the concentration a is
-- implicit (Figurnov, Mohamed and Mnih 2018): -(dF/da) / p(z), where F is the distribution
-- function. Its derivative is a difference of fourth order of igamma, or of igammac above the mean,
-- in float64.

local lt = require "lutra"

-- Returns an accepted d * v for each element of d, a vector of float64.
local function draw(d)
  local result = lt.zeros_like(d)
  local left = lt.arange(d:numel(), {device = d.device})
  while left:numel() > 0 do
    local part = d:index_select(1, left)
    local x = lt.randn_like(part)
    local v = (1 + x / (9 * part):sqrt()) ^ 3
    local u = lt.rand_like(part)
    local accepted = v:gt(0)
      & u:log():lt(0.5 * x * x + part - part * v + part * v:clamp(1e-300):log())
    result:index_copy_(1, left:masked_select(accepted), (part * v):masked_select(accepted))
    left = left:masked_select(accepted:logical_not())
  end
  return result
end

-- Returns the device on which float64 is available for a tensor.
local function wide_device(x) return x.is_mps and "cpu" or x.device end

local function sample(concentration)
  local a = concentration:detach():to{device = wide_device(concentration), dtype = "float64"}
  local flat = a:reshape(-1)
  local is_small = flat:lt(1)
  local z = draw(flat + is_small:to "float64" - 1 / 3)
  -- a sample for a + 1, times u^(1 / a), is one for a
  local power = lt.where(is_small, lt.rand_like(flat):log() / flat, lt.zeros_like(flat))
  z = (z * power:exp()):reshape(a.shape):to{device = concentration.device,
    dtype = concentration.dtype}
  return z:clamp(lt.finfo(z.dtype).tiny)
end

-- Returns the derivative of samples z with respect to the concentration.
local function derivative(concentration, z)
  local wide = {device = wide_device(z), dtype = "float64"}
  local a, x = concentration:detach():to(wide), z:detach():to(wide)
  local h, above = a * 1e-3, x:gt(a)
  local function f(step)
    local at = a + step * h
    return lt.where(above, -lt.igammac(at, x), lt.igamma(at, x))
  end
  local slope = (8 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12 * h)
  local log_density = (a - 1) * x:log() - x - a:lgamma()
  return (-slope / log_density:exp()):to{device = z.device, dtype = z.dtype}
end

local StandardGamma = lt.autograd.Function:extend "StandardGamma"

function StandardGamma.forward(ctx, concentration)
  local z = sample(concentration)
  ctx:save_for_backward(concentration, z)
  return z
end

function StandardGamma.backward(ctx, grad)
  local concentration, z = ctx:saved()
  return grad * derivative(concentration, z)
end

--- Returns a sample for each element of the tensor `concentration`, of numbers above 0.
return function(concentration)
  if concentration:numel() == 0 then return concentration:clone() end
  return StandardGamma(concentration)
end
