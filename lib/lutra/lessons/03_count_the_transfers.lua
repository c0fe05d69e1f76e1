-- Lesson 3: predicting the copies of a function, and counting them with a trace.

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

-- Returns what is wrong with a predicted number of copies, or nil; `way` is their direction, such
-- as "out to the GPU". The message names the line of the first copy that was not predicted, and
-- leaves the counting to the user.
local function wrong(predicted, trace, test, way)
  local seen = {}
  for _, e in ipairs(trace.events) do
    if test(e) then seen[#seen + 1] = e.where end
  end
  if predicted == #seen then return nil end
  if predicted > #seen then
    return ("you predict %d %s; the trace has fewer"):format(predicted, way)
  end
  return ("you predict %d %s; the trace has more: number %d is at %s"):format(predicted, way,
    predicted + 1, seen[predicted + 1])
end

return {
  title = "Count the transfers",
  goal = "prediction holds how many copies step makes: to the GPU, and back to the host.",
  devices = 1,
  text = [[
A copy between host and GPU is called a transfer. Some are easy to see, such as x:to "cuda:0" and
y:cpu(). Others are hidden: y:item() returns the element of a tensor as a Lua number, and Lua
numbers are on the host.

Predict first, then measure. Read step below. x is on the CPU, w on cuda:0; x has 8 x 8 ones and w
is lt.eye(8), so that y has only ones as well. How many copies go out to the GPU, and how many come
home to the host? Enter your answer, then :check:

    prediction = {out = 5, home = 7}

In the result of :check, lesson 3:2 is line 2 of the code below. If you are stuck, list the copies
with a trace; :transfers step(x, w) draws them as well.

    x, w = lt.ones(8, 8), lt.eye{8, device = "cuda:0"}
    trace = lt.placement.trace(step, x, w)
    print(trace)]],
  start = step .. [[
prediction = {out = 0, home = 0}
]],
  hints = {
    "Read step line by line. :to \"cuda:0\" of a tensor on the CPU is one copy out; :cpu() and "
      .. "each :item() of a tensor on the GPU is one copy home.",
    "The sum of 64 ones is larger than their maximum, so the line inside the if runs.",
    "print(trace), as in the text, lists the copies: count cpu -> cuda:0 and cuda:0 -> cpu.",
  },
  check = function(env, lt, see)
    local said = env.prediction
    local out = type(said) == "table" and math.tointeger(said.out)
    local home = type(said) == "table" and math.tointeger(said.home)
    if not out or not home or out < 0 or home < 0 then
      return false, "expected prediction = {out = 5, home = 7} with two numbers of copies"
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
