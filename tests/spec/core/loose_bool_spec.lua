-- Bool tensors on memory where bytes are neither 0 nor 1: every op takes them as true.

local calls = require "op_calls_support"

local lt = require "lutra"
local composites = require "lutra.internal.composites"

-- Returns bools whose bytes are from 0 to 255, and the same bools with bytes of 0 and 1.
local function pair(...)
  local n = 1
  for _, size in ipairs{...} do n = n * size end
  local bytes = lt.arange(n):mul(37):remainder(256):to "uint8":view(...)
  return bytes:view "bool", bytes:ne(0)
end

-- Results that nobody can predict.
local random = {bernoulli = true, multinomial = true, rand_like = true, randn_like = true,
  randint_like = true, dropout = true, alpha_dropout = true, feature_dropout = true,
  feature_alpha_dropout = true, dropout1d = true, dropout2d = true, dropout3d = true,
  poisson = true, rrelu = true, gumbel_softmax = true, binomial = true, random = true,
  empty_like = true, new_empty = true, new_empty_strided = true}

-- Returns the results of a call as nested tables of numbers and bools, or its error.
local function outcome(op, tensor)
  local given = calls.arguments(op, 1, function(_, type)
    return type == "Index" and lt.tensor{1} or tensor
  end)
  local function plain(v)
    if lt.is_tensor(v) then return {v.dtype, v:totable()} end
    if type(v) ~= "table" then return tostring(v) end
    local list = {}
    for i, item in ipairs(v) do list[i] = plain(item) end
    return list
  end
  local results = table.pack(pcall(calls.function_of(op), table.unpack(given)))
  for i = 1, results.n do results[i] = plain(results[i]) end
  return results
end

describe("bools with bytes other than 0 and 1", function()
  local loose, strict = pair(300)

  it("are counted and selected as true", function()
    local numbers = lt.arange(300)
    assert.equal(299, strict:sum():item())
    assert.equal(299, loose:sum():item())
    assert.is_true(lt.equal(strict:nonzero(), loose:nonzero()))
    assert.is_true(lt.equal(numbers[strict], numbers[loose]))
    assert.is_true(lt.equal(numbers:masked_fill(strict, 0), numbers:masked_fill(loose, 0)))
    assert.is_true(lt.equal(strict:to "float32", loose:to "float32"))
    assert.is_true(loose:eq(true):logical_or(loose:logical_not()):all():item())
  end)

  it("are copied as true, between dtypes, layouts and devices", function()
    local matrix, plain = pair(20, 30)
    for _, copy in ipairs{matrix:clone(), matrix:t():contiguous():t(), lt.cat{matrix},
      matrix + matrix, lt.zeros(20, 30, {dtype = "bool"}):copy_(matrix),
      matrix:to("cpu"):clone()} do
      assert.is_true(lt.equal(plain:to(copy.device):to "uint8", copy:contiguous():view "uint8"))
    end
  end)

  it("are changed in place as true", function()
    local x, y = pair(300)
    x:logical_xor_(strict)
    y:logical_xor_(strict)
    assert.is_true(lt.equal(y, x))
    x, y = pair(300)
    x:bitwise_and_(strict)
    assert.equal(299, x:sum():item())
    x:narrow(1, 1, 5):fill_(false)
    y:narrow(1, 1, 5):fill_(false)
    assert.is_true(lt.equal(y, x))
  end)

  it("keep the bytes that a call in place does not change", function()
    local bytes = lt.tensor({0, 2, 3, 4}, {dtype = "uint8"})
    local bools = bytes:view "bool"
    bools:masked_fill_(lt.tensor{false, false, true, false}, false)
    assert.same({0, 2, 0, 4}, bytes:totable())
    bools:scatter_(1, lt.tensor{1}, true)
    assert.same({1, 2, 0, 4}, bytes:totable())
    for _, call in ipairs{function() bools:logical_and_(lt.ones(3)) end,
      function() bools:add_(1.5) end, function() bools:scatter_(1, lt.tensor{1, 9}, true) end} do
      assert.is_false((pcall(call)))
      assert.same({1, 2, 0, 4}, bytes:totable())
    end
  end)

  it("may change with the bytes", function()
    local bytes = lt.zeros(300, {dtype = "bool"})
    local view = bytes:view "uint8"
    view:fill_(200)
    assert.equal(300, bytes:nonzero().shape[1])
    assert.equal(300, bytes:sum():item())
  end)

  for _, op in ipairs(composites.ops()) do
    if op.name:sub(1, 1) ~= "_" and not random[op.name] and op.params[1] and calls.function_of(op)
      and op.params[1].type:find "Tensor" then
      it("are taken as true by " .. op.name, function()
        for _, shape in ipairs{{7}, {3, 3}} do
          local x, y = pair(table.unpack(shape))
          local results, found = outcome(op, y), outcome(op, x)
          assert.same(results, found)
        end
      end)
    end
  end
end)

describe("new bools without a value", function()
  it("are false", function()
    for _ = 1, 20 do
      lt.full({4000}, 255, {dtype = "uint8"}) -- memory that is used again
      assert.equal(0, lt.empty(4000, {dtype = "bool"}):view "uint8":sum():item())
      assert.equal(0, lt.ones(4000, {dtype = "bool"}):new_empty(4000):nonzero().shape[1])
      assert.is_true(lt.ones(2, {dtype = "bool"}):resize_(4000):sum():item() == 2)
    end
  end)
end)
