--- Adam: Kingma and Ba 2015, Algorithm 1.

local lt = require "lutra"
local Optimizer = require "lutra.optim.optimizer"
local args = require "lutra.internal.args"

--- optim.Adam(params, {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0,
-- amsgrad = false, maximize = false}). weight_decay is added to the gradient (L2); AdamW
-- decays the weights themselves.
local Adam = Optimizer:extend("Adam",
  "float(>=0) lr = 0.001, floats(>=0) betas = {0.9, 0.999}, float(>=0) eps = 1e-8, "
  .. "float(>=0) weight_decay = 0, bool amsgrad = false, bool maximize = false")

--- Does weight decay leave the gradient alone? AdamW says yes.
Adam.decoupled = false

function Adam.check_group(self, group)
  local betas = group.betas
  args.check(#betas == 2 and betas[1] < 1 and betas[2] < 1,
    '%s: argument "betas" is %s, it wants two numbers {beta1, beta2} from 0 to below 1',
    self.__name, args.show(betas))
end

-- The algorithm step by step. The runtime's _adamw_step_ computes the same in one pass
-- over memory; AMSGrad has no such kernel.
local function written_out(p, grad, state, group, decoupled)
  local lr, beta1, beta2 = group.lr, group.betas[1], group.betas[2]
  local m, v, t = state.exp_avg, state.exp_avg_sq, state.step

  -- 1. the gradient g at step t
  local g = group.maximize and -grad or grad
  if group.weight_decay ~= 0 then
    if decoupled then p:mul_(1 - lr * group.weight_decay)
    else g = g:add(p, {alpha = group.weight_decay}) end
  end
  -- 2. first moment: m <- b1 m + (1 - b1) g
  m:mul_(beta1):add_(g, {alpha = 1 - beta1})
  -- 3. second moment: v <- b2 v + (1 - b2) g^2
  v:mul_(beta2):addcmul_(g, g, {value = 1 - beta2})
  -- 4. AMSGrad (Reddi et al. 2018): the largest second moment so far
  state.max_exp_avg_sq = lt.maximum(state.max_exp_avg_sq, v)
  -- 5. corrections of the start from zero: m / (1 - b1^t), v / (1 - b2^t)
  local correction1, correction2 = 1 - beta1 ^ t, 1 - beta2 ^ t
  local denominator = (state.max_exp_avg_sq:sqrt() / math.sqrt(correction2)):add_(group.eps)
  -- 6. step: p <- p - lr m / (sqrt(v) + eps)
  p:addcdiv_(m, denominator, {value = -lr / correction1})
end

function Adam:update(p, grad, state, group)
  if state.step == nil then
    state.step = 0
    state.exp_avg, state.exp_avg_sq = lt.zeros_like(p), lt.zeros_like(p)
  end
  if group.amsgrad and not state.max_exp_avg_sq then state.max_exp_avg_sq = lt.zeros_like(p) end
  state.step = state.step + 1
  if group.amsgrad then
    written_out(p, grad, state, group, self.decoupled)
  else
    p:_adamw_step_(grad, state.exp_avg, state.exp_avg_sq, state.step, group.lr, group.betas[1],
      group.betas[2], group.eps, group.weight_decay, self.decoupled, group.maximize)
  end
end

return Adam
