--- ShardedTensor: a tensor of which each rank has a range of elements.
--
-- Elements are counted in row-major order from 1. The ranges of all ranks together are the tensor;
-- a range may be empty.

local lt = require "lutra"
local args = require "lutra.internal.args"

local ShardedTensor = {__name = "ShardedTensor"}
ShardedTensor.__index = ShardedTensor

local parse = args.signature("ShardedTensor",
  "Tensor tensor, sizes shape, int(>=1) first = 1, any? process_group = nil")

local function construct(_, ...)
  local tensor, shape, first, group = parse(...)
  local numel = 1
  for _, size in ipairs(shape) do numel = numel * size end
  args.check(tensor.ndim == 1, "ShardedTensor: expected a tensor of one dimension for argument "
    .. "'tensor', got one of shape %s", tensor.shape)
  args.check(first + tensor:numel() - 1 <= numel, "ShardedTensor: expected at most %d elements of "
    .. "a tensor of shape {%s} from element %d on, got %d", math.max(0, numel - first + 1),
    table.concat(shape, ", "), first, tensor:numel())
  return setmetatable({tensor = tensor, shape = {table.unpack(shape)}, numel = numel,
    dtype = tensor.dtype, first = first, process_group = group}, ShardedTensor)
end

setmetatable(ShardedTensor, {__call = construct, __name = "class ShardedTensor"})

--- Returns whether `x`, any value, is a ShardedTensor.
function ShardedTensor.is(x) return type(x) == "table" and getmetatable(x) == ShardedTensor end

--- x:size(dim): returns the size of a dimension of the whole tensor, all sizes without `dim`.
-- Raises an error for a dimension that does not exist.
function ShardedTensor:size(dim)
  if dim == nil then return {table.unpack(self.shape)} end
  local ndim = #self.shape
  args.check(math.type(dim) == "integer" and dim ~= 0 and math.abs(dim) <= ndim,
    "size: expected a dimension from 1 to %d (or -1 for the last) for argument 'dim', got %s", ndim,
    args.show(dim))
  return self.shape[dim < 0 and ndim + 1 + dim or dim]
end

--- x:full_tensor(): returns the whole tensor. All ranks of the process group call it.
function ShardedTensor:full_tensor()
  local dist = lt.distributed
  local group, device = self.process_group, self.tensor.device
  local ranges = {}
  dist.all_gather_object(ranges, {self.first, self.tensor:numel()}, group)
  local longest = 1
  for _, range in ipairs(ranges) do longest = math.max(longest, range[2]) end
  local padded = lt.zeros({longest}, {dtype = self.dtype, device = device})
  padded:narrow(1, 1, self.tensor:numel()):copy_(self.tensor:detach())
  local all = lt.empty({longest * #ranges}, {dtype = self.dtype, device = device})
  dist.all_gather_into_tensor(all, padded, {group = group})
  local whole = lt.empty({self.numel}, {dtype = self.dtype, device = device})
  for i, range in ipairs(ranges) do
    whole:narrow(1, range[1], range[2])
      :copy_(all:narrow(1, (i - 1) * longest + 1, range[2]))
  end
  return whole:view(self.shape)
end

function ShardedTensor:__tostring()
  return ("ShardedTensor(elements %d to %d of %s, shape = {%s})"):format(self.first,
    self.first + self.tensor:numel() - 1, self.dtype, table.concat(self.shape, ", "))
end

return ShardedTensor
