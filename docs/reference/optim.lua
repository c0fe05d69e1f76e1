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
local nadam = optim.NAdam(net:parameters(), {lr = 2e-3, decoupled_weight_decay = true})
local radam = optim.RAdam(net:parameters(), {lr = 1e-3})
local adamax = optim.Adamax(net:parameters(), {lr = 2e-3})
local adagrad = optim.Adagrad(net:parameters(), {lr = 0.01, lr_decay = 1e-3})
local adadelta = optim.Adadelta(net:parameters(), {rho = 0.9})
local rprop = optim.Rprop(net:parameters(), {etas = {0.5, 1.2}, step_sizes = {1e-6, 50}})
local asgd = optim.ASGD(net:parameters(), {lr = 0.01, t0 = 100})
local lion = optim.Lion(net:parameters(), {lr = 1e-4, weight_decay = 0.1})
local adafactor = optim.Adafactor(net:parameters(), {lr = 0.01})
for _, each in ipairs{nadam, radam, adamax, adagrad, adadelta, rprop, asgd, lion, adafactor} do
  assert(each.param_groups[1].params[1] == net.weight)
end

-- A training step: every class is an optim.Optimizer
sgd:zero_grad()
local loss = (net(x) - y):square():mean()
loss:backward()
sgd:step()

-- Muon moves matrices; another optimizer moves the other parameters
local muon, others = optim.Muon({net.weight}, {lr = 0.02}), optim.AdamW({net.bias})
muon:step()
others:step()

-- LBFGS calls a function that computes the loss several times in a step
local line = nn.Linear(1, 1)
local lbfgs = optim.LBFGS(line:parameters(), {line_search_fn = "strong_wolfe"})
local inputs = lt.tensor{{0.}, {1}, {2}}
lbfgs:step(function()
  lbfgs:zero_grad{set_to_none = true}
  local l = (line(inputs) - (3 * inputs + 1)):square():mean()
  l:backward()
  return l
end)
print(("%.1f"):format(line(lt.tensor{{10.}}):item()))  --> 31.0

-- Parameters with names
local named = optim.AdamW(net:named_parameters(), {lr = 1e-3})
print(table.concat(named.param_groups[1].param_names, " "))  --> weight bias

-- Several groups of parameters with their own settings
local groups = optim.SGD({{params = {net.weight}, lr = 0.01}}, {lr = 0.1})
groups:add_param_group{params = {net.bias}}
print(groups.param_groups[1].lr, groups.param_groups[2].lr)  --> 0.01	0.1

-- Save and restore the state of an optimizer
adam:load_state_dict(adam:state_dict())
print(#adamw.param_groups, #rmsprop.param_groups)  --> 1	1

-- PyTorch counts parameters from 0
print(#adam:state_dict{base = 0}.param_groups[1].params)  --> 2

-- Callbacks around step, state_dict and load_state_dict
local handle = sgd:register_step_pre_hook(function(opt) opt.before = true end)
sgd:register_step_post_hook(function(opt) opt.after = opt.before end)
sgd:register_state_dict_pre_hook(function(opt) opt.saving = true end)
sgd:register_state_dict_post_hook(function(_, state) state.epoch = 3 end)
sgd:register_load_state_dict_pre_hook(function(opt, state) opt.epoch = state.epoch end)
sgd:register_load_state_dict_post_hook(function(opt) opt.loaded = true end)
sgd:step()
sgd:load_state_dict(sgd:state_dict())
handle:remove()
print(sgd.after, sgd.epoch, sgd.loaded)  --> true	3	true

-- An optimizer of your own: optim.Optimizer:extend
local Sign = optim.Optimizer:extend("Sign", "float(>=0) lr = 0.1")
function Sign.update(_, p, grad, _, group) p:sub_(grad:sign() * group.lr) end
function Sign.check_group(_, group) assert(group.lr < 1) end
lt.no_grad(function() Sign(net:parameters()):step() end)
