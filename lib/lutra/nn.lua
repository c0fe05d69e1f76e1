--- nn: networks as modules. See docs for each class; one layer or family a file.

local lt = require "lutra"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"
local activations = require "lutra.nn.activations"
local containers = require "lutra.nn.containers"
local losses = require "lutra.nn.losses"

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

local parse_parameter = args.signature("Parameter", "Tensor data, bool requires_grad = true")

--- nn.Parameter(tensor, requires_grad = true): a leaf tensor that shares the memory of
-- `tensor` and that a module registers when it is assigned to a field.
function nn.Parameter(...)
  local data, requires_grad = parse_parameter(...)
  return lt._parameter(data, requires_grad)
end

nn.skip_init = nn.utils.skip_init

nn.is_module = nn.Module.is_module

--- Is `x` an nn.Parameter?
function nn.is_parameter(x) return lt.is_parameter(x) end

return strict_table.strict(nn, "nn")
