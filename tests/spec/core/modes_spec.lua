-- Modes (gradients on or off, inference mode, the device of lt.with_device) belong to the coroutine
-- that set them; one without any of its own has those of the coroutine that resumed it.

local support = require "program_support"
local lt = require "lutra"

local function new_iterator(f)
  return coroutine.wrap(function()
    while true do coroutine.yield(f()) end
  end)
end

local scopes = {
  no_grad = {lt.no_grad, lt.is_grad_enabled, true},
  inference_mode = {lt.inference_mode, lt.is_inference_mode_enabled, false},
  with_device = {function(f, ...) return lt.with_device("meta", f, ...) end,
    lt.get_default_device, lt.get_default_device()},
}

for name, scope in pairs(scopes) do
  local enter, read, outside = table.unpack(scope)
  local inside = enter(read)

  describe(name, function()
    it("holds in the coroutine that yields inside of it, and nowhere else", function()
      local co = coroutine.create(function()
        enter(function()
          for _ = 1, 3 do coroutine.yield(read()) end
        end)
        return read()
      end)
      for _ = 1, 3 do
        assert.same({true, inside}, {coroutine.resume(co)})
        assert.equal(outside, read())
      end
      assert.same({true, outside}, {coroutine.resume(co)})
      assert.equal(outside, read())
    end)

    it("is left by a coroutine that is abandoned, closed or fails", function()
      local function begin()
        local co = coroutine.create(function() enter(coroutine.yield) end)
        coroutine.resume(co)
        return co
      end
      begin()
      assert.equal(outside, read())
      collectgarbage()
      collectgarbage()
      assert.equal(outside, read())
      coroutine.close(begin())
      assert.equal(outside, read())
      local failed = coroutine.create(function() enter(error, "x") end)
      coroutine.resume(failed)
      assert.equal(outside, read())
      coroutine.close(failed)
      assert.equal(outside, read())
    end)

    it("holds in the coroutines that are resumed inside of it", function()
      local next_value = new_iterator(read)
      assert.equal(outside, next_value())
      assert.equal(inside, enter(next_value))
      assert.equal(outside, next_value())
      assert.equal(inside, enter(new_iterator(read)))
      -- Also after a scope of their own.
      local with_own = new_iterator(function() return enter(read) end)
      assert.equal(inside, with_own())
      local both = new_iterator(function() return {enter(read), read()} end)
      assert.same({inside, outside}, both())
      assert.same({inside, inside}, enter(both))
      assert.same({inside, outside}, both())
    end)

    it("comes from the nearest coroutine that has one", function()
      local last = new_iterator(read)
      local middle = new_iterator(last)
      local first = coroutine.wrap(function()
        enter(function()
          while true do coroutine.yield(middle(), last(), read()) end
        end)
      end)
      assert.same({inside, inside, inside}, {first()})
      assert.same({outside, outside}, {middle(), last()})
      assert.same({inside, inside, inside}, {first()})
      assert.equal(outside, last())
    end)
  end)
end

describe("Modes of coroutines", function()
  it("follow the order in which they were resumed, not the order of the scopes", function()
    local last = new_iterator(lt.is_grad_enabled)
    local function within(scope, f)
      return coroutine.wrap(function()
        scope(function()
          while true do coroutine.yield(f()) end
        end)
      end)
    end
    local off_then_on = within(lt.no_grad, within(lt.enable_grad, last))
    local on = within(lt.enable_grad, function() return last() end)
    local off = within(lt.no_grad, function() return last(), on() end)
    assert.equal(true, off_then_on())
    assert.equal(true, on())
    assert.same({false, true}, {off()})
    assert.same({true, false, true}, {off_then_on(), off()})
    local outer = within(lt.enable_grad, function() return off() end)
    assert.same({false, true}, {outer()})
    assert.equal(true, last())
  end)

  it("of set_grad_enabled with a function end with it", function()
    for _, on in ipairs{true, false} do
      local seen, more = lt.set_grad_enabled(on, function(a)
        assert.equal(on, lt.is_grad_enabled())
        return a, 2
      end, 1)
      assert.same({1, 2}, {seen, more})
      assert.is_true(lt.is_grad_enabled())
    end
    assert.has_error(function() lt.set_grad_enabled(false, function() error "stop" end) end)
    assert.is_true(lt.is_grad_enabled())
    assert.has_error(function() lt.set_grad_enabled(1, print) end)
    assert.has_error(function() lt.set_grad_enabled(false, 3) end)
    assert.is_true(lt.is_grad_enabled())
  end)

  it("of set_grad_enabled end with the coroutine", function()
    local co = coroutine.wrap(function()
      assert.equal(true, lt.set_grad_enabled(false))
      coroutine.yield(lt.is_grad_enabled())
      return (lt.ones{1, requires_grad = true} * 2).requires_grad
    end)
    assert.equal(false, co())
    assert.equal(true, lt.is_grad_enabled())
    assert.equal(true, (lt.ones{1, requires_grad = true} * 2).requires_grad)
    assert.equal(false, co())
    assert.equal(true, lt.is_grad_enabled())
    assert.equal(true, lt.set_grad_enabled(false))
    assert.equal(false, lt.set_grad_enabled(true))
  end)

  it("are kept apart: one of a coroutine's own does not hide the others", function()
    local co = coroutine.wrap(function()
      lt.no_grad(function()
        while true do coroutine.yield(lt.is_grad_enabled(), lt.is_inference_mode_enabled()) end
      end)
    end)
    assert.same({false, false}, {co()})
    assert.same({false, true}, {lt.inference_mode(co)})
    assert.same({false, false}, {lt.enable_grad(co)})
  end)

  it("hold for the ops that the coroutine runs", function()
    local x = lt.ones{2, requires_grad = true}
    local co = coroutine.wrap(function()
      lt.no_grad(function()
        while true do coroutine.yield((x * 2).requires_grad) end
      end)
    end)
    for _ = 1, 3 do
      assert.is_false(co())
      assert.is_true((x * 2).requires_grad)
    end
  end)

  it("survive a hook that resumes a coroutine with others", function()
    local on = coroutine.wrap(function()
      lt.enable_grad(function()
        while true do coroutine.yield(lt.is_grad_enabled()) end
      end)
    end)
    local inherits = new_iterator(lt.is_grad_enabled)
    local seen = {}
    local x = lt.ones{2, requires_grad = true}
    local y = x * 2
    y:register_hook(function(g)
      seen = {on(), inherits(), lt.is_grad_enabled()}
      return g * 3
    end)
    y:sum():backward()
    assert.same({true, false, false}, seen)
    assert.same({6, 6}, x.grad:totable())
    assert.is_false(x.grad.requires_grad)
    assert.is_true(lt.is_grad_enabled())
  end)

  it("that a cell of the prompt sets for good stay", function()
    local result = support.session "lt.set_grad_enabled(false)\nlt.is_grad_enabled()\n"
    assert.equal("true\nfalse\n", result.out)
  end)

  it("that a script sets for good stay for the prompt after it", function()
    local path = support.file 'require "lutra".set_grad_enabled(false)'
    local result = support.session("lt.is_grad_enabled()\n", path)
    os.remove(path)
    assert.equal("false\n", result.out)
  end)

  it("are checked", function()
    assert.has_error(function() lt.set_grad_enabled(1) end)
    assert.has_error(function() lt.with_device("nowhere", print) end)
    assert.equal(scopes.with_device[3], lt.get_default_device())
  end)
end)

describe("After the end of the coroutine that used Lutra last", function()
  -- The coroutine is gone with its stack, and its memory may be used for something else.
  local function end_one()
    local co = coroutine.create(function()
      local deep
      function deep(n) return n == 0 and lt.ones(1) or (deep(n - 1)) end
      deep(50)
    end)
    coroutine.resume(co)
    co = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    local rubbish = {}
    for i = 1, 2000 do rubbish[i] = ("x"):rep(40 + i % 8) .. i end
    return rubbish
  end

  local path = os.tmpname()
  after_each(function() os.remove(path) end)

  it("a file is written with a recorder that asks for the line", function()
    local x = lt.arange(12):reshape{3, 4}.T
    local recorder <close> = require "lutra.core"._trace.record {where = true, wait = true}
    end_one()
    lt.save_npy(path, x)
    local seen = recorder:event(1, {})
    assert.equal("modes_spec.lua", seen.where and seen.where:match "[%w_]+%.lua")
    recorder:release()
  end)

  -- A finalizer can do the same whenever Lua makes a field.
  it("an event is read whole although reading it runs a program", function()
    for _, hinder in ipairs {
      function(recorder) recorder:release() end,
      function() for _ = 1, 2000 do lt.ones(1):free() end end,
    } do
      local recorder = require "lutra.core"._trace.record {where = true}
      lt.ones(2, 3)
      local plain, seen = recorder:event(1, {}), {}
      recorder:event(1, setmetatable({}, {__newindex = function(_, key, value)
        seen[key] = value
        hinder(recorder)
      end}))
      assert.same(plain, seen)
      recorder:release()
    end
  end)

  it("functions that only look at tensors can be called", function()
    local x = lt.ones{2, requires_grad = true}
    local y = x * 2
    local recorder <close> = require "lutra.core"._trace.record {where = true}
    for _, f in ipairs {
      function() return x.grad end, function() return #y end, function() y:retain_grad() end,
      function() y:data_ptr() end, function() x:clone():free() end,
      function() return x == y end, function() lt.Generator(1):get_state() end,
      function() y:detach():requires_grad_() end, function() return lt.result_type(x, 1) end,
      function() x.grad = lt.ones(2) end, function() lt.autograd.grad(y, x, lt.ones(2)) end,
    } do
      end_one()
      f()
    end
    recorder:release()
  end)

  -- Lua runs no finalizer where C's stack is full, and frees the object all the same.
  it("end with a coroutine that is collected where no finalizer can run", function()
    local function leave()
      local co = coroutine.create(function() lt.no_grad(coroutine.yield) end)
      coroutine.resume(co)
    end
    local function deep()
      if not pcall(string.gsub, "x", "x", deep) then collectgarbage() end
    end
    for _ = 1, 5 do leave() end
    deep()
    collectgarbage()
    for _ = 1, 5 do
      assert.is_true(coroutine.wrap(function() return lt.enable_grad(lt.is_grad_enabled) end)())
      assert.is_true(coroutine.wrap(lt.is_grad_enabled)())
    end
    assert.is_true(lt.is_grad_enabled())
  end)

  it("a recorder can be stopped and released after its end, as a later finalizer does", function()
    local recorder = require "lutra.core"._trace.record {}
    getmetatable(recorder).__gc(recorder)
    recorder:stop()
    recorder:release()
    getmetatable(recorder).__gc(recorder)
    assert.is_false(pcall(recorder.count, recorder))
  end)
end)
