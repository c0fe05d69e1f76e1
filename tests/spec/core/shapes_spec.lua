-- Ops that create, reshape, join and index tensors: errors, forms in place, memory that is shared.
local lt = require "lutra"

local function fails(text, f)
  local ok, reason = pcall(f)
  assert.is_false(ok, "expected an error: " .. text)
  assert.truthy(tostring(reason):find(text, 1, true), tostring(reason))
end

describe("views in place", function()
  it("change the geometry of the tensor and keep its memory and identity", function()
    local x = lt.arange(6):view(2, 3)
    local row = x:select(1, 1)
    assert.is_true(rawequal(x, x:t_()))
    assert.same({{1, 4}, {2, 5}, {3, 6}}, x:totable())
    row:fill_(0)
    assert.same({{0, 4}, {0, 5}, {0, 6}}, x:totable())
    assert.same({1, 3, 2}, {table.unpack(x:unsqueeze_(1):transpose_(2, 3):swapdims_(2, 3).shape)})
    assert.same({3, 2}, {table.unpack(x:squeeze_(1).shape)})
    assert.same({0, 5}, x:as_strided_({2}, {4}):totable())
  end)

  it("are recorded", function()
    local x = lt.tensor({{1., 2., 3.}, {4., 5., 6.}}, {requires_grad = true})
    local y = (x * 2):t_()
    local loss = (y * lt.tensor{{1., 2.}, {3., 4.}, {5., 6.}}):sum()
    loss:backward()
    assert.same({{2, 6, 10}, {4, 8, 12}}, x.grad:totable())
    assert.equal("TransposeBackward", y.grad_fn)
  end)

  it("refuse leaf tensors that require grad", function()
    local x = lt.zeros{2, 3, requires_grad = true}
    fails("t_: cannot change a leaf that requires grad in place", function() x:t_() end)
    lt.no_grad(function() x:t_() end)
    assert.same({3, 2}, {table.unpack(x.shape)})
  end)
end)

describe("resize_", function()
  it("keeps the elements in their order, also when the memory grows", function()
    local x = lt.arange(4)
    assert.same({{1, 2}, {3, 4}}, x:resize_(2, 2):totable())
    assert.same({1, 2, 3}, x:resize_(3):totable())
    local y = x:resize_(2, 3)
    assert.is_true(rawequal(x, y))
    assert.same({1, 2, 3}, y[1]:totable())
    assert.same({3, 1}, {table.unpack(x:resize_as_(lt.zeros(3, 1)).shape)})
    fails("resize_: cannot resize a tensor that requires grad", function()
      lt.zeros{2, requires_grad = true}:resize_(3)
    end)
    fails("resize_: expected sizes of at least 0, got -1", function() lt.zeros(2):resize_(-1) end)
  end)
end)

describe("lists of tensors", function()
  it("may be given one after the other where PyTorch takes them so", function()
    local a, b = lt.tensor{1, 2}, lt.tensor{3}
    for _, list in ipairs{lt.meshgrid(a, b), lt.meshgrid({a, b}), lt.meshgrid{a, b}} do
      assert.same({{1}, {2}}, list[1]:totable())
    end
    assert.same({{1}, {2}}, lt.meshgrid{a, b, indexing = "xy"}[1]:t():totable())
    assert.same({1}, lt.atleast_1d(lt.tensor(1)):totable())
    assert.equal(2, #lt.atleast_1d(a, b))
    fails("cat: expected a list of tensors for argument 'tensors', got a tensor of shape {2}\n"
      .. "hint: {x, y} is a list of tensors", function() lt.cat(a, b) end)
    fails("meshgrid: expected a list of tensors", function() lt.meshgrid() end)
  end)
end)

describe("an empty list at the end of a call", function()
  it("is the list that is missing", function()
    local x = lt.zeros(1, 2, 1)
    assert.same({1, 2, 1}, {table.unpack(x:squeeze({}).shape)})
    assert.same({1, 2, 1}, {table.unpack(lt.squeeze(x, {}).shape)})
    assert.same({2}, {table.unpack(x:squeeze().shape)})
    assert.equal(0, lt.zeros(1):reshape({}).ndim)
    assert.equal(0, lt.reshape(lt.zeros(1), {}).ndim)
  end)
end)

describe("writes to memory that is read", function()
  it("see the values from before the call", function()
    local x = lt.arange(6)
    x:narrow(1, 2, 5):copy_(x:narrow(1, 1, 5))
    assert.same({1, 1, 2, 3, 4, 5}, x:totable())
    x = lt.arange(6)
    x:narrow(1, 2, 5):add_(x:narrow(1, 1, 5))
    assert.same({1, 3, 5, 7, 9, 11}, x:totable())
    x = lt.arange(4)
    x:index_copy_(1, lt.tensor{1, 2, 3}, x:narrow(1, 2, 3))
    assert.same({2, 3, 4, 4}, x:totable())
    x = lt.arange(4)
    x:scatter_(1, lt.tensor{4, 3, 2, 1}, x)
    assert.same({4, 3, 2, 1}, x:totable())
  end)

  it("refuse a tensor whose elements share memory", function()
    for _, f in ipairs{
      function(x) x:fill_(1) end, function(x) x:add_(1) end,
      function(x) x:scatter_(1, lt.tensor{1}, 1) end,
      function(x) x:put_(lt.tensor{1}, lt.ones(1)) end,
      function(x) x:masked_fill_(lt.tensor(true), 1) end, function(x) x[1] = 2; x:copy_(x + 1) end,
      function(x) lt.add(lt.ones(3), 1, {out = x}) end,
    } do
      fails("share memory", function() f(lt.zeros(1):expand(3)) end)
    end
  end)

  it("refuse an out that shares other places with an input", function()
    local x = lt.arange(6)
    fails("add: cannot write into 'out': it shares memory", function()
      lt.add(x:narrow(1, 1, 5), 1, {out = x:narrow(1, 2, 5)})
    end)
    assert.same({2, 3, 4, 5, 6, 7}, lt.add(x, 1, {out = x}):totable())
    local y = lt.arange(4)
    assert.same({4, 3, 2, 1}, lt.flip(y, 1, {out = y}):totable())
  end)
end)

describe("views of another dtype", function()
  it("read the same bytes", function()
    local x = lt.tensor{{1., 2.}, {3., 4.}}
    local bytes = x:view "uint8"
    assert.same({2, 8}, {table.unpack(bytes.shape)})
    assert.same(x:totable(), bytes:view(lt.float32):totable())
    x:view("int32"):zero_()
    assert.same({{0, 0}, {0, 0}}, x:totable())
    assert.same({2, 1}, {table.unpack(x:view{dtype = "float64"}.shape)})
    fails("view: cannot view {3} as elements of 8 bytes", function() lt.ones(3):view "float64" end)
    fails("view: cannot view a 0-d", function() lt.ones({}):view "float64" end)
    fails("view: cannot view {2, 2} as smaller elements", function() x:t():view "int8" end)
  end)

  it("come from strings, too", function()
    assert.same({1, 2}, lt.frombuffer("\1\0\2\0", "int16"):totable())
    assert.same({2}, lt.frombuffer("\1\0\2\0\3\0", "int16", 1, 2):totable())
    assert.same({}, lt.frombuffer("", "int64"):totable())
    fails("frombuffer: expected a multiple of 4 bytes", function()
      lt.frombuffer("abc", "int32")
    end)
    fails("frombuffer: expected at most 1 element", function()
      lt.frombuffer("abcd", "int32", {count = 2})
    end)
    fails("frombuffer: expected an offset from 0 to 2", function()
      lt.frombuffer("ab", "int8", {offset = 3})
    end)
    fails("frombuffer: expected a string", function() lt.frombuffer(3, "int8") end)
  end)
end)

describe("invalid arguments of shapes and indices", function()
  local x = lt.arange(5)
  local cases = {
    {"broadcast_shapes: cannot broadcast sizes 2 and 3", function()
      lt.broadcast_shapes({2}, {3})
    end},
    {"tensor_split: expected an integer from 1 to", function() x:tensor_split(0) end},
    {"tensor_split: expected 1-based indices, got 0", function() x:tensor_split{{0}} end},
    {"hsplit: expected a divisor of 5", function() x:hsplit(2) end},
    {"dsplit: expected at least 3 dims", function() x:dsplit(1) end},
    {"split_with_sizes: expected sizes that add up", function() x:split_with_sizes{{4}} end},
    {"repeat: expected at least 2 numbers", function()
      lt.ones(2, 2)["repeat"](lt.ones(2, 2), 2)
    end},
    {"repeat_interleave: expected one number, or one for each of the 5 elements",
      function() x:repeat_interleave(lt.tensor{1, 2}) end},
    {"repeat_interleave: expected integers of at least 0",
      function() x:repeat_interleave(lt.tensor{1, 2, 3, 4, -1}) end},
    {"sum_to_size: cannot sum {2, 3} to {2, 2}", function() lt.ones(2, 3):sum_to_size(2, 2) end},
    {"diag_embed: expected two different dims", function() x:diag_embed(0, 1, -2) end},
    {"rot90: expected two different dims", function() lt.ones(2, 2):rot90(1, {1, -2}) end},
    {"select_scatter: expected shape {2}", function()
      lt.ones(2, 2):select_scatter(lt.ones(3), 1, 1)
    end},
    {"slice: expected a 1-based index for argument 'start', got 0", function() x:slice(1, 0) end},
    {"narrow: expected a 1-based index for argument 'start', got 0", function()
      x:narrow(1, lt.tensor(0), 1)
    end},
    {"cartesian_prod: expected a vector", function() lt.cartesian_prod(lt.ones(2, 2)) end},
    {"combinations: expected a vector", function() lt.combinations(lt.ones(2, 2)) end},
    {"combinations: expected at most 16 for argument 'r', got 9223372036854775807",
      function() lt.combinations(lt.ones(2), math.maxinteger, true) end},
    {"empty_strided: expected one stride for each size", function() lt.empty_strided({2}, {}) end},
    {"empty_permuted: expected each of the 2 dims once", function()
      lt.empty_permuted({2, 3}, {1, 1})
    end},
    {"hstack: expected at least one tensor", function() lt.hstack{} end},
    {"block_diag: expected at most 2 dims", function() lt.block_diag(lt.ones(1, 1, 1)) end},
    {"index: expected an index from 1 to 5", function() x:take(lt.tensor{6}) end},
    {"put: expected as many elements", function() x:put(lt.tensor{1}, lt.tensor{1, 2}) end},
    {"put: expected dtype \"int64\"", function() x:put(lt.tensor{1}, lt.ones(1)) end},
    {"index_put: expected at most 1 index tensors", function()
      x:index_put({lt.tensor{1}, lt.tensor{1}}, lt.tensor{1})
    end},
    {"index_put_: expected at most 1 index tensors", function()
      x:index_put_({lt.tensor{1}, lt.tensor{1}}, lt.tensor{1})
    end},
    {"index_put_: expected dtype \"int64\"", function()
      x:index_put_({lt.tensor{1}}, lt.ones(1))
    end},
    {"index_put: expected the sizes of self", function()
      x:index_put({lt.tensor{true}}, lt.tensor(1))
    end},
    {"scatter: expected one of src and value, got neither", function()
      x:scatter(1, lt.tensor{1})
    end},
    {"scatter_reduce: expected 'sum', 'prod', 'mean', 'amax' or 'amin'", function()
      x:scatter_reduce(1, lt.tensor{1}, x, "max")
    end},
    {"scatter_reduce: expected an index from 1 to 5 for argument 'index', got 6", function()
      x:scatter_reduce(1, lt.tensor{6}, x, "amax")
    end},
    {"index_reduce: expected one index for each of the 5 slices", function()
      x:index_reduce(1, lt.tensor{1}, x, "prod")
    end},
    {"index_fill: expected 0 dimensions for argument 'value'", function()
      x:index_fill(1, lt.tensor{1}, x)
    end},
    {"take_along_dim: expected 1 dims", function() x:take_along_dim(lt.tensor{{1}}, 1) end},
    {"nonzero_static: expected an integer of at least 0", function() x:nonzero_static(-1) end},
  }
  for _, case in ipairs(cases) do
    it("are refused: " .. case[1], function() fails(case[1], case[2]) end)
  end
end)

describe("the geometry of a tensor", function()
  it("is not taken over from one that is no view of it", function()
    local core = require "lutra.core"
    local x = lt.ones(3)
    for _, other in ipairs{lt.ones(3), lt.ones(2, 3), x:view("int32"), lt.ones(3):bool()} do
      local ok, message = pcall(core._set_view, x, other, "t_")
      assert.is_false(ok)
      assert.is_truthy(message:find("t_: cannot take over the geometry", 1, true), message)
    end
    assert.equal(x, core._set_view(x, x:view(3, 1), "t_"))
    assert.same({3, 1}, {table.unpack(x.shape)})
  end)
end)

describe("combinations", function()
  it("of more elements than there are is empty", function()
    local x = lt.tensor{1., 2, 3}
    assert.equal("{0, 5}", tostring(lt.combinations(x, 5).shape))
    assert.equal("{0, " .. math.maxinteger .. "}",
      tostring(lt.combinations(x, math.maxinteger).shape))
    assert.equal("{21, 5}", tostring(lt.combinations(x, 5, true).shape))
    assert.equal("{0, 40}", tostring(lt.combinations(x:narrow(1, 1, 0), 40, true).shape))
  end)
end)
