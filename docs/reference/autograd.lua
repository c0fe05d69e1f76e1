-- Examples of lt.autograd.
local lt = require "lutra"

-- Gradients as values: no .grad is changed
local x = lt.tensor({1., 2., 3.}, {requires_grad = true})
print(lt.autograd.grad((x ^ 3):sum(), x))  --> tensor{ 3., 12., 27.}

-- Second derivatives
local g = lt.autograd.grad((x ^ 3):sum(), x, {create_graph = true})
print(lt.autograd.grad(g:sum(), x))  --> tensor{ 6., 12., 18.}

-- Each row of a Jacobian
local y = x ^ 2
print(lt.autograd.grad(y, x, {grad_outputs = lt.eye(3), is_grads_batched = true})[2])
--> tensor{0., 4., 0.}

-- The scopes of lt under their names in PyTorch
print(lt.autograd.set_grad_enabled(false, function() return (x * 2).requires_grad end))  --> false

-- The backward pass of several tensors
lt.autograd.backward{(x * 2):sum(), (x * 3):sum()}
print(x.grad)  --> tensor{5., 5., 5.}

-- A function with its own gradient: lt.autograd.Function
local Exp = lt.autograd.Function:extend "Exp"
function Exp.forward(ctx, t)
  local y = t:exp()
  ctx:save_for_backward(y)
  return y
end
function Exp.backward(ctx, grad)
  local y = ctx:saved()
  return grad * y
end
local y = Exp(lt.zeros{2, requires_grad = true})
y:sum():backward()
