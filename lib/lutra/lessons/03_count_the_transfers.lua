-- Lesson 3: predict the copies of a function, then let a trace count them.

local step = [[
function step(x, w)
  local y = x:to("cuda:0"):matmul(w)
  local best = y:max():item()
  if y:sum():item() > best then
    y = y:cpu():to("cuda:0")
  end
  return y
end
]]

return {
  title = "Count the transfers",
  goal = "prediction holds how many copies step makes: out to the GPU, and home to the host.",
  devices = 1,
  text = [[
A copy between host and GPU is called a transfer. Some are plain to see, as x:to "cuda:0" and
y:cpu(). Others hide: x:item() turns a tensor of one number into a number of Lua, and numbers of Lua
live on the host.

First predict, then look. Read step below. x is on the CPU, w on cuda:0; x is of 8 x 8 ones and w is
lt.eye(8), so that y is all ones as well. How many copies go out to the GPU, how many come home?
Enter your answer:

    prediction = {out = 5, home = 7}

and see with :check. To count for yourself, have the copies listed:

    x, w = lt.ones(8, 8), lt.eye{8, device = "cuda:0"}
    print(lt.placement.trace(step, x, w))]],
  start = step .. [[
prediction = {out = 0, home = 0}
]],
  hints = {
    "Go through step line by line. :to \"cuda:0\" of a tensor of the CPU is one out; :cpu() and "
      .. "each :item() of a tensor of the GPU is one home.",
    "The sum of 64 ones is larger than the largest of them, so the lines in the if are run.",
    "print(lt.placement.trace(step, x, w)) lists them: count cpu -> cuda:0 and cuda:0 -> cpu.",
  },
  check = function(env, lt, see)
    local said = env.prediction
    if type(said) ~= "table" or not math.tointeger(said.out) or not math.tointeger(said.home) then
      return false, "prediction is to be a table of two numbers: prediction = {out = 5, home = 7}"
    end
    local original = {}
    load(step, "=lesson 3", "t", original)()
    local x, w = lt.ones(8, 8), lt.eye{8, device = "cuda:0"}
    local trace = lt.placement.trace(original.step, x, w)
    local out, out_lines = see.count(trace, see.out)
    local home, home_lines = see.count(trace, see.home)
    if said.out ~= out then
      return false, ("you predict %d out to the GPU; the trace saw %d, at %s"):format(said.out, out,
        out_lines)
    end
    if said.home ~= home then
      return false, ("%d out is right. You predict %d home to the host; the trace saw %d, at %s"
        ):format(out, said.home, home, home_lines)
    end
    return true, ("%d out at %s; %d home at %s"):format(out, out_lines, home, home_lines)
  end,
  solution = [[
prediction = {out = 2, home = 3}
]],
}
