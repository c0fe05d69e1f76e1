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

-- Convolutions
local image = lt.ones(1, 3, 8, 8)
local conv = nn.Conv2d(3, 4, 3, {padding = 1})
print(conv)               --> Conv2d(3, 4, kernel_size=3, stride=1, padding=1)
print(conv(image).shape)  --> {1, 4, 8, 8}
conv:reset_parameters() -- of nn.Conv2d
print(nn.Conv1d(3, 4, 2)(lt.ones(1, 3, 8)).shape)                    --> {1, 4, 7}
print(nn.Conv3d(1, 2, 3)(lt.ones(1, 1, 5, 5, 5)).shape)              --> {1, 2, 3, 3, 3}
print(nn.ConvTranspose1d(3, 4, 2)(lt.ones(1, 3, 8)).shape)           --> {1, 4, 9}
print(nn.ConvTranspose2d(3, 4, 2, {stride = 2})(image).shape)        --> {1, 4, 16, 16}
print(nn.ConvTranspose3d(1, 2, 2)(lt.ones(1, 1, 2, 2, 2)).shape)     --> {1, 2, 3, 3, 3}

-- Normalization of each channel over the batch
local batch_norm = nn.BatchNorm2d(3)
print(batch_norm(image):abs():max():item() < 1e-3)  --> true
batch_norm:reset_running_stats() -- of nn.BatchNorm2d
print(nn.BatchNorm1d(3)(lt.ones(2, 3, 8)).shape, nn.BatchNorm3d(1)(lt.ones(1, 1, 2, 2, 2)).shape)
--> {2, 3, 8}	{1, 1, 2, 2, 2}

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

-- Pools, padding and resizing
local tops1, places1 = nn.MaxPool1d{2, return_indices = true}(lt.ones(1, 1, 4))
local tops2, places2 = nn.MaxPool2d{2, return_indices = true}(lt.ones(1, 1, 4, 4))
local tops3, places3 = nn.MaxPool3d{2, return_indices = true}(lt.ones(1, 1, 4, 4, 4))
print(nn.MaxPool1d(2)(lt.ones(1, 1, 4)).shape)  --> {1, 1, 2}
print(nn.MaxPool2d(2)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 2, 2}
print(nn.MaxPool3d(2)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 2, 2, 2}
print(nn.AvgPool1d(2)(lt.ones(1, 1, 4)).shape)  --> {1, 1, 2}
print(nn.AvgPool2d(2)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 2, 2}
print(nn.AvgPool3d(2)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 2, 2, 2}
print(nn.LPPool1d(2, 2)(lt.ones(1, 1, 4)).shape)  --> {1, 1, 2}
print(nn.LPPool2d(2, 2)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 2, 2}
print(nn.LPPool3d(2, 2)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 2, 2, 2}
print(nn.AdaptiveAvgPool1d(1)(lt.ones(1, 1, 4)).shape)  --> {1, 1, 1}
print(nn.AdaptiveAvgPool2d(1)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 1, 1}
print(nn.AdaptiveAvgPool3d(1)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 1, 1, 1}
print(nn.AdaptiveMaxPool1d(1)(lt.ones(1, 1, 4)).shape)  --> {1, 1, 1}
print(nn.AdaptiveMaxPool2d(1)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 1, 1}
print(nn.AdaptiveMaxPool3d(1)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 1, 1, 1}
print(nn.FractionalMaxPool2d(2, 3)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 3, 3}
print(nn.FractionalMaxPool3d(2, 3)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 3, 3, 3}
print(nn.MaxUnpool1d(2)(tops1, places1).shape)  --> {1, 1, 4}
print(nn.MaxUnpool2d(2)(tops2, places2).shape)  --> {1, 1, 4, 4}
print(nn.MaxUnpool3d(2)(tops3, places3).shape)  --> {1, 1, 4, 4, 4}
print(nn.Unfold(2)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 4, 9}
print(nn.Fold(4, 2)(lt.ones(1, 4, 9)).shape)  --> {1, 1, 4, 4}
print(nn.Upsample{scale_factor = 2}(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 8, 8}
print(nn.UpsamplingNearest2d(8)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 8, 8}
print(nn.UpsamplingBilinear2d(8)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 8, 8}
print(nn.PixelShuffle(2)(lt.ones(1, 4, 2, 2)).shape)  --> {1, 1, 4, 4}
print(nn.PixelUnshuffle(2)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 4, 2, 2}
print(nn.ChannelShuffle(2)(lt.ones(1, 4, 2)).shape)  --> {1, 4, 2}
print(nn.ReflectionPad1d(1)(lt.ones(1, 1, 4)).shape)  --> {1, 1, 6}
print(nn.ReflectionPad2d(1)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 6, 6}
print(nn.ReflectionPad3d(1)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 6, 6, 6}
print(nn.ReplicationPad1d(1)(lt.ones(1, 1, 4)).shape)  --> {1, 1, 6}
print(nn.ReplicationPad2d(1)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 6, 6}
print(nn.ReplicationPad3d(1)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 6, 6, 6}
print(nn.CircularPad1d(1)(lt.ones(1, 1, 4)).shape)  --> {1, 1, 6}
print(nn.CircularPad2d(1)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 6, 6}
print(nn.CircularPad3d(1)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 6, 6, 6}
print(nn.ZeroPad1d(1)(lt.ones(1, 1, 4)).shape)  --> {1, 1, 6}
print(nn.ZeroPad2d(1)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 6, 6}
print(nn.ZeroPad3d(1)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 6, 6, 6}
print(nn.ConstantPad1d(1, 5)(lt.ones(1, 1, 4)).shape)  --> {1, 1, 6}
print(nn.ConstantPad2d(1, 5)(lt.ones(1, 1, 4, 4)).shape)  --> {1, 1, 6, 6}
print(nn.ConstantPad3d(1, 5)(lt.ones(1, 1, 4, 4, 4)).shape)  --> {1, 1, 6, 6, 6}

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
