--- BasePruningMethod: the base class of the methods of pruning, and their use for parameters.
--
-- A pruned parameter NAME is replaced by the parameter NAME_orig and the buffer NAME_mask, from
-- which a hook before forward computes NAME = NAME_orig * NAME_mask.

local lt = require "lutra"
local args = require "lutra.internal.args"
local hooks = require "lutra.nn.module.hooks"
local norms = require "lutra.nn.utils.norms"
local walking = require "lutra.nn.module.walking"

--- prune.BasePruningMethod: the base class of methods of pruning.
--
--     local Halved = prune.BasePruningMethod:extend "Halved"
--     Halved.PRUNING_TYPE = "unstructured"
--     function Halved:compute_mask(t, default_mask)
--       local mask = default_mask:clone()
--       mask:view(-1)["::2"] = 0
--       return mask
--     end
--     Halved.apply(net.fc, "weight")
--
-- A class may define init(...). What compute_mask gets of a parameter that is pruned already
-- depends on PRUNING_TYPE: "unstructured", the elements that are left, as a vector; "structured",
-- the channels that are left along self.dim; "global", all elements.
local BasePruningMethod = require "lutra.internal.class"("BasePruningMethod",
  "nn.utils.prune.BasePruningMethod")
BasePruningMethod.PRUNING_TYPE = "unstructured"

--- Initializes a method without arguments.
function BasePruningMethod.init() end

--- Returns the name of the method in messages.
function BasePruningMethod:_title() return self.called or self.__name end

--- Returns the mask for a tensor `t`, of its shape: 0 where an element is pruned, and where
-- default_mask is 0. Every class defines its own.
function BasePruningMethod:compute_mask()
  args.fail("%s: cannot prune: the class has no method compute_mask", self:_title())
end

--- method:prune(t, default_mask, importance_scores): returns the tensor `t` with the pruned
-- elements set to zero. default_mask is ones by default; importance_scores, of the shape of t, is
-- what compute_mask gets instead of t.
function BasePruningMethod:prune(t, default_mask, importance_scores)
  args.expect(lt.is_tensor(t), self:_title(), "a tensor", "t", t)
  local mask = default_mask or lt.ones_like(t)
  return t * self:compute_mask(importance_scores or t, mask)
end

--- Returns the index of dimension `dim`, which may be negative, of a tensor. Raises an error of
-- `title` for a vector, and for another dimension.
function BasePruningMethod._dim_of(title, dim, x)
  local index = dim < 0 and dim + x.ndim + 1 or dim
  args.check(x.ndim >= 2, "%s: expected a tensor of at least 2 dimensions, got shape %s", title,
    x.shape)
  args.check(index >= 1 and index <= x.ndim,
    "%s: expected a dimension from 1 to %d for argument 'dim', got %d", title, x.ndim, dim)
  return index
end

--- Returns the next mask of a parameter with this mask; compute_mask sees what is left of it.
function BasePruningMethod:_next_mask(scores, mask)
  if self.PRUNING_TYPE == "unstructured" then
    local left = mask:eq(1)
    local new = mask:clone()
    new[left] = self:compute_mask(scores[left], mask[left])
    return new
  elseif self.PRUNING_TYPE == "structured" then
    local at = BasePruningMethod._dim_of(self:_title(), self.dim, scores)
    local sums = mask:transpose(1, at):reshape(mask:size(at), -1):sum(2)
    local left = sums:ne(0):nonzero():reshape(-1)
    local kept = self:compute_mask(scores:index_select(at, left), mask:index_select(at, left))
    return mask:index_copy(at, left, kept)
  end
  return self:compute_mask(scores, mask)
end

-- ---- parameters ---------------------------------------------------------------------

--- Returns what records the pruning of the parameter `name` of a module, or of any, and a function
-- that ends it; nil when the parameter is not pruned.
function BasePruningMethod._pruning_of(module, name)
  return hooks.tagged(module, "forward_pre", function(tag)
    return tag.title == "prune" and (name == nil or tag.name == name)
  end)
end

local function set_value(module, name)
  local orig = module[name .. "_orig"]
  module[name] = orig * module[name .. "_mask"]:to(orig.dtype)
end

--- Prunes the parameter `name` of a module; returns the module. `scores`, a tensor of its shape, is
-- what compute_mask gets instead of the parameter. Raises an error of `title` when there is no such
-- parameter, and for scores of another shape.
function BasePruningMethod:_apply(title, module, name, scores)
  local old = lt.nn.is_module(module) and BasePruningMethod._pruning_of(module, name)
  if not old then norms.tensor_of(title, module, name) end
  local value = module[name]
  args.check(scores == nil or tostring(scores.shape) == tostring(value.shape),
    "%s: expected scores of the parameter's shape %s for argument 'importance_scores', got %s",
    title, value.shape, scores and tostring(scores.shape))
  local mask = lt.no_grad(function()
    local before = old and module[name .. "_mask"] or lt.ones_like(value)
    local detached = (scores or value):detach()
    if old then return self:_next_mask(detached, before:detach()) end
    return self:compute_mask(detached, before)
  end)
  if not old then
    local state = walking.state_of(module)
    walking.unregister(state, name)
    state.fields[name] = nil
    module:register_parameter(name .. "_orig", value)
    hooks.add(state, "forward_pre", function(each) set_value(each, name) end, false, false,
      {title = "prune", name = name})
  end
  module:register_buffer(name .. "_mask", mask)
  set_value(module, name)
  return module
end

-- Returns the arguments without the option importance_scores of a trailing table, and its value.
local function without_scores(...)
  local given = table.pack(...)
  local options = given[given.n]
  if not args.is_plain(options) or options.importance_scores == nil then return given, nil end
  local rest = {}
  for key, value in pairs(options) do rest[key] = value end
  rest.importance_scores = nil
  given[given.n] = next(rest) ~= nil and rest or nil
  if next(rest) == nil then given.n = given.n - 1 end
  return given, options.importance_scores
end

local extend = BasePruningMethod.extend

--- Returns a subclass. Its function apply(module, name, ..., {importance_scores}) prunes a
-- parameter of a module by the method that the class makes of the other arguments; it returns the
-- method.
function BasePruningMethod:extend(name)
  local class = extend(self, name)

  function class.apply(...)
    if rawequal((...), class) then return class.apply(select(2, ...)) end -- Class:apply(...)
    local module, parameter = ...
    local given, scores = without_scores(select(3, ...))
    local method = class(table.unpack(given, 1, given.n))
    method:_apply(name, module, parameter, scores)
    return method
  end

  return class
end

return BasePruningMethod
