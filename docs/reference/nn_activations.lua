-- Examples of the further activations, norms, dropouts and distances of nn.
local lt = require "lutra"
local nn = lt.nn
lt.manual_seed(1)
local x = lt.tensor{{-2., -0.5, 0.5, 2.}}

-- Activations, elementwise
print(nn.ReLU6()(x * 4))  --> tensor{{0., 0., 2., 6.}, shape = {1, 4}}
print(nn.ELU(0.5)(x))  --> tensor{{-0.4323, -0.1967,  0.5000,  2.0000}, shape = {1, 4}}
print(nn.SELU()(x))  --> tensor{{-1.5202, -0.6918,  0.5254,  2.1014}, shape = {1, 4}}
print(nn.CELU()(x))  --> tensor{{-0.8647, -0.3935,  0.5000,  2.0000}, shape = {1, 4}}
print(nn.Mish()(x))  --> tensor{{-0.2525, -0.2207,  0.3752,  1.9440}, shape = {1, 4}}
print(nn.Hardtanh(-1, 1)(x))  --> tensor{{-1.0000, -0.5000,  0.5000,  1.0000}, shape = {1, 4}}
print(nn.Hardsigmoid()(x))  --> tensor{{0.1667, 0.4167, 0.5833, 0.8333}, shape = {1, 4}}
print(nn.Hardswish()(x))  --> tensor{{-0.3333, -0.2083,  0.2917,  1.6667}, shape = {1, 4}}
print(nn.Hardshrink(1)(x))  --> tensor{{-2.,  0.,  0.,  2.}, shape = {1, 4}}
print(nn.Softshrink(1)(x))  --> tensor{{-1.,  0.,  0.,  1.}, shape = {1, 4}}
print(nn.Tanhshrink()(x))  --> tensor{{-1.0360, -0.0379,  0.0379,  1.0360}, shape = {1, 4}}
print(nn.Softsign()(x))  --> tensor{{-0.6667, -0.3333,  0.3333,  0.6667}, shape = {1, 4}}
print(nn.Softplus()(x))  --> tensor{{0.1269, 0.4741, 0.9741, 2.1269}, shape = {1, 4}}
print(nn.LogSigmoid()(x))  --> tensor{{-2.1269, -0.9741, -0.4741, -0.1269}, shape = {1, 4}}
print(nn.Threshold(0, 9)(x))  --> tensor{{9.0000, 9.0000, 0.5000, 2.0000}, shape = {1, 4}}
print(nn.RReLU():eval()(x))  --> tensor{{-0.4583, -0.1146,  0.5000,  2.0000}, shape = {1, 4}}

-- A learned slope
local prelu = nn.PReLU()
print(prelu(x))
prelu:reset_parameters() -- of nn.PReLU

-- Along a dimension
print(nn.GLU()(x))  --> tensor{{-1.2449, -0.4404}, shape = {1, 2}}
print(nn.Softmin(-1)(x))  --> tensor{{0.7556, 0.1686, 0.0620, 0.0138}, shape = {1, 4}}
print(nn.Softmax2d()(lt.zeros(1, 2, 3, 3)):sum():item())  --> 9.0

-- Normalization of groups of channels, of instances, by the root mean square
local group_norm = nn.GroupNorm(2, 4)
print(group_norm, group_norm(lt.randn(2, 4, 3)).shape)
--> GroupNorm(2, 4, eps=1e-05, affine=true)	{2, 4, 3}
group_norm:reset_parameters() -- of nn.GroupNorm
local rms_norm = nn.RMSNorm(4)
print(rms_norm(x).shape)  --> {1, 4}
rms_norm:reset_parameters() -- of nn.RMSNorm
local instance_norm = nn.InstanceNorm1d(4, {track_running_stats = true})
instance_norm:reset_running_stats() -- of nn.InstanceNorm1d
print(nn.InstanceNorm1d(4)(lt.randn(2, 4, 3)).shape)  --> {2, 4, 3}
print(nn.InstanceNorm2d(4)(lt.randn(2, 4, 3, 3)).shape)  --> {2, 4, 3, 3}
print(nn.InstanceNorm3d(4)(lt.randn(2, 4, 3, 3, 3)).shape)  --> {2, 4, 3, 3, 3}
print(nn.LocalResponseNorm(2)(lt.ones(1, 4, 3)).shape)  --> {1, 4, 3}
print(nn.CrossMapLRN2d(3)(lt.ones(1, 4, 3, 3)).shape)  --> {1, 4, 3, 3}

-- Dropout of channels, and for SELU
print(nn.Dropout1d():eval()(lt.ones(1, 4, 3)).shape)  --> {1, 4, 3}
print(nn.Dropout2d():eval()(lt.ones(1, 4, 3, 3)).shape)  --> {1, 4, 3, 3}
print(nn.Dropout3d():eval()(lt.ones(1, 4, 3, 3, 3)).shape)  --> {1, 4, 3, 3, 3}
print(nn.AlphaDropout():eval()(x))  --> tensor{{-2.0000, -0.5000,  0.5000,  2.0000}, shape = {1, 4}}
print(nn.FeatureAlphaDropout():eval()(lt.ones(1, 4, 3)).shape)  --> {1, 4, 3}

-- Distances
print(nn.CosineSimilarity()(x, x))  --> tensor{1.0000}
print(nn.PairwiseDistance()(x, x + 1))  --> tensor{2.0000}

-- Two inputs
local bilinear = nn.Bilinear(4, 4, 2)
print(bilinear(x, x).shape)  --> {1, 2}
bilinear:reset_parameters() -- of nn.Bilinear

-- Split a dimension
print(nn.Unflatten(2, {2, 2})(x).shape)  --> {1, 2, 2}

-- Bags of vectors: a bag begins at each offset, which count from 1
local bag = nn.EmbeddingBag(10, 3, {mode = "sum"})
print(bag(lt.tensor{1, 2, 4, 5}, lt.tensor{1, 3}).shape)  --> {2, 3}
bag:reset_parameters() -- of nn.EmbeddingBag
print(nn.Embedding.from_pretrained(lt.tensor{{1., 2.}, {3., 4.}})(lt.tensor{2}))
--> tensor{{3., 4.}, shape = {1, 2}}
print(nn.EmbeddingBag.from_pretrained(lt.tensor{{1., 2.}, {3., 4.}})(lt.tensor{{1, 2}}))
--> tensor{{2., 3.}, shape = {1, 2}}
