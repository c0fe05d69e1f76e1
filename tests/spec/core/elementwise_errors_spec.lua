--- Errors of elementwise ops and their composites: op, argument, what is expected, what is given.

local lt = require "lutra"
local F = lt.F

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local function fails(expected, f, ...)
  assert.matches(expected, message_of(f, ...), 1, true)
end

describe("elementwise ops refuse", function()
  local x, flags = lt.tensor{0.5, 2}, lt.tensor{true, false}

  it("dtypes that they do not take", function()
    fails('neg: expected a number dtype, got "bool"', lt.neg, flags)
    fails('rsub: expected a number dtype for argument \'self\', got "bool"', lt.rsub, flags, 1)
    fails('positive: expected a number dtype for argument \'self\', got "bool"', lt.positive, flags)
    fails('gcd: expected an integer dtype or "bool", got "float32"', lt.gcd, x, x)
    fails('igamma: expected a float dtype, got "int64"', lt.igamma, lt.tensor{1}, lt.tensor{1})
    fails('nextafter: expected a float dtype, got "int64"', lt.nextafter, lt.tensor{1},
      lt.tensor{1})
    fails("erfinv: expected a real tensor for argument 'self', got \"complex64\"", lt.erfinv,
      lt.complex(x, x))
    fails("cannot write a result of dtype", function() lt.tensor{1, 2}:float_power_(2) end)
  end)

  it("arguments out of range", function()
    fails("polygamma: expected an integer of at least 0 for argument 'n', got -1", lt.polygamma,
      -1, x)
    fails("polygamma: expected a real tensor", lt.polygamma, 1, lt.complex(x, x))
    fails("mvlgamma: expected an integer of at least 1 for argument 'p', got 0", lt.mvlgamma, x, 0)
    fails("rrelu: expected a number up to 0.1 for argument 'lower', got 0.3", F.rrelu, x, 0.3, 0.1)
    fails("hardtanh: expected a number up to -0.5 for argument 'min_val', got 0.5", F.hardtanh, x,
      0.5, -0.5)
    fails("softshrink", F.softshrink, x, -0.5)
    fails("round: expected a float dtype with argument 'decimals' = 2, got \"int64\"", lt.round,
      lt.tensor{1}, 2)
  end)

  it("shapes that do not fit", function()
    fails("glu: expected an even size of dim -1 for argument 'self', got 3", F.glu, lt.zeros(2, 3))
    fails("glu: expected a tensor with dimensions", F.glu, lt.tensor(1.0))
    fails("prelu: expected one weight or 8 weights, one for each index of dim 2, for argument "
      .. "'weight', got shape {9}", F.prelu, lt.zeros(2, 8, 3), lt.zeros(9))
    fails("prelu: expected at most one dimension for argument 'weight', got shape {2, 4}", F.prelu,
      lt.zeros(2, 8, 3), lt.zeros(2, 4))
    fails("prelu: expected one element for argument 'weight'", F.prelu, lt.tensor(1.0), lt.zeros(2))
    fails("fill: expected a number or a tensor of shape {} for argument 'value', got shape {2}",
      lt.fill, x, x)
  end)

  it("gradients that have no formula", function()
    local a = lt.tensor{1.5}:requires_grad_(true)
    fails("cannot compute the gradient of argument 'self': it has no formula", function()
      lt.igamma(a, lt.tensor{2.0}):backward()
    end)
    fails("cannot compute the gradient of argument 'self': it has no formula", function()
      lt.special.zeta(a, 2.0):backward()
    end)
  end)
end)
