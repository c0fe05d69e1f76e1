--- F (nn.functional): the computations of layers and losses, as functions.
--
-- Nearly all of these are ops of the runtime under PyTorch's names: those that src/tensor/ops.def
-- marks with NN. This file defines only the composites that are written in Lua.

local namespaces = require "lutra.internal.namespaces"

local F = namespaces.ops "F"

return namespaces.lazy(F, "F")
