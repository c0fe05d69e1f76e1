-- Memory of a card: allocated, reserved, and what clearing the cache does.
--
--   lutra [--emulate cuda:2] examples/placement/14_memory.lua
--
-- Asking the driver for memory is slow. So Lutra keeps what a tensor gives back, for the next
-- one. "Allocated" is what tensors hold now; "reserved" is that and the cache. A tool of the
-- system shows the reserved memory: it looks full although nothing holds it.
--
-- test:

local lt = require "lutra"
local accelerator = lt.accelerator

-- On every device a tensor takes its elements times their size.
local mebibyte = lt.zeros(256, 1024) -- of float32: 4 bytes each
assert(mebibyte:numel() * mebibyte:element_size() == 2^20)

if not accelerator.is_available() then
  print "skipped: the CPU's memory is the system's business; a card's is counted (--emulate cuda:2)"
  print "ok: 256 * 1024 numbers of 4 bytes are a MiB, on every device"
  return
end

-- PyTorch: torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), in bytes. lt.cuda has them,
-- too; those of lt.accelerator work for every kind of card.
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

-- PyTorch: del large. A tensor is gone when nothing names it and Lua's collector has been there.
large = nil -- luacheck: ignore
collectgarbage()
local held, cached = show "nothing names the large one"
assert(held - nothing == 4 * small:numel(), "its memory is free again")
assert(cached == with_large, "but it is kept for the next one")

-- The next tensor of this size takes it from the cache: the driver is not asked.
local asked = accelerator.memory_stats(device).num_device_alloc
local again = lt.zeros{4096, 2048, device = device}
assert(show "another of that size" == most)
assert(accelerator.memory_stats(device).num_device_alloc == asked)
again:free() -- at once, without the collector: for large tensors

-- PyTorch: torch.cuda.empty_cache(). It gives back what no tensor holds, and nothing else. Not for
-- training loops: the next tensor would have to ask the driver again.
accelerator.empty_cache()
local live, left = show "freed, cache emptied"
assert(live == held and left <= cached - 32 * 2^20 and left >= live)

-- The most that was ever needed, and a table of everything.
assert(accelerator.max_memory_allocated(device) == most)
accelerator.reset_peak_memory_stats(device)
assert(accelerator.max_memory_allocated(device) == live)
print()
print(accelerator.memory_summary(device, true))

print "ok: free memory is kept for the next tensor; empty_cache is for guests, not for loops"
