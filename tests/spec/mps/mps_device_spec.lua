-- The host side of mps, by emulation: copies of all kinds, bad values that only the device sees,
-- devices that are lost, compiled kernels that are kept. Each test runs the program, since a device
-- is found and lost once for each process.
local support = require "program_support"

-- What runs before each script: helpers that compare tensors of two devices.
local prelude = [==[
local lt = require "lutra"
function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error was raised; expected: " .. text)
  message = tostring(message)
  assert(message:find(text, 1, true), "expected: " .. text .. "\ngot: " .. message)
  return message
end
function same(a, b, what)
  a, b = a:cpu(), b:cpu()
  assert(a.dtype == b.dtype, what or "dtypes differ")
  assert(#a.shape == #b.shape, what or "numbers of dims differ")
  for i = 1, #a.shape do assert(a.shape[i] == b.shape[i], what or "shapes differ") end
  assert(a:numel() == 0 or a:eq(b):all():item(), (what or "values differ") .. "\n" ..
    tostring(a) .. "\n" .. tostring(b))
end
dtypes = {"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
  "complex64"}
]==]

-- Runs a script on the emulated device; `environment` is a shell text of assignments.
local function run(script, environment)
  local path = support.file(prelude .. script)
  local result = support.shell(("env -u LUTRA_MPS_BLOCKING LUTRA_EMULATE=mps %s %s %s"):format(
    environment or "", support.quote(support.program), support.quote(path)))
  os.remove(path)
  return result
end

-- The script's asserts hold, and it comes to its end.
local function passes(script, environment)
  local result = run(script .. "\nprint 'done'", environment)
  assert.equal("done\n", result.out:match "[^\n]*\n$", result.err)
  assert.equal(0, result.status, result.err)
end

local probe = run "print(lt.zeros(1):to 'mps':cpu():item())"
local here = probe.status == 0
if not here and not probe.err:find("not available in this build", 1, true) then
  error("the emulated device does not work: " .. probe.err)
end

local function test(name, f)
  it(name, function()
    if not here then
      pending "this Lutra was built without emulation"
      return
    end
    f()
  end)
end

-- Once where host and device share their memory, and once where the device has its own.
local function test_storages(name, script, environment)
  for _, storage in ipairs {"shared", "private"} do
    test(name .. ", memory " .. storage, function()
      passes(script, ("LUTRA_MPS_STORAGE=%s %s"):format(storage, environment or ""))
    end)
  end
end

describe("mps: copies", function()
  test_storages("of every dtype, there and back", [[
    for _, d in ipairs(dtypes) do
      local x = lt.tensor({{0, 1, 1}, {1, 0, 2}}):to(d)
      local y = x:to "mps"
      assert(y.device == "mps" and y.dtype == x.dtype)
      same(x, y, d)
      for _, e in ipairs(dtypes) do
        if d ~= "complex64" or e == d then
          same(x:to(e), x:to{device = "mps", dtype = e}, d .. e)
        end
      end
    end]])
  test_storages("of no elements, of one, of many", [[
    for _, n in ipairs{0, 1, 1000, 16384, 16385, 65537, 300000, 5000001} do
      local x = lt.arange(n):to "float32"
      same(x, x:to "mps", n)
      local y = x:to "mps"
      y:mul_(1) -- queued: the next copy comes after it
      y:copy_(x + 1)
      same(x + 1, y, n)
      same(x + 1, y:clone(), n)
    end
    assert(lt.zeros{0, 3, device = "mps"}:cpu():numel() == 0)
    assert(lt.tensor(7.5):to "mps":item() == 7.5)]])
  test_storages("of views, into views", [[
    local x = lt.arange(60):reshape(3, 4, 5)
    local y = x:to "mps"
    same(x:transpose(1, 3), x:transpose(1, 3):to "mps")
    same(x:transpose(1, 3), y:transpose(1, 3):cpu())
    same(x:narrow(2, 2, 2), y:narrow(2, 2, 2))
    local z = lt.zeros{3, 4, 5, device = "mps"}
    z:transpose(1, 2):copy_(y:transpose(1, 2))
    same(z:to "int64", x)
    local w = lt.zeros(5, 4, 3)
    w:transpose(1, 3):copy_(y)
    same(w:to "int64", x:transpose(1, 3))
    w:zero_():copy_(y:narrow(1, 1, 1):reshape(4, 5):t():unsqueeze(3))
    same(w:to "int64", x:narrow(1, 1, 1):reshape(4, 5):t():unsqueeze(3):expand(5, 4, 3))]])
  test_storages("from plain memory have taken the values when they return", [[
    for _, n in ipairs{1000, 100000, 1000000} do
      local busy = lt.ones{n, device = "mps"}:exp()
      local x = lt.ones(n)
      local y = x:to("mps", {non_blocking = true})
      x:fill_(5)
      x = nil
      assert(y:eq(1):all():item(), n)
    end]], "LUTRA_EMULATE_DELAY=300")
  test_storages("that are asynchronous: pinned memory", [[
    local x = lt.ones(100000):pin_memory()
    assert(x:is_pinned())
    local y = x:to("mps", {non_blocking = true})
    x:fill_(5) -- waits for the copy
    assert(y:eq(1):all():item())
    local z = (y * 3):to("cpu", {non_blocking = true})
    assert(z:is_pinned() and z:eq(3):all():item())
    for i = 1, 20 do -- the memory of a temporary is not given to the next before its copy is over
      local t = lt.full({20000}, i):pin_memory():to("mps", {non_blocking = true})
      assert(t:eq(i):all():item(), i)
    end]], "LUTRA_EMULATE_DELAY=300")
  test_storages("between mps and another device", [[
    local x = lt.arange(1000):to "float32"
    same(x, x:to "mps":to "cuda":to "mps")
    same(x + 1, (x:to "cuda" + 1):to "mps")
    same(x * 2, (x:to "mps" * 2):to "cuda")]], "LUTRA_EMULATE=cuda:1,mps")
  test_storages("where every allocation is of its own", [[
    local x = lt.arange(1000):to "float32":to "mps"
    for i = 1, 20 do x = x + 1 end
    same(x, lt.arange(1000):to "float32" + 20)]], "LUTRA_MEMORY_DEBUG=1")
end)

describe("mps: products of matrices by Apple's library", function()
  test("are those of Lutra's kernels", function()
    passes [[
      local matmul = lt.backends.mps.matmul
      local function near(a, b, what)
        assert(a.dtype == b.dtype and #a.shape == #b.shape, what)
        local off = (a:to "float32" - b:cpu():to "float32"):abs():max():item()
        assert(off <= (a.dtype == "float16" and 0.05 or 1e-4), what .. ": off by " .. off)
      end
      assert(matmul.prefer_apple == false)
      lt.manual_seed(1)
      local layouts = {
        function(t) return t end,
        function(t) return t:t():contiguous():t() end,
        function(t) return lt.cat({t, t}, 2):narrow(2, 1, t.shape[2]) end,
        function(t) return lt.stack({t, t}, 3):select(3, 1) end, -- no product of Apple's
      }
      for _, d in ipairs{"float32", "float16", "bfloat16", "int32"} do
        local a, b = (lt.randn(33, 20) * 3):to(d), (lt.randn(20, 17) * 3):to(d)
        for i, one in ipairs(layouts) do
          for j, other in ipairs(layouts) do
            for _, prefer in ipairs{true, false} do
              matmul.prefer_apple = prefer
              assert(matmul.prefer_apple == prefer)
              local x, y = one(a:to "mps"), other(b:to "mps")
              near(a:mm(b), x:mm(y), d .. i .. j)
            end
          end
        end
      end]]
  end)
end)

describe("mps: bad values that the device finds", function()
  test("name op, argument, value and index, and the session continues", function()
    passes [[
      local x = lt.arange(10):to "mps"
      local index = lt.tensor{3, 11, 12}:to "mps"
      local message = fails("index_select: expected an index from 1 to 10 for argument 'index', " ..
          "got 11 at index {2} (reported later by \"mps\", which runs asynchronously)",
        function() return x:index_select(1, index):cpu() end)
      assert(x:sum():item() == 55)
      -- The words are the CPU's.
      local cpu = fails("got 11 at index", function()
        return lt.arange(10):index_select(1, index:cpu())
      end)
      assert(message:find(cpu:match "index_select: [^\n]*", 1, true), cpu)
      fails("got 0 at index {1}",
        function() return x:index_select(1, lt.tensor{0}:to "mps"):cpu() end)
      same(x:index_select(1, lt.tensor{3, 1}:to "mps"), lt.tensor{3, 1})]]
  end)
  test("name the argument of the user's function that another op reads", function()
    passes [[
      local x = lt.randn(2, 3):to("mps"):requires_grad_()
      local F, target = lt.F, lt.tensor{1, 7}:to "mps"
      fails("one_hot: expected an index from 1 to 3 for argument 'self', got 7 at index {2} (rep",
        function() return F.one_hot(target, 3):cpu() end)
      fails("multi_margin_loss: expected an index from 1 to 3 for argument 'target', " ..
        "got 7 at index {2} (rep", function() return F.multi_margin_loss(x, target):cpu() end)
      local index, good = target:unsqueeze(2), lt.ones(2):to("mps", "int64")
      x:gather(2, index) -- reported while another function renames its own argument
      fails("gather: expected an index from 1 to 3 for argument 'index', " ..
        "got 7 at index {2, 1} (rep", function() return F.one_hot(good, 3):cpu() end)]]
  end)
  test("are raised by the next call, by a wait, by item", function()
    passes [[
      local x, bad = lt.ones{4, device = "mps"}, lt.tensor{9}:to "mps"
      x:index_select(1, bad)
      fails("for argument 'index', got 9", lt.synchronize, "mps")
      lt.synchronize "mps"
      x:index_select(1, bad)
      fails("for argument 'index', got 9", function() for _ = 1, 1e6 do x:add_(1) end end)
      fails("for argument 'index', got 9", function() return x:index_select(1,
        bad):sum():item() end)
      x:index_select(1, bad)
      fails("for argument 'index', got 9", function() return x:cpu() end)
      assert(x.device == "mps" and x:numel() == 4)]]
  end)
  test("the first call's is reported, and the output is not written", function()
    passes([[
      local x = lt.zeros{4, device = "mps"}
      local index = lt.tensor{1, 2, -9}:to "mps"
      fails("index_fill_: expected an index from 1 to 4 for argument 'index', got -9 at index {3}",
        function()
        x:index_fill_(1, index, 7)
        x:index_select(1, lt.tensor{5}:to "mps")
        lt.synchronize "mps"
      end)
      same(x, lt.zeros(4))]], "LUTRA_EMULATE_DELAY=200")
  end)
  test("in strided and large index tensors", function()
    passes [[
      local x = lt.arange(10):to "mps"
      local index = lt.ones(3, 40):to "int64"
      index[{2, 7}] = 11
      index[{3, 1}] = 12
      local there = index:to "mps"
      local strided = there:t():select(2, 2) -- stride 1 of dimension 2
      fails("got 11 at index {7}", function() return x:index_select(1, strided):cpu() end)
      local across = there:t():contiguous():t():select(1, 2) -- stride 3
      fails("got 11 at index {7}", function() return x:index_select(1, across):cpu() end)
      fails("got 11 at index {2, 7}", function()
        return x:unsqueeze(1):expand(3, 10):gather(2, there):cpu()
      end)
      local many = lt.ones(3000000):to "int64"
      many[2999999] = 0
      fails("got 0 at index {2999999}", function()
        return x:index_select(1, many:to "mps"):cpu()
      end)]]
  end)
  test("of other kinds", function()
    passes [[
      local scores = lt.zeros{2, 3, device = "mps"}
      fails("for argument 'target', got 4 at index {2}", function()
        return lt.cross_entropy(scores, lt.tensor{1, 4}:to "mps"):item()
      end)
      fails("expected probabilities from 0 to 1, got 1.5 (element 2 of {3})", function()
        return lt.bernoulli(lt.tensor{0.5, 1.5, 2}:to "mps"):cpu()
      end)
      fails("expected finite weights of at least 0, got -1 (weight 2 of row 1)", function()
        return lt.multinomial(lt.tensor{1.0, -1}:to "mps", 1):cpu()
      end)
      fails("expected weights of a positive sum, got row 2 with the sum 0", function()
        return lt.multinomial(lt.tensor{{1.0, 1}, {0, 0}}:to "mps", 1):cpu()
      end)
      fails("cannot divide integers by zero: argument 'other' is 0 at index {2}", function()
        local q = lt.tensor{4, 5}:to "mps" // lt.tensor{2, 0}:to "mps"
        return q:cpu()
      end)
      local x = lt.tensor{4, 5}:to "mps"
      fails("floor_divide_: cannot divide integers by zero", x.floor_divide_, x,
        lt.tensor{2, 0}:to "mps")
      same(x, lt.tensor{4, 5})]]
  end)
  test("after a thousand calls", function()
    passes [[
      local x = lt.ones{4, device = "mps"}
      local one, bad = lt.tensor{1}:to "mps", lt.tensor{9}:to "mps"
      for i = 1, 1500 do x:index_select(1, one) end
      for i = 1, 3 do
        fails("index_select: expected an index from 1 to 4 for argument 'index', got 9 at "
          .. "index {1}", function()
          return x:index_select(1, bad):cpu()
        end)
      end]]
  end)
  test("are raised by the call itself where the host blocks for each kernel", function()
    passes([[
      local x = lt.ones{4, device = "mps"}
      local message = fails(
        "index_select: expected an index from 1 to 4 for argument 'index', got 9", x.index_select,
        x, 1, lt.tensor{9}:to "mps")
      assert(not message:find("reported later", 1, true), message)]], "LUTRA_MPS_BLOCKING=1")
  end)
end)

describe("mps: the device is lost", function()
  test("by a page fault: everything later fails at once", function()
    passes([[
      local x = lt.ones{1000, device = "mps"}
      local message = fails("page fault", function()
        x:mul_(2)
        return x:exp():log():cpu()
      end)
      for _, text in ipairs{'cannot use "mps" anymore', "until the program restarts",
        "one of the kernels of the command buffer caused it: ", "(of ", "LUTRA_MPS_BLOCKING=1"} do
        assert(message:find(text, 1, true), message)
      end
      for _ = 1, 3 do
        fails("until the program restarts", function() return x + 1 end)
        fails("until the program restarts", lt.zeros, {2, device = "mps"})
        fails("until the program restarts", lt.synchronize, "mps")
        fails("until the program restarts", function() return x:cpu() end)
        fails("until the program restarts", function() return lt.ones(3):to "mps" end)
      end
      x = nil
      collectgarbage()
      assert(lt.ones(2):sum():item() == 2)]], "LUTRA_EMULATE_FAULT=illegal@3")
  end)
  test("LUTRA_MPS_BLOCKING names the one kernel and its op", function()
    passes([[
      local x = lt.ones{1000, device = "mps"}
      local y = x * 2
      local message = fails("exp: cannot use \"mps\" anymore, its memory is lost until the "
        .. "program restarts: page fault", x.exp, x)
      assert(message:find("in kernel [%w_]+ %(of exp%)"), message)
      assert(not message:find("one of the kernels", 1, true), message)]],
      "LUTRA_MPS_BLOCKING=1 LUTRA_EMULATE_FAULT=illegal@3")
  end)
end)

describe("mps: Ctrl-C", function()
  -- The program's process is the shell's: it sends itself the signal while the kernel runs.
  local ENDLESS = [==[
    local lib = lt.mps.compile_shader [=[
      #include <metal_stdlib>
      kernel void spin(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
        for (int k = 0; k >= 0; k = (k + 1) & 0xffff) x[i] += 1;
      }]=]
    local x, y = lt.zeros{4, device = "mps"}, lt.ones{4, device = "mps"}
    lib.spin(x)
    io.popen("sleep 1; kill -INT $PPID")
    local start = os.time()
    fails("interrupted", function() return %s end)
    assert(y:sum():item() == 4) -- the device is not lost
    assert(os.time() - start < 20)]==]
  for _, wait in ipairs {"x:cpu()", 'lt.synchronize "mps"'} do
    test("ends a kernel that does not end: " .. wait, function() passes(ENDLESS:format(wait)) end)
  end
end)

describe("mps: the end of the program", function()
  test("while work is queued", function()
    passes([[
      local x = lt.ones{100000, device = "mps"}
      local host = lt.ones(100000):pin_memory()
      for _ = 1, 200 do
        x:add_(1)
        kept = host:to("mps", {non_blocking = true})
      end]], "LUTRA_EMULATE_DELAY=2000")
  end)
  test("while a kernel runs that does not end", function()
    local start = os.time()
    passes [==[
      local lib = lt.mps.compile_shader [=[
        #include <metal_stdlib>
        kernel void spin(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          for (int k = 0; k >= 0; k = (k + 1) & 0xffff) x[i] += 1;
        }]=]
      lib.spin(lt.zeros{4, device = "mps"})]==]
    assert.is_true(os.time() - start < 20)
  end)
  test("with an invalid value that was not read", function()
    passes [[lt.ones{4, device = "mps"}:index_select(1, lt.tensor{9}:to "mps")]]
  end)
end)

describe("mps: the archive of compiled kernels", function()
  local script = "assert(lt.ones{4, device = 'mps'}:exp():cpu():numel() == 4)"
  local function content(path)
    local file = io.open(path)
    local text = file and file:read "a"
    if file then file:close() end
    return text
  end

  test("is written at the end, and read by the next run", function()
    local path = support.file ""
    local set = "LUTRA_MPS_ARCHIVE=" .. support.quote(path)
    passes(script, set)
    local first = content(path)
    assert.matches("archive", first)
    passes(script, set)
    assert.equal(first, content(path))
    passes("lt.ones{4, device = 'mps'}:log()", set) -- one more kernel
    assert.is_true(#content(path) > #first)
    local left = support.shell("ls " .. support.quote(path) .. ".*")
    assert.not_equal(0, left.status, left.out) -- no temporary file
    os.remove(path)
  end)
  test("is replaced when it is damaged, and not missed where it cannot be written", function()
    local path = support.file "damaged"
    passes(script, "LUTRA_MPS_ARCHIVE=" .. support.quote(path))
    assert.matches("archive", content(path))
    os.remove(path)
    passes(script, "LUTRA_MPS_ARCHIVE=/nonexistent/archive")
  end)
end)
