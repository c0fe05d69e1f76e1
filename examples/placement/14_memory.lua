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

if not accelerator.is_available() then
  -- The CPU's memory is the system's business; only the size of a tensor is known.
  local x = lt.zeros(256, 1024)
  assert(x:numel() * x:element_size() == 2^20)
  print "skipped: there is no card whose memory could be counted (--emulate cuda:2)"
  print "ok: a float32 takes 4 bytes, on every device"
  return
end

local device = lt.best_device()
local function show(when)
  local allocated = accelerator.memory_allocated(device)
  local reserved = accelerator.memory_reserved(device)
  print(("%-28s allocated %6.2f MiB, reserved %6.2f MiB"):format(when, allocated / 2^20,
    reserved / 2^20))
  assert(allocated <= reserved)
  return allocated, reserved
end

local nothing = show "at the start"
local large = lt.zeros{1024, 1024, device = device} -- of float32
local held, with_large = show "with a large tensor"
assert(held - nothing == large:numel() * large:element_size() and with_large >= held)

-- A tensor is gone when nothing names it any more and Lua's collector has been there.
large = nil -- luacheck: ignore
collectgarbage()
local after, cached = show "nothing names it any more"
assert(after == nothing, "the tensor's memory is free again")
assert(cached == with_large, "but it is kept for the next one")

-- The next tensor of this size takes it from the cache: the driver is not asked.
local asked = accelerator.memory_stats(device).num_device_alloc
local again = lt.zeros{1024, 1024, device = device}
assert(accelerator.memory_stats(device).num_device_alloc == asked)

-- empty_cache gives back what no tensor holds - and nothing else.
accelerator.empty_cache()
assert(show "cache emptied, tensor alive" == held)
again:free() -- at once, without the collector: for large tensors
accelerator.empty_cache()
local least, left = show "tensor freed, cache emptied"
assert(least == nothing and left < cached)

-- The most that was ever needed, and a table of everything.
assert(accelerator.max_memory_allocated(device) >= held)
accelerator.reset_peak_memory_stats(device)
assert(accelerator.max_memory_allocated(device) == nothing)
print(accelerator.memory_summary(device, true))

print "ok: free memory is kept for the next tensor; empty_cache is for guests, not for loops"
