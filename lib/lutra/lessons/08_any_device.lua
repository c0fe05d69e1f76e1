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
computers have neither. A script that says "cuda:0" in the middle runs on some of them only.

The rule: choose the device in one place, and take it from the tensors everywhere else.

    device = lt.best_device()              -- once, at the top of the script
    lt.zeros{3, device = x.device}         -- everywhere else

The type of numbers is part of it. Apple's GPUs do not know float64, numbers of 8 bytes; float32,
of 4 bytes, is everywhere. So take the type from the tensors as well: dtype = x.dtype. Functions
such as lt.ones_like(x) take both.

Below, x is of 5 x 3 numbers of float32. :check calls it on each device of this machine.]],
  start = [[
function scale(x)
  x = x:to "cuda:0"
  local factors = lt.tensor({1, 2, 3}, {dtype = "float64", device = "cuda:0"})
  return (x * factors):to "float32"
end
]],
  hints = {
    "x need not be moved at all. Its device is x.device.",
    "lt.tensor({1, 2, 3}, {dtype = x.dtype, device = x.device}) has the type and the place of x.",
  },
  check = function(env, lt, see)
    local scale = see.func(env, "scale")
    local list = places(lt)
    for _, place in ipairs(list) do
      local x = lt.ones{ROWS, COLUMNS, device = place}
      local ok, trace, y = pcall(lt.placement.trace, scale, x)
      if not ok then error(("with x on %s: %s"):format(place, tostring(trace)), 0) end
      if see.tensor(y, "scale(x)").device ~= place then
        return false, ("x was on %s, but the result is on %s"):format(place, y.device)
      end
      if y.dtype ~= "float32" then
        return false, ("x was float32, the result is %s"):format(y.dtype)
      end
      if not y:cpu():equal(lt.tensor{1.0, 2.0, 3.0}:expand(ROWS, COLUMNS)) then
        return false, ("with x on %s, each row of ones should become 1, 2, 3"):format(place)
      end
      local strange, where = see.count(trace, function(e)
        return e.to and e.to ~= place and e.to ~= "cpu"
      end)
      if strange > 0 then
        return false, ("x was on %s, but something was done on another GPU, at %s"):format(place,
          where)
      end
      local large, large_lines = see.count(trace, function(e)
        return e.kind == "alloc" and e.bytes > ROWS * COLUMNS * 4
      end)
      if large > 0 then
        return false, ("with x on %s, a tensor was made that takes more than 4 bytes a number, as "
          .. "float64 does, at %s; Apple's GPUs do not know it"):format(place, large_lines)
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
