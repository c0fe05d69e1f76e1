-- Lesson 4: a loop that does not synchronize with the device in each iteration.

return {
  title = "Take the synchronization out of the loop",
  goal = "total(model, batches) returns the same number and synchronizes with the GPU once.",
  devices = 1,
  text = [[
A program and a GPU run at the same time. model(x) only adds work to the queue of the GPU and
returns at once: it is asynchronous. While the GPU computes, the program can queue more work, so
that the GPU is never idle.

y:item() returns a Lua number. For this, the host blocks until the GPU has done all queued work and
the number is copied. This is a synchronization. In a loop, host and GPU then take turns: while one
works, the other is idle.

A sum can stay on the GPU, as a tensor with one element to which the loop adds. Read it once, after
the loop. Here the model and the ten batches are on cuda:0.]],
  start = [[
function total(model, batches)
  local sum = 0
  for _, x in ipairs(batches) do
    sum = sum + model(x):sum():item()
  end
  return sum
end
]],
  hints = {
    "Which call in the loop returns a Lua number? Without it, sum becomes a tensor on the GPU.",
    "Leave :item() out of the loop and write return sum:item() after it.",
  },
  check = function(env, lt, see)
    local total = see.func(env, "total")
    local model, batches, expected = lt.nn.Linear(8, 1):to "cuda:0", {}, 0
    for i = 1, 10 do
      batches[i] = lt.randn{4, 8, device = "cuda:0"}
      expected = expected + model(batches[i]):sum():item()
    end
    local trace, sum = lt.placement.trace(total, model, batches)
    see.number(sum, "total(model, batches)")
    if not see.near(sum, expected, 1e-3) then
      return false, ("expected the sum over all batches, %.4f, got %s"):format(
        expected, see.text(sum, "%.4f"))
    end
    local waits, where = see.count(trace, see.waited)
    if waits > 1 then
      return false, ("the sum is right, but the host was blocked by the GPU %s, at %s"):format(
        see.times(waits), where)
    end
    return true, ("the sum is right, and the host was blocked %s, at %s"):format(see.times(waits),
      where)
  end,
  solution = [[
function total(model, batches)
  local sum = 0
  for _, x in ipairs(batches) do
    sum = sum + model(x):sum():detach()
  end
  return sum:item()
end
]],
}
