--- nn.Embedding and nn.EmbeddingBag: tables of vectors, looked up by integer ids from 1.

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"
local numbers = require "lutra.internal.numbers"

-- The base class of both.
local Table = Module:extend "Table"

-- Converts padding_idx, 1 to n or -n to -1, to a row from 1 to n; raises an error for any other.
local function to_row(title, index, n)
  local id = index < 0 and n + 1 + index or index
  args.check(index ~= 0 and id >= 1 and id <= n, "%s: expected an index from 1 to %d or "
    .. "from -%d to -1 for argument 'padding_idx', got %d", title, n, n, index)
  return id
end

-- Stores the options, a table, and creates the weight, or takes options._weight.
function Table:_set_up(title, options)
  local count, dim, weight = options.num_embeddings, options.embedding_dim, options._weight
  self.num_embeddings, self.embedding_dim = count, dim
  self.padding_idx = options.padding_idx and to_row(title, options.padding_idx, count)
  self.max_norm, self.norm_type = options.max_norm, options.norm_type
  self.scale_grad_by_freq, self.sparse = options.scale_grad_by_freq, options.sparse
  if weight then
    args.check(weight.ndim == 2 and weight:size(1) == count and weight:size(2) == dim,
      "%s: expected a tensor of shape {%d, %d} for argument '_weight', got one of shape %s", title,
      count, dim, weight.shape)
    self.weight = lt.nn.Parameter(weight, not options._freeze)
    return
  end
  self.weight = lt.nn.Parameter(
    lt.empty({count, dim}, {device = options.device, dtype = options.dtype}), not options._freeze)
  self:reset_parameters()
end

--- Draws new vectors from the standard normal distribution; the row padding_idx becomes zero.
function Table:reset_parameters()
  init.normal_(self.weight)
  if self.padding_idx then
    lt.no_grad(function() self.weight[self.padding_idx]:fill_(0) end)
  end
end

-- Raises an error unless `ids` has an integer dtype that ids may have.
function Table:_check_ids(ids)
  self:check_tensor(ids)
  if ids.dtype ~= "int64" and ids.dtype ~= "int32" then
    self:fail("expected dtype \"int64\" or \"int32\" for the input, got \"%s\"\n"
      .. 'hint: x:to "int64"', ids.dtype)
  end
end

-- Returns the options that differ from their defaults as text, behind the sizes.
function Table:_text(mode)
  local parts = {("%d, %d"):format(self.num_embeddings, self.embedding_dim)}
  local function add(name, value, default)
    if value ~= nil and value ~= default then
      parts[#parts + 1] = name .. "=" .. numbers.text(value)
    end
  end
  if not mode then add("padding_idx", self.padding_idx) end
  add("max_norm", self.max_norm)
  add("norm_type", self.norm_type, 2)
  add("scale_grad_by_freq", self.scale_grad_by_freq, false)
  add("sparse", self.sparse, false)
  if mode then
    add("mode", mode)
    add("padding_idx", self.padding_idx)
  end
  return table.concat(parts, ", ")
end

-- Returns a table of the values of a parser by name.
local function by_name(parse, ...)
  local values, named = table.pack(parse(...)), {}
  for i, parameter in ipairs((args.describe(parse))) do named[parameter.name] = values[i] end
  return named
end

-- Returns a layer of `class` with the rows of a tensor; `options` are those of the class and
-- freeze.
local function of_rows(title, class, options)
  local rows = options.embeddings
  args.check(rows.ndim == 2,
    "%s: expected a tensor of 2 dimensions for argument 'embeddings', got one of shape %s", title,
    rows.shape)
  options._weight, options._freeze = rows, options.freeze
  options.embeddings, options.freeze = nil, nil
  local freeze = options._freeze
  if class.__name == "EmbeddingBag" then options._freeze = nil end
  local layer = class(rows:size(1), rows:size(2), options)
  layer.weight:requires_grad_(not freeze)
  return layer
end

local ROWS = "Tensor embeddings, bool freeze = true, "
local NORM = "float? max_norm = nil, float norm_type = 2, bool scale_grad_by_freq = false, "

local Embedding = Table:extend "Embedding"

local parse = args.signature("Embedding", "int(>=1) num_embeddings, int(>=0) embedding_dim, "
  .. "int? padding_idx = nil, " .. NORM .. "bool sparse = false, Tensor? _weight = nil, "
  .. "bool _freeze = false, device? device = nil, dtype? dtype = nil")

--- nn.Embedding(num_embeddings, embedding_dim, {padding_idx, max_norm, norm_type = 2,
-- scale_grad_by_freq = false}): a table `weight` {num_embeddings, embedding_dim} that starts from
-- the standard normal distribution. The row padding_idx (1-based; a negative one counts from the
-- end) starts at zero and gets no gradient. max_norm scales the rows that are used to at most this
-- norm_type-norm, in place; scale_grad_by_freq divides gradients by the number of uses of a row.
-- `_weight` is a tensor of this shape to start from, `_freeze` excludes it from training. `sparse`
-- has no effect: gradients are dense.
function Embedding:init(...) self:_set_up("Embedding", by_name(parse, ...)) end

local parse_rows = args.signature("from_pretrained",
  ROWS .. "int? padding_idx = nil, " .. NORM .. "bool sparse = false")

--- nn.Embedding.from_pretrained(embeddings, {freeze = true, padding_idx, max_norm, norm_type = 2,
-- scale_grad_by_freq = false}): an nn.Embedding with the rows of a tensor {n, d}, whose memory it
-- shares; it is excluded from training unless freeze is false. Raises an error unless the tensor
-- has 2 dimensions.
function Embedding.from_pretrained(...)
  return of_rows("from_pretrained", Embedding, by_name(parse_rows, ...))
end

--- Maps ids {*} of dtype int64 or int32, from 1 to num_embeddings, to vectors {*, embedding_dim}.
-- Raises an error for another dtype or an id outside this range.
function Embedding:forward(ids)
  self:_check_ids(ids)
  return lt.F.embedding(ids, self.weight, self.padding_idx, self.max_norm, self.norm_type,
    self.scale_grad_by_freq)
end

function Embedding:extra_repr() return self:_text() end

local EmbeddingBag = Table:extend "EmbeddingBag"

local MODE = "'sum'|'mean'|'max' mode = 'mean', bool sparse = false, "
local LAST = "bool include_last_offset = false, int? padding_idx = nil"

local parse_bag = args.signature("EmbeddingBag", "int(>=1) num_embeddings, int(>=0) embedding_dim, "
  .. NORM .. MODE .. "Tensor? _weight = nil, " .. LAST
  .. ", device? device = nil, dtype? dtype = nil")

--- nn.EmbeddingBag(num_embeddings, embedding_dim, {max_norm, norm_type = 2, scale_grad_by_freq =
-- false, mode = "mean", include_last_offset = false, padding_idx}): the mean, sum or maximum of
-- the vectors of each bag of ids. padding_idx is left out of the bags; the other options are as
-- for nn.Embedding.
function EmbeddingBag:init(...)
  local options = by_name(parse_bag, ...)
  self.mode, self.include_last_offset = options.mode, options.include_last_offset
  self:_set_up("EmbeddingBag", options)
end

local parse_bag_rows = args.signature("from_pretrained", ROWS .. NORM .. MODE .. LAST)

--- nn.EmbeddingBag.from_pretrained(embeddings, {freeze = true, max_norm, norm_type = 2,
-- scale_grad_by_freq = false, mode = "mean", include_last_offset = false, padding_idx}): an
-- nn.EmbeddingBag with the rows of a tensor {n, d}, excluded from training unless freeze is false.
function EmbeddingBag.from_pretrained(...)
  return of_rows("from_pretrained", EmbeddingBag, by_name(parse_bag_rows, ...))
end

--- bag(ids, offsets, per_sample_weights): maps ids {B, L}, a bag for each row, or ids {n} and the
-- indices at which bags begin (1-based), to vectors {B, embedding_dim}. per_sample_weights, of the
-- ids' shape, needs mode "sum". Raises an error for another dtype or an id outside of the table.
function EmbeddingBag:forward(ids, offsets, per_sample_weights)
  self:_check_ids(ids)
  return lt.F.embedding_bag(ids, self.weight, offsets, self.max_norm, self.norm_type,
    self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights, self.include_last_offset,
    self.padding_idx)
end

function EmbeddingBag:extra_repr() return self:_text(self.mode) end

return {Embedding = Embedding, EmbeddingBag = EmbeddingBag}
