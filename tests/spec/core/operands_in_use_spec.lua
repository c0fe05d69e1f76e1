-- Finalizers that free a tensor, clear its grad or change a table while a call of the library reads
-- it. The scripts run in a process of their own, where the heap is small: each allocation of Lua's
-- runs a whole collection.

local devices = require "device_support"
local program = require "program_support"
local emulated_it = devices.emulated_it(_ENV)

-- What the scripts begin with.
--
-- sweep(make): for k = 1, 2, ... makes {f, action, check} anew, calls f and, at the k-th collection
-- that runs inside it, action; until f is over before. check(value) is about what f returned. An
-- error must say one of `reasons`.
local prelude = [[
local lt = require "lutra"
local core = require "lutra.core"

local function during(k, action, f)
  local count, armed = 0, true
  local function arm()
    setmetatable({}, {__gc = function()
      if not armed then return end
      count = count + 1
      if count == k then action() end
      arm()
    end})
  end
  collectgarbage()
  collectgarbage("incremental", 1, 1000)
  collectgarbage()
  arm()
  local result = table.pack(pcall(f))
  armed = false
  collectgarbage("incremental", 200, 100)
  return result, count
end

local function sweep(title, reasons, make)
  local values, errors, k = 0, 0, 0
  while true do
    k = k + 1
    local f, action, check = make()
    local result, count = during(k, action, f)
    if result[1] then
      check(table.unpack(result, 2, result.n))
      values = values + 1
    else
      local known = false
      for _, reason in ipairs(reasons) do
        known = known or tostring(result[2]):find(reason, 1, true)
      end
      if not known then error(title .. ", collection " .. k .. ": " .. tostring(result[2])) end
      errors = errors + 1
    end
    if count < k then break end
  end
  print(title, k > 1 and "ok" or "no collection ran")
  return errors
end

local FREED = {"was freed"}
local keep
-- Fills memory that was freed just now.
local function overwrite(...)
  keep = {}
  for i = 1, 6 do keep[i] = lt.full({...}, 7.0) end
end
local function same(expected, x, what)
  if not x:eq(expected):all():item() then
    error(("%s: expected %s, got %s"):format(what or "value", expected, x), 2)
  end
end
]]

-- Runs the script; each of its prints ends in "ok".
local function passes(script, environment)
  local result = devices.script(prelude .. script, environment)
  assert.equal(0, result.status, result.out .. result.err)
  assert.equal("", result.err)
  assert.is_true(#result.out > 0)
  for line in result.out:gmatch "[^\n]+" do assert.matches("\tok$", line) end
end

describe("a tensor that a finalizer frees", function()
  it("is read to its end, or refused", function()
    passes [[
      sweep("totable", FREED, function()
        local x = lt.full({12, 3000}, 1.0)
        return function() return x:totable() end, function() x:free(); overwrite(12, 3000) end,
          function(rows)
            for i = 1, 12 do
              for k = 1, 3000 do assert(rows[i][k] == 1, rows[i][k]) end
            end
          end
      end)
      lt.set_printoptions{profile = "full"}
      sweep("tostring", FREED, function()
        local x = lt.full({60, 50}, 1.0)
        local text = tostring(x)
        return function() return tostring(x) end, function() x:free(); overwrite(60, 50) end,
          function(t) assert(t == text or t == "tensor (freed)", t) end
      end)
      for _, name in ipairs {"shape", "size", "stride"} do
        sweep(name, FREED, function()
          local x = lt.zeros(3, 4, 5)
          return function() return name == "shape" and x.shape or x[name](x) end,
            function() x:free() end,
            function(s)
              assert(tostring(s) == (name == "stride" and "{20, 5, 1}" or "{3, 4, 5}"), s)
            end
        end)
      end
      sweep("describe", {"a tensor of shape {3, 4, 5}", "was freed"}, function()
        local x = lt.zeros(3, 4, 5)
        return function() return lt.zeros(x) end, function() x:free() end, function() end
      end)]]
  end)

  it("is refused by an op, or is its operand", function()
    passes [[
      local function both(title, op, expected)
        sweep(title, FREED, function()
          local a, b = lt.full({5000}, 2.0), lt.full({5000}, 3.0)
          return function() return op(a, b) end, function() a:free(); overwrite(5000) end,
            function(c) same(expected, c, title) end
        end)
      end
      both("a + b", function(a, b) return a + b end, 5)
      both("b + a", function(a, b) return b + a end, 5)
      both("-a", function(a) return -a end, -2)
      both("maximum", function(a, b) return lt.maximum(a, b) end, 3)
      both("sum{dim}", function(a) return a:sum{dim = 1} end, 10000)
      both("cat", function(a, b) return lt.cat({a, b}):sum() end, 25000)
      both("stack", function(a, b) return lt.stack{a, b, dim = 1}:sum() end, 25000)
      both("where", function(a, b) return lt.where(b:gt(2), a, b) end, 2)
      both("sort", function(a) return (a:sort()) end, 2)
      both("chunk", function(a) return a:chunk(2)[2] end, 2)
      both("to", function(a) return a:to "float64" end, 2)
      both("clone", function(a) return a:clone() end, 2)
      both("T", function(a) return a.T end, 2)
      both("lerp", function(a, b) return a:lerp(b, 0.5) end, 2.5)
      both("add_", function(a, b) return b:add_(a) end, 5)
      both("index", function(a) return a["2:4"] end, 2)
      both("index by a tensor", function(a) return a[lt.tensor{1, 2, 3}] end, 2)
      both("index by a mask", function(a, b) return a[b:eq(3)] end, 2)
      both("an index tensor", function(a, b)
        local i = a:to "int64"
        a = nil
        return b[i]
      end, 3)
      both("assign", function(a, b) b["1:5000"] = a; return b end, 2)
      both("assign a table", function(a, b) b["1:2"] = {3, 3}; return b end, 3)
      both("new_tensor", function(a) return a:new_tensor{9, 9} end, 9)
      both("tensor of a tensor", function(a) return lt.tensor(a) end, 2)
      both("as_tensor", function(a) return lt.as_tensor(a, {dtype = "float64"}) end, 2)
      both("item", function(a) return lt.full({}, a:sum():item()) end, 10000)
      sweep("a < b", FREED, function()
        local a, b = lt.full({}, 1.0), lt.full({}, 2.0)
        return function() return a < b end, function() a:free() end, assert
      end)]]
  end)

  it("is written to a file to its end, or refused", function()
    passes [[
      local path = os.tmpname()
      sweep("save_npy", FREED, function()
        local x = lt.full({5000}, 2.0)
        return function() lt.save_npy(path, x) end, function() x:free(); overwrite(5000) end,
          function() same(2, lt.load_npy(path)) end
      end)
      sweep("save_safetensors", FREED, function()
        local t = {a = lt.full({5000}, 2.0), b = lt.full({5000}, 2.0)}
        local notes = {["key of " .. #path] = "value of " .. #path}
        return function() lt.save_safetensors(path, t, notes) end,
          function() t.a:free(); t.b = nil; for k in pairs(notes) do notes[k] = nil end end,
          function()
            local read, meta = lt.load_safetensors(path)
            same(2, read.a)
            assert(read.b == nil or read.b:eq(2):all():item())
          end
      end)
      os.remove(path)]]
  end)

  it("does not take its grad, its base or its graph from a reader", function()
    passes [[
      sweep("grad", FREED, function()
        local x = lt.zeros(3, {requires_grad = true})
        x:sum():backward()
        return function() return x.grad end, function() x.grad = nil; overwrite(3) end,
          function(g) if g then same(1, g) end end
      end)
      sweep("_base", FREED, function()
        local x = lt.ones(3)
        local view = x["1:2"]
        x = nil
        return function() return core._base(view) end, function() view:free(); overwrite(3) end,
          function(base) if base then same(1, base) end end
      end)
      sweep("_graph", FREED, function()
        local y = lt.ones(3, {requires_grad = true})
        for _ = 1, 3 do y = (y * 2):exp() end
        return function() return core._graph(y, 100) end, function() y:free(); overwrite(3) end,
          function(nodes, n)
            assert(#nodes == n)
            for i, node in ipairs(nodes) do
              for _, s in ipairs(node.saved) do assert(tostring(s.shape) == "{3}") end
            end
          end
      end)
      sweep("_graph during backward", FREED, function()
        local y = lt.ones(3, {requires_grad = true})
        for _ = 1, 3 do y = (y * 2):exp() end
        return function() return core._graph(y, 100) end,
          function() y:backward(lt.ones(3)); overwrite(3) end, function() end
      end)]]
  end)

  it("stays an operand of backward until the end", function()
    passes [[
      local function pass(title, action)
        local x = lt.full({4}, 2.0, {requires_grad = true})
        local w = lt.full({4}, 3.0, {requires_grad = true})
        local gradient, y = lt.full({4}, 5.0), x * w
        x:register_hook(function(g) action(y, gradient, x, w); overwrite(4) end)
        y:backward(gradient)
        if not core._is_freed(x) then same(15, x.grad) end
        same(10, w.grad)
        print(title, "ok")
      end
      pass("root", function(y) y:free() end)
      pass("gradient", function(_, g) g:free() end)
      pass("leaf", function(_, _, x) x:free(); assert(tostring(x) == "tensor (freed)") end)
      pass("set_data", function(_, g)
        local ok, why = pcall(function() g.data = lt.ones(2) end)
        assert(not ok and why:find("a running call uses the tensor", 1, true), why)
      end)
      sweep("backward", FREED, function()
        local x = lt.full({4}, 2.0, {requires_grad = true})
        local list, gradients = {x * 3, x * 4}, {lt.ones(4), lt.ones(4)}
        return function() lt.autograd.backward(list, gradients, true); return x.grad end,
          function() list[1]:free(); gradients[2]:free(); list[2] = nil; overwrite(4) end,
          function(g) same(7, g) end
      end)]]
  end)

  it("is refused where a hook frees the gradient that is passed on", function()
    passes [[
      local function refused(hook)
        local x = lt.full({4}, 2.0, {requires_grad = true})
        x:register_hook(hook)
        local ok, why = pcall(function() (x * 3):sum():backward() end)
        assert(not ok and why:find("freed", 1, true), why)
        assert(x.grad == nil)
        print("hook", "ok")
      end
      refused(function(g) g:free() end)
      refused(function(g) local r = g * 2; r:free(); return r end)
      local x = lt.full({4}, 2.0, {requires_grad = true})
      x:sum():backward()
      x.grad:free()
      local ok, why = pcall(function() x:sum():backward() end)
      assert(not ok and why:find("x.grad = nil", 1, true), why)
      x.grad = nil
      x:sum():backward()
      same(1, x.grad)
      print("grad", "ok")]]
  end)
end)

describe("a table that a finalizer changes", function()
  it("is read as it was, or refused", function()
    passes [[
      local CHANGED = {"tensor: "}
      local actions = {
        function(t) t[3] = nil end,
        function(t) for i = 4, 2, -1 do t[i] = nil end end,
        function(t) t[2] = 5 end,
        function(t) t[2][3] = nil end,
        function(t) for i = 4, 400 do t[2][i] = 1 end end,
        function(t) t[4][2] = "text" end,
        function(t) t[4][2] = {} end,
        function(t) t[4][2] = lt.zeros(100) end,
        function(t) t[1][1] = 0.5 end,
        function(t) t[1][1] = false end,
      }
      for i, change in ipairs(actions) do
        sweep("tensor " .. i, CHANGED, function()
          local t = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}}
          return function() return lt.tensor(t) end, function() change(t) end,
            function(x) assert(x.ndim <= 2 and x:numel() <= 12) end
        end)
      end
      sweep("index with a table", {"index: "}, function()
        local t, x = {{1, 2}, {3, 4}}, lt.zeros(2, 2)
        return function() x["1:2"] = t; return x end, function() t[2] = nil; t[1] = 4 end,
          function(y) assert(y:numel() == 4) end
      end)
      sweep("sizes", {"zeros: ", "reshape: ", "permute: "}, function()
        local sizes, dims = {2, 3, 4}, {3, 2, 1}
        return function() return lt.zeros(sizes):reshape(sizes):permute(dims) end,
          function() sizes[2] = nil; sizes[3] = nil; dims[1] = "a" end,
          function(x) assert(x:numel() <= 24) end
      end)
      sweep("many sizes", {"zeros: ", "as_strided: "}, function()
        local sizes = {}
        for i = 1, 8 do sizes[i] = 1 end
        return function() return lt.zeros(8):as_strided(sizes, sizes, 0) end,
          function() for i = 8, 2, -1 do sizes[i] = nil end end,
          function(x) assert(x:numel() == 1) end
      end)]]
  end)

  it("does not take the tensors in it from the call", function()
    passes [[
      local LIST = {"element", "list", "argument"}
      local function list_of(n)
        local list = {}
        for i = 1, n do list[i] = lt.ones(3) end
        return list
      end
      local function empty(list)
        for i = #list, 1, -1 do list[i] = nil end
      end
      sweep("cat", LIST, function()
        local list = list_of(40)
        return function() return lt.cat(list):sum():item() end, function() empty(list) end,
          function(n) assert(n % 3 == 0) end
      end)
      sweep("index", {"index: "}, function()
        local key, x = {lt.tensor{1, 2}, lt.tensor{1, 2}}, lt.ones(3, 3)
        return function() return x[key] end, function() empty(key); overwrite(2) end,
          function(y) same(1, y) end
      end)
      sweep("backward", {"backward: "}, function()
        local x = lt.ones(3, {requires_grad = true})
        local list, gradients, inputs = {x * 2, x * 3}, list_of(2), {x}
        return function() lt.autograd.backward(list, gradients, nil, nil, inputs) end,
          function() empty(list); empty(gradients); empty(inputs) end,
          function() end
      end)
      sweep("grad", {"grad: "}, function()
        local x = lt.ones(3, {requires_grad = true})
        local list, gradients, inputs = {x * 2, x * 3}, list_of(2), {x}
        return function() return lt.autograd.grad(list, inputs, gradients, true) end,
          function() empty(list); empty(gradients); empty(inputs) end,
          function(g) if g[1] then same(5, g[1]) end end
      end)
      print("list that claims to be long", pcall(lt.cat, (function()
        local list = {}
        for i = 0, 40 do list[1 << i] = lt.ones(1) end
        return list
      end)()) and "taken" or "ok")]]
  end)

  it("is finalized before a finalizer that uses its tensors", function()
    passes [[
      local owner = setmetatable({}, {__gc = function(self)
        local b = self.b
        for _, f in ipairs {function() return b.shape end, function() return b[1] end,
          function() return #b end, function() return b + 1 end, function() return 1 + b end,
          function() b[1] = 2 end, function() return b:sum() end, function() b.grad = nil end,
          function() return lt.cat{b, b} end, function() return b < 1 end,
          function() return b:item() end, function() return b:backward() end} do
          local ok, why = pcall(f)
          assert(not ok and why:find("was freed", 1, true), why)
        end
        b:free()
        assert(tostring(b) == "tensor (freed)" and b == b)
        print("finalizer", "ok")
      end})
      owner.b = lt.zeros(3)
      owner = nil
      collectgarbage()]]
  end)
end)

-- A device with room for one segment of 20 MiB, of which two operands take 4 each and what the
-- collector has not found yet the rest: the next allocation collects 4 and runs action(operands);
-- the collection after that finds 8 more.
local full = [[
local function MiB(n, value) return lt.full({n << 18}, value + 0.0, {device = "cuda"}) end
local function pressed(title, action, f)
  collectgarbage()
  lt.cuda.empty_cache()
  collectgarbage "stop"
  local o, ran, later
  coroutine.wrap(function() -- on a stack of its own, which holds nothing afterwards
    o, later = {MiB(4, 1), MiB(4, 2)}, {MiB(4, 0), MiB(4, 0)}
    setmetatable({MiB(4, 0)}, {__gc = function()
      ran = true
      local ok, why = pcall(action, o)
      if not ok then print(title, why) end
      later = nil
    end})
  end)()
  f(o)
  collectgarbage "restart"
  print(title, ran and not later and "ok" or "the finalizer did not run")
end
local function free_first(o) o[1]:free() end
]]

describe("memory that runs out", function()
  emulated_it("frees no operand of the call that allocates", function()
    passes(full .. [[
      local function test(title, expected, f)
        pressed(title, free_first, function(o)
          local result = f(o[1], o[2])
          assert(core._is_freed(o[1]), title)
          same(expected, result, title)
        end)
      end
      test("a + b", 3, function(a, b) return a + b end)
      test("b + a", 3, function(a, b) return b + a end)
      test("clone", 1, function(a) return a:clone() end)
      test("cumsum", 1 << 20, function(a) return a:cumsum(1)[-1] end)
      test("broadcast", 3, function(a, b) return a + b[{1}] end)
      test("lerp", 1.5, function(a, b) return a:lerp(b, 0.5) end)
      test("cat", 1, function(a) return lt.cat{a} end)
      test("cat twice", 1, function(a) return lt.cat{a, a} end)
      test("flip", 1, function(a) return a:flip(1) end)
      test("composite", 5, function(a, b) return b:addcmul(a, a, 3) end)
      pressed("add_", function(o) o.matrix:free() end, function(o)
        o.matrix = o[1]:view(1024, 1024)
        o.matrix:add_(o.matrix.T)
        assert(core._is_freed(o.matrix))
        same(2, o[1])
      end)
      pressed("both", function(o)
        o[1]:free()
        o[2]:free()
        o[1]:free()
      end, function(o)
        same(3, o[1] + o[2])
        assert(core._is_freed(o[1]) and core._is_freed(o[2]))
      end)
      pressed("set_data", function(o)
        local why = "set_data: cannot replace the data: a running call uses the tensor"
        for _, f in ipairs {function() o[1].data = o[2] end, function() o[1]:set_data(o[2]) end} do
          local ok, message = pcall(f)
          assert(not ok and message:find(why, 1, true), message)
        end
      end, function(o)
        same(3, o[1] + o[2])
        same(1, o[1])
        o[1].data = o[2]
        same(2, o[1])
      end)
      pressed("refused meanwhile", function(o)
        o[1]:free()
        local ok, why = pcall(function() return o[1].shape end)
        assert(not ok and why:find("was freed", 1, true), why)
        assert(not pcall(function() return o[1] + 1 end))
        assert(tostring(o[1]) == "tensor (freed)")
      end, function(o) same(3, o[1] + o[2]) end)]], "LUTRA_EMULATE=cuda:1,memory=24MiB")
  end)

  it("frees none on the CPU either", function()
    if os.getenv "LUTRA_TEST_DEBUG" then return end -- its allocator needs more room than there is
    local path = program.file [[
      local lt = require "lutra"
      local n = 8 << 20
      local a, b = lt.full({n}, 1.0), lt.full({n}, 2.0)
      coroutine.wrap(function()
        local held = setmetatable({}, {__gc = function(self)
          a:free()
          for i = #self, 1, -1 do self[i] = nil end
        end})
        local ok, x
        repeat
          ok, x = pcall(lt.empty, {n})
          held[#held + 1] = ok and x or nil
        until not ok or #held == 2000
      end)()
      collectgarbage "stop"
      local results = {}
      for i = 1, 3 do
        if tostring(a) == "tensor (freed)" then break end
        results[i] = a + b
      end
      for _, c in ipairs(results) do assert(c:eq(3):all():item()) end
      assert(tostring(a) == "tensor (freed)")]]
    local result = program.shell(("ulimit -v 3000000 && OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "
      .. "%s %s"):format(program.quote(program.program), program.quote(path)))
    os.remove(path)
    assert.equal(0, result.status, result.err)
  end)

  emulated_it("frees no element of a list, no index and no grad", function()
    passes(full .. [[
      local function clear(o) o[1], o[2] = nil, nil end
      pressed("cat", clear, function(o)
        local result = lt.cat(o)
        same(1, result["1:1048576"])
        same(2, result["1048577:-1"])
      end)
      pressed("index", clear, function(o)
        local one = o[1]
        o[1], o[2] = one:ge(1), nil
        same(1, one[o])
      end)
      pressed("grad", function(o) o[1].grad = nil end, function(o)
        local x = o[1]:requires_grad_(true)
        o[2] = nil
        x:sum():backward()
        local twice = x:sum()
        twice:backward{create_graph = true}
        assert(x.grad == nil or x.grad:ge(1):all():item())
        x.grad = nil
      end)]], "LUTRA_EMULATE=cuda:1,memory=24MiB")
  end)
end)

describe("a list of gradients", function()
  local lt = require "lutra"

  it("that is empty is refused", function()
    local a = lt.zeros(1, {requires_grad = true})
    local function tensors() return {a * 2, a * 3, a * 4} end
    devices.fails("expected 3 gradients for argument 'grad_", lt.autograd.backward, tensors(), {},
      true)
    devices.fails("expected 1 gradient for argument 'grad_tensors', one for each tensor, got 0",
      lt.autograd.backward, a * 2, {}, true)
    devices.fails("expected 3 gradients for argument 'grad_", lt.autograd.grad, tensors(), {a}, {},
      true)
    devices.fails("expected 3 gradients for argument 'grad_outputs', one for each tensor, got 1",
      lt.autograd.grad, tensors(), {a}, {lt.ones(1)}, true)
    assert.is_nil(a.grad)
    lt.autograd.backward({}, {}, true)
    lt.autograd.backward(tensors(), nil, true)
    assert.same({9.0}, a.grad:totable())
    lt.autograd.backward(tensors(), {false, lt.ones(1), false}, true)
    assert.same({18.0}, a.grad:totable())
  end)
end)

describe("the prompt", function()
  it("shows freed tensors", function()
    local result = program.session [[
x = lt.ones(3, {requires_grad = true}); y = x * 2; p = lt.nn.Linear(2, 2); t = {1, x, lt.ones(2)}
lt.ones(2):sum():item()
x:free(); y:free(); p.weight:free(); t[3]:free()
x
t
y
:whos
:where x
:where t
:tree t
:tree p
:tree x
:grad y
:devices
?x
?p
x.shape
]]
    for _, text in ipairs {"tensor (freed)", "x was freed: it has no memory",
      "y was freed: it has no autograd graph",
        "shape: expected a tensor for argument 'self', got a tensor that was freed (x:free())"} do
      program.has(result.out .. result.err, text)
    end
    local whos = result.out:match "name%s+type.-total" or ""
    assert.matches("x%s+tensor%s+freed", whos)
    local _, failures = (result.out .. result.err):gsub("was freed %(x:free%(%)%)", "")
    assert.equal(1, failures, result.out .. result.err)
  end)
end)
