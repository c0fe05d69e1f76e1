--- Shapes and numbers for distributions: lists of sizes, and arguments that are broadcast together.

local lt = require "lutra"
local args = require "lutra.internal.args"

local shapes = {}

--- Returns sizes as a shape, like x.shape.
function shapes.shape(sizes) return lt.empty(sizes, {device = "meta"}).shape end

--- Returns the sizes of several shapes, one after the other, as a list.
function shapes.join(...)
  local list = {}
  for _, sizes in ipairs{...} do
    for i = 1, #sizes do list[#list + 1] = sizes[i] end
  end
  return list
end

--- Returns the sizes from index `first` to `last` of a shape as a list.
function shapes.part(sizes, first, last)
  local list = {}
  for i = first, last do list[#list + 1] = sizes[i] end
  return list
end

--- Returns the sizes given as numbers or as one list; `title` is the function. Raises an error for
-- anything else.
function shapes.read(title, ...)
  local first = ...
  local list = type(first) == "table" and first or {...}
  for i = 1, #list do
    args.expect(math.type(list[i]) == "integer" and list[i] >= 0, title, "sizes", "sample_shape",
      list[i])
  end
  return shapes.join(list)
end

--- Returns the number of elements of a shape.
function shapes.count(sizes)
  local n = 1
  for i = 1, #sizes do n = n * sizes[i] end
  return n
end

--- Returns numbers and tensors as a list of tensors of one shape. Numbers get the dtype and device
-- of the first tensor, or the default ones.
function shapes.broadcast(values)
  local like
  for _, value in ipairs(values) do
    if lt.is_tensor(value) then
      like = value
      break
    end
  end
  local dtype = like and (like:is_floating_point() and like.dtype or lt.get_default_dtype())
    or lt.get_default_dtype()
  local tensors = {}
  for i, value in ipairs(values) do
    tensors[i] = lt.is_tensor(value) and value
      or lt.tensor(value, {dtype = dtype, device = like and like.device})
  end
  if #tensors == 1 then return tensors end
  return lt.broadcast_tensors(tensors)
end

--- Returns the sizes of `count` parts along a dim: `lengths`, or 1 each when it is nil. Raises an
-- error of `title` for another number of sizes.
function shapes.lengths(title, count, lengths)
  if not lengths then
    lengths = {}
    for i = 1, count do lengths[i] = 1 end
  end
  args.check(#lengths == count, "%s: expected %d sizes for argument 'lengths', got %d", title,
    count, #lengths)
  return lengths
end

--- Returns the sum over the last n dims.
function shapes.sum_last(x, n)
  if n == 0 then return x end
  local dims = {}
  for i = 1, n do dims[i] = -i end
  return x:sum{dim = dims}
end

--- Returns probabilities within [eps, 1 - eps], where eps is the epsilon of their dtype.
function shapes.clamp_probs(p)
  local eps = lt.finfo(p.dtype).eps
  return p:clamp(eps, 1 - eps)
end

--- Returns numbers from the uniform distribution on (0, 1), without its ends, like the tensor x.
function shapes.uniform(sizes, x)
  local info = lt.finfo(x.dtype)
  return lt.rand(sizes, {dtype = x.dtype, device = x.device}):clamp(info.tiny, 1 - info.eps / 2)
end

return shapes
