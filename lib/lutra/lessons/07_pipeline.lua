-- Lesson 7: one model over two devices that work at the same time.

return {
  title = "A pipeline over two devices",
  goal = "pipeline(first, second, x) cuts x into 4 pieces, so that both GPUs work at a time.",
  devices = 2,
  text = [[
A model that is too large for one GPU is cut in two. Here the first half is on cuda:0, the second on
cuda:1, and what the first gives must be copied to the other.

Done with the whole batch, one GPU always sleeps while the other works. Done in pieces, cuda:1 works
on piece 1 while cuda:0 works on piece 2, like two people at an assembly line.

No thread is needed for it: the program puts the work of all pieces into the queues of both, and
they run side by side. It must only not stop to wait. y:cpu() waits, and takes a way round by the
host; y:to "cuda:1" goes straight from GPU to GPU and does not.

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
    lt.manual_seed(7)
    local first, second = lt.nn.Linear(32, 32):to "cuda:0", lt.nn.Linear(32, 8):to "cuda:1"
    local x = lt.randn{64, 32, device = "cuda:0"}
    local trace, y = lt.placement.trace(pipeline, first, second, x)
    if see.tensor(y, "pipeline(first, second, x)").device ~= "cuda:1" then
      return false, ("the result is on %s, it is to be on cuda:1"):format(y.device)
    end
    local expected = second(first(x):to "cuda:1")
    if y:size(1) ~= 64 or not y:allclose(expected, {atol = 1e-5}) then
      return false, "the result is not that of second(first(x)), row for row"
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
    -- A piece overlaps with the one before where cuda:0 is given work after cuda:1 had some.
    local pieces, turns, last = 0, 0, nil
    for _, e in ipairs(trace.events) do
      if see.copy(e) and e.from == "cuda:0" and e.to == "cuda:1" then pieces = pieces + 1 end
      if e.kind == "op" and (e.name == "linear" or e.name:find "mm") then
        if last == "cuda:1" and e.to == "cuda:0" then turns = turns + 1 end
        last = e.to
      end
    end
    if pieces < 4 then
      return false, ("the result is right, but went to cuda:1 in %s, not in 4: one GPU sleeps "
        .. "while the other works"):format(pieces == 1 and "1 piece" or pieces .. " pieces")
    end
    if turns < 3 then
      return false, ("%d pieces went over, but cuda:1 was given work only when cuda:0 had been "
        .. "given all of its own"):format(pieces)
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
