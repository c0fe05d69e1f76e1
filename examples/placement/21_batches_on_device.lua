-- Data loading: batches on the device.
--
--   lutra [--emulate cuda:2] examples/placement/21_batches_on_device.lua
--
-- Two alternatives to `to` in the training loop. A data set that fits in the GPU's memory is copied
-- there once. A larger one stays on the CPU, and the loader has the option `device`: it pins the
-- next batch and copies it while the program uses the current one.
--
-- test:

local lt = require "lutra"
local data = lt.data
local device = lt.best_device()

-- 400 rows of 50 elements, which are the row's number.
local x = lt.arange(400):float():unsqueeze(2):tile(1, 50)
local y = lt.randint(1, 2, {400})

-- Returns the copies between devices of one pass.
local function transfers(loader)
  local trace = lt.placement.trace(function() for _ in loader:iter() do end end)
  return trace:totals()
end

-- Checks one pass: it has every row exactly once, on the device.
local function check_pass(loader)
  local rows, sum = 0, lt.zeros{1, device = device}
  for a, b in loader:iter() do
    assert(a.device == device and b.device == device)
    rows, sum = rows + a:size(1), sum + a[{{}, 1}]:sum()
  end
  assert(rows == 400 and sum:item() == 400 * 401 / 2)
end

-- 1. The loader copies: all bytes in each pass, two tensors per batch. (PyTorch's loader has no
-- such option; there write x = x.to(device, non_blocking=True) in the loop.)
local sending = data.DataLoader(data.TensorDataset(x, y), {batch_size = 50, device = device})
check_pass(sending)
local sent = transfers(sending)
print(("the loader copies:        %2d copies, %5d bytes in each pass, %d of them blocking")
  :format(sent.copies, sent.bytes, sent.blocking))

-- 2. The whole set is on the device and divided into batches there.
-- PyTorch: TensorDataset(x.to(device), y.to(device))
local resident = data.TensorDataset(x:to(device), y:to(device))
local there = data.DataLoader(resident, {batch_size = 50})
check_pass(there)
local cut = transfers(there)
print(("the set is on the device: %2d copies, %5d bytes in each pass"):format(cut.copies,
  cut.bytes))

if device == "cpu" then
  assert(sent.copies == 0 and cut.copies == 0)
  print "skipped: with one device nothing is copied (--emulate cuda:2)"
else
  local set_bytes = x:numel() * x:element_size() + y:numel() * y:element_size()
  assert(sent.copies == 2 * #sending and sent.bytes == set_bytes)
  assert(sent.blocking == 0, "a copy of a batch blocked the host")
  -- Only the indices of a batch are copied, not its rows.
  assert(cut.copies == #there and cut.bytes == 8 * #x)
end

-- From a file, with one copy.
local path = os.tmpname()
lt.save_npy(path, x)
local trace, loaded = lt.placement.trace(function() return lt.load_npy(path):to(device) end)
os.remove(path)
assert(loaded.device == device and lt.equal(loaded:cpu(), x))
assert(trace:totals().copies == (device == "cpu" and 0 or 1))

print "ok: pass `device` to the loader, or copy the data set once"
