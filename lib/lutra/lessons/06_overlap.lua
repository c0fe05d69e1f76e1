-- Lesson 6: copies from pinned memory on a separate stream, concurrent with computation.

local ROWS, COLUMNS, USED = 4096, 1024, 8

-- Returns a model that uses only the last rows of a batch: these are copied last, so that a
-- computation that does not wait for the copy gets wrong values.
local function make_model(lt)
  local Last = lt.nn.Module:extend "Last"
  function Last:init() self.linear = lt.nn.Linear(COLUMNS, 8) end
  function Last:forward(x) return self.linear(x[{{ROWS - USED + 1, ROWS}}]) end
  return Last():to "cuda:0"
end

return {
  title = "Overlap copy and compute",
  goal = "run(model, batches) never blocks the host, and copies and computes on two streams.",
  devices = 1,
  text = [[
A GPU can copy the next batch while it computes with this one. Three things are needed.

Pinned memory: a GPU can copy asynchronously only from memory that the system does not move.
x:pin_memory() returns a copy of x in such memory. (A DataLoader makes it with pin_memory = true.)

An asynchronous copy: x:to{"cuda:0", non_blocking = true} queues the copy and returns at once.

A second stream: a stream is a queue of the GPU. Work in one stream runs in its order; only work in
different streams can run at the same time.

    copying = lt.cuda.Stream(0)
    lt.cuda.with_stream(copying, f)    -- calls f; its work goes to copying

But now the model may run before the batch has arrived. This makes the computing stream, not the
host, wait for the work queued in copying so far:

    computing = lt.cuda.current_stream(0)
    computing:wait_event(copying:record_event())

The memory of the batch (the variable there) belongs to the stream copying, which may reuse it for
the next batch after this one is freed. Lutra records that the model reads it in the other stream,
and keeps it until that work is done. PyTorch does not: a program has to call record_stream. The
same line works here:

    there:record_stream(computing)]],
  start = [[
function run(model, batches)
  local results = {}
  for i, x in ipairs(batches) do
    local there = x:to "cuda:0"
    results[i] = model(there)
  end
  return results
end
]],
  hints = {
    "First x:pin_memory():to{\"cuda:0\", non_blocking = true}; :check then checks the stream.",
    "Make copying = lt.cuda.Stream(0) once, before the loop. with_stream returns the result of its "
      .. "function: there = lt.cuda.with_stream(copying, function() return pinned:to{...} end).",
    "Between the copy and model(there): computing:wait_event(copying:record_event()), with "
      .. "computing = lt.cuda.current_stream(0).",
  },
  check = function(env, lt, see)
    local run = see.func(env, "run")
    local model, batches = make_model(lt), {}
    for i = 1, 4 do batches[i] = lt.full({ROWS, COLUMNS}, i + lt.rand(1):item()) end
    local trace, results = lt.placement.trace(run, model, {table.unpack(batches)})
    lt.cuda.synchronize(0)
    if type(results) ~= "table" or #results ~= 4 then
      return false, ("expected a table of 4 results from run(model, batches), one for each "
        .. "batch, got %s"):format(type(results) == "table" and "a table of " .. #results
          or see.kind(results))
    end
    local on_cpu, cpu_lines = see.count(trace, see.product "cpu")
    if on_cpu > 0 then
      return false, ("the model was run on the CPU %s, at %s"):format(see.times(on_cpu), cpu_lines)
    end
    for i, y in ipairs(results) do
      if see.tensor(y, "result " .. i).device ~= "cuda:0" then
        return false, ("expected result %d on cuda:0, got it on %s"):format(i, y.device)
      end
    end
    local waits, where = see.count(trace, see.waited)
    if waits > 0 then
      return false, ("the host was blocked %s, at %s"):format(see.times(waits), where)
    end
    local plain, plain_lines = see.count(trace, function(e) return see.out(e) and not e.pinned end)
    if plain > 0 then
      return false, ("%s from memory that is not pinned, at %s"):format(see.copies(plain),
        plain_lines)
    end
    local computing = {}
    for _, e in ipairs(trace.events) do
      if see.product "cuda:0"(e) then computing[tostring(e.stream)] = true end
    end
    local same, same_lines = see.count(trace, function(e)
      return see.out(e) and computing[tostring(e.stream)]
    end)
    if same > 0 then
      return false, ("the host is not blocked, but %s on the computing stream, at %s: no overlap"
        ):format(same == 1 and "1 copy is" or same .. " copies are", same_lines)
    end
    -- Without a wait the results may be right by chance. Therefore, when the k-th of n products
    -- starts, only k of n parts of the bytes are guaranteed to have arrived.
    local arrived = see.arrived(trace, see.product "cuda:0")
    local bytes = trace:totals().bytes
    for k, there in ipairs(arrived) do
      if there < bytes * k // #arrived then
        return false, ("model(x) may start before batch %d has arrived: the computing stream "
          .. "does not wait for the copy"):format(k)
      end
    end
    for i, y in ipairs(results) do
      if not see.near(y, model(batches[i]:to "cuda:0"), 1e-4) then
        return false, ("result %d is not model(x) of batch %d"):format(i, i)
      end
    end
    return true, "the copies are on their own stream, from pinned memory; the host is not blocked"
  end,
  solution = [[
function run(model, batches)
  local copying, computing = lt.cuda.Stream(0), lt.cuda.current_stream(0)
  local results = {}
  for i, x in ipairs(batches) do
    local pinned = x:pin_memory()
    local there = lt.cuda.with_stream(copying, function()
      return pinned:to{"cuda:0", non_blocking = true}
    end)
    computing:wait_event(copying:record_event())
    there:record_stream(computing)
    results[i] = model(there)
  end
  return results
end
]],
}
