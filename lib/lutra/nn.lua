--- nn: layers, losses, containers, initializers and utilities for neural networks. Each layer, or
-- family of layers, is a file of lutra/nn.

local lt = require "lutra"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"
local activations = require "lutra.nn.activations"
local containers = require "lutra.nn.containers"
local losses = require "lutra.nn.losses"
local convolution = require "lutra.nn.convolution"
local batch_norm = require "lutra.nn.batch_norm"
local windows = require "lutra.nn.windows"

local nn = {
  Module = require "lutra.nn.module",
  Linear = require "lutra.nn.linear",
  LayerNorm = require "lutra.nn.layer_norm",
  Embedding = require "lutra.nn.embedding",
  Dropout = require "lutra.nn.dropout",
  Flatten = require "lutra.nn.flatten",
  Sequential = containers.Sequential,
  ModuleList = containers.ModuleList,
  functional = require "lutra.nn.functional",
  init = require "lutra.nn.initializers",
  utils = require "lutra.nn.utils",
  parallel = require "lutra.nn.parallel",
}
nn.DataParallel = nn.parallel.DataParallel

for name, class in pairs(activations) do nn[name] = class end
for name, class in pairs(losses) do nn[name] = class end
for name, class in pairs(convolution) do nn[name] = class end
for name, class in pairs(batch_norm) do nn[name] = class end
for name, class in pairs(windows) do nn[name] = class end

local parse_parameter = args.signature("Parameter", "Tensor data, bool requires_grad = true")

--- Returns a leaf tensor that shares the memory of `tensor`. A module registers it when it is
-- assigned to one of its fields. Raises an error when `requires_grad` is true and the dtype is not
-- a floating-point one.
function nn.Parameter(...)
  local data, requires_grad = parse_parameter(...)
  return lt._parameter(data, requires_grad)
end

nn.skip_init = nn.utils.skip_init

nn.is_module = nn.Module.is_module

--- Returns whether `x` is an nn.Parameter; `x` may be any value.
function nn.is_parameter(x) return lt.is_parameter(x) end

return strict_table.strict(nn, "nn")
