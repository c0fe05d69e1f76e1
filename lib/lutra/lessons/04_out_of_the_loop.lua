-- Lesson 4: a loop that does not wait for the device in every round.

return {
  title = "Take the synchronization out of the loop",
  goal = "total(model, batches) gives the same number, and waits for the GPU once.",
  devices = 1,
  text = [[
A program and a GPU work side by side. model(x) only puts work into the GPU's queue and returns at
once; while the GPU computes, the program can queue more. So the GPU never runs dry.

A number of Lua's, as y:item() gives it, cannot be had at once: the program must wait until the GPU
has done all that is in its queue, and then for the number's way home. This is a synchronization. In
a loop it makes program and GPU take turns: while one works, the other sleeps.

A sum can stay on the GPU, as a tensor of one number to which the loop adds. Read it once, behind
the loop. Here the model is on cuda:0, and so are the ten batches.]],
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
    "Which call in the loop gives a number of Lua's? Without it, sum becomes a tensor on the GPU.",
    "Leave :item() out of the loop and write return sum:item() behind it.",
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
      return false, ("it gives %s, the sum over all batches is %.4f"):format(
        see.text(sum, "%.4f"), expected)
    end
    local waits, where = see.count(trace, see.waited)
    if waits > 1 then
      return false, ("the sum is right, but the program waited for the GPU %s, at %s"):format(
        see.times(waits), where)
    end
    return true, ("the sum is right, and the program waited %s, at %s"):format(see.times(waits),
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
