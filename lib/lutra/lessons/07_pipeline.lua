-- Lesson 7: one model over two devices that work at the same time.

return {
  title = "A pipeline over two devices",
  goal = "pipeline(first, second, x) cuts x into 4 pieces, so that both GPUs work at a time.",
  devices = 2,
  text = [[
A model that is too large for one GPU is cut in two. Here the first half is on cuda:0, the second
on cuda:1, and what the first gives must be copied to the other.

With the whole batch at once, one GPU always sleeps while the other works. In pieces, cuda:1 works
on piece 1 while cuda:0 works on piece 2, like two people at an assembly line.

No threads are needed: the program puts the work of all pieces into the queues of both GPUs, and
these work side by side, if two things are heeded. The program must not stop to wait: y:cpu() waits,
and goes round by the host, while y:to "cuda:1" goes straight from GPU to GPU and does not wait. And
a queue keeps its order: what is put behind a copy starts when that copy has come. So a piece's work
on cuda:1 is queued before the next piece is sent.

x is on cuda:0, of 64 rows. x:chunk(4) is a table of 4 pieces, lt.cat(results) joins pieces.]],
  start = [[
function pipeline(first, second, x)
  local h = first(x)
  return second(h:cpu():to "cuda:1")
end
]],
  hints = {
    "First the straight way: second(first(x):to \"cuda:1\"). :check then speaks of the pieces.",
    "for i, piece in ipairs(x:chunk(4)) do results[i] = ... end, and return lt.cat(results).",
  },
  check = function(env, lt, see)
    local pipeline = see.func(env, "pipeline")
    local first, second = lt.nn.Linear(32, 32):to "cuda:0", lt.nn.Linear(32, 8):to "cuda:1"
    local x = lt.randn{64, 32, device = "cuda:0"}
    local expected = second(first(x):to "cuda:1")
    local trace, y = lt.placement.trace(pipeline, first, second, x)
    if see.tensor(y, "pipeline(first, second, x)").device ~= "cuda:1" then
      return false, ("the result is on %s, it is to be on cuda:1"):format(y.device)
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
      return false, ("%s went by way of the host, at %s"):format(see.copies(home), home_lines)
    end
    local waits, where = see.count(trace, see.waited)
    if waits > 0 then
      return false, ("the program waited %s, at %s"):format(see.times(waits), where)
    end
    -- A copy stands in the queue of cuda:1. So pieces overlap where cuda:0 is given work after
    -- cuda:1 had some; who sends one piece ahead has a turn less.
    local pieces, turns, last = 0, 0, nil
    for _, e in ipairs(trace.events) do
      if see.copy(e) and e.from == "cuda:0" and e.to == "cuda:1" then pieces = pieces + 1 end
      if see.product(e.to)(e) then
        if last == "cuda:1" and e.to == "cuda:0" then turns = turns + 1 end
        last = e.to
      end
    end
    if pieces < 4 then
      return false, ("the result is right, but went to cuda:1 in %s, not in 4: one GPU sleeps "
        .. "while the other works"):format(pieces == 1 and "1 piece" or pieces .. " pieces")
    end
    if turns < 2 then
      return false, ("%d pieces went over, but %s: its work stands in its queue behind the copies, "
        .. "and starts when the last has come"):format(pieces, turns == 0
          and "cuda:1 was given work only when all had been sent"
          or "cuda:1 was given most of its work after the last")
    end
    return true, ("%d pieces went straight to cuda:1, and the program waited for none"):format(
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
