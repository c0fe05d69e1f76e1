-- lt.placement.guard: which copies it takes for asked for, and what it does with the others.

local devices = require "device_support"
if devices.elsewhere("placement/placement_guard", _ENV) then return end

local assert = require "luassert"
local lt = require "lutra"

local nn, placement = lt.nn, lt.placement
local fails = devices.fails

describe("placement.guard", function()
  local x = lt.randn({4}, {device = "cuda"})
  local function explicit() return x:cpu() end
  local function implicit() return tostring(x) end

  it("has JAX's levels", function()
    local levels = { -- may what was asked for, may what was not?
      allow = {true, true}, disallow = {true, false}, disallow_explicit = {false, false},
    }
    for level, may in pairs(levels) do
      local asked = pcall(placement.guard, level, explicit)
      local unasked = pcall(placement.guard, level, implicit)
      assert.same(may, {asked, unasked}, level)
    end
  end)

  it("returns what the function returns", function()
    assert.same({1, nil, 3}, {placement.guard("disallow", function(...) return ... end, 1, nil, 3)})
    assert.equal(1, placement.guard("disallow", "host_to_device", function(a) return a end, 1))
    assert.equal(1, placement.guard("disallow", nil, function(a) return a end, 1))
  end)

  it("says what would be copied, where, and what to write", function()
    local parts = {"tostring", "16 bytes", 'from "cuda:0" to "cpu"', 'guard("disallow")', "x:cpu()"}
    local text = fails(parts, placement.guard, "disallow",
      function() local s = implicit(); return s end)
    assert.is_truthy(text:find "placement_guard_spec.lua:%d+", text)
    fails({"item", "4 bytes", "outside the guard"}, placement.guard, "disallow_explicit",
      function() local v = x:sum():item(); return v end)
    fails({"to:", "before the guard"}, placement.guard, "disallow_explicit",
      function() local v = lt.ones{2}:to "cuda"; return v end)
  end)

  it("knows the calls that say that they copy, also handed over as values", function()
    local path = os.tmpname()
    placement.guard("disallow", function()
      local list = x:tolist()
      lt.save_npy(path, x)
      lt.save_safetensors(path, {x = x})
      return list
    end)
    os.remove(path)
    assert.equal("cpu", placement.guard("disallow", x.cpu, x).device)
    local trace = placement.trace(x.cpu, x)
    assert.same({1, 0}, {trace:totals().copies, trace:totals().implicit})
    for _, e in ipairs(trace.events) do assert.is_true(e.kind ~= "copy" or e.op == "cpu") end
    fails({"cpu: cannot copy", "disallow_explicit"}, placement.guard, "disallow_explicit", x.cpu, x)
    fails("implicitly", placement.guard, "disallow", tostring, x)
  end)

  it("looks at one direction", function()
    placement.guard("disallow_explicit", "host_to_device", explicit)
    fails("cpu", placement.guard, "disallow_explicit", "device_to_host", explicit)
    if lt.cuda.device_count() > 1 then
      local function across() local y = x:to "cuda:1"; return y end
      placement.guard("disallow_explicit", "device_to_host", across)
      fails('from "cuda:0" to "cuda:1"', placement.guard, "disallow_explicit", "device_to_device",
        across)
    end
  end)

  it("is lifted by the guard within, and back after it", function()
    placement.guard("disallow", function()
      placement.guard("allow", implicit)
      fails("forbids", function() local s = implicit(); return s end)
      -- one direction within: the other stays as it was
      placement.guard("allow", "host_to_device", function()
        fails("forbids", function() local s = implicit(); return s end)
      end)
    end)
    implicit()
  end)

  it("refuses inside backward, leaves nothing half done, and is gone after the error", function()
    local w = lt.randn({3}, {requires_grad = true})
    local loss = w:to("cuda"):sum()
    fails({"backward", 'from "cuda:0" to "cpu"', "forbids"}, placement.guard, "disallow_explicit",
      function() loss:backward() end)
    assert.is_nil(w.grad)
    w:to("cuda"):sum():backward()
    assert.same({1, 1, 1}, w.grad:totable())
    local net = nn.Linear(3, 3)
    fails("forbids", placement.guard, "disallow_explicit", function() net:to "cuda" end)
    assert.equal("cpu", net.weight.device)
    implicit()
  end)

  it("takes the gradient of a copy that was asked for as asked for, and no other", function()
    local w = lt.ones(3, {requires_grad = true})
    local trace = placement.trace(placement.guard, "disallow", function()
      w:to("cuda"):sum():backward()
      lt.zeros{3, device = "cuda"}:copy_(w):sum():backward()
    end)
    assert.same({2, 2, 2}, w.grad:totable())
    assert.same({4, 0}, {trace:totals().copies, trace:totals().implicit})
    -- a number of the CPU's is no copy in forward: nobody wrote that its gradient is to come back
    local s = lt.tensor(2., {requires_grad = true})
    local loss = (x * s):sum()
    fails({"backward", "implicitly"}, placement.guard, "disallow",
      function() loss:backward() end)
    assert.is_nil(s.grad)
    -- nor what a hook does meanwhile
    local y = w:to "cuda"
    y:register_hook(function(grad) local _ = tostring(grad) end)
    loss = y:sum()
    fails({"tostring", "implicitly"}, placement.guard, "disallow",
      function() loss:backward() end)
  end)

  describe("with nn.DataParallel", function()
    local function on_two(title, test)
      it(title, function()
        if lt.cuda.device_count() < 2 then return pending "one device" end
        test()
      end)
    end

    local function model_of(forward)
      local Model = nn.Module:extend "Model"
      function Model:init() self.inner = nn.Linear(3, 2) end
      Model.forward = forward
      return nn.DataParallel(Model():to "cuda")
    end

    local function step(model, input) model(input):sum():backward() end

    on_two("takes its copies as asked for, there and back", function()
      local model = model_of(function(self, v) return self.inner(v) end)
      local trace = placement.trace(placement.guard, "disallow", step, model, lt.ones(4, 3))
      assert.same({{4, 4, 4}, {4, 4, 4}}, model.module.inner.weight.grad:totable())
      assert.is_true(trace:totals().copies > 6)
      assert.equal(0, trace:totals().implicit)
      local copies = placement.guard("disallow", nn.parallel.scatter, lt.ones(2, 1), {0, 1})
      assert.equal("cpu", placement.guard("disallow", nn.parallel.gather, copies, "cpu").device)
      fails({"model: cannot copy", '"cpu" to "cuda:0"', "disallow_explicit"}, placement.guard,
        "disallow_explicit", function() local y = model(lt.ones(4, 3)); return y end)
      local y = model(lt.ones(4, 3))
      fails({"backward: cannot copy", "disallow_explicit"}, placement.guard, "disallow_explicit",
        function() y:sum():backward() end)
    end)

    on_two("refuses what a module inside of it copies without being asked to", function()
      local positions = lt.tensor{1}
      for name, forward in pairs {
        tostring = function(self, v)
          self.text = tostring(v)
          return self.inner(v)
        end,
        index = function(self, v) return self.inner(v[positions]) end,
        lt = function(self, v) return v:sum() < 0 and v or self.inner(v) end,
      } do
        local model = model_of(forward)
        local function call() local y = model(lt.ones{4, 3, device = "cuda"}); return y end
        local text = fails("implicitly", placement.guard, "disallow", call)
        assert.truthy(text:find(": " .. name .. ": cannot copy", 1, true), text)
        fails("in replica 1 of ", placement.guard, "disallow", coroutine.wrap(call))
        fails("in replica 1 of ", coroutine.wrap(placement.guard), "disallow", call)
        assert.is_true(placement.trace(call):totals().implicit > 0)
      end
      local model = model_of(function(self, v) return self.inner(v):cpu() end)
      placement.guard("disallow", step, model, lt.ones(4, 3))
    end)
  end)

  it("is of its coroutine: not while that has yielded, nor after it died", function()
    local inside = coroutine.create(function()
      placement.guard("disallow", function()
        coroutine.yield()
        return implicit()
      end)
    end)
    assert.is_true(coroutine.resume(inside))
    implicit()
    local ok, message = coroutine.resume(inside)
    assert.is_false(ok)
    assert.is_truthy(message:find("forbids", 1, true))
    implicit() -- though nothing has closed the coroutine
    fails("forbids", placement.guard, "disallow", function()
      local text = coroutine.wrap(implicit)()
      return text
    end)
  end)

  it("logs to stderr, with the line", function()
    local result = devices.script[[
      local lt = require "lutra"
      local x = lt.ones({2}, {device = "cuda"})
      lt.placement.guard("log", function() local _ = tostring(x); return x:cpu() end)
      lt.placement.guard("log_explicit", function() local _ = x:cpu() end)]]
    assert.equal(0, result.status, result.err)
    local lines = {}
    for line in result.err:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal(2, #lines, result.err)
    assert.is_truthy(
      lines[1]:find ':3: tostring copies 8 bytes from "cuda:0" to "cpu" implicitly$', lines[1])
    assert.is_truthy(lines[2]:find ':4: cpu copies 8 bytes from "cuda:0" to "cpu"$', lines[2])
  end)

  it("refuses what it does not know", function()
    fails({"placement.guard", '"never"', "disallow"}, placement.guard, "never", explicit)
    fails({"placement.guard", '"up"', "host_to_device"}, placement.guard, "allow", "up", explicit)
    fails({"placement.guard", "level"}, placement.guard, explicit)
    fails({"placement.guard", "fn"}, placement.guard, "allow")
  end)
end)
