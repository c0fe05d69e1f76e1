-- Arguments for each op that has a gradient: inputs of tests/spec/autograd/gradients_spec.lua. One
-- line of samples per op, or a sample made from its signature where that requires nothing but
-- tensors and a dim.
local lt = require "lutra"
local ops = require("lutra.core")._ops
local wide = require "wide_support"

-- ---- inputs

local made = 0 -- tensors of the sample so far: each gets other numbers

local function seed(n) made = n end

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
-- Square matrices of n rows whose determinants are not near 0; `least`, on the diagonal.
local function S(n, least, ...)
  local shape = {...}
  shape[#shape + 1], shape[#shape + 2] = n, n
  return variable(K(table.unpack(shape)) + lt.eye(n, {dtype = wide.dtype}) * (least or 3))
end
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
  sgn = one(R, 3), view_as_complex = {function() return R(3, 2) end},
  threshold = {function() return R(3), 0.1, 2.5 end},
  _hardtanh = {function() return R(3), -2, 3 end},
  _round_decimals = {function() return U(3), 100, 1 end},
  _nan_to_num = {function() return R(3), 1, 2, 3 end},
  _polygamma = {function() return P(3), 0 end, function() return P(3), 2 end},
  _logit = {function() return variable(numbers(0.2, 0.8, 3)), -1.0 end},
  gammainc = {function() return KP(3), P(3) end}, gammaincc = {function() return KP(3), P(3) end},
  glu = {function() return R(2, 4) end}, prelu = {function() return R(2, 3), P(3) end,
    function() return R(2, 3), P(1) end, function() return R(3), P() end},
  polygamma = {function() return 1, P(3) end}, mvlgamma = {function() return G(3), 2 end},
  multigammaln = {function() return G(3), 2 end},
  nextafter = {function() return P(3), G(3):detach() end},
  igamma = {function() return KP(3), P(3) end}, igammac = {function() return KP(3), P(3) end},
  special_zeta = {function() return KP(3) + 1, P(3) end},
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
  _hardtanh_backward = {function() return R(4), K(4), -0.5, 0.7 end},
  _hardsigmoid_backward = {function() return R(4), K(4) * 3 end},
  _hardswish_backward = {function() return R(6), V{-4, -2, -0.5, 0.5, 2, 4} end},
  _shrink_backward = {function() return R(4), K(4), 0.5 end},
  _leaky_relu_backward = {function() return R(4), K(4), 0.3 end},
  _threshold_backward = {function() return R(4), K(4), 0.1 end},
  _prelu = {function() return R(2, 3), R(3) end},
  _prelu_backward = {function() return R(2, 3), K(2, 3), R(3) end},
  _glu = {function() return R(2, 3), R(2, 3) end},
  _squared_error = {function() return R(2, 3), R(3) end},
  _squared_error_backward = {function() return R(2, 3), R(2, 3), R(3) end},
  _huber = {function() return R(2, 3), R(2, 3), 0.7, 1.5 end},
  _binary_cross_entropy = {function() return V{0.2, 0.6, 0.9}, R(3) end},
  _binary_cross_entropy_backward = {function() return R(3), V{0.2, 0.6, 0.9}, R(3) end},
  _huber_backward = {function() return R(2, 3), R(2, 3), R(2, 3), 0.7, 1.5 end},

  _max_pool = {function() return R(1, 2, 5, 4), {3, 2}, {3, 2}, {2, 2}, {1, 0}, {1, 1} end},
  _max_pool_backward = {function()
    return R(1, 1, 2), I{{{2, 4}}}, {5}, {2}, {2}, {0}, {1}
  end},
  _avg_pool = {function() return R(1, 2, 5, 4), {3, 2}, {3, 2}, {2, 2}, {1, 0}, false, 0 end},
  _avg_pool_backward = {function()
    return R(1, 2, 3, 2), {5, 4}, {3, 2}, {2, 2}, {1, 0}, true, 0
  end},
  _im2col = {function() return R(1, 2, 4, 5), {2, 2}, {1, 2}, {0, 1}, {2, 1} end},
  _col2im = {function() return R(1, 8, 4), {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1} end},
  _resample = {function() return R(2, 5, 3), 2, 7, 3, false, 0.0 end},
  _resample_backward = {function() return R(2, 7, 3), 2, 5, 2, true, 0.0 end},
  fold = {function() return R(1, 8, 4), 3, 2 end},
  max_unpool1d = {function() return R(1, 1, 2), I{{{2, 3}}}, 2 end},
  max_unpool2d = {function() return R(1, 1, 1, 2), I{{{{2, 3}}}}, {1, 2} end},
  max_unpool3d = {function() return R(1, 1, 1, 1, 2), I{{{{{2, 3}}}}}, {1, 1, 2} end},
  constant_pad_nd = {function() return R(2, 3), {1, -1, 0, 2}, 2.5 end},
  pad = {function() return R(1, 2, 3), {1, 2}, "reflect" end,
    function() return R(1, 2, 3), {1, 2}, "circular" end},
  interpolate = {function() return R(1, 1, 3, 4), {5, 2}, nil, "bicubic" end,
    function() return R(1, 1, 4), nil, 1.5, "linear", true end},
  upsample = {function() return R(1, 1, 3), 5 end},
  upsample_nearest = {function() return R(1, 1, 3), 5 end},
  upsample_bilinear = {function() return R(1, 1, 3, 2), {5, 3} end},
  grid_sample = {function() return R(1, 2, 3, 4), U(1, 2, 2, 2) end,
    function() return R(1, 1, 3, 4), U(1, 2, 2, 2), "bicubic", "reflection" end},
  grid_sampler = {function() return R(1, 1, 3, 4), U(1, 2, 2, 2), 0, 1, true end},
  grid_sampler_2d = {function() return R(1, 1, 3, 4), U(1, 2, 2, 2), 0, 0, true end},
  grid_sampler_3d = {function() return R(1, 1, 3, 2, 2), U(1, 2, 1, 1, 3), 0, 0, true end},
  affine_grid = {function() return R(1, 2, 3), {1, 1, 2, 3} end},
  pixel_shuffle = {function() return R(1, 4, 2, 1), 2 end},
  pixel_unshuffle = {function() return R(1, 1, 2, 4), 2 end},
  channel_shuffle = {function() return R(1, 4, 2), 2 end},
  max_pool1d = {function() return R(1, 2, 6), 2 end},
  max_pool1d_with_indices = {function() return R(1, 2, 6), 2 end},
  avg_pool1d = {function() return R(1, 2, 6), 2 end},
  lp_pool1d = {function() return P(1, 2, 6), 3, 2 end},
  adaptive_avg_pool1d = {function() return R(1, 2, 6), 2 end,
    function() return R(1, 2, 6), 1 end},
  adaptive_max_pool1d = {function() return R(1, 2, 6), 2 end},
  adaptive_max_pool1d_with_indices = {function() return R(1, 2, 6), 2 end},
  max_pool2d = {function() return R(1, 1, 5, 6), 2 end},
  max_pool2d_with_indices = {function() return R(1, 1, 5, 6), 2 end},
  avg_pool2d = {function() return R(1, 1, 5, 6), 2 end},
  lp_pool2d = {function() return P(1, 1, 5, 6), 3, 2 end},
  adaptive_avg_pool2d = {function() return R(1, 1, 5, 6), 2 end,
    function() return R(1, 1, 5, 6), 1 end},
  adaptive_max_pool2d = {function() return R(1, 1, 5, 6), 2 end},
  adaptive_max_pool2d_with_indices = {function() return R(1, 1, 5, 6), 2 end},
  fractional_max_pool2d = {function()
    return R(1, 1, 5, 6), 2, 2, nil, false, KP(1, 1, 2) * 0.5
  end},
  fractional_max_pool2d_with_indices = {function()
    return R(1, 1, 5, 6), 2, 2, nil, false, KP(1, 1, 2) * 0.5
  end},
  max_pool3d = {function() return R(1, 1, 3, 4, 4), 2 end},
  max_pool3d_with_indices = {function() return R(1, 1, 3, 4, 4), 2 end},
  avg_pool3d = {function() return R(1, 1, 3, 4, 4), 2 end},
  lp_pool3d = {function() return P(1, 1, 3, 4, 4), 3, 2 end},
  adaptive_avg_pool3d = {function() return R(1, 1, 3, 4, 4), 2 end,
    function() return R(1, 1, 3, 4, 4), 1 end},
  adaptive_max_pool3d = {function() return R(1, 1, 3, 4, 4), 2 end},
  adaptive_max_pool3d_with_indices = {function() return R(1, 1, 3, 4, 4), 2 end},
  fractional_max_pool3d = {function()
    return R(1, 1, 3, 4, 4), 2, 2, nil, false, KP(1, 1, 3) * 0.5
  end},
  fractional_max_pool3d_with_indices = {function()
    return R(1, 1, 3, 4, 4), 2, 2, nil, false, KP(1, 1, 3) * 0.5
  end},

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
  _kthvalue = {function() return R(2, 3), 2, false, 2 end,
    function() return R(3, 4), 1, true, 0 end},
  _mode = {function() return R(2, 3), 2, false end, function() return R(3, 4), 1, true end},
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
  _cross_entropy = {
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

  _convolution = {
    function() return R(2, 2, 5), R(3, 2, 2), R(3), {4}, {1}, {0}, {1}, 1 end,
    function() return R(1, 4, 4, 5), R(2, 2, 2, 3), nil, {3, 2}, {2, 3}, {1, 2}, {2, 1}, 2 end,
    function() return R(1, 2, 4, 4), R(2, 1, 3, 3), R(2), {4, 4}, {1, 1}, {1, 1}, {1, 1}, 2 end,
  },
  _convolution_transpose = {
    function() return R(2, 2, 3), R(2, 3, 2), R(3), {7}, {2}, {0}, {1}, 1 end,
    function() return R(1, 2, 2, 2), R(2, 1, 2, 3), R(2), {3, 6}, {2, 3}, {1, 0}, {2, 1}, 2 end,
  },
  _convolution_weight = {
    function() return R(2, 3, 4), R(2, 2, 5), {2}, {1}, {0}, {1}, 1 end,
    function() return R(1, 2, 3, 2), R(1, 4, 4, 5), {2, 3}, {2, 3}, {1, 2}, {2, 1}, 2 end,
  },
  _batch_norm = {
    function() return R(4, 2), P(2), R(2), nil, nil, true, 1e-5 end,
    function() return R(2, 2, 3), nil, nil, nil, nil, true, 0.1 end,
    function() return R(2, 2, 3), P(2), R(2), K(2), KP(2), false, 1e-3 end,
  },

  _group_norm = {
    function() return R(2, 4, 3), P(4), R(4), 2, 1e-5 end,
    function() return R(3, 4), nil, R(4), 2, 0.1 end,
    function() return R(2, 2, 2, 2), P(2), nil, 1, 1e-3 end,
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
  _embedding_sum = {function() return R(4, 2), I{1, 4, 4}, I{2, 1, 2}, 3 end,
    function() return R(4, 2), I{1, 4, 4}, I{1, 3, 3}, 3, R(3) end},
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
  index_fill = {function() return R(3, 2), 1, I{3, 1}, 0.5 end,
    function() return R(3, 2), 1, I{3, 1, 3}, R() end},
  _scatter = {function() return R(3, 2), 1, I{{1, 3}, {2, 2}}, R(2, 2) end},
  _scatter_reduce = {
    function() return R(3, 2), 1, I{{1, 3}, {1, 3}, {2, 1}}, R(3, 2), "prod" end,
    function() return R(3, 2), 1, I{{1, 3}, {1, 3}, {2, 1}}, R(4, 2), "amax" end,
    function() return R(3, 2), 2, I{{1, 2, 1}, {2, 2, 2}}, R(3, 3), "amin" end,
  },
  scatter_reduce = {
    function() return R(3, 2), 1, I{{1, 3}, {1, 3}, {2, 1}}, R(3, 2), "mean" end,
    function() return R(3, 2), 1, I{{1, 3}, {1, 3}, {2, 1}}, R(3, 2), "prod", false end,
    function() return R(3, 2), 1, I{{1, 3}, {1, 3}, {2, 1}}, R(3, 2), "sum", false end,
    function() return R(3, 2), 1, I{{1, 3}, {1, 3}, {2, 1}}, R(3, 2), "amax", false end,
  },
  index_reduce = {
    function() return R(3, 2), 1, I{3, 1, 3}, R(3, 2), "prod" end,
    function() return R(2, 3), -1, I{3, 1, 3, 1}, R(2, 4), "mean", false end,
    function() return R(3, 2), 1, I{3, 1, 3}, R(3, 2), "amin" end,
  },
  take = {function() return R(2, 3), I{{1, 6}, {-1, 1}} end},
  put = {
    function() return R(2, 3), I{2, 5, 6}, R(3) end,
    function() return R(2, 3), I{2, 2, 6}, R(3), true end,
  },
  index_put = {
    function() return R(2, 3), {I{1, 2}, I{3, 1}}, R(2) end,
    function() return R(2, 3), {false, I{3, 3}}, R(2, 2), true end,
  },
  take_along_dim = {function() return R(2, 3), I{{1, 3}}, 2 end,
    function() return R(2, 3), I{1, 6, 6} end},
  select_scatter = {function() return R(2, 3), R(2), 2, -1 end},
  diagonal_scatter = {function() return R(3, 3), R(2), 1 end},
  as_strided_scatter = {function() return R(2, 3), R(2, 2), {2, 2}, {3, 1}, 1 end},
  sum_to_size = {function() return R(2, 3), {1, 3} end, function() return R(2, 3), {} end},
  ["repeat"] = {function() return R(2, 3), {2, 1, 2} end},
  broadcast_tensors = {function() return {R(2, 1), R(3)} end},
  tensor_split = {function() return R(5, 2), 3 end, function() return R(2, 5), {2, 4}, 2 end},
  hsplit = {function() return R(2, 4), 2 end}, vsplit = {function() return R(4, 2), {2} end},
  dsplit = {function() return R(1, 2, 4), 2 end},
  split_with_sizes = {function() return R(5, 2), {2, 3} end},
  atleast_1d = {function() return R() end}, atleast_2d = {function() return R(3) end},
  atleast_3d = {function() return {R(3), R(2, 3)} end},
  hstack = {function() return {R(2), R(3)} end}, vstack = {function() return {R(2), R(2)} end},
  dstack = {function() return {R(2), R(2)} end},
  column_stack = {function() return {R(2), R(2, 3)} end},
  _block_diag = {function() return {R(2, 3), R(1, 2)} end},
  block_diag = {function() return {R(2, 3), R(2), R()} end},
  meshgrid = {function() return {R(2), R(3)} end, function() return {R(2), R(3)}, "xy" end},
  cartesian_prod = {function() return {R(2), R(3)} end},
  combinations = {function() return R(4) end, function() return R(3), 3, true end},
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
  rms_norm = {
    function() return R(2, 3), {3} end,
    function() return R(2, 2, 3), {2, 3}, P(2, 3) end,
  },
  group_norm = {function() return R(2, 4, 3), 2 end, function() return R(2, 4), 2, P(4), R(4) end},
  instance_norm = {
    function() return R(2, 2, 3) end,
    function() return R(2, 2, 3), nil, nil, P(2), R(2) end,
    function() return R(2, 2, 3), K(2), KP(2), P(2), R(2), false end,
  },
  local_response_norm = {function() return R(2, 4, 3), 3, 0.5 end},
  embedding_bag = {
    function() return I{{1, 3}, {2, 1}}, R(3, 2) end,
    function() return I{1, 3, 2, 1}, R(3, 2), I{1, 4}, nil, 2, false, "sum", false, R(4) end,
    function() return I{1, 3, 2, 1}, R(3, 2), I{1, 4}, nil, 2, false, "max" end,
  },
  multi_head_attention_forward = {
    function()
      return R(2, 1, 4), R(3, 1, 4), R(3, 1, 4), 4, 2, R(12, 4), R(12), nil, nil, false, 0, R(4, 4),
        R(4)
    end,
  },
  conv1d = {function() return R(2, 2, 5), R(3, 2, 2), R(3), 2, 1 end},
  conv2d = {function() return R(2, 4, 5), R(3, 2, 2, 3), nil, 1, "same" end},
  conv3d = {function() return R(1, 1, 3, 2, 3), R(2, 1, 2, 1, 2), R(2) end},
  conv_transpose1d = {function() return R(2, 2, 3), R(2, 2, 2), R(2), 2, 1, 1 end},
  conv_transpose2d = {function() return R(2, 2, 3), R(2, 1, 2, 2), R(2), 1, 0, 0, 2 end},
  conv_transpose3d = {function() return R(1, 1, 2, 1, 2), R(1, 2, 1, 2, 2) end},
  convolution = {
    function() return R(1, 2, 4), R(2, 1, 3), R(2), {1}, {1}, {1}, false, {0}, 2 end,
    function() return R(1, 2, 3), R(2, 1, 3), R(2), {2}, {1}, {1}, true, {1}, 2 end,
  },
  batch_norm = {
    function() return R(3, 2), nil, nil, P(2), R(2), true end,
    function() return R(2, 2, 3), K(2), KP(2), P(2), R(2) end,
  },
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
  linear_cross_entropy = {
    function() return R(4, 2), R(3, 2), I{1, 3, 2, 3} end,
    function() return R(4, 2), R(3, 2), I{1, 3, 2, 3}, R(3), KP(3), "sum", 2, 0.1 end,
  },
  cosine_embedding_loss = {
    function() return R(2, 3), R(2, 3), I{1, 1} end,
    function() return R(2, 3), R(2, 3), I{1, -1}, -0.9, nil, nil, "none" end,
  },
  multi_margin_loss = {
    function() return R(2, 4), I{1, 3} end, function() return R(2, 4), I{1, 3}, 2, 0.5, KP(4) end,
  },
  multilabel_margin_loss = {
    function() return R(2, 4), I{{1, 3, 0, 0}, {2, 4, 1, 0}} end,
    function() return R(4), I{3, 0, 1, 2} end,
  },
  mse_loss = {function() return R(2, 3), R(2, 3) end,
    function() return R(2, 3), R(2, 3), nil, nil, "none" end},
  l1_loss = {function() return R(2, 3), R(2, 3), nil, nil, "sum" end},
  binary_cross_entropy_with_logits = {
    function() return R(2, 3), P(2, 3) end,
    function() return R(2, 3), KP(2, 3), KP(3), nil, nil, "sum", KP(3) end,
  },
  bilinear = {function() return R(2, 3), R(2, 2), R(2, 3, 2), R(2) end},
  baddbmm = {function() return R(2, 2), R(2, 2, 3), R(2, 3, 2), 0.5, 1.5 end},
  addmv = {
    function() return R(2), R(2, 3), R(3), 0.5, 1.5 end, function() return R(), R(2, 3), R(3) end,
  },
  addbmm = {function() return R(2, 4), R(3, 2, 2), R(3, 2, 4), 0.5, 1.5 end},
  addr = {function() return R(2, 3), R(2), R(3), 0.5, 1.5 end},
  vdot = {function() return R(3), R(3) end},
  inner = {function() return R(2, 3), R(4, 3) end},
  kron = {function() return R(2, 3), R(2) end},
  tensordot = {function() return R(2, 3, 2), R(2, 3), {{1, 2}, {1, 2}} end},
  chain_matmul = {function() return R(2, 3), R(3, 2), R(2, 2) end},
  cdist = {
    function() return R(3, 2), R(2, 2) end, function() return R(3, 2), R(2, 2, 2), 3 end,
    function() return R(27, 2), R(2, 2) end,
  },
  einsum = {
    function() return "bij,bjk,i->bk", R(2, 2, 3), R(2, 3, 2), R(2) end,
    function() return "iij,j->", R(2, 2, 3), R(3) end,
    function() return "ij,k->kji", R(2, 3), R(2) end, function() return "ijk->ki", R(2, 2, 3) end,
  },
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
    function() return R(4, 2, 3), R(2, 3, 3), R(2, 3, 2), nil, 0, true, nil, true end,
    function() return R(3, 2), R(2, 3, 2), R(1, 3, 2), lt.tensor{{true, false, true}} end,
  },
  _attention = {
    function() return R(2, 3, 2), R(2, 4, 2), R(2, 4, 3), nil, false, 0.7 end,
    function() return R(4, 3, 2), R(2, 3, 2), R(2, 3, 2), nil, true, 0.5 end,
    function() return R(3, 2), R(3, 2), R(3, 2), K(3, 3), false, 1.0 end,
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
  -- linear algebra
  _linalg_cholesky = {function() return S(3, 4), false, true end,
    function() return S(2, 4, 2), true, true end},
  _linalg_lu_factor = {function() return S(3), true end, function() return R(3, 2), true end,
    function() return R(2, 2, 3), true end},
  _linalg_inv = {function() return S(3), true end, function() return S(2, 3, 2), true end},
  _linalg_solve = {function() return S(3), R(3, 2), true, true end,
    function() return S(2), R(3, 2), false, true end},
  _linalg_solve_triangular = {
    function() return S(3), R(3, 2), false, true, false end,
    function() return S(2), R(3, 2), true, false, false end,
    function() return S(3), R(3, 2), true, true, true end,
  },
  _linalg_det = {function() return S(3) end}, _linalg_slogdet = {function() return S(3) end},
  _linalg_qr = {function() return S(3), "reduced" end, function() return R(3, 2), "reduced" end,
    function() return R(2, 2, 3), "reduced" end},
  _linalg_svd = {function() return S(3), false, true end,
    function() return R(3, 2), false, true end, function() return R(2, 2, 3), false, true end},
  svd = {function() return S(3) end},
  _linalg_eigh = {function() return S(3), false, true end, function() return S(3), true, true end},
  cholesky = {function() return S(3, 4) end}, cholesky_ex = {function() return S(3, 4) end},
  cholesky_solve = {function() return R(3, 2), S(3):detach():tril() end},
  cholesky_inverse = {function() return S(3) end},
  lu_factor = {function() return S(3) end}, lu_factor_ex = {function() return S(3) end},
  lu = {function() return S(3) end},
  lu_unpack = {function() return S(3), lt.tensor({2, 2, 3}, {dtype = "int32"}) end},
  lu_solve = {function() return S(3), lt.tensor({2, 2, 3}, {dtype = "int32"}), R(3, 2) end},
  solve = {function() return S(3), R(3) end, function() return S(3), R(2, 3, 2) end},
  solve_ex = {function() return S(3), R(3) end},
  solve_triangular = {function() return S(3), R(3, 2), true end},
  triangular_solve = {function() return R(3, 2), S(3) end},
  inverse = {function() return S(3) end}, inv = {function() return S(3) end},
  inv_ex = {function() return S(3) end}, det = {function() return S(3) end},
  slogdet = {function() return S(3) end}, logdet = {function() return S(3, 4) end},
  householder_product = {function() return R(3, 2), P(2) end},
  orgqr = {function() return R(3, 2), P(2) end},
  ormqr = {function() return R(3, 2), P(2), R(3, 2) end,
    function() return R(3, 2), P(2), R(2, 3), false, true end},
  eigh = {function() return S(3) end}, eigvalsh = {function() return S(3), "U" end},
  matrix_sqrth = {function() return S(3, 4) end}, matrix_power = {
    function() return S(3), 3 end, function() return S(3), -2 end},
  matrix_exp = {function() return R(3, 3) end},
  pinv = {function() return R(3, 2) end, function() return R(2, 2, 3) end},
  cond = {function() return S(3) end},
  lstsq = {function() return R(3, 2), R(3, 2) end},
  multi_dot = {function() return {R(2), R(2, 3), R(3, 2)} end},
  tensorinv = {function() return S(4):view(2, 2, 4) end},
  tensorsolve = {function() return S(4):view(2, 2, 4), R(2, 2) end},
  svd_lowrank = {function() return R(3, 3), 3 end}, pca_lowrank = {function() return R(4, 2) end},
  kthvalue = {function() return R(2, 3), 2 end}, mode = {function() return R(2, 3), 1 end},
  renorm = {function() return R(2, 3), 2, 1, 0.7 end, function() return R(2, 3), 1.5, 2, 9 end},
  quantile = {function() return R(2, 5), 0.3 end, function() return R(2, 5), F{0.3, 0.6}, 2 end},
  nanquantile = {function() return R(2, 5), 0.3, 1 end},
  median = {function() return R(2, 5) end, function() return R(2, 5), 2 end},
  logcumsumexp = {function() return R(2, 5), 2 end, function() return R(), 1 end},
  dist = {function() return R(2, 3), R(3) end, function() return R(2, 3), R(2, 1), 3 end},
  cov = {function() return R(2, 4) end}, corrcoef = {function() return R(2, 4) end},
  masked_norm = {function() return R(2, 3), 3, {2} end},
  masked_normalize = {function() return R(2, 3), 2, 1 end},
  gradient = {
    function() return R(4, 3) end, function() return R(4, 3), {V{0, 1, 3, 4}}, {1}, 2 end,
  },
}
-- Composites that make new tensors, indices or yes and no; copy_ and zero_ are _copy and fill.
-- The gradient of ctc_loss is that of the scores, not of log_probs: below.
-- The functions in place of F: gradients_spec checks them beside those that make a new tensor.
-- Composites that give no gradient; those of recurrent layers have one in nn/recurrent_layers_spec.
-- Fourier transforms with complex results:
-- core/transforms_spec.lua.
local undifferentiable = {}
for name in ([[
  zeros ones full arange logspace empty_like zeros_like ones_like full_like rand_like randn_like
  randint_like new_empty new_zeros new_ones new_full bernoulli rand randn _normal randint
  argsort equal isclose allclose one_hot copy_ zero_ complex polar imag masked_argmax masked_argmin
  isin   matrix_rank eig eigvals _linalg_eig ldl_factor ldl_factor_ex ldl_solve
  bincount histc histogram histogramdd unique unique_consecutive searchsorted bucketize
  linspace eye scalar_tensor empty_strided new_empty_strided empty_permuted tril_indices
  triu_indices asarray resize_ resize_as_ argwhere nonzero_static unravel_index broadcast_shapes
  fill_diagonal_ apply_ map_ _lstm_run _lstm_run_backward _gru_run _gru_run_backward
  t_ transpose_ swapdims_ swapaxes_ squeeze_ unsqueeze_ as_strided_
  relu_ leaky_relu_ elu_ selu_ celu_ hardtanh_ threshold_ rrelu_
  segment_reduce
  fft fft2 fftn ifft ifft2 ifftn rfft rfft2 rfftn ihfft ihfft2 ihfftn stft istft
  _fft_c2c _fft_r2c _fft_c2r fftfreq rfftfreq
  bartlett blackman cosine gaussian general_cosine general_hamming hamming hann kaiser
  nuttall bartlett_window blackman_window hamming_window hann_window kaiser_window
  cauchy log_normal geometric poisson binomial
  ctc_loss
]]):gmatch "%S+" do
  undifferentiable[name] = true
end
if wide.is_narrow then -- converts to float64; random numbers of float32, not the CPU's of float64
  undifferentiable.float_power, undifferentiable.gumbel_softmax = true, true
end

-- Samples for ops without a line above: two of what the signature requires. Tensors are {2, 3} and
-- have numbers for which most functions are smooth.
local FROM_SIGNATURE = {
  Tensor = function() return variable(numbers(0.3, 0.9, 2, 3)) end, dim = function() return 2 end,
}
FROM_SIGNATURE.Operand = FROM_SIGNATURE.Tensor

local function is_differentiable(op)
  if op.name == "view_as_real" then return false end -- of complex tensors: complex_spec.lua
  return (op.has_gradient or op.composite) and not undifferentiable[op.name]
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

return {
  samples = samples, samples_of = samples_of, is_differentiable = is_differentiable,
  seed = seed, numbers = numbers, R = R, I = I, V = V,
}
