-- GPU memory: allocated, reserved, and the cache.
--
--   lutra [--emulate cuda:2] examples/placement/14_memory.lua
--
-- Allocating memory from the driver is slow, so Lutra caches the memory that a tensor frees for
-- later tensors. "Allocated" is the memory of tensors; "reserved" includes the cache. System tools
-- show the reserved memory, which may be large although no tensor uses it.
--
-- test:

local lt = require "lutra"
local accelerator = lt.accelerator

-- The memory of a tensor is the number of its elements times their size.
local mebibyte = lt.zeros(256, 1024) -- of float32: 4 bytes each
assert(mebibyte:numel() * mebibyte:element_size() == 2^20)

if not accelerator.is_available() then
  print "skipped: memory is counted per GPU, not for the CPU (--emulate cuda:2)"
  print "ok: 256 * 1024 elements of 4 bytes are a MiB, on every device"
  return
end

-- PyTorch: torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), in bytes. lt.cuda has them,
-- too; those of lt.accelerator work for every accelerator.
local device = lt.best_device()
local function show(when)
  local allocated = accelerator.memory_allocated(device)
  local reserved = accelerator.memory_reserved(device)
  print(("%-28s allocated %6.2f MiB, reserved %6.2f MiB"):format(when, allocated / 2^20,
    reserved / 2^20))
  assert(allocated <= reserved)
  if lt.cuda.is_available() then
    assert(allocated == lt.cuda.memory_allocated() and reserved == lt.cuda.memory_reserved())
  end
  return allocated, reserved
end

local nothing = show "at the start"
local small = lt.zeros{1024, 1024, device = device} -- of float32: 4 MiB
local large = lt.zeros{4096, 2048, device = device} -- 32 MiB
local most, with_large = show "with two tensors"
assert(most - nothing == 4 * (small:numel() + large:numel()) and with_large >= most)

-- PyTorch: del large. A tensor is freed when nothing refers to it and the garbage collector has
-- run.
large = nil -- luacheck: ignore
collectgarbage()
local held, cached = show "without the large one"
assert(held - nothing == 4 * small:numel(), "its memory is no longer allocated")
assert(cached == with_large, "but it is cached")

-- The next tensor of this size uses the cache: the driver is not called.
local asked = accelerator.memory_stats(device).num_device_alloc
local again = lt.zeros{4096, 2048, device = device}
assert(show "another of that size" == most)
assert(accelerator.memory_stats(device).num_device_alloc == asked)
again:free() -- at once, without the garbage collector: for large tensors

-- PyTorch: torch.cuda.empty_cache(). It returns the cache to the driver. Do not call it in training
-- loops: the next tensor would have to allocate from the driver again.
accelerator.empty_cache()
local live, left = show "freed, cache emptied"
assert(live == held and left <= cached - 32 * 2^20 and left >= live)

-- The peak, and a summary of all statistics.
assert(accelerator.max_memory_allocated(device) == most)
accelerator.reset_peak_memory_stats(device)
assert(accelerator.max_memory_allocated(device) == live)
print()
print(accelerator.memory_summary(device, true))

print "ok: free memory is cached for the next tensor; do not call empty_cache in loops"
