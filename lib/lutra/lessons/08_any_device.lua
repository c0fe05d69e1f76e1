-- Lesson 8: device-agnostic code.

local ROWS, COLUMNS = 5, 3

-- Returns the devices of this machine.
local function places(lt)
  local list, cuda, mps = {"cpu"}, lt.cuda, lt.mps
  for i = 0, cuda.device_count() - 1 do list[#list + 1] = "cuda:" .. i end
  if mps.is_available() then list[#list + 1] = "mps" end
  return list
end

return {
  title = "Device-agnostic code: cpu, cuda and mps",
  goal = "scale(x) computes on the device of x, whichever it is, also on an Apple GPU.",
  devices = 1,
  text = [[
Other users have other GPUs. NVIDIA GPUs are "cuda", Apple GPUs are "mps", and many computers have
neither. A script that names "cuda:0" in many places runs on some of them only.

Device-agnostic code chooses the device in one place, and takes it from the tensors everywhere else.

    device = lt.best_device()         -- once, at the top of the script
    lt.zeros{3, device = x.device}    -- everywhere else

The dtype matters as well. Apple GPUs do not support float64 (8 bytes); float32 (4 bytes) works
everywhere. So take the dtype from the tensors, too: dtype = x.dtype. Functions such as
lt.ones_like(x) use both.

Below, x has shape {5, 3} and dtype float32. :check calls scale with an x on each device of this
machine.]],
  start = [[
function scale(x)
  x = x:to "cuda:0"
  local options = {dtype = "float64", device = "cuda:0"}
  return (x * lt.tensor({1, 2, 3}, options)):to "float32"
end
]],
  hints = {
    "x need not be moved. Its device is x.device.",
    "options = {dtype = x.dtype, device = x.device} makes a tensor with the dtype and device of x. "
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
        return false, ("expected a result on %s, as x, got one on %s"):format(place, y.device)
      end
      if y.dtype ~= "float32" then
        return false, ("expected a result of dtype float32, as x, got %s"):format(y.dtype)
      end
      local strange, where = see.count(trace, function(e)
        return e.to and e.to ~= place and e.to ~= "cpu"
      end)
      if strange > 0 then
        return false, ("x was on %s, but another GPU was used, at %s"):format(place,
          where)
      end
      local left, left_lines = see.count(trace, function(e)
        return see.copy(e) and e.from == place and e.to ~= place
      end)
      if left > 0 then
        return false, ("x was on %s, but %s to another device, at %s"):format(place,
          left == 1 and "1 copy was made" or left .. " copies were made", left_lines)
      end
      local large, large_lines = see.count(trace, function(e)
        return e.kind == "alloc" and e.bytes > ROWS * COLUMNS * 4
      end)
      if large > 0 then
        return false, ("with x on %s, a tensor with more than 4 bytes per element was made, such "
          .. "as float64, at %s; Apple GPUs do not support it"):format(place, large_lines)
      end
      local expected = numbers * lt.tensor{1.0, 2.0, 3.0}
      if not see.near(y, expected, 1e-5) then
        return false, ("with x on %s, the result is not x with its columns times 1, 2 and 3: got "
          .. "%s as the last element of a row, expected %s"):format(place,
            y.ndim > 0 and see.first(y[{"...", -1}]) or see.first(y), see.first(expected[{{}, -1}]))
      end
    end
    return true, "the code works unchanged on " .. table.concat(list, ", ")
  end,
  solution = [[
function scale(x)
  local factors = lt.tensor({1, 2, 3}, {dtype = x.dtype, device = x.device})
  return x * factors
end
]],
}
