-- Every collective, dtype and reduction on 1 to 5 ranks, against a slow reference: each rank knows
-- what all ranks send, and computes the result by itself, element by element.

local ranks = require "ranks_support"

if not ranks.available() then
  it("collectives on several ranks", function() pending "needs mpirun" end)
  return
end

-- What the programs share: `value(r, i)` is element i of rank r in each dtype, exact in all of
-- them; `tensor(r, n, dtype)` is the vector of rank r.
local common = [[
local DTYPES = {"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16",
  "float32", "float64", "complex64", "complex128"}
local function is_complex(dtype) return dtype:find "complex" ~= nil end
local function value(r, i, dtype)
  if dtype == "bool" then return (r + i) % 3 == 0 end
  if is_complex(dtype) then return lt.complex(((r + 2) * i) % 5 - 1, (r + i) % 3) end
  if dtype == "uint8" then return ((r + 2) * i) % 3 + 1 end
  return ((r + 2) * i) % 5 - 1
end
local function tensor(r, n, dtype)
  if n == 0 then return lt.empty{0, dtype = dtype} end
  local list = {}
  for i = 1, n do list[i] = value(r, i, dtype) end
  return lt.tensor(list, {dtype = dtype})
end
local function same(a, b, what)
  local close = what:find "avg complex" and lt.allclose or lt.equal -- another order of divisions
  assert(a.dtype == b.dtype and close(a, b), ("%s\ngot %s\nexpected %s"):format(what,
    tostring(a), tostring(b)))
end
-- The reduction of element i of all ranks, one after another.
local steps = {
  sum = function(a, b, dtype) if dtype == "bool" then return a or b end return a + b end,
  max = function(a, b, dtype) if dtype == "bool" then return a or b end return math.max(a, b) end,
  min = function(a, b, dtype) if dtype == "bool" then return a and b end return math.min(a, b) end,
  product = function(a, b, dtype) if dtype == "bool" then return a and b end return a * b end,
}
local function reduced(n, dtype, op)
  if n == 0 then return lt.empty{0, dtype = dtype} end
  local list = {}
  for i = 1, n do
    local all = value(0, i, dtype)
    for r = 1, size - 1 do
      all = steps[op == "avg" and "sum" or op](all, value(r, i, dtype), dtype)
    end
    list[i] = all
  end
  local x = lt.tensor(list, {dtype = dtype})
  return op == "avg" and x / size or x
end
local function ops(dtype)
  if is_complex(dtype) then return {"sum", "avg"} end
  if dtype:find "float" then return {"sum", "avg", "max", "min", "product"} end
  return {"sum", "max", "min", "product"}
end
]]

describe("collectives", function()
  for count = 1, 5 do
    it(("are right for all dtypes and sizes on %d ranks"):format(count), function()
      ranks.check(count, common .. [[
for _, dtype in ipairs(DTYPES) do
  for _, n in ipairs{0, 1, 7} do
    local x = tensor(rank, n, dtype)
    local what = ("%s of %d on rank %d"):format(dtype, n, rank)
    for _, op in ipairs(ops(dtype)) do
      local y = x:clone()
      dist.all_reduce(y, op)
      same(y, reduced(n, dtype, op), "all_reduce " .. op .. " " .. what)
      local z = x:clone()
      dist.reduce(z, size - 1, op)
      same(z, rank == size - 1 and reduced(n, dtype, op) or x, "reduce " .. op .. " " .. what)
    end
    local b = x:clone()
    dist.broadcast(b, size - 1)
    same(b, tensor(size - 1, n, dtype), "broadcast " .. what)
    local list, all = {}, {}
    for r = 1, size do list[r], all[r] = lt.zeros_like(x), tensor(r - 1, n, dtype) end
    dist.all_gather(list, x)
    for r = 1, size do same(list[r], all[r], "all_gather " .. what) end
    local whole = lt.zeros{size * n, dtype = dtype}
    dist.all_gather_into_tensor(whole, x)
    same(whole, lt.cat(all), "all_gather_into_tensor " .. what)
    for r = 1, size do list[r] = lt.zeros_like(x) end
    dist.gather(x, rank == 0 and list or nil, 0)
    if rank == 0 then for r = 1, size do same(list[r], all[r], "gather " .. what) end end
    local s = lt.zeros_like(x)
    dist.scatter(s, rank == size - 1 and all or nil, size - 1)
    same(s, all[rank + 1], "scatter " .. what)
  end
end
]])
    end)

    it(("scatter and exchange on %d ranks"):format(count), function()
      ranks.check(count, common .. [[
-- Piece p of what rank r holds.
local function piece(r, p, dtype) return tensor(r + p, 3, dtype) end
for _, dtype in ipairs(DTYPES) do
  local pieces, expected = {}, {}
  for p = 1, size do
    pieces[p], expected[p] = piece(rank, p, dtype), piece(p - 1, rank + 1, dtype)
  end
  for _, op in ipairs(ops(dtype)) do
    local sum = {}
    for i = 1, 3 do
      local all = value(rank + 1, i, dtype)
      for r = 1, size - 1 do
        all = steps[op == "avg" and "sum" or op](all, value(r + rank + 1, i, dtype), dtype)
      end
      sum[i] = all
    end
    sum = lt.tensor(sum, {dtype = dtype})
    if op == "avg" then sum = sum / size end
    local out = lt.zeros_like(pieces[1])
    dist.reduce_scatter(out, pieces, op)
    same(out, sum, "reduce_scatter " .. op .. " " .. dtype)
    out = lt.zeros_like(out)
    dist.reduce_scatter_tensor(out, lt.cat(pieces), op)
    same(out, sum, "reduce_scatter_tensor " .. op .. " " .. dtype)
  end
  local outs = {}
  for p = 1, size do outs[p] = lt.zeros_like(pieces[p]) end
  dist.all_to_all(outs, pieces)
  for p = 1, size do same(outs[p], expected[p], "all_to_all " .. dtype) end
  local out = lt.zeros_like(lt.cat(pieces))
  dist.all_to_all_single(out, lt.cat(pieces))
  same(out, lt.cat(expected), "all_to_all_single " .. dtype)
end
-- Rank r sends p rows to rank p - 1, of two numbers each.
local rows, ins, outs = {}, {}, {}
for p = 1, size do
  ins[p], outs[p] = p, rank + 1
  rows[p] = full({p, 2}, rank * 10 + p)
end
local out = lt.zeros{size * (rank + 1), 2}
dist.all_to_all_single(out, lt.cat(rows), outs, ins)
for p = 1, size do
  local got = out:narrow(1, (p - 1) * (rank + 1) + 1, rank + 1)
  same(got:contiguous(), full({rank + 1, 2}, (p - 1) * 10 + rank + 1), "uneven all_to_all")
end
]])
    end)
  end

  it("take views in lists, scalars, several dims, large tensors, and async works", function()
    ranks.check(3, common .. [[
local views = {}
for r = 1, size do views[r] = lt.zeros(4, 3):t() end
dist.all_gather(views, full({3, 4}, rank))
for r = 1, size do same(views[r]:contiguous(), full({3, 4}, r - 1), "views") end
local scalar = lt.tensor(rank + 1.0)
dist.all_reduce(scalar)
assert(scalar.ndim == 0 and scalar:item() == 6)
local scalars, got, empty = {}, {}, {}
for r = 1, size do scalars[r], got[r] = lt.tensor(10.0 * rank + r), lt.tensor(0.0) end
dist.all_to_all(got, scalars)
for r = 1, size do assert(got[r].ndim == 0 and got[r]:item() == 10 * (r - 1) + rank + 1) end
for r = 1, size do empty[r] = lt.empty(0, 4) end
dist.all_to_all(empty, empty)
assert(empty[2].shape[2] == 4)
local big, cube = full({1000003}, rank + 1), full({3, 5, 7}, rank + 1)
local works = {dist.all_reduce(big, {async_op = true}),
  dist.all_reduce(cube, {op = "max", async_op = true})}
local work
local busy = lt.randn(50, 50) -- the program computes meanwhile
for _ = 1, 20 do busy = (busy:mm(busy)):tanh() end
for _, w in ipairs(works) do assert(w:wait()); assert(w:is_completed() and w:is_success()) end
same(big, full({1000003}, 6), "large")
same(cube, full({3, 5, 7}, 3), "cube")
for r = 1, size do views[r] = lt.zeros(4, 3):t() end
work = dist.all_gather(views, full({3, 4}, rank), {async_op = true})
while not work:is_completed() do end -- in place of wait
for r = 1, size do same(views[r]:contiguous(), full({3, 4}, r - 1), "polled") end
assert(work:is_success() and work:wait())
-- A work that nobody waits for ends too, and its tensor may be collected meanwhile.
dist.all_reduce(lt.ones(100000), {async_op = true})
collectgarbage()
local freed = lt.ones(200000)
work = dist.all_reduce(freed, {async_op = true})
freed:free()
work:wait()
dist.barrier()
local nan = lt.tensor({rank == 1 and 0/0 or 1, 2}, {dtype = "float32"})
dist.all_reduce(nan, "max")
assert(nan[1]:item() ~= nan[1]:item() and nan[2]:item() == 2)
assert(dist.ReduceOp.SUM == "sum")
local version = big:_version()
dist.all_reduce(big)
assert(big:_version() > version, "the version of a tensor that is written")
]])
  end)

  it("of bfloat16 round at each step, in float", function()
    ranks.check(2, common .. [[
-- 256 + 1 is not a bfloat16: the nearest even one is 256.
local x = lt.tensor({rank == 0 and 256 or 1}, {dtype = "bfloat16"})
dist.all_reduce(x)
assert(x:item() == 256)
x = lt.tensor({rank == 0 and 256 or 3}, {dtype = "bfloat16"})
dist.all_reduce(x) -- 259 is between 258 and 260, and rounds to 260, the even one
assert(x:item() == 260)
]])
  end)
end)

describe("messages", function()
  it("arrive in order, by tags, from any rank, in a ring, and as large tensors", function()
    ranks.check(3, common .. [[
local right, left = (rank + 1) % size, (rank - 1) % size
for _, dtype in ipairs(DTYPES) do
  local x, y = tensor(rank, 9, dtype), lt.zeros{9, dtype = dtype}
  local works = dist.batch_isend_irecv{dist.P2POp(dist.isend, x, right),
    dist.P2POp(dist.irecv, y, left)}
  for _, w in ipairs(works) do w:wait() end
  same(y, tensor(left, 9, dtype), "ring " .. dtype)
end
if rank == 0 then
  for i = 1, 3 do dist.send(full({2}, i), 1) end
  dist.send(full({1}, 7), 1, {tag = 5})
  dist.send(full({1}, 8), 1, {tag = 4})
  dist.send(full({2000001}, 3), 2)
  local seen = {}
  for _ = 1, 2 do
    local x = lt.zeros(1)
    local from = dist.recv(x)
    assert(x:item() == from * 100)
    seen[from] = true
  end
  assert(seen[1] and seen[2])
elseif rank == 1 then
  local x = lt.zeros(1)
  dist.recv(x, {src = 0, tag = 4}); assert(x:item() == 8)
  dist.recv(x, {src = 0, tag = 5}); assert(x:item() == 7)
  x = lt.zeros(2)
  for i = 1, 3 do assert(dist.recv(x, 0) == 0); assert(x[1]:item() == i) end
  dist.send(full({1}, 100), 0)
else
  local x = lt.zeros(2000001)
  local w = dist.irecv(x, 0)
  w:wait()
  assert(x:min():item() == 3 and x:max():item() == 3 and w:source_rank() == 0)
  dist.isend(full({1}, 200), 0):wait()
end
]])
  end)

  it("go to the first receive that they fit", function()
    ranks.check(3, [[
if rank == 0 then
  local list, works = {}, {}
  for i = 1, 4 do
    list[i] = lt.zeros(1)
    works[i] = dist.irecv(list[i], {src = i < 4 and 1 or nil})
  end
  works[4]:wait() -- of rank 2, as rank 1 has not sent
  assert(works[4]:source_rank() == 2 and list[4]:item() == 2)
  dist.barrier()
  for i = 1, 3 do
    works[i]:wait()
    assert(list[i]:item() == 10 * i)
  end
else
  if rank == 2 then dist.send(full({1}, 2), 0) end
  dist.barrier()
  for i = 1, 3 do
    if rank == 1 then dist.send(full({1}, 10 * i), 0) end
  end
end
]])
  end)

  it("of another size, to oneself or without a rank are errors", function()
    ranks.check(2, [[
local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(text, 1, true), tostring(message))
end
for _, n in ipairs {0, 3, 8, 2000, 100000} do
  if rank == 0 then
    dist.send(full({n}, 1), 1)
  else
    local x = lt.zeros(5)
    fails("recv: expected 5 elements of float32 from rank 0, got " .. n, dist.recv, x, 0)
    assert(lt.equal(x, lt.zeros(5)))
  end
end
if rank == 0 then
  dist.send(lt.ones{3, dtype = "int8"}, 1)
else
  fails("recv: expected 3 elements of float32 from rank 0, got 3 bytes", dist.recv, lt.zeros(3), 0)
end
fails("expected another rank", dist.send, lt.ones(3), rank)
fails("expected a rank of the process group", dist.send, lt.ones(3), 7)
fails("expected an integer from 0 to 32767", dist.isend, lt.ones(3), 1 - rank, {tag = -1})
fails("at least one P2POp", dist.batch_isend_irecv, {})
fails("expected a P2POp at 1", dist.batch_isend_irecv, {3})
local op = dist.P2POp(dist.isend, lt.ones(3), 1 - rank)
fails("expected a P2POp at 2 of argument 'p2p_op_list', got nil", dist.batch_isend_irecv,
  {op, nil, op})
local other = dist.P2POp(dist.isend, lt.ones(3), 1 - rank, dist.new_group{1, 0})
fails("expected messages of one process group, got one of another at 2 of argument 'p2p_op_list'",
  dist.batch_isend_irecv, {op, other})
fails("expected isend or irecv", dist.P2POp, dist.send, lt.ones(1), 1 - rank)
fails("contiguous", dist.isend, lt.ones(3, 2):t(), 1 - rank)
]])
  end)
end)

describe("objects", function()
  it("of all kinds travel: tables, functions, tensors, nil", function()
    ranks.check(3, [[
local own = {rank = rank, list = {1, 2, {deep = "x"}}, x = full({2, 3}, rank),
  f = function(y) return y + rank end}
own.self = own
local all = {}
dist.all_gather_object(all, own)
for r = 1, size do
  local o = all[r]
  assert(o.rank == r - 1 and o.list[3].deep == "x" and o.f(10) == 10 + r - 1 and o.self == o)
  assert(lt.equal(o.x, full({2, 3}, r - 1)))
end
local list = rank == 2 and {1, nil, "three", n = 3} or {n = 3}
dist.broadcast_object_list(list, 2)
assert(list[1] == 1 and list[2] == nil and list[3] == "three")
local got = rank == 1 and {} or nil
dist.gather_object({rank}, got, 1)
if rank == 1 then for r = 1, size do assert(got[r][1] == r - 1) end end
local out = {}
dist.scatter_object_list(out, rank == 0 and {"a", {b = 2}, false} or nil, 0)
if rank == 0 then assert(out[1] == "a") end
if rank == 1 then assert(out[1].b == 2) end
if rank == 2 then assert(out[1] == false) end
if rank == 0 then
  dist.send_object_list({"x", {y = 1}}, 2)
elseif rank == 2 then
  local l = {}
  assert(dist.recv_object_list(l) == 0 and l[1] == "x" and l[2].y == 1)
end
local empty = {}
dist.all_gather_object(empty, lt.empty{0, 4})
assert(tostring(empty[2].shape) == "{0, 4}")
local ok, message = pcall(dist.all_gather_object, {}, coroutine.create(print))
assert(not ok and message:find("all_gather_object: cannot send the value", 1, true), message)
]])
  end)

  it("that one rank cannot send are errors on all ranks, at once", function()
    ranks.check(3, [[
local thread = coroutine.create(print)
-- The function raises `own` on rank 1, which the others get in the difference of the calls.
local function fails(own, f, ...)
  local ok, message = pcall(f, ...)
  local expected = own
  if rank ~= 1 then expected = "rank 1: cannot make the call: " .. own:match ": (.*)" end
  assert(not ok and tostring(message):find(expected, 1, true), tostring(message))
  assert(message:find(": " .. own:match "^[%w_]+: "), message) -- the name of the function
end
local coroutines = "cannot send the value[1]: it is a coroutine"
fails("all_gather_object: cannot send the value: it is a coroutine", dist.all_gather_object, {},
  rank == 1 and thread or 0)
fails("gather_object: cannot send the value: it is a coroutine", dist.gather_object,
  rank == 1 and thread or 0, rank == 0 and {} or nil)
fails("gather_object: expected a list for argument 'object_gather_list' on rank 0 only",
  dist.gather_object, 0, rank < 2 and {} or nil)
fails("broadcast_object_list: " .. coroutines, dist.broadcast_object_list,
  {rank == 1 and thread or 0}, 1)
fails("scatter_object_list: cannot send the value: it is a coroutine", dist.scatter_object_list,
  {}, rank == 1 and {1, thread, 3} or nil, 1)
fails("scatter_object_list: expected a list of 3 values for argument 'scatter_object_input_list', "
  .. "one for each rank, got 2", dist.scatter_object_list, {}, rank == 1 and {1, 2} or nil, 1)
local list = {rank}
dist.broadcast_object_list(list, 2)
assert(list[1] == 2)
]], {setup = "dist.init_process_group{timeout = 20}", seconds = 60})
  end)
end)

describe("process groups", function()
  it("with the backend nccl need a CUDA device", function()
    local text, ok = ranks.run(1, "", {setup = 'dist.init_process_group "nccl"',
      env = {CUDA_VISIBLE_DEVICES = "-1"}})
    assert(not ok and text:find('init_process_group: expected an available device, got "cuda"', 1,
      true), text)
  end)

  it("are not ended with the Lua states of workers", function()
    ranks.check(2, [[
dist.destroy_process_group()
local Numbers = lt.data.Dataset:extend "Numbers"
function Numbers.__len() return 4 end
function Numbers.get(_, i) return package.loaded.lutra.distributed.is_initialized() and 0 or i end
local sum = 0
for x in lt.data.DataLoader(Numbers(), {batch_size = 2, num_workers = 2}):iter() do
  sum = sum + x:sum():item()
end
assert(sum == 10)
collectgarbage()
dist.init_process_group()
dist.barrier()
]])
  end)

  it("of some ranks have ranks of their own", function()
    ranks.check(4, [[
local even, odd = dist.new_group{0, 2}, dist.new_group({3, 1}, {timeout = 60, sort_ranks = false})
local sorted = dist.new_group{2, 1, 0}
assert(dist.get_rank(sorted) == (rank < 3 and rank or -1))
local own, other = rank % 2 == 0 and even or odd, rank % 2 == 0 and odd or even
assert(other == dist.GroupMember.NON_GROUP_MEMBER)
assert(dist.get_rank(other) == -1 and dist.get_world_size(other) == -1)
assert(dist.get_world_size(own) == 2)
assert(dist.get_rank(odd) == ({[3] = 0, [1] = 1})[rank] or rank % 2 == 0)
local x = full({3}, rank)
dist.all_reduce(x, {group = own})
assert(x[1]:item() == (rank % 2 == 0 and 2 or 4))
dist.all_reduce(x, {group = other}) -- does nothing
assert(x[1]:item() == (rank % 2 == 0 and 2 or 4))
-- Roots are ranks of the job: rank 3 is the first of `odd`.
x = full({1}, rank)
dist.broadcast(x, {src = rank % 2 == 0 and 2 or 3, group = own})
assert(x:item() == (rank % 2 == 0 and 2 or 3))
if rank % 2 == 1 then
  assert(dist.get_global_rank(odd, 0) == 3 and dist.get_group_rank(odd, 1) == 1)
  assert(dist.get_process_group_ranks(odd)[1] == 3)
  if rank == 3 then
    dist.send(lt.ones(1), 1, odd)
  else
    assert(dist.recv(lt.zeros(1), {group = odd}) == 3)
  end
end
-- Calls of two groups in different orders do not block each other.
local all, w1, w2 = lt.ones(1000), nil, nil
local part = lt.ones(1000)
if rank < 2 then
  w1 = dist.all_reduce(all, {async_op = true})
  w2 = dist.all_reduce(part, {group = own, async_op = true})
else
  w2 = dist.all_reduce(part, {group = own, async_op = true})
  w1 = dist.all_reduce(all, {async_op = true})
end
w2:wait(); w1:wait()
assert(all[1]:item() == 4 and part[1]:item() == 2)
dist.destroy_process_group(own)
assert(not pcall(dist.all_reduce, x, {group = own}))
assert(dist.get_backend() == "mpi,nccl" and dist.is_mpi_available() and dist.is_available())
assert(tostring(dist.group.WORLD):find("rank %d of 4"))
]])
  end)

  it("are destroyed in their order, also those that the program has dropped", function()
    ranks.check(2, [[
local numbers, order = {}, {}
for i = 1, 20 do numbers[dist.new_group().mpi] = i end
collectgarbage()
local class = debug.getmetatable(next(numbers)).__index
local destroy = class.destroy
class.destroy = function(communicator)
  order[#order + 1] = numbers[communicator] or "world"
  destroy(communicator)
end
local last = dist.new_group()
numbers[last.mpi] = 21
dist.destroy_process_group(last)
dist.destroy_process_group()
assert(#order == 22 and order[1] == 21 and order[22] == "world", table.concat(order, " "))
for i = 1, 20 do assert(order[i + 1] == i, table.concat(order, " ")) end
]])
  end)

  it("are needed, and created once, by numbers that fit the job", function()
    ranks.check(2, [[
local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(text, 1, true), tostring(message))
end
fails("there is no process group", dist.all_reduce, lt.ones(1))
fails("there is no process group", dist.get_rank)
fails('expected "mpi" or "nccl"', dist.init_process_group, "gloo")
fails("expected the number of ranks for argument 'world_size', 2, got 3", dist.init_process_group,
  {world_size = 3})
fails("positive number of seconds", dist.init_process_group, {timeout = 0})
fails("init_process_group: expected a positive number of seconds below 1e9 for argument 'timeout', "
  .. "got inf", dist.init_process_group, {timeout = math.huge})
fails('expected "env://"', dist.init_process_group, {init_method = "tcp://1.2.3.4:5"})
assert(not dist.is_initialized())
dist.init_process_group("mpi")
fails("there is a process group already", dist.init_process_group)
fails("expected ranks from 0 to 1", dist.new_group, {5})
fails("got 1 twice", dist.new_group, {1, 1})
fails('expected "mpi" or "nccl"', dist.new_group, {backend = "gloo"})
fails("new_group: expected a positive number of seconds below 1e9 for argument 'timeout', got inf",
  dist.new_group, {ranks = {0}, timeout = math.huge})
fails("monitored_barrier: expected a positive number of seconds for argument 'timeout', got 0",
  dist.monitored_barrier, {timeout = 0})
-- An argument that is wrong on one rank is an error before it is blocked on the others.
if dist.get_rank() == 0 then
  fails("for argument 'timeout', got -1", dist.new_group, {timeout = -1})
end
assert(dist.get_world_size(dist.new_group()) == 2)
fails("expected a process group for argument 'group'", dist.all_reduce, lt.ones(1), {group = 3})
fails("expected a rank of the process group for argument 'src', got 9\nhint: its ranks are 0 to 1",
  dist.broadcast, lt.ones(1), 9)
local other = dist.new_group{1}
assert(dist.get_rank() == 1 or tostring(other) == "GroupMember.NON_GROUP_MEMBER")
fails("expected a rank of the process group for argument 'src', got 7\nhint: its ranks are 0, 1, "
  .. "as numbered in the job", dist.broadcast, lt.ones(1), 7, dist.new_group{0, 1})
fails("expected sum, avg, max, min or product", dist.all_reduce, lt.ones(1), "mean")
fails('ReduceOp has no field "MEAN"\nhint: its fields are AVG, MAX, MIN, PRODUCT, SUM',
  function() return dist.ReduceOp.MEAN end)
fails('ReduceOp has no field "max"', function() return dist.ReduceOp.max end)
dist.destroy_process_group()
assert(not dist.is_initialized())
dist.init_process_group() -- a second time
local x = lt.ones(2)
dist.all_reduce(x)
assert(x[1]:item() == 2)
assert(dist.get_node_local_rank() == dist.get_rank())
]], {setup = ""})
  end)
end)

describe("calls that differ between the ranks", function()
  -- Runs a program on 3 ranks, in which fails(f, ...) returns the message of the error.
  local function check(body, options)
    return ranks.check(3, [[
local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  return tostring(message)
end
local function has(message, text) assert(message:find(text, 1, true), message) end
]] .. body, options)
  end

  it("raise errors on all ranks that name them, and the group stays usable", function()
    check [[
local m = fails(dist.all_reduce, lt.ones(rank == 1 and 4 or 3))
has(m, "ranks 0, 2: all_reduce (sum) of float32, shape {3}")
has(m, "rank 1: all_reduce (sum) of float32, shape {4}")
m = fails(dist.all_reduce, lt.ones{3, dtype = rank == 2 and "float64" or "float32"})
has(m, "rank 2: all_reduce (sum) of float64, shape {3}")
m = fails(dist.all_reduce, lt.ones(3), rank == 0 and "max" or "sum")
has(m, "rank 0: all_reduce (max)")
m = fails(dist.broadcast, lt.ones(3), rank == 0 and 0 or 1)
has(m, "ranks 1, 2: broadcast of float32, shape {3}, src 1")
m = fails(rank == 0 and dist.barrier or function() dist.all_reduce(lt.ones(2)) end)
has(m, "rank 0: barrier")
m = fails(dist.all_reduce, rank == 1 and lt.ones(3, 2):t() or lt.ones(2, 3))
has(m, rank == 1 and "on rank 1: expected a contiguous tensor for argument 'tensor'"
  or "rank 1: cannot make the call: expected a contiguous tensor for argument 'tensor'")
m = fails(dist.all_reduce, rank == 2 and lt.ones{3, device = "meta"} or lt.ones(3))
has(m, rank == 2 and 'on rank 2: expected a tensor on the CPU or a CUDA device'
  or "rank 2: cannot make the call: expected a tensor on the CPU or a CUDA device")
m = fails(dist.all_reduce, lt.ones{3, dtype = "int32"}, "avg")
has(m, "expected a floating or complex dtype for the reduction avg, got int32")
m = fails(dist.all_reduce, lt.ones{3, dtype = "complex64"}, "product")
has(m, "the reduction product is not defined for complex64")
m = fails(dist.all_gather, {lt.ones(2)}, lt.ones(2))
has(m, "expected a list of 3 tensors for argument 'tensor_list', one for each rank, got 1")
m = fails(dist.gather, lt.ones(2), nil, 1)
has(m, rank == 1 and "expected a list for argument 'gather_list'" or "rank 1: cannot make the call")
m = fails(dist.scatter, lt.ones(2), rank < 2 and {lt.ones(2), lt.ones(2), lt.ones(2)} or nil, 1)
has(m, rank == 0 and "scatter: on rank 0: expected nil for argument 'scatter_list', as this rank "
  .. "is not src, got a list" or "rank 0: cannot make the call: expected nil")
m = fails(dist.scatter, lt.ones(2), rank == 1 and {lt.ones(2), 3, lt.ones(2)} or nil, 1)
has(m, rank == 1 and "expected tensors in argument 'scatter_list', got 3 at 2"
  or "rank 1: cannot make the call")
m = fails(dist.all_gather_into_tensor, lt.ones(5), lt.ones(2))
has(m, "all_gather_into_tensor: on rank " .. rank .. ": expected 6 elements for argument "
  .. "'output_tensor'")
m = fails(dist.reduce_scatter_tensor, lt.ones(rank == 0 and 2 or 1), lt.ones(rank == 0 and 6 or 3))
has(m, "reduce_scatter_tensor: the ranks of the process group make different calls")
m = fails(dist.reduce_scatter_tensor, lt.ones(2), lt.ones(5))
has(m, "expected 6 elements for argument 'input'")
m = fails(dist.all_to_all_single, lt.ones(4), lt.ones(4))
has(m, "expected a first dimension that is divisible by 3 ranks, got 4")
m = fails(dist.all_to_all_single, lt.tensor(1.0), lt.ones(3))
has(m, "expected a tensor with a first dimension for argument 'output', got shape {}")
m = fails(dist.all_to_all_single, lt.ones(3, 2), lt.ones(3))
has(m, "expected 3 elements for argument 'output', as the input has, got 6")
for _, n in ipairs {7, 2000, 100000} do
  m = fails(dist.all_to_all_single, lt.ones(6), lt.ones(rank == 1 and 4 + n or 6), {2, 2, 2},
    {2, 2, rank == 1 and n or 2})
  has(m, "rank 1 sends " .. n .. " to rank 2, which expects 2")
  local ins, outs = {}, {}
  for i = 1, 3 do ins[i], outs[i] = lt.ones(n), lt.ones(rank == 2 and i == 1 and n - 1 or n) end
  m = fails(dist.all_to_all, outs, ins)
  has(m, "rank 0 sends " .. n .. " to rank 2, which expects " .. n - 1)
end
m = fails(dist.all_to_all_single, lt.empty{2^31 | 0, dtype = "uint8"},
  lt.empty{0, dtype = "uint8"}, {1, 2^31 - 1 | 0, 0}, {0, 0, 0})
has(m, "all_to_all_single: expected at most 2147483647 elements in all pieces, got 2147483648")
m = fails(dist.all_to_all_single, lt.ones(4), lt.ones(4), {1, 1, 1}, {1, 1, 2})
has(m, "expected 3 sizes with the sum 4 for argument 'output_split_sizes'")
m = fails(dist.scatter_object_list, {}, {1, 2}, rank)
has(m, "expected a list of 3 values for argument 'scatter_object_input_list', one for each rank, "
  .. "got 2")
local x = lt.ones(2)
dist.all_reduce(x)
assert(x[1]:item() == 3)
]]
  end)

  it("count one tensor, element or size in the singular", function()
    ranks.check(1, [[
local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(text, 1, true), tostring(message))
end
local x = lt.ones(1)
fails("expected a list of 1 tensor for argument 'tensor_list', one for each rank, got 2",
  dist.all_gather, {x, x}, x)
fails("expected a list of 1 tensor for argument 'output_tensor_list'", dist.all_to_all, {}, {x})
fails("expected 1 element for argument 'output_tensor', 1 for each of 1 rank, got 2,000",
  dist.all_gather_into_tensor, lt.ones(2000), x)
fails("expected 1 size with the sum 1 for argument 'input_split_sizes', got 2 with the sum 1",
  dist.all_to_all_single, x, x, nil, {1, 0})
fails("expected a list of 1 value for argument 'scatter_object_input_list', one for each rank, "
  .. "got nil", dist.scatter_object_list, {})
]])
  end)

  it("are shown with ranks of the job in other groups", function()
    check [[
local group = dist.new_group{2, 1}
if rank > 0 then
  local m = fails(dist.broadcast, lt.ones(rank), {src = 2, group = group})
  has(m, "rank 1: broadcast of float32, shape {1}, src 2")
  has(m, "rank 2: broadcast of float32, shape {2}, src 2")
  if rank == 2 then
    dist.send(lt.ones(3), 1, group)
  else
    m = fails(dist.recv, lt.zeros(5), {src = 2, group = group})
    has(m, "recv: expected 5 elements of float32 from rank 2, got 3")
    local work = dist.irecv(lt.zeros(5), {group = group})
    m = fails(work.wait, work, 0.1)
    has(m, "recv: timed out after 0.1 s on rank 1; the call still runs")
  end
  dist.barrier(group)
  if rank == 2 then dist.send(lt.ones(5), 1, group) end
end
]]
  end)

  it("are shown with their lines with LUTRA_DISTRIBUTED_DEBUG=detail", function()
    check([[
local m = fails(function()
  if rank == 0 then
    dist.all_reduce(lt.ones(3))
  else
    dist.broadcast(lt.ones(3), 0)
  end
end)
assert(m:find "rank 0: all_reduce %(sum%) of float32, shape {3}, at [^\n]*%.lua:%d+", m)
assert(m:find "ranks 1, 2: broadcast of float32, shape {3}, src 0, at [^\n]*%.lua:%d+", m)
]], {env = {LUTRA_DISTRIBUTED_DEBUG = "detail"}})
  end)

  it("are not compared with LUTRA_DISTRIBUTED_DEBUG=off, and another value is an error", function()
    check([[
local x = full({10000}, rank)
dist.all_reduce(x)
assert(x[1]:item() == 3)
dist.barrier()
]], {env = {LUTRA_DISTRIBUTED_DEBUG = "off"}})
    local text, ok = ranks.run(1, "", {env = {LUTRA_DISTRIBUTED_DEBUG = "loud"}})
    assert(not ok)
    assert(text:find('expected off, info or detail, got "loud"', 1, true), text)
  end)
end)

describe("a rank that does not come", function()
  it("is named after the timeout, and the group is given up", function()
    local text = ranks.run(3, [[
if rank == 1 then
  os.execute "sleep 8"
else
  if rank == 0 then os.execute "sleep 1" end -- rank 2 has given up when rank 0 asks it
  local ok, message = pcall(dist.all_reduce, lt.ones(2))
  assert(not ok and message:find("timed out after 2.5 s, on rank " .. rank .. " of 3", 1, true))
  assert(message:find "ranks 0, 2: in call %d+: all_reduce", message)
  assert(message:find "rank 1: in no call; its last was call 1: barrier", message)
  ok, message = pcall(dist.all_reduce, lt.ones(2))
  assert(not ok and message:find("an earlier call of it timed out", 1, true), message)
  print("ended as expected")
  os.execute "sleep 4" -- the other rank asks this one
end
os.exit(7)
]], {setup = "dist.init_process_group{timeout = 2.5}; dist.barrier()", seconds = 60})
    local _, times = text:gsub("ended as expected", "")
    assert.equal(2, times, text)
  end)

  it("is named by monitored_barrier, and by wait with a time", function()
    local text = ranks.run(2, [[
if rank == 1 then
  os.execute "sleep 5"
else
  local w = dist.all_reduce(lt.ones(2), {async_op = true})
  local ok, message = pcall(w.wait, w, 0.5)
  assert(not ok and message:find("timed out after 0.5 s on rank 0; the call", 1, true), message)
  print("waited")
end
os.exit(7)
]], {seconds = 60})
    assert(text:find "waited", text)
    text = ranks.run(2, [[
if rank == 1 then
  os.execute "sleep 5"
else
  local ok, message = pcall(dist.monitored_barrier, {timeout = 1})
  assert(not ok and message:find(" monitored_barrier: timed out after 1 s", 1, true), message)
  assert(message:find("rank 1: has made no call of this process group", 1, true), message)
  print("ended")
end
os.exit(7)
]], {seconds = 60})
    assert(text:find "ended", text)
  end)
end)
