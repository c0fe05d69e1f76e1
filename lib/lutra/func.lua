--- lt.func: transforms of functions, as torch.func: derivatives as functions, functions of batches,
-- modules as functions of their parameters. Numbers of arguments and dims are 1-based.

local gradients = require "lutra.func.gradients"
local jacobians = require "lutra.func.jacobians"
local modules = require "lutra.func.modules"

return require("lutra.internal.strict_table").strict({
  grad = gradients.grad,
  grad_and_value = gradients.grad_and_value,
  value_and_grad = gradients.value_and_grad,
  vjp = gradients.vjp,
  jvp = gradients.jvp,
  linearize = gradients.linearize,
  jacrev = jacobians.jacrev,
  jacfwd = jacobians.jacfwd,
  hessian = jacobians.hessian,
  functional_call = modules.functional_call,
  stack_module_state = modules.stack_module_state,
  replace_all_batch_norm_modules_ = modules.replace_all_batch_norm_modules_,
  vmap = require "lutra.func.vmap".vmap,
}, "lt.func")
