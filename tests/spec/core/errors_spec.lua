-- Bad input: each a Lua error that names the function, the expected and the actual value; nothing
-- is half done and the session continues. After every case the same tensor still works.
local lt = require "lutra"
local nn = lt.nn

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "no error was raised")
  assert.equal(3, (lt.ones(3)):sum():item())
  assert.is_true(lt.is_grad_enabled())
  return message
end

local function says(text, f, ...) assert.matches(text, fails(f, ...), 1, true) end

describe("shapes", function()
  it("that overflow", function()
    says("zeros: ", lt.zeros, math.maxinteger, 2)
    says("zeros: ", lt.zeros, 1 << 31, 1 << 31, 1 << 31)
    says("empty: ", lt.empty, math.maxinteger)
    says("ones: ", lt.ones, 1 << 60)
    says("expand: ", function() return lt.ones(1):expand(math.maxinteger, 4) end)
    says("memory", lt.zeros, 1 << 48)
    assert.equal("meta", lt.zeros{1 << 40, device = "meta"}.device)
  end)

  it("that are negative", function()
    says("zeros: ", lt.zeros, -1)
    says("-1", lt.zeros, -1)
    says("randn: ", lt.randn, 2, -3)
    says("view: ", function() return lt.ones(4):view(-2, 2) end)
    says("view: ", function() return lt.ones(4):view(-1, -1) end)
    says("view: ", function() return lt.ones(4):view(3) end)
    says("{4}", function() return lt.ones(4):view(3) end)
  end)

  it("that do not fit one another", function()
    says("matmul: ", function() return lt.ones(3, 4):matmul(lt.ones(5, 6)) end)
    says("the inner sizes 4 and 5 differ",
      function() return lt.ones(3, 4):matmul(lt.ones(5, 6)) end)
    says("cat: ", lt.cat, {lt.ones(2, 3), lt.ones(2, 4)})
    says("stack: ", lt.stack, {lt.ones(2), lt.ones(3)})
    says("cat: ", lt.cat, {})
    says("add_: ", function() lt.ones(2):add_(lt.ones(3)) end)
  end)
end)

describe("0", function()
  it("as an index or a dim", function()
    local x = lt.ones(2, 2)
    says("indices count from 1", function() return x[0] end)
    says("indices count from 1", function() return x[{1, 0}] end)
    says("dims count from 1", x.sum, x, 0)
    says("dims count from 1", x.softmax, x, 0)
    says("dims count from 1", lt.cat, {x, x}, 0)
    says("dims count from 1", x.permute, x, 0, 1)
    says("dims count from 1", x.size, x, 0)
    says("gather: ", x.gather, x, 1, lt.tensor{{0, 1}})
    says("embedding: ", lt.embedding, lt.ones(3, 2), lt.tensor{0})
    says("cross_entropy: ", lt.cross_entropy, lt.ones(1, 3), lt.tensor{0})
    says("out of range", x.sum, x, 3)
  end)
end)

describe("tables", function()
  it("that are ragged, mixed or cyclic", function()
    local cyclic = {{1}}
    cyclic[2] = cyclic
    says("ragged", lt.tensor, {{1}, {1, 2}})
    says("mixed", lt.tensor, {1, {1}})
    says('tensor: expected a number or a boolean for element {2}, got the string "a"', lt.tensor,
      {1, "a"})
    says("tensor: cannot read a cyclic table: the data contains itself", lt.tensor, cyclic)
    cyclic = {}
    cyclic[1] = cyclic
    says("cyclic", lt.tensor, cyclic)
  end)

  it("with NaN for integers", function()
    says('tensor: cannot store element {1}: cannot convert the number nan to "int64": it does '
      .. 'not fit', lt.tensor, {0 / 0}, {dtype = "int64"})
    says("full: ", lt.full, {2}, 0 / 0, {dtype = "int32"})
    says("fill_: ", function() lt.zeros{2, dtype = "int64"}:fill_(0 / 0) end)
    says("index: ", function() lt.zeros{2, dtype = "int64"}[1] = 0 / 0 end)
    -- casting a float tensor is no error: NaN becomes 0 and the rest saturates
    assert.same({0, math.maxinteger, math.mininteger, -2},
      lt.tensor{0 / 0, math.huge, -math.huge, -2.7}:long():totable())
  end)
end)

describe("set_fallback", function()
  it("takes nothing but a boolean", function()
    says("set_fallback: expected a boolean for argument 'on', got 1", lt.set_fallback, 1)
    says("set_fallback: expected a boolean for argument 'on', got nil", lt.set_fallback)
    assert.is_false(lt.get_fallback())
  end)
end)

describe("names of dtypes", function()
  it("that do not exist", function()
    says("float31", lt.zeros, 2, {dtype = "float31"})
    says("float32", lt.zeros, 2, {dtype = "float31"})
    says("set_default_dtype: ", lt.set_default_dtype, "int64")
    says("set_default_dtype: ", lt.set_default_dtype, "nope")
    assert.equal("float32", lt.get_default_dtype())
  end)
end)

describe("modules", function()
  it("called with the wrong rank or size", function()
    says("3", nn.Linear(3, 4), lt.ones(2, 5))
    says("tensor", nn.Linear(3, 4), "x")
    says("", nn.Embedding(3, 2), lt.ones(2))
    says("", nn.CrossEntropyLoss(), lt.ones(2, 3), lt.tensor{1, 2, 3})
    says("", nn.LayerNorm(4), lt.ones(2, 3))
  end)
end)

describe("backward", function()
  it("twice", function()
    local x = lt.ones{2, requires_grad = true}
    local y = (x * x):sum()
    y:backward()
    says("backward", y.backward, y)
    says("retain_graph", y.backward, y)
    assert.same({2, 2}, x.grad:totable())
  end)

  it("from more than one element without a gradient", function()
    local x = lt.ones{2, requires_grad = true}
    local y = x * 2
    says("backward: ", y.backward, y)
    says("gradient", y.backward, y)
    y:backward(lt.tensor{1.0, 10.0})
    assert.same({2, 20}, x.grad:totable())
    says("backward: ", (x * 2).backward, x * 2, lt.ones(3))
  end)

  it("from what does not require grad", function()
    local x = lt.ones(1)
    says("backward: ", x.backward, x)
  end)

  it("through a value that was changed in place names the op", function()
    local x = lt.ones{2, requires_grad = true}
    local y = x:exp()
    local z = y:sum()
    y:add_(1)
    local w = lt.ones{2, requires_grad = true}
    local v = (w * 2):sigmoid()
    local u = (v * v):sum()
    v:mul_(2)
    local message = fails(u.backward, u)
    assert.is_true(message:find("mul", 1, true) ~= nil)
    assert.is_true(message:find("place", 1, true) ~= nil)
    assert.is_nil(w.grad)
    assert.equal(1, z.ndim + 1)
  end)
end)

describe("writing in place", function()
  it("into a leaf that requires grad", function()
    local x = lt.ones{2, requires_grad = true}
    says("leaf", x.add_, x, 1)
    says("add_: ", x.add_, x, 1)
    says("leaf", function() x[1] = 0 end)
    says("leaf", function() x[{{1, 1}}]:zero_() end)
    assert.same({1, 1}, x:totable())
    says("requires_grad", function() lt.ones{2, dtype = "int64"}.requires_grad = true end)
  end)

  it("of a result that does not fit", function()
    local x = lt.ones{2, dtype = "int64"}
    says("add_: ", x.add_, x, 0.5)
    says("div_: ", x.div_, x, 2)
    assert.same({1, 1}, x:totable())
    local e = lt.ones(1):expand(3)
    says("add_: ", e.add_, e, 1)
  end)
end)

describe("devices", function()
  it("that are not here, or differ", function()
    says("zeros: ", lt.zeros, {2, device = "cudda"})
    if not lt.cuda.is_available() then
      says("cuda", lt.zeros, {2, device = "cuda"})
      says("cuda.CUDAGraph: expected an available device", lt.cuda.CUDAGraph)
    end
    says("add: ", function() return lt.ones(2) + lt.ones{2, device = "meta"} end)
    says("cpu", function() return lt.ones(2) + lt.ones{2, device = "meta"} end)
  end)
end)

describe("errors", function()
  it("stand at the line of the caller", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local _, message = pcall(function() local y = lt.ones(2) + lt.ones(3) return y end)
    assert.matches("^[^\n]*errors_spec%.lua:" .. line .. ": add: ", message)
  end)

  it("in a coroutine leave all in order", function()
    local co = coroutine.wrap(function()
      local ok = pcall(lt.zeros, -1)
      coroutine.yield(ok)
      return lt.ones(2):sum():item()
    end)
    assert.is_false(co())
    assert.equal(2, co())
  end)
end)
