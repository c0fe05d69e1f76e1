-- lt.distributed on CUDA devices, by NCCL: rank k uses device k of the emulated ones, or, where
-- LUTRA_TEST_GPU is set, of the machine's, as far as it has as many. Every collective is compared
-- with the CPU's, which MPI makes.

local ranks = require "ranks_support"

-- Runs the text on ranks with a device each. emulated: the options of --emulate; on a GPU such a
-- test is skipped.
local function check(count, text, env, setup, emulated)
  local arguments, missing = ranks.device_arguments(count, emulated)
  if not arguments then return pending(missing) end
  ranks.check(count, text, {env = env, setup = setup, args = arguments})
end

local common = [[
local device = "cuda:" .. rank
-- Calls f with a function that moves a CPU tensor, here or to the device, and compares the lists of
-- tensors that it returns.
local function same(what, f)
  local expected = f(function(x) return x:clone() end)
  local got = f(function(x) return x:to(device) end)
  assert(#expected == #got, what)
  for i, x in ipairs(expected) do
    assert(got[i].device == device, what)
    local y = got[i]:cpu()
    assert(x.dtype == y.dtype and tostring(x.shape) == tostring(y.shape), what)
    if x:is_floating_point() or x:is_complex() then
      local close = x.dtype == "bfloat16" and 1e-2 or x.dtype == "float16" and 1e-3 or 1e-6
      assert(lt.allclose(x, y, {rtol = close, atol = 0}), what .. ": " .. tostring(y))
    else
      assert(lt.equal(x, y), what .. ": " .. tostring(y))
    end
  end
end
-- Returns numbers that differ between the ranks.
local function numbers(dtype, n, other)
  return ((lt.arange(n) * 7 + 3 * (other or rank)) % 5):to(dtype)
end
local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(text, 1, true), tostring(message))
end
]]

local collectives = common .. [[
local function reductions(dtype)
  if dtype == "int16" then return {} end
  local x = lt.zeros(1, {dtype = dtype})
  if x:is_complex() then return {"sum", "avg"} end
  return x:is_floating_point() and {"sum", "avg", "max", "min", "product"}
    or {"sum", "max", "min", "product"}
end
local last = size - 1
for _, dtype in ipairs{"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16",
                       "float32", "float64", "complex64", "complex128"} do
  for _, op in ipairs(reductions(dtype)) do
    local what = op .. " of " .. dtype
    same("all_reduce " .. what, function(to)
      local x = to(numbers(dtype, 7))
      dist.all_reduce(x, {op = op})
      return {x}
    end)
    same("reduce " .. what, function(to)
      local x = to(numbers(dtype, 7))
      dist.reduce(x, last, {op = op})
      return rank == last and {x} or {}
    end)
    same("reduce_scatter_tensor " .. what, function(to)
      local out = to(numbers(dtype, 3))
      dist.reduce_scatter_tensor(out, to(numbers(dtype, 3 * size)), {op = op})
      return {out}
    end)
  end
  same("broadcast of " .. dtype, function(to)
    local x = to(numbers(dtype, 7))
    dist.broadcast(x, last)
    return {x}
  end)
  same("all_gather of " .. dtype, function(to)
    local list, whole = {}, to(numbers(dtype, 7 * size))
    for i = 1, size do list[i] = to(numbers(dtype, 7)) end
    dist.all_gather(list, to(numbers(dtype, 7)))
    dist.all_gather_into_tensor(whole, to(numbers(dtype, 7)))
    list[#list + 1] = whole
    return list
  end)
  same("gather and scatter of " .. dtype, function(to)
    local list, pieces = nil, nil
    if rank == last then
      list, pieces = {}, {}
      for i = 1, size do list[i], pieces[i] = to(numbers(dtype, 5)), to(numbers(dtype, 5, i)) end
    end
    local x = to(numbers(dtype, 5))
    dist.gather(x, {gather_list = list, dst = last})
    dist.scatter(x, {scatter_list = pieces, src = last})
    list = list or {}
    list[#list + 1] = x
    return list
  end)
  same("all_to_all_single of " .. dtype, function(to)
    local out = to(numbers(dtype, 3 * size))
    dist.all_to_all_single(out, to(numbers(dtype, 3 * size)))
    -- Rank r sends i + 1 numbers to each rank i.
    local sent, received, total = {}, {}, 0
    for i = 1, size do
      sent[i], received[i] = i, rank + 1
      total = total + i
    end
    local other = to(numbers(dtype, size * (rank + 1)))
    dist.all_to_all_single(other, to(numbers(dtype, total)),
      {output_split_sizes = received, input_split_sizes = sent})
    return {out, other}
  end)
  same("messages of " .. dtype, function(to)
    if size == 1 then return {} end
    local x, y = to(numbers(dtype, 1000)), to(numbers(dtype, 1000))
    for _, work in ipairs(dist.batch_isend_irecv{
      dist.P2POp(dist.isend, x, (rank + 1) % size),
      dist.P2POp(dist.irecv, y, (rank + size - 1) % size)}) do
      work:wait()
    end
    if rank == 0 then dist.send(x, last) end
    local from = rank == last and dist.recv(y, 0)
    assert(rank ~= last or from == 0)
    return {y}
  end)
end
for _, n in ipairs{0, 1, 300001} do
  same("all_reduce of " .. n, function(to)
    local x = to(numbers("float32", n))
    dist.all_reduce(x)
    return {x}
  end)
end
raises("cannot reduce int16", dist.all_reduce, lt.ones(3, {dtype = "int16", device = device}))
]]

describe("NCCL", function()
  for count = 1, 3 do
    it(("computes what MPI computes on %d ranks"):format(count), function()
      check(count, collectives)
    end)
  end

  it("ignores NaN in max and min, unless all ranks have it", function()
    check(2, common .. [[
      for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64"} do
        for _, op in ipairs {"max", "min"} do
          local x = lt.tensor(rank == 0 and {0/0, -1, 0/0} or {2, 0/0, 0/0}, {dtype = dtype})
          local y = x:to(device)
          dist.all_reduce(y, op)
          assert(lt.equal(y:cpu():isnan(), lt.tensor{false, false, true}), tostring(y))
          assert(y[1]:item() == 2 and y[2]:item() == -1, tostring(y))
          dist.all_reduce(x, op)
          assert(x:isnan():all():item(), tostring(x))
        end
      end
    ]])
  end)

  -- Random delays before each operation of a stream show where an order is missing.
  it("orders calls with the work of the current stream", function()
    check(2, common .. [[
      -- The mean of x + rank is x + 1 / 2.
      local x = lt.full({10000}, rank + 0.0, {device = device})
      for _ = 1, 20 do
        dist.all_reduce(x, {op = "avg"})
        x:add_(rank)
      end
      assert(lt.equal(x:cpu(), lt.full({10000}, 10.0 + rank)), tostring(x))
      local stream = lt.cuda.Stream(device)
      stream:wait_stream(lt.cuda.current_stream(device))
      lt.cuda.with_stream(stream, function()
        for _ = 1, 20 do
          dist.all_reduce(x, {op = "max"})
          x:add_(1)
        end
        assert(lt.equal(x:cpu(), lt.full({10000}, 31.0)), tostring(x))
      end)
    ]], {LUTRA_EMULATE_DELAY = "300"})
  end)

  it("runs calls beside kernels", function()
    check(2, common .. [[
      local a = lt.ones({128, 128}, {device = device})
      local works, parts = {}, {}
      for i = 1, 20 do
        parts[i] = lt.full({5000}, i + rank + 0.0, {device = device})
        works[i] = dist.all_reduce(parts[i], {async_op = true})
        a = a:matmul(lt.eye(128, {device = device})) + 1
      end
      assert(lt.equal(a:cpu(), lt.full({128, 128}, 21.0)))
      for i, work in ipairs(works) do
        assert(work:wait() == true)
        assert(lt.equal(parts[i]:cpu(), lt.full({5000}, 2.0 * i + 1)), tostring(parts[i]))
        assert(work:is_completed() and work:is_success())
      end
      -- A tensor that the program drops stays until the call is done.
      local out
      for i = 1, 20 do
        local x = lt.full({5000}, rank + 1.0, {device = device})
        out = lt.empty({10000}, {device = device})
        dist.all_gather_into_tensor(out, x, {async_op = true})
        x = nil
        collectgarbage()
        lt.full({5000}, -1.0, {device = device})
      end
      lt.synchronize(device)
      local expected = lt.cat{lt.full({5000}, 1.0), lt.full({5000}, 2.0)}
      assert(lt.equal(out:cpu(), expected), tostring(out))
    ]], {LUTRA_EMULATE_DELAY = "300"})
  end)

  it("runs groups that share ranks", function()
    check(3, common .. [[
      local first, second = dist.new_group{0, 1}, dist.new_group{1, 2}
      local x = lt.full({40000}, rank + 1.0, {device = device})
      local y = lt.full({40000}, rank + 1.0, {device = device})
      local works = {}
      for _ = 1, 3 do
        works[#works + 1] = dist.all_reduce(x, {group = first, async_op = true})
        works[#works + 1] = dist.all_reduce(y, {group = second, async_op = true})
      end
      for _, work in ipairs(works) do work:wait() end
      local expected = {[0] = {12, 1}, {12, 20}, {3, 20}}
      assert(lt.equal(x:cpu(), lt.full({40000}, expected[rank][1] + 0.0)), tostring(x))
      assert(lt.equal(y:cpu(), lt.full({40000}, expected[rank][2] + 0.0)), tostring(y))
    ]])
  end)

  -- What Lua's functions do not use: a barrier of the device.
  it("has barriers that block the host", function()
    check(2, common .. [[
      local core = require "lutra.core"
      local communication, id = core._communication, lt.zeros{128, dtype = "uint8"}
      if rank == 0 then
        id = lt.frombuffer(communication.unique_id "cuda", {dtype = "uint8"})
      end
      dist.broadcast(id)
      local c = communication.create{device = device, rank = rank, size = size, timeout = 20,
        id = core._tensor_bytes(id)}
      for _ = 1, 10 do
        local x = lt.ones({100000}, {device = device})
        for _ = 1, 10 do x:add_(1) end
        local before = lt.cuda.current_stream(device):record_event()
        local work = c:submit(false, {{kind = "barrier"}})
        work:wait()
        assert(work:is_done() and before:query())
      end
      c:destroy()
      raises("the process group was destroyed", c.submit, c, false, {{kind = "barrier"}})
    ]], {LUTRA_EMULATE_DELAY = "300"})
  end)

  it("reports tensors and devices that do not fit", function()
    check(2, common .. [[
      raises("expected a CUDA tensor for argument 'tensor', got one on the CPU", dist.all_reduce,
        lt.ones(3))
      raises("NCCL reports invalid usage", dist.all_reduce,
        lt.ones(3, {device = "cuda:0"}))
      dist.all_reduce(lt.ones(3, {device = device}))
      raises('expected a tensor on "cuda:0", this rank\'s device in the group, for '
        .. 'argument \'tensor\', got one on "cuda:1"', dist.all_reduce,
        lt.ones(3, {device = "cuda:1"}))
    ]], nil, 'dist.init_process_group{backend = "nccl"}')
  end)

  it("reports a rank whose tensor is on the CPU", function()
    check(2, common .. [[
      local x = lt.ones(3)
      raises("rank 1: all_reduce (sum) of float32, shape {3}, on a CUDA device", dist.all_reduce,
        rank == 1 and x:to(device) or x)
      dist.all_reduce(x)
      assert(x[1]:item() == 2)
    ]], nil, "dist.init_process_group{timeout = 20}")
  end)

  it("needs a device_id that is usable, and no group is left after an error", function()
    check(2, common .. [[
dist.destroy_process_group()
local init = dist.init_process_group
raises("init_process_group: expected a CUDA device for argument 'device_id', got \"meta\"", init,
  {device_id = "meta"})
raises("init_process_group: expected no CUDA device for argument 'device_id', as the backend is "
  .. 'mpi, got "cuda:0"', init, {backend = "mpi", device_id = "cuda:0"})
raises('init_process_group: expected an available device, got "cuda:2"', init,
  {device_id = "cuda:2"})
raises("use the same device, cuda:1", init, {device_id = "cuda:1"})
assert(not dist.is_initialized())
lt.cuda.set_device(dist.get_node_local_rank())
init{device_id = "cuda"} -- the current device
local x = lt.ones(2, {device = "cuda"})
dist.all_reduce(x)
assert(x[1]:item() == 2)
]], nil, nil, "cuda:2")
  end)

  it("reports sizes of all_to_all that do not fit", function()
    check(2, common .. [[
      local function to_all(sizes)
        local input = lt.ones({5}, {device = device})
        dist.all_to_all_single(lt.zeros({6}, {device = device}), input, {3, 3}, sizes)
      end
      raises("rank 0 sends 2 to rank 1, which expects 3", to_all, {3, 2})
      local x = lt.ones(3, {device = device})
      dist.all_reduce(x)
      assert(x[1]:item() == 2)
    ]], nil, "dist.init_process_group{timeout = 20}")
  end)

  it("cannot be captured in a graph", function()
    check(1, common .. [[
      local x, graph = lt.ones({3}, {device = device}), lt.cuda.CUDAGraph()
      dist.all_reduce(x)
      raises("cannot communicate with other ranks while a graph is captured", lt.cuda.graph, graph,
        function() dist.all_reduce(x) end)
      dist.all_reduce(x)
      assert(lt.equal(x:cpu(), lt.ones(3)))
    ]])
  end)

  it("is an optional library", function()
    check(1, [[
      assert(not dist.is_nccl_available())
      dist.destroy_process_group()
      local ok, message = pcall(dist.init_process_group, {backend = "nccl"})
      assert(not ok and tostring(message):find("NCCL, which CUDA devices communicate by, was not "
        .. "found", 1, true), tostring(message))
    ]], nil, nil, "cuda:2,libraries=off")
  end)

  it("reports ranks that use the same device", function()
    check(2, common .. [[
      local function use() dist.all_reduce(lt.ones(3, {device = "cuda:0"})) end
      raises("all_reduce: NCCL reports invalid usage: ranks 0 and 1 use the same device, cuda:0\n"
        .. "hint: each rank has a device of its own: lt.cuda.set_device(", use)
    ]], nil, nil, "cuda:2")
  end)

  it("reports errors of NCCL", function()
    check(1, common .. [[
      local x = lt.ones(3, {device = device})
      dist.all_reduce(x)
      raises("all_reduce: NCCL reports unhandled system error: an injected fault",
        dist.all_reduce, x)
      dist.all_reduce(x)
      assert(lt.equal(x:cpu(), lt.ones(3)))
    ]], {LUTRA_EMULATE_FAULT = "nccl@2"}, nil, "cuda:1")
  end)

  -- Rank 0 has given up the communicator, of which NCCL then completes the creation.
  it("tells a rank that comes late to the creation of a communicator", function()
    check(2, common .. [[
      local x = lt.ones(3, {device = device})
      if rank == 0 then
        raises("all_reduce: timed out after 1 s, waiting for the other ranks to create the "
          .. "communicator, on rank 0 of 2", dist.all_reduce, x)
        os.execute "sleep 3"
      else
        os.execute "sleep 2"
        raises("rank 0 has ended its communicator", function()
          dist.all_reduce(x)
          x:cpu()
        end)
      end
    ]], {LUTRA_DISTRIBUTED_DEBUG = "off"}, "dist.init_process_group{timeout = 1}",
      "cuda:2")
  end)

  -- Without the comparison of calls by MPI, only NCCL's watchdog can find that rank 1 is missing.
  it("reports a rank that does not call in time", function()
    check(2, common .. [[
      local x = lt.ones(3, {device = device})
      dist.all_reduce(x)
      if rank == 0 then
        dist.all_reduce(x)
        raises("all_reduce: timed out after 1 s, waiting for the other ranks, on rank 0 of 2",
          x.cpu, x)
        raises("timed out", dist.all_reduce, x)
      else
        os.execute "sleep 3"
      end
    ]], {LUTRA_DISTRIBUTED_DEBUG = "off"}, "dist.init_process_group{timeout = 1}")
  end)
end)
