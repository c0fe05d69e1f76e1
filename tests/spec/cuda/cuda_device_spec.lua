-- The host side of CUDA, by emulation: which devices there are and why not, copies of all kinds,
-- bad values that only the device sees, devices that are lost, products of matrices. Each test runs
-- the program, since a device is found, counted and lost once for each process.
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
  "float64"}
]==]

-- Runs a script on emulated devices; `environment` is a shell text of assignments.
local function run(script, environment)
  local path = support.file(prelude .. script)
  local result = support.shell(("env -u CUDA_VISIBLE_DEVICES -u CUDA_LAUNCH_BLOCKING " ..
    "LUTRA_EMULATE=cuda:2 %s %s %s"):format(environment or "", support.quote(support.program),
    support.quote(path)))
  os.remove(path)
  return result
end

-- The script's asserts hold, and it comes to its end.
local function passes(script, environment)
  local result = run(script .. "\nprint 'done'", environment)
  assert.equal("done\n", result.out:match "[^\n]*\n$", result.err)
  assert.equal(0, result.status, result.err)
end

local probe = run "print(lt.zeros(1):to 'cuda':cpu():item())"
local here = probe.status == 0
if not here and not probe.err:find("built without its emulation", 1, true) then
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

local function cannot(text, environment)
  passes(("fails(%q, lt.zeros, {1, device = 'cuda'})"):format(text), environment)
  passes("assert(lt.cuda.device_count() == 0 and not lt.cuda.is_available())", environment)
end

describe("cuda: devices", function()
  -- A kernel that is not linked in leaves an empty entry in the device's table. Attention, cross
  -- entropy, the CTC loss and the gradients of grid_sample are composites on CUDA.
  test("every op", function()
    passes [[
      for _, op in ipairs(lt.ops()) do
        local composite = op.name:find "^_attention" or op.name:find "^_cross_entropy"
          or op.name:find "^_ctc_loss" or op.name:find "^_grid_sample_"
        assert(op.support.cuda or composite, "no kernel: " .. op.name)
      end]]
  end)
  test("no driver", function()
    cannot("no NVIDIA driver found", "LUTRA_EMULATE_DRIVER=none")
  end)
  test("a driver that is too old", function()
    cannot('expected an available device, got "cuda": the NVIDIA driver is too old: it '
      .. 'supports CUDA 11.4, this Lutra was built with CUDA 13.0. Update the driver. '
        .. 'Available devices: cpu, meta', "LUTRA_EMULATE_DRIVER=old")
    cannot("this Lutra was built with CUDA 1", "LUTRA_EMULATE_DRIVER=old")
  end)
  test("CUDA_VISIBLE_DEVICES that hides all", function()
    cannot('expected an available device, got "cuda": CUDA_VISIBLE_DEVICES="" in the '
      .. 'environment hides every GPU. Available devices: cpu, meta',
      "CUDA_VISIBLE_DEVICES=")
    cannot('expected an available device, got "cuda": CUDA_VISIBLE_DEVICES="nonsense" in the '
      .. 'environment hides every GPU. Available devices: cpu, meta',
        "CUDA_VISIBLE_DEVICES=nonsense")
    cannot('CUDA_VISIBLE_DEVICES="-1" in the environment', "CUDA_VISIBLE_DEVICES=-1")
  end)
  test("CUDA_VISIBLE_DEVICES that changes the order, or hides some", function()
    passes([[assert(lt.cuda.device_count() == 2)
      assert(lt.ones{2, device = 'cuda:1'}:sum():item() == 2)]], "CUDA_VISIBLE_DEVICES=1,0")
    passes([[assert(lt.cuda.device_count() == 1)
      fails('there is 1 of them, counted from 0', lt.zeros, {1, device = 'cuda:1'})]],
      "CUDA_VISIBLE_DEVICES=1")
  end)
  test("numbers that there are not", function()
    passes [[
      fails('expected an available device, got "cuda:9": there are 2 of them, counted from 0',
        lt.zeros,
        {1, device = 'cuda:9'})
      fails('expected an available device, got "cuda:x"', lt.zeros, {1, device = 'cuda:x'})
      assert(lt.zeros{1, device = 'cuda'}.device == 'cuda:0')]]
  end)
  test("that cannot start", function()
    passes([[
      fails('out of memory', lt.zeros, {1, device = 'cuda'})]], "LUTRA_EMULATE=cuda:2,memory=4096")
  end)
end)

describe("cuda: copies", function()
  test("of every dtype, there and back", function()
    passes [[
      for _, d in ipairs(dtypes) do
        local x = lt.tensor({{0, 1, 1}, {1, 0, 2}}):to(d)
        local y = x:to "cuda"
        assert(y.device == "cuda:0" and y.dtype == x.dtype)
        same(x, y, d)
        same(x, y:to "cuda:1", d)
        for _, e in ipairs(dtypes) do same(x:to(e), x:to{device = "cuda", dtype = e}, d .. e) end
      end]]
  end)
  test("of no elements, of one, of many", function()
    passes [[
      for _, n in ipairs{0, 1, 1000, 16384, 16385, 300000} do
        local x = lt.arange(n):to "float32"
        same(x, x:to "cuda", n)
        same(x, x:to "cuda:1":to "cuda:0", n)
      end
      assert(lt.zeros{0, 3, device = "cuda"}:cpu():numel() == 0)
      assert(lt.tensor(7.5):to "cuda":item() == 7.5)]]
  end)
  test("of views, into views", function()
    passes [[
      local x = lt.arange(60):reshape(3, 4, 5)
      local y = x:to "cuda"
      same(x:transpose(1, 3), x:transpose(1, 3):to "cuda")
      same(x:transpose(1, 3), y:transpose(1, 3):cpu())
      same(x:narrow(2, 2, 2), y:narrow(2, 2, 2):to "cuda:1")
      local z = lt.zeros{3, 4, 5, device = "cuda:1"}
      z:transpose(1, 2):copy_(y:transpose(1, 2))
      same(z:to "int64", x)
      local w = lt.zeros(5, 4, 3)
      w:transpose(1, 3):copy_(y)
      same(w:to "int64", x:transpose(1, 3))
      w:zero_():copy_(y:narrow(1, 1, 1):reshape(4, 5):t():unsqueeze(3))
      same(w:to "int64", x:narrow(1, 1, 1):reshape(4, 5):t():unsqueeze(3):expand(5, 4, 3))]]
  end)
  test("of permuted tensors keep the order in memory, and gather nothing", function()
    passes [[
      local x = lt.arange(60):reshape(3, 4, 5)
      local views = {x:permute(3, 1, 2), x:transpose(1, 2), x:to("cuda"):permute(2, 3, 1)}
      for _, d in ipairs{"cuda", "cuda:1", "cpu"} do
        for _, view in ipairs(views) do
          for _, dtype in ipairs{"int64", "float16"} do
            local y = view:to{device = d, dtype = dtype}
            same(y, view:to(dtype))
            assert(y.dtype == lt[dtype] and not y:is_contiguous(), d)
            for k, s in ipairs(view:stride()) do assert(y:stride()[k] == s, d) end
          end
        end
      end
      local part = x:permute(3, 1, 2):narrow(1, 2, 3) -- has gaps: they are not kept
      same(part, part:to "cuda")
      assert(table.concat(part:to("cuda"):stride(), " ") == "1 12 3")
      local z = lt.zeros{4, 5, 3, device = "cuda"}:permute(3, 1, 2)
      z:copy_(x, true)
      same(z:to "int64", x)
      local there = x:to "cuda"
      lt.cuda.reset_peak_memory_stats()
      there:permute(3, 1, 2):cpu()
      assert(lt.cuda.max_memory_allocated() == lt.cuda.memory_allocated())
      there:permute(3, 1, 2):narrow(1, 2, 3):cpu() -- this is gathered
      assert(lt.cuda.max_memory_allocated() > lt.cuda.memory_allocated())]]
  end)
  test("between devices come after what made the source, and before what changes it", function()
    passes([[
      for i = 1, 20 do
        local x = lt.zeros{50000, device = "cuda:0"}
        x:add_(i)
        local y = x:to "cuda:1"
        x:fill_(-1)
        x = nil
        local z = lt.full({50000}, -2, {device = "cuda:0"})
        assert(y:eq(i):all():item(), i)
      end]], "LUTRA_EMULATE_DELAY=300")
  end)
  test("to one device while another's are under way", function()
    passes([[
      for i = 1, 40 do
        local a, b = lt.full({1000}, i):to "cuda:1", lt.full({1000}, -i):to "cuda:0"
        assert(b:eq(-i):all():item() and a:eq(i):all():item(), i)
      end]], "LUTRA_EMULATE_DELAY=300")
  end)
  test("from plain memory have taken the values when they return", function()
    passes([[
      for _, n in ipairs{1000, 100000} do
        local x = lt.ones(n)
        local y = x:to("cuda", {non_blocking = true})
        x:fill_(5)
        x = nil
        assert(y:eq(1):all():item(), n)
      end]], "LUTRA_EMULATE_DELAY=300")
  end)
  test("that are asynchronous: pinned memory", function()
    passes([[
      local x = lt.ones(100000):pin_memory()
      assert(x:is_pinned())
      local y = x:to("cuda", {non_blocking = true})
      x:fill_(5) -- waits for the copy
      assert(y:eq(1):all():item())
      local z = (y * 3):to("cpu", {non_blocking = true})
      assert(z:is_pinned() and z:eq(3):all():item())
      for i = 1, 20 do -- the memory of a temporary is not given to the next before its copy is over
        local t = lt.full({20000}, i):pin_memory():to("cuda", {non_blocking = true})
        assert(t:eq(i):all():item(), i)
      end]], "LUTRA_EMULATE_DELAY=300")
  end)
  test("that fail", function()
    passes([[
      local x = lt.ones(3)
      fails("to: cannot copy to the device on \"cuda:0\": CUDA error 1", x.to, x, "cuda")
      same(x, x:to "cuda")]], "LUTRA_EMULATE_FAULT=copy@1")
  end)
end)

describe("cuda: bad values that the device finds", function()
  test("name op, argument, value and index, and the session continues", function()
    passes [[
      local x = lt.arange(10):to "cuda"
      local index = lt.tensor{3, 11, 12}:to "cuda"
      local message = fails("index_select: expected an index from 1 to 10 for argument 'index', " ..
          "got 11 at index {2} (reported later by \"cuda:0\", which runs asynchronously)",
        function() return x:index_select(1, index):cpu() end)
      assert(x:sum():item() == 55)
      -- The words are the CPU's.
      local cpu = fails("got 11 at index", function()
        return lt.arange(10):index_select(1, index:cpu())
      end)
      assert(message:find(cpu:match "index_select: [^\n]*", 1, true), cpu)
      fails("got 0 at index {1}",
        function() return x:index_select(1, lt.tensor{0}:to "cuda"):cpu() end)
      same(x:index_select(1, lt.tensor{3, 1}:to "cuda"), lt.tensor{3, 1})]]
  end)
  test("name the argument of the user's function that another op reads", function()
    passes [[
      local x = lt.randn(2, 3):to("cuda"):requires_grad_()
      local F, target = lt.F, lt.tensor{1, 7}:to "cuda"
      fails("one_hot: expected an index from 1 to 3 for argument 'self', got 7 at index {2} (rep",
        function() return F.one_hot(target, 3):cpu() end)
      fails("multi_margin_loss: expected an index from 1 to 3 for argument 'target', " ..
        "got 7 at index {2} (rep", function() return F.multi_margin_loss(x, target):cpu() end)
      local index, good = target:unsqueeze(2), lt.ones(2):to("cuda", "int64")
      x:gather(2, index) -- reported while another function renames its own argument
      fails("gather: expected an index from 1 to 3 for argument 'index', " ..
        "got 7 at index {2, 1} (rep", function() return F.one_hot(good, 3):cpu() end)]]
  end)
  test("are raised by the next call, by a wait, by item", function()
    passes [[
      local x, bad = lt.ones{4, device = "cuda"}, lt.tensor{9}:to "cuda"
      x:index_select(1, bad)
      fails("for argument 'index', got 9", lt.synchronize, "cuda")
      lt.synchronize "cuda"
      x:index_select(1, bad)
      fails("for argument 'index', got 9", function() for _ = 1, 1e6 do x:add_(1) end end)
      fails("for argument 'index', got 9", function() return x:index_select(1,
        bad):sum():item() end)
      x:index_select(1, bad)
      fails("for argument 'index', got 9", function() return x:cpu() end)
      assert(x.device == "cuda:0" and x:numel() == 4)]]
  end)
  test("the first call's is reported, and the output is not written", function()
    passes([[
      local x = lt.zeros{4, device = "cuda"}
      local index = lt.tensor{1, 2, -9}:to "cuda"
      fails("index_fill_: expected an index from 1 to 4 for argument 'index', got -9 at index {3}",
        function()
        x:index_fill_(1, index, 7)
        x:index_select(1, lt.tensor{5}:to "cuda")
        lt.synchronize "cuda"
      end)
      same(x, lt.zeros(4))]], "LUTRA_EMULATE_DELAY=200")
  end)
  test("of other kinds", function()
    passes [[
      local scores = lt.zeros{2, 3, device = "cuda"}
      fails("for argument 'target', got 4 at index {2}", function()
        return lt.cross_entropy(scores, lt.tensor{1, 4}:to "cuda"):item()
      end)
      fails("expected probabilities from 0 to 1, got 1.5 (element 2 of {3})", function()
        return lt.bernoulli(lt.tensor{0.5, 1.5, 2}:to "cuda"):cpu()
      end)
      fails("expected finite weights of at least 0, got -1 (weight 2 of row 1)", function()
        return lt.multinomial(lt.tensor{1.0, -1}:to "cuda", 1):cpu()
      end)
      fails("expected weights of a positive sum, got row 2 with the sum 0", function()
        return lt.multinomial(lt.tensor{{1.0, 1}, {0, 0}}:to "cuda", 1):cpu()
      end)]]
  end)
  test("after a thousand calls", function()
    passes [[
      local x = lt.ones{4, device = "cuda"}
      local one, bad = lt.tensor{1}:to "cuda", lt.tensor{9}:to "cuda"
      for i = 1, 1500 do x:index_select(1, one) end
      for i = 1, 3 do
        fails("index_select: expected an index from 1 to 4 for argument 'index', got 9 at "
          .. "index {1}", function()
          return x:index_select(1, bad):cpu()
        end)
      end]]
  end)
end)

describe("cuda: what fails for good", function()
  test("an illegal address names the kernels, and everything later fails at once", function()
    passes([[
      local x, other = lt.ones{1000, device = "cuda:0"}, lt.ones{3, device = "cuda:1"}
      local message = fails("CUDA error 700", function()
        x:mul_(2)
        return x:exp():log():cpu()
      end)
      for _, text in ipairs{'cannot use "cuda:0" anymore',
        "one of the kernels launched since the last synchronization caused it: ",
        "(of ", "CUDA_LAUNCH_BLOCKING=1", "until the program restarts"} do
        assert(message:find(text, 1, true), message)
      end
      for _ = 1, 3 do
        fails("until the program restarts", function() return x + 1 end)
        fails("until the program restarts", lt.zeros, {2, device = "cuda:0"})
        fails("until the program restarts", lt.synchronize, "cuda:0")
        fails("until the program restarts", function() return x:cpu() end)
        fails("until the program restarts", function() return lt.ones(3):to "cuda:0" end)
        fails("until the program restarts", function() return x:to "cuda:1" end)
      end
      x = nil
      collectgarbage()
      assert(other:sum():item() == 3) -- the other device goes on
      assert(lt.ones(2):sum():item() == 2)]], "LUTRA_EMULATE_FAULT=illegal@3")
  end)
  test("CUDA_LAUNCH_BLOCKING names the one kernel and its op", function()
    passes([[
      local x = lt.ones{1000, device = "cuda:0"}
      local y = x * 2
      local message = fails("exp: cannot use \"cuda:0\" anymore, its memory is lost until the "
        .. "program restarts: CUDA error 700", x.exp, x)
      assert(message:find("in kernel [%w_]+ %(of exp%)"), message)
      assert(not message:find("since the last synchronization", 1, true), message)]],
      "CUDA_LAUNCH_BLOCKING=1 LUTRA_EMULATE_FAULT=illegal@3")
  end)
  test("a launch that fails names kernel and op", function()
    passes([[
      local x = lt.ones{1000, device = "cuda:0"}
      local message = fails("exp: cannot use \"cuda:0\" anymore, its memory is lost until the "
        .. "program restarts: CUDA error 719", x.exp, x)
      assert(message:find("launch kernel [%w_]+; .* %(of exp%)"), message)
      fails("until the program restarts", x.exp, x)]], "LUTRA_EMULATE_FAULT=launch@2")
  end)
  test("a stream or an event for which the driver has no memory", function()
    passes([[
      local x = lt.ones{1000, device = "cuda:0"}
      fails('Stream: cannot create a stream on "cuda:0": out of memory', lt.cuda.Stream, "cuda:0")
      local event = lt.cuda.Event()
      fails('Event: cannot create an event on "cuda:0": out of memory', event.record, event)
      lt.cuda.Stream "cuda:0"
      event:record()
      assert(x:sum():item() == 1000)]], "LUTRA_EMULATE_FAULT=stream@1,event@1")
  end)
  test("a wait that fails, and the end of the program", function()
    passes([[
      local x = lt.ones{1000, device = "cuda:0"}
      fails("an attempt to synchronize the device", lt.synchronize, "cuda:0")
      fails("until the program restarts", lt.synchronize, "cuda:0")]], "LUTRA_EMULATE_FAULT=sync@1")
  end)
end)

describe("cuda: the end of the program", function()
  test("while work is queued", function()
    passes([[
      local x = lt.ones{100000, device = "cuda"}
      local host = lt.ones(100000):pin_memory()
      for _ = 1, 200 do
        x:add_(1)
        kept = host:to("cuda:1", {non_blocking = true})
      end]], "LUTRA_EMULATE_DELAY=2000")
  end)
  test("with an invalid value that was not read", function()
    passes [[lt.ones{4, device = "cuda"}:index_select(1, lt.tensor{9}:to "cuda")]]
  end)
end)

-- Against the CPU: integers and small whole floats exactly, others to the dtype's precision.
local products = [==[
local function near(a, b, what, tolerance)
  b = b:cpu()
  assert(a.dtype == b.dtype, what)
  local worst = a:numel() == 0 and 0 or
    (a:to "float64" - b:to "float64"):abs():max():item() / (1 + a:to "float64":abs():max():item())
  assert(#a.shape == #b.shape and worst <= tolerance, what .. ": off by " .. worst)
  for i = 1, #a.shape do assert(a.shape[i] == b.shape[i], what) end
end
local tolerances = {float16 = 2e-3, bfloat16 = 2e-2, float32 = 2e-6, float64 = 1e-14}
local function make(d, ...)
  if tolerances[d] then return lt.randn(...):to(d) end
  return lt.randint(0, 100, {...}):to(d)
end
lt.manual_seed(1)
]==]

describe("cuda: products of matrices", function()
  test("of every dtype and layout", function()
    passes(products .. [[
      for _, d in ipairs(dtypes) do
        local tolerance = tolerances[d] or 0
        local layouts = {
          function(t) return t end,
          function(t) return t:t():contiguous():t() end,
          function(t) return lt.cat({t, t}, 2):narrow(2, 1, t.shape[2]) end,
          function(t) return lt.cat({t, t}, 1):t():contiguous():t():narrow(1, 1, t.shape[1]) end,
          function(t) return lt.stack({t, t}, 3):select(3, 1) end,
        }
        for i, one in ipairs(layouts) do
          for j, other in ipairs(layouts) do
            for _, s in ipairs{{3, 4, 5}, {1, 7, 1}, {17, 1, 20}, {1, 1, 1}} do
              if d ~= "bool" then
                local a, b = one(make(d, s[1], s[2])), other(make(d, s[2], s[3]))
                local what = d .. " " .. i .. j .. " " .. s[1]
                local x, y = one(a:to "cuda"), other(b:to "cuda")
                near(a:mm(b), x:mm(y), what, tolerance)
                local bias = make(d, s[3])
                near(bias:addmm(a, b, {beta = 2, alpha = 3}),
                  bias:to "cuda":addmm(x, y, {beta = 2, alpha = 3}), what, 4 * tolerance)
              end
            end
          end
        end
      end]])
  end)
  test("in batches, which may be broadcast or transposed", function()
    passes(products .. [[
      for _, d in ipairs{"float16", "bfloat16", "float32", "float64", "int64", "uint8"} do
        local tolerance = tolerances[d] or 0
        local a, b, one = make(d, 5, 3, 4), make(d, 5, 4, 2), make(d, 1, 4, 2)
        local x, y, z = a:to "cuda", b:to "cuda", one:to "cuda"
        near(a:bmm(b), x:bmm(y), d, tolerance)
        near(a:bmm(one:expand(5, 4, 2)), x:bmm(z:expand(5, 4, 2)), d, tolerance)
        near(a:bmm(a:transpose(2, 3)), x:bmm(x:transpose(2, 3)), d, tolerance)
        near(a:transpose(1, 2):bmm(make(d, 3, 4, 2):fill_(1)),
          x:transpose(1, 2):bmm(make(d, 3, 4, 2):fill_(1):to "cuda"), d, tolerance)
        near(a:matmul(one), x:matmul(z), d, tolerance)
      end
      local a, b = make("float32", 70000, 1, 2), make("float32", 70000, 2, 1)
      near(a:bmm(b), a:to "cuda":bmm(b:to "cuda"), "70000", 2e-6)]])
  end)
  test("of no elements, and of nothing to add up", function()
    passes(products .. [[
      for _, d in ipairs{"float32", "float16", "int32"} do
        local function empty(...) return lt.zeros(...):to(d) end
        same(empty(0, 3):mm(empty(3, 2)), empty(0, 3):to "cuda":mm(empty(3, 2):to "cuda"))
        same(empty(2, 0):mm(empty(0, 3)), empty(2, 0):to "cuda":mm(empty(0, 3):to "cuda"))
        same(empty(2, 2, 0):bmm(empty(2, 0, 3)),
          empty(2, 2, 0):to "cuda":bmm(empty(2, 0, 3):to "cuda"))
        local bias = lt.arange(3):to(d)
        same(bias:addmm(empty(2, 0), empty(0, 3), {beta = 3}),
          bias:to "cuda":addmm(empty(2, 0):to "cuda", empty(0, 3):to "cuda", {beta = 3}))
      end
      local nan = lt.full({2}, 0 / 0)
      assert(not nan:to "cuda":addmm(lt.ones{2, 2, device = "cuda"}, lt.ones{2, 2, device = "cuda"},
        {beta = 0}):isnan():any():item())]])
  end)
  test("of integers wrap as their dtype does", function()
    passes [[
      local a = lt.tensor({{100, 100}, {3, 2}}):to "int8"
      same(a:mm(a), a:to "cuda":mm(a:to "cuda"))
      local b = lt.full({3, 3}, 1 << 40):to "int64"
      same(b:mm(b + 1), b:to "cuda":mm((b + 1):to "cuda"))]]
  end)
  test("give gradients", function()
    passes(products .. [[
      local a, b = make("float32", 6, 5), make("float32", 5, 4)
      local x, y = a:to "cuda":requires_grad_(), b:to "cuda":requires_grad_()
      a:requires_grad_()
      b:requires_grad_()
      a:mm(b):pow(2):sum():backward()
      x:mm(y):pow(2):sum():backward()
      near(a.grad, x.grad, "a", 1e-5)
      near(b.grad, y.grad, "b", 1e-5)]])
  end)
  test("have a switch", function()
    passes(products .. [[
      local matmul = lt.backends.cuda.matmul
      assert(matmul.allow_tf32 == false)
      matmul.allow_tf32 = true
      assert(matmul.allow_tf32 == true)
      local a, b = make("float32", 6, 5), make("float32", 5, 4)
      near(a:mm(b), a:to "cuda":mm(b:to "cuda"), "tf32", 2e-3)
      matmul.allow_tf32 = false
      near(a:mm(b), a:to "cuda":mm(b:to "cuda"), "float32", 2e-6)]])
  end)
  test("that cuBLAS cannot do", function()
    passes([[
      local x = lt.ones{3, 3, device = "cuda"}
      fails("mm: cannot multiply matrices: cuBLAS error ", x.mm, x, x)
      assert(x:mm(x):sum():item() == 27)]], "LUTRA_EMULATE_FAULT=blas@1")
  end)
end)
