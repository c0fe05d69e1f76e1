-- Examples of lt.mps: Apple's GPU.
local lt = require "lutra"

-- Whether there is one
print(lt.mps.is_available(), lt.mps.is_built(), lt.mps.device_count())

-- Random numbers: one generator for all devices
lt.mps.manual_seed(1)
lt.mps.set_rng_state(lt.mps.get_rng_state())

-- Work and memory
if lt.mps.is_available() then
  lt.mps.synchronize()
  print(lt.mps.current_allocated_memory(), lt.mps.driver_allocated_memory())
  print(lt.mps.recommended_max_memory(), #lt.mps.unsupported_ops())
  lt.mps.set_per_process_memory_fraction(0.5)
  lt.mps.Event()
  lt.mps.empty_cache()
end
