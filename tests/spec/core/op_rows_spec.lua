-- What a row of the op table says beside the computation: marks in the signature, and traits. The
-- records in lt.ops() hold them; dispatch goes by them between devices.

local lt = require "lutra"
local core = require "lutra.core"
local devices = require "device_support"

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return tostring(message)
end

describe("the record of an op", function()
  local ops = {}
  for _, op in ipairs(lt.ops()) do ops[op.name] = ops[op.name] or op end

  it("holds its traits", function()
    assert.same({copy = true, transfer = true}, ops.to.traits)
    assert.same({copy = true, transfer = true, builtin = true, takes_complex = true},
      ops._copy.traits)
    assert.same({copy = true, takes_complex = true, autocast = "WIDEST"}, ops.cat.traits)
    assert.same({builtin = true, takes_complex = true}, ops.empty.traits)
    assert.same({layout = true}, ops.as_strided.traits)
    assert.same({}, ops.add.traits)
    assert.same({core = true, parts = true, takes_complex_on_cpu = true, autocast = "HIGH_GPU"},
      ops.sum.traits)
    assert.same({linear = true}, ops.neg.traits)
    assert.same({bilinear = true}, ops.mul.traits)
    assert.same({over = true, autocast = "LOW"}, ops.addmm.traits)
  end)

  -- f(2 u - 3 v) = 2 f(u) - 3 f(v), and f(2 u) = 2 f(u) for infinite u
  local function is_linear(f, u, v)
    local ok, sum = pcall(function()
      local fu, fv = f(u), f(v)
      return fu.dtype == "float64" and 2 * fu - 3 * fv
    end)
    if not ok or not sum then return nil end -- takes no such tensors, or gives no floats
    local infinite = lt.tensor({math.huge, -math.huge}, {dtype = "float64"})
    return lt.allclose(f(2 * u - 3 * v), sum, 1e-9, 1e-12) and lt.equal(f(2 * infinite),
      2 * f(infinite))
  end

  it("holds in how many inputs an elementwise op is linear", function()
    local u = lt.tensor({0.75, -0.5}, {dtype = "float64"})
    local v = lt.tensor({-0.25, 0.125}, {dtype = "float64"})
    local y = lt.tensor({0.5, 0.25}, {dtype = "float64"})
    local seen = 0
    for name, op in pairs(ops) do
      local f, inputs = core._ops[name], 0
      for _, p in ipairs(op.params) do
        if p.type == "Tensor" or p.type == "Operand" then inputs = inputs + 1 end
      end
      for at = 1, op.kind == "elementwise" and f and math.min(inputs, 2) or 0 do
        local linear = is_linear(function(x)
          local list = {}
          for i = 1, inputs do list[i] = i == at and x or y * (0.5 + i / 4) end
          return f(table.unpack(list))
        end, u, v)
        if linear ~= nil then
          local trait = at == 1 and op.traits.linear or op.traits.bilinear or false
          assert.equal(linear, trait, name .. ", input " .. at)
          seen = seen + 1
        end
      end
    end
    assert.truthy(seen > 80, seen)
  end)

  it("holds its signature's marks", function()
    local step = ops._adam_step.params
    assert.equal("map", ops._adam_step.kind)
    assert.is_nil(step[2].written)
    assert.is_true(step[1].written and step[3].written and step[4].written)
    assert.equal("Tensor[]", step[3].type)
    assert.is_true(ops._sgd_step.params[3].optional)
    assert.is_true(ops.view_as.params[2].shape_only)
    assert.equal("host", ops._index.params[2].place)
    assert.equal("Tensor[]", ops._index.params[2].type)
    assert.equal("any", ops.copy_.params[2].place)
    assert.is_nil(ops.add.params[2].place)
  end)

  it("is found by its name alone", function()
    local record = core._op "sum"
    assert.equal("sum", record.name)
    assert.same(ops.sum.params, record.params)
    assert.is_nil(record.support)
    assert.is_nil(core._op "item")
    assert.is_nil(core._op(nil))
  end)
end)

if devices.elsewhere("core/op_rows", _ENV) then return end

describe("between devices", function()
  local there = "cuda:0"

  it("a tensor of which only the shape is read may be anywhere", function()
    local like = lt.zeros{2, 3, device = there}
    assert.equal("cpu", lt.ones(3):expand_as(like).device)
    assert.equal("{2, 3}", tostring(lt.ones(6):view_as(like).shape))
    assert.equal("{2, 3}", tostring(lt.ones(6):reshape_as(like).shape))
    assert.equal("cpu", lt.tensor(5):expand_as(like).device)
  end)

  it("a copy takes its source from anywhere, into 0-d tensors too", function()
    local x, y = lt.zeros{device = there, size = {}}, lt.tensor(0.0)
    x:copy_(lt.tensor(2.0))
    y:copy_(x)
    assert.equal(2, y:item())
    assert.equal("cpu", y.device)
    local z = lt.zeros(3)
    z:copy_(lt.ones{3, device = there} * 4, true)
    lt.cuda.synchronize()
    assert.same({4, 4, 4}, z:totable())
  end)

  it("the host lends 0-d tensors, but none that is written", function()
    local p = lt.zeros{1, device = there}
    assert.equal(3, (p + lt.tensor(3.0)):item())
    local function average() return lt.zeros{1, device = there} end
    local step = core._ops._adam_step
    local rest = {1, 0.1, 0.9, 0.999, 1e-8, 0, true, false}
    step({p}, {average() + 1}, {average()}, {average()}, table.unpack(rest))
    local message = message_of(step, {p}, {average() + 1}, {lt.tensor(0.0)}, {average()},
      table.unpack(rest))
    assert.matches("exp_avg", message, 1, true)
    assert.matches("cuda:0", message, 1, true)
  end)

  it("the host lends indices", function()
    local x = lt.arange{4, device = there}
    assert.same({3, 1}, x[lt.tensor{3, 1}]:totable())
    local message = message_of(lt.gather, x, 1, lt.tensor{3, 1})
    assert.matches("device", message, 1, true)
  end)

  it("what is written counts as changed", function()
    local state = lt.zeros(2)
    local w = lt.ones{2, requires_grad = true}
    local kept = (w * state):sum()
    core._ops._adam_step({lt.zeros(2)}, {lt.ones(2)}, {state}, {lt.zeros(2)}, 1, 0.1, 0.9,
      0.999, 1e-8, 0, true, false)
    assert.matches("changed in place", message_of(kept.backward, kept), 1, true)
  end)
end)
