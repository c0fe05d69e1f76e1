--- Which tensors select elements: conditions and masks, and which dtypes are indices.

local lt = require "lutra"
local devices = require "device_support"

-- The values come from PyTorch 2.15.0. Once more on emulated devices, in a process of its own.
devices.elsewhere("core/masks", _ENV)
if os.getenv "LUTRA_EMULATE" or os.getenv "LUTRA_TEST_GPU" then lt.set_default_device "cuda" end

describe("a condition", function()
  it("of where is bool or uint8", function()
    local x, y = lt.tensor{1, 2, 3}, lt.tensor{-1, -2, -3}
    for _, dtype in ipairs {"bool", "uint8"} do
      local condition = lt.tensor({2, 0, 255}, {dtype = "uint8"}):to(dtype)
      assert.is_true(lt.equal(lt.tensor{1, -2, 3}, lt.where(condition, x, y)), dtype)
      assert.is_true(lt.equal(lt.tensor{1, 0, 3}, lt.where(condition, x, 0)), dtype)
      assert.is_true(lt.equal(lt.tensor{1, 3}, lt.where(condition)[1]), dtype)
    end
  end)

  it("of where has gradients for both sides", function()
    local x, y = lt.ones(3):requires_grad_(true), lt.ones(3):requires_grad_(true)
    lt.where(lt.tensor({1, 0, 7}, {dtype = "uint8"}), x, y):backward(lt.tensor{1., 2., 3.})
    assert.is_true(lt.equal(lt.tensor{1., 0., 3.}, x.grad))
    assert.is_true(lt.equal(lt.tensor{0., 2., 0.}, y.grad))
  end)

  it("of where has no other dtype", function()
    for _, dtype in ipairs {"int8", "int32", "int64", "float32"} do
      local ok, message = pcall(lt.where, lt.ones(3):to(dtype), lt.ones(3), lt.zeros(3))
      assert.is_false(ok, dtype)
      assert.is_truthy(message:find("where: .*" .. dtype), message)
    end
  end)
end)

describe("masked_scatter", function()
  it("broadcasts self and mask", function()
    local mask = lt.tensor{{true, false}, {true, true}}
    local out = lt.tensor{1, 2}:masked_scatter(mask, lt.tensor{10, 20, 30, 40})
    assert.is_true(lt.equal(lt.tensor{{10, 2}, {20, 30}}, out))
    out = lt.tensor{{1}, {2}}:masked_scatter(lt.tensor{true, false, true},
      lt.tensor{7, 8, 9, 10})
    assert.is_true(lt.equal(lt.tensor{{7, 1, 8}, {9, 2, 10}}, out))
    assert.are.same({3, 2}, {table.unpack(lt.tensor(5):masked_scatter(
      lt.ones(3, 2):bool(), lt.arange(1, 6)).shape)})
    assert.are.same({2, 0}, {table.unpack(lt.zeros(2, 1):masked_scatter(
      lt.zeros(1, 0):bool(), lt.zeros(0)).shape)})
  end)

  it("sums the gradient of what was broadcast", function()
    local x = lt.tensor{1., 2.}:requires_grad_(true)
    local source = lt.tensor{10., 20., 30., 40.}:requires_grad_(true)
    local mask = lt.tensor{{true, false}, {true, true}}
    local out = x:masked_scatter(mask, source)
    out:backward(lt.tensor{{1., 2.}, {3., 4.}})
    assert.is_true(lt.equal(lt.tensor{0., 2.}, x.grad))
    assert.is_true(lt.equal(lt.tensor{1., 3., 4., 0.}, source.grad))
  end)

  it("in place keeps self's shape", function()
    local x = lt.tensor{1, 2}
    local ok, message = pcall(x.masked_scatter_, x, lt.ones(2, 2):bool(), lt.arange(1, 4))
    assert.is_false(ok)
    assert.is_truthy(message:find("masked_scatter_: ", 1, true), message)
    assert.is_true(lt.equal(lt.tensor{1, 2}, x))
  end)

  it("expects shapes that fit", function()
    local ok, message = pcall(lt.masked_scatter, lt.ones(3), lt.ones(2):bool(), lt.ones(3))
    assert.is_false(ok)
    local expected = "masked_scatter: cannot broadcast mask {2} and self {3} to one shape"
    assert.is_truthy(message:find(expected, 1, true), message)
  end)
end)

describe("indices", function()
  -- What a name does with an index tensor of two ones; uint8 would be a mask elsewhere.
  local USES = {
    gather = function(x, i) return x:gather(2, i:reshape(2, 1)) end,
    index_select = function(x, i) return x:index_select(2, i) end,
    scatter = function(x, i) return x:scatter(2, i:reshape(2, 1), 1) end,
    scatter_add = function(x, i) return x:scatter_add(2, i:reshape(2, 1), x) end,
    index_add = function(x, i) return x:index_add(2, i, lt.ones_like(x)) end,
    index_copy = function(x, i) return x:index_copy(2, i, lt.ones_like(x)) end,
    index_fill = function(x, i) return x:index_fill(2, i, 1) end,
    embedding = function(x, i) return lt.nn.functional.embedding(i, x) end,
    ["x[i]"] = function(x, i) return x[i] end,
  }

  it("have one rule: integers, uint8 excepted", function()
    for name, use in pairs(USES) do
      for _, dtype in ipairs {"int8", "int16", "int32", "int64"} do
        local ok, message = pcall(use, lt.ones(2, 2), lt.ones(2):to(dtype))
        assert.is_true(ok, ("%s %s: %s"):format(name, dtype, message))
      end
      for _, dtype in ipairs {"uint8", "float32"} do
        local ok, message = pcall(use, lt.ones(2, 2), lt.ones(2):to(dtype))
        assert.is_false(ok, name .. " " .. dtype)
        assert.is_truthy(message:find(dtype, 1, true), message)
      end
    end
  end)
end)

describe("lt.masked", function()
  it("has the identity of bool for maxima and minima", function()
    local x = lt.tensor{true, false}
    local first, second = lt.tensor{true, false}, lt.tensor{false, true}
    assert.is_true(lt.masked.amax(x, {mask = first}):item())
    assert.is_false(lt.masked.amax(x, {mask = second}):item())
    assert.is_true(lt.masked.amin(x, {mask = first}):item())
    assert.is_false(lt.masked.amin(x, {mask = second}):item())
  end)

  it("reports a mask of too many dims", function()
    local ok, message = pcall(lt.masked.sum, lt.ones(2), {mask = lt.ones(2, 2):bool()})
    assert.is_false(ok)
    assert.is_truthy(message:find("sum: expected at most 1 dims for argument 'mask', got shape "
      .. "{2, 2}", 1, true), message)
  end)
end)
