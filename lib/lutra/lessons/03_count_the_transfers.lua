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

-- What is wrong with the number of copies that was predicted, or nil; `way` is "out to the GPU". It
-- names the line of the first copy that was not predicted, and leaves the counting to the user.
local function wrong(predicted, trace, test, way)
  local seen = {}
  for _, e in ipairs(trace.events) do
    if test(e) then seen[#seen + 1] = e.where end
  end
  if predicted == #seen then return nil end
  if predicted > #seen then
    return ("you predict %d %s; the trace saw fewer"):format(predicted, way)
  end
  return ("you predict %d %s; the trace saw more: number %d is at %s"):format(predicted, way,
    predicted + 1, seen[predicted + 1])
end

return {
  title = "Count the transfers",
  goal = "prediction holds how many copies step makes: out to the GPU, and home to the host.",
  devices = 1,
  text = [[
A copy between host and GPU is called a transfer. Some are plain to see, as x:to "cuda:0" and
y:cpu(). Others hide: y:item() turns a tensor of one number into a number of Lua, and Lua's numbers
live on the host.

Predict first, then look. Read step below. x is on the CPU, w on cuda:0; x is of 8 x 8 ones and w is
lt.eye(8), so that y is all ones as well. How many copies go out to the GPU, and how many come home?
Enter your answer, and see with :check:

    prediction = {out = 5, home = 7}

In what :check says, lesson 3:2 is line 2 of the code below. When you are stuck, let Lutra list the
copies; :transfers step(x, w) draws them as well.

    x, w = lt.ones(8, 8), lt.eye{8, device = "cuda:0"}
    trace = lt.placement.trace(step, x, w)
    print(trace)]],
  start = step .. [[
prediction = {out = 0, home = 0}
]],
  hints = {
    "Go through step line by line. :to \"cuda:0\" of a tensor of the CPU is one out; :cpu() and "
      .. "each :item() of a tensor of the GPU is one home.",
    "The sum of 64 ones is larger than the largest of them, so the line in the if is run.",
    "print(trace), as in the text, lists them: count cpu -> cuda:0 and cuda:0 -> cpu.",
  },
  check = function(env, lt, see)
    local said = env.prediction
    local out = type(said) == "table" and math.tointeger(said.out)
    local home = type(said) == "table" and math.tointeger(said.home)
    if not out or not home or out < 0 or home < 0 then
      return false, "prediction is to be a table of two numbers of copies: {out = 5, home = 7}"
    end
    local original = {}
    load(step, "=lesson 3", "t", original)()
    local x, w = lt.ones(8, 8), lt.eye{8, device = "cuda:0"}
    local trace = lt.placement.trace(original.step, x, w)
    local why = wrong(out, trace, see.out, "out to the GPU")
    if why then return false, why end
    why = wrong(home, trace, see.home, "home to the host")
    if why then return false, ("%d out is right; but %s"):format(out, why) end
    local _, out_lines = see.count(trace, see.out)
    local _, home_lines = see.count(trace, see.home)
    return true, ("%d out at %s; %d home at %s"):format(out, out_lines, home, home_lines)
  end,
  solution = [[
prediction = {out = 2, home = 3}
]],
}
