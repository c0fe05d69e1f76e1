--- lt.autograd: gradients of tensors, and custom differentiable functions.
--
--     local Exp = lt.autograd.Function:extend "Exp"
--     function Exp.forward(ctx, x)
--       local y = x:exp()
--       ctx:save_for_backward(y)
--       return y
--     end
--     function Exp.backward(ctx, g)
--       local y = ctx:saved()
--       return g * y
--     end
--     local y = Exp(x)
--
-- Invariant: the tensors that a node of the graph saves never reference the node itself. A saved
-- result is stored detached. The result tensor is referenced weakly; if it has been collected when
-- second derivatives are required, the detached tensor is recorded in the graph again.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local scopes = require "lutra.internal.scopes"

local autograd = {}

local parse_grad = args.signature("grad", "data outputs, any inputs, any? grad_outputs = nil, "
  .. "bool? retain_graph = nil, bool create_graph = false, bool? allow_unused = nil, "
  .. "bool is_grads_batched = false, bool materialize_grads = false")

-- Returns entry i of each tensor along the first dim, for a tensor or a list.
local function slice(tensors, i)
  if core.is_tensor(tensors) then return tensors[i] end
  local list = {}
  for k, t in ipairs(tensors) do list[k] = t[i] end
  return list
end

-- Returns the gradients for each entry of grad_outputs along the first dim, stacked. `run` computes
-- those of one entry.
local function batched_grad(run, grad_outputs, retain)
  local first = core.is_tensor(grad_outputs) and grad_outputs
    or type(grad_outputs) == "table" and grad_outputs[1]
  if not core.is_tensor(first) or first.ndim == 0 or first:size(1) == 0 then
    args.fail("grad: expected tensors whose first dimension is that of the batch for argument "
      .. "'grad_outputs' with is_grads_batched, got %s", args.show(grad_outputs))
  end
  local count, columns = first:size(1), {}
  for i = 1, count do
    local keep = retain
    if i < count then keep = true end
    columns[i] = run(slice(grad_outputs, i), keep)
  end
  local stack = core._ops.stack
  if columns[1] == nil or core.is_tensor(columns[1]) then
    return columns[1] and stack(columns) or nil, count
  end
  local result = {}
  for k in pairs(columns[1]) do
    local column = {}
    for i = 1, count do column[i] = columns[i][k] end
    result[k] = stack(column)
  end
  return result, count
end

-- Returns what an iterator such as m:parameters() gives, as a list.
local function list_of(iterator)
  local list = {}
  for x in iterator do list[#list + 1] = x end
  return list
end

--- lt.autograd.grad(outputs, inputs, {grad_outputs, retain_graph = create_graph, create_graph =
-- false, allow_unused = false, is_grads_batched = false, materialize_grads = false}): returns the
-- gradients of sum(outputs * grad_outputs) with respect to `inputs`, without changing any `.grad`:
-- a tensor for a tensor, a list for a list or an iterator such as net:parameters(). The gradient
-- of an input that the outputs do not depend on is an error, nil with allow_unused, or zeros with
-- materialize_grads. With is_grads_batched the gradients are computed for each entry of
-- grad_outputs along their first dimension, and stacked.
function autograd.grad(...)
  local outputs, inputs, grads, retain, create, unused, batched, materialize = parse_grad(...)
  if args.is_callable(inputs) then inputs = list_of(inputs) end
  args.check(not materialize or unused ~= false,
    "grad: cannot materialize gradients of unused inputs with allow_unused = false")
  local function run(given, keep)
    return core._grad(outputs, inputs, given, keep, create, unused or materialize)
  end
  local result, count
  if batched then
    result, count = batched_grad(run, grads, retain)
  else
    result = run(grads, retain)
  end
  if not materialize then return result end
  local function filled(grad, x)
    if grad then return grad end
    local zeros = core._ops.zeros_like(x)
    return count and zeros:expand(count, table.unpack(x.shape)) or zeros
  end
  if core.is_tensor(inputs) then return filled(result, inputs) end
  for i, x in ipairs(inputs) do result[i] = filled(result[i], x) end
  return result
end

--- lt.autograd.backward(tensors, {grad_tensors, retain_graph = create_graph, create_graph = false,
-- inputs}): accumulates the gradients of several tensors into the `.grad` of leaf tensors, as
-- x:backward does for one; with `inputs`, into those only.
autograd.backward = core._backward

local fail, show = args.fail, args.show
local is_tensor = core.is_tensor

-- ---- the context of forward and backward --------------------------------------------

local Context = {}
Context.__name = "autograd context"

--- ctx.saved_tensors: the list of what ctx:saved() returns.
function Context:__index(key)
  if key == "saved_tensors" then return {self:saved()} end
  return Context[key]
end

--- ctx:save_for_backward(...): saves tensors or nil for backward; call it once, in forward. Other
-- values may be assigned to fields of ctx. A tensor that is changed in place afterwards is an
-- error in backward.
function Context:save_for_backward(...)
  self._to_save = table.pack(...)
end

--- Returns the tensors of save_for_backward in their order. Raises an error in a second backward
-- through a graph that was not retained.
function Context:saved()
  local node = self._node
  if not node then
    if self._to_save then return table.unpack(self._to_save, 1, self._to_save.n) end
    return
  end
  if not node[1] then
    fail("%s: cannot run backward a second time: its saved tensors were freed\n"
      .. "hint: the first time, use x:backward{retain_graph = true}", self._name)
  end
  return node:unpack()
end

--- ctx:mark_non_differentiable(...): declares, in forward, results without a gradient: they do not
-- require grad, and backward gets zeros for them (nil after set_materialize_grads(false)). Call it
-- once. Raises an error for a value that is no tensor.
function Context:mark_non_differentiable(...)
  local marked = {}
  for i = 1, select("#", ...) do
    local t = select(i, ...)
    if not core.is_tensor(t) then
      fail("mark_non_differentiable: expected a tensor for argument %d, got %s", i, show(t))
    end
    marked[t] = true
  end
  self._non_differentiable = marked
end

--- ctx:mark_dirty(...): declares, in forward, arguments that it has changed in place. Each must
-- also be a result: it stays the same tensor, and its gradient passes through backward. It must
-- not be a view, nor a leaf tensor that requires grad. Call it once. Raises an error for a value
-- that is no tensor.
function Context:mark_dirty(...)
  local marked = {}
  for i = 1, select("#", ...) do
    local t = select(i, ...)
    if not core.is_tensor(t) then
      fail("mark_dirty: expected a tensor for argument %d, got %s", i, show(t))
    end
    marked[t] = true
  end
  self._dirty = marked
end

-- Returns a copy of a list of n values; it has its final size at once, unlike one that grows.
local function copy(list, n) return {table.unpack(list, 1, n)} end

-- Returns the values of save_for_backward so that they do not reference the node: {tensors, n,
-- versions, places}, where places[i] is the index of tensor i among the results or nil.
local function save_all(class, ctx, outputs)
  local tensors = ctx._to_save or {n = 0}
  local versions, places = core._versions(class._name, outputs,
    table.unpack(tensors, 1, tensors.n))
  ctx._to_save = false
  for i in pairs(places) do tensors[i] = tensors[i]:detach() end
  return {tensors = tensors, n = tensors.n, versions = versions, places = places}
end

-- ---- functions -----------------------------------------------------------------------

--- lt.autograd.Function: the base class of custom ops with a custom gradient. Make a class, `local
-- Exp = lt.autograd.Function:extend "Exp"`, define Exp.forward(ctx, ...) and Exp.backward(ctx,
-- grad, ...), and call Exp(x).
local Function = {__name = "autograd.Function"}
Function.__index = Function

local function zeros_of(spec)
  return core._ops.zeros(spec.shape, {dtype = spec.dtype, device = spec.device})
end

-- Converts the gradients from C, in which false marks a missing one, to those that backward gets.
local function fill_in(grads, specs, materialize)
  for i = 1, #specs do
    if not grads[i] then grads[i] = materialize and zeros_of(specs[i]) or nil end
  end
  return grads
end

-- Converts the gradients that the user's backward returned, one per argument, to one per input of
-- the node (the arguments that are tensors). Raises an error for too many and for no tensor.
local function by_input(node, ...)
  local given = select("#", ...)
  if given > node.count then
    for i = node.count + 1, given do
      if (select(i, ...)) ~= nil then
        fail("%s: expected at most %d gradients from backward, one for each argument of forward, "
          .. "got %d", node.class._name, node.count, given)
      end
    end
  end
  local list, all = {}, {...}
  for i, position in ipairs(node.positions) do
    local g = all[position]
    if g ~= nil and not is_tensor(g) then
      fail("%s: expected a tensor or nil for gradient %d of backward, got %s", node.class._name,
        position, show(g))
    end
    list[i] = g or false
  end
  return list
end

local function spec_of(t)
  return {shape = t.shape, dtype = t.dtype, device = t.device}
end

-- Records a saved result whose tensor has been collected as a result of the function again.
local function record_again(node, alias, index)
  alias = alias:detach()
  if not core.is_grad_enabled() then return alias end
  local outputs = {}
  for i = 1, #node.specs do outputs[i] = false end
  outputs[index] = alias
  return core._custom(node.class._name, node, node.inputs, outputs)[index]
end

-- The record of a call, a node of the graph: its class, its context `ctx`, the tensors among its
-- `count` arguments (inputs) and their positions, the specs of its results, and its results. The
-- saved values are node[1], which the engine sets to false when the graph is freed.
local Node = {}
Node.__index = Node

-- Called by the engine.
function Node:backward(grads)
  fill_in(grads, self.specs, self.ctx._materialize)
  return by_input(self, self.class.backward(self.ctx, table.unpack(grads, 1, #self.specs)))
end

-- Returns the saved tensors.
function Node:unpack()
  local saved = self[1]
  local values = copy(saved.tensors, saved.n)
  for i = 1, saved.n do
    local t, place = values[i], saved.places[i]
    if t and t:_version() ~= saved.versions[i] then
      fail("%s: cannot use a saved tensor: it was changed in place after it was saved\n"
        .. "hint: change a copy: x:clone()", self.class._name)
    end
    if place then values[i] = self.results[place] or record_again(self, t, place) end
  end
  return table.unpack(values, 1, saved.n)
end

-- The references to results are weak, as record_again can record a saved one from the inputs. After
-- an in-place change the inputs are no longer available, so then the references are strong.
local WEAK <const> = {__mode = "v"}

-- Records the results in the graph; returns the tensors that take their place. Results that are
-- not differentiable (false in `outputs`) are not recorded.
local function record(node, outputs)
  local dirty, changed = node.ctx._dirty, nil
  if dirty then
    changed = {}
    for i, t in ipairs(outputs) do changed[i] = t and dirty[t] or false end
  end
  local joined = core._custom(node.class._name, node, node.inputs, outputs, changed)
  local results = copy(joined, #joined)
  for i, t in ipairs(outputs) do
    if not t then results[i] = nil end
  end
  node.results = dirty and results or setmetatable(results, WEAK)
  node.ctx._node = node
  return joined
end

-- Returns the results, with false in place of those that are not differentiable.
local function differentiable(ctx, outputs)
  local marked, list = ctx._non_differentiable, {}
  if not marked then return outputs end
  for i, t in ipairs(outputs) do list[i] = not marked[t] and t end
  return list
end

local function check_dirty(class, ctx, results)
  if not ctx._dirty then return end
  local returned = {}
  for i = 1, results.n do
    if results[i] ~= nil then returned[results[i]] = true end
  end
  for t in pairs(ctx._dirty) do
    if not returned[t] then
      fail("%s: expected every tensor of ctx:mark_dirty among the results of forward, got one that "
        .. "is not\nhint: return it from forward", class._name)
    end
  end
end

-- Returns for each argument whether it is a tensor that requires grad, and whether any does.
local function needs_grad(...)
  local needs, any = {...}, false
  for i = 1, select("#", ...) do
    local x = needs[i]
    needs[i] = is_tensor(x) and x.requires_grad
    any = any or needs[i]
  end
  return needs, any
end

-- Returns a list of the tensors among the arguments, and their positions.
local function tensors_of(...)
  local tensors, positions, count = {...}, {}, select("#", ...)
  for i = 1, count do
    local x = tensors[i]
    tensors[i] = nil
    if is_tensor(x) then
      local k = #positions + 1
      tensors[k], positions[k] = x, i
    end
  end
  return tensors, positions
end

local no_grad = scopes.no_grad

--- Calls forward under no_grad and records its results in the graph when an input requires grad.
-- Exp(x) is Exp.apply(x).
local function apply(class, ...)
  local needs, any = needs_grad(...)
  local ctx = setmetatable({needs_input_grad = needs, _materialize = true, _name = class._name,
    _to_save = false, _node = false}, Context)
  local results = table.pack(no_grad(class.forward, ctx, ...))
  check_dirty(class, ctx, results)
  if not any or not core.is_grad_enabled() then return table.unpack(results, 1, results.n) end
  local outputs, at = tensors_of(table.unpack(results, 1, results.n))
  local inputs, positions = tensors_of(...)
  local specs = copy(outputs, #outputs)
  for i, t in ipairs(outputs) do specs[i] = spec_of(t) end
  local kept = differentiable(ctx, outputs)
  local node = setmetatable({save_all(class, ctx, kept), class = class, ctx = ctx, inputs = inputs,
    positions = positions, count = select("#", ...), specs = specs, results = false}, Node)
  for i, t in ipairs(record(node, kept)) do
    -- An input may be a result too, and keeps its own gradient.
    results[at[i]] = kept[i] and t or outputs[i].requires_grad and outputs[i]:detach()
      or outputs[i]
  end
  return table.unpack(results, 1, results.n)
end

--- Sets whether backward gets zeros (the default) or nil for results without a gradient.
function Context:set_materialize_grads(on) self._materialize = on and true or false end

--- Returns a subclass; define forward(ctx, ...) and backward(ctx, grad, ...) in it. backward
-- returns one gradient (or nil) for each argument of forward. Raises an error unless `name` is a
-- string.
function Function:extend(name)
  if type(name) ~= "string" then
    fail("extend: expected a string for argument 'name', got %s", show(name))
  end
  local class = setmetatable({_name = name}, {
    __index = self,
    __name = name,
    __call = function(class, ...) return apply(class, ...) end,
    __tostring = function() return ("autograd.Function %s"):format(name) end,
  })
  function class.apply(...) return apply(class, ...) end
  return class
end

--- Exp.forward(ctx, ...): computes the results; every class defines its own. Raises an error in a
-- class without one.
function Function.forward()
  fail("forward: cannot call the autograd.Function: it has no function forward(ctx, ...)")
end

--- Exp.backward(ctx, grad, ...): returns one gradient (or nil) for each argument of forward; every
-- class defines its own. Raises an error in a class without one.
function Function.backward()
  fail("backward: cannot compute gradients of the autograd.Function: it has no function "
    .. "backward(ctx, ...)")
end

autograd.Function = Function

--- lt.autograd.gradcheck and gradgradcheck: see lutra.autograd.gradcheck.
for name, f in pairs(require "lutra.autograd.gradcheck") do autograd[name] = f end
for name, f in pairs(require "lutra.autograd.anomaly") do autograd[name] = f end
for _, name in ipairs {"no_grad", "enable_grad", "set_grad_enabled", "inference_mode"} do
  autograd[name] = scopes[name]
end
autograd.functional = require "lutra.autograd.functional"
autograd.graph = require "lutra.autograd.graph"

--- once_differentiable(backward): returns the function `backward` of an autograd.Function whose
-- gradients cannot be differentiated: a backward through them raises an error.
function autograd.once_differentiable(backward)
  local Once = autograd.Function:extend "once_differentiable"
  function Once.forward(_, result) return result end
  function Once.backward()
    fail("backward: cannot differentiate the gradient of an autograd.Function: its backward is "
      .. "declared once_differentiable")
  end
  return function(ctx, ...)
    if not core.is_grad_enabled() then return backward(ctx, ...) end
    local grads = table.pack(...)
    local results = table.pack(no_grad(backward, ctx, ...))
    local needed = false
    for i = 1, grads.n do needed = needed or core.is_tensor(grads[i]) and grads[i].requires_grad end
    if not needed then return table.unpack(results, 1, results.n) end
    for i = 1, results.n do
      if core.is_tensor(results[i]) then
        results[i] = Once(results[i], table.unpack(grads, 1, grads.n))
      end
    end
    return table.unpack(results, 1, results.n)
  end
end

return require("lutra.internal.strict_table").strict(autograd, "lt.autograd")
