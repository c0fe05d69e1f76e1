-- Every call of the driver fails once: the nth allocation, launch, copy, event, stream, product...
-- A training program gets a Lua error, or does not notice, and continues: no crash, no hang, no
-- grad half set. Errors after which the device is lost leave the CPU working. Emulated devices fail
-- where the test asks for it; a GPU is lost by a kernel that writes where there is no memory, in a
-- process of its own.

local devices = require "device_support"
if devices.elsewhere("cuda/cuda_faults", _ENV) then return end

-- Trains for a few steps, whatever happens in one of them.
local TRAINING = [[
  local lt = require "lutra"
  local nn, F, optim = lt.nn, lt.F, lt.optim
  lt.manual_seed(1)
  local errors, steps = {}, 0
  local function try(f, ...)
    local ok, message = pcall(f, ...)
    if not ok then errors[#errors + 1] = tostring(message) end
    return ok and message
  end
  local X, Y = lt.randn(64, 8), lt.randint(1, 4, {64})
  local net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
  local first = net:parameters()()
  local ready = try(function() return net:to "cuda" end) or try(function() return net:to "cuda" end)
  local opt = ready and optim.AdamW(net:parameters(), {lr = 0.01})
  local side = ready and try(lt.cuda.Stream)
  for _ = 1, ready and 4 or 0 do
    try(function()
      local x = X:pin_memory():to{device = "cuda", non_blocking = true}
      local y = Y:to "cuda"
      opt:zero_grad()
      local loss = F.cross_entropy(net(x), y)
      if side then lt.cuda.with_stream(side, function() return (x * 2):sum() end) end
      loss:backward()
      for name, p in net:named_parameters() do
        assert(p.grad and p.grad.shape == p.shape, name .. " has no grad after backward")
      end
      opt:step()
      local e = lt.cuda.Event()
      e:record()
      e:synchronize()
      assert(loss:to{device = "cpu", non_blocking = true}:item() == loss:item())
      steps = steps + 1
    end)
  end
  pcall(lt.cuda.synchronize)
  collectgarbage()
  collectgarbage()
  assert(lt.ones(3):sum():item() == 3) -- the CPU does not mind
  io.write(steps, " steps\n", table.concat(errors, "\n"), "\n")
]]

-- The program's steps and its errors.
local function train(fault)
  local result = devices.script(TRAINING, "LUTRA_EMULATE_FAULT=" .. fault)
  assert.equal(0, result.status, fault .. ": status " .. tostring(result.status) .. "\n"
    .. result.out .. result.err)
  local steps, errors = result.out:match "^(%d+) steps\n(.*)$"
  assert.is_string(steps, fault .. ": " .. result.out .. result.err)
  for line in errors:gmatch "[^\n]+" do
    assert.is_falsy(line:find("has no grad", 1, true), fault .. ": " .. line)
  end
  return tonumber(steps), errors
end

local real_it, it = it, devices.faulty_it(_ENV)

describe("a training program", function()
  it("learns where nothing fails", function()
    local steps, errors = train ""
    assert.equal(4, steps, errors)
    assert.equal("\n", errors)
  end)

  -- One failure from which a program recovers: at most that step, or the start, is lost.
  for _, kind in ipairs {"oom", "event", "stream", "host", "blas"} do
    it("survives a failure of: " .. kind, function()
      for _, n in ipairs {1, 2, 3, 5} do
        local fault = kind .. "@" .. n
        local steps, errors = train(fault)
        assert.is_true(steps >= 3, fault .. ": " .. steps .. " steps\n" .. errors)
      end
    end)
  end

  -- A kernel's code is put on the device at its first launch, for which there may be no memory.
  it("is not affected by a launch that failed because memory ran out", function()
    for _, n in ipairs {1, 2, 3, 5, 20} do
      local fault = "load@" .. n
      local steps, errors = train(fault)
      assert.equal(4, steps, fault .. "\n" .. errors)
      assert.equal("\n", errors, fault)
    end
  end)

  -- Failures after which the device may be lost: what is said, each time, is that.
  for _, kind in ipairs {"launch", "illegal", "copy", "sync"} do
    it("survives the loss of its device: " .. kind, function()
      for _, n in ipairs {1, 4, 20, 50} do
        local fault = kind .. "@" .. n
        local steps, errors = train(fault)
        if steps < 3 then
          assert.is_truthy(errors:find "CUDA error %d+", fault .. "\n" .. errors)
          assert.is_truthy(errors:find("until the program restarts", 1, true),
            fault .. "\n" .. errors)
        end
      end
    end)
  end
end)

describe("a launch that fails because memory runs out", function()
  -- The second try follows the release of the memory that the cache holds; a second failure is
  -- reported.
  local KEPT = [[
    local lt = require "lutra"
    local x = lt.ones{1000, device = "cuda"}
    lt.zeros{1 << 22, device = "cuda"}:free()
    local before = lt.cuda.memory_stats()
    local ok, message = pcall(function() return %s end)
    local after = lt.cuda.memory_stats()
    print(ok, ok and "" or message)
    print(after.num_alloc_retries - before.num_alloc_retries,
      after["reserved_bytes.all.current"] < before["reserved_bytes.all.current"])
  ]]
  local USER = '(lt.cuda.kernel("__global__ void twice(float *x) { x[threadIdx.x] *= 2; }", '
    .. '"twice")({1, 1000}, x))'
  local function result(code, fault)
    return devices.script(KEPT:format(code), "LUTRA_EMULATE_FAULT=" .. fault)
  end

  -- The ones and the zeros are launches, or copies: the number of the next one is looked for.
  local function first_after(code)
    for n = 1, 10 do
      local r = result(code, "load@" .. n)
      if r.out:find("true\t\n1\ttrue", 1, true) then return n end
    end
  end

  for _, code in ipairs {"x * 2", "x:sort()", USER} do
    it("is tried again when the cache is empty: " .. code:sub(1, 20), function()
      if code == USER and not devices.can_compile() then return pending "needs a C++ compiler" end
      local n = first_after(code)
      assert.is_number(n, "no launch was tried again")
      -- Code from the cache of files is compiled anew before that: four tries.
      local r = result(code, ("load@%d,load@%d,load@%d,load@%d"):format(n, n + 1, n + 2, n + 3))
      assert.matches("^false\t.*CUDA error 2", r.out, r.out .. r.err)
      assert.equal("", r.err)
    end)
  end
end)

describe("a device that is lost", function()
  -- The same on a GPU and on emulated devices.
  local LOST = [[
    local lt = require "lutra"
    local x = lt.zeros{4, device = "cuda"}
    local poke = lt.cuda.kernel(
      "__global__ void poke(float *x, long long by) { x[by] = 1; }", "poke")
    local function try(f)
      local ok, message = pcall(f)
      print(ok, ok and "" or tostring(message):gsub("\n.*", ""))
    end
    try(function()
      poke({1, 1}, x, 1 << 44)
      lt.cuda.synchronize()
    end)
    try(function() return x + 1 end)
    try(function() return x:cpu() end)
    x = nil
    collectgarbage()
    print(lt.ones(3):sum():item())
  ]]

  real_it("by an illegal address says so at every later call, and the CPU works on", function()
    if not devices.can_compile() then return pending "needs a compiler for kernels" end
    local r = devices.script(LOST)
    assert.equal(0, r.status, r.out .. r.err)
    local lines = {}
    for line in r.out:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal(4, #lines, r.out .. r.err)
    for i = 1, 3 do
      assert.matches("^false\t.*CUDA error 7%d%d, ", lines[i])
      assert.matches("until the program restarts", lines[i])
      assert.matches("poke", lines[i])
    end
    assert.equal("3.0", lines[4])
  end)
end)
