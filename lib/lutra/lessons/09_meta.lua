-- Lesson 9: the size of a model that no memory here could hold.

return {
  title = "Meta: size a model that cannot fit",
  goal = "bytes_to_train(make) gives what training takes, without making a single number.",
  text = [[
How large is a model that this computer could not hold? The device "meta" answers: a tensor there
has a shape and a type of numbers, but no numbers, and takes no memory.

    big = lt.empty{1000000, 1000000, device = "meta"}
    big.nbytes    -- 4 TB, and nothing was allocated

lt.with_device("meta", f) calls f, and all tensors that f makes without naming a device are made
there. So if f builds a model, it builds only its plan.

Training with AdamW holds each number of the model four times: the parameter, its gradient, and two
numbers of the optimizer's. (The results of the layers come on top; leave them out here.)

Below, make is a function that builds a model, and p.nbytes is how many bytes a parameter takes.]],
  start = [[
function bytes_to_train(make)
  local model = make()
  local bytes = 0
  for p in model:parameters() do bytes = bytes + p.nbytes end
  return bytes
end
]],
  hints = {
    "Let make be called on the device meta: lt.with_device(\"meta\", make) gives the model.",
    "The parameters are one part of four: the gradients are as large, and AdamW keeps two more.",
  },
  check = function(env, lt, see)
    local f = see.func(env, "bytes_to_train")
    local function small() return lt.nn.Sequential(lt.nn.Linear(30, 20), lt.nn.Linear(20, 7)) end
    local parameters = 4 * (30 * 20 + 20 + 20 * 7 + 7)
    local trace, bytes = lt.placement.trace(f, small)
    local made, where = see.count(trace, function(e)
      return e.kind == "alloc" and e.to ~= "meta" and e.bytes > 8
    end)
    if made > 0 then
      return false, ("for a small model, memory was allocated %s, at %s; on meta it takes none"
        ):format(see.times(made), where)
    end
    if bytes == parameters then
      return false, ("no memory was taken, but %d bytes are the parameters of a small model alone; "
        .. "training holds more"):format(bytes)
    end
    if bytes ~= 4 * parameters then
      return false, ("for a small model it gives %s; its parameters are %d bytes, held four times"
        ):format(tostring(bytes), parameters)
    end
    local function huge()
      local layers = {}
      for i = 1, 40 do layers[i] = lt.nn.Linear(16384, 16384) end
      return lt.nn.Sequential(table.unpack(layers))
    end
    local answer = f(huge)
    if answer ~= 16 * 40 * (16384 * 16384 + 16384) then
      return false, ("for a small model it is right; for 40 layers of 16384 x 16384 it gives %s"
        ):format(tostring(answer))
    end
    return true,
      "40 layers of 16384 x 16384 take 172 GB to train, and no memory was needed to know it"
  end,
  solution = [[
function bytes_to_train(make)
  local model = lt.with_device("meta", make)
  local bytes = 0
  for p in model:parameters() do bytes = bytes + p.nbytes end
  return 4 * bytes
end
]],
}
