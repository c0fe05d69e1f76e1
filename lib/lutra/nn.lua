--- nn: layers, losses, containers, initializers and utilities for neural networks. Each layer, or
-- family of layers, is a file of lutra/nn.

local lt = require "lutra"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"
local containers = require "lutra.nn.containers"

local nn = {
  Module = require "lutra.nn.module",
  Linear = require "lutra.nn.linear",
  LayerNorm = require "lutra.nn.layer_norm",
  GroupNorm = require "lutra.nn.group_norm",
  RMSNorm = require "lutra.nn.rms_norm",
  Bilinear = require "lutra.nn.bilinear",
  Flatten = require "lutra.nn.flatten",
  MultiheadAttention = require "lutra.nn.multihead_attention",
  AdaptiveLogSoftmaxWithLoss = require "lutra.nn.adaptive_softmax",
  LinearCrossEntropyLoss = require "lutra.nn.linear_cross_entropy",
  Unflatten = require "lutra.nn.unflatten",
  Sequential = containers.Sequential,
  ModuleList = containers.ModuleList,
  ModuleDict = require "lutra.nn.module_dict",
  functional = require "lutra.nn.functional",
  init = require "lutra.nn.initializers",
  utils = require "lutra.nn.utils",
  parallel = require "lutra.nn.parallel",
  modules = require "lutra.nn.modules",
}
nn.DataParallel = nn.parallel.DataParallel

-- Files that define several classes.
for _, file in ipairs {
  "lutra.nn.activations", "lutra.nn.losses", "lutra.nn.convolution", "lutra.nn.batch_norm",
  "lutra.nn.sync_batch_norm",
  "lutra.nn.instance_norm", "lutra.nn.response_norm", "lutra.nn.windows", "lutra.nn.dropout",
  "lutra.nn.distances", "lutra.nn.embedding", "lutra.nn.parameter_containers",
  "lutra.nn.lazy", "lutra.nn.recurrent", "lutra.nn.recurrent_cells", "lutra.nn.transformer",
  "lutra.nn.transformer_layers",
} do
  for name, class in pairs(require(file)) do nn[name] = class end
end

local parse_parameter = args.signature("Parameter", "Tensor data, bool requires_grad = true")

--- Returns a leaf tensor that shares the memory of `tensor`. A module registers it when it is
-- assigned to one of its fields. Raises an error when `requires_grad` is true and the dtype is not
-- a floating-point one.
function nn.Parameter(...)
  local data, requires_grad = parse_parameter(...)
  args.check(not requires_grad or data:is_floating_point() or data:is_complex(),
    'Parameter: expected a tensor of a float dtype for argument \'data\', got "%s"\n'
    .. "hint: nn.Parameter(x:float()), or nn.Parameter(x, false)", data.dtype)
  return lt._parameter(data, requires_grad)
end

local parse_buffer = args.signature("Buffer", "Tensor data, bool persistent = true")

--- nn.Buffer(data, {persistent = true}): returns a tensor that shares the memory of `data`. A
-- module registers it as a buffer when it is assigned to one of its fields, as m:register_buffer
-- does.
function nn.Buffer(...)
  local data, persistent = parse_buffer(...)
  return nn.Module._as_buffer(data:detach():requires_grad_(data.requires_grad), persistent)
end

nn.skip_init = nn.utils.skip_init

nn.is_module = nn.Module.is_module

--- Returns whether `x` is an nn.Parameter; `x` may be any value.
function nn.is_parameter(x) return lt.is_parameter(x) end

return strict_table.lazy(nn, "nn", {summary = "lutra.nn.summary"})
