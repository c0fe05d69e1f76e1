--- Rprop: resilient backpropagation (Riedmiller and Braun 1993).

local Optimizer = require "lutra.optim.optimizer"
local args = require "lutra.internal.args"
local core = require "lutra.core"

--- optim.Rprop(params, {lr = 0.01, etas = {0.5, 1.2}, step_sizes = {1e-6, 50}, maximize = false}):
-- each element has its own step size, lr at first, which is multiplied by etas[2] when its gradient
-- keeps its sign, by etas[1] when the sign changes, and stays within step_sizes. p = p - sign(g) *
-- size; after a change of sign the gradient counts as 0. foreach and capturable have no effect: a
-- step is one call. differentiable must be false.
local Rprop = Optimizer:extend("Rprop",
  "float(>=0) lr = 0.01, floats(>=0) etas = {0.5, 1.2}, floats(>=0) step_sizes = {1e-6, 50}, "
  .. "bool capturable = false, bool? foreach = nil, bool maximize = false, "
  .. "bool differentiable = false")

--- Raises an error unless etas are two numbers, below and above 1, and step_sizes two numbers.
function Rprop.check_group(_, group)
  local etas = group.etas
  args.check(#etas == 2 and 0 < etas[1] and etas[1] < 1 and 1 < etas[2],
    "Rprop: expected a number from 0 to 1 and one above 1 for argument 'etas', got %s",
    args.show(etas))
  args.check(#group.step_sizes == 2,
    "Rprop: expected two numbers for argument 'step_sizes', got %d", #group.step_sizes)
end

Rprop.counts = true
Rprop.steps_alike = true -- no number depends on the count

--- Returns the number with which a state tensor starts: lr for step sizes.
function Rprop.initial(_, name, group) return name == "step_size" and group.lr or 0 end

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function Rprop.buffers() return {"prev", "step_size"} end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function Rprop.apply(_, params, grads, buffers, group)
  core._ops._rprop_step(params, grads, buffers.prev, buffers.step_size, group.etas[1],
    group.etas[2], group.step_sizes[1], group.step_sizes[2], group.maximize)
end

return Rprop
