-- Every call of Metal fails once: the nth buffer, library, pipeline, command buffer, queue, event.
-- A training program gets a Lua error, or does not notice, and continues: no crash, no hang, no
-- grad half set. A command buffer that fails loses the device, which every later call reports, and
-- the CPU works on.

local devices = require "device_support"
if devices.elsewhere("mps/mps_faults", _ENV, {emulate = {"mps"}}) then return end

local it = devices.faulty_it(_ENV)

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
  local ready = try(function() return net:to "mps" end) or try(function() return net:to "mps" end)
  local opt = ready and optim.AdamW(net:parameters(), {lr = 0.01})
  local side = ready and try(lt.accelerator.Stream, "mps")
  for _ = 1, ready and 4 or 0 do
    try(function()
      local x = X:pin_memory():to{device = "mps", non_blocking = true}
      local y = Y:to "mps"
      opt:zero_grad()
      local loss = F.cross_entropy(net(x), y)
      if side then
        side:wait_stream(lt.accelerator.current_stream "mps")
        lt.accelerator.with_stream(side, function() return (x * 2):sum() end)
      end
      loss:backward()
      for name, p in net:named_parameters() do
        assert(p.grad and p.grad.shape == p.shape, name .. " has no grad after backward")
      end
      opt:step()
      local e = lt.mps.Event()
      e:record()
      e:synchronize()
      assert(loss:to{device = "cpu", non_blocking = true}:item() == loss:item())
      steps = steps + 1
    end)
  end
  pcall(lt.mps.synchronize)
  collectgarbage()
  collectgarbage()
  assert(lt.ones(3):sum():item() == 3) -- the CPU does not mind
  io.write(steps, " steps\n", table.concat(errors, "\n"), "\n")
]]

-- The program's steps and its errors.
local function train(fault, environment)
  local result = devices.script(TRAINING, ("LUTRA_EMULATE_FAULT=%s %s"):format(fault,
    environment or ""))
  assert.equal(0, result.status, fault .. ": status " .. tostring(result.status) .. "\n"
    .. result.out .. result.err)
  assert.equal("", result.err, fault)
  local steps, errors = result.out:match "^(%d+) steps\n(.*)$"
  assert.is_string(steps, fault .. ": " .. result.out .. result.err)
  for line in errors:gmatch "[^\n]+" do
    assert.is_falsy(line:find("has no grad", 1, true), fault .. ": " .. line)
  end
  return tonumber(steps), errors
end

describe("a training program on mps", function()
  for _, storage in ipairs {"shared", "private"} do
    local set = "LUTRA_MPS_STORAGE=" .. storage

    it("learns where nothing fails, memory " .. storage, function()
      local steps, errors = train("", set)
      assert.equal(4, steps, errors)
      assert.equal("\n", errors)
    end)

    -- One failure from which a program recovers: at most that step, or the start, is lost.
    for _, kind in ipairs {"buffer", "library", "pipeline", "queue", "commands", "event"} do
      it("survives a failure of: " .. kind .. ", memory " .. storage, function()
        for _, n in ipairs {1, 2, 3, 5, 9, 20} do
          local fault = kind .. "@" .. n
          local steps, errors = train(fault, set)
          assert.is_true(steps >= 3, fault .. ": " .. steps .. " steps\n" .. errors)
        end
      end)
    end
  end

  -- Memory that is out once: the cache is released, and the launch is tried again.
  it("does not notice that a pipeline or a command buffer was out of memory", function()
    for _, fault in ipairs {"pipeline@1", "pipeline@7", "commands@1", "commands@4"} do
      local steps, errors = train(fault)
      assert.equal(4, steps, fault .. "\n" .. errors)
      assert.equal("\n", errors, fault)
    end
  end)

  -- Failures after which the device is lost: what is said, each time, is that.
  for _, kind in ipairs {"commit", "lost", "oom", "illegal", "wait"} do
    it("survives the loss of its device: " .. kind, function()
      local any = false
      for _, n in ipairs {1, 2, 4, 8, 20, 50} do
        local fault = kind .. "@" .. n
        local steps, errors = train(fault, kind == "wait" and "LUTRA_EMULATE_DELAY=2000")
        if steps < 3 then
          any = true
          assert.is_truthy(errors:find('cannot use "mps" anymore', 1, true),
            fault .. "\n" .. errors)
          assert.is_truthy(errors:find("until the program restarts", 1, true),
            fault .. "\n" .. errors)
        end
      end
      assert.is_true(any, "no failure of " .. kind .. " was injected")
    end)
  end
end)

describe("a device that is lost", function()
  local LOST = [[
    local lt = require "lutra"
    local x = lt.zeros{4, device = "mps"}
    local function try(f)
      local ok, message = pcall(f)
      print(ok, ok and "" or (tostring(message):gsub("\n.*", "")))
    end
    try(function()
      x:exp_()
      lt.mps.synchronize()
    end)
    try(function() return x + 1 end)
    try(function() return x:cpu() end)
    x = nil
    collectgarbage()
    print(lt.ones(3):sum():item())
  ]]
  local function lines_of(environment)
    local r = devices.script(LOST, environment)
    assert.equal(0, r.status, r.out .. r.err)
    local lines = {}
    for line in r.out:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal(4, #lines, r.out .. r.err)
    assert.equal("3.0", lines[4])
    return lines
  end

  it("by a page fault says so at every later call, and the CPU works on", function()
    local lines = lines_of "LUTRA_EMULATE_FAULT=illegal@2"
    for i = 1, 3 do
      assert.matches('^false\t.*cannot use "mps" anymore, its memory is lost', lines[i])
      assert.matches("page fault", lines[i])
      assert.matches("one of the kernels of the command buffer caused it: .*%(of exp_%)", lines[i])
    end
  end)

  it("names the kernel where the host blocks for each", function()
    local lines = lines_of "LUTRA_EMULATE_FAULT=illegal@2 LUTRA_MPS_BLOCKING=1"
    assert.matches("page fault.* in kernel [%w_]+ %(of exp_%)$", lines[1])
  end)
end)

describe("100000 temporaries of 1 MB in 256 MiB", function()
  it("reuse the memory of a few", function()
    local r = devices.script([[
      local lt = require "lutra"
      for i = 1, 100000 do
        local x = lt.empty{262144, device = "mps"}
        x[{{1, 16}}]:fill_(i)
        if i == 100000 then print(x[16]:item()) end
      end
      local used = lt.mps.driver_allocated_memory()
      print(used <= 256 << 20, lt.mps.current_allocated_memory() <= used)
    ]])
    assert.equal("100000.0\ntrue\ttrue\n", r.out, r.err)
  end)
end)
