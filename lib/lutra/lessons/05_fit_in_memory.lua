-- Lesson 5: processing more data than fits into the device's memory.

local limit, size = 256 << 20, 24 << 20

return {
  title = "Fit in 256 MiB",
  goal = "energy(x) computes on cuda:0 and never allocates more than 256 MiB there.",
  devices = 1,
  text = [[
The memory of a GPU is small. If an allocation does not fit, it raises an error: out of memory. What
counts is the peak: the most memory that was allocated at the same time. Each op allocates a new
tensor for its result, so a line with three ops may need four tensors.

    lt.cuda.max_memory_allocated(0)    -- the peak up to now, in bytes

A tensor stays allocated as long as a variable refers to it. Then the garbage collector frees it, at
the latest when memory is short.

There are three ways to need less. In place: x:mul_(3) writes its result into x itself (shown by the
underscore). Free: y:free() frees the memory of y at once. Chunks: x:chunk(8) splits x into eight
tensors, which can be copied and processed one after the other.

Below, x is on the CPU and has 96 MiB. Three tensors of this size are more than 256 MiB.]],
  start = [[
function energy(x)
  local here = x:to "cuda:0"
  local scaled = here * 3
  local squares = scaled * scaled
  return squares:sum():item()
end
]],
  hints = {
    "Count the tensors: here, scaled and squares are all allocated when the sum is computed.",
    "With here:mul_(3) there is no second tensor, and here:mul_(here) squares in place.",
    "Or in chunks: for _, part in ipairs(x:chunk(8)) do ... end, each copied, summed and freed.",
  },
  check = function(env, lt, see)
    local energy = see.func(env, "energy")
    local value = 0.5 + lt.rand(1):item()
    local x = lt.full({size}, value)
    local peak, trace, sum = see.peak("cuda:0", lt.placement.trace, energy, x)
    local unchanged = see.near(x[1]:item(), value, 1e-6) and see.near(x[-1]:item(), value, 1e-6)
    x:free()
    see.number(sum, "energy(x)")
    local expected = size * 9 * value ^ 2
    if not see.near(sum / expected, 1, 1e-3) then
      return false, ("expected the sum of (3 * x)^2, %.6g, got %s"):format(
        expected, see.text(sum, "%.6g"))
    end
    if not unchanged then return false, "the sum is right, but x itself was changed on the CPU" end
    local sent = 0
    for _, e in ipairs(trace.events) do
      if see.out(e) and e.to == "cuda:0" then sent = sent + e.bytes end
    end
    if sent < 4 * size then
      return false, ("the sum is right, but only %s of 96 MiB were copied to cuda:0: compute there"
        ):format(see.bytes(sent))
    end
    if see.count(trace, see.computed "cuda:0") == 0 then
      return false, "the sum is right, and x was copied to cuda:0, but nothing was computed there"
    end
    local here, lines = see.count(trace, function(e)
      return see.computed "cpu"(e) and e.bytes >= size // 256
    end)
    if here > 0 then
      return false, ("the sum is right, but large tensors were computed on the CPU, at %s"):format(
        lines)
    end
    if peak > limit then
      return false, ("the sum is right, but the peak was %s on cuda:0"):format(
        see.bytes(peak))
    end
    return true, ("the sum is right; the peak was %s on cuda:0"):format(see.bytes(peak))
  end,
  solution = [[
function energy(x)
  local total = 0
  for _, part in ipairs(x:chunk(8)) do
    local here = part:to "cuda:0"
    here:mul_(3)
    here:mul_(here)
    total = total + here:sum():item()
    here:free()
  end
  return total
end
]],
}
