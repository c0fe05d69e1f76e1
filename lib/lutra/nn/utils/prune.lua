--- nn.utils.prune: parameters in which a mask sets elements to zero.
--
-- A pruned parameter NAME is replaced by the parameter NAME_orig and the buffer NAME_mask, from
-- which a hook before forward computes NAME = NAME_orig * NAME_mask.

local lt = require "lutra"
local args = require "lutra.internal.args"
local hooks = require "lutra.nn.module.hooks"
local norms = require "lutra.nn.utils.norms"
local strict_table = require "lutra.internal.strict_table"
local walking = require "lutra.nn.module.walking"

local prune = {}

-- ---- the amount ---------------------------------------------------------------------

-- Returns how many of n an amount is: an integer is a number, a float from 0 to 1 a fraction,
-- rounded to the nearest integer, halves to an even one.
local function count_of(title, amount, n)
  args.expect(type(amount) == "number", title, "an integer, or a float from 0 to 1,", "amount",
    amount)
  if math.type(amount) == "integer" then
    args.check(amount >= 0 and amount <= n,
      "%s: expected at most %d elements to prune for argument 'amount', got %d", title, n, amount)
    return amount
  end
  args.check(amount >= 0 and amount <= 1,
    "%s: expected a fraction from 0 to 1 for argument 'amount', got %g", title, amount)
  local exact = amount * n
  local whole = math.floor(exact)
  local rest = exact - whole
  if rest > 0.5 or rest == 0.5 and whole % 2 == 1 then whole = whole + 1 end
  return math.tointeger(whole)
end

-- ---- masks --------------------------------------------------------------------------

-- Returns the tensor of scores with zeros in `mask` for the `count` smallest of them.
local function without_smallest(scores, mask, count)
  local new = mask:clone()
  if count == 0 then return new end
  local _, indices = scores:reshape(-1):topk(count, {largest = false})
  return new:reshape(-1):index_fill(1, indices, 0):reshape(mask.shape)
end

-- Returns x with the mask of channels (a vector for dim `dim`) as a mask of its shape.
local function spread(channels, x, dim)
  local shape = {}
  for i = 1, x.ndim do shape[i] = i == dim and -1 or 1 end
  return channels:reshape(shape):expand_as(x):clone()
end

local function dim_of(title, dim, x)
  local index = dim < 0 and dim + x.ndim + 1 or dim
  args.check(x.ndim >= 2, "%s: expected a tensor of at least 2 dimensions, got shape %s", title,
    tostring(x.shape))
  args.check(index >= 1 and index <= x.ndim,
    "%s: expected a dimension from 1 to %d for argument 'dim', got %d", title, x.ndim, dim)
  return index
end

-- A method of pruning: {title, kind, compute(scores, mask) -> mask}. kind: "unstructured",
-- "structured" (with dim) or "global"; it determines what a method sees of a parameter that is
-- pruned again: the elements that are left, the channels that are left, or all.

local methods = {}

function methods.identity()
  return {kind = "unstructured", compute = function(_, mask) return mask end}
end

function methods.custom_from_mask(given)
  return {kind = "global", compute = function(_, mask) return mask * given:to(mask.dtype) end}
end

function methods.l1_unstructured(amount)
  return {kind = "unstructured", compute = function(scores, mask)
    return without_smallest(scores:abs(), mask,
      count_of("l1_unstructured", amount, scores:numel()))
  end}
end

function methods.random_unstructured(amount)
  return {kind = "unstructured", compute = function(scores, mask)
    return without_smallest(lt.rand_like(scores), mask,
      count_of("random_unstructured", amount, scores:numel()))
  end}
end

-- Returns a method that removes the channels with the smallest of score(x, dim), a vector.
local function structured(title, amount, dim, score)
  return {kind = "structured", dim = dim, title = title, compute = function(x, mask)
    local at = dim_of(title, dim, x)
    local count = count_of(title, amount, x:size(at))
    local channels = lt.ones(x:size(at), {dtype = mask.dtype, device = mask.device})
    return mask * spread(without_smallest(score(x, at), channels, count), x, at)
  end}
end

function methods.random_structured(amount, dim)
  return structured("random_structured", amount, dim, function(x, at)
    return lt.rand(x:size(at), {device = x.device})
  end)
end

function methods.ln_structured(amount, dim, n)
  return structured("ln_structured", amount, dim, function(x, at)
    local others = {}
    for i = 1, x.ndim do
      if i ~= at then others[#others + 1] = i end
    end
    return x:norm(n, others)
  end)
end

-- Returns the mask of a method for a parameter that may be pruned already: it sees what is left.
local function next_mask(method, scores, mask)
  if method.kind == "unstructured" then
    local left = mask:eq(1)
    local new = mask:clone()
    new[left] = method.compute(scores[left], mask[left])
    return new
  elseif method.kind == "structured" then
    local at = dim_of(method.title, method.dim, scores)
    local sums = mask:transpose(1, at):reshape(mask:size(at), -1):sum(2)
    local left = sums:ne(0):nonzero():reshape(-1)
    local kept = method.compute(scores:index_select(at, left), mask:index_select(at, left))
    return mask:index_copy(at, left, kept)
  end
  return method.compute(scores, mask)
end

-- ---- parameters ---------------------------------------------------------------------

local function tag_of(module, name)
  return hooks.tagged(module, "forward_pre", function(tag)
    return tag.title == "prune" and (name == nil or tag.name == name)
  end)
end

local function set_value(module, name)
  local orig = module[name .. "_orig"]
  module[name] = orig * module[name .. "_mask"]:to(orig.dtype)
end

-- Applies a method to the parameter `name`; returns the module.
local function apply(title, module, name, method, scores)
  local old = lt.nn.is_module(module) and tag_of(module, name)
  if not old then norms.tensor_of(title, module, name) end
  local value = module[name]
  args.check(scores == nil or tostring(scores.shape) == tostring(value.shape),
    "%s: expected scores of the parameter's shape %s for argument 'importance_scores', got %s",
    title, tostring(value.shape), scores and tostring(scores.shape))
  local mask = lt.no_grad(function()
    local before = old and module[name .. "_mask"] or lt.ones_like(value)
    local detached = (scores or value):detach()
    if old then return next_mask(method, detached, before:detach()) end
    return method.compute(detached, before)
  end)
  if not old then
    local state = walking.state_of(module)
    walking.unregister(state, name)
    state.fields[name] = nil
    module:register_parameter(name .. "_orig", value)
    hooks.add(state, "forward_pre", function(self) set_value(self, name) end, false, false,
      {title = "prune", name = name})
  end
  module:register_buffer(name .. "_mask", mask)
  set_value(module, name)
  return module
end

local parse_identity = args.signature("identity", "any module, string name")

--- Makes a parameter a pruned one with a mask of ones; returns the module. Raises an error when the
-- parameter does not exist.
function prune.identity(...)
  local module, name = parse_identity(...)
  return apply("identity", module, name, methods.identity())
end

local parse_random = args.signature("random_unstructured",
  "any module, string name, Scalar amount")

--- Sets random elements of a parameter to zero: `amount` of them, an integer, or a float for the
-- fraction of those that are not pruned yet; returns the module. Raises an error when the parameter
-- does not exist, and for another amount.
function prune.random_unstructured(...)
  local module, name, amount = parse_random(...)
  return apply("random_unstructured", module, name, methods.random_unstructured(amount))
end

local parse_l1 = args.signature("l1_unstructured",
  "any module, string name, Scalar amount, Tensor? importance_scores = nil")

--- Sets the elements of a parameter with the smallest absolute values, or absolute
-- importance_scores, to zero: `amount` of them, see random_unstructured; returns the module.
function prune.l1_unstructured(...)
  local module, name, amount, scores = parse_l1(...)
  return apply("l1_unstructured", module, name, methods.l1_unstructured(amount), scores)
end

local parse_random_structured = args.signature("random_structured",
  "any module, string name, Scalar amount, int dim")

--- Sets random channels of a parameter, the indices of dimension `dim`, to zero: `amount` of them,
-- see random_unstructured; returns the module.
function prune.random_structured(...)
  local module, name, amount, dim = parse_random_structured(...)
  return apply("random_structured", module, name, methods.random_structured(amount, dim))
end

local parse_ln = args.signature("ln_structured", "any module, string name, Scalar amount, "
  .. "float n, int dim, Tensor? importance_scores = nil")

--- Sets the channels of a parameter, the indices of dimension `dim`, with the smallest norms of
-- order `n` to zero: `amount` of them, see random_unstructured; returns the module. The norms are
-- those of importance_scores where they are given.
function prune.ln_structured(...)
  local module, name, amount, n, dim, scores = parse_ln(...)
  return apply("ln_structured", module, name, methods.ln_structured(amount, dim, n), scores)
end

local parse_custom = args.signature("custom_from_mask", "any module, string name, Tensor mask")

--- Sets the elements of a parameter to zero where `mask`, of its shape, is 0; returns the module.
function prune.custom_from_mask(...)
  local module, name, mask = parse_custom(...)
  local value = lt.nn.is_module(module) and module[name]
  args.check(not lt.is_tensor(value) or tostring(value.shape) == tostring(mask.shape),
    "custom_from_mask: expected a mask of the parameter's shape %s, got %s",
    value and tostring(value.shape), tostring(mask.shape))
  return apply("custom_from_mask", module, name, methods.custom_from_mask(mask))
end

local parse_global = args.signature("global_unstructured",
  "list parameters, function pruning_method, any? importance_scores = nil, Scalar? amount = nil")

--- global_unstructured({{module, name}, ...}, pruning_method, {amount, importance_scores}): sets
-- elements of several parameters to zero, chosen among all of them together. pruning_method is
-- prune.l1_unstructured or prune.random_unstructured; importance_scores a list of tensors, one for
-- each parameter. Raises an error for another method.
function prune.global_unstructured(...)
  local list, f, scores, amount = parse_global(...)
  local make = f == prune.l1_unstructured and methods.l1_unstructured
    or f == prune.random_unstructured and methods.random_unstructured
  args.check(make, "global_unstructured: expected prune.l1_unstructured or "
    .. "prune.random_unstructured for argument 'pruning_method', got %s", args.show(f))
  args.check(#list > 0, "global_unstructured: expected at least one parameter, got none")
  local values, masks = {}, {}
  for i, pair in ipairs(list) do
    local module, name = pair[1], pair[2]
    local pruned = lt.nn.is_module(module) and tag_of(module, name)
    if not pruned then norms.tensor_of("global_unstructured", module, name) end
    values[i] = (scores and scores[i] or module[name]):detach():reshape(-1)
    masks[i] = pruned and module[name .. "_mask"]:reshape(-1)
      or lt.ones_like(values[i])
  end
  local mask = lt.no_grad(function()
    return next_mask(make(amount), lt.cat(values), lt.cat(masks))
  end)
  local first = 1
  for i, pair in ipairs(list) do
    local n = values[i]:numel()
    prune.custom_from_mask(pair[1], pair[2],
      mask:narrow(1, first, n):reshape(pair[1][pair[2]].shape))
    first = first + n
  end
end

local parse_remove = args.signature("remove", "any module, string name")

--- Ends the pruning of a parameter, which keeps its zeros; returns the module. Raises an error when
-- the parameter is not pruned.
function prune.remove(...)
  local module, name = parse_remove(...)
  args.expect(lt.nn.is_module(module), "remove", "a module", "module", module)
  local tag, remove = tag_of(module, name)
  args.check(tag, "remove: expected the name of a pruned parameter of %s for argument 'name', got "
    .. "%s", module:type_name(), args.show(name))
  remove()
  local state = walking.state_of(module)
  local parameter = module[name .. "_orig"]
  parameter:set_data((parameter * module[name .. "_mask"]:to(parameter.dtype)):detach())
  for _, other in ipairs {name .. "_orig", name .. "_mask"} do
    walking.unregister(state, other)
    state.fields[other] = nil
  end
  state.fields[name] = nil
  module:register_parameter(name, parameter)
  return module
end

--- Returns whether a parameter of a module, or of one below it, is pruned.
function prune.is_pruned(module)
  args.expect(lt.nn.is_module(module), "is_pruned", "a module", "module", module)
  for each in module:modules() do
    if tag_of(each) then return true end
  end
  return false
end

return strict_table.strict(prune, "nn.utils.prune")
