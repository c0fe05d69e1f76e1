--- Fourier transforms on CUDA by the emulated cuFFT: layouts of dims, inputs that stay, plans and
-- their cache, streams, and the CPU where cuFFT is missing or refuses a plan. Each test runs the
-- program, since the library is loaded once for each process.
local support = require "program_support"
local devices = require "device_support"
local test = devices.emulated_it(_ENV)

local prelude = [==[
local lt = require "lutra"
local ops = require "lutra.core"._ops
lt.manual_seed(3)
function near(a, b, limit, what)
  assert(a.dtype == b.dtype and a.device == b.device, what)
  local difference = (a - b):abs():max():item()
  assert(difference <= limit, ("%s: %g"):format(what, difference))
end
function complex(dtype, ...)
  return lt.complex(lt.randn({...}, {dtype = dtype}), lt.randn({...}, {dtype = dtype}))
end
function copies(f, ...)
  local count = 0
  for _, e in ipairs(lt.placement.trace(f, ...).events) do
    count = count + (e.kind == "copy" and 1 or 0)
  end
  return count
end
]==]

-- The script's asserts hold, and it comes to its end. `environment` is a shell text of assignments,
-- `emulated` the value of LUTRA_EMULATE.
local function passes(script, environment, emulated)
  local path = support.file(prelude .. script .. "\nprint 'done'")
  local result = support.shell(("env -u CUDA_VISIBLE_DEVICES -u CUDA_LAUNCH_BLOCKING " ..
    "LUTRA_EMULATE=%s %s %s %s"):format(emulated or "cuda:2", environment or "",
    support.quote(support.program), support.quote(path)))
  os.remove(path)
  assert.equal("", result.err)
  assert.equal("done\n", result.out)
end

local transforms = [==[
for dtype, limit in pairs {float32 = 2e-5, float64 = 1e-13} do
  local x = complex(dtype, 3, 4, 1, 5, 2)
  local y = x:to "cuda"
  local before = y:clone()
  for _, dims in ipairs {{}, {1}, {2}, {4}, {5}, {-1}, {1, 2}, {4, 5}, {1, 4}, {2, 4}, {2, 5}, {3},
    {1, 2, 4}, {1, 2, 4, 5}, {1, 2, 3, 4, 5}, {5, 1, 4, 2}} do
    local what = dtype .. " " .. table.concat(dims, " ")
    for _, inverse in ipairs {false, true} do
      near(ops._fft_c2c(x, dims, inverse, 0.25),
        ops._fft_c2c(y, dims, inverse, 0.25):cpu(), limit, what)
    end
    near(ops._fft_c2c(x:permute(5, 3, 1, 4, 2), dims, true),
      ops._fft_c2c(y:permute(5, 3, 1, 4, 2), dims, true):cpu(), limit, "strided " .. what)
  end
  for dim = 1, 5 do
    local n = x:size(dim)
    near(lt.fft.rfft(x.real, n, dim), lt.fft.rfft(y.real, n, dim):cpu(), limit, "rfft " .. dim)
    for _, m in ipairs {2 * n - 2, 2 * n - 1} do
      if m > 0 then -- imaginary parts of the first and the last number are ignored
        near(lt.fft.irfft(x, m, dim), lt.fft.irfft(y, m, dim):cpu(), limit, "irfft " .. dim)
      end
    end
  end
  assert(y:eq(before):all():item(), "the input has changed")
end
]==]

describe("Fourier transforms on CUDA", function()
  test("transform any dims of any layout, and keep their input", function()
    passes(transforms)
  end)
  test("use memory in the order of their stream", function()
    passes(transforms, "LUTRA_EMULATE_STRICT=1 LUTRA_EMULATE_POISON=1")
  end)
  test("make no copies", function()
    passes [[
      local x = lt.randn(4, 8, {device = "cuda"})
      assert(copies(lt.fft.rfft, x) == 0)
      assert(copies(lt.fft.fft, x:to "complex64") == 0)]]
  end)
  test("take real numbers that are not aligned to complex ones", function()
    passes [[
      local x = lt.randn(17)
      local y = x:to "cuda"
      near(lt.fft.rfft(x:narrow(1, 2, 16)), lt.fft.rfft(y:narrow(1, 2, 16)):cpu(), 1e-5, "rfft")
      local out = lt.zeros(17, {device = "cuda"})
      local half = lt.fft.rfft(y:narrow(1, 1, 16))
      ops._fft_c2r(half, 1, 16, 1 / 16, {out = out:narrow(1, 2, 16)})
      near(x:narrow(1, 1, 16), out:narrow(1, 2, 16):cpu(), 1e-5, "irfft")]]
  end)
  test("serve several streams and devices at once", function()
    passes [[
      local x = complex("float32", 8, 300)
      local want, results = lt.fft.fft(x), {}
      for i = 1, 4 do
        local device = "cuda:" .. i % 2
        local stream = lt.cuda.Stream(device)
        local y = x:to(device)
        lt.cuda.synchronize(device)
        lt.cuda.with_stream(stream, function() results[i] = lt.fft.fft(y) end)
      end
      lt.cuda.synchronize "cuda:0"
      lt.cuda.synchronize "cuda:1"
      for i = 1, 4 do near(want, results[i]:cpu(), 1e-4, "stream " .. i) end]]
  end)
  test("of more sizes than the cache of plans holds are correct", function()
    passes [[
      for _ = 1, 2 do
        for n = 2, 80 do
          local x = complex("float32", n)
          near(lt.fft.fft(x), lt.fft.fft(x:to "cuda"):cpu(), 1e-4, "size " .. n)
        end
      end]]
  end)
  test("raise the errors of cuFFT", function()
    passes([[
      local x = lt.ones{4, 4, device = "cuda"}
      local ok, message = pcall(lt.fft.rfft, x)
      assert(not ok and message:find("cannot run the transform: cuFFT error 6", 1, true), message)
      assert(lt.fft.rfft(x):abs():sum():item() == 16)]], "LUTRA_EMULATE_FAULT=fft@1")
  end)
end)

describe("Fourier transforms on the CPU for CUDA", function()
  local on_host = [[
    local x = lt.randn(4, 8)
    local y = x:to "cuda"
    assert(copies(lt.fft.rfft, y) == 2)
    near(lt.fft.rfft(x), lt.fft.rfft(y):cpu(), 1e-5, "rfft")
    local z = lt.fft.rfft(x)
    near(lt.fft.irfft(z), lt.fft.irfft(z:to "cuda"):cpu(), 1e-6, "irfft")
    near(lt.fft.fft2(z), lt.fft.fft2(z:to "cuda"):cpu(), 1e-4, "fft2")]]

  test("run without cuFFT, with two copies", function()
    passes(on_host, nil, "cuda:2,libraries=off")
  end)
  test("run where cuFFT refuses a plan, which is remembered", function()
    passes(on_host, -- a second try follows after memory was freed
      "LUTRA_EMULATE_FAULT=plan@1,plan@2,plan@3,plan@4")
  end)
end)
