-- Lesson 8: code that runs unchanged on every kind of device.

local ROWS, COLUMNS = 5, 3

-- The devices of this machine.
local function places(lt)
  local list = {"cpu"}
  for i = 0, lt.cuda.device_count() - 1 do list[#list + 1] = "cuda:" .. i end
  if lt.mps.is_available() then list[#list + 1] = "mps" end
  return list
end

return {
  title = "One script unchanged on cpu, cuda and mps",
  goal = "scale(x) works and stays wherever x is, and would on Apple's GPUs, too.",
  devices = 1,
  text = [[
Not everybody has the GPU that you have. NVIDIA's are called "cuda", Apple's "mps", and many
computers have neither. A script that says "cuda:0" in its middle runs on some of them only.

The rule: choose the device in one place, and take it from the tensors everywhere else.

    device = lt.best_device()         -- once, at the top of the script
    lt.zeros{3, device = x.device}    -- everywhere else

The type of the numbers is part of it. Apple's GPUs do not know float64, numbers of 8 bytes; float32
of 4 bytes is known everywhere. So take the type from the tensors as well: dtype = x.dtype.
Functions such as lt.ones_like(x) take both.

Below, x is of 5 x 3 numbers of float32. :check calls scale with an x on each device of this
machine.]],
  start = [[
function scale(x)
  x = x:to "cuda:0"
  local options = {dtype = "float64", device = "cuda:0"}
  return (x * lt.tensor({1, 2, 3}, options)):to "float32"
end
]],
  hints = {
    "x need not be moved at all. Its device is x.device.",
    "options = {dtype = x.dtype, device = x.device} makes a tensor of the type and place of x. "
      .. "Then the result needs no :to \"float32\" any more.",
  },
  check = function(env, lt, see)
    local scale = see.func(env, "scale")
    local list = places(lt)
    for _, place in ipairs(list) do
      local numbers = lt.randn(ROWS, COLUMNS)
      local ok, trace, y = pcall(lt.placement.trace, scale, numbers:to(place))
      if not ok then error(("with x on %s: %s"):format(place, tostring(trace)), 0) end
      if see.tensor(y, "scale(x)").device ~= place then
        return false, ("x was on %s, but the result is on %s"):format(place, y.device)
      end
      if y.dtype ~= "float32" then
        return false, ("x was float32, the result is %s"):format(y.dtype)
      end
      local strange, where = see.count(trace, function(e)
        return e.to and e.to ~= place and e.to ~= "cpu"
      end)
      if strange > 0 then
        return false, ("x was on %s, but something was done on another GPU, at %s"):format(place,
          where)
      end
      local left, left_lines = see.count(trace, function(e)
        return see.copy(e) and e.from == place and e.to ~= place
      end)
      if left > 0 then
        return false, ("x was on %s, but %s away from there, at %s"):format(place,
          left == 1 and "a copy went" or left .. " copies went", left_lines)
      end
      local large, large_lines = see.count(trace, function(e)
        return e.kind == "alloc" and e.bytes > ROWS * COLUMNS * 4
      end)
      if large > 0 then
        return false, ("with x on %s, a tensor was made that takes more than 4 bytes a number, as "
          .. "float64 does, at %s; Apple's GPUs do not know it"):format(place, large_lines)
      end
      local expected = numbers * lt.tensor{1.0, 2.0, 3.0}
      if not see.near(y, expected, 1e-5) then
        return false, ("with x on %s, the result is not x with its columns times 1, 2 and 3: the "
          .. "last number of a row is %s, it should be %s"):format(place,
            y.ndim > 0 and see.first(y[{"...", -1}]) or see.first(y), see.first(expected[{{}, -1}]))
      end
    end
    return true, "it worked unchanged on " .. table.concat(list, ", ")
  end,
  solution = [[
function scale(x)
  local factors = lt.tensor({1, 2, 3}, {dtype = x.dtype, device = x.device})
  return x * factors
end
]],
}
