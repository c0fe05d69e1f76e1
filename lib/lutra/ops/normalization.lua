--- Normalizations and distances by the cosine, as composites of other ops.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"
local F = require "lutra.nn.functional"

lt._define{
  signature = "F.normalize(Tensor input, float p = 2, dims? dim = 2, float eps = 1e-12)",
  doc = "x / max(norm of x along dim, eps).",
  example = "F.normalize(lt.tensor{{3., 4.}})",
  fn = function(x, p, dim, eps)
    return x / x:norm{p = p, dim = dim, keepdim = true}:clamp{min = eps}
  end,
}

-- The norm of x along dim, at least eps; its gradient is that of the norm, also below eps.
local function length(x, dim, eps, keepdim)
  local norm = lt._ops._norm(x, dim, keepdim)
  if not norm.requires_grad then return norm:clamp(eps) end
  local value = norm:detach()
  return norm + (value:clamp{min = eps} - value)
end

lt._define{
  signature = "lt.cosine_similarity(Tensor x1, Tensor x2, dim dim = 2, float eps = 1e-8)",
  doc = "The cosine of the angle between x1 and x2 along dim; the tensors are broadcast.",
  also = {"F"},
  example = "lt.cosine_similarity(lt.tensor{{1., 0.}}, lt.tensor{{1., 1.}})",
  fn = function(a, b, dim, eps)
    if a.dtype ~= b.dtype or not a:is_floating_point() then
      local dtype = lt.result_type(a, b)
      if not dtype:find "float" and not dtype:find "complex" then dtype = lt.get_default_dtype() end
      a, b = a:to(dtype), b:to(dtype)
    end
    if a.shape ~= b.shape then
      local sizes = (a:detach() + b:detach()).shape
      a, b = a:expand(sizes), b:expand(sizes)
    end
    local unit = a / length(a, dim, eps, true)
    return (unit * b):sum(dim) / length(b, dim, eps, false)
  end,
}

-- A tensor {C} in a shape that is broadcast with {N, C, ...} of ndim dimensions.
local function by_channel(t, ndim)
  local sizes = {1, t:numel()}
  for d = 3, ndim do sizes[d] = 1 end
  return t:reshape(sizes)
end

local function affine(x, weight, bias)
  if weight and bias and weight.dtype == x.dtype and bias.dtype == x.dtype then
    return lt.addcmul(by_channel(bias, x.ndim), x, by_channel(weight, x.ndim))
  end
  if weight then x = x * by_channel(weight, x.ndim) end
  if bias then x = x + by_channel(bias, x.ndim) end
  return x
end

-- Half dtypes are computed in float32: returns x in the dtype to compute in.
local function widened(x)
  return tensors.is_half(x.dtype) and x:to "float32" or x
end

local function channels(title, x, least)
  args.check(x.ndim >= least, "%s: expected at least %d dimensions for argument 'input', got %s",
    title, least, x.shape)
  return x:size(2)
end

-- Checks an argument that has one number for each channel of x, unless it is nil.
local function check_channels(title, name, t, x)
  if not t then return end
  args.check(t.ndim == 1 and t:numel() == x:size(2),
    "%s: expected shape {%d}, one number for each channel, for argument '%s', got %s", title,
    x:size(2), name, t.shape)
  if t.dtype == "float32" and tensors.is_half(x.dtype) then return end
  tensors.check_parameter_dtype(title, name, t, x)
end

-- Normalizes groups of consecutive elements of {N, C, ...}.
local function by_group(x, rows, size, eps)
  if x:numel() == 0 then return x:clone() end
  return F.layer_norm(x:reshape(rows, size), {size}, nil, nil, eps):reshape(x.shape, {})
end

lt._define{
  signature = "lt.group_norm(Tensor input, int num_groups, Tensor? weight = nil, "
    .. "Tensor? bias = nil, float eps = 1e-5)",
  doc = "Normalizes each of num_groups groups of channels of {N, C, ...} to mean 0 and variance 1, "
    .. "then * weight + bias, of shape {C} (Wu and He 2018).",
  also = {"F"},
  example = "lt.group_norm(lt.randn(2, 4, 3), 2)",
  fn = function(x, groups, weight, bias, eps)
    local count = channels("group_norm", x, 2)
    tensors.check_float("group_norm", "input", x)
    args.check(groups > 0 and count % groups == 0,
      "group_norm: expected a divisor of the %d channels for argument 'num_groups', got %d", count,
      groups)
    check_channels("group_norm", "weight", weight, x)
    check_channels("group_norm", "bias", bias, x)
    if x.device == "cpu" and x:numel() > 0 then -- one kernel
      return (lt._ops._group_norm(x, weight, bias, groups, eps))
    end
    local rows = x:size(1) * groups
    local y = by_group(widened(x), rows, rows > 0 and x:numel() // rows or 1, eps)
    return affine(y, weight, bias):to(x.dtype)
  end,
}

-- Normalizes the rows {rows, size} of a half dtype as PyTorch does: its statistics have the dtype
-- `kept`, that of the parameters.
local function by_row(x, rows, size, eps, kept)
  if x:numel() == 0 then return x:clone() end
  local y = x:reshape(rows, size):to "float32"
  local scale = (y:var{dim = 2, correction = 0, keepdim = true} + eps):rsqrt():to(kept)
  return ((y - y:mean(2, true):to(kept)) * scale):reshape(x.shape, {})
end

-- Moves running statistics toward those of x {N, C, L}: the mean over the instances.
local function update(x, running_mean, running_var, momentum)
  lt.no_grad(function()
    x = x:detach()
    if running_mean then running_mean:lerp_(x:mean(3):mean(1):to(running_mean.dtype), momentum) end
    if running_var then running_var:lerp_(x:var(3):mean(1):to(running_var.dtype), momentum) end
  end)
end

lt._define{
  signature = "F.instance_norm(Tensor input, Tensor?! running_mean = nil, "
    .. "Tensor?! running_var = nil, Tensor? weight = nil, Tensor? bias = nil, "
    .. "bool use_input_stats = true, float momentum = 0.1, float eps = 1e-5)",
  doc = "Normalizes each channel of each instance of {N, C, ...} to mean 0 and variance 1, then * "
    .. "weight + bias, of shape {C}. Without use_input_stats it normalizes by the running "
    .. "statistics, otherwise it updates them.",
  example = "F.instance_norm(lt.randn(2, 3, 5))",
  fn = function(x, running_mean, running_var, weight, bias, use_input, momentum, eps)
    local title = "instance_norm"
    local count = channels(title, x, 2)
    tensors.check_float(title, "input", x)
    check_channels(title, "weight", weight, x)
    check_channels(title, "bias", bias, x)
    check_channels(title, "running_mean", running_mean, x)
    check_channels(title, "running_var", running_var, x)
    if not use_input then
      args.check(running_mean and running_var, "%s: expected running_mean and running_var without "
        .. "use_input_stats, got nil", title)
      local scale = (widened(running_var) + eps):rsqrt()
      local y = affine(widened(x) - by_channel(running_mean, x.ndim), scale)
      return affine(y, weight, bias):to(x.dtype)
    end
    local rows = x:size(1) * count
    local size = rows > 0 and x:numel() // rows or 1
    args.check(size > 1 or x:numel() == 0,
      "%s: expected more than one element in each channel, got an input of shape %s", title,
      x.shape)
    if running_mean or running_var then
      update(x:reshape(x:size(1), count, size), running_mean, running_var, momentum)
    end
    local kept = (weight or bias or running_mean or x).dtype
    local y = widened(x) ~= x and by_row(x, rows, size, eps, kept) or by_group(x, rows, size, eps)
    return affine(y, weight, bias):to(x.dtype)
  end,
}

lt._define{
  signature = "lt.rms_norm(Tensor input, sizes normalized_shape, Tensor? weight = nil, "
    .. "float? eps = nil)",
  doc = "x / sqrt(mean(x^2) + eps) over the last dimensions, then * weight; eps is the dtype's "
    .. "epsilon by default (Zhang and Sennrich 2019).",
  also = {"F"},
  example = "lt.rms_norm(lt.tensor{3., 4.}, {2})",
  fn = function(x, shape, weight, eps)
    local dims, fits = {}, #shape > 0 and #shape <= x.ndim
    for i = 1, #shape do
      dims[i] = i - 1 - #shape
      fits = fits and x:size(dims[i]) == shape[i]
    end
    args.check(fits, "rms_norm: expected last dimensions %s (normalized_shape) for argument "
      .. "'input', got shape %s", "{" .. table.concat(shape, ", ") .. "}", x.shape)
    args.check(weight == nil
        or table.concat(weight.shape, ",") == table.concat(shape, ","),
      "rms_norm: expected shape %s, normalized_shape, for argument 'weight', got %s",
      "{" .. table.concat(shape, ", ") .. "}", weight and tostring(weight.shape) or "")
    local wide = widened(x)
    eps = eps or lt.finfo((x.dtype:gsub("complex64", "float32"):gsub("complex128", "float64"))).eps
    local y = wide * ((wide * wide):mean(dims, true) + eps):rsqrt()
    if weight then y = y * weight end
    return y:to(x.dtype)
  end,
}

lt._define{
  signature = "F.local_response_norm(Tensor input, int size, float alpha = 1e-4, "
    .. "float beta = 0.75, float k = 1)",
  doc = "x / (k + alpha * m)^beta, where m is the mean of x^2 over `size` neighbouring channels of "
    .. "{N, C, ...} (Krizhevsky et al. 2012).",
  example = "F.local_response_norm(lt.randn(1, 4, 2), 2)",
  fn = function(x, size, alpha, beta, k)
    local count = channels("local_response_norm", x, 3)
    args.check(size > 0, "local_response_norm: expected an integer above 0 for argument 'size', "
      .. "got %d", size)
    if x:numel() == 0 then return x:clone() end
    local squares = x * x
    local total
    for shift = -(size // 2), (size - 1) // 2 do -- channel c gets that of c + shift
      local first, last = math.max(1, 1 + shift), math.min(count, count + shift)
      if first <= last then
        local part = squares:narrow(2, first, last - first + 1)
        local before, after = math.max(0, -shift), math.max(0, shift)
        local list = {}
        if before > 0 then list[1] = lt.zeros_like(squares:narrow(2, 1, before)) end
        list[#list + 1] = part
        if after > 0 then list[#list + 1] = lt.zeros_like(squares:narrow(2, 1, after)) end
        local moved = #list > 1 and lt.cat(list, 2) or part
        total = total and total + moved or moved
      end
    end
    return x / (total * (alpha / size) + k):pow(beta)
  end,
}
