--- Creation: tensors of given strides, of indices, of combinations, and from other objects.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"

local MAX_DIMS = require("lutra.internal.dims").MOST
local LIKE = "dtype? dtype = nil, device? device = nil, bool requires_grad = false"

lt._define{
  signature = "lt.scalar_tensor(Scalar s, " .. LIKE .. ")",
  doc = "A 0-d tensor with the value s, of the default dtype unless dtype is given.",
  example = "lt.scalar_tensor(3)",
  fn = function(s, dtype, device, requires_grad)
    dtype = dtype or lt.get_default_dtype()
    if dtype == "uint8" and math.type(s) == "integer" then s = s & 0xff end
    return lt.full({}, s, {dtype = dtype, device = device, requires_grad = requires_grad})
  end,
}

-- ---- strides

-- Returns the number of elements that a geometry covers.
local function extent(size, stride)
  local last = 1
  for i, n in ipairs(size) do
    if n == 0 then return 0 end
    last = last + (n - 1) * stride[i]
  end
  return last
end

local function empty_strided(name, size, stride, options)
  args.check(#size == #stride, "%s: expected one stride for each size (%d), got %d", name, #size,
    #stride)
  local requires_grad = options.requires_grad
  options.requires_grad = nil
  local x = lt.empty({extent(size, stride)}, options):as_strided(size, stride, 0)
  return requires_grad and x:requires_grad_() or x
end

lt._define{
  signature = "lt.empty_strided(ints size, ints stride, " .. LIKE .. ")",
  doc = "Uninitialized tensor with these sizes and strides, in elements.",
  example = "lt.empty_strided({2, 3}, {1, 2}):stride()",
  fn = function(size, stride, dtype, device, requires_grad)
    return empty_strided("empty_strided", size, stride,
      {dtype = dtype, device = device, requires_grad = requires_grad})
  end,
}

lt._define{
  signature = "new_empty_strided(Tensor self, ints size, ints stride, " .. LIKE .. ")",
  doc = "empty_strided of self's dtype and device.",
  method = true,
  example = "lt.zeros(2):new_empty_strided({2, 3}, {1, 2}):stride()",
  fn = function(x, size, stride, dtype, device, requires_grad)
    return empty_strided("new_empty_strided", size, stride,
      {dtype = dtype or x.dtype, device = device or x.device, requires_grad = requires_grad})
  end,
}

lt._define{
  signature = "lt.empty_permuted(ints size, dims physical_layout, " .. LIKE .. ")",
  doc = "Uninitialized tensor that is dense in memory, with its dims there in the order "
    .. "physical_layout, the outermost first.",
  example = "lt.empty_permuted({2, 3, 4}, {1, 3, 2}):stride()",
  fn = function(size, layout, dtype, device, requires_grad)
    args.check(#size == #layout,
      "empty_permuted: expected each of the %d dims once for argument 'physical_layout', got %d",
      #size, #layout)
    local outer, back = {}, {}
    for i, d in ipairs(layout) do
      if d < 0 then d = d + #size + 1 end
      args.check(size[d] and not back[d],
        "empty_permuted: expected each of the %d dims once for argument 'physical_layout'", #size)
      outer[i], back[d] = size[d], i
    end
    local x = lt.empty(outer, {dtype = dtype, device = device}):permute(back)
    return requires_grad and x:requires_grad_() or x
  end,
}

-- ---- grids and combinations

-- Returns the grids of vectors: grid i varies along dim i.
local function grids(tensors)
  local shape, out = {}, {}
  for i, t in ipairs(tensors) do
    args.check(t.ndim <= 1, "meshgrid: expected at most 1 dim for argument 'tensors[%d]', got %d",
      i, t.ndim)
    args.check(t.dtype == tensors[1].dtype,
      "meshgrid: expected dtype %q, that of the first tensor, for argument 'tensors[%d]', got %q",
      tensors[1].dtype, i, t.dtype)
    shape[i] = t:numel()
  end
  for i, t in ipairs(tensors) do
    local own = {}
    for d = 1, #tensors do own[d] = d == i and shape[i] or 1 end
    out[i] = t:reshape(own):expand(shape)
  end
  return out
end

lt._define{
  signature = "lt.meshgrid(Tensor[]... tensors, 'ij'|'xy'? indexing = nil) -> Tensor[]",
  doc = "Grids of the coordinates in vectors: result i has the values of tensor i along dim i. "
    .. "With indexing = \"xy\" the first tensor varies along dim 2 and the second along dim 1.",
  example = "lt.meshgrid(lt.tensor{1, 2}, lt.tensor{3, 4, 5})",
  fn = function(tensors, indexing)
    args.check(#tensors > 0, "meshgrid: expected at least one tensor for argument 'tensors'")
    if indexing ~= "xy" or #tensors < 2 then return grids(tensors) end
    local list = table.move(tensors, 1, #tensors, 1, {})
    list[1], list[2] = list[2], list[1]
    local out = grids(list)
    out[1], out[2] = out[2], out[1]
    return out
  end,
}

lt._define{
  signature = "lt.cartesian_prod(Tensor[]... tensors)",
  doc = "All combinations of one element of each vector, one in each row.",
  example = "lt.cartesian_prod(lt.tensor{1, 2}, lt.tensor{3, 4})",
  fn = function(tensors)
    args.check(#tensors > 0, "cartesian_prod: expected at least one tensor for argument 'tensors'")
    for i, t in ipairs(tensors) do
      args.check(t.ndim == 1,
        "cartesian_prod: expected a vector for argument 'tensors[%d]', got %d dims", i, t.ndim)
    end
    if #tensors == 1 then return tensors[1] end
    local columns = grids(tensors)
    for i, t in ipairs(columns) do columns[i] = t:reshape(-1) end
    return lt.stack(columns, 2)
  end,
}

lt._define{
  signature = "lt.combinations(Tensor self, int r = 2, bool with_replacement = false)",
  doc = "All combinations of r elements of a vector, in their order, one in each row.",
  example = "lt.combinations(lt.tensor{1, 2, 3})",
  fn = function(x, r, with_replacement)
    args.check(x.ndim == 1, "combinations: expected a vector for argument 'self', got %d dims",
      x.ndim)
    args.expect(r >= 0, "combinations", "an integer of at least 0", "r", r)
    local n = x:numel()
    if r == 0 then return x:new_empty(0) end
    if n == 0 or (r > n and not with_replacement) then return x:new_empty(0, r) end
    args.check(r <= MAX_DIMS, "combinations: expected at most %d for argument 'r', got %d",
      MAX_DIMS, r) -- the dims of a grid
    local list, at = {}, {}
    local index = lt.arange(1, n, {device = x.device, dtype = "int64"})
    for i = 1, r do list[i], at[i] = x, index end
    local columns, places = grids(list), grids(at)
    local keep = lt.ones(columns[1].shape, {dtype = "bool", device = x.device})
    for i = 1, r - 1 do
      local ordered = with_replacement and places[i]:le(places[i + 1])
        or places[i]:lt(places[i + 1])
      keep = keep:logical_and(ordered)
    end
    for i, t in ipairs(columns) do columns[i] = t:masked_select(keep) end
    return lt.stack(columns, 2)
  end,
}

-- ---- from other objects, other sizes

lt._define{
  signature = "lt.asarray(data obj, dtype? dtype = nil, device? device = nil, bool? copy = nil, "
    .. "bool requires_grad = false)",
  doc = "A tensor of numbers, nested tables or a tensor. It shares a tensor's memory unless dtype "
    .. "or device differ or copy is true; copy = false raises an error where it must copy.",
  example = "lt.asarray{{1, 2}, {3, 4}}",
  fn = function(obj, dtype, device, copy, requires_grad)
    local x
    if lt.is_tensor(obj) then
      x = obj:to{dtype = dtype or obj.dtype, device = device or obj.device, copy = copy == true}
      args.check(copy ~= false or x == obj,
        "asarray: cannot convert without a copy: dtype or device differ")
      x = x:detach()
    else
      args.check(copy ~= false, "asarray: cannot read a table or a number without a copy")
      x = lt.tensor(obj, {dtype = dtype, device = device})
    end
    return requires_grad and x:requires_grad_() or x
  end,
}

-- Returns x after its geometry has become contiguous with these sizes.
local function resize(x, size, name)
  args.check(not x.requires_grad, "%s: cannot resize a tensor that requires grad\nhint: %s", name,
    "x:detach()")
  local n, stride = 1, {}
  for i = #size, 1, -1 do
    args.check(size[i] >= 0, "%s: expected sizes of at least 0, got %d", name, size[i])
    stride[i] = math.max(n, 1)
    n = n * size[i]
  end
  local ok, view = pcall(x.as_strided, x, size, stride, x:storage_offset())
  if ok then return core._set_view(x, view, name) end
  local old = x:reshape(-1)
  local whole = lt.empty(n, {dtype = x.dtype, device = x.device})
  whole:narrow(1, 1, old:numel()):copy_(old)
  return x:set_data(whole:view(size))
end

lt._define{
  signature = "resize_(Tensor self, sizes size)",
  doc = "Changes self's sizes. Elements keep their order in memory; new ones are uninitialized. "
    .. "Views of self stay as they are.",
  method = true,
  example = "lt.arange(4):resize_(2, 2)",
  fn = function(x, size) return resize(x, size, "resize_") end,
}

lt._define{
  signature = "resize_as_(Tensor self, Tensor~ other)",
  doc = "resize_(other.shape).",
  method = true,
  example = "lt.arange(4):resize_as_(lt.zeros(2, 2))",
  fn = function(x, other)
    return resize(x, table.move(other.shape, 1, other.ndim, 1, {}), "resize_as_")
  end,
}
