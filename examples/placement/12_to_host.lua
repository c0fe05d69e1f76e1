-- Copy to the host: tensors as Lua tables, numbers and files.
--
--   lutra [--emulate cuda:2] examples/placement/12_to_host.lua
--
-- The host is the computer that the GPU is part of. A table, a file or another library can only
-- access the host's memory. PyTorch therefore raises an error for x.numpy() of a tensor that is on
-- a GPU or requires grad. A Lua table is always a copy, so totable accepts every tensor; it makes
-- the same copy to the host.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()

local x = lt.tensor{{1.5, 2.5}, {3.5, 4.5}, device = device, requires_grad = true}
local y = x * 2

-- PyTorch: y.detach().cpu().numpy(). Three steps: detach, copy to the host, convert.
local list = y:detach():cpu():totable()
print("the table:", list[1][1], list[1][2], list[2][1], list[2][2])
assert(type(list) == "table" and list[1][1] == 3.0 and list[2][2] == 9.0)

-- totable does the first two steps itself.
assert(y:totable()[2][2] == 9.0)
assert(x[{2, 1}]:item() == 3.5)

-- The table is a copy: changing it does not change the tensor.
list[1][1] = 100
assert(y.device == device and y[{1, 1}]:item() == 3.0)

-- detach alone does not copy: both tensors share storage. Nor does cpu() of a CPU tensor.
local view = y:detach()
assert(view:shares_storage(y) and view.device == device and not view.requires_grad)
assert(y:cpu():shares_storage(y) == (device == "cpu"))

-- PyTorch: np.save(path, y.detach().cpu().numpy()). A file for NumPy. load_npy returns a CPU
-- tensor.
local path = os.tmpname()
lt.save_npy(path, y)
local loaded = lt.load_npy(path)
os.remove(path)
print("from the file:\n" .. tostring(loaded))
assert(loaded.device == "cpu" and lt.equal(loaded, y:detach():cpu()))

-- print shows the device of a tensor, and copies the values: an implicit copy. A guard makes
-- implicit copies errors.
assert((tostring(y):find(device, 1, true) ~= nil) == (device ~= "cpu"))
local quiet, problem = pcall(lt.placement.guard, "disallow", tostring, y)
assert(quiet == (device == "cpu"))
if not quiet then print("\nprinting in a guard:\n  " .. problem) end
assert(lt.placement.guard("disallow", function() return y:cpu().device end) == "cpu")

-- A meta tensor has no data to copy.
local ok, message = pcall(function() return lt.zeros{2, device = "meta"}:totable() end)
print("\ntotable of a meta tensor:\n  " .. message)
assert(not ok and message:find("no data", 1, true))

if device == "cpu" then
  print "skipped: a CPU tensor is already on the host (--emulate cuda:2)"
end
print "ok: detach, cpu, totable; the result is a copy"
