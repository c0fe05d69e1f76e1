-- Lesson 9: the size of a model that does not fit into memory, on the meta device.

return {
  title = "Meta: compute the size of a model that does not fit",
  goal = "bytes_to_train(make) returns the bytes that training needs, without allocating them.",
  text = [[
How large is a model that does not fit in the memory of this computer? Use the device "meta": a
tensor there has a shape and a dtype, but no data, and needs no memory.

    big = lt.empty{1000000, 1000000, device = "meta"}
    big.nbytes    -- 4 TB, and nothing was allocated

lt.with_device("meta", f) calls f with "meta" as the default device. So if f makes a model, its
parameters have no data.

Training with AdamW needs the memory of the parameters four times: parameters, gradients, and two
tensors of optimizer state for each parameter. (Activations need more; ignore them here.)

Below, make is a function that makes a model, and p.nbytes is the number of bytes of a parameter.]],
  start = [[
function bytes_to_train(make)
  local model = make()
  local bytes = 0
  for p in model:parameters() do bytes = bytes + p.nbytes end
  return bytes
end
]],
  hints = {
    "Call make with meta as the default device: lt.with_device(\"meta\", make) returns the model.",
    "The parameters are one part of four: the gradients are as large, the AdamW state twice.",
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
      return false, ("for a small model, memory was allocated %s, at %s; on meta none is"
        ):format(see.times(made), where)
    end
    if bytes == parameters then
      return false, ("no memory was allocated, but %d bytes are only the parameters of a small "
        .. "model; training needs more"):format(bytes)
    end
    if bytes ~= 4 * parameters then
      return false, ("for a small model: got %s, expected four times the %d bytes of the "
        .. "parameters"):format(tostring(bytes), parameters)
    end
    local function huge()
      local layers = {}
      for i = 1, 40 do layers[i] = lt.nn.Linear(16384, 16384) end
      return lt.nn.Sequential(table.unpack(layers))
    end
    local answer = f(huge)
    if answer ~= 16 * 40 * (16384 * 16384 + 16384) then
      return false, ("right for a small model; wrong for 40 layers of 16384 x 16384: %s"
        ):format(tostring(answer))
    end
    return true,
      "40 layers of 16384 x 16384 need 172 GB to train; computing it needed no memory"
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
