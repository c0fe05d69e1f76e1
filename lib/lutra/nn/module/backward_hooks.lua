--- The full backward hooks of one call of a module.
--
-- An identity function of autograd is recorded around the call: the one behind the results gets
-- their gradients first, the one before the arguments the gradients of the inputs. The hooks run in
-- these two. Invariant: only tensors that require grad pass through them.

local lt = require "lutra"
local args = require "lutra.internal.args"

local Pass = lt.autograd.Function:extend "ModuleHook"

function Pass.forward(ctx, run, ...)
  ctx:set_materialize_grads(false)
  ctx.run = run
  local aliases = table.pack(...)
  for i = 1, aliases.n do aliases[i] = aliases[i]:detach() end
  return table.unpack(aliases, 1, aliases.n)
end

function Pass.backward(ctx, ...) return nil, ctx.run(...) end

-- Records run(gradients...) for the tensors of a packed list that require grad. Returns the list
-- with the results in their place, and their indices; without such a tensor, the list and nil.
local function record(values, run)
  local tensors, at = {}, {}
  for i = 1, values.n do
    local x = values[i]
    if lt.is_tensor(x) and x.requires_grad then
      tensors[#tensors + 1], at[#at + 1] = x, i
    end
  end
  if #at == 0 or not lt.is_grad_enabled() then return values, nil end
  local results = {Pass(run, table.unpack(tensors))}
  local new = table.move(values, 1, values.n, 1, {n = values.n})
  for k, i in ipairs(at) do new[i] = results[k] end
  return new, at
end

-- Returns the gradients ... at their indices in a packed list of n.
local function placed(n, at, ...)
  local list = {n = n}
  for k, i in ipairs(at) do list[i] = (select(k, ...)) end
  return list
end

-- Returns the gradients of a packed list at the indices.
local function taken(list, at)
  local gradients = {}
  for k, i in ipairs(at) do gradients[k] = list[i] end
  return table.unpack(gradients, 1, #at)
end

-- Returns the gradients that a hook's result, a tensor or a list, puts in the place of `list`.
local function replaced(list, result, title)
  if result == nil then return list end
  if lt.is_tensor(result) then result = {result} end
  args.check(type(result) == "table", "%s: expected the hook to return a tensor, a list or nil, "
    .. "got %s", title, args.show(result))
  local count = result.n or #result
  args.check(count <= list.n, "%s: expected the hook to return %d gradients, got %d", title, list.n,
    count)
  return table.move(result, 1, list.n, 1, {n = list.n})
end

local Call = {}
Call.__index = Call

-- Calls the hooks with the gradients of the inputs; returns these or their replacement.
function Call:run(grad_input)
  local grad_output = self.grad_output
  self.grad_output = nil
  for _, hook in ipairs(self.after) do
    local result = hook.fn(self.module, grad_input, grad_output)
    args.check(self.at or result == nil, "register_full_backward_hook: expected the hook to return "
      .. "nil, as no input requires grad, got %s", args.show(result))
    grad_input = replaced(grad_input, result, "register_full_backward_hook")
  end
  return grad_input
end

--- Returns the packed inputs of forward.
function Call:inputs(inputs)
  self.count = inputs.n
  local new
  new, self.at = record(inputs, function(...)
    -- A result that does not depend on the inputs leaves them without a gradient.
    if not self.grad_output then return ... end
    return taken(self:run(placed(self.count, self.at, ...)), self.at)
  end)
  return new
end

--- Returns the packed results of the call.
function Call:outputs(outputs)
  local new, at
  new, at = record(outputs, function(...)
    local grad_output = placed(outputs.n, at, ...)
    for _, hook in ipairs(self.before) do
      grad_output = replaced(grad_output, hook.fn(self.module, grad_output),
        "register_full_backward_pre_hook")
    end
    self.grad_output = grad_output
    if not self.at then self:run({n = self.count}) end
    return taken(grad_output, at)
  end)
  return new
end

local backward_hooks = {}

--- Returns the object that records one call of a module with its lists of hooks.
function backward_hooks.new(module, before, after)
  return setmetatable({module = module, before = before, after = after}, Call)
end

return backward_hooks
