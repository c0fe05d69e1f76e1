-- Examples of data.
local lt = require "lutra"
local data = lt.data
lt.manual_seed(1)

-- Tensors as a dataset: data.TensorDataset
local set = data.TensorDataset(lt.arange(10), lt.arange(10):float() / 10)
print(#set, set:get(3))  --> 10	tensor(3)	tensor(0.3000)
print(set:get_batch(lt.tensor{1, 2}))  --> tensor{1, 2}	tensor{0.1000, 0.2000}

-- Batches
local loader = data.DataLoader(set, {batch_size = 4, shuffle = true})
for x, y in loader:iter() do assert(#x == #y) end
print(#loader)  --> 3

-- A dataset of your own: data.Dataset:extend
local Squares = data.Dataset:extend "Squares"
function Squares:init(n) self.n = n end
function Squares:__len() return self.n end
function Squares:get(i) return self:check_position(i) ^ 2 end
print(Squares(5):get(3))  --> 9.0

-- Parts of a dataset
print(#data.Subset(set, {1, 3, 5}))  --> 3
local train, test = table.unpack(data.random_split(set, {8, 2}))
print(#train, #test)  --> 8	2

-- A batch from a list of samples
print(data.default_collate{{1, n = 1}, {2, n = 1}})  --> tensor{1, 2}

-- Files in the IDX format, and MNIST's four files in a folder
local path = os.tmpname()
local file <close> = assert(io.open(path, "wb"))
file:write("\0\0\8\1\0\0\0\3abc")
file:close()
print(data.idx(path))  --> tensor{97, 98, 99, dtype = "uint8"}
os.remove(path)
local folder = os.getenv "LUTRA_TEST_DATA"
if folder then
  local images, labels = data.mnist(folder .. "/mnist", "t10k")
  assert(#images == #labels)
end
