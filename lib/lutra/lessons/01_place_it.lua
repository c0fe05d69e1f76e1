-- Lesson 1: a tensor is made where it is needed.

return {
  title = "Place it",
  goal = "place() gives 1000 x 1000 zeros that were made on cuda:0; nothing is copied.",
  devices = 1,
  text = [[
A GPU is a card with a processor and a memory of its own. The processor of the computer (the CPU,
here also called the host) works on main memory; the GPU works on its card's memory. Neither can
reach into the other's. So each tensor lives in one place, its device: "cpu", or "cuda:0" for the
first GPU.

    x = lt.zeros(2, 3)                     -- on the CPU
    y = lt.zeros{2, 3, device = "cuda:0"}  -- on the first GPU
    x.device, y.device

x:to "cuda:0" gives a copy of x on the GPU. The bytes go over a cable between host and card, which
is far slower than either memory. What is only needed there is best made there.

If this computer has no GPU, Lutra pretends that there are two small ones. They compute the right
numbers, keep memories apart and complain as real ones do. :devices shows them, and what lives
where.]],
  start = [[
function place()
  return lt.zeros(1000, 1000)
end
]],
  hints = {
    "Functions that make tensors take the device in a table: lt.ones{5, device = \"cuda:0\"}.",
    "The sizes go into the same table: lt.zeros{1000, 1000, device = \"cuda:0\"}. If yours is on "
      .. "cuda:0 and still fails: was it made on the CPU first, and copied?",
  },
  check = function(env, lt, see)
    local trace, x = lt.placement.trace(see.func(env, "place"))
    see.tensor(x, "place()")
    if x.device ~= "cuda:0" then
      return false, ("place() gives a tensor on %s, it is to be on cuda:0"):format(x.device)
    end
    if x.ndim ~= 2 or x:size(1) ~= 1000 or x:size(2) ~= 1000 then
      return false, ("place() gives a tensor of shape %s, it is to be {1000, 1000}"):format(
        tostring(x.shape))
    end
    local copies, where = see.count(trace, see.copy)
    if copies > 0 then
      return false, ("it is on cuda:0, but it was made elsewhere and copied: %s, %s over the "
        .. "cable, at %s"):format(see.copies(copies), see.bytes(trace:totals().bytes), where)
    end
    if see.count(trace, see.made "cuda:0") == 0 then
      return false, "it is on cuda:0, but place() did not make it: it was there before the call"
    end
    if x:ne(0):any():item() then return false, "not all of the numbers are 0" end
    return true, "it was made on cuda:0, and nothing was copied"
  end,
  solution = [[
function place()
  return lt.zeros{1000, 1000, device = "cuda:0"}
end
]],
}
