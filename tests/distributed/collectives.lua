-- Runs each collective at a few sizes on all ranks of the job, and compares the results with those
-- computed from what every rank is known to have. Rank 0 prints a line "ok NAME" for each; a wrong
-- value is an error, which ends the job. Run by tests/distributed/namespaces.

local lt = require "lutra"
local dist = lt.distributed

dist.init_process_group{timeout = 60}
local rank, size = dist.get_rank(), dist.get_world_size()
local last = size - 1

-- Returns the values of rank r: integers that float32 has exactly, different on each rank.
local function values(r, n) return (lt.arange(n):to "float32" % 13) * (r + 1) + r end

-- Returns f applied to the values of all ranks, from rank 0 on.
local function fold(n, f)
  local result = values(0, n)
  for r = 1, last do result = f(result, values(r, n)) end
  return result
end

local function equal(expected, x) assert(lt.equal(expected, x), "wrong values") end

local folds = {
  sum = function(n) return fold(n, function(a, b) return a + b end) end,
  avg = function(n) return fold(n, function(a, b) return a + b end) / size end,
  max = function(n) return fold(n, lt.maximum) end,
  min = function(n) return fold(n, lt.minimum) end,
}

-- Returns the tensors {f(0), f(1), ...}, one for each rank.
local function list(f)
  local tensors = {}
  for r = 0, last do tensors[r + 1] = f(r) end
  return tensors
end

local function empty(n) return function() return lt.zeros(n) end end

-- The piece that rank a has for rank b.
local function piece(n) return function(a, b) return values(a * size + b, n) end end

local checks = {
  broadcast = function(n)
    local x = values(rank, n)
    dist.broadcast(x, last)
    equal(values(last, n), x)
  end,
  all_reduce = function(n)
    for _, op in ipairs{"sum", "avg", "max", "min"} do -- pairs has another order on each rank
      local x = values(rank, n)
      dist.all_reduce(x, {op = op})
      equal(folds[op](n), x)
    end
  end,
  all_reduce_async = function(n)
    local x, y = values(rank, n), values(rank, n)
    local first = dist.all_reduce(x, {async_op = true})
    local second = dist.all_reduce(y, {op = "max", async_op = true})
    second:wait()
    first:wait()
    equal(folds.sum(n), x)
    equal(folds.max(n), y)
  end,
  reduce = function(n)
    local x = values(rank, n)
    dist.reduce(x, last)
    if rank == last then equal(folds.sum(n), x) end
  end,
  all_gather = function(n)
    local out = list(empty(n))
    dist.all_gather(out, values(rank, n))
    for r = 0, last do equal(values(r, n), out[r + 1]) end
    local whole = lt.zeros(size * n)
    dist.all_gather_into_tensor(whole, values(rank, n))
    equal(lt.cat(out), whole)
  end,
  gather = function(n)
    local out = rank == last and list(empty(n)) or nil
    dist.gather(values(rank, n), {gather_list = out, dst = last})
    for r = 0, out and last or -1 do equal(values(r, n), out[r + 1]) end
  end,
  scatter = function(n)
    local x, parts = lt.zeros(n), nil
    if rank == last then parts = list(function(r) return values(r, n) end) end
    dist.scatter(x, {scatter_list = parts, src = last})
    equal(values(rank, n), x)
  end,
  reduce_scatter = function(n)
    local of = piece(n)
    local expected = of(0, rank)
    for r = 1, last do expected = expected + of(r, rank) end
    local parts = list(function(r) return of(rank, r) end)
    local x, y = lt.zeros(n), lt.zeros(n)
    dist.reduce_scatter(x, parts)
    dist.reduce_scatter_tensor(y, lt.cat(parts))
    equal(expected, x)
    equal(expected, y)
  end,
  all_to_all = function(n)
    local of = piece(n)
    local out, parts = list(empty(n)), list(function(r) return of(rank, r) end)
    dist.all_to_all(out, parts)
    for r = 0, last do equal(of(r, rank), out[r + 1]) end
    local whole = lt.zeros(size * n)
    dist.all_to_all_single(whole, lt.cat(parts))
    equal(lt.cat(out), whole)
  end,
  send_recv = function(n)
    local x = lt.zeros(n)
    if rank == 0 then dist.send(values(0, n), last) end
    if rank == last then
      assert(dist.recv(x, {src = 0}) == 0)
      equal(values(0, n), x)
    end
    local after, before = (rank + 1) % size, (rank - 1) % size -- around the ring
    local works = dist.batch_isend_irecv{
      dist.P2POp(dist.isend, values(rank, n), after), dist.P2POp(dist.irecv, x, before)}
    for _, work in ipairs(works) do work:wait() end
    equal(values(before, n), x)
  end,
  objects = function(n)
    local out = {}
    for r = 1, size do out[r] = false end
    dist.all_gather_object(out, {rank = rank, text = ("x"):rep(n)})
    for r = 0, last do assert(out[r + 1].rank == r and #out[r + 1].text == n) end
  end,
  barrier = function()
    dist.barrier()
    dist.monitored_barrier()
  end,
}

local names = {}
for name in pairs(checks) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  for _, n in ipairs{1, 1000, 1 << 18} do
    checks[name](n)
    dist.barrier()
    if rank == 0 then print(("ok %s of %d"):format(name, n)) end
  end
end
