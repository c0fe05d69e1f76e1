-- Batches that arrive on the device.
--
--   lutra [--emulate cuda:2] examples/placement/21_batches_on_device.lua
--
-- Two ways to have no `to` in the training loop. A set that fits in the card's memory is put there
-- whole, once. A larger one stays on the CPU, and the loader is told the device: it pins the next
-- batch and sends it while the program works on this one.
--
-- test:

local lt = require "lutra"
local data = lt.data
local device = lt.best_device()

-- 400 rows of 50 numbers: a row's number, fifty times.
local x = lt.arange(400):float():unsqueeze(2):tile(1, 50)
local y = lt.randint(1, 2, {400})

-- What is copied between devices in one pass.
local function transfers(loader)
  local trace = lt.placement.trace(function() for _ in loader:iter() do end end)
  return trace:totals()
end

-- One pass; every row must come exactly once, on the device.
local function check_pass(loader)
  local rows, sum = 0, lt.zeros{1, device = device}
  for a, b in loader:iter() do
    assert(a.device == device and b.device == device)
    rows, sum = rows + a:size(1), sum + a[{{}, 1}]:sum()
  end
  assert(rows == 400 and sum:item() == 400 * 401 / 2)
end

-- 1. The loader sends: in each pass all bytes once more, two tensors a batch. (PyTorch's has no
-- such option; there one writes x = x.to(device, non_blocking=True) in the loop.)
local sending = data.DataLoader(data.TensorDataset(x, y), {batch_size = 50, device = device})
check_pass(sending)
local sent = transfers(sending)
print(("the loader sends:  %2d copies, %5d bytes in each pass, %d of them waited for"):format(
  sent.copies, sent.bytes, sent.blocking))

-- 2. The whole set lives there: loaded straight onto the device, cut into batches there.
-- PyTorch: TensorDataset(x.to(device), y.to(device))
local resident = data.TensorDataset(x:to(device), y:to(device))
local there = data.DataLoader(resident, {batch_size = 50})
check_pass(there)
local cut = transfers(there)
print(("the set is there:  %2d copies, %5d bytes in each pass"):format(cut.copies, cut.bytes))

if device == "cpu" then
  assert(sent.copies == 0 and cut.copies == 0)
  print "skipped: where there is one device, nothing is sent (--emulate cuda:2)"
else
  local set_bytes = x:numel() * x:element_size() + y:numel() * y:element_size()
  assert(sent.copies == 2 * #sending and sent.bytes == set_bytes)
  assert(sent.blocking == 0, "the program waits for a batch")
  -- Which rows a batch has is sent, not the rows.
  assert(cut.copies == #there and cut.bytes == 8 * #x)
end

-- From a file, with nothing in between but the one copy.
local path = os.tmpname()
lt.save_npy(path, x)
local trace, loaded = lt.placement.trace(function() return lt.load_npy(path):to(device) end)
os.remove(path)
assert(loaded.device == device and lt.equal(loaded:cpu(), x))
assert(trace:totals().copies == (device == "cpu" and 0 or 1))

print "ok: tell the loader the device, or put the set there once"
