-- Errors of the losses, normalizations, dropouts, embeddings and attention of F: they name the
-- function, the argument, what it expected and what it got.
local lt = require "lutra"
local F = require "lutra.nn.functional"

local nn = lt.nn

local function message(f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok)
  return (tostring(text):gsub("^[^:]*:%d+: ", ""))
end

local x, y = lt.ones(2, 3), lt.ones(2, 4)

local CASES = {
  {"binary_cross_entropy: expected shape {2, 3}, input's, for argument 'target', got {2, 4}",
    F.binary_cross_entropy, x, y},
  {"binary_cross_entropy: expected numbers from 0 to 1 for argument 'input'\nhint: "
    .. "F.binary_cross_entropy_with_logits takes the values before a sigmoid",
    F.binary_cross_entropy, x * 2, x},
  {"gaussian_nll_loss: expected no negative numbers for argument 'var'", F.gaussian_nll_loss, x, x,
    -x},
  {"gaussian_nll_loss: expected shape {2, 3}, or the same with a last size of 1 or without it, "
    .. "for argument 'var', got {3}", F.gaussian_nll_loss, x, x, lt.ones(3)},
  {"triplet_margin_with_distance_loss: expected distance_function to return a tensor, got nil",
    F.triplet_margin_with_distance_loss, x, x, x, function() end},
  {"multi_margin_loss: expected 1 or 2 for argument 'p', got 3", F.multi_margin_loss, x,
    lt.tensor{1, 2}, 3},
  {"multi_margin_loss: expected shape {2}, a class for each row, for argument 'target', got {3}",
    F.multi_margin_loss, x, lt.tensor{1, 2, 3}},
  {"multilabel_margin_loss: expected shape {2, 3}, input's, for argument 'target', got {2}",
    F.multilabel_margin_loss, x, lt.tensor{1, 2}},
  {"cosine_embedding_loss: expected 2 dimensions for arguments 'input1' and 'input2' with a "
    .. "target of shape {2}, got {3} and {3}", F.cosine_embedding_loss, lt.ones(3), lt.ones(3),
    lt.tensor{1, 1}},
  {"huber_loss: expected a number above 0 for argument 'delta', got 0", F.huber_loss, x, x,
    "mean", 0},
  {"group_norm: expected a divisor of the 3 channels for argument 'num_groups', got 2",
    F.group_norm, x, 2},
  {"instance_norm: expected more than one element in each channel, got an input of shape {2, 3}",
    F.instance_norm, x},
  {"rms_norm: expected last dimensions {4} (normalized_shape) for argument 'input', got shape "
    .. "{2, 3}", F.rms_norm, x, {4}},
  {"local_response_norm: expected at least 3 dimensions for argument 'input', got {2, 3}",
    F.local_response_norm, x, 2},
  {"dropout2d: expected a probability from 0 to 1 for argument 'p', got 1.5", F.dropout2d, x, 1.5},
  {"dropout3d: expected at least 2 dimensions for argument 'input', got 1", F.dropout3d,
    lt.ones(3)},
  {"embedding: expected an index from 1 to 2 (or -1 for the last) for argument 'padding_idx', "
    .. "got 0", F.embedding, lt.tensor{1}, x, 0},
  {"embedding_bag: expected a vector of the first index of each bag for argument 'offsets' with an "
    .. "input of one dimension, got nil", F.embedding_bag, lt.tensor{1}, x},
  {"embedding_bag: expected an index from 1 to 2 for argument 'input', got 3 at index {1}",
    F.embedding_bag, lt.tensor{3}, x, lt.tensor{1}},
  {"embedding_bag: expected an index from 1 to 2 for argument 'input', got 3 at index {1}",
    F.embedding_bag, {lt.tensor{3}, x:half(), lt.tensor{1}, mode = "sum"}},
  {"embedding_bag: expected an index from 1 to 2 for argument 'input', got 3 at index {1}",
    F.embedding_bag, {lt.tensor{3}, x, lt.tensor{1}, mode = "max", max_norm = 1}},
  {"embedding_bag: expected an index from 1 to 2 for argument 'input', got 3 at index {1}",
    F.embedding_bag, {lt.tensor{3}, x, lt.tensor{1}, mode = "max"}},
  {"embedding_bag: expected an index from 1 to 1 for argument 'offsets', got 2 at index {1}",
    F.embedding_bag, lt.tensor{1, 2}, x, lt.tensor{2}},
  {"embedding_bag: expected an index from 1 to 3 for argument 'offsets', got 4 at index {2}",
    F.embedding_bag, lt.tensor{1, 2}, x, lt.tensor{1, 4}},
  {"embedding_bag: expected at least one number for argument 'offsets' with an input of 2 indices, "
    .. "got none", F.embedding_bag, lt.tensor{1, 2}, x, lt.zeros(0, {dtype = "int64"})},
  {"embedding_bag: expected mode \"sum\" with per_sample_weights, got \"mean\"", F.embedding_bag,
    {lt.tensor{{1}}, x, per_sample_weights = lt.ones(1, 1)}},
  {"ctc_loss: expected a label from 1 to 3 for argument 'blank', got 4", F.ctc_loss,
    lt.zeros(4, 1, 3), lt.tensor{{2}}, {4}, {1}, 4},
  {"ctc_loss: expected numbers from 0 to 4 for argument 'input_lengths', got 5", F.ctc_loss,
    lt.zeros(4, 1, 3), lt.tensor{{2}}, {5}, {1}},
  {"pdist: expected 2 dimensions for argument 'input', got 1", F.pdist, lt.ones(3)},
  {"bilinear: expected last size 2 for argument 'input1', got 3", F.bilinear, x, x,
    lt.ones(4, 2, 3)},
  {"scaled_dot_product_attention: expected a divisor of query's 4 heads for the heads of key "
    .. "(dimension -3), got 3", F.scaled_dot_product_attention,
    {lt.ones(4, 2, 2), lt.ones(3, 2, 2), lt.ones(3, 2, 2), enable_gqa = true}},
  {"mse_loss: expected shape {2, 3}, self's, for argument 'weight', got {3}", F.mse_loss,
    {x, x, weight = lt.ones(3)}},
}

describe("an error of F", function()
  for _, case in ipairs(CASES) do
    it("reports: " .. case[1]:match "^[^\n]*", function()
      assert.equal(case[1], message(table.unpack(case, 2)))
    end)
  end
end)

describe("functions of F", function()
  it("have no second derivative where PyTorch has none", function()
    local scores = lt.zeros(4, 1, 3, {requires_grad = true})
    local loss = F.ctc_loss(scores, lt.tensor{{2, 3}}, {4}, {2})
    local g = lt.autograd.grad(loss, {scores}, {create_graph = true})[1]
    assert.equal("ctc_loss: cannot compute second derivatives: the gradient is not differentiable",
      message(lt.autograd.grad, g:square():sum(), {scores}))
  end)

  it("write into self with inplace", function()
    for _, name in ipairs{"dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
      "feature_alpha_dropout"} do
      local t = lt.ones(2, 3, 4)
      local result = F[name](t, 1, true, true)
      assert.is_true(rawequal(t, result), name)
      assert.equal(0, t:sum():item(), name)
    end
  end)

  it("limit the norms of the rows that they use, in place", function()
    local table_ = lt.tensor{{3., 4.}, {6., 8.}}
    F.embedding(lt.tensor{1, 1}, table_, {max_norm = 1})
    assert.is_true(lt.allclose(table_, lt.tensor{{0.6, 0.8}, {6., 8.}}))
  end)

  it("divide gradients by the uses of a row", function()
    local table_ = lt.ones(2, 1, {requires_grad = true})
    F.embedding(lt.tensor{1, 1, 2}, table_, {scale_grad_by_freq = true}):sum():backward()
    assert.same({{1}, {1}}, table_.grad:totable())
  end)

  it("give zeros and finite gradients for rows that are fully masked", function()
    local q = lt.ones(1, 2, 2, {requires_grad = true})
    local mask = lt.tensor{{false, false}, {true, false}}
    local out = F.scaled_dot_product_attention(q, lt.ones(1, 2, 2), lt.ones(1, 2, 2), mask)
    out:sum():backward()
    assert.same({{{0, 0}, {1, 1}}}, out:totable())
    assert.is_true(q.grad:isfinite():all():item())
  end)
end)

describe("layers whose input has another dtype", function()
  local wide = {
    {"group_norm", nn.GroupNorm(1, 2), {1, 2, 2}}, {"layer_norm", nn.LayerNorm(2), {1, 2}},
    {"instance_norm", nn.InstanceNorm1d(2, {affine = true}), {1, 2, 2}},
    {"batch_norm", nn.BatchNorm1d(2), {2, 2}}, {"prelu", nn.PReLU(), {2}},
    {"batch_norm", nn.BatchNorm1d(2, {affine = false}), {2, 2}, "running_mean"},
    {"conv1d", nn.Conv1d(2, 2, 1), {1, 2, 2}}, {"linear", nn.Linear(2, 2), {1, 2}},
  }
  for _, case in ipairs(wide) do
    it(("name both conversions: %s"):format(case[1]), function()
      local name, layer, sizes, argument = table.unpack(case)
      assert.equal(('%s: expected the same dtype for arguments \'input\' and \'%s\', got "float64" '
        .. 'and "float32"\nhint: input:float(), or net:double() for the parameters of a module')
        :format(name, argument or "weight"), message(layer, lt.ones(sizes, {dtype = "float64"})))
    end)
  end

  it("name both conversions: bilinear", function()
    local layer, a, b = nn.Bilinear(2, 2, 2), lt.ones(1, 2), lt.ones(1, 2, {dtype = "float64"})
    for i, inputs in ipairs{{b, a}, {a, b}} do
      assert.matches(("bilinear: expected the same dtype for arguments 'input%d' and 'weight', "
        .. 'got "float64" and "float32"\nhint: input%d:float(), or net:double() for the parameters '
        .. "of a module"):format(i, i), message(layer, table.unpack(inputs)), 1, true)
    end
  end)

  it("name both conversions: LSTM", function()
    assert.matches('hint: x:to "float32", or net:to "float64" for the parameters of a module',
      message(nn.LSTM(2, 2), lt.ones{1, 2, 2, dtype = "float64"}), 1, true)
  end)

  it("accept 16 bits with statistics and parameters in float32", function()
    local half = lt.ones{1, 2, 2, dtype = "bfloat16"}
    assert.equal("bfloat16", nn.GroupNorm(1, 2)(half).dtype)
    assert.equal("bfloat16", nn.InstanceNorm1d(2, {affine = true})(half).dtype)
  end)
end)
