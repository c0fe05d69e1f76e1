-- Every call of the driver fails once: the nth allocation, launch, copy, event, stream, product...
-- A training program must meet it as a Lua error, or not notice, and go on: no crash, no hang, no
-- grad half set. Errors after which the device is lost leave the CPU working.

local devices = require "device_support"
if devices.elsewhere("cuda_faults", _ENV) then return end

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

  -- Failures after which the device may be lost: what is said, each time, is that.
  for _, kind in ipairs {"launch", "illegal", "copy", "sync"} do
    it("survives the loss of its device: " .. kind, function()
      for _, n in ipairs {1, 4, 20, 50} do
        local fault = kind .. "@" .. n
        local steps, errors = train(fault)
        if steps < 3 then
          assert.is_truthy(errors:find "CUDA error %d+", fault .. "\n" .. errors)
          assert.is_truthy(errors:find("needs a restart", 1, true), fault .. "\n" .. errors)
        end
      end
    end)
  end
end)
