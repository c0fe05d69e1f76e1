--- lt.distributed.algorithms.ddp_comm_hooks.default_hooks: communication hooks of
-- DistributedDataParallel.
--
-- A hook gets a bucket, whose buffer has the sums of this rank's gradients, and returns a future of
-- the average over all ranks. `group` is the state of model:register_comm_hook, nil for all ranks.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local dist = require "lutra.distributed"
local Future = require "lutra.distributed.future"

local hooks = {}

-- Divides a tensor by the number of ranks, and returns the future of its sum over the ranks.
local function average(group, t)
  t:div_(dist.get_world_size(group))
  return Future(dist.all_reduce(t, {group = group, async_op = true}), t)
end

local function check(title, bucket)
  args.expect(type(bucket) == "table" and type(bucket.buffer) == "function", title,
    "a bucket of gradients", "bucket", bucket)
end

--- allreduce_hook(group, bucket): averages the gradients over the ranks, as
-- DistributedDataParallel does without a hook. Raises an error unless `bucket` is one.
function hooks.allreduce_hook(group, bucket)
  check("allreduce_hook", bucket)
  return average(group, bucket:buffer())
end

-- Returns the future of the average of a bucket that is exchanged in another dtype.
local function compress(group, bucket, dtype)
  local buffer = bucket:buffer()
  local small = buffer.dtype == dtype and buffer:clone() or buffer:to{dtype = dtype}
  return average(group, small):next(function(future) return buffer:copy_(future:value()) end)
end

--- fp16_compress_hook(group, bucket): averages the gradients in float16, which halves the bytes of
-- float32. Raises an error unless `bucket` is one.
function hooks.fp16_compress_hook(group, bucket)
  check("fp16_compress_hook", bucket)
  return compress(group, bucket, "float16")
end

--- bf16_compress_hook(group, bucket): averages the gradients in bfloat16. Raises an error unless
-- `bucket` is one.
function hooks.bf16_compress_hook(group, bucket)
  check("bf16_compress_hook", bucket)
  return compress(group, bucket, "bfloat16")
end

-- Returns a hook that calls `hook` with the bucket in another dtype.
local function wrapper(title, hook, dtype)
  args.expect(args.is_callable(hook), title, "a function", "hook", hook)
  return function(state, bucket)
    local buffer = bucket:buffer()
    bucket:set_buffer(buffer:to{dtype = dtype})
    local future = Future(hook(state, bucket))
    return future:next(function(ready)
      local value = ready:value()
      if not core.is_tensor(value) then value = bucket:buffer() end -- of a plain work
      bucket:set_buffer(buffer)
      return buffer:copy_(value)
    end)
  end
end

--- fp16_compress_wrapper(hook): returns the hook that calls `hook` with a bucket in float16. Raises
-- an error unless `hook` is a function.
function hooks.fp16_compress_wrapper(hook)
  return wrapper("fp16_compress_wrapper", hook, "float16")
end

--- bf16_compress_wrapper(hook): returns the hook that calls `hook` with a bucket in bfloat16.
-- Raises an error unless `hook` is a function.
function hooks.bf16_compress_wrapper(hook)
  return wrapper("bf16_compress_wrapper", hook, "bfloat16")
end

return require("lutra.internal.strict_table").strict(hooks,
  "distributed.algorithms.ddp_comm_hooks.default_hooks")
