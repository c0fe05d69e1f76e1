-- Examples of lt.cuda. They need a CUDA device: lutra --emulate cuda:2 provides two.
local lt = require "lutra"

-- Which devices there are
print(lt.cuda.is_available(), lt.cuda.is_built(), lt.cuda.device_count())
for i = 0, lt.cuda.device_count() - 1 do print(i, lt.cuda.get_device_name(i)) end
if not lt.cuda.is_available() then return end

-- What a device can do
local properties = lt.cuda.get_device_properties(0)
local major, minor = lt.cuda.get_device_capability(0)
print(properties.total_memory > 0, major, minor, lt.cuda.is_bf16_supported())
print(lt.cuda.device_count() > 1 and lt.cuda.can_device_access_peer(0, 1))

-- The current device
lt.cuda.set_device(0)
local x = lt.ones{1000, device = "cuda"}
print(lt.cuda.current_device(), x.device, lt.cuda.is_initialized())  --> 0	cuda:0	true
print(lt.cuda.with_device(0, function() return lt.ones{1, device = "cuda"}.device end))  --> cuda:0

-- Wait for the queued work
lt.cuda.synchronize()

-- Memory
print(lt.cuda.memory_allocated() > 0, lt.cuda.memory_reserved() > 0)  --> true	true
lt.cuda.reset_peak_memory_stats()
print(lt.cuda.max_memory_allocated() > 0, lt.cuda.max_memory_reserved() > 0)  --> true	true
local free, total = lt.cuda.mem_get_info()
print(free <= total)  --> true

-- Memory in detail
print(lt.cuda.memory_stats()["allocated_bytes.all.current"] > 0)  --> true
print(#lt.cuda.memory_summary() > 100, #lt.cuda.memory_snapshot() > 0)  --> true	true

-- Give cached memory back, limit what this program may reserve
lt.cuda.empty_cache()
lt.cuda.empty_host_cache()
lt.cuda.set_per_process_memory_fraction(1.0)

-- Streams and events
local stream = lt.cuda.Stream()
local event = lt.cuda.Event{enable_timing = true}
lt.cuda.with_stream(stream, function()
  x:mul_(2)
  event:record()
end)
event:synchronize()
print(lt.cuda.current_stream() == lt.cuda.default_stream())  --> true
lt.cuda.set_stream(lt.cuda.default_stream())

-- Graphs: capture work once, replay it on new values at the same addresses
local input, scale = lt.zeros{4, device = "cuda"}, lt.full({4}, 3.0):to "cuda"
local graph = lt.cuda.CUDAGraph()
local output = lt.cuda.graph(graph, function()
  assert(lt.cuda.is_current_stream_capturing())
  return (input * scale + 1):sum()
end)
input:copy_(lt.tensor{1, 2, 3, 4})
graph:replay()
print(output:item())  --> 34.0
input:copy_(lt.tensor{0, 0, 0, 10})
graph:replay()
print(output:item(), graph)  --> 34.0	CUDAGraph(captured)

-- Graphs that share their private memory
local pool = lt.cuda.graph_pool_handle()
local second = lt.cuda.CUDAGraph()
lt.cuda.graph(second, {pool = pool, stream = stream}, function() return input + 1 end)
print(second:pool() == pool)  --> true
second:reset()
lt.cuda.with_stream(stream, function()
  second:capture_begin{pool = pool}
  local sum = input + scale
  second:capture_end()
end)

-- Random numbers: one generator for all devices
lt.cuda.manual_seed(1)
lt.cuda.manual_seed_all(1)
lt.cuda.set_rng_state(lt.cuda.get_rng_state())

-- A kernel from its source
local double = lt.cuda.kernel([[
extern "C" __global__ void twice(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}]], "twice")
local y = lt.empty_like(x)
double({(1000 + 255) // 256, 256}, x, y, 1000)

-- Named ranges for NVIDIA's tools
lt.cuda.nvtx.range_push "step"
lt.cuda.nvtx.mark "middle"
lt.cuda.nvtx.range_pop()
