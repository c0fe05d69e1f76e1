-- Examples of lt.amp and autocast.
local lt = require "lutra"
local x, w = lt.ones(2, 3), lt.ones(4, 3)

-- Run ops in a lower precision where that is safe: lt.autocast, lt.amp.autocast
print(lt.autocast("cpu", {dtype = "bfloat16"}, function()
  return lt.F.linear(x, w).dtype, lt.F.mse_loss(x, x).dtype
end))  --> bfloat16	float32
print(lt.amp.is_autocast_available "cpu")  --> true

-- Settings of autocast: lt.is_autocast_enabled, lt.get_autocast_dtype, lt.is_autocast_cache_enabled
print(lt.is_autocast_enabled "cpu", lt.get_autocast_dtype "cpu", lt.is_autocast_cache_enabled())
--> false	bfloat16	true
lt.set_autocast_enabled("cpu", false)
lt.set_autocast_dtype("cpu", "bfloat16")
lt.set_autocast_cache_enabled(true)
lt.clear_autocast_cache()

-- A training step in float16: lt.amp.GradScaler
local net = lt.nn.Linear(3, 1)
local opt = lt.optim.SGD(net:parameters(), {lr = 0.1})
local scaler = lt.amp.GradScaler("cpu", {init_scale = 1024})
print(scaler:is_enabled())  --> true
local loss = lt.autocast("cpu", {dtype = "float16"}, function()
  return lt.F.mse_loss(net(x), lt.zeros(2, 1))
end)
scaler:scale(loss):backward()
scaler:unscale_(opt)
lt.nn.utils.clip_grad_norm_(net:parameters(), 1)
scaler:step(opt)
scaler:update()
print(scaler:get_scale())  --> 1024.0

-- Its settings and its state
scaler:set_growth_factor(2)
scaler:set_backoff_factor(0.5)
scaler:set_growth_interval(100)
print(scaler:get_growth_factor(), scaler:get_backoff_factor(), scaler:get_growth_interval())
--> 2	0.5	100
local other = lt.amp.GradScaler "cpu"
other:load_state_dict(scaler:state_dict())
print(other:get_scale())  --> 1024.0

-- Functions with their own gradient: lt.amp.custom_fwd, lt.amp.custom_bwd
local Square = lt.autograd.Function:extend "Square"
Square.forward = lt.amp.custom_fwd(function(ctx, t)
  ctx:save_for_backward(t)
  return t * t
end, {device_type = "cpu"})
Square.backward = lt.amp.custom_bwd(function(ctx, g) return 2 * g * ctx:saved() end,
  {device_type = "cpu"})
local a = lt.tensor({3.}, {requires_grad = true})
Square(a):sum():backward()
print(a.grad)  --> tensor{6.}
