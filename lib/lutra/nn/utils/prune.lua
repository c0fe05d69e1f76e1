--- nn.utils.prune: parameters in which a mask sets elements to zero.
--
-- Each function applies a class of lutra.nn.utils.pruning_methods, which are fields here, too.

local lt = require "lutra"
local args = require "lutra.internal.args"
local methods = require "lutra.nn.utils.pruning_methods"
local norms = require "lutra.nn.utils.norms"
local strict_table = require "lutra.internal.strict_table"
local walking = require "lutra.nn.module.walking"

local prune = {}
for name, class in pairs(methods) do prune[name] = class end

local pruning_of = methods.BasePruningMethod._pruning_of

-- Applies a method to the parameter `name`, with messages of the function `title`.
local function apply(title, module, name, method, scores)
  method.called = title
  return method:_apply(title, module, name, scores)
end

local parse_identity = args.signature("identity", "any module, string name")

--- Makes a parameter a pruned one with a mask of ones; returns the module. Raises an error when the
-- parameter does not exist.
function prune.identity(...)
  local module, name = parse_identity(...)
  return apply("identity", module, name, methods.Identity())
end

local parse_random = args.signature("random_unstructured",
  "any module, string name, Scalar amount")

--- Sets random elements of a parameter to zero: `amount` of them, an integer, or a float for the
-- fraction of those that are not pruned yet; returns the module. Raises an error when the parameter
-- does not exist, and for another amount.
function prune.random_unstructured(...)
  local module, name, amount = parse_random(...)
  return apply("random_unstructured", module, name, methods.RandomUnstructured(amount))
end

local parse_l1 = args.signature("l1_unstructured",
  "any module, string name, Scalar amount, Tensor? importance_scores = nil")

--- Sets the elements of a parameter with the smallest absolute values, or absolute
-- importance_scores, to zero: `amount` of them, see random_unstructured; returns the module.
function prune.l1_unstructured(...)
  local module, name, amount, scores = parse_l1(...)
  return apply("l1_unstructured", module, name, methods.L1Unstructured(amount), scores)
end

local parse_random_structured = args.signature("random_structured",
  "any module, string name, Scalar amount, int dim")

--- Sets random channels of a parameter, the indices of dimension `dim`, to zero: `amount` of them,
-- see random_unstructured; returns the module.
function prune.random_structured(...)
  local module, name, amount, dim = parse_random_structured(...)
  return apply("random_structured", module, name, methods.RandomStructured(amount, dim))
end

local parse_ln = args.signature("ln_structured", "any module, string name, Scalar amount, "
  .. "float n, int dim, Tensor? importance_scores = nil")

--- Sets the channels of a parameter, the indices of dimension `dim`, with the smallest norms of
-- order `n` to zero: `amount` of them, see random_unstructured; returns the module. The norms are
-- those of importance_scores where they are given.
function prune.ln_structured(...)
  local module, name, amount, n, dim, scores = parse_ln(...)
  return apply("ln_structured", module, name, methods.LnStructured(amount, n, dim), scores)
end

local parse_custom = args.signature("custom_from_mask", "any module, string name, Tensor mask")

--- Sets the elements of a parameter to zero where `mask`, of its shape, is 0; returns the module.
function prune.custom_from_mask(...)
  local module, name, mask = parse_custom(...)
  local value = lt.nn.is_module(module) and module[name]
  args.check(not lt.is_tensor(value) or tostring(value.shape) == tostring(mask.shape),
    "custom_from_mask: expected a mask of the parameter's shape %s, got %s",
    value and tostring(value.shape), mask.shape)
  return apply("custom_from_mask", module, name, methods.CustomFromMask(mask))
end

local parse_global = args.signature("global_unstructured",
  "list parameters, any pruning_method, any? importance_scores = nil, Scalar? amount = nil")

-- Returns the class of a function of this file, or the class itself; nil for any other value.
local function class_of(method)
  if method == prune.l1_unstructured then return methods.L1Unstructured end
  if method == prune.random_unstructured then return methods.RandomUnstructured end
  local is_class = type(method) == "table" and method.compute_mask and method.PRUNING_TYPE
  return is_class == "unstructured" and method or nil
end

--- global_unstructured({{module, name}, ...}, pruning_method, {amount, importance_scores}): sets
-- elements of several parameters to zero, chosen among all of them together. pruning_method is
-- prune.L1Unstructured, prune.RandomUnstructured, or another class with PRUNING_TYPE =
-- "unstructured", which is called with `amount`; importance_scores a list of tensors, one for each
-- parameter. Raises an error for another method.
function prune.global_unstructured(...)
  local list, given, scores, amount = parse_global(...)
  local class = class_of(given)
  args.check(class, "global_unstructured: expected prune.L1Unstructured, prune.RandomUnstructured "
    .. "or another unstructured method for argument 'pruning_method', got %s", args.show(given))
  args.check(#list > 0, "global_unstructured: expected at least one parameter, got none")
  local values, masks = {}, {}
  for i, pair in ipairs(list) do
    local module, name = pair[1], pair[2]
    local pruned = lt.nn.is_module(module) and pruning_of(module, name)
    if not pruned then norms.tensor_of("global_unstructured", module, name) end
    values[i] = (scores and scores[i] or module[name]):detach():reshape(-1)
    masks[i] = pruned and module[name .. "_mask"]:reshape(-1)
      or lt.ones_like(values[i])
  end
  local method = class(amount)
  method.called = "global_unstructured"
  local mask = lt.no_grad(function() return method:_next_mask(lt.cat(values), lt.cat(masks)) end)
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
  local tag, remove = pruning_of(module, name)
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
    if pruning_of(each) then return true end
  end
  return false
end

return strict_table.strict(prune, "nn.utils.prune")
