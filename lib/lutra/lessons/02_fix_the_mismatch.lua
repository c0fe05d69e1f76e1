-- Lesson 2: the operands of an op must be on the same device.

return {
  title = "Fix a device mismatch",
  goal = "predict(x, w) works wherever x is, and its result is on the device of x.",
  devices = 1,
  text = [[
An op cannot add a tensor on the GPU to one on the CPU. It does not copy one of them implicitly
either: it raises an error that says which tensor is on which device. This is the most common error
on GPUs, and a computer without one never shows it, because all tensors are on the CPU there.

    x = lt.ones{2, 3, device = "cuda:0"}
    x + lt.ones(2, 3)                      -- read the error

There are two fixes. Move a tensor that you are given to the other device: w:to(x.device), which
copies nothing if w is there already. Make a new tensor on the right device: lt.ones{4, device =
x.device}. Do not write "cuda:0": x may be on cuda:1, or on the CPU of a user without a GPU.

Below, x has shape {2, 3}, and w, on the CPU, has shape {3, 4}.]],
  start = [[
function predict(x, w)
  local bias = lt.ones(4)
  return x:matmul(w) + bias
end
]],
  hints = {
    "The error names each tensor and its device; a tensor without a name is self, before the "
      .. "colon or the +, or other. Leave x on its device and move the others to it.",
    "w:to(x.device) is w on the right device. Make the bias there: device = x.device.",
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
        return false, ("expected a result on %s, as x, got one on %s"):format(place, y.device)
      end
      local home, where = see.count(trace, function(e)
        return see.copy(e) and e.from == place and e.to ~= place
      end)
      if home > 0 then
        return false, ("with x on %s, a tensor was copied away from %s (%s), at %s; only w must be "
          .. "copied"):format(place, place, see.copies(home), where)
      end
      if not see.near(y, expected, 1e-4) then
        return false, ("with x on %s, the result is not the matrix product of x and w, plus 1: got "
          .. "shape %s and first element %s, expected %s and %s"):format(place,
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
