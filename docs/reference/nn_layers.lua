-- Examples of the layers of nn.
local lt = require "lutra"
local nn = lt.nn
lt.manual_seed(1)
local x = lt.tensor{{-1., 0., 2.}}

-- A linear layer, its parameters drawn again
local linear = nn.Linear(3, 2)
print(linear)           --> Linear(in_features=3, out_features=2, bias=true)
print(linear(x).shape)  --> {1, 2}
linear:reset_parameters() -- of nn.Linear

-- Layers one after another
local net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
print(net(x).shape)  --> {1, 2}
net:append(nn.ReLU()):insert(1, nn.Flatten())
net:extend{nn.Identity()}

-- A list of modules
local blocks = nn.ModuleList{nn.Linear(3, 3), nn.Linear(3, 3)}
local y = x
for _, block in ipairs(blocks) do y = block(y) end
blocks:append(nn.ReLU())
blocks:insert(1, nn.Flatten())

-- Vectors by number, from 1
local embedding = nn.Embedding(10, 4)
print(embedding(lt.tensor{1, 10}).shape)  --> {2, 4}
embedding:reset_parameters() -- of nn.Embedding

-- Normalization over the last dimension
local norm = nn.LayerNorm(3)
print(norm(x):mean():abs():item() < 1e-6)  --> true
norm:reset_parameters() -- of nn.LayerNorm

-- Dropout drops in training mode only
local dropout = nn.Dropout(0.5)
print(dropout:eval()(x))  --> tensor{{-1.,  0.,  2.}, shape = {1, 3}}

-- Images as vectors
print(nn.Flatten()(lt.zeros(5, 28, 28)).shape)  --> {5, 784}

-- Activations
print(nn.ReLU()(x))            --> tensor{{0., 0., 2.}, shape = {1, 3}}
print(nn.LeakyReLU(0.1)(x))    --> tensor{{-0.1000,  0.0000,  2.0000}, shape = {1, 3}}
print(nn.Sigmoid()(x))         --> tensor{{0.2689, 0.5000, 0.8808}, shape = {1, 3}}
print(nn.Tanh()(x))            --> tensor{{-0.7616,  0.0000,  0.9640}, shape = {1, 3}}
print(nn.GELU{approximate = "tanh"}(x))  --> tensor{{-0.1588,  0.0000,  1.9546}, shape = {1, 3}}
print(nn.SiLU()(x))            --> tensor{{-0.2689,  0.0000,  1.7616}, shape = {1, 3}}
print(nn.Softmax(-1)(x))       --> tensor{{0.0420, 0.1142, 0.8438}, shape = {1, 3}}
print(nn.LogSoftmax(-1)(x))    --> tensor{{-3.1698, -2.1698, -0.1698}, shape = {1, 3}}
print(nn.Identity()(x) == x)   --> true

-- Losses; class labels count from 1
local scores, labels = lt.tensor{{2., 0.}, {0., 2.}}, lt.tensor{1, 2}
print(nn.CrossEntropyLoss()(scores, labels))           --> tensor(0.1269)
print(nn.NLLLoss()(scores:log_softmax(2), labels))     --> tensor(0.1269)
print(nn.MSELoss()(scores, lt.zeros(2, 2)))            --> tensor(2.)
print(nn.L1Loss{reduction = "sum"}(scores, lt.zeros(2, 2)))  --> tensor(4.)
print(nn.HuberLoss()(scores, lt.zeros(2, 2)))          --> tensor(0.7500)

-- A parameter is a leaf tensor that a module registers
local p = nn.Parameter(lt.zeros(3))
print(nn.is_parameter(p), p.requires_grad, nn.is_module(linear))  --> true	true	true

-- A layer without the work of its initialization
print(nn.skip_init(nn.Linear, 3, 2).weight.shape)  --> {2, 3}
