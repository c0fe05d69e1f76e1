--- SGD: stochastic gradient descent with momentum.
-- Sutskever, Martens, Dahl, Hinton 2013, in PyTorch's form (the learning rate stays
-- outside the velocity).

local Optimizer = require "lutra.optim.optimizer"
local args = require "lutra.internal.args"

--- optim.SGD(params, {lr, momentum = 0, dampening = 0, weight_decay = 0,
-- nesterov = false, maximize = false}).
local SGD = Optimizer:extend("SGD",
  "float(>=0) lr = 0.001, float(>=0) momentum = 0, float dampening = 0, "
  .. "float(>=0) weight_decay = 0, bool nesterov = false, bool maximize = false")

function SGD.check_group(_, group)
  args.check(not group.nesterov or (group.momentum > 0 and group.dampening == 0),
    "SGD: nesterov wants a momentum above 0 and dampening = 0, got momentum = %g, dampening = %g",
    group.momentum, group.dampening)
end

function SGD.update(_, p, grad, state, group)
  local momentum = group.momentum

  -- 1. gradient with weight decay: g <- g + lambda p
  local g = group.maximize and -grad or grad
  if group.weight_decay ~= 0 then g = g:add(p, {alpha = group.weight_decay}) end

  if momentum ~= 0 then
    -- 2. velocity: v <- mu v + (1 - dampening) g; it starts as the first gradient
    if state.momentum_buffer then
      state.momentum_buffer:mul_(momentum):add_(g, {alpha = 1 - group.dampening})
    else
      state.momentum_buffer = g:clone()
    end
    -- 3. Nesterov looks ahead along the velocity
    if group.nesterov then g = g:add(state.momentum_buffer, {alpha = momentum})
    else g = state.momentum_buffer end
  end

  -- 4. step: p <- p - lr g
  p:add_(g, {alpha = -group.lr})
end

return SGD
