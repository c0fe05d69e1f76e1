-- `out =`: results that are written into tensors of the caller.

local lt = require "lutra"
local fails = require("device_support").fails

describe("a call with `out`", function()
  it("writes into its memory and returns it", function()
    local x, out = lt.tensor{1.0, 2, 3}, lt.zeros(3)
    local memory = out:data_ptr()
    assert.equal(out, lt.add(x, 1, {out = out}))
    assert.same({2, 3, 4}, out:totable())
    assert.equal(out, x:mul(2, {out = out}))
    assert.same({2, 4, 6}, out:totable())
    assert.equal(out, lt.sub{x, 1, out = out})
    assert.same({0, 1, 2}, out:totable())
    assert.equal(memory, out:data_ptr())
  end)

  it("writes into views and other strides", function()
    local base = lt.zeros(2, 3)
    lt.exp(lt.zeros(2), {out = base[{{}, 2}]})
    assert.same({{0, 1, 0}, {0, 1, 0}}, base:totable())
    local square = lt.zeros(2, 2)
    lt.mm(lt.tensor{{1.0, 2}, {3, 4}}, lt.eye(2), {out = square:t()})
    assert.same({{1, 3}, {2, 4}}, square:totable())
    local x = lt.tensor{1.0, 2}
    assert.same({2, 3}, lt.add(x, 1, {out = x}):totable())
    assert.same({5, 13}, lt.mv(lt.tensor{{1.0, 1}, {2, 3}}, x, {out = x}):totable())
  end)

  it("gives an empty tensor the result's shape, and converts to a higher dtype", function()
    local out = lt.zeros{0, dtype = "float64"}
    lt.sum(lt.tensor{{1.0, 2}, {3, 4}}, 1, {out = out})
    assert.same({4, 6}, out:totable())
    assert.equal("float64", out.dtype)
    assert.same({1, 2, 3}, lt.arange(3, {out = lt.zeros{3, dtype = "float64"}}):totable())
    assert.same({1, 1, 2}, lt.cat({lt.ones(2), lt.full({1}, 2.0)},
      {out = lt.zeros(0)}):totable())
  end)

  it("takes a list for several results, and works for ops written in Lua", function()
    local values, indices = lt.zeros(0), lt.zeros{0, dtype = "int64"}
    local v, i = lt.max(lt.tensor{{1.0, 5}, {3, 4}}, 1, {out = {values, indices}})
    assert.is_true(v == values and i == indices)
    assert.same({3, 5}, values:totable())
    assert.same({2, 1}, indices:totable())
    local flat = lt.zeros(4)
    assert.equal(flat, lt.ravel(lt.ones(2, 2), {out = flat}))
    assert.same({1, 1, 1, 1}, flat:totable())
    fails("ravel: expected 1 tensors for argument 'out'", lt.ravel, flat, {out = {flat, flat}})
  end)

  it("works on meta", function()
    local x = lt.zeros{2, 3, device = "meta"}
    local out = lt.zeros{0, device = "meta"}
    assert.same({2}, {table.unpack(lt.sum(x, 2, {out = out}).shape)})
  end)

  it("refuses tensors that do not fit, and changes none", function()
    local x, out = lt.tensor{1.0, 2, 3}, lt.zeros(2)
    fails("add: cannot write into 'out': the result has the shape {3}, 'out' has {2}", lt.add, x, 1,
      {out = out})
    assert.same({0, 0}, out:totable())
    fails([[add: cannot write into 'out': the result is "float32", 'out' is "int64"]], lt.add, x, 1,
      {out = lt.zeros{3, dtype = "int64"}})
    fails("ravel: cannot write into 'out': the result has the shape {3}", lt.ravel, x, {out = out})
    fails([[the result is on "meta", 'out' is on]], lt.add, lt.zeros{3, device = "meta"}, 1,
      {out = x})
    fails("its elements share memory", lt.add, x, 1, {out = lt.zeros(1):expand(3)})
    fails("it shares memory with an input, at other places", lt.add, x[{{1, 2}}], 1,
      {out = x[{{2, 3}}]})
    fails("split: cannot write into 'out': the number of results is not fixed", lt.split, x, 1,
      {out = out})
    fails("transpose: cannot write into 'out': the op computes no new tensor", lt.transpose, x, 1,
      1, {out = out})
    fails("add: expected 1 tensor for argument 'out', got 2", lt.add, x, 1, {out = {x, out}})
    fails("add: expected a tensor for argument 'out', got 3", lt.add, x, 1, {out = 3})
    fails("add_: expected no argument 'out'", x.add_, x, 1, {out = out})
    assert.same({1, 2, 3}, x:totable())
  end)

  it("records no gradients", function()
    local x = lt.tensor{1.0, 2}:requires_grad_()
    local out = lt.zeros(2)
    fails("add: cannot write into 'out': an input requires grad", lt.add, x, 1, {out = out})
    fails("ravel: cannot write into 'out': an input requires grad", lt.ravel, x, {out = out})
    fails("cannot write into 'out': it requires grad", lt.add, out, 1, {out = x})
    assert.same({0, 0}, out:totable())
    lt.no_grad(function() lt.add(x, 1, {out = out}) end)
    assert.same({2, 3}, out:totable())
    local y = out:clone():requires_grad_()
    local z = y * out
    lt.add(out, 1, {out = out})
    fails("changed in place", function() z:sum():backward() end)
  end)
end)
