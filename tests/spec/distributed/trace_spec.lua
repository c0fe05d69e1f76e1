-- Collectives in traces, guards, :transfers, --lint and --trace.

local assert = require "luassert"
local program = require "program_support"
local ranks = require "ranks_support"

local has, has_not, quote = program.has, program.has_not, program.quote

-- Runs a program as a job of one rank; returns its result {status, out, err}.
local function run_alone(text, arguments)
  local file = program.file('local lt = require "lutra"\nlocal dist = lt.distributed\n'
    .. "dist.init_process_group()\n" .. text .. "\ndist.destroy_process_group()\n")
  local result = program.run((arguments or "") .. " " .. quote(file))
  os.remove(file)
  return result
end

describe("collectives of one rank", function()
  if not require("lutra").distributed.is_available() then
    it("are in traces", function() pending "needs MPI's library" end)
    return
  end

  it("are in traces and in their statistics", function()
    local result = run_alone [[
      local x = lt.ones(2, 3)
      local trace = lt.placement.trace(function()
        dist.all_reduce(x, {op = "max"})
        dist.all_gather_into_tensor(lt.empty(2, 3), x, {async_op = true}):wait()
        dist.barrier()
      end)
      local names = {}
      for _, e in ipairs(trace.events) do
        if e.kind == "collective" then
          names[#names + 1] = ("%s %s %d %s %s"):format(e.op, e.name, e.bytes, e.comm.now,
            e.comm.reduction or "-")
          assert(e.done >= e.begin and e.where:find ":%d+$", e.where)
        end
      end
      print(table.concat(names, "\n"))
      local sums = trace:collectives()
      print(#sums, sums[1].count, sums[1].sent, sums[1].size, trace:totals().collectives,
        trace:totals().syncs)
      print(trace)]]
    assert.equal(0, result.status, result.err)
    has(result.out, "all_reduce all_reduce 24 true max\n"
      .. "all_gather all_gather 24 false -\nbarrier barrier 0 true -\n"
      .. "3\t1\t0\t1\t3\t1\n")
    has(result.out, "3 collectives, 0 B sent")
  end)

  it("are explicit for guards, in a direction of their own", function()
    local result = run_alone [[
      local x = lt.ones(2, 3)
      local function reduce() dist.all_reduce(x) end
      local guard = lt.placement.guard
      guard("disallow", reduce)
      guard("log", reduce)
      guard("disallow_explicit", "host_to_device", reduce)
      guard("log_explicit", "between_ranks", reduce)
      print(pcall(guard, "disallow_explicit", "between_ranks", reduce))
      print(pcall(guard, "disallow_explicit", reduce))
      guard("disallow_explicit", function() guard("allow", reduce) end)]]
    assert.equal(0, result.status, result.err)
    local reports = select(2, result.err:gsub("\n", "\n"))
    assert.equal(1, reports, result.err)
    has(result.err, 'all_reduce exchanges 24 bytes on "cpu" between 1 rank\n')
    local first, second = result.out:match "^(false.-)\n(false.*)$"
    for _, text in ipairs {first, second} do
      has(text, 'all_reduce: cannot exchange 24 bytes on "cpu" between 1 rank: '
        .. 'placement.guard("disallow_explicit") forbids it')
    end
  end)

  it("are in :transfers, with a lane of their group", function()
    local result = program.session("lt.distributed.init_process_group()\nx = lt.ones(1000)\n"
      .. ":transfers lt.distributed.all_reduce(x)\nlt.distributed.destroy_process_group()\n")
    assert.is_truthy(result.out:find "all_reduce +1 rank +1 +3.9 KiB", result.out)
    has(result.out, "cpu comm")
    has(result.out, "between ranks")
  end)

  it("are checked by the lint", function()
    local result = run_alone([[
      local list = {}
      for i = 1, 10 do list[i] = lt.ones(i) end
      for i = 1, 10 do
        dist.all_reduce(list[i])
      end
      local x = lt.ones(4)
      dist.broadcast(x, 0, {async_op = true})
      dist.broadcast(x, 0, {async_op = true}):wait()
      for i = 1, 10 do dist.barrier() end]], "--lint")
    assert.equal(1, result.status, result.err)
    assert.is_truthy(result.err:find ":7: D1: all_reduce is called 10 times", result.err)
    assert.is_truthy(result.err:find ":10: D2: broadcast has no wait%(%) %(once%)", result.err)
    has(result.err, "2 findings")
  end)

  it("are found where gradients are reduced one by one, and not where a loss is", function()
    local train = [[
      lt.manual_seed(0)
      local net = lt.nn.Sequential(lt.nn.Linear(4, 8), lt.nn.ReLU(), lt.nn.Linear(8, 1))
      local opt = lt.optim.SGD(net:parameters(), {lr = 0.1})
      local x, y = lt.randn(16, 4), lt.randn(16, 1)
      for step = 1, 20 do
        local loss = lt.F.mse_loss(net(x), y)
        opt:zero_grad()
        loss:backward()
        %s
        opt:step()
        local mean = loss:detach():clone()
        dist.all_reduce(mean, {op = "avg"})
        io.write(mean:item() > 0 and "." or "")
      end]]
    local clean = run_alone(train:format "", "--lint")
    assert.same({0, "no findings\n"}, {clean.status, clean.err})
    local result = run_alone(train:format
      'for p in net:parameters() do dist.all_reduce(p.grad, {op = "avg"}) end', "--lint")
    assert.is_truthy(result.err:find ":12: D3: all_reduce is called 80 times", result.err)
    has(result.err, "1 finding\n")
  end)

  it("are found where a device's tensor takes the way through the host", function()
    local result = run_alone([[
      local x = lt.ones(16, {device = "cuda"})
      for step = 1, 4 do
        local host = (x * step):cpu()
        dist.all_reduce(host)
        x = host:cuda()
      end]], "--emulate cuda:1 --lint")
    assert.is_truthy(result.err:find(":7: D4: all_reduce of 64 B is called on a copy from cuda:0"),
      result.err)
    has_not(result.err, "D1")
  end)

  it("are rows of a profile, and spans of its trace, that do not count as memory", function()
    local path = os.tmpname()
    local result = run_alone(([[
      local x = lt.ones(2, 3)
      local profile = lt.profiler.profile(function() dist.all_reduce(x) end)
      for _, row in ipairs(profile:key_averages()) do
        if row.key == "all_reduce" then print(row.count, row.bytes, row.device) end
      end
      profile:export_chrome_trace(%q)
      profile:close()]]):format(path))
    assert.equal(0, result.status, result.err)
    has(result.out, "1\t24\tcpu\n")
    local file <close> = assert(io.open(path))
    local text = file:read "a"
    os.remove(path)
    has(text, '"cat":"collective","name":"all_reduce"')
    has_not(text, '"bytes":-')
  end)

  it("take the time of the link on the virtual clock", function()
    local result = run_alone([[
      local x = lt.ones(1000)
      for _ = 1, 2 do
        local trace = lt.placement.trace(function() dist.all_reduce(x) end)
        print(trace.link, trace:totals().time)
      end]], "--emulate cuda:1,link=pcie4")
    local first, second = result.out:match "pcie4\t(%S+)\npcie4\t(%S+)\n"
    assert.is_truthy(first, result.out .. result.err)
    assert.equal(first, second)
  end)
end)

describe("collectives of two ranks", function()
  if not ranks.available() then
    pending "needs mpirun"
    return
  end

  it("show which rank was blocked on which, with the bytes of each rank", function()
    local text = ranks.check(2, [[
      local x = lt.ones(1000)
      dist.barrier()
      local start = lt.clock()
      local trace = lt.placement.trace(function()
        if rank == 1 then
          while lt.clock() - start < 0.2 do end
        end
        dist.all_reduce(x)
        dist.broadcast(x, 0)
      end)
      local sums = trace:collectives()
      local reduce, broadcast = sums[1], sums[2]
      assert(reduce.sent == 4000 and reduce.received == 4000 and reduce.link_bytes == 4000)
      assert(broadcast.sent == (rank == 0 and 4000 or 0))
      assert(broadcast.received == (rank == 0 and 0 or 4000))
      if rank == 0 then
        assert(reduce.waiting > 0.1 and reduce.waiting <= reduce.time, tostring(trace))
      else
        assert(reduce.waiting < 0.1, tostring(trace))
      end
      for _, e in ipairs(trace.events) do -- the same numbers on both ranks
        if e.kind == "collective" then io.write(rank, ":", e.name, e.comm.sequence, "\n") end
      end]])
    for _, name in ipairs {"all_reduce", "broadcast"} do
      assert.equal(text:match("0:" .. name .. "(%d+)"), text:match("1:" .. name .. "(%d+)"), text)
    end
  end)

  it("are written to a trace for each rank, which can be merged", function()
    local folder = program.folder()
    local path = folder .. "/out.json"
    ranks.check(2, [[
      local x = lt.ones(10)
      dist.barrier()
      if rank == 0 then
        local start = lt.clock()
        while lt.clock() - start < 0.2 do end
        dist.send(x, 1)
      else
        dist.recv(x, 0)
      end
      dist.all_reduce(x)]], {args = {"--trace", path}})
    local merged = program.run("-e " .. quote(("print(lt.placement.merge_traces %q)"):format(path)))
    assert.equal(0, merged.status, merged.err)
    has(merged.out, "blocked others")
    has_not(merged.out, "not aligned")
    local file <close> = assert(io.open(path))
    local text = file:read "a"
    for _, part in ipairs {'"rank 0"', '"rank 1"', '"host (cpu) communication"', '"all_reduce"',
      '"message"', '"ph":"s"', '"ph":"f","bp":"e"', '"wait for other ranks"'} do
      has(text, part)
    end
    assert.is_nil(io.open(folder .. "/out.rank2.json"))
    program.remove(folder)
  end)

  it("are merged by --nproc, for MPI and for NCCL", function()
    local folder = program.folder()
    local script = program.file [[
      local lt = require "lutra"
      local dist = lt.distributed
      dist.init_process_group()
      local device = "cuda:" .. dist.get_node_local_rank()
      lt.cuda.set_device(dist.get_node_local_rank())
      dist.barrier()
      dist.all_reduce(lt.ones(10, {device = device}))
      dist.destroy_process_group()]]
    local path = folder .. "/out.json"
    local result = program.run(("--nproc 2 --emulate cuda:2 --trace %s %s"):format(path, script))
    os.remove(script)
    assert.equal(0, result.status, result.err)
    has(result.err, "blocked others")
    local file <close> = assert(io.open(path))
    local text = file:read "a"
    program.remove(folder)
    for _, part in ipairs {'"host (cpu) communication"', '"cuda:0 communication"',
      '"cuda:1 communication"', '"rank 1"'} do
      has(text, part)
    end
  end)

  it("of DistributedDataParallel have no findings", function()
    local script = program.file [[
      local lt = require "lutra"
      local dist, nn = lt.distributed, lt.nn
      dist.init_process_group()
      lt.manual_seed(0)
      local net = nn.parallel.DistributedDataParallel(nn.Linear(4, 1), {bucket_cap_mb = 1e-5})
      local opt = lt.optim.SGD(net:parameters(), {lr = 0.1})
      local x, y = lt.randn(16, 4), lt.randn(16, 1)
      for step = 1, 20 do
        opt:zero_grad()
        lt.F.mse_loss(net(x), y):backward()
        opt:step()
      end
      dist.destroy_process_group()]]
    local result = program.run("--nproc 2 --lint " .. script)
    os.remove(script)
    assert.equal(0, result.status, result.err)
    has(result.err, "rank 0: no findings")
    has(result.err, "rank 1: no findings")
  end)

  it("are shown for all ranks, also when one ends before the others", function()
    if not ranks.available() then return pending "needs mpirun" end
    for _, ending in ipairs{"", "os.exit(0)", "os.exit(true, true)"} do
      local script = program.file([[
        local lt = require "lutra"
        local dist = lt.distributed
        dist.init_process_group()
        for _ = 1, 10 do dist.all_reduce(lt.ones(100)) end
        if dist.get_rank() == 0 then os.execute "sleep 1" end
        print "done"
        ]] .. ending)
      local result = program.run("--nproc 2 --lint " .. script)
      os.remove(script)
      assert.equal(1, result.status)
      for rank = 0, 1 do
        program.has(result.out, ("rank %d: done"):format(rank))
        program.has(result.err, ("rank %d: 1 finding"):format(rank))
      end
    end
  end)
end)
