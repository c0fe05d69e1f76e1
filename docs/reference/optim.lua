-- Examples of optim.
local lt = require "lutra"
local nn, optim = lt.nn, lt.optim
lt.manual_seed(1)
local net = nn.Linear(2, 1)
local x, y = lt.randn(8, 2), lt.randn(8, 1)

-- Optimizers take parameters and settings
local sgd = optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})
local adam = optim.Adam(net:parameters(), {lr = 1e-3})
local adamw = optim.AdamW(net:parameters(), {lr = 1e-3, weight_decay = 0.01})
local rmsprop = optim.RMSprop(net:parameters(), {lr = 0.01})

-- A training step: every class is an optim.Optimizer
sgd:zero_grad()
local loss = (net(x) - y):square():mean()
loss:backward()
sgd:step()

-- Several groups of parameters with their own settings
local groups = optim.SGD({{params = {net.weight}, lr = 0.01}}, {lr = 0.1})
groups:add_param_group{params = {net.bias}}
print(groups.param_groups[1].lr, groups.param_groups[2].lr)  --> 0.01	0.1

-- Save and restore the state of an optimizer
adam:load_state_dict(adam:state_dict())
print(#adamw.param_groups, #rmsprop.param_groups)  --> 1	1

-- An optimizer of your own: optim.Optimizer:extend
local Sign = optim.Optimizer:extend("Sign", "float(>=0) lr = 0.1")
function Sign.update(_, p, grad, _, group) p:sub_(grad:sign() * group.lr) end
function Sign.check_group(_, group) assert(group.lr < 1) end
lt.no_grad(function() Sign(net:parameters()):step() end)
