--- Automatic differentiation: gradients as values, and functions of your own.
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
-- Invariant: what a node of the graph saves never holds on to the node itself. A
-- saved result is kept as its bare values; its own tensor is remembered weakly, and
-- recorded anew where it is gone and second derivatives are asked for.

local core = require "lutra.core"

local autograd = {}

--- Gradients of sum(outputs * grad_outputs) with respect to inputs, without touching
-- any `.grad`. A tensor for a tensor, a list for a list.
-- Arguments: outputs, inputs, grad_outputs = nil, retain_graph = create_graph,
-- create_graph = false, allow_unused = false.
autograd.grad = core._grad

--- x:backward for several tensors: tensors, grad_tensors = nil, retain_graph,
-- create_graph = false, inputs = nil.
autograd.backward = core._backward

local function fail(...) return require("lutra.internal.args").fail(...) end
local function show(x) return require("lutra.internal.args").show(x) end

-- ---- the context that forward and backward share -----------------------------------

local Context = {}
Context.__name = "autograd context"

--- ctx.saved_tensors is the list of what ctx:saved() returns.
function Context:__index(key)
  if key == "saved_tensors" then return {self:saved()} end
  return Context[key]
end

--- Keeps tensors for backward: inputs, results, or anything else; nil is kept too.
function Context:save_for_backward(...)
  self._to_save = table.pack(...)
end

--- What save_for_backward kept, in that order. ctx.saved_tensors is the same as a list.
function Context:saved()
  local node = self._node
  if not node then
    if self._to_save then return table.unpack(self._to_save, 1, self._to_save.n) end
    return
  end
  if not node[1] then
    fail("%s: backward a second time: what it saved is gone. "
      .. "Use backward{retain_graph = true} the first time", self._name)
  end
  return node.unpack()
end

--- Says in forward which of its results have no gradient: they do not require grad, and
-- backward gets zeros for them (nil after set_materialize_grads(false)). To be called once.
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

--- Says in forward which of its arguments it has changed in place. Each must be a result too: it
-- stays the same tensor, and its gradient goes through backward. It must be no view, and no leaf
-- that requires grad. To be called once.
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

-- An entry of the saved list: {tensor or alias, version, position among the results}.
local function save_one(t, outputs, name)
  if t == nil then return {} end
  if not core.is_tensor(t) then
    fail("%s: save_for_backward got %s, it wants tensors; other values are fields of ctx", name,
      show(t))
  end
  for i, output in ipairs(outputs) do
    if output == t then
      return {t:detach(), t:_version(), i}
    end
  end
  return {t, t:_version()}
end

local function check_version(entry, name)
  if entry[1] and entry[1]:_version() ~= entry[2] then
    fail("%s: a tensor that it saved was changed in place since. Change a copy: x:clone()",
      name)
  end
end

-- ---- functions -----------------------------------------------------------------------

--- lt.autograd.Function: an op of your own with a gradient of its own. Make a class,
-- `local Exp = lt.autograd.Function:extend "Exp"`, define Exp.forward(ctx, ...) and
-- Exp.backward(ctx, grad, ...), and call Exp(x).
local Function = {__name = "autograd.Function"}
Function.__index = Function

local function zeros_of(spec)
  return core._ops.zeros(spec.shape, {dtype = spec.dtype, device = spec.device})
end

-- grads from C (false where none came) -> what the user's backward gets.
local function fill_in(grads, specs, materialize)
  for i = 1, #specs do
    if not grads[i] then grads[i] = materialize and zeros_of(specs[i]) or nil end
  end
  return grads
end

-- Gradients of the user's backward, one for each argument -> one for each input of the node.
local function by_input(class, places, count, ...)
  local given = select("#", ...)
  if given > count then
    for i = count + 1, given do
      if (select(i, ...)) ~= nil then
        fail("%s: backward gave %d gradients for %d arguments of forward", class._name, given,
          count)
      end
    end
  end
  local list, all = {}, {...}
  for i, place in ipairs(places) do
    local g = all[place]
    if g ~= nil and not core.is_tensor(g) then
      fail("%s: gradient %d of backward is %s, it wants a tensor or nil", class._name, place,
        show(g))
    end
    list[i] = g or false
  end
  return list
end

local function spec_of(t)
  return {shape = t.shape, dtype = t.dtype, device = t.device}
end

-- Joins the results to the graph; returns the tensors that are now its results. Results that
-- are not differentiable (false in outputs) stay out of it.
local function record(class, ctx, call, outputs)
  local node = call.node
  local changed, dirty = {}, ctx._dirty or {}
  for i, t in ipairs(outputs) do changed[i] = t and dirty[t] or false end
  local joined = core._custom(class._name, node, call.inputs, outputs, changed)
  -- A result that was saved and is gone is recorded again from the inputs (record_again), which a
  -- changed input is no longer: then the results stay.
  local weak = setmetatable({}, {__mode = not ctx._dirty and "v" or nil})
  for i, t in ipairs(joined) do weak[i] = outputs[i] and t or nil end
  call.results = weak
  ctx._node = node
  return joined
end

-- The results that are differentiable, false in place of the others.
local function differentiable(ctx, outputs)
  local marked, list = ctx._non_differentiable or {}, {}
  for i, t in ipairs(outputs) do list[i] = not marked[t] and t end
  return list
end

-- A saved result whose tensor is gone, as a result of the function once more.
local function record_again(class, call, entry)
  local alias = entry[1]:detach()
  if not core.is_grad_enabled() then return alias end
  local outputs = {}
  for i = 1, #call.specs do outputs[i] = false end
  outputs[entry[3]] = alias
  return core._custom(class._name, call.node, call.inputs, outputs)[entry[3]]
end

local function make_call(class, ctx, arguments)
  local call = {inputs = {}, places = {}, count = arguments.n, node = {}}
  for i = 1, arguments.n do
    local x = arguments[i]
    if core.is_tensor(x) then
      call.inputs[#call.inputs + 1], call.places[#call.places + 1] = x, i
    end
    ctx.needs_input_grad[i] = core.is_tensor(x) and x.requires_grad or false
  end
  function call.node.backward(grads)
    fill_in(grads, call.specs, ctx._materialize)
    return by_input(class, call.places, call.count,
      class.backward(ctx, table.unpack(grads, 1, #call.specs)))
  end
  function call.node.unpack()
    local entries, values = call.node[1], {}
    for i = 1, entries.n do
      local entry = entries[i]
      check_version(entry, class._name)
      values[i] = entry[3] and (call.results[entry[3]] or record_again(class, call, entry))
        or entry[1]
    end
    return table.unpack(values, 1, entries.n)
  end
  return call
end

-- Turns what save_for_backward was given into entries that hold no node.
local function save_all(class, ctx, call, outputs)
  local saved = ctx._to_save or {n = 0}
  local entries = {n = saved.n}
  for i = 1, saved.n do entries[i] = save_one(saved[i], outputs, class._name) end
  ctx._to_save = nil
  call.node[1] = entries
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

local function any_wants_grad(inputs)
  if not core.is_grad_enabled() then return false end
  for _, t in ipairs(inputs) do
    if t.requires_grad then return true end
  end
  return false
end

local function no_grad(f, ...) return require("lutra.internal.scopes").no_grad(f, ...) end

--- Runs forward without recording and joins its tensors to the graph. Exp(x) is
-- Exp.apply(x).
local function apply(class, ...)
  local ctx = setmetatable({needs_input_grad = {}, _materialize = true, _name = class._name},
    Context)
  local call = make_call(class, ctx, table.pack(...))
  local results = table.pack(no_grad(class.forward, ctx, ...))
  check_dirty(class, ctx, results)
  if not any_wants_grad(call.inputs) then
    return table.unpack(results, 1, results.n)
  end
  local outputs, at = {}, {}
  for i = 1, results.n do
    if core.is_tensor(results[i]) then
      outputs[#outputs + 1], at[#at + 1] = results[i], i
    end
  end
  call.specs = {}
  for i, t in ipairs(outputs) do call.specs[i] = spec_of(t) end
  local joined = differentiable(ctx, outputs)
  save_all(class, ctx, call, joined)
  for i, t in ipairs(record(class, ctx, call, joined)) do
    -- An input may be a result too, and keeps its own gradient.
    results[at[i]] = joined[i] and t or outputs[i].requires_grad and outputs[i]:detach()
      or outputs[i]
  end
  return table.unpack(results, 1, results.n)
end

--- Whether backward gets zeros (the default) or nil for results that got no gradient.
function Context:set_materialize_grads(on) self._materialize = on and true or false end

--- A new kind of function; give it `forward(ctx, ...)` and `backward(ctx, ...)`.
-- backward returns one gradient (or nil) for each argument of forward.
function Function:extend(name)
  if type(name) ~= "string" then
    fail('extend: argument "name" is %s, it wants a string', show(name))
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

function Function.forward()
  fail("forward: the autograd.Function has no forward(ctx, ...)")
end

function Function.backward()
  fail("backward: the autograd.Function has no backward(ctx, ...)")
end

autograd.Function = Function

return require("lutra.internal.strict_table").strict(autograd, "lt.autograd")
