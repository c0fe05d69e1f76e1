-- Lesson 2: tensors that meet in an op must be on one device.

return {
  title = "Mend the mismatch",
  goal = "predict(x, w) works wherever x is, and its result is on the device of x.",
  devices = 1,
  text = [[
An op cannot add a tensor on the GPU to one on the CPU. It does not copy in secret either: it raises
an error that says which tensor is where. It is the most common error of all, and one that a
computer without a GPU never shows, as there everything is on the CPU.

    x = lt.ones{2, 3, device = "cuda:0"}
    x + lt.ones(2, 3)                      -- look at the error

Two ways to mend it. A tensor that comes from elsewhere is brought to the other: w:to(x.device),
which copies nothing when it is there already. A tensor that you make yourself is made there:
lt.ones{4, device = x.device}. Writing "cuda:0" would be a new mistake: x may be on cuda:1, or on
the CPU of somebody who has no GPU.

Below, x is of 2 x 3 numbers and w of 3 x 4, on the CPU.]],
  start = [[
function predict(x, w)
  local bias = lt.ones(4)
  return x:matmul(w) + bias
end
]],
  hints = {
    "The error says which argument is on another device. Do not move x: bring the others to it.",
    "w = w:to(x.device) brings w. The bias can be made in the right place: device = x.device.",
  },
  check = function(env, lt, see)
    local predict = see.func(env, "predict")
    local places = {"cuda:0", "cpu"}
    if lt.cuda.device_count() > 1 then table.insert(places, 2, "cuda:1") end
    for _, place in ipairs(places) do
      local x, w = lt.ones{2, 3, device = place}, lt.ones(3, 4)
      local ok, trace, y = pcall(lt.placement.trace, predict, x, w)
      if not ok then error(("with x on %s: %s"):format(place, tostring(trace)), 0) end
      see.tensor(y, "predict(x, w)")
      if y.device ~= place then
        return false, ("x was on %s, but the result is on %s"):format(place, y.device)
      end
      if not y:cpu():equal(lt.full({2, 4}, 4.0)) then
        return false, ("with x on %s, x @ w + 1 of ones should be 4 everywhere, it is %s"):format(
          place, tostring(y:cpu()))
      end
      local home, where = see.count(trace, function(e)
        return see.copy(e) and e.from == place and e.to ~= place
      end)
      if home > 0 then
        return false, ("with x on %s, something was copied away from %s (%s), at %s; only w has a "
          .. "way to go"):format(place, place, see.copies(home), where)
      end
    end
    return true, ("it worked with x on %s"):format(table.concat(places, ", "))
  end,
  solution = [[
function predict(x, w)
  local bias = lt.ones{4, device = x.device}
  return x:matmul(w:to(x.device)) + bias
end
]],
}
