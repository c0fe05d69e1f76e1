-- Examples of nn.utils: parameters that are computed from others, pruning, fusion of layers.
local lt = require "lutra"
local nn = lt.nn
lt.manual_seed(1)

-- Weight and spectral normalization
local layer = nn.utils.weight_norm(nn.Linear(3, 2))
print(layer.weight_g.shape, layer.weight_v.shape)  --> {2, 1}	{2, 3}
nn.utils.remove_weight_norm(layer)
nn.utils.spectral_norm(layer, {n_power_iterations = 5})
print(layer(lt.ones(1, 3)).shape, lt.linalg.svdvals(layer.weight)[1]:item() < 1.1)  --> {1, 2}	true
nn.utils.remove_spectral_norm(layer)

-- The same as parametrizations: the weight is computed whenever it is read
nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
local conv = nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 8, 3))
print(conv.parametrizations.weight.original.shape)  --> {8, 3, 3, 3}

-- An orthogonal weight
local rotation = nn.utils.parametrizations.orthogonal(nn.Linear(2, 2, false))
local w = rotation.weight
print(lt.allclose(w:matmul(w:t()), lt.eye(2), {atol = 1e-6}))  --> true

-- A parametrization of your own: a symmetric weight
local Symmetric = nn.Module:extend "Symmetric"
function Symmetric.forward(_, x) return x:triu() + x:triu(1):t() end
function Symmetric.right_inverse(_, x) return x:triu() end
local m = nn.Linear(2, 2)
nn.utils.parametrize.register_parametrization(m, "weight", Symmetric())
m.weight = lt.tensor{{1., 2.}, {2., 3.}}
print(m.weight:detach())
--> tensor{{1., 2.},
-->        {2., 3.}, shape = {2, 2}}
print(nn.utils.parametrize.is_parametrized(m, "weight"))  --> true
print(nn.utils.parametrize.type_before_parametrizations(m) == nn.Linear)  --> true

-- Its list of parametrizations, and one computation for several reads
local list = m.parametrizations.weight
print(list:type_name(), list.original)
--> ParametrizationList	tensor{{1., 2.},
-->        {0., 3.}, shape = {2, 2}, requires_grad = true}
print(nn.utils.parametrize.ParametrizationList == getmetatable(list).__state.class)  --> true
list:right_inverse(lt.eye(2))
print(nn.utils.parametrize.cached(function() return m.weight == m.weight end))  --> true
local twin = nn.utils.parametrize.transfer_parametrizations_and_params(m, nn.Linear(2, 2))
print(twin.parametrizations.weight.original == list.original)  --> true
nn.utils.parametrize.remove_parametrizations(m, "weight")

-- Pruning by magnitude, at random, by channels, by a mask
local net = nn.Linear(4, 4)
nn.utils.prune.l1_unstructured(net, "weight", 0.25)
nn.utils.prune.random_unstructured(net, "weight", 2)
print(net.weight:eq(0):sum():item(), nn.utils.prune.is_pruned(net))  --> 6	true
nn.utils.prune.ln_structured(net, "weight", 1, 2, 1)
nn.utils.prune.random_structured(net, "weight", 1, 2)
nn.utils.prune.remove(net, "weight")
nn.utils.prune.identity(net, "weight")
nn.utils.prune.custom_from_mask(net, "bias", lt.tensor{1, 1, 1, 0})
print(net.bias:eq(0):sum():item())  --> 1
nn.utils.prune.global_unstructured({{net, "weight"}, {net, "bias"}},
  nn.utils.prune.L1Unstructured, {amount = 0.5})

-- A method of pruning of your own: every other element
local Halved = nn.utils.prune.BasePruningMethod:extend "Halved"
Halved.PRUNING_TYPE = "unstructured"
function Halved.compute_mask(_, _, default_mask)
  local mask = default_mask:clone()
  mask:view(-1)["::2"] = 0
  return mask
end
Halved.apply(net, "weight")
print(Halved():prune(lt.ones(4)))  --> tensor{0., 1., 0., 1.}

-- The methods as classes
local fresh = nn.Linear(4, 4)
nn.utils.prune.Identity.apply(fresh, "weight")
nn.utils.prune.CustomFromMask.apply(fresh, "bias", lt.tensor{1, 1, 1, 0})
nn.utils.prune.L1Unstructured.apply(fresh, "weight", 0.25)
nn.utils.prune.RandomUnstructured.apply(fresh, "weight", {amount = 2})
nn.utils.prune.LnStructured.apply(fresh, "weight", 1, 2, {dim = 1})
nn.utils.prune.RandomStructured.apply(fresh, "weight", 1, {dim = 2})
print(nn.utils.prune.LnStructured(1, 2, 2):compute_mask(lt.tensor{{3., 1.}, {3., 1.}},
  lt.ones(2, 2)))
--> tensor{{1., 0.},
-->        {1., 0.}, shape = {2, 2}}

-- Batch normalization as part of the layer before it
local first, norm = nn.Conv2d(1, 2, 3):eval(), nn.BatchNorm2d(2):eval()
local image = lt.randn(1, 1, 5, 5)
local fused = nn.utils.fuse_conv_bn_eval(first, norm)
print(lt.allclose(fused(image), norm(first(image)), {atol = 1e-5}))  --> true
nn.utils.fuse_linear_bn_eval(nn.Linear(3, 2):eval(), nn.BatchNorm1d(2):eval())
nn.utils.fuse_conv_bn_weights(first.weight, first.bias, norm.running_mean, norm.running_var,
  norm.eps, norm.weight, norm.bias)
nn.utils.fuse_linear_bn_weights(lt.ones(2, 3), nil, lt.zeros(2), lt.ones(2), 1e-5, nil, nil)
