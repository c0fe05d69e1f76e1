--- One example for every op: an expression that calls it once, as `lt.op(...)` or `x:op(...)`.
--
-- Help shows it with its result, and derives from it the shapes, dtypes and gradients that the op
-- accepts (ops.lua), so that these descriptions are always correct. Elementwise ops, reductions and
-- functions of one or two tensors share a few examples, by the number of required arguments, unless
-- one is listed here.

local examples = {}

local one = "lt.%s(lt.tensor{-1.5, 0, 2})"
local two = "lt.%s(lt.tensor{1, 5, 3}, lt.tensor{4, 2, 3})"
local reduction = "lt.tensor{{1.0, 2}, {3, 4}}:%s(1)"

local written = {
  -- elementwise ops for which the shared examples do not fit
  log = "lt.log(lt.tensor{1, lt.e, 10})",
  log2 = "lt.log2(lt.tensor{1, 2, 8})",
  log10 = "lt.log10(lt.tensor{1, 10, 1000})",
  log1p = "lt.log1p(lt.tensor{0, 1, 1e-6})",
  sqrt = "lt.sqrt(lt.tensor{1, 4, 9})",
  rsqrt = "lt.rsqrt(lt.tensor{1, 4, 16})",
  reciprocal = "lt.reciprocal(lt.tensor{1, 2, 4})",
  asin = "lt.asin(lt.tensor{-1, 0, 1})",
  acos = "lt.acos(lt.tensor{-1, 0, 1})",
  acosh = "lt.acosh(lt.tensor{1, 2, 3})",
  atanh = "lt.atanh(lt.tensor{-0.5, 0, 0.5})",
  round = "lt.round(lt.tensor{-1.5, 0.5, 2.5})",
  nan_to_num = "lt.nan_to_num(lt.tensor{lt.nan, 1, lt.inf})",
  isnan = "lt.isnan(lt.tensor{lt.nan, 1, lt.inf})",
  isinf = "lt.isinf(lt.tensor{lt.nan, 1, lt.inf})",
  isfinite = "lt.isfinite(lt.tensor{lt.nan, 1, lt.inf})",
  signbit = "lt.signbit(lt.tensor{-0.0, 0.0, -2})",
  bitwise_not = "lt.bitwise_not(lt.tensor{0, 1, 255})",
  logical_not = "lt.logical_not(lt.tensor{0, 1, 2})",
  leaky_relu = "lt.leaky_relu(lt.tensor{-1.0, 0, 2}, 0.1)",
  glu = "F.glu(lt.tensor{{1., 2, 0, 1}})",
  kl_div = 'F.kl_div(lt.tensor{0.5, 0.5}:log(), lt.tensor{0.9, 0.1}, {reduction = "sum"})',
  constant_pad_nd = "lt.constant_pad_nd(lt.ones(2), {1, 2})",
  pixel_shuffle = "lt.pixel_shuffle(lt.arange(4.):reshape(1, 4, 1, 1), 2)",
  pixel_unshuffle = "lt.pixel_unshuffle(lt.arange(4.):reshape(1, 1, 2, 2), 2)",
  channel_shuffle = "lt.channel_shuffle(lt.arange(4.):reshape(1, 4, 1), 2)",
  diag_embed = "lt.diag_embed(lt.tensor{1, 2})",
  prelu = "F.prelu(lt.tensor{-2., 3}, lt.tensor{0.25})",
  threshold = "lt.threshold(lt.tensor{-1.0, 0, 2}, 0.5, 9)",
  div = 'lt.div(lt.tensor{7, -7}, 2, {rounding_mode = "floor"})',
  floor_divide = "lt.floor_divide(lt.tensor{7, -7}, 2)",
  remainder = "lt.remainder(lt.tensor{7, -7}, 3)",
  fmod = "lt.fmod(lt.tensor{7, -7}, 3)",
  pow = "lt.pow(lt.tensor{1, 2, 3}, 2)",
  nextafter = "lt.nextafter(lt.tensor{1.0, 2.0}, lt.tensor{3.0, 0.0})",
  logaddexp = "lt.logaddexp(lt.tensor{0.0, 100.0}, lt.tensor{0.0, 1.0})",
  logaddexp2 = "lt.logaddexp2(lt.tensor{0.0, 100.0}, lt.tensor{0.0, 1.0})",
  igamma = "lt.igamma(lt.tensor{1.0, 2.5}, lt.tensor{0.5, 3.0})",
  igammac = "lt.igammac(lt.tensor{1.0, 2.5}, lt.tensor{0.5, 3.0})",
  angle = "lt.angle(lt.tensor{-1., 0., 2.})",
  conj = "lt.conj(lt.tensor{lt.complex(1, 2), lt.complex(3, -4)})",
  complex = "lt.complex(lt.tensor{1., 2.}, lt.tensor{3., 4.})",
  polar = "lt.polar(lt.tensor{1., 2.}, lt.tensor{0., 0.5})",
  view_as_real = "lt.view_as_real(lt.tensor{lt.complex(1, 2), lt.complex(3, -4)})",
  view_as_complex = "lt.view_as_complex(lt.tensor{{1., 2.}, {3., -4.}})",
  real = "lt.real(lt.tensor{lt.complex(1, 2), lt.complex(3, -4)})",
  imag = "lt.imag(lt.tensor{lt.complex(1, 2), lt.complex(3, -4)})",
  copysign = "lt.copysign(lt.tensor{1, 2, 3}, lt.tensor{-1, 1, -1})",
  fmax = "lt.fmax(lt.tensor{1, lt.nan, 3}, 2)",
  fmin = "lt.fmin(lt.tensor{1, lt.nan, 3}, 2)",
  atan2 = "lt.atan2(lt.tensor{1, -1}, lt.tensor{1, 1})",
  hypot = "lt.hypot(lt.tensor{3.0, 5}, lt.tensor{4.0, 12})",
  logical_and = "lt.logical_and(lt.tensor{1, 0, 2}, lt.tensor{1, 1, 0})",
  logical_or = "lt.logical_or(lt.tensor{1, 0, 0}, lt.tensor{1, 1, 0})",
  logical_xor = "lt.logical_xor(lt.tensor{1, 0, 2}, lt.tensor{1, 1, 0})",
  bitwise_and = "lt.bitwise_and(lt.tensor{12, 10}, 6)",
  bitwise_or = "lt.bitwise_or(lt.tensor{12, 10}, 6)",
  bitwise_xor = "lt.bitwise_xor(lt.tensor{12, 10}, 6)",
  masked_fill = "lt.tensor{1, 2, 3}:masked_fill(lt.tensor{true, false, true}, 0)",
  lerp = "lt.lerp(lt.tensor{0.0, 10.0}, lt.tensor{10.0, 20.0}, 0.5)",
  addcmul = "lt.addcmul(lt.ones(2), lt.tensor{1.0, 2.0}, lt.tensor{3.0, 4.0}, {value = 10})",
  addcdiv = "lt.addcdiv(lt.ones(2), lt.tensor{1.0, 2.0}, lt.tensor{2.0, 4.0}, {value = 10})",
  where = "lt.where(lt.tensor{true, false, true}, lt.tensor{1, 2, 3}, 0)",
  clamp = "lt.tensor{-2, 0.5, 7}:clamp(0, 1)",

  -- making tensors
  linspace = "lt.linspace(0, 1, 5)",
  logspace = "lt.logspace(0, 3, 4)",
  eye = "lt.eye(2)",
  tril_indices = "lt.tril_indices(2, 3)",
  triu_indices = "lt.triu_indices(2, 3)",
  empty = "lt.empty(0, 3)",
  zeros = "lt.zeros(2, 3)",
  ones = "lt.ones(2, 3)",
  full = "lt.full({2, 3}, 7)",
  arange = "lt.arange(2, 8, 2)",
  empty_like = "lt.empty_like(lt.ones(0, 3))",
  zeros_like = "lt.zeros_like(lt.ones(2))",
  ones_like = "lt.ones_like(lt.zeros(2))",
  full_like = "lt.full_like(lt.zeros(2), 7)",
  rand_like = "lt.rand_like(lt.zeros(3))",
  randn_like = "lt.randn_like(lt.zeros(3))",
  randint_like = "lt.randint_like(lt.zeros(3), 6)",
  new_empty = "lt.ones(2):new_empty(0, 3)",
  new_zeros = "lt.ones(2):new_zeros(3)",
  new_ones = "lt.zeros(2):new_ones(3)",
  new_full = "lt.zeros(2):new_full({3}, 7)",

  -- random numbers
  uniform = "lt.empty(3):uniform_(-1, 1)",
  normal = "lt.empty(3):normal_(10, 2)",
  exponential = "lt.empty(3):exponential_()",
  cauchy = "lt.empty(3):cauchy_()",
  log_normal = "lt.empty(3):log_normal_(0, 1)",
  geometric = "lt.empty(3):geometric_(0.5)",
  random = "lt.empty(3):random_(6)",
  bernoulli = "lt.bernoulli(lt.tensor{0, 0.5, 1})",
  randperm = "lt.randperm(5)",
  multinomial = "lt.tensor{0, 0.3, 0.7}:multinomial(2)",
  poisson = "lt.poisson(lt.tensor{0.5, 4, 100})",
  binomial = "lt.binomial(lt.tensor{10., 100.}, lt.tensor{0.5})",
  rand = "lt.rand(2, 3)",
  randn = "lt.randn(2, 3)",
  randint = "lt.randint(1, 6, {4})",
  dropout = "lt.dropout(lt.ones(4), 0.5)",

  -- reductions
  sum = "lt.tensor{{1, 2}, {3, 4}}:sum(1)",
  mean = "lt.tensor{{1.0, 2}, {3, 4}}:mean(1)",
  prod = "lt.tensor{{1, 2}, {3, 4}}:prod(1)",
  amax = "lt.tensor{{1, 2}, {3, 4}}:amax(1)",
  amin = "lt.tensor{{1, 2}, {3, 4}}:amin(1)",
  all = "lt.tensor{{1, 0}, {3, 4}}:all(1)",
  any = "lt.tensor{{0, 0}, {0, 4}}:any(1)",
  count_nonzero = "lt.tensor{{1, 0}, {3, 4}}:count_nonzero(1)",
  argmax = "lt.tensor{1, 5, 3}:argmax()",
  argmin = "lt.tensor{4, 1, 3}:argmin()",
  logsumexp = "lt.tensor{0, 0}:logsumexp(1)",
  max = "lt.tensor{{1, 5}, {3, 4}}:max(2)",
  min = "lt.tensor{{1, 5}, {3, 4}}:min(2)",
  var = "lt.tensor{1.0, 2, 3, 4}:var()",
  std = "lt.tensor{1.0, 2, 3, 4}:std()",
  cumsum = "lt.tensor{1, 2, 3}:cumsum(1)",
  cumprod = "lt.tensor{1, 2, 3}:cumprod(1)",
  cummax = "lt.tensor{2, 1, 3}:cummax(1)",
  cummin = "lt.tensor{2, 3, 1}:cummin(1)",
  sort = "lt.tensor{3, 1, 2}:sort()",
  topk = "lt.tensor{3, 1, 2}:topk(2)",
  argsort = "lt.tensor{3, 1, 2}:argsort()",
  equal = "lt.equal(lt.tensor{1, 2}, lt.tensor{1, 2})",
  isclose = "lt.isclose(lt.tensor{1, 2}, lt.tensor{1.000001, 2.1})",
  allclose = "lt.allclose(lt.tensor{1, 2}, lt.tensor{1.000001, 2})",

  -- networks
  softmax = "lt.softmax(lt.tensor{0.0, 0}, 1)",
  log_softmax = "lt.log_softmax(lt.tensor{0.0, 0}, 1)",
  layer_norm = "lt.layer_norm(lt.tensor{{1.0, 2.0, 3.0}}, {3})",
  conv1d = "lt.conv1d(lt.tensor{{1.0, 2, 3, 4}}, lt.tensor{{{1.0, -1}}})",
  conv2d = "lt.conv2d(lt.ones(1, 3, 3), lt.ones(1, 1, 2, 2))",
  conv3d = "lt.conv3d(lt.ones(1, 2, 2, 3), lt.ones(1, 1, 2, 2, 2))",
  conv_transpose1d = "lt.conv_transpose1d(lt.tensor{{1.0, 2}}, lt.tensor{{{1.0, -1}}})",
  conv_transpose2d = "lt.conv_transpose2d(lt.ones(1, 2, 2), lt.ones(1, 1, 2, 2))",
  conv_transpose3d = "lt.conv_transpose3d(lt.ones(1, 1, 1, 2), lt.ones(1, 1, 2, 1, 2))",
  convolution =
    "lt.convolution(lt.ones(1, 1, 4), lt.ones(1, 1, 2), nil, {2}, {0}, {1}, false, {0}, 1)",
  batch_norm = "F.batch_norm(lt.tensor{{1.0, 4}, {3, 8}}, nil, nil, {training = true})",
  gelu = "lt.gelu(lt.tensor{-1.0, 0, 2})",
  nll_loss = "lt.nll_loss(lt.tensor{{-0.5, -1}, {-2, -0.1}}, lt.tensor{1, 2})",
  cross_entropy = "lt.cross_entropy(lt.tensor{{2.0, 0.0}, {0.0, 2.0}}, lt.tensor{1, 2})",
  mse_loss = "lt.mse_loss(lt.tensor{1.0, 2.0}, lt.tensor{1.0, 4.0})",
  l1_loss = "lt.l1_loss(lt.tensor{1.0, 2.0}, lt.tensor{1.0, 4.0})",
  binary_cross_entropy_with_logits =
    "lt.binary_cross_entropy_with_logits(lt.tensor{0.0, 0.0}, lt.tensor{0.0, 1.0})",
  embedding = "lt.embedding(lt.tensor{{1, 2}, {3, 4}, {5, 6}}, lt.tensor{3, 1})",
  one_hot = "lt.one_hot(lt.tensor{1, 3}, 3)",

  -- products
  mm = "lt.mm(lt.ones(2, 3), lt.ones(3, 4))",
  bmm = "lt.bmm(lt.ones(2, 2, 3), lt.ones(2, 3, 1))",
  addmm = "lt.addmm(lt.zeros(4), lt.ones(2, 3), lt.ones(3, 4))",
  baddbmm = "lt.baddbmm(lt.zeros(1), lt.ones(2, 2, 3), lt.ones(2, 3, 1))",
  geqrf = "lt.geqrf(lt.tensor{{1.0, 2}, {3, 4}})",
  mv = "lt.mv(lt.ones(2, 3), lt.ones(3))",
  dot = "lt.dot(lt.tensor{1, 2, 3}, lt.tensor{4, 5, 6})",
  outer = "lt.outer(lt.tensor{1, 2}, lt.tensor{1, 10, 100})",
  matmul = "lt.matmul(lt.ones(2, 3), lt.ones(3, 4))",
  linear = "lt.linear(lt.ones(2, 3), lt.ones(4, 3), lt.zeros(4))",
  scaled_dot_product_attention =
    "lt.scaled_dot_product_attention(lt.ones(1, 2, 4), lt.ones(1, 3, 4), lt.ones(1, 3, 4))",

  -- shapes
  view = "lt.arange(6):view(2, 3)",
  transpose = "lt.zeros(2, 3):transpose(1, 2)",
  permute = "lt.zeros(2, 3, 1):permute(3, 1, 2)",
  expand = "lt.tensor{{1}, {2}}:expand(-1, 3)",
  squeeze = "lt.ones(1, 3, 1):squeeze()",
  unsqueeze = "lt.ones(3):unsqueeze(1)",
  select = "lt.tensor{{1, 2}, {3, 4}}:select(1, 2)",
  diagonal = "lt.tensor{{1, 2}, {3, 4}}:diagonal()",
  as_strided = "lt.arange(4):as_strided({3, 2}, {1, 1})",
  detach = "lt.ones(2):detach()",
  unfold = "lt.arange(5):unfold(1, 3, 1)",
  reshape = "lt.arange(6):reshape(3, -1)",
  flatten = "lt.zeros(2, 3, 1):flatten(1, 2)",
  unflatten = "lt.arange(6):unflatten(1, {2, 3})",
  t = "lt.tensor{{1, 2}, {3, 4}}:t()",
  swapaxes = "lt.zeros(2, 3):swapaxes(1, 2)",
  movedim = "lt.zeros(2, 3, 1):movedim(1, 3)",
  narrow = "lt.arange(5):narrow(1, 2, 3)",
  expand_as = "lt.ones(1, 2):expand_as(lt.zeros(3, 2))",
  view_as = "lt.arange(4):view_as(lt.zeros(2, 2))",
  reshape_as = "lt.arange(4):reshape_as(lt.zeros(2, 2))",
  broadcast_to = "lt.tensor{1, 2}:broadcast_to(2, 2)",
  split = "lt.arange(5):split(2)",
  chunk = "lt.arange(5):chunk(2)",
  unbind = "lt.tensor{{1, 2}, {3, 4}}:unbind()",
  cat = "lt.cat({lt.ones(2), lt.zeros(1)})",
  stack = "lt.stack({lt.ones(2), lt.zeros(2)})",
  clone = "lt.tensor{1, 2}:clone()",
  contiguous = "lt.tensor{{1, 2}, {3, 4}}:t():contiguous()",
  to = 'lt.tensor{1.5, 2}:to("int64")',
  copy_ = "lt.zeros(2):copy_(lt.tensor{1, 2})",
  fill = "lt.zeros(2):fill_(7)",
  zero_ = "lt.ones(2):zero_()",
  triu = "lt.ones(3, 3):triu()",
  tril = "lt.ones(3, 3):tril()",
  flip = "lt.tensor{1, 2, 3}:flip(1)",
  roll = "lt.tensor{1, 2, 3}:roll(1)",
  tile = "lt.tensor{1, 2}:tile(2, 2)",
  repeat_interleave = "lt.tensor{1, 2}:repeat_interleave(2)",
  diag = "lt.diag(lt.tensor{1, 2})",
  trace = "lt.tensor{{1, 2}, {3, 4}}:trace()",

  -- picking and placing
  index_select = "lt.tensor{{1, 2}, {3, 4}}:index_select(2, lt.tensor{2, 2, 1})",
  gather = "lt.tensor{{1, 2}, {3, 4}}:gather(2, lt.tensor{{2}, {1}})",
  masked_select = "lt.tensor{1, 2, 3}:masked_select(lt.tensor{true, false, true})",
  nonzero = "lt.tensor{0, 7, 9}:nonzero()",
  scatter = "lt.zeros(2, 3):scatter(2, lt.tensor{{3}, {1}}, 1)",
  scatter_add = "lt.zeros(3):scatter_add(1, lt.tensor{1, 1, 3}, lt.tensor{1.0, 2.0, 5.0})",
  index_add = "lt.zeros(3):index_add(1, lt.tensor{1, 3}, lt.tensor{5.0, 7.0})",
  index_copy = "lt.zeros(3):index_copy(1, lt.tensor{1, 3}, lt.tensor{5.0, 7.0})",
  index_fill = "lt.zeros(3):index_fill(1, lt.tensor{1, 3}, 7)",
  masked_scatter =
    "lt.zeros(3):masked_scatter(lt.tensor{true, false, true}, lt.tensor{5.0, 7.0})",
}

-- pools of one, two and three dims
for k, x in ipairs{"lt.arange(6.):reshape(1, 1, 6)", "lt.arange(16.):reshape(1, 1, 4, 4)",
  "lt.arange(8.):reshape(1, 1, 2, 2, 2)"} do
  for name, rest in pairs{max_pool = "2", avg_pool = "2", lp_pool = "2, 2", adaptive_avg_pool = "1",
    adaptive_max_pool = "1"} do
    name = name .. k .. "d"
    written[name] = ("F.%s(%s, %s)"):format(name, x, rest)
    if name:find "max" then
      name = name .. "_with_indices"
      written[name] = ("F.%s(%s, %s)"):format(name, x, rest)
    end
  end
end

-- Returns the number of required arguments; nil when one of them is not a tensor.
local function tensors_needed(op)
  local n = 0
  for _, p in ipairs(op.params) do
    if not p.optional then
      if p.type ~= "Tensor" and p.type ~= "Operand" then return nil end
      n = n + 1
    end
  end
  return n
end

--- Returns the example of an op (a row of lt.ops()), or nil.
function examples.of(op)
  local text = op.example or written[op.name]
  if text then return text end
  if op.kind == "reduce" then return reduction:format(op.name) end
  local count = tensors_needed(op)
  local pattern = count == 1 and one or count == 2 and two
  local name = op.variants["function"] and op.name
    or op.namespaces.special and "special." .. op.namespaces.special or op.name
  return pattern and pattern:format(name) or nil
end

--- Returns the names of the ops with an example of their own.
function examples.names()
  local names = {}
  for name in pairs(written) do names[#names + 1] = name end
  table.sort(names)
  return names
end

return examples
