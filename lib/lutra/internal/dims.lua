--- Dims and numbers of elements, for composites: what infer functions do for kernels.

local args = require "lutra.internal.args"

local dims = {}

dims.MOST = 16 -- dims of a tensor

--- Returns `dim` as a number from 1 on; raises an error of the function `title` when it is out of
-- range. A tensor without dims counts as having one.
function dims.one(title, x, dim)
  local ndim = x.ndim
  local count = ndim > 0 and ndim or 1
  if dim < -count or dim > count or dim == 0 then
    args.fail("%s: cannot use dim %d: it is out of range, the tensor has %d dimensions", title, dim,
      ndim)
  end
  return dim < 0 and dim + count + 1 or dim
end

--- Returns a list of dims from 1 on, in ascending order: of a dim, a list of them, or, for nil and
-- an empty list, all. Raises an error of `title` for a dim that is out of range or listed twice.
function dims.list(title, x, dim)
  if type(dim) == "number" then dim = {dim} end
  local list, seen = {}, {}
  if dim == nil or #dim == 0 then
    for d = 1, x.ndim do list[d] = d end
    return list
  end
  for i = 1, #dim do
    args.check(math.type(dim[i]) == "integer", "%s: expected integers for argument 'dim', got %s",
      title, args.show(dim[i]))
    local d = dims.one(title, x, dim[i])
    args.check(not seen[d], "%s: expected each dim once, got dim %d twice", title, d)
    seen[d] = true
    list[i] = d
  end
  table.sort(list)
  return list
end

--- Returns the number of elements that a reduction over the dims combines.
function dims.count(x, list)
  local n = 1
  for _, d in ipairs(list) do n = n * (x.ndim == 0 and 1 or x:size(d)) end
  return n
end

--- Returns the size of a dim; 1 for a tensor without dims.
function dims.size(x, dim) return x.ndim == 0 and 1 or x:size(dim) end

--- Returns a list as long as the tensor has dims, with `value` at `dim` and `rest` elsewhere.
function dims.at(x, dim, value, rest)
  local list = {}
  for d = 1, x.ndim do list[d] = d == dim and value or rest end
  return list
end

--- Returns a view of the elements from `first` to `last` of a dim.
function dims.range(x, dim, first, last) return x:narrow(dim, first, last - first + 1) end

return dims
