--- nn.utils: tools for parameters and gradients: clipping, conversion to vectors,
-- reparametrization, pruning, fusion of layers. Each family is a file of lutra/nn/utils.

local strict_table = require "lutra.internal.strict_table"

local utils = {rnn = require "lutra.nn.packed_sequences"}

for _, part in ipairs {"gradients", "construction", "weight_norm"} do
  for name, f in pairs(require("lutra.nn.utils." .. part)) do utils[name] = f end
end

local libraries = {}
for _, name in ipairs {"fusion", "parametrizations", "parametrize", "prune"} do
  libraries[name] = "lutra.nn.utils." .. name
end
for _, name in ipairs {"fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval",
  "fuse_linear_bn_weights"} do
  libraries[name] = "lutra.nn.utils.fusion#" .. name
end

return strict_table.lazy(utils, "nn.utils", libraries)
