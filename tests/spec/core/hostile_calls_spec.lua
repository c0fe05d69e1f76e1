-- Every C function that Lua can reach checks what it is given, self and finalizers included.

local support = require "program_support"

local lt = require "lutra"

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"

-- Runs a script in a folder of its own, where functions that are given a name may write.
local function run(script, options)
  local folder = support.folder()
  local line = "here=$PWD && cd %s && OMP_NUM_THREADS=1 timeout 1800 %s %s %s"
  local result = support.shell(line:format(folder, support.quote(support.program), options or "",
    script))
  support.remove(folder)
  return result
end

local function path_of(name)
  if root:sub(1, 1) == "/" then return support.quote(root .. "tests/spec/support/" .. name) end
  return '"$here"/' .. root .. "tests/spec/support/" .. name
end

local function check(options)
  local result = run(path_of "hostile_calls_support.lua", options)
  local count = tonumber(result.out:match "called (%d+) functions")
  assert(result.status == 0 and count, ("status %s after:\n%s"):format(result.status,
    result.err:sub(-3000)))
  assert.is_true(count > 700)
end

describe("C functions called with what they do not expect", function()
  it("raise errors", function() check() end)
  it("raise errors where a device has streams", function() check "--emulate cuda:2" end)
end)

describe("An object whose finalizer was called by hand", function()
  local function finalized(x)
    local finalize = getmetatable(x).__gc
    finalize(x)
    finalize(x)
    return x
  end

  it("is a tensor that every function refuses", function()
    local x = finalized(lt.ones(3))
    assert.equal("tensor (freed)", tostring(x))
    for _, f in ipairs {
      function() return x.shape end, function() return x[1] end, function() x[1] = 2 end,
      function() x.grad = nil end, function() return #x end, function() return x + 1 end,
      function() return 1 + x end, function() return x < 1 end, function() return x:add(1) end,
      function() return lt.add(1, x) end, function() return lt.cat{x, x} end,
      function() return x:item() end, function() return x:numel() end,
      function() x:backward() end, function() x:register_hook(print) end,
      function() lt.save_npy("/dev/null", x) end, function() return lt.tensor(x) end,
    } do
      local ok, reason = pcall(f)
      assert.is_false(ok)
      assert(reason:find("freed", 1, true), reason)
    end
    assert.is_false(lt.is_tensor(x))
    assert.is_false(x == lt.ones(3))
    local _ <close> = x
  end)

  it("is a generator that every function refuses", function()
    local g = finalized(lt.Generator(1))
    assert.equal("Generator(finalized)", tostring(g))
    assert.has_error(function() g:seed() end)
    assert.has_error(function() lt.rand(3, {generator = g}) end)
  end)

  it("gives its memory back once", function()
    collectgarbage()
    local before = lt.memory_live()
    finalized(lt.ones(1000))
    assert.equal(before, lt.memory_live())
    collectgarbage()
    assert.equal(before, lt.memory_live())
  end)

  it("is not what the metamethods of tensors are called with", function()
    local meta = getmetatable(lt.ones(3))
    for name, f in pairs(meta) do
      if type(f) == "function" and name ~= "__gc" then
        for _, other in ipairs {io.stdout, lt.Generator(1), {}, "x", 42} do
          pcall(f, other, 1, 1)
        end
      end
    end
    local ok, reason = pcall(meta.__index, 42, 1)
    assert.is_false(ok)
    assert(reason:find("tensor", 1, true), reason)
    ok, reason = pcall(meta.__len, io.stdout)
    assert.is_false(ok)
    assert(reason:find("tensor", 1, true), reason)
    getmetatable(lt.Generator(1)).__gc(io.stdout)
    meta.__gc(io.stdout)
  end)

  it("is none of the upvalues of functions", function()
    local core, seen = require "lutra.core", 0
    for _, functions in ipairs{core, core._ops, core._methods} do
      for name, f in pairs(functions) do
        for i = 1, type(f) == "function" and 9 or 0 do
          local _, value = debug.getupvalue(f, i)
          assert.is_false(core.is_tensor(value), name)
          assert.is_false(core._is_freed(value), name)
          if type(value) == "userdata" then seen = seen + 1 end
        end
      end
    end
    assert.truthy(seen > 500, seen)
  end)
end)

describe("The geometry of a view", function()
  it("may be that of the tensor itself, a leaf that requires grad", function()
    local set_view = require("lutra.core")._set_view
    local x = lt.ones{3, requires_grad = true}
    assert.has_error(function() set_view(x, x, "f_") end)
    lt.no_grad(function() assert.equal(x, set_view(x, x, "f_")) end)
    x:sum():backward()
    assert.same({1, 1, 1}, x.grad:totable())
  end)
end)
