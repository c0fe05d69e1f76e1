--- Communication hooks of DistributedDataParallel. The gradients of the tests are multiples of 1/8
-- below 32, which float16 and bfloat16 represent exactly, and so do their averages over two ranks.

local ranks = require "ranks_support"

local prelude = [[
local hooks = lt.distributed.algorithms.ddp_comm_hooks.default_hooks
local DDP = nn.parallel.DistributedDataParallel
local function make(hook, state, options)
  local net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
  lt.no_grad(function() for p in net:parameters() do p:fill_(0.5) end end)
  local model = DDP(net, options)
  if hook then model:register_comm_hook(state, hook) end
  return model, net
end
local function run(model, k)
  local x = lt.full({2, 4}, (rank + 1) * k):float()
  model(x):sum():backward()
end
local function grads(net)
  local list = {}
  for name, p in net:named_parameters() do list[#list + 1] = p.grad:reshape(-1) end
  return lt.cat(list)
end
local function fails(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "expected an error with " .. words)
  assert(tostring(message):find(words, 1, true), tostring(message) .. " has no " .. words)
end
]]

local function check(count, body)
  if not ranks.available() then pending "needs mpirun" end
  return ranks.check(count, prelude .. body)
end

describe("A communication hook", function()
  it("averages as without it, also in fewer bits", function()
    check(2, [[
      local plain, reference = make()
      local function plain_work(_, bucket)
        bucket:buffer():div_(size)
        return dist.all_reduce(bucket:buffer(), {async_op = true})
      end
      local list = {
        hooks.allreduce_hook, hooks.fp16_compress_hook, hooks.bf16_compress_hook,
        hooks.fp16_compress_wrapper(hooks.allreduce_hook),
        hooks.bf16_compress_wrapper(hooks.allreduce_hook),
        plain_work, hooks.bf16_compress_wrapper(plain_work),
      }
      for k = 1, 3 do run(plain, k) end
      for name, hook in ipairs(list) do
        for _, view in ipairs {true, false} do
          local model, net = make(hook, nil, {gradient_as_bucket_view = view, bucket_cap_mb = 3e-5})
          for k = 1, 3 do run(model, k) end
          assert(lt.equal(grads(reference), grads(net)), name .. tostring(grads(net)))
          assert(grads(net).dtype == "float32")
        end
      end]])
  end)

  it("sends the dtype that it names", function()
    check(2, [[
      -- 1 + 2^-9 is 1 in bfloat16, with 8 bits, and exact in float16, with 11 bits.
      for i, hook in ipairs {hooks.fp16_compress_hook, hooks.bf16_compress_hook} do
        local expected = i == 1 and 1 + 2^-9 or 1
        local p = nn.Linear(1, 1, {bias = false})
        local model = DDP(p)
        model:register_comm_hook(nil, hook)
        model(lt.full({1, 1}, 1 + 2^-9)):sum():backward()
        assert(p.weight.grad:item() == expected, p.weight.grad:item())
      end]])
  end)

  it("gets its state and buckets", function()
    check(2, [[
      local seen = {}
      local state = {name = "state"}
      local model, net = make(function(given, bucket)
        assert(given == state)
        local total = 0
        for k, p in ipairs(bucket:parameters()) do
          total = total + p:numel()
          assert(bucket:gradients()[k].shape == p.shape)
        end
        assert(bucket:buffer():numel() == total and bucket:buffer().ndim == 1)
        assert(tostring(bucket):find "^GradBucket%(index=%d")
        seen[#seen + 1] = ("%d%s"):format(bucket:index(), bucket:is_last() and " last" or "")
        bucket:gradients()[1]:fill_(rank) -- changes the buffer
        return dist.all_reduce(bucket:buffer(), {async_op = true})
      end, state, {bucket_cap_mb = 1e-6})
      run(model, 1)
      assert(table.concat(seen, ",") == "1,2,3,4 last", table.concat(seen, ","))
      assert(net[1].weight.grad:min():item() == 1 and net[1].weight.grad:max():item() == 1)]])
  end)

  it("works in a group", function()
    check(3, [[
      local group = dist.new_group{0, 2}
      if rank ~= 1 then
        local model, net = make(hooks.allreduce_hook, group, {process_group = group})
        local plain, reference = make(nil, nil, {process_group = group})
        run(model, 1)
        run(plain, 1)
        assert(lt.equal(grads(reference), grads(net)))
      end
      dist.barrier()]])
  end)

  it("raises errors", function()
    check(1, [[
      local model = make()
      fails("register_comm_hook: expected a function for argument 'hook', got 3",
        model.register_comm_hook, model, nil, 3)
      model:register_comm_hook(nil, function() return 5 end)
      fails("expected the hook to return an object with a method wait, got 5", run, model, 1)
      fails("cannot use a second hook", model.register_comm_hook, model, nil, print)
      fails("fp16_compress_wrapper: expected a function", hooks.fp16_compress_wrapper, 1)
      fails("bf16_compress_wrapper: expected a function", hooks.bf16_compress_wrapper)
      for _, name in ipairs {"allreduce_hook", "fp16_compress_hook", "bf16_compress_hook"} do
        fails(name .. ": expected a bucket", hooks[name], nil, 4)
      end
      fails('has no field "power"', function() return hooks.power end)]])
  end)
end)

describe("A future", function()
  it("waits once, and passes values on", function()
    check(1, [[
      local Future = dist.Future
      local waits = 0
      local work = {wait = function() waits = waits + 1 return true end,
        is_completed = function() return waits > 0 end}
      local f = Future(work, 5)
      local g = f:next(function(done) return done:value() + 1 end)
      assert(not f:is_completed() and not g:is_completed())
      assert(g:wait() == 6 and g:wait() == 6 and f:value() == 5 and waits == 1)
      assert(f:is_completed() and g:is_completed())
      assert(Future(nil, 3):wait() == 3)
      fails("next: expected a function", f.next, f, 1)
      fails("Future: expected a work or nil", Future, 3)
      assert(not pcall(Future({wait = function() error "failed" end}).wait))]])
  end)
end)
