-- Examples of lt.utils.checkpoint, lt.autograd.graph, lt.autograd.functional and checks of
-- gradients.
local lt = require "lutra"
local net = lt.nn.Sequential(lt.nn.Linear(3, 3), lt.nn.Tanh(), lt.nn.Linear(3, 1))
local x = lt.ones{2, 3, requires_grad = true}

-- Compute activations again during backward: lt.utils.checkpoint.checkpoint
local y = lt.utils.checkpoint.checkpoint(net, x, {use_reentrant = false})
y:sum():backward()
print(x.grad.shape)  --> {2, 3}

-- The parts of a Sequential: lt.utils.checkpoint.checkpoint_sequential
print(lt.utils.checkpoint.checkpoint_sequential(net, 3, x).shape)  --> {2, 1}

-- Let the second call end: lt.utils.checkpoint.set_checkpoint_early_stop
lt.utils.checkpoint.set_checkpoint_early_stop(false, function()
  lt.utils.checkpoint(net, x):sum():backward()
end)

-- Store saved tensors in another form: lt.autograd.graph.saved_tensors_hooks
local t = lt.tensor({1., 2.}, {requires_grad = true})
local z = lt.autograd.graph.saved_tensors_hooks(function(s) return s:bfloat16() end,
  function(packed) return packed:float() end, function() return (t * t):sum() end)
print(lt.autograd.grad(z, t))  --> tensor{2., 4.}

-- Store them in the host's memory: lt.autograd.graph.save_on_cpu
print(lt.autograd.grad(lt.autograd.graph.save_on_cpu(function() return t:exp():log():sum() end), t))
--> tensor{1., 1.}

-- Find the op whose gradient is NaN: lt.autograd.detect_anomaly, lt.autograd.set_detect_anomaly
print((pcall(lt.autograd.detect_anomaly, function() (-t):sqrt():sum():backward() end)))  --> false
lt.autograd.set_detect_anomaly(true, {check_nan = false})
print(lt.autograd.is_anomaly_enabled(), lt.autograd.is_anomaly_check_nan_enabled())
--> true	false
lt.autograd.set_detect_anomaly(false)

-- Compare gradients with finite differences: lt.autograd.gradcheck, lt.autograd.gradgradcheck
local d = lt.tensor({0.5, 1.5}, {dtype = "float64", requires_grad = true})
print(lt.autograd.gradcheck(lt.sin, d))  --> true
print(lt.autograd.gradgradcheck(lt.sin, d))  --> true

-- A backward without second derivatives: lt.autograd.once_differentiable
local Twice = lt.autograd.Function:extend "Twice"
function Twice.forward(_, s) return s * 2 end
Twice.backward = lt.autograd.once_differentiable(function(_, g) return g * 2 end)
print(lt.autograd.grad(Twice(t):sum(), t))  --> tensor{2., 2.}

-- After the gradient is in grad: x:register_post_accumulate_grad_hook
x.grad = nil
local handle = x:register_post_accumulate_grad_hook(function(p) print(p.grad.shape) end)
x:sum():backward()  --> {2, 3}
handle:remove()

-- lt.autograd.functional.jacobian, lt.autograd.functional.hessian
local v = lt.tensor{1., 2.}
local function square(s) return s ^ 2 end
local function cubes(s) return (s ^ 3):sum() end
print(lt.autograd.functional.jacobian(square, v):totable()[2][2])  --> 4.0
print(lt.autograd.functional.hessian(cubes, v):totable()[2][2])  --> 12.0

-- Products with vectors: lt.autograd.functional.vjp, jvp, vhp, hvp
print(lt.autograd.functional.vjp(square, v, lt.ones(2)))  --> tensor{1., 4.}	tensor{2., 4.}
print(lt.autograd.functional.jvp(square, v, lt.ones(2)))  --> tensor{1., 4.}	tensor{2., 4.}
print(lt.autograd.functional.vhp(cubes, v, lt.ones(2)))  --> tensor(9.)	tensor{ 6., 12.}
print(lt.autograd.functional.hvp(cubes, v, lt.ones(2)))  --> tensor(9.)	tensor{ 6., 12.}
