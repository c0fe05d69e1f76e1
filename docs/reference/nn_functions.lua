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
print(nn.init.dirac_(lt.empty(2, 2, 3))[{2, 2}])  --> tensor{0., 1., 0.}

-- A random orthogonal matrix, and one with zeros
local q = nn.init.orthogonal_(lt.empty(2, 4))
print(lt.allclose(q:matmul(q:t()), lt.eye(2), {atol = 1e-6}))  --> true
print(nn.init.sparse_(lt.empty(4, 2), 0.5):eq(0):sum():item())  --> 4

-- A table of a model's layers, without memory for its tensors
print(nn.summary(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), {5, 4}))
--> =================================================
--> Layer (name)   Input   Output  Param #  Mult-Adds
--> =================================================
--> Sequential     {5, 4}  {5, 2}       --         --
--> ├─ Linear (1)  {5, 4}  {5, 8}       40        160
--> ├─ ReLU (2)    {5, 8}  {5, 8}       --         --
--> └─ Linear (3)  {5, 8}  {5, 2}       18         80
--> =================================================
--> Total params: 58
--> Trainable params: 58
--> Non-trainable params: 0
--> Total mult-adds: 240
--> =================================================
--> Input size (MB): 0.00
--> Forward/backward pass size (MB): 0.00
--> Params size (MB): 0.00
--> Estimated total size (MB): 0.00
--> =================================================

-- Limit gradients
local net = nn.Linear(3, 1)
net(lt.ones(2, 3)):sum():backward()
print(nn.utils.clip_grad_norm_(net:parameters(), 1.0):item() > 1)  --> true
print(nn.utils.get_total_norm{net.weight.grad, net.bias.grad}:item() < 1.01)  --> true
nn.utils.clip_grads_with_norm_(net:parameters(), 1.0, lt.tensor(2.0))
nn.utils.clip_grad_value_(net:parameters(), 0.1)
print(net.weight.grad:abs():max():item() < 0.11)  --> true

-- Parameters as one vector
local vector = nn.utils.parameters_to_vector(net:parameters())
print(vector.shape)  --> {4}
nn.utils.vector_to_parameters(vector:detach() * 0, net:parameters())
print(net.weight:sum():item())  --> 0.0

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
