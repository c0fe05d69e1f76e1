-- lt.accelerator, lt.cuda, lt.mps, lt.backends; tensors and modules on devices; what errors say.
-- The programs of design/api.md, section 10, are the first test.

local devices = require "device_support"
if devices.elsewhere("cuda/accelerator", _ENV) then return end

local lt = require "lutra"
local support = require "nn_support"
local program = require "program_support"

local nn, cuda, accelerator = lt.nn, lt.cuda, lt.accelerator
local fails = devices.fails
local two = cuda.device_count() > 1

-- `fn` inside a file of the library's users: errors are looked for at this file's lines.
local function both(check) -- the face and what it is a face of
  check(cuda)
  check(accelerator)
end

describe("the programs that newcomers write", function()
  it("make tensors on a device", function()
    local x = lt.randn{3, 4, device = two and "cuda:1" or "cuda:0"}
    assert.equal(two and "cuda:1" or "cuda:0", x.device)
    assert.same({3, 4}, {x:size(1), x:size(2)})
  end)

  it("choose a device", function()
    local device = lt.cuda.is_available() and "cuda" or "cpu"
    assert.equal("cuda:0", lt.zeros{1, device = device}.device)
    local names = {}
    for i = 0, lt.cuda.device_count() - 1 do names[i] = lt.cuda.get_device_name(i) end
    assert.equal("string", type(names[0]))
    assert.equal("cuda:0", lt.best_device())
    assert.is_false(lt.mps.is_available())
    assert.is_false(lt.backends.mps.is_available())
  end)

  it("move tensors", function()
    local x = lt.tensor {1.5, 2.5}
    for _, y in ipairs {x:to "cuda", x:cuda(), x:cuda(0), x:cuda {non_blocking = true},
      x:to{device = "cuda", dtype = "float32"}, x:to(0), x:to(lt.zeros{1, device = "cuda"})} do
      assert.equal("cuda:0", y.device)
      assert.same({1.5, 2.5}, y:cpu():totable())
    end
    local y = x:to{device = "cuda", dtype = "float64"}
    assert.equal("float64", y.dtype)
    assert.equal("cpu", y:cpu().device)
    assert.same({1.5, 2.5}, y:detach():cpu():totable())
    assert.equal(2.5, x:cuda():max():item())
    assert.is_true(rawequal(x, x:cpu()))
  end)

  it("build without memory", function()
    local huge = lt.with_device("meta", nn.Linear, 100000, 100000)
    assert.equal("meta", huge:device())
    assert.equal(100000 * 100001, huge:num_parameters())
    local total = 0
    for p in huge:parameters() do total = total + p:numel() end
    assert.equal(total, huge:num_parameters())
    assert.equal("cpu", lt.zeros(1).device)
  end)

  it("ask and wait", function()
    lt.cuda.synchronize()
    assert.is_true(lt.cuda.memory_allocated() >= 0)
    assert.is_true(lt.cuda.memory_reserved() >= lt.cuda.memory_allocated())
    lt.cuda.empty_cache()
    if two then
      lt.cuda.set_device(1)
      assert.equal(1, lt.cuda.current_device())
      assert.equal("cuda:1", lt.zeros{1, device = "cuda"}.device)
      lt.cuda.set_device(0)
    end
    assert.equal(0, lt.cuda.current_device())
  end)

  it("make more like a tensor", function()
    local x = lt.randn{4, 3, device = "cuda"}
    assert.equal("cuda:0", x:new_zeros(4, 1).device)
    assert.equal("cuda:0", lt.randn_like(x).device)
    local ones = lt.ones_like(x, {dtype = "bool"})
    assert.same({"cuda:0", "bool"}, {ones.device, ones.dtype})
    local unit = x / (x:norm{dim = -1, keepdim = true} + 1e-5)
    assert.equal("cuda:0", unit.device)
    local norms = unit:norm{dim = -1}:cpu():totable()
    for i = 1, 4 do assert.is_true(math.abs(norms[i] - 1) < 1e-3) end
  end)
end)

describe("device arguments", function()
  it("are numbers, names, tensors or nothing", function()
    local x = lt.zeros{1, device = "cuda"}
    for _, device in ipairs {0, "cuda:0", "cuda", x, 0.0} do
      assert.equal(cuda.get_device_name(), cuda.get_device_name(device))
    end
    assert.equal("cuda:0", lt.device(0))
    local last = two and 1 or 0
    for _, name in ipairs {lt.device("cuda", last), lt.device{"cuda", last},
      lt.device{type = "cuda", index = last}} do
      assert.equal("cuda:" .. last, name)
    end
    assert.equal("cpu", lt.device{"cpu"})
    fails('expected a type such as "cuda" for argument \'type\' before an index, got the '
      .. 'string "cuda:0"', lt.device, "cuda:0", 0)
    fails("expected an integer of at least 0 for argument 'index', got -1", lt.device, "cuda", -1)
    fails("expected at most 2 arguments (type, index), got 3", lt.device, "cuda", 0, 0)
    fails('expected an available device, got "cuda:9"', lt.device, "cuda", 9)
    assert.equal("cuda:0", lt.zeros{1, device = 0}.device)
    assert.equal("cuda:0", lt.zeros{1, device = x}.device)
  end)

  it("that are invalid are refused", function()
    fails({"cuda.synchronize", "cuda:9", "counted from 0", "Available devices"}, cuda.synchronize,
      9)
    fails({"cuda.synchronize", "got -1", "at least 0"}, cuda.synchronize, -1)
    fails({"cuda.memory_stats", "a table"}, cuda.memory_stats, {})
    fails({"cuda.memory_stats", "1.5"}, cuda.memory_stats, 1.5)
    fails({"cuda.memory_stats", 'got "cpu"', 'type "cuda"'}, cuda.memory_stats, "cpu")
    fails({"cuda.memory_stats", 'got "cpu"'}, cuda.memory_stats, lt.zeros(1))
    fails({"cuda.memory_stats", "nonsense"}, cuda.memory_stats, "nonsense")
    fails({"accelerator.memory_stats", 'got "meta"', "an accelerator"}, accelerator.memory_stats,
      "meta")
    fails("a device", lt.zeros, {1, device = {}})
  end)
end)

describe("devices", function()
  it("are there, with properties", function()
    both(function(face)
      assert.is_true(face.is_available())
      assert.equal(cuda.device_count(), face.device_count())
    end)
    assert.is_true(cuda.is_built())
    assert.equal("cuda", accelerator.current_accelerator())
    assert.is_true(cuda.is_initialized())
    local properties = cuda.get_device_properties(0)
    assert.equal(cuda.get_device_name(0), properties.name)
    local major, minor = cuda.get_device_capability(0)
    assert.same({properties.major, properties.minor}, {major, minor})
    assert.is_true(properties.multi_processor_count >= 1)
    local text = tostring(properties)
    for _, word in ipairs {"name = ", "total_memory = ", "MiB", "warp_size = 32"} do
      assert.is_truthy(text:find(word, 1, true), text)
    end
    assert.is_true(cuda.is_bf16_supported())
    assert.equal(major >= 8, cuda.is_bf16_supported(false))
    local dtypes = accelerator.get_device_capability(0).supported_dtypes
    assert.same({"float64", 12}, {dtypes[1], #dtypes})
    fails("cuda.get_device_properties", cuda.get_device_properties, 9)
    fails("cuda.get_device_name", cuda.get_device_name, {})
    fails("cuda.get_device_capability", cuda.get_device_capability, "mps")
    fails("get_device_capability", accelerator.get_device_capability, "cpu")
  end)

  it("are not set up before they are used", function()
    local result = devices.script [[local lt = require "lutra"
      assert(lt.cuda.is_available() and not lt.cuda.is_initialized())
      local x = lt.zeros{1, device = "cuda"}
      assert(lt.cuda.is_initialized())]]
    assert.equal(0, result.status, result.err)
  end)

  it("have a current one", function()
    fails("for argument 'device', got nil", cuda.set_device)
    fails("expected a device for argument 'device', got nil", accelerator.set_device_index)
    fails("cuda:9", cuda.set_device, 9)
    fails('got "cpu"', accelerator.set_device_index, "cpu")
    assert.equal(0, accelerator.current_device_index())
    fails("expected a function", cuda.with_device, 0, 3)
    fails("cuda:9", cuda.with_device, 9, print)
    if not two then return pending "one device" end
    assert.same({1, "cuda:1", "x"}, {cuda.with_device(1, function(x)
      return cuda.current_device(), lt.zeros{1, device = "cuda"}.device, x
    end, "x")})
    assert.equal(0, cuda.current_device())
    fails("inside", cuda.with_device, "cuda:1", function() error "inside" end)
    assert.equal(0, cuda.current_device())
    assert.equal(1, accelerator.with_device(1, accelerator.current_device_index))
    accelerator.set_device_index "cuda:1"
    assert.equal("cuda:1", lt.best_device())
    accelerator.set_device_index(0)
  end)

  it("are named in the three spellings of a call", function()
    for _, spelled in ipairs {0, {0}, {device = 0}, {device = "cuda:0"}} do
      assert.equal(cuda.get_device_name(0), cuda.get_device_name(spelled))
      cuda.synchronize(spelled)
      accelerator.synchronize(spelled)
    end
    fails({"cuda.synchronize", "got 'devise'", "(device)"},
      cuda.synchronize, {devise = 0})
    assert.equal(cuda.can_device_access_peer(0, 0),
      cuda.can_device_access_peer{device = 0, peer_device = 0})
    cuda.set_per_process_memory_fraction{fraction = 1, device = 0}
    collectgarbage() -- so that no tensor ends between the two
    assert.equal(cuda.memory_summary(0, true), cuda.memory_summary{abbreviated = true})
    fails("cuda.set_device: expected a device such as 1 or \"cuda:1\" for argument 'device', "
      .. "got nil", cuda.set_device)
  end)

  it("read each other's memory or not", function()
    fails("argument 'peer_device', got no value", cuda.can_device_access_peer, 0)
    fails("expected a device index of at least 0 for argument 'peer_device', got -1",
      cuda.can_device_access_peer, 0, -1)
    fails("argument 'peer_device', got \"cpu\"", cuda.can_device_access_peer, 0, "cpu")
    fails("cuda:9", cuda.can_device_access_peer, 0, 9)
    assert.equal("boolean", type(cuda.can_device_access_peer(0, two and 1 or 0)))
  end)

  it("block the host", function()
    lt.synchronize()
    lt.synchronize "cuda"
    lt.synchronize(0)
    cuda.synchronize(lt.zeros{1, device = "cuda"})
    accelerator.synchronize()
    fails("nonsense", lt.synchronize, "nonsense")
  end)

  it("draw from one generator", function()
    cuda.manual_seed(7)
    local a = lt.rand{4, device = "cuda"}:cpu()
    cuda.manual_seed_all(7)
    local state = cuda.get_rng_state()
    local b = lt.rand{4, device = "cuda"}:cpu()
    assert.is_true(lt.equal(a, b))
    cuda.set_rng_state(state, 0)
    assert.is_true(lt.equal(a, lt.rand{4, device = "cuda"}:cpu()))
    lt.manual_seed(7)
    assert.is_true(lt.allclose(a, lt.rand(4)))
    fails("an integer", cuda.manual_seed, "x")
    fails("an integer", cuda.manual_seed_all, {})
    fails("set_rng_state", cuda.set_rng_state, 3)
    fails("get_rng_state", cuda.get_rng_state, 9)
  end)

  it("have ranges for profilers", function()
    local nvtx = cuda.nvtx
    assert.equal(0, nvtx.range_push "a")
    assert.equal(1, nvtx.range_push "b")
    nvtx.mark "here"
    assert.equal(1, nvtx.range_pop())
    assert.equal(0, nvtx.range_pop())
    fails("nvtx.range_pop: cannot close a range: none is open", nvtx.range_pop)
    fails("a string", nvtx.range_push)
    fails("a string", nvtx.mark, 3)
  end)

  it("are shown by --info, emulated ones as such", function()
    if not os.getenv "LUTRA_EMULATE" then return pending "a GPU" end
    local result = program.run "--info"
    assert.is_truthy(result.out:find("cuda:0 (emulated)", 1, true), result.out)
    assert.equal(two, result.out:find("cuda:1 (emulated)", 1, true) ~= nil, result.out)
    assert.matches("\n    driver +[^\n]*for CUDA %d+%.%d+\n    toolkit +CUDA %d+%.%d+\n",
      result.out)
  end)
end)

describe("a build without code for the GPU", function()
  it("says which it has, and how to build it for this one", function()
    if not os.getenv "LUTRA_EMULATE" then return pending "needs emulated devices" end
    local script = 'require("lutra").ones{3, device = "cuda"}'
    local result = devices.script(script, "LUTRA_EMULATE_ARCHS=90")
    program.has(result.err, 'ones: cannot use "cuda:0", Emulated GPU (sm_80): this build has code '
      .. "for sm_90, PTX of compute_90\nhint: make CUDA_ARCHS=80")
    result = program.shell("LUTRA_EMULATE_ARCHS=90 " .. program.quote(program.program) .. " --info")
    assert.equal(0, result.status, result.err)
    assert.matches('cuda:0 +cannot use "cuda:0", Emulated GPU %(sm_80%)', result.out)
    assert.matches("GPU +sm_80: no code for it in this build; build Lutra with make CUDA_ARCHS=80",
      result.out)
    -- the PTX of an older architecture will do
    assert.equal(0, devices.script(script, "LUTRA_EMULATE_ARCHS=70").status)
  end)
end)

describe("memory", function()
  it("is counted as PyTorch counts it", function()
    collectgarbage()
    cuda.synchronize()
    local before = cuda.memory_stats()
    local x = lt.empty{256, device = "cuda"}
    local stats = cuda.memory_stats()
    local function grown(key) return stats[key] - before[key] end
    assert.equal(1024, grown "active_bytes.all.current")
    assert.equal(1024, grown "allocated_bytes.all.current")
    assert.equal(1024, grown "requested_bytes.all.current")
    assert.equal(1024, grown "allocated_bytes.small_pool.current")
    assert.equal(0, grown "allocated_bytes.large_pool.current")
    assert.equal(1, grown "allocation.all.current")
    assert.equal(1, grown "active.all.current")
    assert.equal(1024, grown "allocated_bytes.all.allocated")
    assert.equal(0, grown "allocated_bytes.all.freed")
    local y = lt.empty{1, device = "cuda"} -- rounded up to 512
    local after = cuda.memory_stats()
    assert.equal(512, after["allocated_bytes.all.current"] - stats["allocated_bytes.all.current"])
    assert.equal(4, after["requested_bytes.all.current"] - stats["requested_bytes.all.current"])
    x:free()
    y:free()
    cuda.synchronize()
    assert.equal(before["active_bytes.all.current"],
      cuda.memory_stats()["active_bytes.all.current"])
  end)

  it("has all of PyTorch's keys", function()
    local stats, n = cuda.memory_stats(0), 0
    for _, quantity in ipairs {"allocation", "segment", "active", "inactive_split",
      "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
      "requested_bytes"} do
      for _, pool in ipairs {"all", "small_pool", "large_pool"} do
        for _, part in ipairs {"current", "peak", "allocated", "freed"} do
          assert.equal("integer", math.type(stats[quantity .. "." .. pool .. "." .. part]))
          n = n + 1
        end
      end
    end
    assert.equal(108, n)
    for _, key in ipairs {"num_alloc_retries", "num_ooms", "num_device_alloc",
      "num_device_free"} do
      assert.equal("integer", math.type(stats[key]), key)
    end
  end)

  it("has peaks, limits, a total", function()
    both(function(face)
      face.reset_peak_memory_stats()
      local before = face.memory_allocated()
      assert.equal(before, face.max_memory_allocated())
      local x = lt.empty{1 << 18, device = "cuda"}
      assert.equal(before + (1 << 20), face.memory_allocated())
      x:free()
      assert.equal(before, face.memory_allocated())
      assert.equal(before + (1 << 20), face.max_memory_allocated())
      assert.is_true(face.max_memory_reserved() >= face.memory_reserved())
      face.reset_peak_memory_stats(0)
      assert.equal(before, face.max_memory_allocated(0))
      for _, name in ipairs {"memory_allocated", "max_memory_allocated", "memory_reserved",
        "max_memory_reserved", "memory_stats", "memory_summary", "memory_snapshot",
        "reset_peak_memory_stats"} do
        fails({name, "cuda:9"}, face[name], 9)
      end
    end)
    local free, total = cuda.mem_get_info()
    assert.is_true(free > 0 and free <= total)
    assert.same({free, total}, {accelerator.get_memory_info()})
    assert.equal(total, cuda.get_device_properties().total_memory)
    fails("cuda.mem_get_info", cuda.mem_get_info, 9)
    fails("get_memory_info", accelerator.get_memory_info, "meta")
  end)

  it("is returned to the driver when it is not needed", function()
    collectgarbage()
    lt.empty{6 << 20, device = "cuda"}:free()
    cuda.synchronize()
    local cached = cuda.memory_reserved()
    assert.is_true(cached >= 24 << 20)
    cuda.empty_cache()
    assert.is_true(cuda.memory_reserved() <= cached - (24 << 20))
    lt.zeros(1000):pin_memory():free()
    accelerator.empty_cache()
    cuda.empty_host_cache()
    accelerator.empty_host_cache()
  end)

  it("can be limited", function()
    cuda.empty_cache()
    local _, total = cuda.mem_get_info()
    cuda.set_per_process_memory_fraction(0.25, 0)
    local message = fails({"out of memory"}, lt.empty, {total // 4 // 4 + 1, device = "cuda"})
    assert.is_truthy(message:find("cuda:0", 1, true), message)
    cuda.set_per_process_memory_fraction(1)
    lt.empty{1 << 20, device = "cuda"}:free()
    both(function(face)
      fails("from 0 to 1", face.set_per_process_memory_fraction, 1.5)
      fails("from 0 to 1", face.set_per_process_memory_fraction, "x")
      fails("cuda:9", face.set_per_process_memory_fraction, 1, 9)
    end)
  end)

  it("is shown block by block, with the line that asked for it", function()
    collectgarbage()
    local x = lt.empty{100, 100, device = "cuda"}
    local line = debug.getinfo(1, "l").currentline - 1
    local found, blocks, segments = nil, 0, cuda.memory_snapshot(0)
    for _, segment in ipairs(segments) do
      local size = 0
      for _, block in ipairs(segment.blocks) do
        size, blocks = size + block.size, blocks + 1
        if block.address == x:data_ptr() then found = block end
      end
      assert.equal(segment.total_size, size)
      assert.is_truthy(segment.segment_type == "small" or segment.segment_type == "large")
      assert.equal("cuda:0", segment.device)
    end
    assert.is_true(blocks >= #segments)
    assert.same({40448, 40000, "active_allocated", "float32", "{100, 100}"}, {found.size,
      found.requested_size, found.state, found.dtype, tostring(found.shape)})
    assert.is_truthy(found.where:find("accelerator_spec.lua:" .. line, 1, true), found.where)
    assert.is_true(#cuda.memory_snapshot() >= #segments)
    x:free()
  end)

  it("is shown as a table", function()
    local text = cuda.memory_summary()
    for _, word in ipairs {"cuda:0", "allocated memory", "reserved memory", "in small blocks",
      "segments", "peak"} do
      assert.is_truthy(text:find(word, 1, true), text)
    end
    assert.is_nil(cuda.memory_summary(0, true):find("in small blocks", 1, true))
    for line in text:gmatch "[^\n]+" do assert.is_true(#line <= 80, line) end
  end)

  it("that runs out is reported with its holders and the line of the request", function()
    local script = [[local lt = require "lutra"
      local held = lt.empty{5 << 20, device = "cuda"}
      print(pcall(lt.empty, {64 << 20, device = "cuda"}))
      print(lt.zeros{3, device = "cuda"}:cpu():sum():item(), held:numel())]]
    local result = devices.script(script, "LUTRA_EMULATE=cuda:1,memory=64MiB")
    assert.equal(0, result.status, result.err)
    for _, word in ipairs {"false", "out of memory", "cuda:0", "{5242880}", ".lua:2", "0.0"} do
      assert.is_truthy(result.out:find(word, 1, true), result.out)
    end
  end)
end)

describe("tensors", function()
  it("know where they are", function()
    local x = lt.zeros{2, device = "cuda"}
    assert.same({true, false, false, false}, {x.is_cuda, x.is_cpu, x.is_mps, x.is_meta})
    local y = lt.zeros(2)
    assert.same({false, true, false, false}, {y.is_cuda, y.is_cpu, y.is_mps, y.is_meta})
    assert.is_true(lt.zeros{2, device = "meta"}.is_meta)
    assert.equal("integer", math.type(x:data_ptr()))
    assert.is_true(x:data_ptr() ~= 0)
    assert.equal(0, lt.zeros{2, device = "meta"}:data_ptr())
    fails('expected an available device, got "mps"', y.mps, y)
    fails('type "cuda"', y.cuda, y, "cpu")
    fails("cuda:9", y.cuda, y, 9)
    fails({"cuda", "a function"}, y.cuda, y, print)
    fails("expected an argument name", y.cpu, y, {device = "cuda"})
    fails("data_ptr", y.data_ptr, 3)
  end)

  it("can be pinned", function()
    local x = lt.arange(6):reshape(2, 3)
    assert.is_false(x:is_pinned())
    local p = x:pin_memory()
    assert.is_true(p:is_pinned())
    assert.is_true(lt.equal(x, p))
    assert.same({x.dtype, "cpu", "{2, 3}"}, {p.dtype, p.device, tostring(p.shape)})
    assert.is_true(rawequal(p, p:pin_memory()))
    assert.is_true(p[1]:is_pinned())
    assert.is_true(lt.equal(x:t():contiguous(), x:t():pin_memory()))
    assert.is_true(lt.zeros(0):pin_memory():is_pinned())
    local there = p:to{device = "cuda", non_blocking = true}
    p:add_(100) -- waits for the copy
    assert.is_true(lt.equal(x, there:cpu()))
    local back = there:to{device = "cpu", non_blocking = true}
    assert.is_true(back:is_pinned())
    assert.is_true(lt.equal(x, back))
    fails('expected a tensor on "cpu" for argument \'self\', got one on "cuda:0"',
      there.pin_memory, there)
    fails("pin_memory", x.pin_memory, 3)
    fails('pin_memory: expected an accelerator for argument \'device\', got "cpu"', x.pin_memory,
      x, "cpu")
    fails("is_pinned", x.is_pinned, 3)
  end)

  it("are pinned by what a trace calls an op, with its bytes and line", function()
    local x = lt.arange(6):reshape(2, 3):t()
    local trace = lt.placement.trace(function() return x:pin_memory():pin_memory() end)
    local found = {}
    for _, e in ipairs(trace.events) do
      if e.kind == "op" then found[#found + 1] = ("%s %s %d"):format(e.name, e.to, e.bytes) end
    end
    assert.same({"pin_memory cpu 48"}, found)
    assert.is_truthy(trace.events[#trace.events].where:find "accelerator_spec.lua:%d+$")
  end)

  it("without an accelerator cannot be", function()
    local result = devices.script([[local lt = require "lutra"
      print(pcall(function() return lt.zeros(3):pin_memory() end))
      print(lt.cuda.is_available(), lt.accelerator.is_available(), lt.best_device())
      print(lt.accelerator.current_accelerator(), lt.accelerator.device_count())
      lt.synchronize() lt.cuda.empty_cache() lt.accelerator.empty_host_cache()
      for _, face in ipairs {lt.cuda, lt.accelerator} do
        assert(face.memory_allocated() == 0 and face.memory_reserved() == 0)
        assert(face.max_memory_allocated() == 0 and face.max_memory_reserved() == 0)
        assert(not pcall(face.memory_allocated, "cuda:0"))
      end
      print(pcall(lt.cuda.current_device))
      lt.backends.cuda.matmul.allow_tf32 = true
      print(lt.backends.cuda.matmul.allow_tf32)]],
      "-u LUTRA_EMULATE CUDA_VISIBLE_DEVICES=")
    assert.equal(0, result.status, result.err)
    local lines = {}
    for line in result.out:gsub("\nhint: [^\n]*",
      ""):gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.is_truthy(lines[1]:find('pin_memory: expected an available device, got "cuda"', 1,
      true), lines[1])
    assert.equal("false\tfalse\tcpu", lines[2])
    assert.equal("nil\t0", lines[3])
    assert.is_truthy(lines[4]:find('cuda.current_device: expected an available device, got "cuda"',
      1, true), lines[4])
    assert.equal("true", lines[5])
  end)
end)

describe("lt.mps", function()
  it("says what it needs", function()
    local mps = lt.mps
    assert.is_false(mps.is_available())
    assert.is_false(mps.is_built())
    assert.equal(0, mps.device_count())
    for _, name in ipairs {"synchronize", "empty_cache", "recommended_max_memory", "Event",
      "unsupported_ops"} do
      fails({"mps." .. name, 'expected an available device, got "mps"',
        "hint: lutra --emulate mps emulates a GPU of Apple"}, mps[name])
    end
    fails({"mps.compile_shader: ", "hint: lutra --emulate mps"}, mps.compile_shader, "kernel")
    fails({"mps.profiler.start: ", "hint: lutra --emulate mps"}, mps.profiler.start)
    assert.equal(0, mps.current_allocated_memory() + mps.driver_allocated_memory())
    fails('expected an available device, got "mps"', mps.set_per_process_memory_fraction, 0.5)
    mps.manual_seed(3)
    local state = mps.get_rng_state()
    local a = lt.rand(3)
    mps.set_rng_state(state)
    assert.is_true(lt.equal(a, lt.rand(3)))
    fails("an integer", mps.manual_seed, "x")
    fails("set_rng_state", mps.set_rng_state, "x")
  end)
end)

describe("lt.backends", function()
  it("names the device that computes", function()
    local backends = lt.backends
    assert.is_true(backends.cuda.is_built())
    assert.is_true(backends.cuda.is_available())
    assert.is_false(backends.mps.is_built())
    assert.is_truthy(backends.cpu.capability():match "^[%u%d]+$")
    assert.equal(backends.cpu.capability(), backends.cpu.get_cpu_capability())
    assert.equal(backends.openblas.is_available(), backends.openblas.info() ~= nil)
    assert.equal("boolean", type(backends.openmp.is_available()))
  end)

  it("has switches", function()
    local matmul = lt.backends.cuda.matmul
    assert.is_false(matmul.allow_tf32)
    matmul.allow_tf32 = true
    assert.is_true(matmul.allow_tf32)
    matmul.allow_tf32 = false
    assert.is_false(matmul.allow_tf32)
    local names = {}
    for name, value in pairs(matmul) do names[name] = value end
    assert.same({allow_tf32 = false}, names)
    fails("expected a boolean, got 1", function() matmul.allow_tf32 = 1 end)
    fails("no switch", function() matmul.allow_tf23 = true end)
    assert.is_nil(matmul.allow_tf23)
  end)
end)

describe("modules", function()
  local function mixed()
    local net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    net[1]:cuda()
    return net
  end

  it("say where they are", function()
    local net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    assert.equal("cpu", net:device())
    assert.is_true(rawequal(net, net:cuda()))
    assert.equal("cuda:0", net:device())
    assert.equal("cuda:0", net:cuda(0):device())
    assert.equal("cpu", net:cpu():device())
    assert.is_nil(nn.ReLU():device())
    assert.same({}, nn.ReLU():devices())
    fails({"device: cannot name one device of Sequential", '"1.weight" is on "cuda:0"',
      '"3.weight" is on "cpu"',
      "devices()"}, function() mixed():device() end)
    assert.same({"cuda:0", "cpu"}, mixed():devices())
    fails('expected an available device, got "mps"', function() net:mps() end)
    fails('got "cpu"', function() net:cuda "cpu" end)
    fails("cuda:9", function() net:cuda(9) end)
    fails("a device", function() net:cuda(print) end)
  end)

  it("compute the same there", function()
    lt.manual_seed(1)
    local net, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), lt.randn(5, 3)
    local y = net(x)
    y:sum():backward()
    local grads = {}
    for p in net:parameters() do grads[#grads + 1] = p.grad end
    net:cuda()
    for p in net:parameters() do assert.equal("cuda:0", p.grad.device) end
    net:zero_grad()
    local there = net(x:cuda())
    support.close(y, there:cpu(), 1e-5)
    there:sum():backward()
    local i = 0
    for p in net:parameters() do
      i = i + 1
      support.close(grads[i], p.grad:cpu(), 1e-5)
    end
  end)

  it("get memory", function()
    local net = lt.with_device("meta", nn.Linear, 3, 2)
    fails({'cannot copy "weight" of Linear from "meta": it has no data', "to_empty",
      "assign = true"}, function()
      net:to "cuda"
    end)
    fails('from "meta"', function() net:cpu() end)
    assert.equal("meta", net:device())
    local weight = net.weight
    assert.is_true(rawequal(net, net:to_empty "cuda"))
    assert.same({"cuda:0", "cuda:0", true}, {net:device(), weight.device, weight.requires_grad})
    assert.equal("cpu", net:to_empty {device = "cpu"}:device())
    assert.equal("cuda:0", net:to_empty(0):device())
    fails("expected a device such as \"cpu\" for argument 'device', got no value",
      function() net:to_empty() end)
    fails("nonsense", function() net:to_empty "nonsense" end)
    local outer = nn.Sequential(net)
    outer:to_empty{device = "cpu", recurse = false}
    assert.equal("cuda:0", net:device())
  end)

  it("take the given tensors", function()
    local source, net = nn.Linear(3, 2):cuda(), lt.with_device("meta", nn.Linear, 3, 2)
    fails("assign = true", function() net:load_state_dict(source:state_dict()) end)
    net:load_state_dict(source:state_dict(), {assign = true})
    assert.equal("cuda:0", net:device())
    assert.is_true(net.weight:shares_storage(source.weight))
    assert.is_true(net.weight.requires_grad)
  end)

  it("can skip their initialisation", function()
    assert.equal("cuda:0", nn.Linear(3, 2, {device = 0}):device())
    assert.equal("cuda:0", nn.Embedding(3, 2, {device = "cuda"}):device())
    assert.equal("cuda:0", nn.LayerNorm(3, {device = lt.zeros{1, device = "cuda"}}):device())
    local device = nn.skip_init(nn.Linear, 3, 2, {device = "cuda", bias = false})
    assert.equal("cuda:0", device:device())
    assert.is_nil(device.bias)
    assert.equal("{2, 3}", tostring(device.weight.shape))
    assert.equal("cpu", nn.skip_init(nn.Linear, 3, 2):device())
    assert.equal("cpu", lt.get_default_device())
    assert.equal(rawequal(nn.skip_init, nn.utils.skip_init), true)
    fails("a class of modules", nn.skip_init, 3)
    fails("nonsense", nn.skip_init, nn.Linear, 3, 2, {device = "nonsense"})
  end)

  it("are named by errors", function()
    local net, x = mixed(), lt.ones(2, 3)
    fails({"different devices", 'net[1].weight is on "cuda:0"'}, function() net(x) end)
    fails({"different devices", 'net[3].weight is on "cpu"'}, function() net(x:cuda()) end)
    local model = {layers = net}
    fails('inner.layers[3].weight is on "cpu"', function()
      local inner = model
      net = nil
      return inner.layers(x:cuda()), model
    end)
    net = mixed()
    local function run(it) return (it(x)) end
    fails('it[1].weight is on "cuda:0"', run, net)
    local message = fails('add: cannot use tensors on different devices: self is on "cuda:0", x is '
      .. 'on "cpu"\nhint: x:to("cuda:0")', function() return x:cuda() + x end)
    fails('hint: x:to("cuda:0")', function() return x + x:cuda() end) -- not to the CPU
    fails('hint: self:to("meta")', function() return x:cuda() + x:to "meta" end)
    fails('add: cannot use tensors on different devices: self is on "cuda:0", other is on '
      .. '"cpu"\nhint: other:to("cuda:0")', function() return x:cuda() + lt.ones(3) end)
    assert.is_truthy(message:find("{2, 3}", 1, true))
  end)

  it("that were left on meta are named too", function()
    local net = nn.Sequential(nn.Linear(3, 4), lt.with_device("meta", nn.Linear, 4, 2))
    fails({"net.2.weight is on meta", "m:to_empty(device)"}, function() net(lt.ones(2, 3)) end)
    fails({"2.weight", "to_empty"}, function() net:cuda() end)
    fails({"no data"}, function() lt.with_device("meta", lt.zeros, 3):cpu() end)
  end)
end)

describe("what goes wrong", function()
  it("with tensors that were freed is said", function()
    local x, y = lt.ones{3, 4, device = "cuda"}, lt.ones{3, 4, device = "cuda"}
    x:free()
    for _, f in ipairs {function() return x.device end, function() return x + 1 end,
      function() return y + x end, function() return x:cpu() end, function() y:copy_(x) end,
      function() return lt.zeros{2, device = x} end} do
      fails("was freed (x:free())", f)
    end
    assert.equal(12, y:sum():item())
  end)

  it("in a graph over two devices is nothing", function()
    if not two then return pending "one device" end
    local a = lt.ones{3, device = "cuda:0", requires_grad = true}
    local b = lt.full({3}, 2.0, {device = "cuda:1", requires_grad = true})
    local loss = ((a * 2):to "cuda:1" * b):sum()
    loss:backward()
    assert.same({"cuda:0", "cuda:1"}, {a.grad.device, b.grad.device})
    assert.same({4, 4, 4}, a.grad:cpu():totable())
    assert.same({2, 2, 2}, b.grad:cpu():totable())
    -- 4 and 2 three times each: the norm is the root of 60.
    local norm = nn.utils.clip_grad_norm_({a, b}, math.sqrt(60) / 2)
    assert.is_true(math.abs(norm:item() - math.sqrt(60)) < 1e-5)
    support.close(lt.full({3}, 2.0), a.grad:cpu(), 1e-4)
    support.close(lt.full({3}, 1.0), b.grad:cpu(), 1e-4)
    fails("different devices", function() return a * b end)
    local net = nn.Linear(3, 2):cuda()
    net.bias:set_data(net.bias:detach():to "cuda:1")
    fails('cannot use tensors on different devices: input is on "cuda:0", bias is on "cuda:1"',
      function()
      return lt.no_grad(net, lt.ones{1, 3, device = "cuda"})
    end)
  end)

  it("when memory runs out, forward or backward, leaves a program that can continue", function()
    local result = devices.script([[local lt = require "lutra"
      local w = lt.ones{10 << 20, device = "cuda", requires_grad = true} -- 40 of 256 MiB
      local function fill()
        local held = {}
        local ok, message = pcall(function()
          for i = 1, 1000 do held[i] = lt.empty{1 << 20, device = "cuda"} end
        end)
        assert(not ok and message:find('empty: out of memory on "cuda:0"', 1, true), message)
        return held
      end
      do
        local loss = (w * w * w):sum()
        local held = fill()
        local ok, message = pcall(loss.backward, loss)
        assert(not ok and message:find("backward: out of memory", 1, true), message)
        assert(w.grad == nil and #held > 0)
        ok, message = pcall(function() return w + 1 end)
        assert(not ok and message:find("add: out of memory", 1, true), message)
      end
      local stats = lt.cuda.memory_stats()
      assert(stats.num_ooms >= 3 and stats.num_alloc_retries >= 1)
      collectgarbage()
      local loss = (w * 3):sum()
      loss:backward()
      assert(w.grad:eq(3):all():item())]], "LUTRA_EMULATE=cuda:1,memory=256MiB")
    assert.equal(0, result.status, result.err)
  end)

  it("is not the collector's pace: 100,000 temporaries of 1 MB in 256 MiB", function()
    local result = devices.script([[local lt = require "lutra"
      local x = lt.ones{1 << 18, device = "cuda"}
      local quick = os.getenv "LUTRA_TEST_DEBUG" -- sanitizers are slow: some of the work is enough
      for i = 1, 100000 do
        local _ = quick and i % 20 > 0 and lt.empty{1 << 18, device = "cuda"} or x:clone()
      end
      local stats = lt.cuda.memory_stats()
      assert(stats["allocated_bytes.all.allocated"] == 100001 << 20)
      assert(stats.num_ooms == 0 and stats["allocated_bytes.all.peak"] <= 200 << 20)]],
      "LUTRA_EMULATE=cuda:1,memory=256MiB")
    assert.equal(0, result.status, result.err)
  end)

  it("when Ctrl-C comes while work is queued is an error, once the work is done", function()
    local result = devices.script [[local lt = require "lutra"
      local x = lt.ones{1 << 18, device = "cuda"}
      local stat <close> = assert(io.open "/proc/self/stat")
      os.execute(("(sleep 0.2; kill -INT %s) &"):format(stat:read "n"))
      local ok, message = pcall(function()
        while true do
          for _ = 1, 100 do x:add_(1) end
          lt.cuda.synchronize()
        end
      end)
      assert(not ok and message:find("interrupted", 1, true), message)
      lt.cuda.synchronize()
      print(x:min():item() == x:max():item())]]
    assert.same({"true\n", 0}, {result.out, result.status}, result.err)
  end)
end)
