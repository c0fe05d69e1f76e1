--- Views and copies in other shapes: orders of dims, pieces, diagonals.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"

lt._define{
  signature = "lt.ravel(Tensor self)",
  doc = "self as a vector: a view where the strides allow it, else a copy.",
  method = true,
  example = "lt.tensor{{1, 2}, {3, 4}}:ravel()",
  fn = function(x) return x:reshape(-1) end,
}

lt._define{
  signature = "lt.adjoint(Tensor self)",
  doc = "Transpose of the last two dims, conjugated if self is complex.",
  method = true,
  example = "lt.tensor{{1, 2}, {3, 4}}:adjoint()",
  fn = function(x) return x.mH end,
}

-- ---- in place: the geometry of the tensor changes, its memory stays

-- Defines the method `name`, which gives self the geometry of the view that `view` returns.
local function define_in_place(name, parameters, view, example)
  lt._define{
    signature = name .. "_(Tensor self" .. parameters .. ")",
    doc = name .. ", in place: self gets the sizes and strides of the view.",
    method = true,
    example = example,
    fn = function(x, ...) return core._set_view(x, view(x, ...), name .. "_") end,
  }
end

define_in_place("t", "", lt.t, "lt.zeros(2, 3):t_()")
define_in_place("transpose", ", dim dim0, dim dim1", lt.transpose,
  "lt.zeros(2, 3):transpose_(1, 2)")
define_in_place("swapdims", ", dim dim0, dim dim1", lt.transpose,
  "lt.zeros(2, 3):swapdims_(1, 2)")
define_in_place("swapaxes", ", dim axis0, dim axis1", lt.transpose,
  "lt.zeros(2, 3):swapaxes_(1, 2)")
define_in_place("squeeze", ", dims? dim", function(x, dim)
  if dim then return x:squeeze{dim = dim} end
  return x:squeeze()
end, "lt.zeros(2, 1):squeeze_()")
define_in_place("unsqueeze", ", dim dim", lt.unsqueeze, "lt.zeros(2):unsqueeze_(1)")
define_in_place("as_strided", ", ints size, ints stride, int? storage_offset = nil",
  lt.as_strided, "lt.arange(4):as_strided_({2}, {2})")

-- ---- orders of elements

lt._define{
  signature = "lt.fliplr(Tensor self)",
  doc = "Reverses the order of columns (dim 2).",
  method = true,
  example = "lt.fliplr(lt.tensor{{1, 2}, {3, 4}})",
  fn = function(x)
    args.check(x.ndim >= 2, "fliplr: expected at least 2 dims for argument 'self', got %d", x.ndim)
    return x:flip(2)
  end,
}

lt._define{
  signature = "lt.flipud(Tensor self)",
  doc = "Reverses the order of rows (dim 1).",
  method = true,
  example = "lt.flipud(lt.tensor{{1, 2}, {3, 4}})",
  fn = function(x)
    args.check(x.ndim >= 1, "flipud: expected at least 1 dim for argument 'self', got 0")
    return x:flip(1)
  end,
}

lt._define{
  signature = "lt.rot90(Tensor self, int k = 1, dims dims = {1, 2})",
  doc = "Rotates by 90 degrees k times in the plane of two dims, from the first towards the "
    .. "second.",
  method = true,
  example = "lt.rot90(lt.tensor{{1, 2}, {3, 4}})",
  fn = function(x, k, dims)
    args.check(#dims == 2, "rot90: expected two dims for argument 'dims', got %d", #dims)
    args.check(x.ndim >= 2, "rot90: expected at least 2 dims for argument 'self', got %d", x.ndim)
    local a, b = dims[1], dims[2]
    args.check(a ~= b and math.abs(a - b) ~= x.ndim + (a * b < 0 and 1 or 0),
      "rot90: expected two different dims for argument 'dims', got %d and %d", a, b)
    k = k % 4
    if k == 0 then return x:clone() end
    if k == 2 then return x:flip{a, b} end
    return x:flip(k == 1 and b or a):transpose(a, b)
  end,
}

-- ---- broadcasting, repetition

-- Broadcasts `size`, a list, into `shape`, a list of sizes from the last dim on.
local function broadcast(shape, size)
  local count = #size
  for d = 1, count do
    local n, old = size[count - d + 1], shape[d]
    if math.type(n) ~= "integer" or n < 0 then
      args.fail("broadcast_shapes: expected sizes (integers of at least 0), got %s", args.show(n))
    end
    if not old or old == 1 then
      shape[d] = n
    elseif n ~= 1 and n ~= old then
      args.fail("broadcast_shapes: cannot broadcast sizes %d and %d in dim %d from the end", old, n,
        d)
    end
  end
end

-- Returns the elements of the list from the last one on.
local function reversed(list)
  local out, n = {}, #list
  for i = 1, n do out[i] = list[n - i + 1] end
  return out
end

lt._define{
  signature = "lt.broadcast_tensors(Tensor[]... tensors) -> Tensor[]",
  doc = "Views of the tensors, expanded to their common shape.",
  example = "lt.broadcast_tensors(lt.zeros(2, 1), lt.zeros(3))",
  fn = function(tensors)
    local back, out = {}, {}
    for i = 1, rawlen(tensors) do broadcast(back, tensors[i].shape) end
    local shape = reversed(back)
    for i = 1, rawlen(tensors) do out[i] = tensors[i]:expand(shape) end
    return out
  end,
}

lt._define{
  signature = "lt.broadcast_shapes(list... shapes) -> nil",
  doc = "The shape to which tensors of these shapes are broadcast.",
  example = "lt.broadcast_shapes({2, 1}, {3})",
  fn = function(shapes)
    local back = {}
    if type(shapes[1]) == "number" and #shapes > 1 then shapes = {shapes} end
    for i, size in ipairs(shapes) do
      local list = type(size) == "number" and {size} or size
      args.expect(type(list) == "table", "broadcast_shapes", "a list of sizes",
        ("shapes[%d]"):format(i), size)
      broadcast(back, list)
    end
    return setmetatable(reversed(back), getmetatable(lt.empty(0).shape))
  end,
}

lt._define{
  signature = "repeat(Tensor self, sizes repeats)",
  doc = "Repeats the tensor along each dim; `repeats` has a number for each dim of the result.",
  method = true,
  example = 'lt.tensor{1, 2}["repeat"](lt.tensor{1, 2}, 2, 2)',
  fn = function(x, repeats)
    args.check(#repeats >= x.ndim,
      "repeat: expected at least %d numbers, one for each dim of self, for argument 'repeats', "
        .. "got %d", x.ndim, #repeats)
    return x:tile(repeats)
  end,
}

lt._define{
  signature = "lt.sum_to_size(Tensor self, sizes size)",
  doc = "Sums over the dims that broadcasting a tensor of the given size to self's shape adds.",
  method = true,
  example = "lt.ones(2, 3):sum_to_size(1, 3)",
  fn = function(x, size)
    local lead, dims = x.ndim - #size, {}
    for d = 1, x.ndim do
      local n, own = size[d - lead], x:size(d)
      args.check(lead >= 0 and (d <= lead or n == own or n == 1),
        "sum_to_size: cannot sum %s to %s: the sizes of dim %d differ", x.shape,
        "{" .. table.concat(size, ", ") .. "}", d)
      if d <= lead or n == 1 and own ~= 1 then dims[#dims + 1] = d end
    end
    args.check(lead >= 0, "sum_to_size: cannot sum %s to %d dims: it has fewer",
      x.shape, #size)
    if #size == 0 then return x:sum() end
    if #dims == 0 then return x:view(x.shape) end
    return x:sum{dim = dims, keepdim = true}:reshape(size)
  end,
}

-- ---- pieces

-- Returns the pieces that start at the (1-based, clipped) indices in `starts`.
local function pieces_at(x, starts, dim)
  local out, size, from = {}, x:size(dim), 0
  for i = 1, #starts + 1 do
    local to = size
    if starts[i] then
      args.check(starts[i] ~= 0, "tensor_split: expected 1-based indices, got 0")
      to = starts[i] > 0 and starts[i] - 1 or math.max(starts[i] + size, 0)
    end
    to = math.min(to, size)
    out[i] = x:narrow(dim, math.min(from, to) + 1, math.max(to - from, 0))
    from = to
  end
  return out
end

local MOST_PIECES = 1 << 24 -- each is a tensor

-- Returns n pieces, of which the first ones have one element more where n does not divide the size.
local function equal_pieces(x, n, dim, name)
  args.expect(n > 0 and n <= MOST_PIECES, name, ("an integer from 1 to %d"):format(MOST_PIECES),
    "indices_or_sections", n)
  local sizes, size = {}, x:size(dim)
  for i = 1, n do sizes[i] = size // n + (i <= size % n and 1 or 0) end
  return x:split(sizes, dim)
end

local function tensor_split(x, where, dim, name)
  args.check(x.ndim > 0, "%s: expected at least 1 dim for argument 'self', got 0", name)
  if lt.is_tensor(where) then
    args.check(where.ndim <= 1 and where.dtype == "int64",
      "%s: expected an int64 tensor of at most 1 dim for argument 'indices_or_sections', got %s",
      name, args.show(where))
    where = where.ndim == 0 and where:item() or where:tolist()
  end
  if type(where) == "number" then return equal_pieces(x, where, dim, name) end
  return pieces_at(x, where, dim)
end

lt._define{
  signature = "lt.tensor_split(Tensor self, int|ints|Tensor indices_or_sections, dim dim = 1) "
    .. "-> Tensor[]",
  doc = "Splits along dim into a number of pieces whose sizes differ by at most 1, or into pieces "
    .. "that start at the given indices.",
  method = true,
  example = "lt.arange(7):tensor_split{{3, 6}}",
  fn = function(x, where, dim) return tensor_split(x, where, dim, "tensor_split") end,
}

-- Defines hsplit, vsplit or dsplit.
local function define_split(name, least, words, dim_of)
  lt._define{
    signature = "lt." .. name .. "(Tensor self, int|ints indices_or_sections) -> Tensor[]",
    doc = "Splits " .. words .. " into a number of equal pieces, or into pieces that start at the "
      .. "given indices.",
    method = true,
    example = ("lt.zeros(2, 2, 2):%s(2)"):format(name),
    fn = function(x, where)
      args.check(x.ndim >= least, "%s: expected at least %d dim%s for argument 'self', got %d",
        name, least, least == 1 and "" or "s", x.ndim)
      local dim = dim_of(x)
      args.check(type(where) ~= "number" or where > 0 and x:size(dim) % where == 0,
        "%s: expected a divisor of %d, the size of dim %d, for argument "
          .. "'indices_or_sections', got %s", name, x:size(dim), dim, args.show(where))
      return tensor_split(x, where, dim, name)
    end,
  }
end

define_split("hsplit", 1, "columns (dim 2, or the elements of a vector)",
  function(x) return x.ndim == 1 and 1 or 2 end)
define_split("vsplit", 2, "rows (dim 1)", function() return 1 end)
define_split("dsplit", 3, "dim 3", function() return 3 end)

lt._define{
  signature = "lt.split_with_sizes(Tensor self, ints split_sizes, dim dim = 1) -> Tensor[]",
  doc = "Splits along dim into pieces of the given sizes.",
  method = true,
  example = "lt.arange(5):split_with_sizes{{2, 3}}",
  fn = function(x, sizes, dim)
    if #sizes ~= 1 then return x:split(sizes, dim) end
    args.check(x.ndim > 0 and sizes[1] == x:size(dim),
      "split_with_sizes: expected sizes that add up to the size of the dim, got %d", sizes[1])
    return {x:narrow(dim, 1, sizes[1])}
  end,
}

-- Returns x[{{}, ..., {start, stop, step}}] along dim.
local function slice(x, dim, start, stop, step, name)
  args.check(x.ndim > 0, "%s: expected at least 1 dim for argument 'self', got 0", name)
  args.check(start ~= 0, "%s: expected a 1-based index for argument 'start', got 0", name)
  args.expect(step > 0, name, "an integer of at least 1", "step", step)
  local key = {}
  dim = dim < 0 and dim + x.ndim + 1 or dim
  args.check(dim >= 1 and dim <= x.ndim, "%s: expected a dim from 1 to %d for argument 'dim'", name,
    x.ndim)
  for d = 1, dim - 1 do key[d] = {} end
  key[dim] = {start or 1, stop or -1, step}
  return x[key]
end

local RANGE = "dim dim = 1, int? start = nil, int? stop = nil, int step = 1"

lt._define{
  signature = "lt.slice(Tensor self, " .. RANGE .. ")",
  doc = "A view of the indices from start to stop (both included) of dim, step apart.",
  method = true,
  example = "lt.arange(6):slice(1, 2, 5, 3)",
  fn = function(x, dim, start, stop, step) return slice(x, dim, start, stop, step, "slice") end,
}

lt._define{
  signature = "lt.slice_scatter(Tensor self, Tensor src, " .. RANGE .. ")",
  doc = "A copy of self in which slice(dim, start, stop, step) is replaced by src.",
  method = true,
  example = "lt.zeros(4):slice_scatter(lt.ones(2), 1, 2, 3)",
  fn = function(x, src, dim, start, stop, step)
    local out = x:clone()
    slice(out, dim, start, stop, step, "slice_scatter"):copy_(src)
    return out
  end,
}

-- Returns a copy of x in which the view that `part` returns is replaced by src.
local function replaced(name, x, src, part)
  local out = x:clone()
  local view = part(out)
  args.check(view.shape == src.shape,
    "%s: expected shape %s, that of the part to replace, for argument 'src', got %s", name,
    view.shape, src.shape)
  view:copy_(src)
  return out
end

lt._define{
  signature = "lt.select_scatter(Tensor self, Tensor src, dim dim, position index)",
  doc = "A copy of self in which select(dim, index) is replaced by src.",
  method = true,
  example = "lt.zeros(2, 2):select_scatter(lt.ones(2), 1, 2)",
  fn = function(x, src, dim, index)
    return replaced("select_scatter", x, src, function(out) return out:select(dim, index) end)
  end,
}

lt._define{
  signature = "lt.diagonal_scatter(Tensor self, Tensor src, int offset = 0, dim dim1 = 1, "
    .. "dim dim2 = 2)",
  doc = "A copy of self in which diagonal(offset, dim1, dim2) is replaced by src.",
  method = true,
  example = "lt.zeros(2, 2):diagonal_scatter(lt.ones(2))",
  fn = function(x, src, offset, dim1, dim2)
    return replaced("diagonal_scatter", x, src,
      function(out) return out:diagonal(offset, dim1, dim2) end)
  end,
}

lt._define{
  signature = "lt.as_strided_scatter(Tensor self, Tensor src, ints size, ints stride, "
    .. "int? storage_offset = nil)",
  doc = "A copy of self in which as_strided(size, stride, storage_offset) is replaced by src.",
  method = true,
  example = "lt.zeros(4):as_strided_scatter(lt.ones(2), {2}, {2})",
  fn = function(x, src, size, stride, offset)
    return replaced("as_strided_scatter", x, src,
      function(out) return out:as_strided(size, stride, offset) end)
  end,
}

-- ---- diagonals

lt._define{
  signature = "lt.diagflat(Tensor self, int offset = 0)",
  doc = "A matrix with the elements of self on a diagonal; 0 elsewhere.",
  method = true,
  example = "lt.diagflat(lt.tensor{{1, 2}, {3, 4}})",
  fn = function(x, offset) return x:reshape(-1):diag(offset) end,
}
