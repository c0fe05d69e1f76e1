--- Reductions of segments: neighbouring elements along a dim, of lengths that differ.

local lt = require "lutra"
local args = require "lutra.internal.args"
local dims = require "lutra.internal.dims"
local tensors = require "lutra.internal.tensors"

-- Returns the result of a reduction of no elements.
local function identity_of(reduce)
  if reduce == "prod" then return 1 end
  if reduce == "max" then return -lt.inf end
  return reduce == "min" and lt.inf or 0
end

local function reduced(x, reduce, dim)
  if reduce == "prod" then return x:prod(dim) end
  if reduce == "max" then return x:amax(dim) end
  if reduce == "min" then return x:amin(dim) end
  return x:sum(dim)
end

-- Returns the index of the first element (from 0) and the length of each segment.
local function bounds(lengths, offsets)
  if lengths then return lengths:cumsum(-1) - lengths, lengths end
  local n = offsets:size(-1)
  return offsets:narrow(-1, 1, n - 1) - 1, offsets:diff()
end

-- Returns the elements of the segments in a dim behind that of the segments, and a mask that is
-- false behind the end of each segment.
local function gathered(x, axis, starts, lengths)
  local longest = lengths:numel() > 0 and lengths:amax():item() or 0
  local step = lt.arange(0, longest - 1, {device = x.device})
  local inside = step:lt(lengths:unsqueeze(-1))
  local at = lt.where(inside, starts:unsqueeze(-1) + step, 0):flatten(-2)
  local shape, grown, mask = {}, {}, {table.unpack(inside.shape)}
  for d = 1, x.ndim do
    shape[d] = d <= axis and at:size(d) or x:size(d)
    grown[#grown + 1] = shape[d]
    if d == axis then
      grown[d], grown[d + 1] = lengths:size(-1), longest
    elseif d > axis then
      mask[#mask + 1] = 1
    end
  end
  for _ = at.ndim + 1, x.ndim do at = at:unsqueeze(-1) end
  local values = x:size(axis) == 0 and x:new_zeros(shape) or x:gather(axis, at:expand(shape) + 1)
  return values:reshape(grown), inside:reshape(mask)
end

lt._define{
  signature = "lt.segment_reduce(Tensor data, 'sum'|'mean'|'max'|'min'|'prod' reduce, "
    .. "Tensor? lengths = nil, Index? offsets = nil, dim axis = 1, bool unsafe = false, "
    .. "Scalar? initial = nil)",
  doc = "Reduces consecutive segments along axis, given by their lengths, or by the index of the "
    .. "first element of each and then the index behind the last segment. The dims before axis "
    .. "have segments of their own. `initial` takes part in each reduction.",
  example = 'lt.segment_reduce(lt.tensor{1., 2, 3}, "sum", {lengths = lt.tensor{2, 1}})',
  fn = function(x, reduce, lengths, offsets, axis, unsafe, initial)
    tensors.check_float("segment_reduce", "data", x)
    args.check((lengths == nil) ~= (offsets == nil),
      "segment_reduce: expected argument 'lengths' or 'offsets', got %s",
      lengths and "both" or "neither")
    axis = dims.one("segment_reduce", x, axis)
    local given = lengths or offsets
    args.check(given.ndim == axis,
      "segment_reduce: expected a tensor of %d dims for argument '%s', got %s", axis,
      lengths and "lengths" or "offsets", given.shape)
    local starts, sizes = bounds(lengths, offsets)
    if lengths and not unsafe and not x.is_meta then
      args.check(lengths:ge(0):all():item() and lengths:sum(-1):eq(x:size(axis)):all():item(),
        "segment_reduce: expected lengths whose sum is %d, the size of dim %d of argument 'data'",
        x:size(axis), axis)
    end
    local values, inside = gathered(x, axis, starts, sizes)
    local identity = identity_of(reduce)
    local kept = lt.where(inside, values, identity)
    local result
    if values:size(axis + 1) == 0 then
      result = kept:sum(axis + 1) + identity
    else
      result = reduced(kept, reduce, axis + 1)
    end
    if initial then
      if reduce == "max" then result = lt.where(result:lt(initial), initial, result) end
      if reduce == "min" then result = lt.where(result:gt(initial), initial, result) end
      if reduce == "prod" then result = result * initial end
      if reduce == "sum" or reduce == "mean" then result = result + initial end
    end
    if reduce == "mean" then
      local count = sizes
      for _ = count.ndim + 1, result.ndim do count = count:unsqueeze(-1) end
      result = result / (initial and count:clamp{min = 1} or count)
    end
    return result:to(x.dtype)
  end,
}
