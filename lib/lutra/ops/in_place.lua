--- Methods that change a tensor in place and have no other form.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"

-- Fills the main diagonal of x, whose sizes are equal or which is a matrix.
local function fill(x, value)
  local diagonal = x:diagonal(0, 1, 2)
  while diagonal.ndim > 1 do diagonal = diagonal:diagonal(0, 1, -1) end
  diagonal:fill_(value)
end

lt._define{
  signature = "fill_diagonal_(Tensor self, Scalar fill_value, bool wrap = false)",
  doc = "Writes a number to the main diagonal: the elements whose indices are equal. All sizes are "
    .. "equal, or self is a matrix; wrap starts the diagonal of a tall matrix anew below its end, "
    .. "after a row without it.",
  method = true,
  example = "lt.zeros(3, 3):fill_diagonal_(1)",
  fn = function(x, value, wrap)
    args.check(x.ndim >= 2,
      "fill_diagonal_: expected at least 2 dimensions for argument 'self', got shape %s",
      x.shape)
    for d = 2, x.ndim > 2 and x.ndim or 1 do
      args.check(x:size(d) == x:size(1),
        "fill_diagonal_: expected dimensions of equal size for argument 'self', got shape %s",
        x.shape)
    end
    fill(x, value)
    local step, first = x:size(2) + 1, x:size(2) + 2
    while wrap and x.ndim == 2 and first <= x:size(1) do
      fill(x:narrow(1, first, x:size(1) - first + 1), value)
      first = first + step
    end
    return x
  end,
}

-- Returns the elements of x, in order.
local function elements(x) return x:detach():reshape(-1):totable() end

-- Writes a list of elements, the results of an argument 'fn', into x.
local function store(title, x, list)
  for _, v in ipairs(list) do
    args.check(type(v) == "number" or type(v) == "boolean",
      "%s: expected a function that returns numbers for argument 'fn', got one that returned %s",
      title, args.show(v))
  end
  local values = lt.tensor(list, {dtype = x.dtype, device = x.device})
  return x:copy_(values:view(x.shape))
end

lt._define{
  signature = "apply_(Tensor self, any fn)",
  doc = "Replaces each element by fn(element), a Lua function; for tensors on the CPU. It is slow: "
    .. "an op on the whole tensor is hundreds of times faster.",
  method = true,
  example = "lt.tensor{1., 4.}:apply_(function(v) return v + 1 end)",
  fn = function(x, fn)
    args.expect(args.is_callable(fn), "apply_", "a function", "fn", fn)
    args.check(x.device == "cpu", "apply_: expected a tensor on \"cpu\" for argument 'self', got "
      .. "one on %q", x.device)
    local list = elements(x)
    for i, v in ipairs(list) do list[i] = fn(v) or false end
    return #list > 0 and store("apply_", x, list) or x
  end,
}

lt._define{
  signature = "map_(Tensor self, Tensor other, any fn)",
  doc = "Replaces each element by fn(element, that of other), which is broadcast; for tensors on "
    .. "the CPU, as apply_.",
  method = true,
  example = "lt.tensor{1., 5.}:map_(lt.tensor{3., 2.}, function(a, b) return a - b end)",
  fn = function(x, other, fn)
    args.expect(args.is_callable(fn), "map_", "a function", "fn", fn)
    args.check(x.device == "cpu" and other.device == "cpu",
      "map_: expected tensors on \"cpu\" for arguments 'self' and 'other', got %q and %q",
      x.device, other.device)
    local shape = tensors.broadcast_shape(x.shape, other.shape)
    args.check(shape and x.ndim == #shape and x.shape == other:expand(shape).shape,
      "map_: expected a tensor that can be broadcast to shape %s for argument 'other', got shape "
        .. "%s", x.shape, other.shape)
    local list, others = elements(x), elements(other:expand(x.shape))
    for i, v in ipairs(list) do list[i] = fn(v, others[i]) or false end
    return #list > 0 and store("map_", x, list) or x
  end,
}
