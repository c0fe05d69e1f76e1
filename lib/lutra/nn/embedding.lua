--- nn.Embedding: a table of vectors, looked up by integer ids from 1.

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"

local Embedding = Module:extend "Embedding"

local parse = args.signature("Embedding", "int(>=1) num_embeddings, int(>=0) embedding_dim, "
  .. "int? padding_idx = nil, float? max_norm = nil, float norm_type = 2, "
  .. "bool scale_grad_by_freq = false, bool sparse = false, Tensor? _weight = nil, "
  .. "bool _freeze = false, device? device = nil, dtype? dtype = nil")

-- Converts padding_idx, 1 to n or -n to -1, to a row from 1 to n; raises an error for any other.
local function to_row(index, n)
  local id = index < 0 and n + 1 + index or index
  args.check(index ~= 0 and id >= 1 and id <= n, "Embedding: expected an index from 1 to %d or "
    .. "from -%d to -1 for argument 'padding_idx', got %d", n, n, index)
  return id
end

--- nn.Embedding(num_embeddings, embedding_dim, {padding_idx}): a table `weight` {num_embeddings,
-- embedding_dim} that starts from the standard normal distribution. The row padding_idx (1-based;
-- a negative one counts from the end) starts at zero and gets no gradient. `_weight` is a tensor
-- of this shape to start from, `_freeze` excludes it from training. `sparse` has no effect:
-- gradients are dense. max_norm and scale_grad_by_freq are not yet supported and raise an error.
function Embedding:init(...)
  local count, dim, padding, max_norm, _, by_frequency, _, weight, freeze, device, dtype =
    parse(...)
  args.check(not max_norm, "Embedding: cannot use max_norm: it is not yet supported")
  args.check(not by_frequency, "Embedding: cannot use scale_grad_by_freq: it is not yet supported")
  self.num_embeddings, self.embedding_dim = count, dim
  self.padding_idx = padding and to_row(padding, count)
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

--- Draws new vectors from the standard normal distribution; the row padding_idx becomes zero.
function Embedding:reset_parameters()
  init.normal_(self.weight)
  if self.padding_idx then
    lt.no_grad(function() self.weight[self.padding_idx]:fill_(0) end)
  end
end

--- Maps ids {*} of dtype int64 or int32, from 1 to num_embeddings, to vectors {*, embedding_dim}.
-- Raises an error for another dtype or an id outside this range.
function Embedding:forward(ids)
  self:check_tensor(ids)
  if ids.dtype ~= "int64" and ids.dtype ~= "int32" then
    self:fail("expected dtype \"int64\" or \"int32\" for the input, got \"%s\"\n"
      .. 'hint: x:to "int64"', ids.dtype)
  end
  return lt.F.embedding(ids, self.weight, self.padding_idx)
end

function Embedding:extra_repr()
  local text = ("%d, %d"):format(self.num_embeddings, self.embedding_dim)
  if self.padding_idx then text = text .. (", padding_idx=%d"):format(self.padding_idx) end
  return text
end

return Embedding
