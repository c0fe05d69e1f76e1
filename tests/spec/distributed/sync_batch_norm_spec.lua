--- nn.SyncBatchNorm computes on several ranks what nn.BatchNorm computes with the whole batch, and
-- the collectives with gradients have the gradient of the sum of all ranks' losses.
--
-- The values of a channel are added up in another order: at most 200 values are combined in about
-- 10 steps each way, in float64. The tolerance, 1e-12 relative to values around 1, is 4000 times
-- 2^-52, more than 200 * 10 * 2 roundings of 2^-53.

local ranks = require "ranks_support"

local prelude = [[
local functional = dist.nn.functional
local D = {dtype = "float64"}
local function close(a, b, what)
  assert(tostring(a.shape) == tostring(b.shape), what)
  assert(lt.allclose(a, b, {rtol = 1e-12, atol = 1e-12}), what .. " on rank " .. rank .. tostring(a)
    .. tostring(b))
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

-- Compares a step of a SyncBatchNorm with one of `Class`, for parts of `counts` rows.
local compare = [[
local function compare(Class, tail, counts, options)
  lt.manual_seed(3)
  local C, total = 3, 0
  for _, n in ipairs(counts) do total = total + n end
  local shape = {total, C, table.unpack(tail)}
  local whole = (lt.randn(shape, D) * 2 + 5):requires_grad_()
  local weights = lt.randn(shape, D)
  local start = 1
  for r = 1, rank do start = start + counts[r] end
  local part = whole:detach():narrow(1, start, counts[rank + 1]):clone():requires_grad_()
  options = options or {}
  options.dtype = "float64"
  local a, b = Class(C, options), nn.SyncBatchNorm(C, options)
  if a.weight then
    lt.no_grad(function() a.weight:copy_(lt.randn{C}) a.bias:copy_(lt.randn{C}) end)
    b:load_state_dict(a:state_dict())
  end
  for step = 1, 2 do
    whole.grad, part.grad = nil, nil
    a:zero_grad() b:zero_grad()
    local y, z = a(whole), b(part)
    local slice = {start, counts[rank + 1]}
    close(y:narrow(1, table.unpack(slice)), z, "the result")
    ;(y * weights):sum():backward()
    ;(z * weights:narrow(1, table.unpack(slice))):sum():backward()
    close(whole.grad:narrow(1, table.unpack(slice)), part.grad, "the gradient of the input")
    if a.weight then
      for name, p in b:named_parameters() do
        dist.all_reduce(p.grad)
        close(a:get_parameter(name).grad, p.grad, name)
      end
    end
    for name, buffer in a:named_buffers() do
      close(buffer:double(), b:get_buffer(name):double(), name)
    end
  end
  a:eval() b:eval()
  close(a(whole:detach()), b(whole:detach()), "evaluation")
end
]]

describe("nn.SyncBatchNorm", function()
  it("normalizes by the batches of all ranks, in one to three dimensions", function()
    check(2, compare .. [[
      compare(nn.BatchNorm1d, {}, {4, 4})
      compare(nn.BatchNorm1d, {5}, {2, 2})
      compare(nn.BatchNorm2d, {3, 4}, {2, 2})
      compare(nn.BatchNorm3d, {2, 3, 2}, {1, 2})]])
  end)

  it("weights ranks by their counts, also without rows on a rank", function()
    check(3, compare .. [[
      compare(nn.BatchNorm1d, {}, {1, 5, 2})
      compare(nn.BatchNorm2d, {2, 2}, {3, 0, 4})]])
  end)

  it("has BatchNorm's options", function()
    check(2, compare .. [[
      compare(nn.BatchNorm1d, {}, {3, 4}, {affine = false})
      compare(nn.BatchNorm1d, {}, {3, 4}, {momentum = false, eps = 0.1})
      compare(nn.BatchNorm1d, {}, {3, 4}, {momentum = 0.5})
      local b = nn.SyncBatchNorm(3, {track_running_stats = false})
      assert(b.running_mean == nil)
      b:eval()
      local x = lt.randn(5, 3)
      assert(lt.allclose(b(x), nn.BatchNorm1d(3, {track_running_stats = false}):eval()(x)))
      fails("SyncBatchNorm", b, lt.ones(3))
      fails("3 channels", b, lt.ones(2, 4))
      local y = nn.SyncBatchNorm(0)(lt.ones(2, 0):requires_grad_())
      y:sum():backward()
      assert(y.shape == lt.ones(2, 0).shape)]])
  end)

  it("computes in float32 for narrow inputs, and in a group", function()
    check(3, [[
      local group = dist.new_group{0, 2}
      if rank ~= 1 then
        local b = nn.SyncBatchNorm(2, {process_group = group})
        local x = lt.full({2, 2}, rank * 1.0)
        local y = b(x)
        -- Mean 1, variance 1 over the ranks 0 and 2, whose inputs are 0 and 2.
        local expected = (rank - 1) / math.sqrt(1 + 1e-5)
        assert((y - expected):abs():max():item() < 1e-6)
        local narrow = b(x:bfloat16():requires_grad_())
        assert(narrow.dtype == "bfloat16")
        narrow:sum():backward()
        assert(b.weight.grad.dtype == "float32")
      end
      dist.barrier()]])
  end)

  it("cannot be differentiated twice", function()
    check(2, [[
      local b = nn.SyncBatchNorm(2, D)
      local x = lt.randn({4, 2}, D):requires_grad_()
      local g = lt.autograd.grad((b(x) ^ 3):sum(), x, {create_graph = true})
      fails("once_differentiable", function() g:sum():backward() end)]])
  end)

  it("replaces batch norms", function()
    check(1, [[
      local convert = nn.SyncBatchNorm.convert_sync_batchnorm
      local shared = nn.BatchNorm1d(3)
      local net = nn.Sequential(nn.Linear(2, 3), shared, nn.Sequential(nn.Conv2d(1, 2, 3),
        nn.BatchNorm2d(2, {affine = false, momentum = 0.3, eps = 1e-3})), shared,
        nn.InstanceNorm1d(3))
      net[3]:eval()
      local weight, before = shared.weight, net:state_dict()
      assert(convert(net, "group") == net)
      assert(net[2]:isinstance(nn.SyncBatchNorm) and net[2] == net[4])
      assert(rawequal(net[2].weight, weight) and net[2].process_group == "group")
      local inner = net[3][2]
      assert(inner:isinstance(nn.SyncBatchNorm) and inner.weight == nil and inner.eps == 1e-3)
      assert(inner.momentum == 0.3 and inner.training == false and net[2].training == true)
      assert(not net[5]:isinstance(nn.SyncBatchNorm))
      for name, value in pairs(net:state_dict()) do assert(lt.equal(value, before[name]), name) end
      local other = convert(nn.BatchNorm3d(4))
      assert(other:isinstance(nn.SyncBatchNorm) and other.num_features == 4)
      assert(tostring(other):find "^SyncBatchNorm%(4, eps=")
      assert(convert(other) == other)
      fails("convert_sync_batchnorm: expected a module", convert, 3)
      local lazy = nn.Sequential(nn.BatchNorm1d(2), nn.LazyBatchNorm1d())
      fails("convert_sync_batchnorm: cannot replace LazyBatchNorm1d", convert, lazy)
      assert(lazy[1]:isinstance(nn.BatchNorm1d))
      lazy(lt.ones(3, 2))
      assert(convert(lazy)[2].num_features == 2)]])
  end)

  it("trains in DistributedDataParallel as BatchNorm in one process", function()
    check(2, [[
      lt.manual_seed(1)
      local whole = nn.Sequential(nn.Linear(4, 6, D), nn.BatchNorm1d(6, D), nn.Tanh(),
        nn.Linear(6, 2, D))
      local part = nn.SyncBatchNorm.convert_sync_batchnorm(whole:clone())
      local model = nn.parallel.DistributedDataParallel(part)
      local a = optim.SGD(whole:parameters(), {lr = 0.1})
      local b = optim.SGD(model:parameters(), {lr = 0.1})
      for _ = 1, 4 do
        local x, w = lt.randn({8, 4}, D), lt.randn({8, 2}, D)
        a:zero_grad() b:zero_grad()
        ;(whole(x) * w):mean():backward()
        ;(model(x:narrow(1, rank * 4 + 1, 4)) * w:narrow(1, rank * 4 + 1, 4)):mean():backward()
        a:step() b:step()
      end
      for name, value in pairs(part:state_dict()) do
        close(whole:state_dict()[name]:double(), value:double(), name)
      end]])
  end)
end)

describe("Collectives with gradients", function()
  it("have the gradient of the sum of all ranks' losses", function()
    check(3, [[
      local function x_of(r) return lt.tensor({r + 1, 2 * r - 3, r * r}, D) end
      local x = x_of(rank):requires_grad_()
      local w = lt.tensor({rank + 1, 2, -rank}, D) -- summed over the ranks: 6, 6, -3
      local function grad(y, weights)
        return lt.autograd.grad((y * (weights or w)):sum(), x)
      end
      local y = functional.all_reduce(x)
      assert(lt.equal(y, x_of(0) + x_of(1) + x_of(2)) and lt.equal(x, x_of(rank)))
      assert(lt.equal(grad(y), lt.tensor({6, 6, -3}, D)))
      close(grad(functional.all_reduce(x, {op = "avg"})), lt.tensor({2, 2, -1}, D), "avg")
      -- The largest are on rank 2; the smallest of each on rank 0.
      local zero = lt.zeros({3}, D)
      local sum = lt.tensor({6, 6, -3}, D)
      assert(lt.equal(grad(functional.all_reduce(x, {op = "max"})), rank == 2 and sum or zero))
      assert(lt.equal(grad(functional.all_reduce(x, {op = "min"})), rank == 0 and sum or zero))
      -- Equal values share the gradient.
      local same = lt.ones({3}, D):requires_grad_()
      close(lt.autograd.grad((functional.all_reduce(same, {op = "max"}) * w):sum(), same), sum / 3,
        "shared")

      y = functional.broadcast(x, 1)
      assert(lt.equal(y, x_of(1)))
      assert(lt.equal(grad(y), rank == 1 and sum or zero))
      y = functional.broadcast(x, 1) * (rank == 2 and math.huge or 1)
      local g = lt.autograd.grad(y:sum(), x) -- the gradient of rank 2 is infinite
      assert(lt.equal(g, rank == 1 and lt.full_like(x, math.huge) or zero))

      local list = functional.all_gather(x)
      local total = 0
      for r = 0, 2 do
        assert(lt.equal(list[r + 1], x_of(r)))
        total = total + (list[r + 1] * w * (r + 1)):sum()
      end
      assert(lt.equal(lt.autograd.grad(total, x), sum * (rank + 1)))

      -- Gradients that are transposed in memory.
      local m = lt.ones({2, 3}, D):requires_grad_()
      total = 0
      for r, part in ipairs(functional.all_gather(m)) do
        total = total + (part:t() * m:t() * r):sum()
      end
      local direct = (m:t() * 6):sum() -- the other factor, of ranks 1 to 3
      assert(lt.equal(lt.autograd.grad(total - direct, m), lt.full_like(m, 3 * (rank + 1))))

      -- Each rank sends x * (r + 1) to rank r.
      for _, op in ipairs {"sum", "avg"} do
        local inputs = {x, x * 2, x * 3}
        y = functional.reduce_scatter(lt.empty({3}, D), inputs, {op = op})
        local divisor = op == "avg" and 3 or 1
        close(y, (x_of(0) + x_of(1) + x_of(2)) * (rank + 1) / divisor, op)
        -- The sum over r of (r + 1) times rank r's weights.
        close(grad(y), lt.tensor({1 + 4 + 9, 2 + 4 + 6, 0 - 2 - 6}, D) / divisor, op)
      end

      local out = lt.empty({3}, D)
      y = functional.all_to_all_single(out, x)
      for r = 0, 2 do assert(y[r + 1]:item() == x_of(r)[rank + 1]:item()) end
      assert(lt.equal(out, y))
      -- Element r of x is element `rank` of rank r's result.
      g = grad(y)
      for r = 0, 2 do
        assert(g[r + 1]:item() == lt.tensor({r + 1, 2, -r}, D)[rank + 1]:item())
      end]])
  end)

  it("send parts of different sizes", function()
    check(2, [[
      local x = lt.tensor({0, 1, 2}, D):requires_grad_() -- rank 0 keeps 1 and sends 2
      local sent = rank == 0 and {1, 2} or {2, 1}
      local got = rank == 0 and {1, 2} or {2, 1}
      local y = functional.all_to_all_single(lt.empty({3}, D), x,
        {output_split_sizes = got, input_split_sizes = sent})
      assert(lt.equal(y, rank == 0 and lt.tensor({0, 0, 1}, D) or lt.tensor({1, 2, 2}, D)))
      local w = lt.tensor({1, 2, 3}, D) * (rank + 1)
      local g = lt.autograd.grad((y * w):sum(), x)
      assert(lt.equal(g, rank == 0 and lt.tensor({1, 2, 4}, D) or lt.tensor({2, 3, 6}, D)))]])
  end)

  it("can be differentiated twice", function()
    check(2, [[
      local x = lt.tensor({rank + 1.0, 3}, D):requires_grad_()
      -- The sum of both ranks' losses is 2 sum(s^3), s the sum: the gradient 6 s^2, the second
      -- derivative by both ranks' x, of sums again over both ranks: 2 * 12 s.
      local y = functional.all_reduce(x)
      local g = lt.autograd.grad((y ^ 3):sum(), x, {create_graph = true})
      assert(lt.equal(g, 6 * y ^ 2))
      local h = lt.autograd.grad(g:sum(), x)
      assert(lt.equal(h, 24 * y:detach()))
      y = functional.broadcast(x, 1)
      g = lt.autograd.grad((y ^ 3):sum(), x, {create_graph = true})
      h = lt.autograd.grad(g:sum(), x)
      assert(lt.equal(g, rank * 6 * y ^ 2) and lt.equal(h, rank * 12 * y:detach()))]])
  end)

  it("raise errors", function()
    check(1, [[
      local x = lt.ones(2)
      fails('all_reduce: cannot differentiate the reduction "product"', functional.all_reduce, x,
        {op = "product"})
      fails('reduce_scatter: cannot differentiate the reduction "max"', functional.reduce_scatter,
        x, {x}, {op = "max"})
      fails("all_reduce", functional.all_reduce, 3)
      fails("broadcast", functional.broadcast, x)
      fails("all_gather", functional.all_gather)
      fails("all_to_all_single", functional.all_to_all_single, x)
      fails('has no field "gather"', function() return functional.gather end)]])
  end)
end)
