--- Special functions that are combinations of other ops, and torch.special's other names.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"
local ops = require("lutra.core")._ops

lt._define{
  signature = "lt.sinc(Tensor self)",
  doc = "sin(pi x) / (pi x); 1 at 0.",
  method = true, in_place = true, also = {"special"},
  example = "lt.sinc(lt.tensor{0, 0.5, 1})",
  fn = function(x)
    if not x:is_complex() then return ops._sinc(x) end
    local zero = x:eq(0)
    local angle = x:masked_fill(zero, 1) * math.pi
    return (angle:sin() / angle):masked_fill(zero, 1)
  end,
}

lt._define{
  signature = "lt.logit(Tensor self, float? eps = nil)",
  doc = "log(x / (1 - x)), with eps of x clamped to the range from eps to 1 - eps.",
  method = true, in_place = true, also = {"special"},
  example = "lt.logit(lt.tensor{0.1, 0.5, 0.9})",
  fn = function(x, eps) return ops._logit(x, eps or -1.0) end,
}

local function polygamma(n, x)
  if lt.is_tensor(n) then n, x = x, n end -- the method
  args.check(lt.is_tensor(x), "polygamma: expected a tensor for argument 'input', got a number")
  args.check(not lt.is_tensor(n), "polygamma: expected an integer for argument 'n', got a tensor")
  args.expect(n >= 0, "polygamma", "an integer of at least 0", "n", n)
  if n == 1 and not x:is_complex() then return ops._trigamma(x) end
  return ops._polygamma(x, n)
end
lt._define{
  signature = "lt.polygamma(int|Tensor n, Tensor|int input)",
  doc = "The derivative of order n of digamma; as a method x:polygamma(n).",
  method = true, in_place = true, also = {"special"},
  example = "lt.polygamma(1, lt.tensor{1, 2.5})",
  fn = polygamma,
}

local function mvlgamma(x, p)
  args.expect(p >= 1, "mvlgamma", "an integer of at least 1", "p", p)
  if p == 1 then return x:lgamma() end
  if not x:is_floating_point() then x = x:to(lt.get_default_dtype()) end
  local shifts = lt.arange(0, (p - 1) / 2, 0.5, {dtype = x.dtype, device = x.device})
  return (x:unsqueeze(-1) - shifts):lgamma():sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
end
lt._define{
  signature = "lt.mvlgamma(Tensor self, int p)",
  doc = "Logarithm of the multivariate gamma function of dimension p.",
  method = true, in_place = true,
  example = "lt.mvlgamma(lt.tensor{2, 3.5}, 2)",
  fn = mvlgamma,
}
lt._define{
  signature = "special.multigammaln(Tensor self, int p)",
  doc = "The same as lt.mvlgamma.",
  example = "lt.special.multigammaln(lt.tensor{2, 3.5}, 2)",
  fn = mvlgamma,
}

-- ---- other names

for name, row in pairs{
  expit = {"Tensor self", "lt.sigmoid", lt.sigmoid},
  psi = {"Tensor self", "lt.digamma", lt.digamma},
  gammaln = {"Tensor self", "lt.lgamma", lt.lgamma},
  gammainc = {"Tensor self, Tensor other", "lt.igamma", lt.igamma},
  gammaincc = {"Tensor self, Tensor other", "lt.igammac", lt.igammac},
  modified_bessel_i0 = {"Tensor self", "lt.i0", lt.i0},
  modified_bessel_i1 = {"Tensor self", "lt.special.i1", lt.special.i1},
} do
  local two = row[1]:find ","
  lt._define{
    signature = ("special.%s(%s)"):format(name, row[1]),
    doc = ("The same as %s."):format(row[2]),
    example = two and ("lt.special.%s(lt.tensor{1, 2.5}, lt.tensor{0.5, 3})"):format(name)
      or ("lt.special.%s(lt.tensor{0.5, 2})"):format(name),
    fn = function(...) return row[3](...) end,
  }
end

-- ---- orthogonal polynomials: name, description, in the order of lt_polynomial (special.h)

for kind, row in ipairs{
  {"chebyshev_polynomial_t", "Chebyshev polynomial of the first kind"},
  {"chebyshev_polynomial_u", "Chebyshev polynomial of the second kind"},
  {"chebyshev_polynomial_v", "Chebyshev polynomial of the third kind"},
  {"chebyshev_polynomial_w", "Chebyshev polynomial of the fourth kind"},
  {"shifted_chebyshev_polynomial_t", "Chebyshev polynomial of the first kind, of 2 x - 1,"},
  {"shifted_chebyshev_polynomial_u", "Chebyshev polynomial of the second kind, of 2 x - 1,"},
  {"shifted_chebyshev_polynomial_v", "Chebyshev polynomial of the third kind, of 2 x - 1,"},
  {"shifted_chebyshev_polynomial_w", "Chebyshev polynomial of the fourth kind, of 2 x - 1,"},
  {"hermite_polynomial_h", "Hermite polynomial (physicists')"},
  {"hermite_polynomial_he", "Hermite polynomial (probabilists')"},
  {"laguerre_polynomial_l", "Laguerre polynomial"},
  {"legendre_polynomial_p", "Legendre polynomial"},
} do
  lt._define{
    signature = ("special.%s(Operand x, Operand n)"):format(row[1]),
    doc = row[2] .. " of degree n, which is truncated to an integer; 0 if n is negative.",
    example = ("lt.special.%s(lt.tensor{0.5, 2}, 3)"):format(row[1]),
    fn = function(x, n)
      if lt.is_tensor(x) then tensors.check_real(row[1], "x", x) end
      if lt.is_tensor(n) then tensors.check_real(row[1], "n", n) end
      if lt.is_tensor(x) and lt.is_tensor(n) then tensors.check_broadcast(row[1], x, n) end
      return ops._polynomial(x, n, kind)
    end,
  }
end
