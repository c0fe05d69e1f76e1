-- Lesson 2: tensors that meet in an op must be on one device.

return {
  title = "Mend the mismatch",
  goal = "predict(x, w) works wherever x is, and its result is on the device of x.",
  devices = 1,
  text = [[
An op cannot add a tensor on the GPU to one on the CPU. Nor does it copy one of them in secret: it
raises an error that says which tensor is where. This is the most common error of all, and one that
a computer without a GPU never shows, as everything is on the CPU there.

    x = lt.ones{2, 3, device = "cuda:0"}
    x + lt.ones(2, 3)                      -- look at the error

There are two ways to mend it. A tensor that comes from elsewhere is brought to the other one:
w:to(x.device), which copies nothing when it is there already. A tensor that you make yourself is
made there: lt.ones{4, device = x.device}. To write "cuda:0" would be a new mistake: x may be on
cuda:1, or on the CPU of somebody who has no GPU.

Below, x is of 2 x 3 numbers, and w, on the CPU, of 3 x 4.]],
  start = [[
function predict(x, w)
  local bias = lt.ones(4)
  return x:matmul(w) + bias
end
]],
  hints = {
    "The error says by name which tensor is where; one without a name is self, where it stands "
      .. "before the colon or the +, or other. Leave x where it is and bring the others to it.",
    "w:to(x.device) is w in the right place. The bias can be made there: device = x.device.",
  },
  check = function(env, lt, see)
    local predict = see.func(env, "predict")
    local places = {"cuda:0", "cpu"}
    if lt.cuda.device_count() > 1 then table.insert(places, 2, "cuda:1") end
    for _, place in ipairs(places) do
      local x, w = lt.randn(2, 3), lt.randn(3, 4)
      local expected = x:matmul(w) + 1
      local ok, trace, y = pcall(lt.placement.trace, predict, x:to(place), w)
      if not ok then error(("with x on %s: %s"):format(place, tostring(trace)), 0) end
      see.tensor(y, "predict(x, w)")
      if y.device ~= place then
        return false, ("x was on %s, but the result is on %s"):format(place, y.device)
      end
      local home, where = see.count(trace, function(e)
        return see.copy(e) and e.from == place and e.to ~= place
      end)
      if home > 0 then
        return false, ("with x on %s, something was copied away from %s (%s), at %s; only w has a "
          .. "way to go"):format(place, place, see.copies(home), where)
      end
      if not see.near(y, expected, 1e-4) then
        return false, ("with x on %s, the result is not the matrix product of x and w, plus 1: its "
          .. "shape is %s and it begins with %s, it should be %s and %s"):format(place,
            tostring(y.shape), see.first(y), tostring(expected.shape), see.first(expected))
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
