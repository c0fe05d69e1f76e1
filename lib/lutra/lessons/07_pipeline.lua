-- Lesson 7: one model on two devices that run concurrently.

return {
  title = "A pipeline over two devices",
  goal = "pipeline(first, second, x) splits x into 4 chunks, so that both GPUs work at once.",
  devices = 2,
  text = [[
A model that is too large for one GPU is split in two. Here the first half is on cuda:0, the second
on cuda:1, and the output of the first must be copied to the other.

With the whole batch at once, one GPU is always idle while the other works. In chunks, cuda:1 works
on chunk 1 while cuda:0 works on chunk 2, like two people at an assembly line.

No threads are needed: the program queues the work of all chunks on both GPUs, and they run at the
same time, under two conditions. The host must not block: y:cpu() blocks and copies through the
host, while y:to "cuda:1" copies directly from GPU to GPU and does not block. And a queue keeps its
order: work queued after a copy starts when that copy is done. So queue the work of a chunk on
cuda:1 before you copy the next chunk.

x is on cuda:0 and has 64 rows. x:chunk(4) is a table of 4 chunks, lt.cat(results) joins them.]],
  start = [[
function pipeline(first, second, x)
  local h = first(x)
  return second(h:cpu():to "cuda:1")
end
]],
  hints = {
    "First copy directly: second(first(x):to \"cuda:1\"). :check then checks the chunks.",
    "for i, piece in ipairs(x:chunk(4)) do results[i] = ... end, and return lt.cat(results).",
  },
  check = function(env, lt, see)
    local pipeline = see.func(env, "pipeline")
    local first, second = lt.nn.Linear(32, 32):to "cuda:0", lt.nn.Linear(32, 8):to "cuda:1"
    local x = lt.randn{64, 32, device = "cuda:0"}
    local expected = second(first(x):to "cuda:1")
    local trace, y = lt.placement.trace(pipeline, first, second, x)
    if see.tensor(y, "pipeline(first, second, x)").device ~= "cuda:1" then
      return false, ("expected a result on cuda:1, got one on %s"):format(y.device)
    end
    if first:device() ~= "cuda:0" or second:device() ~= "cuda:1" then
      return false, ("the halves of the model are on %s and %s now; leave them on cuda:0 and cuda:1"
        ):format(first:device(), second:device())
    end
    if not see.near(y, expected, 1e-4) then
      return false, ("the result, of shape %s, is not that of second(first(x)), row for row"
        ):format(tostring(y.shape))
    end
    local home, home_lines = see.count(trace, function(e)
      return see.copy(e) and (e.to == "cpu" or e.from == "cpu")
    end)
    if home > 0 then
      return false, ("%s through the host, at %s"):format(see.copies(home), home_lines)
    end
    local waits, where = see.count(trace, see.waited)
    if waits > 0 then
      return false, ("the host was blocked %s, at %s"):format(see.times(waits), where)
    end
    -- A copy is queued on cuda:1. Parts overlap when work is queued on cuda:0 after cuda:1 has got
    -- some; sending one part ahead saves one step.
    local pieces, turns, last = 0, 0, nil
    for _, e in ipairs(trace.events) do
      if see.copy(e) and e.from == "cuda:0" and e.to == "cuda:1" then pieces = pieces + 1 end
      if see.product(e.to)(e) then
        if last == "cuda:1" and e.to == "cuda:0" then turns = turns + 1 end
        last = e.to
      end
    end
    if pieces < 4 then
      return false, ("the result is right, but was copied to cuda:1 in %s, not in 4: one GPU "
        .. "is idle while the other works"):format(pieces == 1 and "1 chunk" or pieces .. " chunks")
    end
    if turns < 2 then
      return false, ("%d chunks were copied, but %s: this work is behind the copies in its queue, "
        .. "and starts after the last copy"):format(pieces, turns == 0
          and "all work of cuda:1 was queued after the last copy"
          or "most work of cuda:1 was queued after the last copy")
    end
    return true, ("%d chunks were copied directly to cuda:1, and the host was not blocked"):format(
      pieces)
  end,
  solution = [[
function pipeline(first, second, x)
  local results = {}
  for i, piece in ipairs(x:chunk(4)) do
    results[i] = second(first(piece):to "cuda:1")
  end
  return lt.cat(results)
end
]],
}
