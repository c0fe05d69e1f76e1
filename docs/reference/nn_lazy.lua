-- Examples of the lazy layers of nn: the first input determines the number of inputs.
local lt = require "lutra"
local nn = lt.nn

local net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
print(net[1], net[1]:has_uninitialized_params())
--> LazyConv2d(0, 4, kernel_size=3, stride=1)	true
print(net(lt.ones(1, 3, 8, 8)).shape)  --> {1, 2}
print(net[1])  --> Conv2d(3, 4, kernel_size=3, stride=1)

-- Without a call
local layer = nn.LazyConv1d(4, 3)
layer:initialize_parameters(lt.ones(1, 2, 8))
print(layer)  --> Conv1d(2, 4, kernel_size=3, stride=1)

print(nn.LazyConv3d(4, 2)(lt.ones(1, 2, 3, 3, 3)).shape)           --> {1, 4, 2, 2, 2}
print(nn.LazyConvTranspose1d(4, 2)(lt.ones(1, 2, 3)).shape)        --> {1, 4, 4}
print(nn.LazyConvTranspose2d(4, 2)(lt.ones(1, 2, 3, 3)).shape)     --> {1, 4, 4, 4}
print(nn.LazyConvTranspose3d(4, 2)(lt.ones(1, 2, 3, 3, 3)).shape)  --> {1, 4, 4, 4, 4}

-- Norms
local norm = nn.LazyBatchNorm1d()
norm(lt.randn(4, 3))
norm:reset_parameters()
norm:reset_running_stats()
print(nn.LazyBatchNorm3d()(lt.ones(1, 2, 3, 3, 3)).shape)     --> {1, 2, 3, 3, 3}
print(nn.LazyInstanceNorm1d()(lt.ones(1, 2, 3)).shape)        --> {1, 2, 3}
print(nn.LazyInstanceNorm2d()(lt.ones(1, 2, 3, 3)).shape)     --> {1, 2, 3, 3}
print(nn.LazyInstanceNorm3d()(lt.ones(1, 2, 3, 3, 3)).shape)  --> {1, 2, 3, 3, 3}
