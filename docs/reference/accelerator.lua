-- Examples of lt.accelerator and lt.backends: device-agnostic code.
local lt = require "lutra"

-- Whether there is an accelerator, and which
print(lt.accelerator.is_available(), lt.accelerator.current_accelerator(), lt.accelerator.device_count())

-- What this build contains
print(lt.backends.cuda.is_built(), lt.backends.cuda.is_available())  --> ...
print(lt.backends.mps.is_built(), lt.backends.mps.is_available())    --> ...
print(lt.backends.cpu.capability(), lt.backends.cpu.get_cpu_capability())   --> ...
print(lt.backends.openblas.is_available(), lt.backends.openblas.info())     --> ...
print(lt.backends.fftw.is_available(), lt.backends.fftw.info())             --> ...
print(lt.backends.onednn.is_available(), lt.backends.onednn.info())         --> ...
print(lt.backends.mkldnn.is_available(), lt.backends.mkldnn.info())         --> ...
print(lt.backends.openmp.is_available())  --> true
lt.backends.cudnn.benchmark = true -- accepted without an effect
print(lt.backends.cudnn.is_available(), lt.backends.cudnn.version())        --> false	nil
lt.set_float32_matmul_precision "highest"
print(lt.get_float32_matmul_precision())  --> highest

if not lt.accelerator.is_available() then return end

-- The current device
lt.accelerator.set_device_index(0)
print(lt.accelerator.current_device_index())  --> 0
print(#lt.accelerator.get_device_capability().supported_dtypes > 0)  --> true
local device = lt.best_device()
lt.accelerator.with_device(device, function() return lt.ones{2, device = device} end)

-- Wait for the queued work
lt.accelerator.synchronize()

-- Memory
local x = lt.ones{1000, device = device}
print(lt.accelerator.memory_allocated() > 0, lt.accelerator.memory_reserved() > 0)  --> true	true
lt.accelerator.reset_peak_memory_stats()
print(lt.accelerator.max_memory_allocated() > 0, lt.accelerator.max_memory_reserved() > 0)  --> true	true
print(lt.accelerator.memory_stats()["allocated_bytes.all.current"] > 0)  --> true
print(#lt.accelerator.memory_summary() > 100, #lt.accelerator.memory_snapshot() > 0)  --> true	true

-- Host memory: tensors on the CPU, and the cache of freed ones
local host = lt.ones(100000)
print(lt.accelerator.memory_allocated "cpu" >= host.nbytes)  --> true
lt.accelerator.empty_cache "cpu"

-- Free memory, cached memory, a limit
local free, total = lt.accelerator.get_memory_info()
print(free <= total)  --> true
lt.accelerator.empty_cache()
lt.accelerator.empty_host_cache()
lt.accelerator.set_per_process_memory_fraction(1.0)

-- Streams and events: work on two queues
local stream = lt.accelerator.Stream()
local done = lt.accelerator.Event()
lt.accelerator.with_stream(stream, function()
  x:add_(1)
  done:record()
end)
lt.accelerator.current_stream():wait_event(done)
lt.accelerator.set_stream(lt.accelerator.default_stream())
