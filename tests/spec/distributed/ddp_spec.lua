--- nn.parallel.DistributedDataParallel on several ranks computes what one process computes with the
-- whole batch.

local check = require("ddp_support").check

describe("DistributedDataParallel trains as one process with the whole batch", function()
  for _, count in ipairs {1, 2, 4} do
    it(("bit for bit on %d ranks, with every option"):format(count), function()
      check(count, [[
        for name, options in ipairs {
          {}, {bucket_cap_mb = 1e-4}, {bucket_cap_mb = 1e-6},
          {gradient_as_bucket_view = true, bucket_cap_mb = 1e-4},
          {find_unused_parameters = true}, {static_graph = true},
          {find_unused_parameters = true, gradient_as_bucket_view = true},
        } do
          local whole, part = mlp(), mlp(rank + 1) -- rank 0's parameters count
          local model = with(part, options)
          local a = optim.SGD(whole:parameters(), {lr = 1 / 8})
          local b = optim.SGD(model:parameters(), {lr = 1 / 8})
          for step = 1, 4 do
            a:zero_grad() b:zero_grad()
            loss(whole, step, true):backward()
            loss(model, step):backward()
            check_equal(whole, part, name .. ", step " .. step)
            a:step() b:step()
            check_equal(whole, part, name .. " after step " .. step)
          end
          assert(whole[1].weight:sum() ~= mlp()[1].weight:sum())
        end]])
    end)
  end

  -- The gradients are sums of products over 9 rows and at most 6 features, added up in another
  -- order, and divided by 3: at most 9 * 6 * 2 roundings of 2^-53 relative to the sum of the sizes,
  -- which is less than 16 times the largest result. Three steps add such errors up.
  it("within rounding on 3 ranks", function()
    check(3, [[
      lt.manual_seed(5)
      local function make() lt.manual_seed(5) return nn.Sequential(nn.Linear(4, 6, D), nn.Tanh(),
        nn.Linear(6, 3, D)) end
      local whole, part = make(), make()
      local model = DDP(part)
      local a = optim.SGD(whole:parameters(), {lr = 0.1})
      local b = optim.SGD(model:parameters(), {lr = 0.1})
      for step = 1, 3 do
        a:zero_grad() b:zero_grad()
        loss(whole, step, true, 9):backward()
        loss(model, step, false, 9):backward()
        a:step() b:step()
        for name, p in whole:named_parameters() do
          local q = part:get_parameter(name)
          local off = (p.grad - q.grad):abs():max():item()
          assert(off <= step * 9 * 6 * 2 * 16 * 2^-53 * p.grad:abs():max():item(), off)
        end
      end]])
  end)

  it("with accumulation in no_sync, and several backward passes", function()
    check(2, [[
      for _, options in ipairs {{}, {gradient_as_bucket_view = true}, {bucket_cap_mb = 1e-6},
        {find_unused_parameters = true}} do
        local whole, part = mlp(), mlp()
        local model = with(part, options)
        for step = 1, 3 do
          local function both(k)
            loss(whole, k, true):backward()
            loss(model, k):backward()
          end
          if step < 3 then
            for p in whole:parameters() do p.grad = nil end
            model:zero_grad()
          end
          loss(whole, 10 * step, true):backward()
          local got = model:no_sync(function()
            loss(model, 10 * step):backward()
            return "result"
          end)
          assert(got == "result")
          local own = part[1].weight.grad:clone()
          local others = {}
          dist.all_gather_object(others, own:totable())
          assert(step > 1 or not lt.equal(lt.tensor(others[1], D), lt.tensor(others[2], D)))
          both(10 * step + 1)
          check_equal(whole, part, "accumulated " .. step)
          both(10 * step + 2) -- adds to the averages
          check_equal(whole, part, "added " .. step)
        end
      end]])
  end)

  it("with several forward passes before one backward, and before several", function()
    check(2, [[
      for _, options in ipairs {{}, {find_unused_parameters = true}} do
        local whole, part = mlp(), mlp()
        local model = with(part, options)
        for k = 1, 3 do
          local sum = loss(whole, k, true) + loss(whole, k + 5, true)
          sum:backward()
          sum = loss(model, k) + loss(model, k + 5)
          sum:backward()
          check_equal(whole, part, "one backward")
          local l1, l2 = loss(whole, k, true), loss(whole, k + 5, true)
          l1:backward() l2:backward()
          l1, l2 = loss(model, k), loss(model, k + 5)
          l1:backward() l2:backward()
          check_equal(whole, part, "two backwards")
          local l = loss(whole, k, true)
          l:backward{retain_graph = true} l:backward()
          l = loss(model, k)
          l:backward{retain_graph = true} l:backward()
          check_equal(whole, part, "a retained graph")
        end
      end]])
  end)

  it("with checkpoints, hooks of parameters, and frozen parameters", function()
    check(2, [[
      local whole, part = mlp(), mlp()
      local function wrap(net)
        local Checkpointed = nn.Module:extend "Checkpointed"
        function Checkpointed:init(inner) self.inner = inner end
        function Checkpointed:forward(x) return lt.utils.checkpoint(self.inner, x) end
        return Checkpointed(net)
      end
      local model = DDP(wrap(part))
      for k = 1, 3 do
        loss(whole, k, true):backward()
        loss(model, k):backward()
        check_equal(whole, part, "checkpoint")
      end
      whole, part = mlp(), mlp()
      whole[1].bias:requires_grad_(false)
      part[1].bias:requires_grad_(false)
      model = DDP(part)
      -- A hook that is added after the module was made changes the gradient before the exchange.
      whole[3].weight:register_hook(function(g) return g * 2 end)
      part[3].weight:register_hook(function(g) return g * 2 end)
      local seen = 0
      part[3].weight:register_post_accumulate_grad_hook(function(p)
        seen = seen + 1
        assert(lt.equal(p.grad, whole[3].weight.grad), "the averaged gradient")
      end)
      for k = 1, 2 do
        loss(whole, k, true):backward()
        loss(model, k):backward()
        check_equal(whole, part, "hooks")
      end
      assert(seen == 2)
      for name in pairs(model:state_dict()) do assert(name:find "^module%.", name) end
      assert(tostring(model):find "^DistributedDataParallel%(")]])
  end)

  it("with parameters of several dtypes, and in bfloat16", function()
    check(2, [[
      local Mixed = nn.Module:extend "Mixed"
      function Mixed:init()
        self.a, self.b = exact(nn.Linear(4, 3, D), 1), exact(nn.Linear(4, 3), 5)
        self.c = exact(nn.Linear(4, 3), 7):bfloat16()
      end
      function Mixed:forward(x)
        return self.a(x) + self.b(x:float()):double() + self.c(x:bfloat16()):double()
      end
      local whole, part = Mixed(), Mixed()
      local model = DDP(part)
      for k = 1, 2 do -- the second one with buckets in order of arrival
        loss(whole, k, true):backward()
        loss(model, k):backward()
        check_equal(whole, part, "mixed dtypes")
      end
      local dtypes = {}
      for _, bucket in ipairs(model._reducer.buckets) do dtypes[bucket.storage.dtype] = true end
      assert(#model._reducer.buckets == 3)
      assert(dtypes.float64 and dtypes.float32 and dtypes.bfloat16)]])
  end)
end)

describe("DistributedDataParallel exchanges", function()
  it("in buckets of their size, in the order in which gradients arrive", function()
    check(2, [[
      local MB = 2^20
      local big = nn.ModuleList{nn.Linear(64, 64, D), nn.Linear(128, 512, D),
        nn.Linear(256, 512, D), nn.Linear(8, 8, D)} -- 33 KB, 0.5 MB, 1.0 MB, 1 KB
      local Uses = nn.Module:extend "Uses"
      function Uses:init() self.list = big end
      function Uses:forward(order)
        local sum = lt.zeros({}, D)
        for _, i in ipairs(order) do
          sum = sum + self.list[i].weight:sum() * self.list[i].bias:sum()
        end
        return sum
      end
      local model = DDP(Uses(), {bucket_cap_mb = 0.25})
      local function sizes()
        local list = {}
        for k, bucket in ipairs(model._reducer.buckets) do
          list[k] = #bucket.members
          assert(bucket:index() == k and bucket:is_last() == (k == #model._reducer.buckets))
        end
        return table.concat(list, " ")
      end
      -- From the last parameter on, each bucket is closed by the first one that exceeds the cap:
      -- biases and weights of list[4], list[3]; list[2]; list[1].
      assert(sizes() == "4 2 2", sizes())
      -- The order of rank 0 counts.
      local order = rank == 0 and {4, 1, 2, 3} or {3, 1, 2, 4}
      model(order):backward()
      model(order):backward()
      -- The graph of the last term is first in backward: 3, 2, 1, 4.
      local first = model._reducer.buckets[1]:parameters()
      assert(rawequal(first[1], big[3].weight) or rawequal(first[1], big[3].bias))
      assert(model._reducer.buckets[#model._reducer.buckets]:parameters()[1]:numel() <= 64 * 64)
      local default = DDP(nn.Linear(4, 4))
      assert(default._reducer.first == MB and default._reducer.cap == 25 * MB)]])
  end)

  it("the first bucket before backward ends, and none in autograd.grad and no_sync", function()
    check(2, [[
      local part = mlp()
      local model = DDP(part, {bucket_cap_mb = 1e-6})
      local submitted = 0
      model:register_comm_hook(nil, function(_, bucket)
        submitted = submitted + 1
        local work = dist.all_reduce(bucket:buffer(), {async_op = true})
        return lt.distributed.Future(work, bucket:buffer()):next(function(f)
          return f:value() / size
        end)
      end)
      local during = {}
      for name, p in part:named_parameters() do
        p:register_hook(function() during[#during + 1] = submitted end)
      end
      for step = 1, 2 do
        submitted, during = 0, {}
        loss(model, step):backward()
        -- Each of the four gradients is a bucket, which is submitted when the gradient is there.
        assert(table.concat(during, " ") == "0 1 2 3", table.concat(during, " "))
        assert(submitted == 4)
      end
      submitted = 0
      lt.autograd.grad(loss(model, 5), part:parameters())
      model:no_sync(function() loss(model, 6):backward() end)
      assert(submitted == 0)
      loss(model, 6):backward{inputs = {part[1].weight, part[1].bias, part[3].weight, part[3].bias}}
      assert(submitted == 4)]])
  end)

  it("buffers of rank 0 before forward, unless the option is off", function()
    check(2, [[
      local Counter = nn.Module:extend "Counter"
      function Counter:init()
        self.scale = nn.Parameter(lt.ones(1))
        self:register_buffer("count", lt.tensor{rank * 10.0})
        self:register_buffer("flag", lt.tensor{rank == 0})
      end
      function Counter:forward(x)
        self.seen, self.flagged = self.count:item(), self.flag:item()
        self.count:add_(rank + 1)
        return x * self.scale
      end
      local x = lt.ones(1)
      local inner = Counter()
      local model = DDP(inner)
      assert(inner.count:item() == 0 and inner.flag:item() == true)
      for k = 0, 2 do
        model(x):backward()
        assert(inner.seen == k and inner.flagged == true, "call " .. k)
      end
      inner = Counter()
      model = DDP(inner, {broadcast_buffers = false})
      for k = 0, 1 do
        model(x):backward()
        assert(inner.seen == k * (rank + 1))
      end
      inner = Counter()
      model = DDP(inner, {init_sync = false, broadcast_buffers = false})
      model(x):backward()
      assert(inner.seen == rank * 10)]])
  end)

  it("among the ranks of a group", function()
    check(3, [[
      local group = dist.new_group{1, 2}
      if rank == 0 then
        fails("expected a group that this rank is in", DDP, mlp(), {process_group = group})
        dist.barrier()
        return dist.destroy_process_group()
      end
      local part, whole = mlp(rank), mlp(1) -- rank 1 is the first of the group
      local model = DDP(part, {process_group = group})
      local x = integers(3, 2, {8, 4})
      local own = x:narrow(1, (rank - 1) * 4 + 1, 4)
      for _ = 1, 2 do
        (model(own):sum() / 4):backward();
        (whole(x):sum() / 8):backward()
        check_equal(whole, part, "a group")
      end
      dist.barrier()]])
  end)

  it("no longer when the module was collected", function()
    check(2, [[
      local part = mlp()
      do
        local model = DDP(part)
        loss(model, 1):backward()
      end
      collectgarbage() collectgarbage()
      part:zero_grad()
      if rank == 0 then loss(part, 1):backward() end -- would block in an exchange]])
  end)
end)

describe("DistributedDataParallel raises an error", function()
  it("on all ranks for parameters that differ", function()
    check(3, [[
      local net = rank == 2 and nn.Linear(4, 3) or nn.Linear(4, 2)
      local message = fails("expected the same parameters on all ranks", DDP, net)
      assert(message:find('parameter 1 is "weight" of shape {2, 4}, "float32" on rank 0 and '
        .. '"weight" of shape {3, 4}, "float32" on rank 2', 1, true), message)
      net = nn.Linear(4, 2)
      if rank == 1 then net:double() end
      message = fails('"float64" on rank 1', DDP, net)
      net = nn.Sequential(nn.Linear(4, 2))
      if rank == 1 then net[1].bias:requires_grad_(false) end
      message = fails('got 2 on rank 0 and 1 on rank 1', DDP, net)
      assert(message:find('"0.bias"', 1, true) or message:find('"1.bias"', 1, true), message)
      assert(message:find("no parameter on rank 1", 1, true), message)
      net = nn.Linear(4, 2)
      if rank == 1 then net:requires_grad_(false) end
      fails('got 2 on rank 0 and 0 on rank 1', DDP, net)
      fails("expected a module with parameters that require grad", DDP, nn.ReLU())]])
  end)

  it("on several ranks without a process group", function()
    check(2, [[
      local message = fails("started 2 ranks\nhint: call lt.distributed.init_process_group() first",
        DDP, nn.Linear(2, 2))
      assert(message:find("DistributedDataParallel: there is no process group, but", 1, true))]],
      {setup = ""})
  end)

  it("for wrong arguments", function()
    check(1, [[
      fails("expected a module for argument 'module'", DDP, 3)
      fails("expected a module with parameters that require grad", DDP, nn.ReLU())
      fails("expected a module with parameters that require grad", DDP,
        nn.Linear(2, 2):requires_grad_(false))
      fails("expected no device_ids for a module on \"cpu\"", DDP, nn.Linear(2, 2),
        {device_ids = {0}})
      fails("expected one device for argument 'device_ids'", DDP, nn.Linear(2, 2),
        {device_ids = {0, 1}})
      fails("above 0 for argument 'bucket_cap_mb'", DDP, nn.Linear(2, 2), {bucket_cap_mb = 0})
      local model = DDP(nn.Linear(2, 2))
      fails("no_sync: expected a function", model.no_sync, model, 3)
      fails("join: expected a function", model.join, model, 3)]])
  end)

  it("of backward once; the next iteration is exchanged", function()
    check(2, [[
      local whole, part = mlp(), mlp()
      local model = DDP(part, {bucket_cap_mb = 1e-6})
      local broken = true
      part[1].weight:register_hook(function() if broken then error("broken", 0) end end)
      fails("broken", function() loss(model, 1):backward() end)
      broken = false
      for k = 2, 4 do
        loss(whole, k, true):backward()
        loss(model, k):backward()
        check_equal(whole, part, "after an error")
      end]])
  end)
end)
