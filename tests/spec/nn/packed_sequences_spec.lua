-- nn.utils.rnn: padded and packed sequences. Values are those of PyTorch's documentation.

local lt = require "lutra"
local support = require "nn_support"

local rnn = lt.nn.utils.rnn
local fails = support.fails

local a, b, c = lt.tensor{1, 2, 3}, lt.tensor{4, 5}, lt.tensor{6}

local function list(t) return t:totable() end

describe("pad_sequence", function()
  it("stacks tensors of different lengths", function()
    assert.same({{1, 4, 6}, {2, 5, 0}, {3, 0, 0}}, list(rnn.pad_sequence{a, b, c}))
    assert.same({{1, 2, 3}, {4, 5, -1}, {6, -1, -1}},
      list(rnn.pad_sequence({a, b, c}, true, -1)))
    assert.same({{1, 2, 3}, {0, 4, 5}},
      list(rnn.pad_sequence({a, b}, {batch_first = true, padding_side = "left"})))
    assert.equal("{5, 2, 4}",
      tostring(rnn.pad_sequence{lt.ones(5, 4), lt.ones(0, 4)}.shape))
    assert.equal("int64", rnn.pad_sequence{a, b}.dtype)
    assert.equal("{3, 2}", tostring(rnn.pad_sequence(lt.ones(2, 3)).shape))
  end)

  it("is undone by unpad_sequence", function()
    for _, batch_first in ipairs{true, false} do
      local padded = rnn.pad_sequence({a, b, c}, {batch_first = batch_first})
      local parts = rnn.unpad_sequence(padded, lt.tensor{3, 2, 1}, {batch_first = batch_first})
      assert.same({{1, 2, 3}, {4, 5}, {6}}, {list(parts[1]), list(parts[2]), list(parts[3])})
    end
  end)

  it("is differentiable", function()
    local x, y = lt.ones(2, {requires_grad = true}), lt.ones(3, {requires_grad = true})
    local padded = rnn.pad_sequence({x, y}, true)
    padded:backward(lt.tensor{{1., 2., 3.}, {4., 5., 6.}})
    assert.same({1, 2}, list(x.grad))
    assert.same({4, 5, 6}, list(y.grad))
  end)

  it("refuses wrong lists", function()
    fails({"pad_sequence", "at least one tensor", "'sequences'"},
      function() rnn.pad_sequence({}) end)
    fails({"pad_sequence", "'sequences[2]'"}, function() rnn.pad_sequence{a, 3} end)
    fails({"pad_sequence", "at least 1 dimension", "'sequences[1]'"},
      function() rnn.pad_sequence{lt.tensor(1.0)} end)
    fails({"pad_sequence", "sequences[2]", "{2, 3}"},
      function() rnn.pad_sequence{lt.ones(2, 2), lt.ones(2, 3)} end)
    fails({"unpad_sequence", "3 lengths", "got 2"},
      function() rnn.unpad_sequence(lt.ones(2, 3), {1, 2}) end)
    fails({"unpad_sequence", "'lengths[1]'"},
      function() rnn.unpad_sequence(lt.ones(2, 1), {1.5}) end)
  end)
end)

describe("pack_padded_sequence", function()
  local padded = lt.tensor{{1, 2, 0}, {3, 0, 0}, {4, 5, 6}}

  it("packs and sorts, and pad_packed_sequence undoes it", function()
    local packed = rnn.pack_padded_sequence(padded, lt.tensor{2, 1, 3}, true, false)
    assert.same({4, 1, 3, 5, 2, 6}, list(packed.data))
    assert.same({3, 2, 1}, list(packed.batch_sizes))
    assert.same({3, 1, 2}, list(packed.sorted_indices))
    assert.same({2, 3, 1}, list(packed.unsorted_indices))
    local again, lengths = rnn.pad_packed_sequence(packed, {batch_first = true})
    assert.same(list(padded), list(again))
    assert.same({2, 1, 3}, list(lengths))
    again = rnn.pad_packed_sequence(packed, {padding_value = -1, total_length = 4})
    assert.same({{1, 3, 4}, {2, -1, 5}, {-1, -1, 6}, {-1, -1, -1}}, list(again))
  end)

  it("packs a list of sequences", function()
    local packed = rnn.pack_sequence{a, b, c}
    assert.same({1, 4, 6, 2, 5, 3}, list(packed.data))
    assert.same({3, 2, 1}, list(packed.batch_sizes))
    assert.is_nil(packed.sorted_indices)
    local parts = rnn.unpack_sequence(rnn.pack_sequence({c, a, b}, {enforce_sorted = false}))
    assert.same({{6}, {1, 2, 3}, {4, 5}}, {list(parts[1]), list(parts[2]), list(parts[3])})
  end)

  it("is differentiable", function()
    local x = lt.ones(2, 2, 1, {requires_grad = true})
    rnn.pack_padded_sequence(x, {2, 1}).data:backward(lt.tensor{{1.}, {2.}, {3.}})
    assert.same({{{1}, {2}}, {{3}, {0}}}, list(x.grad))
  end)

  it("refuses wrong lengths", function()
    fails({"pack_padded_sequence", "decreasing order", "enforce_sorted = false"},
      function() rnn.pack_padded_sequence(padded, {2, 1, 3}, true) end)
    fails({"pack_padded_sequence", "above 0", "'lengths[3]'"},
      function() rnn.pack_padded_sequence(padded, {2, 1, 0}, true) end)
    fails({"pack_padded_sequence", "up to 3", "got 4"},
      function() rnn.pack_padded_sequence(padded, {4, 1, 1}, true) end)
    fails({"pack_padded_sequence", "3 lengths"},
      function() rnn.pack_padded_sequence(padded, {4}, true) end)
    fails({"pack_padded_sequence", "2 dimensions", "'input'"},
      function() rnn.pack_padded_sequence(a, {3}) end)
    fails({"pack_padded_sequence", "at least one sequence", "'input'"},
      function() rnn.pack_padded_sequence(lt.ones(3, 0), lt.ones(0)) end)
    fails({"pad_packed_sequence", "a PackedSequence", "'sequence'"},
      function() rnn.pad_packed_sequence(a) end)
    fails({"pad_packed_sequence", "at least 3", "'total_length'"},
      function() rnn.pad_packed_sequence(rnn.pack_sequence{a}, {total_length = 2}) end)
    fails({"unpack_sequence", "a PackedSequence"}, function() rnn.unpack_sequence(a) end)
  end)
end)

describe("PackedSequence", function()
  it("converts its data", function()
    local packed = rnn.pack_sequence({b, a}, {enforce_sorted = false})
    local float = packed:to "float32"
    assert.equal("float32", float.data.dtype)
    assert.equal("int64", float.batch_sizes.dtype)
    assert.same({2, 1}, list(float.sorted_indices))
    assert.equal(packed, packed:cpu())
    assert.equal(packed, packed:long())
    assert.equal("float64", packed:double().data.dtype)
    assert.equal("uint8", packed:byte().data.dtype)
    assert.equal("meta", packed:to("meta").unsorted_indices.device)
    assert.is_false(packed.is_cuda)
    assert.is_false(packed:is_pinned())
    assert.is_false(rnn.is_packed(a))
  end)

  it("prints its fields", function()
    assert.equal("PackedSequence{\n  data = tensor{4, 5},\n  batch_sizes = tensor{1, 1}}",
      tostring(rnn.pack_sequence{b}))
  end)

  it("refuses sizes that are not on the CPU", function()
    fails({"PackedSequence", '"cpu"', "'batch_sizes'"},
      function() rnn.PackedSequence(a, lt.ones(3, {device = "meta"})) end)
  end)

  it("has the inverse of a permutation", function()
    assert.same({2, 3, 1}, list(rnn.invert_permutation(lt.tensor{3, 1, 2})))
    assert.is_nil(rnn.invert_permutation(nil))
    fails({"invert_permutation", "1 dimension"},
      function() rnn.invert_permutation(lt.ones(2, 2)) end)
  end)
end)
