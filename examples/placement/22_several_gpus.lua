-- Several GPUs: each has a memory of its own.
--
--   lutra [--emulate cuda:2] examples/placement/22_several_gpus.lua
--
-- "cuda:0" and "cuda:1" are two cards, each with its memory and its calculators. A tensor is on one
-- of them, and the other cannot calculate with it before it was copied there. In return the two
-- work at the same time.
--
-- test:
-- test on cuda:2:
-- test on cuda:2,peer=off:

local lt = require "lutra"
local cuda = lt.cuda

-- How many are there, and what are they? They count from 0.
local count = cuda.device_count()
print("GPUs: " .. count)
for i = 0, count - 1 do print(("  cuda:%d %s"):format(i, cuda.get_device_name(i))) end
if count < 2 then
  print "skipped: two are needed from here on. Two to practise on: lutra --emulate cuda:2"
  os.exit(true, true)
end

-- PyTorch: x1 = torch.full((3,), 10., device="cuda:1"). A tensor is on one device, the one that was
-- asked for.
local x0 = lt.ones{3, device = "cuda:0"}
local x1 = lt.full({3}, 10.0, {device = "cuda:1"})
assert(lt.randn{3, 4, device = "cuda:1"}.device == "cuda:1")
assert(x0.device == "cuda:0" and x1.device == "cuda:1")

-- They do not meet by themselves.
local ok, message = pcall(function() return x0 + x1 end)
print("x0 + x1:\n  " .. message)
assert(not ok and message:find("cuda:0", 1, true) and message:find("cuda:1", 1, true))

-- PyTorch: z = x0 + x1.to("cuda:0"). One of them must move. The result is where the two are.
local z = x0 + x1:to "cuda:0"
print("x0 + x1:to \"cuda:0\":", z)
assert(z.device == "cuda:0" and lt.equal(z:cpu(), lt.full({3}, 11.0)))
assert(x1.device == "cuda:1") -- the original stayed: a copy was made

-- A bare "cuda" is the current GPU, at first number 0. with_device changes that for the time of
-- one function call, which is how a function is run on another card without a word in it.
local function make() return lt.zeros{2, device = "cuda"} end
assert(make().device == "cuda:0")
assert(cuda.with_device(1, make).device == "cuda:1")
assert(make().device == "cuda:0")
-- PyTorch: torch.cuda.set_device(1). set_device changes it from now on. Programs that name their
-- devices in full need neither.
cuda.set_device(1)
assert(make().device == "cuda:1" and cuda.current_device() == 1)
cuda.set_device(0)

-- Some cards can read the memory of others over a direct line (peer access); else a copy goes by
-- way of the computer's memory. The values are the same, the direct line is faster.
local direct = cuda.can_device_access_peer(0, 1)
print(direct and "cuda:0 reaches the memory of cuda:1 by itself"
  or "copies between cuda:0 and cuda:1 go by way of the host")
local numbers = lt.arange(1, 100000)
local there = numbers:to "cuda:1"
assert(lt.equal(there:to "cuda:0":cpu(), numbers))

-- Each memory is counted for itself: four million bytes more on cuda:1, none on cuda:0.
local before = {[0] = cuda.memory_allocated(0), cuda.memory_allocated(1)}
local big = lt.zeros{1000, 1000, device = "cuda:1"}
assert(cuda.memory_allocated(0) == before[0])
assert(cuda.memory_allocated(1) - before[1] >= big:numel() * 4)

-- Work on two devices runs at the same time, and takes no threads in your program: an operation
-- only goes into its device's queue. The program gets to the last line of this loop while both
-- may still be at the first product. Only :item() waits.
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

print "ok: a tensor is on one device; what is to meet must be copied, which you write yourself"
print "next: 23_data_parallel.lua (one batch on all), 24_pipeline.lua (one model over two)"
