-- Several GPUs: each has its own memory.
--
--   lutra [--emulate cuda:2] examples/placement/22_several_gpus.lua
--
-- "cuda:0" and "cuda:1" are two GPUs, each with its own memory and cores. A tensor is on one of
-- them and must be copied before the other can use it. Both run at the same time.
--
-- test:
-- test on cuda:2:
-- test on cuda:2,peer=off:

local lt = require "lutra"
local cuda = lt.cuda

-- Count and list the GPUs. Their numbers count from 0.
local count = cuda.device_count()
print("GPUs: " .. count)
for i = 0, count - 1 do print(("  cuda:%d %s"):format(i, cuda.get_device_name(i))) end
if count < 2 then
  print "skipped: the rest needs two GPUs (lutra --emulate cuda:2)"
  os.exit(true, true)
end

-- PyTorch: x1 = torch.full((3,), 10., device="cuda:1"). A tensor is on the device
-- of the call that created it.
local x0 = lt.ones{3, device = "cuda:0"}
local x1 = lt.full({3}, 10.0, {device = "cuda:1"})
assert(lt.randn{3, 4, device = "cuda:1"}.device == "cuda:1")
assert(x0.device == "cuda:0" and x1.device == "cuda:1")

-- Operands on different devices are an error.
local ok, message = pcall(function() return x0 + x1 end)
print("x0 + x1:\n  " .. message)
assert(not ok and message:find("cuda:0", 1, true) and message:find("cuda:1", 1, true))

-- PyTorch: z = x0 + x1.to("cuda:0"). Copy one of them. The result is on the device of
-- the operands.
local z = x0 + x1:to "cuda:0"
print("x0 + x1:to \"cuda:0\":", z)
assert(z.device == "cuda:0" and lt.equal(z:cpu(), lt.full({3}, 11.0)))
assert(x1.device == "cuda:1") -- the original is not changed

-- "cuda" without a number is the current GPU, at first cuda:0. with_device changes it during one
-- function call, so that a function runs on another GPU without a change.
local function make() return lt.zeros{2, device = "cuda"} end
assert(make().device == "cuda:0")
assert(cuda.with_device(1, make).device == "cuda:1")
assert(make().device == "cuda:0")
-- PyTorch: torch.cuda.set_device(1). set_device changes it until the next call. Programs that use
-- device names with numbers need neither.
cuda.set_device(1)
assert(make().device == "cuda:1" and cuda.current_device() == 1)
cuda.set_device(0)

-- Some GPUs can access each other's memory directly (peer access); otherwise a copy goes through
-- the host's memory. The values are the same, peer access is faster.
local direct = cuda.can_device_access_peer(0, 1)
print(direct and "cuda:0 has peer access to cuda:1"
  or "copies between cuda:0 and cuda:1 go through the host")
local numbers = lt.arange(1, 100000)
local there = numbers:to "cuda:1"
assert(lt.equal(there:to "cuda:0":cpu(), numbers))

-- Memory is counted per device: four million bytes more on cuda:1, none on cuda:0.
local before = {[0] = cuda.memory_allocated(0), cuda.memory_allocated(1)}
local big = lt.zeros{1000, 1000, device = "cuda:1"}
assert(cuda.memory_allocated(0) == before[0])
assert(cuda.memory_allocated(1) - before[1] >= big:numel() * 4)

-- Two devices run at the same time, without threads in your program: an operation is only queued on
-- its device. The loop ends while both may still compute the first product. Only :item() blocks.
local a = {2 * lt.eye{64, device = "cuda:0"}, 2 * lt.eye{64, device = "cuda:1"}}
local sums = {}
local profile = lt.profiler.profile(function()
  for i, m in ipairs(a) do
    local p = m
    for _ = 1, 10 do p = p:mm(m) end
    sums[i] = p:sum()
  end
end, {synchronize = false})
for event in profile:events() do assert(event.kind ~= "wait") end
assert(sums[1]:item() == 64 * 2^11 and sums[2]:item() == 64 * 2^11)

print "ok: a tensor is on one device; copies between devices are explicit"
print "next: 23_data_parallel.lua (one batch on all), 24_pipeline.lua (one model over two)"
