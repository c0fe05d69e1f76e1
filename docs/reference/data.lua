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
for i, x in pairs(loader) do print(i, #x) end
--> 1	4
--> 2	4
--> 3	2

-- Batches fetched by two threads: the same ones, in the same order
local fetched = {}
for x in data.DataLoader(set, {batch_size = 5, num_workers = 2}):iter() do
  fetched[#fetched + 1] = #x
end
print(table.concat(fetched, " "))  --> 5 5

-- A dataset of your own: data.Dataset:extend
local Squares = data.Dataset:extend "Squares"
function Squares:init(n) self.n = n end
function Squares:__len() return self.n end
function Squares:get(i) return self:check_position(i) ^ 2 end
print(Squares(5):get(3))  --> 9.0

-- Samples that are lists of values, tensors or plain values: a list or a tensor is a dataset, too
for x, y in data.DataLoader({{1, "a"}, {2, "b"}}, {batch_size = 2}):iter() do
  print(x, y[1], y[2])  --> tensor{1, 2}	a	b
end

-- A stream of samples: data.IterableDataset:extend
local Count = data.IterableDataset:extend "Count"
function Count:init(n) self.n = n end
function Count:iter()
  local i = 0
  return function()
    i = i + 1
    if i <= self.n then return i end
  end
end
for x in data.DataLoader(Count(5), {batch_size = 3}):iter() do print(x) end
--> tensor{1, 2, 3}
--> tensor{4, 5}

-- A stream with workers: get_worker_info divides it
local Shared = data.IterableDataset:extend "Shared"
function Shared.iter()
  local info = data.get_worker_info() or {id = 1, num_workers = 1}
  local i = info.id - info.num_workers
  return function()
    i = i + info.num_workers
    if i <= 4 then return i end
  end
end
for x in data.DataLoader(Shared(), {batch_size = 2, num_workers = 2}):iter() do print(x) end
--> tensor{1, 3}
--> tensor{2, 4}
print(data.get_worker_info())  --> nil

-- Several datasets: one after the other, side by side
print(#data.ConcatDataset{set, Squares(5)}, #(set + set))  --> 15	20
local both = data.StackDataset{x = set, square = Squares(10)}
print(both:get(2).square)  --> 4.0
local chain = data.ChainDataset{Count(1), Count(2)}
for i in chain:iter() do print(i) end
--> 1
--> 1
--> 2

-- Samplers choose the samples of a pass and their order
local function indices(sampler)
  local list = {}
  for i in sampler:iter() do list[#list + 1] = i end
  return table.concat(list, " ")
end
print(indices(data.SequentialSampler(set)))  --> 1 2 3 4 5 6 7 8 9 10
print(#data.RandomSampler(set, {num_samples = 4}), #data.SubsetRandomSampler{2, 4, 6})  --> 4	3
local weighted = data.WeightedRandomSampler({0, 0, 1}, 3)
print(indices(weighted))  --> 3 3 3
for batch in data.BatchSampler(weighted, 2, false):iter() do print(#batch) end
--> 2
--> 1
local part = data.DistributedSampler(set, {num_replicas = 2, rank = 1, shuffle = false})
part:set_epoch(1)
print(indices(part), part == data.distributed.DistributedSampler)  --> 2 4 6 8 10	false

-- A sampler of your own: data.Sampler:extend
local Even = data.Sampler:extend "Even"
function Even:init(n) self.n = n end
function Even:__len() return self.n // 2 end
function Even:iter()
  local i = 0
  return function()
    i = i + 2
    return i <= self.n and i or nil
  end
end
for x in data.DataLoader(set, {batch_size = 3, sampler = Even(10)}):iter() do print(x) end
--> tensor{2, 4, 6}
--> tensor{ 8, 10}

-- All indices of a pass as a tensor, and batches of them
for _, sampler in ipairs{data.SequentialSampler(set), data.RandomSampler(set),
  data.SubsetRandomSampler{2, 4}, weighted, part} do
  assert(#sampler:order() == #sampler)
end
print(data.BatchSampler(part, 4, true):batches()())  --> tensor{2, 4, 6, 8}

-- Parts of a dataset
print(#data.Subset(set, {1, 3, 5}))  --> 3
local train, test = table.unpack(data.random_split(set, {8, 2}))
print(#train, #test)  --> 8	2

-- A batch from a list of samples
local numbers, names = data.default_collate{{1, "a"}, {2, "b"}}
print(numbers, names[1], names[2])  --> tensor{1, 2}	a	b
print(data.default_collate{1.5, 2})  --> tensor{1.5000, 2.0000, dtype = "float64"}
print(data.default_convert(3))  --> 3

-- A CSV file: data.read_csv
local table_path = os.tmpname()
local table_file <close> = assert(io.open(table_path, "w"))
table_file:write("size,price,city\n1,2.5,Oslo\n3,,Bonn\n")
table_file:close()
local csv = data.read_csv(table_path)
os.remove(table_path)
print(csv)  --> CSV data of 2 rows: size, price, city
print(csv:column "size", csv.missing.price)  --> tensor{1, 3}	1
print(csv:row(1).city)  --> Oslo
print(csv:tensor{"size", "price"})
--> tensor{{1.0000, 2.5000},
-->        {3.0000,    nan}, shape = {2, 2}}

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
