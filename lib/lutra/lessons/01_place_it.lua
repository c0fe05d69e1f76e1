-- Lesson 1: creating a tensor on the device where it is used.

return {
  title = "Make a tensor on a device",
  goal = "place() returns 1000 x 1000 zeros made on cuda:0; nothing is copied.",
  devices = 1,
  text = [[
A GPU has its own processor and its own memory. The CPU (here also called the host) computes on main
memory, the GPU on the memory of its card. Neither can access the memory of the other. So each
tensor is on one device: "cpu", or "cuda:0" for the first GPU.

    x = lt.zeros(2, 3)                     -- on the CPU
    y = lt.zeros{2, 3, device = "cuda:0"}  -- on the first GPU
    x.device, y.device

x:to "cuda:0" returns a copy of x on the GPU. The bytes go over the link between host and card,
which is much slower than either memory. So make a tensor directly on the device that needs it.

If this computer has no GPU, Lutra emulates two small ones. They compute the right numbers, have
separate memories and raise the same errors as real ones. :devices lists them with their tensors.]],
  start = [[
function place()
  return lt.zeros(1000, 1000)
end
]],
  hints = {
    "Functions that make tensors take the device in a table: lt.ones{5, device = \"cuda:0\"}.",
    "The sizes go into the same table: lt.zeros{1000, 1000, device = \"cuda:0\"}. If the "
      .. "tensor is on cuda:0 and the check still fails, it was made on the CPU and copied.",
  },
  check = function(env, lt, see)
    local trace, x = lt.placement.trace(see.func(env, "place"))
    see.tensor(x, "place()")
    if x.device ~= "cuda:0" then
      return false, ("expected a tensor on cuda:0 from place(), got one on %s"):format(x.device)
    end
    if x.ndim ~= 2 or x:size(1) ~= 1000 or x:size(2) ~= 1000 then
      return false, ("expected shape {1000, 1000} from place(), got %s"):format(
        tostring(x.shape))
    end
    local copies, where = see.count(trace, see.copy)
    if copies > 0 then
      return false, ("the tensor is on cuda:0, but it was made on another device and copied: "
        .. "%s, %s, at %s"):format(see.copies(copies), see.bytes(trace:totals().bytes), where)
    end
    if see.count(trace, see.made "cuda:0") == 0 then
      return false, "the tensor is on cuda:0, but it existed before the call of place()"
    end
    if x:ne(0):any():item() then return false, "expected only zeros, got other numbers" end
    return true, "the tensor was made on cuda:0, and nothing was copied"
  end,
  solution = [[
function place()
  return lt.zeros{1000, 1000, device = "cuda:0"}
end
]],
}
