--- nn.init: functions that fill a tensor in place with initial values, and return it.
--
-- The scaled initializers derive the distribution's width from the number of inputs and outputs of
-- each unit (fan_in, fan_out), so that activations keep their scale from layer to layer.
-- Invariant: nothing here is recorded by autograd, and the same generator (or seed) gives the same
-- values on every device.

local lt = require "lutra"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"

local init = {}

-- Calls tensor[method](tensor, ...) under lt.no_grad and returns the tensor.
local function filled(tensor, method, ...)
  local arguments = table.pack(...)
  lt.no_grad(function()
    tensor[method](tensor, table.unpack(arguments, 1, arguments.n))
  end)
  return tensor
end

local function uniform(tensor, low, high, generator)
  return filled(tensor, "uniform_", low, high, generator and {generator = generator})
end

local function normal(tensor, mean, std, generator)
  return filled(tensor, "normal_", mean, std, generator and {generator = generator})
end

-- Returns fan_in and fan_out of a weight {out, in, kernel...}; raises an error for fewer than 2
-- dimensions.
local function fans(title, tensor)
  local shape = tensor.shape
  args.check(#shape >= 2,
    "%s: expected at least 2 dimensions for argument 'tensor', got shape %s", title,
    tostring(shape))
  local field = 1
  for i = 3, #shape do field = field * shape[i] end
  return shape[2] * field, shape[1] * field
end

--- Returns fan_in and fan_out of a weight {out, in, kernel...}: the numbers of inputs and outputs
-- of each unit. Raises an error for fewer than 2 dimensions.
function init._calculate_fan_in_and_fan_out(tensor)
  args.expect(lt.is_tensor(tensor), "_calculate_fan_in_and_fan_out", "a tensor", "tensor", tensor)
  return fans("_calculate_fan_in_and_fan_out", tensor)
end

local gains = {linear = 1, sigmoid = 1, tanh = 5 / 3, relu = math.sqrt(2), selu = 3 / 4}
for dims = 1, 3 do
  gains["conv" .. dims .. "d"], gains["conv_transpose" .. dims .. "d"] = 1, 1
end

local parse_gain = args.signature("calculate_gain",
  "any? nonlinearity = nil, float? param = nil")

--- Returns the recommended gain of a nonlinearity: "linear", "conv1d" to "conv3d",
-- "conv_transpose1d" to "conv_transpose3d", "sigmoid", "tanh", "relu", "selu" or "leaky_relu"
-- (`param` is its negative slope, 0.01 by default). Raises an error for any other.
function init.calculate_gain(...)
  local nonlinearity, slope = parse_gain(...)
  if nonlinearity == "leaky_relu" then return math.sqrt(2 / (1 + (slope or 0.01) ^ 2)) end
  return args.check(gains[nonlinearity],
    "calculate_gain: expected one of leaky_relu, linear, relu, selu, sigmoid, tanh, conv1d... for "
    .. "argument 'nonlinearity', got \"%s\"", tostring(nonlinearity))
end

local parse_uniform = args.signature("uniform_",
  "Tensor tensor, float a = 0, float b = 1, Generator? generator = nil")

--- Fills a tensor from the uniform distribution between a and b; returns it.
function init.uniform_(...) return uniform(parse_uniform(...)) end

local parse_normal = args.signature("normal_",
  "Tensor tensor, float mean = 0, float std = 1, Generator? generator = nil")

--- Fills a tensor from the normal distribution; returns it.
function init.normal_(...) return normal(parse_normal(...)) end

local parse_constant = args.signature("constant_", "Tensor tensor, float val")

--- Fills a tensor with one value; returns it.
function init.constant_(...)
  local tensor, value = parse_constant(...)
  return filled(tensor, "fill_", value)
end

local parse_zeros = args.signature("zeros_", "Tensor tensor")

--- Fills a tensor with 0; returns it.
function init.zeros_(...) return filled(parse_zeros(...), "fill_", 0) end

local parse_ones = args.signature("ones_", "Tensor tensor")

--- Fills a tensor with 1; returns it.
function init.ones_(...) return filled(parse_ones(...), "fill_", 1) end

local parse_eye = args.signature("eye_", "any? tensor")

--- Fills a matrix with ones on the diagonal and zeros elsewhere; returns it. Raises an error unless
-- the tensor has 2 dimensions.
function init.eye_(...)
  local tensor = parse_eye(...)
  args.check(lt.is_tensor(tensor) and tensor.ndim == 2,
    "eye_: expected a tensor of 2 dimensions for argument 'tensor', got %s", args.show(tensor))
  return filled(tensor, "copy_",
    lt.eye(tensor:size(1), tensor:size(2), {dtype = tensor.dtype, device = tensor.device}))
end

local parse_trunc = args.signature("trunc_normal_",
  "Tensor tensor, float mean = 0, float std = 1, float a = -2, float b = 2, "
  .. "Generator? generator = nil")

-- Both draw like `like` and return the numbers and a bool tensor that is true where a number is
-- accepted. draw_narrow is for an interval that few numbers of the normal distribution fall into:
-- it draws uniformly from [a, b] and accepts each number with a probability proportional to its
-- density (rejection sampling). draw_wide draws from the normal distribution itself.
local function draw_narrow(like, mean, std, a, b, generator)
  local x = uniform(lt.empty_like(like), a, b, generator)
  local nearest = math.min(math.max(mean, a), b)
  local density = (((nearest - mean) / std) ^ 2 - ((x - mean) / std):square()) / 2
  local kept = uniform(lt.empty_like(like), 0, 1, generator):log():le(density)
  return x, kept:logical_and(x:ge(a)):logical_and(x:le(b))
end

local function draw_wide(like, mean, std, a, b, generator)
  local x = normal(lt.empty_like(like), mean, std, generator)
  return x, x:ge(a):logical_and(x:le(b))
end

--- Fills a tensor from the normal distribution truncated to [a, b]; returns it. Numbers outside the
-- interval are drawn again, at most a thousand times (the dtype may have no number inside it),
-- then clamped. Raises an error unless a < b and [a, b] reaches to within three deviations of the
-- mean.
function init.trunc_normal_(...)
  local tensor, mean, std, a, b, generator = parse_trunc(...)
  args.check(a < b and a <= mean + 3 * std and b >= mean - 3 * std,
    "trunc_normal_: expected a < b, and [a, b] to overlap mean - 3 std to mean + 3 std, got "
    .. "[%g, %g] for mean %g and std %g", a, b, mean, std)
  local draw = b - a < std and draw_narrow or draw_wide
  lt.no_grad(function()
    local x, inside = draw(tensor, mean, std, a, b, generator)
    local rounds = tensor.device == "meta" and 1000 or 0
    while rounds < 1000 and not inside:all():item() do
      local again, now = draw(tensor, mean, std, a, b, generator)
      x = lt.where(inside, x, again)
      inside, rounds = inside:logical_or(now), rounds + 1
    end
    tensor:copy_(x:clamp_(a, b)) -- the only write: a failure before it leaves tensor unchanged
  end)
  return tensor
end

local parse_xavier = "Tensor tensor, float gain = 1, Generator? generator = nil"
local parse_xavier_uniform = args.signature("xavier_uniform_", parse_xavier)
local parse_xavier_normal = args.signature("xavier_normal_", parse_xavier)

--- Fills a tensor {out, in, ...} from the uniform distribution between -b and b, b = gain * sqrt(6
-- / (fan_in + fan_out)); returns it (Glorot and Bengio 2010).
function init.xavier_uniform_(...)
  local tensor, gain, generator = parse_xavier_uniform(...)
  local fan_in, fan_out = fans("xavier_uniform_", tensor)
  local bound = gain * math.sqrt(6 / (fan_in + fan_out))
  return uniform(tensor, -bound, bound, generator)
end

--- Fills a tensor {out, in, ...} from the normal distribution with deviation gain * sqrt(2 /
-- (fan_in + fan_out)); returns it (Glorot and Bengio 2010).
function init.xavier_normal_(...)
  local tensor, gain, generator = parse_xavier_normal(...)
  local fan_in, fan_out = fans("xavier_normal_", tensor)
  return normal(tensor, 0, gain * math.sqrt(2 / (fan_in + fan_out)), generator)
end

local kaiming = "Tensor tensor, float a = 0, 'fan_in'|'fan_out' mode = 'fan_in', "
  .. "string nonlinearity = 'leaky_relu', Generator? generator = nil"
local parse_kaiming_uniform = args.signature("kaiming_uniform_", kaiming)
local parse_kaiming_normal = args.signature("kaiming_normal_", kaiming)

-- Returns the standard deviation gain / sqrt(fan) of He et al. 2015.
local function kaiming_std(title, tensor, a, mode, nonlinearity)
  local fan_in, fan_out = fans(title, tensor)
  return init.calculate_gain(nonlinearity, a) / math.sqrt(mode == "fan_in" and fan_in or fan_out)
end

--- Fills a tensor {out, in, ...} from the uniform distribution between -b and b, b = gain * sqrt(3
-- / fan); returns it (He et al. 2015). `mode` selects fan_in or fan_out, `a` is the negative slope
-- of the leaky ReLU that follows.
function init.kaiming_uniform_(...)
  local tensor, a, mode, nonlinearity, generator = parse_kaiming_uniform(...)
  if tensor:numel() == 0 then return tensor end
  local bound = math.sqrt(3) * kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
  return uniform(tensor, -bound, bound, generator)
end

--- Fills a tensor {out, in, ...} from the normal distribution with deviation gain / sqrt(fan);
-- returns it (He et al. 2015). The options are those of kaiming_uniform_.
function init.kaiming_normal_(...)
  local tensor, a, mode, nonlinearity, generator = parse_kaiming_normal(...)
  if tensor:numel() == 0 then return tensor end
  return normal(tensor, 0, kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity),
    generator)
end

local parse_dirac = args.signature("dirac_", "Tensor tensor, int(>=1) groups = 1")

--- Fills the weight {out, in, kernel...} of a convolution of 1 to 3 dimensions with zeros, and ones
-- at the center of the kernels that map channel i of a group to channel i, so that the convolution
-- keeps as many channels as possible; returns it. Raises an error for another number of dimensions,
-- and when `groups` does not divide the number of output channels.
function init.dirac_(...)
  local tensor, groups = parse_dirac(...)
  args.check(tensor.ndim >= 3 and tensor.ndim <= 5,
    "dirac_: expected 3 to 5 dimensions for argument 'tensor', got shape %s",
    tensor.shape)
  local out = tensor:size(1)
  args.check(out % groups == 0, "dirac_: expected a divisor of the number of output channels (%d) "
    .. "for argument 'groups', got %d", out, groups)
  local center, each = {}, out // groups
  for i = 3, tensor.ndim do center[i - 2] = tensor:size(i) // 2 + 1 end
  lt.no_grad(function()
    tensor:zero_()
    for group = 0, groups - 1 do
      for i = 1, math.min(each, tensor:size(2)) do
        tensor[{group * each + i, i, table.unpack(center)}] = 1
      end
    end
  end)
  return tensor
end

-- Returns the number of rows and columns of a tensor seen as a matrix {size(1), rest}.
local function as_matrix(tensor)
  local rows = tensor:size(1)
  return rows, rows == 0 and 0 or tensor:numel() // rows
end

local parse_orthogonal = args.signature("orthogonal_",
  "Tensor tensor, float gain = 1, Generator? generator = nil")

--- Fills a tensor, seen as a matrix {size(1), rest}, with `gain` times a random (semi-)orthogonal
-- matrix; returns it (Saxe, McClelland, Ganguli 2013). The matrix is Q of the QR factorization of a
-- normal one, with the signs of R's diagonal, which makes it uniformly distributed. Raises an error
-- for fewer than 2 dimensions.
function init.orthogonal_(...)
  local tensor, gain, generator = parse_orthogonal(...)
  args.check(tensor.ndim >= 2,
    "orthogonal_: expected at least 2 dimensions for argument 'tensor', got shape %s",
    tensor.shape)
  if tensor:numel() == 0 then return tensor end
  local rows, columns = as_matrix(tensor)
  return lt.no_grad(function()
    local shape = {math.max(rows, columns), math.min(rows, columns)}
    local normals = normal(tensor:new_empty(shape), 0, 1, generator)
    local q, r = lt.linalg.qr(normals)
    q = q * r:diagonal():sign()
    if rows < columns then q = q:t() end
    return tensor:copy_(q:reshape(tensor.shape) * gain)
  end)
end

local parse_sparse = args.signature("sparse_",
  "Tensor tensor, float sparsity, float std = 0.01, Generator? generator = nil")

--- Fills a matrix from the normal distribution with deviation `std`, with the fraction `sparsity`
-- of each column (rounded up) set to zero; returns it (Martens 2010). Raises an error unless the
-- tensor has 2 dimensions.
function init.sparse_(...)
  local tensor, sparsity, std, generator = parse_sparse(...)
  args.check(tensor.ndim == 2,
    "sparse_: expected 2 dimensions for argument 'tensor', got shape %s", tensor.shape)
  local rows, columns = tensor:size(1), tensor:size(2)
  local zeros = math.ceil(sparsity * rows)
  args.check(zeros >= 0 and zeros <= rows,
    "sparse_: expected a number from 0 to 1 for argument 'sparsity', got %g", sparsity)
  lt.no_grad(function()
    normal(tensor, 0, std, generator)
    if zeros == 0 or columns == 0 then return end
    local options = {device = tensor.device}
    local order = uniform(lt.empty({rows, columns}, options), 0, 1, generator):argsort(1)
    tensor:scatter_(1, order[{{1, zeros}}], 0)
  end)
  return tensor
end

return strict_table.strict(init, "nn.init")
