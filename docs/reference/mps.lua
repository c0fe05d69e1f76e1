-- Examples of lt.mps: Apple's GPU.
local lt = require "lutra"

-- Whether there is one
print(lt.mps.is_available(), lt.mps.is_built(), lt.mps.device_count())

-- Random numbers: one generator for all devices
lt.mps.manual_seed(1)
lt.mps.set_rng_state(lt.mps.get_rng_state())
print(math.type(lt.mps.seed()))  --> integer
lt.manual_seed(1)

-- Memory that tensors hold, and that is reserved
print(lt.mps.current_allocated_memory() <= lt.mps.driver_allocated_memory())  --> true

-- Captures of Metal's commands are made with Xcode
print(lt.mps.profiler.is_metal_capture_enabled(), lt.mps.profiler.is_capturing_metal())  --> false	false

-- Without a GPU of Apple, emulate one: lutra --emulate mps
if not lt.mps.is_available() then return end

-- Work and memory
local x = lt.ones{1000, device = "mps"}
lt.mps.synchronize()
print(lt.mps.recommended_max_memory() > 0)  --> true
lt.mps.set_per_process_memory_fraction(0.5)
lt.mps.Event()
lt.mps.empty_cache()

-- Ops without a Metal kernel
print(#lt.mps.unsupported_ops())

-- A kernel from source, in [==[ ]==], because it contains ]]
local lib = lt.mps.compile_shader [==[
  #include <metal_stdlib>
  using namespace metal;
  kernel void scale(device float *x, constant float &a, uint i [[thread_position_in_grid]]) {
    x[i] = a * x[i];
  }]==]
lib.scale(x, 2)
print(x:sum():item())  --> 2000.0

-- Signposts for Apple's Instruments
lt.mps.profiler.start "interval"
x = x:exp()
lt.mps.profiler.stop()
print(lt.mps.profiler.profile(function() return x.dtype end))  --> float32
