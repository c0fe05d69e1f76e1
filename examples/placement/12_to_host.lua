-- To the host: tensors as Lua tables, numbers and files.
--
--   lutra [--emulate cuda:2] examples/placement/12_to_host.lua
--
-- "Host" is the computer that the card is plugged into. What is not part of Lutra - a table, a
-- file, another library - can only see the host's memory. So PyTorch refuses x.numpy() of a tensor
-- that is on a card or has a history (requires_grad). Lua's table is always a copy, so totable
-- has nothing to refuse; but the journey is the same.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()

local x = lt.tensor{{1.5, 2.5}, {3.5, 4.5}, device = device, requires_grad = true}
local y = x * 2

-- PyTorch: y.detach().cpu().numpy(). Three steps: without history, at home, as a table.
local list = y:detach():cpu():totable()
print("the table:", list[1][1], list[1][2], list[2][1], list[2][2])
assert(type(list) == "table" and list[1][1] == 3.0 and list[2][2] == 9.0)

-- totable does the first two by itself, so the short way is the same.
assert(y:totable()[2][2] == 9.0)
assert(x[{2, 1}]:item() == 3.5)

-- The table is a copy: changing it changes no tensor, and the tensor is where it was.
list[1][1] = 100
assert(y.device == device and y[{1, 1}]:item() == 3.0)

-- detach alone neither copies nor moves: both names look at the same memory. So does cpu() of what
-- is on the CPU.
local view = y:detach()
assert(view:shares_storage(y) and view.device == device and not view.requires_grad)
assert(y:cpu():shares_storage(y) == (device == "cpu"))

-- PyTorch: np.save(path, y.detach().cpu().numpy()). A file for NumPy. What is read is on the CPU.
local path = os.tmpname()
lt.save_npy(path, y)
local loaded = lt.load_npy(path)
os.remove(path)
print("from the file:\n" .. tostring(loaded))
assert(loaded.device == "cpu" and lt.equal(loaded, y:detach():cpu()))

-- print says where the tensor is, and copies what it shows: nobody asked for that copy. A guard
-- makes such copies errors, where they are not wanted.
assert((tostring(y):find(device, 1, true) ~= nil) == (device ~= "cpu"))
local quiet, complaint = pcall(lt.placement.guard, "disallow", tostring, y)
assert(quiet == (device == "cpu"))
if not quiet then print("\nprinting under a guard:\n  " .. complaint) end
assert(lt.placement.guard("disallow", function() return y:cpu().device end) == "cpu")

-- A meta tensor has a shape only: there is nothing to bring home.
local ok, message = pcall(function() return lt.zeros{2, device = "meta"}:totable() end)
print("\ntotable of a meta tensor:\n  " .. message)
assert(not ok and message:find("no data", 1, true))

if device == "cpu" then
  print "skipped: on the CPU everything is at home already (--emulate cuda:2)"
end
print "ok: detach, cpu, totable; what comes home is a copy"
