--- Scans that have no kernel of their own.

local lt = require "lutra"
local dims = require "lutra.internal.dims"
local tensors = require "lutra.internal.tensors"

-- Returns log(e^a + e^b) = h + log(1 + e^(l - h)), where h is the larger number (by its real part),
-- so that nothing overflows. An infinite h is the result.
local function log_add(a, b)
  local a_real, b_real = lt.real(a):detach(), lt.real(b):detach()
  local swap = a_real:lt(b_real)
  local high, low = lt.where(swap, b, a), lt.where(swap, a, b)
  local infinite = lt.where(swap, b_real, a_real):isinf()
  local ratio = lt.where(infinite, 0, low - high):exp()
  return lt.where(infinite, high, high + (a:is_complex() and (ratio + 1):log() or ratio:log1p()))
end

-- Returns y, the logarithms of cumulative sums along dim, with the imaginary parts that adding the
-- elements of x one by one gives. Each is the nearest, modulo 2 pi, to that of the sum before it or
-- of its element, whichever has the larger real part.
local function unwound(y, x, dim)
  local n = x:size(dim)
  local function later(t) return dims.range(t, dim, 2, n) end
  local function earlier(t) return dims.range(t, dim, 1, n - 1) end
  local function wrapped(t) return t - (t / (2 * lt.pi)):round() * (2 * lt.pi) end
  local angle, own = lt.imag(y):detach(), lt.imag(x)
  local goes_on = earlier(lt.real(y):detach()):ge(later(lt.real(x)))
  local turns = lt.cat({own:narrow(dim, 1, 1) * 0,
    lt.where(goes_on, wrapped(later(angle) - earlier(angle)), 0)}, dim):cumsum(dim)
  local place = lt.arange(n, {device = x.device}):reshape(dims.at(x, dim, n, 1))
  local first = lt.where(goes_on, 1, later(place))
  first = lt.cat({lt.ones_like(first:narrow(dim, 1, 1)), first}, dim):cummax(dim)
  local start = own + wrapped(angle - own)
  local full = start:gather(dim, first) + turns - turns:gather(dim, first)
  local added = ((full - angle) / (2 * lt.pi)):round() * (2 * lt.pi)
  return y + lt.complex(lt.zeros_like(added), added)
end

lt._define{
  signature = "lt.logcumsumexp(Tensor self, dim dim)",
  doc = "log(cumsum(e^x)) along dim, without overflow.",
  example = "lt.logcumsumexp(lt.tensor{1., 2, 3}, 1)",
  method = true,
  fn = function(x, dim)
    dim = dims.one("logcumsumexp", x, dim)
    if not tensors.are_batched() and x.is_cpu and x:is_floating_point()
        and not x.requires_grad then
      return lt._ops._logcumsumexp(x, dim)
    end
    local n = dims.size(x, dim)
    local y = x:clone()
    local step = 1
    while step < n do -- each element is the sum of up to `step` elements
      y = lt.cat({dims.range(y, dim, 1, step),
        log_add(dims.range(y, dim, step + 1, n), dims.range(y, dim, 1, n - step))}, dim)
      step = step * 2
    end
    if n < 2 or not x:is_complex() then return y end
    return unwound(y, x:detach(), dim)
  end,
}
