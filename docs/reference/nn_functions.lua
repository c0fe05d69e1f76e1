-- Examples of nn.init, nn.utils and nn.parallel.
local lt = require "lutra"
local nn = lt.nn
lt.manual_seed(1)

-- Initialize parameters in place
local w = lt.empty(3, 3)
nn.init.uniform_(w, -1, 1)
nn.init.normal_(w, 0, 0.02)
nn.init.trunc_normal_(w, {std = 0.02})
nn.init.xavier_uniform_(w)
nn.init.xavier_normal_(w)
nn.init.kaiming_uniform_(w, {nonlinearity = "relu"})
nn.init.kaiming_normal_(w, {nonlinearity = "relu"})

-- Fixed values
print(nn.init.constant_(lt.empty(2), 0.5))  --> tensor{0.5000, 0.5000}
print(nn.init.ones_(lt.empty(2)), nn.init.zeros_(lt.empty(2)))  --> tensor{1., 1.}	tensor{0., 0.}
print(nn.init.eye_(lt.empty(2, 2)):trace():item())  --> 2.0
print(nn.init.calculate_gain "tanh")  --> 1.6666666666667

-- Limit gradients
local net = nn.Linear(3, 1)
net(lt.ones(2, 3)):sum():backward()
print(nn.utils.clip_grad_norm_(net:parameters(), 1.0):item() > 1)  --> true
nn.utils.clip_grad_value_(net:parameters(), 0.1)
print(net.weight.grad:abs():max():item() < 0.11)  --> true

-- Data parallelism over the devices of one machine
net:to(lt.best_device())
local parallel = nn.DataParallel(net)
print(parallel(lt.ones{4, 3, device = net:device()}).shape)  --> {4, 1}

-- Its parts: split a batch, copy the module, run, join the results
if lt.cuda.device_count() > 1 then
  local parts = nn.parallel.scatter(lt.ones{4, 3, device = "cuda:0"}, {0, 1})
  local copies = nn.parallel.replicate(net, {0, 1})
  local outputs = nn.parallel.parallel_apply(copies, parts)
  print(nn.parallel.gather(outputs, 0).shape)
  print(nn.parallel.data_parallel(net, lt.ones{4, 3, device = "cuda:0"}, {0, 1}).shape)
end

-- One process for each device; without a process group a single process trains as usual
local ddp = nn.parallel.DistributedDataParallel(net)
ddp:no_sync(function() ddp(lt.ones{4, 3, device = net:device()}):sum():backward() end)
