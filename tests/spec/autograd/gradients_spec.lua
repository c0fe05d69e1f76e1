-- Every gradient (of composites too) against finite differences in float64: the first derivative,
-- the second, the in-place variant, the
-- in-place variant written into a view, and inputs whose memory is not in order. One line of
-- samples per op, or a sample made from its signature where that requires nothing but tensors and a
-- dim; a test holds the table complete against the op table.
local lt = require "lutra"
local ops = require("lutra.core")._ops
local wide = require "wide_support"

local STEP, RELATIVE, ABSOLUTE = 1e-5, wide.tolerance(2e-6, 1e-4), wide.tolerance(2e-7, 2e-5)
local EXACT = wide.tolerance(1e-12, 1e-6)

-- ---- inputs

local made = 0 -- tensors of the sample so far: each gets other numbers

-- Numbers on (from, to), no two alike, of the shape given.
local function numbers(from, to, ...)
  local shape, n, data = {...}, 1, {}
  for _, size in ipairs(shape) do n = n * size end
  made = made + 1
  for k = 1, n do data[k] = from + (to - from) * ((7919 * (k + 37 * made)) % 1009 + 0.5) / 1009 end
  return lt.tensor(data, {dtype = wide.dtype}):view(shape)
end

local function variable(x) return x:requires_grad_() end
local function R(...) return variable(numbers(-1.5, 1.5, ...)) end -- any number
local function P(...) return variable(numbers(0.3, 1.9, ...)) end -- positive
local function U(...) return variable(numbers(-0.9, 0.9, ...)) end -- inside (-1, 1)
local function G(...) return variable(numbers(1.1, 3.0, ...)) end -- above 1
local function K(...) return numbers(-1.5, 1.5, ...) end -- a constant
local function KP(...) return numbers(0.3, 1.9, ...) end
local function V(data) return variable(lt.tensor(data, {dtype = wide.dtype})) end -- these numbers
local function I(data) return lt.tensor(data, {dtype = "int64"}) end
local function F(number) return lt.tensor(number, {dtype = wide.dtype}) end
local function B(data) return lt.tensor(data, {dtype = "bool"}) end

-- ---- samples: op = {function() return arguments end, ...}
-- ------------------------------------------------------

local function one(make, ...)
  local shape = {...}
  return {function() return make(table.unpack(shape)) end}
end
local function two(make)
  return {
    function() return make(2, 3), make(2, 3) end, function() return make(2, 3), make(3) end,
    function() return make(2, 1), make(1, 3) end, function() return make(2), 1.7 end,
    function() return 1.3, make(2) end, function() return make(), make(2) end,
  }
end

local samples = {
  copy = one(R, 2, 3), fill = {function() return R(2), 3.5 end}, neg = one(R, 2, 3), abs = one(R,
  2, 3),
  sign = one(R, 3), angle = one(R, 3), conj = one(R, 3), real = one(R, 3),
  square = one(R, 2, 3), relu = one(R, 2, 3), floor = one(U, 3), ceil = one(U, 3),
  round = one(U, 3), trunc = one(U, 3), frac = one(U, 3), exp = one(R, 2, 3), exp2 = one(R, 3),
  expm1 = one(R, 3), log = one(P, 2, 3), log2 = one(P, 3), log10 = one(P, 3), log1p = one(P, 3),
  sqrt = one(P, 2, 3), rsqrt = one(P, 3), reciprocal = one(P, 3), sin = one(R, 3), cos = one(R, 3),
  tan = one(U, 3), asin = one(U, 3), acos = one(U, 3), atan = one(R, 3), sinh = one(R, 3),
  cosh = one(R, 3),
  tanh = one(R, 2, 3), asinh = one(R, 3), acosh = one(G, 3), atanh = one(U, 3), erf = one(R, 3),
  erfc = one(R, 3), sigmoid = one(R, 2, 3), logsigmoid = one(R, 3), silu = one(R, 3),
  _gelu_erf = one(R, 4),
  _gelu_tanh = one(R, 4),
  softplus = {function() return R(4) end, function() return R(4), 2.5, 1 end},
  leaky_relu = {function() return R(4) end, function() return R(4), 0.3 end},
  elu = {function() return R(4) end, function() return V{-2, 1, 900}, 1.7 end},
  nan_to_num = {function() return V{1, -2} end},

  add = {function() return R(2, 3), R(3), 2.5 end, table.unpack(two(R))},
  sub = {function() return R(2, 3), R(3), 2.5 end, table.unpack(two(R))},
  mul = two(R), _true_divide = two(P),
  _trunc_divide = {function() return V{5.5, -5.5}, V{2, 2} end},
  floor_divide = {function() return V{5.5, -5.5}, V{2, 2} end},
  remainder = {function() return V{5.5, -5.5, 1}, V{2, 2, -3} end,
    function() return R(3), 0.37 end},
  fmod = {function() return V{5.5, -5.5, 1}, V{2, 2, -3} end, function() return R(3), 0.37 end},
  pow = {
    function() return R(3), 3 end, function() return R(3), 2 end, function() return P(3), -1.5 end,
    function() return P(2, 3), R(3) end, function() return 2.5, R(3) end,
    function() return R(3), 0 end,
    function() return V{0, 1.5, -2}, 3.0 end,
  },
  maximum = two(R), minimum = two(R), fmax = two(R), fmin = two(R), atan2 = two(R),
  hypot = {function() return R(2, 3), R(3) end}, copysign = two(R),

  _where = {
    function() return B{true, false, true}, R(3), R(2, 3) end,
    function() return B{true, false}, R(2), 0.5 end,
    function() return B{true, false}, 0.5, R(2) end,
  },
  masked_fill = {
    function() return R(2, 3), B{true, false, true}, 0.5 end,
    function() return R(2, 3), B{true, false, true}, R() end,
  },
  _clamp = {
    function() return R(6), -0.6, 0.7 end, function() return R(2, 3), V{-0.6, -0.1, -0.3}, 0.7 end,
    function() return R(2, 3), K(3), K(3) end, function() return R(2, 3), R(3), R(2, 1) end,
  },
  lerp = {
    function() return R(2, 3), R(3), 0.3 end, function() return R(2, 3), R(2, 3), 0.8 end,
    function() return R(2, 3), R(2, 3), R(3) end,
  },
  addcmul = {function() return R(2, 3), R(3), R(2, 1) end,
    function() return R(3), R(3), R(3), 0.7 end},
  addcdiv = {function() return R(2, 3), R(3), P(2, 1) end,
    function() return R(3), R(3), P(3), 0.7 end},
  _relu_backward = {function() return R(4), K(4) end},
  _tanh_backward = {function() return R(4), U(4) end},
  _sigmoid_backward = {function() return R(4), P(4) end},
  _gelu_erf_backward = {function() return R(4), R(4) end},
  _gelu_tanh_backward = {function() return R(4), R(4) end},
  _silu_backward = {function() return R(4), R(4) end},

  uniform = one(R, 3), normal = one(R, 3), exponential = one(R, 3),
  random = {function() return R(3), 6 end},
  _bernoulli = {function() return R(3), 0.5 end},
  _bernoulli_of = {function() return variable(numbers(0, 1, 3)) end},

  sum = {
    function() return R(2, 3) end, function() return R(2, 3, 2), {1, 3} end,
    function() return R(2, 3), 2, true end,
    function() return R() end, function() return R(2, 3), {dtype = wide.dtype, dim = -1} end,
  },
  mean = {
    function() return R(2, 3) end, function() return R(2, 3, 2), {1, 3} end,
    function() return R(2, 3), 2, true end,
    function() return R() end,
  },
  prod = {
    function() return P(2, 3) end, function() return R(2, 3, 2), {1, 3} end,
    function() return R(2, 3), 2, true end,
    function() return V{{2, 0, 3}, {0, 0, 4}}, 2 end, function() return V{2, 0, 3} end,
    function() return R() end,
  },
  amax = {function() return R(2, 3) end, function() return R(2, 3, 2), {1, 3} end,
    function() return R(2, 3), 2, true end},
  amin = {function() return R(2, 3) end, function() return R(2, 3, 2), {1, 3} end,
    function() return R(2, 3), 2, true end},
  _max = {function() return R(2, 3), 2 end, function() return R(2, 3), 1, true end,
    function() return R(), 1 end},
  _min = {function() return R(2, 3), 2 end, function() return R(2, 3), 1, true end},
  _var = {
    function() return R(2, 3) end, function() return R(2, 3, 2), {1, 3}, true, 0 end,
    function() return R(2, 3), 2 end,
  },
  _norm = {
    function() return R(2, 3) end, function() return R(2, 3), 2 end,
    function() return R(2, 3), 2, true, 1 end,
    function() return R(2, 3), 1, false, 3 end, function() return R(2, 3), 1, false, 1.5 end,
    function() return R(2, 3), 1, false, 0.5 end,
    function() return R(2, 3), 2, false, math.huge end,
    function() return R(2, 3), 2, false, 0 end,
  },
  logsumexp = {
    function() return R(2, 3), 2 end, function() return R(2, 3), {1, 2} end,
    function() return R(2, 3), 1, true end,
  },
  cumsum = {function() return R(2, 3), 1 end, function() return R(2, 3), -1 end,
    function() return R(), 1 end},
  cumprod = {
    function() return R(2, 3), 1 end, function() return P(2, 3), -1 end,
    function() return V{2, 0, 3, 0, 4}, 1 end,
    function() return V{{0, 2}, {3, 0}, {4, 5}}, 1 end, function() return R(), 1 end,
  },
  cummax = {function() return R(3, 4), 1 end, function() return R(3, 4), -1 end,
    function() return R(), 1 end},
  cummin = {function() return R(3, 4), 1 end, function() return R(), 1 end},
  sort = {function() return R(2, 4) end, function() return R(3, 2), 1, true end},
  topk = {function() return R(2, 4), 2 end, function() return R(4, 2), 3, 1, false end},

  softmax = {function() return R(2, 3), 2 end, function() return R(2, 3), 1 end},
  log_softmax = {function() return R(2, 3), 2 end, function() return R(2, 3), 1 end},
  _softmax_backward = {function() return R(2, 3), P(2, 3), 2 end},
  _log_softmax_backward = {function() return R(2, 3), R(2, 3), 1 end},
  _layer_norm = {
    function() return R(2, 3), 1, P(3), R(3), 1e-5 end,
    function() return R(2, 3), 1, nil, nil, 1e-5 end,
    function() return R(2, 2, 3), 2, P(2, 3), nil, 0.1 end,
  },
  _nll_loss = {
    function() return R(4, 3), I{1, 3, 2, 3}, nil, "mean", -100 end,
    function() return R(4, 3), I{1, 3, 2, 3}, KP(3), "mean", 2 end,
    function() return R(4, 3), I{1, 3, 2, 3}, KP(3), "sum", -100 end,
    function() return R(4, 3), I{1, 3, 2, 3}, nil, "none", 3 end,
  },
  _nll_loss_backward = {
    function()
      local x, target, weight = K(4, 3), I{1, 3, 2, 3}, KP(3)
      return R(), x, target, weight, "mean", 2,
        (select(2, ops._nll_loss(x, target, weight, "mean", 2)))
    end,
    function() return R(4), K(4, 3), I{1, 3, 2, 3}, nil, "none", -100, F(4.0) end,
  },

  mm = {function() return R(2, 3), R(3, 4) end, function() return K(2, 3), R(3, 2) end},
  bmm = {function() return R(2, 2, 3), R(2, 3, 2) end},
  addmm = {
    function() return R(2, 2), R(2, 3), R(3, 2) end,
    function() return R(2), R(2, 3), R(3, 2), 0.5, 1.5 end,
  },

  view = {function() return R(2, 3), {3, -1} end},
  transpose = {function() return R(2, 3, 2), 1, -1 end},
  permute = {function() return R(2, 3, 4), {3, 1, -2} end},
  expand = {function() return R(2, 1), {3, -1, 4} end},
  squeeze = {function() return R(2, 1, 3, 1) end, function() return R(2, 1, 3, 1), 2 end},
  unsqueeze = {function() return R(2, 3), -1 end},
  select = {function() return R(2, 3), 2, -1 end, function() return R(2, 3), 1, 2 end},
  _slice = {function() return R(2, 5), 2, 1, 2, 2 end, function() return R(2, 5), -1, 3, 0, 1 end},
  diagonal = {function() return R(3, 4) end, function() return R(2, 3, 3), -1, 3, 2 end},
  as_strided = {
    function() return R(3, 4), {2, 2}, {5, 1}, 1 end, function() return R(6), {3, 3}, {1, 1} end,
    function() return R(3), {2, 3}, {0, 1} end,
  },
  unfold = {function() return R(2, 5), 2, 3, 1 end, function() return R(5, 2), 1, 2, 2 end},
  _alias = one(R, 2),
  cat = {function() return {R(2, 2), R(2, 1), K(2, 1)}, 2 end, function() return {R(2), R(1)} end},
  _to_copy = {function() return R(2, 3), lt.get_default_device(), wide.dtype, false end},
  _copy = {function() return R(2, 3), R(3) end},
  triu = {function() return R(3, 3) end, function() return R(2, 2, 3), 1 end},
  tril = {function() return R(3, 3), -1 end}, flip = {function() return R(2, 3), {1, 2} end},
  roll = {function() return R(2, 3), 2 end, function() return R(2, 3), {1, -1}, {1, 2} end},

  index_select = {function() return R(3, 2), 1, I{3, 1, 3} end,
    function() return R(2, 3), 2, I{2} end},
  gather = {function() return R(3, 2), 1, I{{1, 3}, {3, 3}} end,
    function() return R(2, 3), 2, I{{2}, {2}} end},
  _index = {
    function() return R(3, 4), {I{1, 3, 3}}, {0} end,
    function() return R(3, 4), {I{{1}, {3}}, I{2, 4}}, {0, 1} end,
    function() return R(2, 3, 2), {I{3, 3}}, {1} end,
  },
  masked_select = {
    function() return R(2, 3), B{{true, false, true}, {false, false, true}} end,
    function() return R(2, 1), B{true, false, true} end,
  },
  embedding = {function() return R(4, 2), I{{1, 4}, {4, 2}} end,
    function() return R(4, 2), I{1, 4, 4}, 3 end},
  _embedding_backward = {function() return R(3, 2), I{1, 4, 4}, 5, 0 end,
    function() return R(3, 2), I{1, 4, 4}, 5, 4 end},
  scatter = {
    function() return R(3, 2), 1, I{{1, 3}, {2, 1}}, R(2, 2) end,
    function() return R(3, 2), 1, I{{1, 3}}, 0.5 end,
    function() return R(3, 2), 1, I{{1, 3}}, R(2, 2) end,
  },
  scatter_add = {function() return R(3, 2), 1, I{{1, 3}, {1, 3}, {2, 1}}, R(3, 2) end},
  index_add = {
    function() return R(3, 2), 1, I{1, 3, 1}, R(3, 2) end,
    function() return R(2, 3), 2, I{2, 3}, R(2, 2), 0.5 end,
  },
  index_copy = {function() return R(3, 2), 1, I{3, 1}, R(2, 2) end},
  index_fill = {function() return R(3, 2), 1, I{3, 1}, 0.5 end},
  _index_put = {
    function() return R(3, 4), {I{1, 3, 3}}, {0}, R(4), true end,
    function() return R(3, 4), {I{1, 3}}, {0}, R(2, 4) end,
    function() return R(3, 4), {I{{1}, {3}}, I{2, 4}}, {0, 1}, R() end,
  },
  masked_scatter = {function() return R(2, 3), B{true, false, true}, R(5) end},

  -- composites
  dropout = {function() return R(20), 0.4 end, function() return R(3), 0.4, false end},
  max = {function() return R(2, 3) end, function() return R(2, 3), 2 end,
    function() return R(3), R(2, 3) end},
  min = {function() return R(2, 3) end, function() return R(2, 3), 2 end,
    function() return R(3), R(2, 3) end},
  var = {function() return R(2, 3) end, function() return R(2, 3), 2, false, true end},
  std = {function() return R(2, 3) end, function() return R(2, 3), 2, true end},
  norm = {function() return R(2, 3) end, function() return R(2, 3), 3, 2, true end},
  layer_norm = {function() return R(2, 3), {3}, P(3), R(3) end,
    function() return R(2, 2, 3), {2, 3} end},
  gelu = {function() return R(3) end, function() return R(3), "tanh" end},
  normalize = {function() return R(2, 3) end, function() return R(2, 3), 3, 1, 0.1 end},
  cosine_similarity = {function() return R(2, 3), R(2, 3) end,
    function() return R(3, 2), R(3, 2), 1 end},
  nll_loss = {
    function() return R(2, 3, 2), I{{1, 2}, {3, 3}}, KP(3) end, function() return R(3), I(2) end,
  },
  cross_entropy = {
    function() return R(4, 3), I{1, 3, 2, 3} end,
    function() return R(4, 3), I{1, 3, 2, 3}, KP(3), nil, 2, nil, "mean", 0.1 end,
    function() return R(4, 3), P(4, 3), KP(3), nil, -100, nil, "sum" end,
    function() return R(2, 3, 2), I{{1, 2}, {3, 3}} end,
  },
  mse_loss = {function() return R(2, 3), R(2, 3) end,
    function() return R(2, 3), R(2, 3), nil, nil, "none" end},
  l1_loss = {function() return R(2, 3), R(2, 3), nil, nil, "sum" end},
  binary_cross_entropy_with_logits = {
    function() return R(2, 3), P(2, 3) end,
    function() return R(2, 3), KP(2, 3), KP(3), nil, nil, "sum", KP(3) end,
  },
  baddbmm = {function() return R(2, 2), R(2, 2, 3), R(2, 3, 2), 0.5, 1.5 end},
  mv = {function() return R(2, 3), R(3) end}, dot = {function() return R(3), R(3) end},
  outer = {function() return R(2), R(3) end},
  matmul = {
    function() return R(3), R(3) end, function() return R(2, 3), R(3) end,
    function() return R(3), R(3, 2) end,
    function() return R(2, 2, 3), R(3, 2) end, function() return R(2, 1, 2, 3), R(2, 3, 2) end,
  },
  linear = {function() return R(2, 3), R(4, 3), R(4) end,
    function() return R(2, 2, 3), R(4, 3) end},
  scaled_dot_product_attention = {
    function() return R(2, 3, 2), R(2, 4, 2), R(2, 4, 3) end,
    function() return R(3, 2), R(3, 2), R(3, 2), nil, 0, true end,
    function() return R(2, 2), R(3, 2), R(3, 2), R(2, 3), 0, false, 0.7 end,
  },
  reshape = {function() return R(2, 3), {3, 2} end},
  flatten = {function() return R(2, 3, 2), 2 end},
  unflatten = {function() return R(2, 6), 2, {2, 3} end}, t = {function() return R(2, 3) end},
  swapaxes = {function() return R(2, 3), 1, 2 end},
  movedim = {function() return R(2, 3, 4), 1, 3 end},
  narrow = {function() return R(2, 5), 2, 3, 2 end},
  expand_as = {function() return R(2, 1), K(2, 3) end},
  view_as = {function() return R(2, 3), K(3, 2) end},
  reshape_as = {function() return R(2, 3), K(3, 2) end},
  broadcast_to = {function() return R(3), {2, 3} end}, split = {function() return R(5, 2), 2 end},
  chunk = {function() return R(2, 5), 2, 2 end}, unbind = {function() return R(2, 3), 2 end},
  stack = {function() return {R(2, 3), R(2, 3)}, 2 end}, clone = one(R, 2, 3), contiguous = one(R,
  2, 3),
  to = {function() return R(2, 3), lt.get_default_device(), wide.dtype, false, true end},
  div = {function() return P(2, 3), P(3) end, function() return P(3), 2.5 end,
    function() return V{5.5}, 2, "floor" end},
  clamp = {
    function() return R(5), -0.5, 0.5 end, function() return R(5), nil, 0.5 end,
    function() return R(5), R(5) end,
  },
  where = {function() return B{true, false}, R(2), R(2) end},
  tile = {function() return R(2, 3), {2, 1, 2} end},
  repeat_interleave = {function() return R(2, 3), 2 end, function() return R(2, 3), 2, 2 end},
  diag = {function() return R(3) end, function() return R(3, 3), 1 end},
  trace = {function() return R(3, 3) end},
}
-- Composites that make new tensors, indices or yes and no; copy_ and zero_ are _copy and fill.
-- Composites that give no gradient.
local undifferentiable = {}
for name in ([[
  zeros ones full arange logspace empty_like zeros_like ones_like full_like rand_like randn_like
  randint_like new_empty new_zeros new_ones new_full bernoulli rand randn _normal randint
  argsort equal isclose allclose one_hot copy_ zero_ complex polar imag
]]):gmatch "%S+" do
  undifferentiable[name] = true
end

-- Samples for ops without a line above: two of what the signature requires. Tensors are {2, 3} and
-- have numbers for which most functions are smooth.
local FROM_SIGNATURE = {
  Tensor = function() return variable(numbers(0.3, 0.9, 2, 3)) end, dim = function() return 2 end,
}
FROM_SIGNATURE.Operand = FROM_SIGNATURE.Tensor

local function is_differentiable(op)
  return op.has_gradient or (op.composite and not undifferentiable[op.name])
end

local function samples_of(op)
  local makers = {}
  for _, p in ipairs(op.params) do
    if not p.optional then makers[#makers + 1] = FROM_SIGNATURE[p.type] or false end
  end
  for _, make in ipairs(makers) do
    if not make then return nil end
  end
  local function sample()
    local args = {}
    for i, make in ipairs(makers) do args[i] = make() end
    return table.unpack(args)
  end
  return makers[1] and {sample, sample}
end

for _, op in ipairs(lt.ops()) do
  if is_differentiable(op) and not samples[op.name] then samples[op.name] = samples_of(op) end
end

-- ---- checking

-- The tensors among arguments (and their lists) that are differentiated.
local function variables(args)
  local list = {}
  for i = 1, args.n do
    local a = args[i]
    if lt.is_tensor(a) and a.requires_grad then
      list[#list + 1] = a
    elseif type(a) == "table" then
      for _, b in ipairs(a) do
        if lt.is_tensor(b) and b.requires_grad then list[#list + 1] = b end
      end
    end
  end
  return list
end

-- The same arguments with tensors replaced by replace(tensor).
local function mapped(args, replace)
  local copy = {n = args.n}
  for i = 1, args.n do
    local a = args[i]
    if lt.is_tensor(a) and a.requires_grad then
      copy[i] = replace(a)
    elseif type(a) == "table" and lt.is_tensor(a[1]) then
      copy[i] = {}
      for k, b in ipairs(a) do copy[i][k] = b.requires_grad and replace(b) or b end
    else
      copy[i] = a
    end
  end
  return copy
end

-- Ops of several results of which the first is differentiable.
local FIRST_ONLY = {
  _max = true, _min = true, sort = true, topk = true, _layer_norm = true, _nll_loss = true,
}

-- Runs an op from the same seed; its differentiable results.
local function run(name, args)
  lt.manual_seed(1)
  local results, list = {ops[name](table.unpack(args, 1, args.n))}, {}
  if type(results[1]) == "table" then results = results[1] end
  for _, r in ipairs(results) do
    if r.requires_grad or r.dtype == "float64" or r.dtype == wide.dtype then list[#list + 1] = r end
  end
  if FIRST_ONLY[name] then list = {list[1]} end
  return list
end

local function weights_of(results)
  local list = {}
  made = 100
  for i, r in ipairs(results) do
    list[i] = r.ndim > 0 and numbers(0.5, 1.5, table.unpack(r.shape)) or numbers(0.5, 1.5)
  end
  return list
end

local function weighted(results, weights)
  local total = 0
  for i, r in ipairs(results) do total = total + (r * weights[i]):sum() end
  return total
end

-- Gradients with zeros where an input was not used; nothing to differentiate gives zeros.
local function gradients(y, inputs, create)
  if not y.requires_grad then
    local zeros = {}
    for i, x in ipairs(inputs) do zeros[i] = lt.zeros_like(x) end
    return zeros
  end
  local g = lt.autograd.grad(y, inputs,
  {create_graph = create or false, retain_graph = true, allow_unused = true})
  for i, x in ipairs(inputs) do g[i] = g[i] or lt.zeros_like(x) end
  return g
end

-- d f() / d x by central differences.
local function numerical(f, x)
  local flat, out = x:detach():view(-1), {}
  for k = 1, flat:numel() do
    local was = flat[k]:item()
    flat[k] = was + STEP
    local up = f():item()
    flat[k] = was - STEP
    local down = f():item()
    flat[k] = was
    out[k] = (up - down) / (2 * STEP)
  end
  return out
end

local function agree(got, want, what)
  local values = got:detach():contiguous():view(-1)
  for k = 1, values:numel() do
    local g, w = values[k]:item(),
    lt.is_tensor(want) and want:contiguous():view(-1)[k]:item() or want[k]
    local close = math.abs(g - w) <= ABSOLUTE + RELATIVE * math.max(math.abs(w), math.abs(g))
    if not close then -- NaN is not
      error(("%s: element %d is %.9g, expected %.9g"):format(what, k, g, w), 2)
    end
  end
end

-- A tensor or a list of tensors on the CPU in float64; any other value itself.
local function on_cpu(a)
  if type(a) == "table" and lt.is_tensor(a[1]) then
    local list = {}
    for i, b in ipairs(a) do list[i] = on_cpu(b) end
    return list
  end
  if a == lt.get_default_device() then return "cpu" end
  if a == wide.dtype then return "float64" end
  if not lt.is_tensor(a) then return a end
  local dtype = a.dtype == wide.dtype and "float64" or a.dtype
  return a:detach():to{device = "cpu", dtype = dtype}:requires_grad_(a.requires_grad)
end

-- The gradients of compute(args, weights, probes) by another way: finite differences or, on a
-- device without float64, the gradients that the CPU has in float64, which agree with them.
local function expected_gradients(compute, inputs, args, ...)
  local list, rest = {}, table.pack(...)
  if wide.is_narrow then
    local there = {n = args.n}
    for i = 1, args.n do there[i] = on_cpu(args[i]) end
    for i = 1, rest.n do rest[i] = on_cpu(rest[i]) end
    return lt.with_device("cpu", function()
      local y, from = compute(there, table.unpack(rest, 1, rest.n))
      return gradients(y, from)
    end)
  end
  local function value() return (compute(args, table.unpack(rest, 1, rest.n))) end
  for i, x in ipairs(inputs) do list[i] = numerical(value, x) end
  return list
end

local function first_derivative(name, args)
  local function compute(arguments, weights)
    return weighted(run(name, arguments), weights), variables(arguments)
  end
  local weights = weights_of(run(name, args))
  local y, inputs = compute(args, weights)
  local found = gradients(y, inputs)
  local expected = expected_gradients(compute, inputs, args, weights)
  for i, g in ipairs(found) do
    assert.are.same(inputs[i].shape, g.shape)
    agree(g, expected[i], ("%s, gradient %d"):format(name, i))
  end
end

local function second_derivative(name, args)
  local weights, probes = weights_of(run(name, args)), {}
  for _, w in ipairs(weights) do w:requires_grad_() end
  made = 200
  for i, x in ipairs(variables(args)) do
    local shape = x.shape
    probes[i] = numbers(0.5, 1.5, table.unpack(shape))
  end
  local function compute(arguments, weight, probe)
    local inputs = variables(arguments)
    local g = gradients(weighted(run(name, arguments), weight), inputs, true)
    return weighted(g, probe), table.move(weight, 1, #weight, #inputs + 1, inputs)
  end
  local y, inputs = compute(args, weights, probes)
  local found = gradients(y, inputs)
  local expected = expected_gradients(compute, inputs, args, weights, probes)
  for i, g in ipairs(found) do
    agree(g, expected[i], ("%s, gradient %d of the gradient"):format(name, i))
  end
end

-- The variant that writes into self, and the same into a row of a larger tensor, have the
-- gradients of the plain one.
local function in_place(name, args)
  local self = args[1]
  if name == "copy" then return end -- copy_ is another op
  if not ops[name .. "_"] or not lt.is_tensor(self) then return end
  local inputs, plain = variables(args), run(name, args)
  if plain[1].shape ~= self.shape then return end
  local weights = weights_of(plain)
  local want = gradients(weighted(plain, weights), inputs)
  local function written(y)
    local copy = table.move(args, 1, args.n, 1, {n = args.n})
    copy[1] = y
    return run(name .. "_", copy)
  end
  for i, g in ipairs(gradients(weighted(written(self * 1), weights), inputs)) do
    agree(g, want[i], ("%s_, gradient %d"):format(name, i))
  end
  local base = lt.stack{self * 2, self * 1, self * 3}
  written(base:select(1, 2))
  local y = weighted({base:select(1, 2)}, weights) + base:select(1, 3):sum()
  for i, g in ipairs(gradients(y, inputs)) do
    local more = rawequal(inputs[i], self) and 3 or 0
    agree(g, want[i] + more, ("%s_ of a view, gradient %d"):format(name, i))
  end
end

-- The same numbers in memory of another order.
local function reordered(x)
  local order = {}
  for d = x.ndim, 1, -1 do order[#order + 1] = d end
  if x.ndim < 2 then return lt.stack({x:detach(), x:detach()}, -1):select(-1,
  1):requires_grad_() end
  return x:detach():permute(order):contiguous():permute(order):requires_grad_()
end

local function any_layout(name, args)
  if name == "as_strided" or name:find "^view" then return end -- they speak of memory
  local plain = run(name, args)
  local weights = weights_of(plain)
  local want = gradients(weighted(plain, weights), variables(args))
  local other = mapped(args, reordered)
  for i, g in ipairs(gradients(weighted(run(name, other), weights), variables(other))) do
    agree(g, want[i], ("%s of reordered memory, gradient %d"):format(name, i))
  end
end

-- Shapes of results or gradients that depend on values.
local NEEDS_DATA = {masked_select = true, masked_scatter = true}

-- On meta the gradients have the inputs' shapes and dtypes, and nothing is computed.
local function on_meta(name, args)
  if NEEDS_DATA[name] or name == "to" or name == "_to_copy" then return end
  local function moved(a)
    if not lt.is_tensor(a) then return a end
    return a:detach():to("meta"):requires_grad_(a.requires_grad)
  end
  local there = {n = args.n}
  for i = 1, args.n do
    local a = args[i]
    there[i] = moved(a)
    if type(a) == "table" then
      there[i] = {}
      for k, b in ipairs(a) do there[i][k] = moved(b) end
    end
  end
  local inputs, total = variables(there), 0
  for _, r in ipairs(run(name, there)) do total = total + r:sum() end
  for i, g in ipairs(gradients(total, inputs)) do
    assert.are.equal("meta", g.device)
    assert.is_true(g.shape == inputs[i].shape and g.dtype == wide.dtype)
  end
end

-- A reduction over any dims has these unless it has its own.
local reduction = {
  function() return R(2, 3) end, function() return R(2, 3, 2), {1, 3} end,
  function() return R(2, 3), 2, true end, function() return R() end,
}
for _, op in ipairs(lt.ops()) do
  if op.kind == "reduce" and op.has_gradient and not samples[op.name] then
    samples[op.name] = reduction
  end
end

describe("gradients", function()
  local names = {}
  for name in pairs(samples) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    it("of " .. name .. " agree with finite differences", function()
      for number, sample in ipairs(samples[name]) do
        made = number
        local args = table.pack(sample())
        assert.is_true(#variables(args) > 0)
        local ok, reason = pcall(function()
          first_derivative(name, args)
          any_layout(name, args)
          on_meta(name, args)
          in_place(name, args)
          second_derivative(name, args)
        end)
        if not ok then error(("sample %d: %s"):format(number, tostring(reason)), 0) end
      end
    end)
  end

  -- Where there is no derivative (ties, kinks, zeros): one is chosen. The values are PyTorch's, but
  -- for logsumexp of nothing but -inf, where it has NaN. kink_values_spec.lua has many more.
  local inf, nan = math.huge, 0 / 0
  local kinks = {
    {"maximum", {{1, 2, 3}, {1, 5, 2}}, {{.5, 0, 1}, {.5, 1, 0}}},
    {"minimum", {{1, 2, 3}, {1, 5, 2}}, {{.5, 1, 0}, {.5, 0, 1}}},
    {"fmax", {{1, 2, nan}, {1, 5, 2}}, {{.5, 0, 0}, {.5, 1, 1}}},
    {"fmin", {{1, 2, nan}, {1, 5, 2}}, {{.5, 1, 0}, {.5, 0, 1}}},
    {"amax", {{1, 3, 3, 3}}, {{0, 1 / 3, 1 / 3, 1 / 3}}},
    {"max", {{1, 3, 3, 3}}, {{0, 1 / 3, 1 / 3, 1 / 3}}},
    {"_max", {{1, 3, 3, 3}}, {{0, 1, 0, 0}}, 1},
    {"relu", {{0, -1, 1}}, {{0, 0, 1}}}, {"abs", {{0, -1}}, {{0, -1}}},
    {"norm", {{0, 0}}, {{0, 0}}}, {"norm", {{0, 1}}, {{0, 1}}, 1}, {"norm", {{2, -2, 1}},
      {{.5, -.5, 0}}, inf},
    {"norm", {{0, 0}}, {{0, 0}}, 3}, {"norm", {{0, 1, 4}}, {{0, 3, 1.5}}, 0.5}, {"norm", {{0, 0}},
      {{0, 0}}, 1.5},
    {"clamp", {{0, 1, 2, -1, .5}}, {{0, 0, 0, 0, 1}}, 0, 1},
    {"clamp", {{0, 5, 2}, {1, 1, 3}, {2, 2, 1}}, {{0, 0, 0}, {1, 0, 0}, {0, 1, 1}}},
    {"pow", {{0, 0, 0, 2}, {0, 2, .5, 0}}, {{0, 0, inf, 0}, {0, 0, 0, 0.6931471805599453}}},
    {"pow", {{0, 2}}, {{0, 0}}, 0}, {"std", {{1, 1, 1}}, {{0, 0, 0}}},
    {"copysign", {{0, -2, 3}, {-1, 1, -1}}, {{0, -1, -1}, {0, 0, 0}}},
    {"leaky_relu", {{0, -1}}, {{.01, .01}}}, {"elu", {{0, -1}}, {{1, 0.36787944117144233}}},
    {"nan_to_num", {{nan, inf, 1}}, {{0, 0, 1}}}, {"remainder", {{5.5, -5.5}, {2, -2}},
      {{1, 1}, {-2, -2}}},
    {"logsigmoid", {{0, -800, 800}}, {{.5, 1, 0}}}, {"softplus", {{0, 30, -800}}, {{.5, 1, 0}}},
    {"cumprod", {{2, 0, 3, 0}}, {{1, 8, 0, 0}}, 1}, {"prod", {{0, 3, 0}}, {{0, 0, 0}}},
    {"cummax", {{1, 1, 0, 2}}, {{1, 2, 0, 1}}, 1}, {"cummax", {{1, nan, 2, 3}}, {{1, 3, 0, 0}}, 1},
    {"cummin", {{1, 1, 3, 0}}, {{1, 2, 0, 1}}, 1},
    {"sqrt", {{0}}, {{inf}}}, {"hypot", {{0, 3}, {0, 4}}, {{nan, .6}, {nan, .8}}},
    {"softmax", {{-inf, 0}}, {{0, 0}}, 1}, {"logsumexp", {{-inf, -inf}}, {{0, 0}}, 1},
  }
  for _, kink in ipairs(kinks) do
    local name, data, want = kink[1], kink[2], kink[3]
    it(("of %s at ties and kinks are PyTorch's (%s)"):format(name, table.concat(data[1], " ")),
    function()
      local args = {}
      for i, d in ipairs(data) do args[i] = V(d) end
      local inputs = table.move(args, 1, #args, 1, {})
      for i = 4, #kink do args[#args + 1] = kink[i] end
      local y = ops[name](table.unpack(args))
      for i, g in ipairs(gradients(y:sum(), inputs)) do
        for k, w in ipairs(want[i]) do
          local got = g[k]:item()
          assert.is_true(got == w or (got ~= got and w ~= w) or math.abs(got - w) < EXACT,
            ("gradient %d, element %d is %g, expected %g"):format(i, k, got, w))
        end
      end
    end)
  end

  it("of an embedding leave the padding's row out", function()
    local w = R(3, 2)
    lt.embedding(w, I{3, 1, 3, 1}, 3):sum():backward()
    assert.are.same({{2.0, 2.0}, {0.0, 0.0}, {0.0, 0.0}}, w.grad:totable())
  end)

  it("have samples for every op that has one, and for no other", function()
    local missing = {}
    for _, op in ipairs(lt.ops()) do
      if is_differentiable(op) ~= (samples[op.name] ~= nil) then missing[#missing + 1] = op.name end
    end
    assert.are.equal("", table.concat(missing, ", "))
  end)
end)

describe("the gradient of atan2", function()
  it("is that of floats beside integers and bool", function()
    for _, dtype in ipairs {"uint8", "int8", "int32", "int64"} do
      local y = lt.tensor({3., 0.}, {requires_grad = true})
      lt.atan2(y, lt.tensor({100, 16}):to(dtype)):sum():backward()
      assert.truthy(lt.allclose(y.grad, lt.tensor{100 / 10009, 1 / 16}), dtype)
    end
    local y = lt.tensor({1., 0.}, {requires_grad = true})
    lt.atan2(lt.tensor{true, true}, y):sum():backward()
    assert.same({-0.5, -1.0}, y.grad:totable())
  end)
end)
