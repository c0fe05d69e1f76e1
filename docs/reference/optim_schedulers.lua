-- Examples of optim.lr_scheduler and optim.swa_utils.
local lt = require "lutra"
local nn, optim, data = lt.nn, lt.optim, lt.data
lt.manual_seed(1)
local net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
local function sgd(lr) return optim.SGD(net:parameters(), {lr = lr or 0.1, momentum = 0.9}) end

-- A scheduler sets the learning rates of an optimizer: step it after the optimizer's steps
local opt = sgd()
local scheduler = optim.lr_scheduler.StepLR(opt, {step_size = 2, gamma = 0.1})
for _ = 1, 3 do
  opt:step()
  scheduler:step()
end
print(opt.param_groups[1].lr, scheduler:get_last_lr()[1])  --> 0.01	0.01
print(scheduler:get_lr()[1], scheduler.last_epoch)  --> 0.01	3

-- Multiply by a factor at some epochs, or in each one
local multi_step = optim.lr_scheduler.MultiStepLR(sgd(), {milestones = {30, 80}, gamma = 0.1})
local exponential = optim.lr_scheduler.ExponentialLR(sgd(), {gamma = 0.95})
local by_function = optim.lr_scheduler.LambdaLR(sgd(), function(epoch) return 0.95 ^ epoch end)
local product = optim.lr_scheduler.MultiplicativeLR(sgd(), function() return 0.95 end)

-- Over a number of steps
local constant = optim.lr_scheduler.ConstantLR(sgd(), {factor = 0.5, total_iters = 4})
local linear = optim.lr_scheduler.LinearLR(sgd(), {start_factor = 0.1, total_iters = 4})
local polynomial = optim.lr_scheduler.PolynomialLR(sgd(), {total_iters = 4, power = 2})
local cosine = optim.lr_scheduler.CosineAnnealingLR(sgd(), {T_max = 10, eta_min = 1e-4})
local restarts = optim.lr_scheduler.CosineAnnealingWarmRestarts(sgd(), {T_0 = 10, T_mult = 2})
for _, each in ipairs{multi_step, exponential, by_function, product, constant, linear, polynomial,
  cosine, restarts} do
  each:step()
end
print(linear)  --> LinearLR (last_epoch=1, lr={0.0325})

-- Cycles of the learning rate and, in the opposite direction, of momentum: step in each batch
local cyclic = optim.lr_scheduler.CyclicLR(sgd(), 0.01, 0.1, {mode = "triangular2"})
print(cyclic:scale_fn(2))  --> 0.5
local one_cycle = optim.lr_scheduler.OneCycleLR(sgd(), {max_lr = 0.1, total_steps = 20})
print(#one_cycle:get_last_lr())  --> 1

-- When a metric stops improving
local plateau = optim.lr_scheduler.ReduceLROnPlateau(sgd(), {patience = 0, factor = 0.5})
plateau:step(lt.tensor(1.0))
plateau:step(2.0)
print(plateau.optimizer.param_groups[1].lr, plateau:in_cooldown())  --> 0.05	false

-- One after the other: a warmup, then a cosine; and several at once
local both = sgd()
local sequential = optim.lr_scheduler.SequentialLR(both, {
  optim.lr_scheduler.LinearLR(both, {total_iters = 3}),
  optim.lr_scheduler.CosineAnnealingLR(both, {T_max = 9}),
}, {milestones = {3}})
sequential:step()
local again = sgd()
local chained = optim.lr_scheduler.ChainedScheduler{
  optim.lr_scheduler.ConstantLR(again), optim.lr_scheduler.ExponentialLR(again, 0.9)}
chained:step()

-- The state of a scheduler
sequential:load_state_dict(sequential:state_dict())
print(sequential.last_epoch)  --> 1

-- SequentialLR takes back the first steps of its schedulers
local undone = optim.lr_scheduler.StepLR(again, 3)
sequential:recursive_undo(undone)
print(undone.last_epoch)  --> -1

-- A scheduler of your own: optim.lr_scheduler.LRScheduler:extend
local Halve = optim.lr_scheduler.LRScheduler:extend "Halve"
function Halve:get_lr()
  self:check_optimizer(self.optimizer)
  local now = #self:values_of "lr" + #self:scaled(0.5) + #self:per_group("x", self.optimizer, 1)
  return now > 0 and self:from_base(function(lr) return lr * 0.5 ^ self.last_epoch end)
end
local halve = Halve(sgd(0.5))
halve:step()
print(halve:get_last_lr()[1])  --> 0.25

-- Averages of weights (SWA) and their learning rate
local averaged = optim.swa_utils.AveragedModel(net)
local swa_schedule = optim.swa_utils.SWALR(opt, {swa_lr = 0.05, anneal_epochs = 5})
for _ = 1, 2 do
  averaged:update_parameters(net)
  swa_schedule:step()
end
print(averaged.n_averaged:item())  --> 2

-- The statistics of batch normalization for the averaged weights
local loader = data.DataLoader(data.TensorDataset(lt.randn(8, 2)), {batch_size = 4})
optim.swa_utils.update_bn(loader, averaged)

-- Exponential moving averages, of buffers too
local ema = optim.swa_utils.AveragedModel(net, {use_buffers = true,
  multi_avg_fn = optim.swa_utils.get_ema_multi_avg_fn(0.999)})
ema:update_parameters(net)
local one, two = lt.tensor{1.}, lt.tensor{3.}
print(optim.swa_utils.get_ema_avg_fn(0.5)(one, two, 1):item())  --> 2.0
print(optim.swa_utils.get_swa_avg_fn()(one, two, 3):item())  --> 1.5
optim.swa_utils.get_swa_multi_avg_fn()({one}, {two}, 1)
print(one:item())  --> 2.0
