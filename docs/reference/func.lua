-- Examples of lt.func.
local lt = require "lutra"
local x = lt.tensor{1., 2., 3.}
local function f(t) return (t ^ 3):sum() end

-- The gradient of a function, as a function: lt.func.grad
print(lt.func.grad(f)(x))  --> tensor{ 3., 12., 27.}
local g = lt.func.grad(function(p) return (p.w * x):sum() end)({w = lt.ones(3)})
print(g.w)  --> tensor{1., 2., 3.}

-- The gradient with respect to several arguments
local gx, gy = table.unpack(lt.func.grad(function(a, b) return a:dot(b) end, {argnums = {1, 2}})(x, x * 2))
print(gx, gy)  --> tensor{2., 4., 6.}	tensor{1., 2., 3.}

-- The gradient and the value: lt.func.grad_and_value, lt.func.value_and_grad
print(lt.func.grad_and_value(f)(x))  --> tensor{ 3., 12., 27.}	tensor(36.)
print(lt.func.value_and_grad(f)(x))  --> tensor(36.)	tensor{ 3., 12., 27.}

-- The vector-Jacobian product: lt.func.vjp
local y, pull = lt.func.vjp(function(t) return t * t end, x)
print(y, pull(lt.ones(3)))  --> tensor{1., 4., 9.}	tensor{2., 4., 6.}

-- The Jacobian-vector product: lt.func.jvp
print(lt.func.jvp(function(t) return t * t end, {x}, {lt.ones(3)}))
--> tensor{1., 4., 9.}	tensor{2., 4., 6.}

-- The same at one point for several tangents: lt.func.linearize
local _, push = lt.func.linearize(function(t) return t * t end, x)
print(push(lt.tensor{1., 0., 0.}))  --> tensor{2., 0., 0.}

-- Jacobians: lt.func.jacrev by rows, lt.func.jacfwd by columns
print(lt.func.jacrev(function(t) return t * t end)(lt.tensor{1., 2.}):totable()[2][2])  --> 4.0
print(lt.func.jacfwd(function(t) return t * t end)(lt.tensor{1., 2.}):totable()[2][2])  --> 4.0

-- Second derivatives: lt.func.hessian
print(lt.func.hessian(f)(lt.tensor{1., 2.}):totable()[2][2])  --> 12.0

-- A function of one example for a batch: lt.func.vmap
local dots = lt.func.vmap(lt.dot, {in_dims = {1, false}})(lt.ones(2, 3), x)
dots = lt.vmap(lt.dot, {in_dims = {1, false}})(lt.ones(2, 3), x) -- the same function
print(dots)  --> tensor{6., 6.}

-- A module with other parameters: lt.func.functional_call
local net = lt.nn.Linear(3, 1)
local out = lt.func.functional_call(net, {weight = lt.ones(1, 3), bias = lt.zeros(1)}, x)
print(out)  --> tensor{6.}

-- Several modules as one: lt.func.stack_module_state
local params, buffers = lt.func.stack_module_state{lt.nn.Linear(3, 1), lt.nn.Linear(3, 1)}
print(params.weight.shape, next(buffers))  --> {2, 1, 3}	nil

-- Batch normalization without running statistics: lt.func.replace_all_batch_norm_modules_
local normed = lt.func.replace_all_batch_norm_modules_(lt.nn.Sequential(lt.nn.BatchNorm1d(3)))
print(normed[1].running_mean, normed[1].track_running_stats)  --> nil	false
