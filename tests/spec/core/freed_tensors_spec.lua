-- After x:free() every use of x but tostring and comparison by identity is refused.

local devices = require "device_support"
local core = require "lutra.core"
local lt = require "lutra"
local support = require "nn_support"

local fails = devices.fails
local WHY = "was freed (x:free())"

local function freed(...)
  local x = lt.ones(...)
  x:free()
  return x
end

describe("a freed tensor", function()
  it("is still the same value", function()
    local x, y = freed(2), freed(2)
    assert.is_true(lt.is_tensor(x))
    assert.equal("tensor (freed)", tostring(x))
    assert.is_true(x == x) -- luacheck: ignore 433
    assert.is_false(x == y)
    assert.is_false(x == lt.ones(2))
    local t = {[x] = 1, [y] = 2}
    assert.equal(1, t[x])
    assert.is_true(rawequal(x, x))
    lt.set_printoptions{profile = "summary"}
    local text = tostring(x)
    lt.set_printoptions{profile = "default"}
    assert.equal("tensor (freed)", text)
  end)

  it("may be freed again, also by <close>", function()
    local kept
    do
      local x <close> = lt.ones(3)
      kept = x
      x:free()
      x:free()
    end
    kept:free()
    assert.equal("tensor (freed)", tostring(kept))
    local ok = pcall(function()
      local y <close> = lt.ones(3)
      kept = y
      error "failed"
    end)
    assert.is_false(ok)
    assert.equal("tensor (freed)", tostring(kept))
  end)

  it("leaves other views and results valid", function()
    local x = lt.arange(4)
    local view, twice = x["2:3"], x * 2
    x:free()
    assert.same({1 + 1, 2 + 1}, (view):totable())
    assert.equal(4, twice:numel())
    view:free()
    local y = lt.arange(3)
    local z = y:view(3, 1)
    z:free()
    assert.same({1, 2, 3}, y:totable())
  end)

  it("is what a tensor is whose metamethods are called by hand", function()
    local x, meta = lt.ones(2), getmetatable(lt.ones(2))
    meta.__gc(x)
    fails({"shape: expected a tensor for argument 'self', got a tensor that was freed: the "
      .. "collector finalized it before the object whose finalizer uses it", "was freed"},
        function() return x.shape end)
    assert.equal("tensor (freed)", tostring(x))
    for _, name in ipairs {"__index", "__newindex", "__len", "__close", "__tostring", "__add"} do
      assert.is_false(pcall(meta[name], 5, "shape", 1), name)
      assert.is_false(pcall(meta[name]), name)
    end
    meta.__gc(5)
    assert.is_false(meta.__eq(5, x))
  end)

  it("gives its memory back at once", function()
    local before = lt.memory_live()
    local x = lt.zeros{1 << 22, dtype = "uint8"}
    x:free()
    assert.is_true(lt.memory_live() < before + (1 << 22))
  end)

  it("has no fields, no length and no elements", function()
    local x = freed(2)
    for name in pairs(core._fields) do
      fails({name, WHY}, function() return x[name] end)
    end
    fails({"#", WHY}, function() return #x end)
    for _, key in ipairs {1, "1:2", ":", {1}, {{1, 2}}, lt.tensor{1}} do
      fails({"index: expected a tensor for argument 'self', got a tensor that was freed "
        .. "(x:free())", WHY}, function() return x[key] end)
      fails({"index: expected a tensor for argument 'self', got a tensor that was freed "
        .. "(x:free())", WHY}, function() x[key] = 1 end)
    end
    fails(WHY, function() for _ in ipairs(x) do error "read" end end)
    fails({"grad: expected a tensor for argument 'self', got a tensor that was freed (x:free())",
      WHY}, function() x.grad = nil end)
    fails({"data: expected a tensor for argument 'self'", WHY}, function() x.data = lt.ones(2) end)
    fails({"requires_grad: expected a tensor for argument 'self', got a tensor that was freed "
      .. "(x:free())", WHY}, function() x.requires_grad = true end)
  end)

  it("has no methods but free", function()
    local x, tested = freed(2), 0
    for name, method in pairs(core._methods) do
      if name ~= "free" and name ~= "_missing" then -- _missing makes the message of an unknown name
        local ok, message = pcall(method, x)
        assert.is_false(ok, name)
        assert.is_truthy(tostring(message):find("freed", 1, true), name .. ": " .. message)
        tested = tested + 1
      end
    end
    assert.is_true(tested > 200)
  end)

  it("is no operand, at any place of any op", function()
    local given = {
      Tensor = function() return lt.ones(2, 2) end, Operand = function() return 1 end,
      Index = function() return lt.tensor{1} end, Scalar = function() return 1 end,
      ["Tensor[]"] = function() return {lt.ones(2)} end, int = function() return 1 end,
      float = function() return 1.0 end, bool = function() return true end,
      string = function() return "mean" end, dtype = function() return "float32" end,
      device = function() return "cpu" end, Generator = function() return lt.Generator() end,
      sizes = function() return {1} end, ints = function() return {1} end,
      dim = function() return 1 end, dims = function() return {1} end,
      position = function() return 1 end,
    }
    local x, tested = freed(2), 0
    for _, op in ipairs(core.ops()) do
      for place, param in ipairs(op.params) do
        local list = param.type == "Tensor[]"
        if list or param.type == "Tensor" or param.type == "Operand" or param.type == "Index" then
          local values = {}
          for i = 1, place - 1 do
            local before = op.params[i]
            values[i] = before.choices and before.choices[1] or given[before.type]()
          end
          values[place] = list and {lt.ones(2), x} or x
          local ok, message = pcall(core._ops[op.name], table.unpack(values, 1, place))
          local what = op.name .. ", " .. param.name
          assert.is_false(ok, what)
          assert.is_truthy(message:find(WHY, 1, true), what .. ": " .. message)
          assert.is_truthy(message:find("'" .. param.name, 1, true), what .. ": " .. message)
          tested = tested + 1
        end
      end
    end
    assert.is_true(tested > 300)
  end)

  it("is no operand of an operator", function()
    local x, y = freed(1), lt.ones(1)
    for title, f in pairs {
      add = function(a, b) return a + b end, sub = function(a, b) return a - b end,
      mul = function(a, b) return a * b end, div = function(a, b) return a / b end,
      remainder = function(a, b) return a % b end, pow = function(a, b) return a ^ b end,
      lt = function(a, b) return a < b end, le = function(a, b) return a <= b end,
    } do
      fails({title .. ": expected a tensor for argument 'self'", WHY}, f, x, y)
      local second = title == "pow" and "exponent" or "other"
      fails({title .. ": expected a tensor for argument '" .. second .. "'", WHY},
        function() return f(y, x) end)
      fails({title .. ": expected a tensor for argument 'self'", WHY}, f, x, 2)
      fails({title .. ": expected a tensor for argument '" .. second .. "'", WHY},
        function() return f(2, x) end)
      fails({title .. ": expected a tensor", WHY}, f, x, x)
    end
    fails({"neg: expected a tensor for argument 'self'", WHY}, function() return -x end)
  end)

  it("is no element, index, value, device, gradient or name", function()
    local x, y = freed(2), lt.ones(2)
    fails({"cat: expected a tensor for argument 'tensors[2]', got a tensor that was freed "
      .. "(x:free())", WHY}, lt.cat, {y, x})
    fails({"stack: expected a tensor for argument 'tensors[1]', got a tensor that was freed "
      .. "(x:free())", WHY}, lt.stack, {x, y})
    fails(WHY, function() return y[x] end)
    fails(WHY, function() y[1] = x end)
    fails(WHY, function() y[x] = 1 end)
    fails({"data: expected a tensor for argument 'value'", WHY}, function() y.data = x end)
    fails({"set_data: expected a tensor for argument 'data', got a tensor that was freed "
      .. "(x:free())", WHY}, y.set_data, y, x)
    fails({"grad: expected a tensor for argument 'value', got a tensor that was freed (x:free())",
      WHY}, function() y.grad = x end)
    fails(WHY, lt.tensor, x)
    fails(WHY, lt.tensor, {1, x})
    fails(WHY, lt.as_tensor, x)
    fails(WHY, y.new_tensor, y, x)
    fails(WHY, y.to, y, x)
    fails({"zeros: expected a tensor for argument 'device'", WHY}, lt.zeros, 2, {device = x})
    fails(WHY, lt.numel, x)
    fails(WHY, lt.result_type, x, y)
    fails(WHY, lt.save_npy, os.tmpname(), x)
    fails(WHY, lt.save_safetensors, os.tmpname(), {a = y, b = x})
    fails(WHY, lt.set_rng_state, x)
    local w = lt.ones(2, {requires_grad = true})
    local z = w * 2
    fails({"backward: expected a tensor for argument 'gradient'", WHY}, z.backward, z, x)
    fails(WHY, lt.autograd.backward, {z}, {x})
    fails(WHY, lt.autograd.backward, {z, x})
    fails(WHY, lt.autograd.grad, z, {x}, y)
    fails(WHY, lt.autograd.grad, x, {w})
    assert.is_nil(w.grad)
    z:backward(y)
    assert.same({2, 2}, w.grad:totable())
  end)

  it("is no parameter of a module, and none of an optimizer", function()
    local net = lt.nn.Linear(2, 2)
    local optimizers = {}
    for _, name in ipairs(support.optimizers()) do
      optimizers[name] = lt.optim[name](net:parameters(), {lr = 0.1})
    end
    net(lt.ones(1, 2)):sum():backward()
    net.weight:free()
    fails(WHY, function() return net(lt.ones(1, 2)) end)
    for _, optimizer in pairs(optimizers) do fails(WHY, function() optimizer:step() end) end
    fails(WHY, lt.nn.Parameter, freed(2))
  end)

  it("is left out by backward, which the graph's memory survives", function()
    local x = lt.full({3}, 2.0, {requires_grad = true})
    local w = lt.full({3}, 4.0, {requires_grad = true})
    local y = x * w
    x:free()
    y:sum():backward()
    assert.same({2, 2, 2}, w.grad:totable())
    assert.equal("tensor (freed)", tostring(x))
    -- also one without elements, whose gradient has the shape of a freed tensor
    local empty = lt.ones(0, {requires_grad = true})
    local sum = empty:sum() + w:sum()
    empty:free()
    sum:backward()
    assert.same({3, 3, 3}, w.grad:totable())
  end)
end)
