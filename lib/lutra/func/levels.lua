--- Inputs and results of function transforms (lt.func, lt.autograd.functional).
--
-- A transform differentiates with respect to aliases of its inputs. A result of a transform is
-- part of the graph exactly when it depends on a tensor that requires grad and that the transform
-- has not created itself, so that transforms nest, and gradients of results can be computed.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local batching = require "lutra.func.batching"
local scopes = require "lutra.internal.scopes"
local tree = require "lutra.internal.tree"

local levels = {}

--- Returns the tensor as an input of a transform: a leaf that requires grad, or, of a tensor that
-- requires grad, an alias in its graph. Raises an error of `title` for a dtype without gradient.
function levels.input(title, t)
  args.check(t:is_floating_point() or t:is_complex(),
    "%s: expected a floating-point or complex tensor for the input, got dtype %s\n"
    .. "hint: x:float()", title, t.dtype)
  t = batching.input(t)
  if t.requires_grad and core.is_grad_enabled() then return t:view_as(t) end
  return t:detach():requires_grad_()
end

--- Returns the tree with the tensors in place of which a transform differentiates, and their list.
function levels.inputs(title, value)
  local list = {}
  local copy = tree.map(value, function(t, k)
    list[k] = levels.input(title, t)
    return list[k]
  end)
  return copy, list
end

local function contains(list, tensor)
  for _, t in ipairs(list) do
    if t == tensor then return true end
  end
  return false
end

-- Returns the tensors with data of tensors inside vmap.
local function bottoms(list)
  local result = {}
  for i, t in ipairs(list) do result[i] = batching.bottom(t) end
  return result
end

--- Returns whether the graphs of the outputs lead to a leaf other than those in `inputs`.
function levels.reaches_others(outputs, inputs)
  outputs, inputs = bottoms(outputs), bottoms(inputs)
  for _, output in ipairs(outputs) do
    if output.requires_grad and output.is_leaf and not contains(inputs, output) then return true end
    for _, node in ipairs((core._graph(output, math.maxinteger))) do
      for _, input in ipairs(node.inputs) do
        if input.leaf and not contains(inputs, input.leaf) then return true end
      end
    end
  end
  return false
end

--- Returns the gradients of the outputs with respect to the inputs, zeros for inputs that are not
-- used. A list `grads` has the gradients of the outputs (default: ones). With `create` the
-- gradients are differentiable.
function levels.gradients(outputs, inputs, grads, create, retain)
  local used, given = {}, {}
  for i, output in ipairs(outputs) do
    if output.requires_grad then
      used[#used + 1] = output
      given[#given + 1] = grads and grads[i] or core._ops.ones_like(output)
    end
  end
  local list = {}
  if #used > 0 then
    list = core._grad(used, inputs, {grad_outputs = given, create_graph = create,
      retain_graph = create or retain or false, allow_unused = true})
  end
  local result = {}
  for i, input in ipairs(inputs) do
    result[i] = list[i] or core._ops.zeros_like(input):detach()
  end
  return result
end

--- Calls f(...) with gradients on. Results of a transform under no_grad are detached by
-- levels.finish.
function levels.call(f, ...) return scopes.enable_grad(f, ...) end

--- Returns the tree of results as the transform returns it: detached when they depend on its own
-- inputs only (`free` is true) or when gradients are off.
function levels.finish(value, free)
  if not free and core.is_grad_enabled() then return value end
  return tree.map(value, function(t) return t.requires_grad and t:detach() or t end)
end

--- Returns the results of a call as one value: the result itself, or the list of several results.
function levels.packed(...)
  if select("#", ...) == 1 then return (...) end
  return {...}
end

--- Returns the options of a call, and its other arguments as a packed list: options are a last
-- argument that is a table of at least one name, all of which are in `names`.
function levels.options(names, ...)
  local arguments = table.pack(...)
  local last = arguments[arguments.n]
  if not args.is_plain(last) or next(last) == nil then return {}, arguments end
  for key in pairs(last) do
    if not names[key] then return {}, arguments end
  end
  arguments[arguments.n] = nil
  arguments.n = arguments.n - 1
  return last, arguments
end

--- Raises an error unless the value is a tensor with one element.
function levels.check_scalar(title, value)
  args.check(core.is_tensor(value), "%s: expected the function to return a tensor, got %s", title,
    args.show(value))
  args.check(value.ndim == 0, "%s: expected the function to return a 0-d tensor, got %s\n"
    .. "hint: return loss:sum() or loss:mean()", title, args.show(value))
  return value
end

return levels
