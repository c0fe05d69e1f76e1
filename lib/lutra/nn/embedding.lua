--- Embedding: a table of vectors, looked up by ids that count from 1.

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"

local Embedding = Module:extend "Embedding"

local parse = args.signature("Embedding", "int(>=1) num_embeddings, int(>=0) embedding_dim, "
  .. "int? padding_idx = nil, float? max_norm = nil, float norm_type = 2, "
  .. "bool scale_grad_by_freq = false, bool sparse = false, Tensor? _weight = nil, "
  .. "bool _freeze = false, device? device = nil, dtype? dtype = nil")

-- 1..n from 1..n or -n..-1; 0 is an error that says so.
local function position(index, n)
  args.check(index ~= 0, "Embedding: padding_idx is 0, ids count from 1")
  local id = index < 0 and n + 1 + index or index
  args.check(id >= 1 and id <= n, "Embedding: padding_idx is %d, it wants 1..%d or -%d..-1", index,
    n, n)
  return id
end

--- nn.Embedding(num_embeddings, embedding_dim, {padding_idx}).
-- weight {num_embeddings, embedding_dim} starts standard normal. The row padding_idx
-- starts at zero and gets no gradient. `sparse` has no effect: gradients are dense.
function Embedding:init(...)
  local count, dim, padding, max_norm, _, by_frequency, _, weight, freeze, device, dtype =
    parse(...)
  args.check(not max_norm, "Embedding: cannot use max_norm: it is not yet supported")
  args.check(not by_frequency, "Embedding: cannot use scale_grad_by_freq: it is not yet supported")
  self.num_embeddings, self.embedding_dim = count, dim
  self.padding_idx = padding and position(padding, count)
  if weight then
    args.check(weight.ndim == 2 and weight:size(1) == count and weight:size(2) == dim,
      "Embedding: expected a tensor of shape {%d, %d} for argument '_weight', got one of shape %s",
      count, dim, tostring(weight.shape))
    self.weight = lt.nn.Parameter(weight, not freeze)
    return
  end
  self.weight = lt.nn.Parameter(lt.empty({count, dim}, {device = device, dtype = dtype}),
    not freeze)
  self:reset_parameters()
end

--- Draws the vectors anew.
function Embedding:reset_parameters()
  init.normal_(self.weight)
  if self.padding_idx then
    lt.no_grad(function() self.weight[self.padding_idx]:fill_(0) end)
  end
end

--- Ids {*} of an integer dtype, from 1 to num_embeddings, to {*, embedding_dim}.
function Embedding:forward(ids)
  self:check_tensor(ids)
  if ids.dtype ~= "int64" and ids.dtype ~= "int32" then
    self:fail("the ids are of dtype %s, it wants int64 or int32: use x:to \"int64\"", ids.dtype)
  end
  return lt.F.embedding(ids, self.weight, self.padding_idx)
end

function Embedding:extra_repr()
  local text = ("%d, %d"):format(self.num_embeddings, self.embedding_dim)
  if self.padding_idx then text = text .. (", padding_idx=%d"):format(self.padding_idx) end
  return text
end

return Embedding
