-- Datasets, loaders, MNIST's files.

local lt = require "lutra"
local support = require "nn_support"

local data = lt.data
local fails, close = support.fails, support.close

-- Sample i is i and its square.
local Squares = data.Dataset:extend "Squares"
function Squares:init(n) self.n = n end
function Squares:__len() return self.n end
function Squares:get(i)
  i = self:check_position(i)
  return lt.tensor {i, -i}, i * i
end

-- X {n, 2} with rows {i, 10 i}, Y {n} with i.
local function rows(n)
  local y = lt.arange(n)
  return lt.stack({y, y * 10}, 2), y
end

describe("datasets", function()
  it("of tensors give rows", function()
    local x, y = rows(5)
    local set = data.TensorDataset(x, y)
    assert.equal(5, #set)
    local a, b = set:get(2)
    assert.same({2, 20}, a:totable())
    assert.equal(2, b:item())
    assert.equal(5, select(2, set:get(-1)):item())
    assert.same({3, 30}, set[3][1]:totable())
    assert.equal("TensorDataset of 5 samples", tostring(set))
    fails("expected an index from 1 to 5 or from -5 to -1, got 0", function() set:get(0) end)
    fails("from 1 to 5 or from -5 to -1, got 6", function() set:get(6) end)
    fails("an integer", function() set:get "2" end)
    fails({"5 rows", "4"}, function() local _ = data.TensorDataset(x, lt.ones(4)) end)
    fails("at least one", function() local _ = data.TensorDataset() end)
    fails("argument 2", function() local _ = data.TensorDataset(x, 3) end)
  end)

  it("of your own are classes", function()
    local set = Squares(4)
    assert.equal(4, #set)
    assert.equal(9, select(2, set:get(3)))
    assert.equal(16, set[-1][2])
    local Bare = data.Dataset:extend "Bare"
    fails({"Bare", "get"}, function() Bare():get(1) end)
    fails({"Bare", "__len"}, function() local _ = #Bare() end)
  end)

  it("have subsets", function()
    local x, y = rows(6)
    for _, set in ipairs {data.TensorDataset(x, y), Squares(6)} do
      local part = data.Subset(set, {6, 2})
      assert.equal(2, #part)
      assert.equal(6, (part:get(1))[1]:item())
      for batch in data.DataLoader(part, {batch_size = 2}):iter() do
        assert.same({6, 2}, batch[{{}, 1}]:totable())
      end
      fails("expected an integer from 1 to 6 for argument 'indices[2]', got 7",
        function() local _ = data.Subset(set, {1, 7}) end)
    end
  end)

  it("split at random into parts that cover them", function()
    local x, y = rows(10)
    local set = data.TensorDataset(x, y)
    for _, lengths in ipairs {{7, 3}, {0.65, 0.35}} do
      local g = lt.Generator()
      g:manual_seed(2)
      local parts = data.random_split(set, lengths, {generator = g})
      assert.equal(7, #parts[1])
      assert.equal(3, #parts[2])
      local seen = {}
      for _, part in ipairs(parts) do
        for i = 1, #part do seen[select(2, part:get(i)):item()] = true end
      end
      assert.equal(10, #seen)
    end
    assert.equal(1, #data.random_split(data.Subset(set, {1}), {0.5, 0.5})[1])
    local odd = setmetatable({}, {__len = function() return "x" end})
    fails("got one of length", function() data.random_split(odd, {1}) end)
    fails("got one of length", function() local _ = data.Subset(odd, {1}) end)
    fails("add up to 10 (the samples) or 1, got 11", function() data.random_split(set, {7, 4}) end)
    fails("or 1, got 9.2", function() data.random_split(set, {math.maxinteger, 2}) end)
  end)
end)

describe("DataLoader", function()
  local x, y = rows(10)
  local set = data.TensorDataset(x, y)

  it("gives batches in order, the last one smaller or dropped", function()
    local loader = data.DataLoader(set, {batch_size = 4})
    assert.equal(3, #loader)
    local sizes, all = {}, {}
    for a, b in loader:iter() do
      sizes[#sizes + 1] = a:size(1)
      for _, label in ipairs(b:totable()) do all[#all + 1] = label end
      close((b * 10):to "float64", a[{{}, 2}], 0)
    end
    assert.same({4, 4, 2}, sizes)
    assert.same({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, all)
    local dropping = data.DataLoader {set, batch_size = 4, drop_last = true}
    assert.equal(2, #dropping)
    local count = 0
    for a in dropping:iter() do
      count = count + 1
      assert.equal(4, a:size(1))
    end
    assert.equal(2, count)
  end)

  local function order(loader)
    local all = {}
    for _, b in loader:iter() do
      for _, label in ipairs(b:totable()) do all[#all + 1] = label end
    end
    return all
  end

  it("shuffles anew each pass, the same from the same generator", function()
    local g = lt.Generator()
    local loader = data.DataLoader(set, {batch_size = 3, shuffle = true, generator = g})
    g:manual_seed(11)
    local first, second = order(loader), order(loader)
    g:manual_seed(11)
    assert.same(first, order(loader))
    assert.not_same(first, second)
    table.sort(first)
    assert.same({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, first)
    lt.manual_seed(1)
    local by_default = data.DataLoader(set, {batch_size = 3, shuffle = true})
    local a = order(by_default)
    lt.manual_seed(1)
    assert.same(a, order(by_default))
  end)

  it("follows a sampler", function()
    for _, sampler in ipairs {{9, 2, 2}, lt.tensor {9, 2, 2}} do
      local loader = data.DataLoader(set, {batch_size = 2, sampler = sampler})
      assert.equal(2, #loader)
      assert.same({9, 2, 2}, order(loader))
    end
    local loader = data.DataLoader(set, {batch_size = 2, sampler = function()
      local i = 0
      return function()
        i = i + 1
        return i <= 3 and 11 - i or nil
      end
    end})
    assert.same({10, 9, 8}, order(loader))
    fails("cannot count the batches", function() local _ = #loader end)
  end)

  it("collates samples one by one", function()
    local loader = data.DataLoader(Squares(5), {batch_size = 2})
    local shapes, squares = {}, {}
    for a, b in loader:iter() do
      shapes[#shapes + 1] = tostring(a.shape)
      assert.equal("int64", b.dtype)
      for _, v in ipairs(b:totable()) do squares[#squares + 1] = v end
    end
    assert.same({"{2, 2}", "{2, 2}", "{1, 2}"}, shapes)
    assert.same({1, 4, 9, 16, 25}, squares)
  end)

  it("collates numbers, booleans, strings and tables", function()
    local a, b, c, d = data.default_collate {
      {1, 2.5, "x", {lt.ones(2), flag = true}},
      {2, 3, "y", {lt.zeros(2), flag = false}},
    }
    assert.equal("int64", a.dtype)
    assert.same({1, 2}, a:totable())
    assert.equal("float64", b.dtype)
    assert.same({2.5, 3.0}, b:totable())
    assert.same({"x", "y"}, c)
    assert.equal("{2, 2}", tostring(d[1].shape))
    assert.equal("bool", d.flag.dtype)
    fails({"{2}", "{3}", "collate_fn"}, function()
      data.default_collate {{lt.ones(2)}, {lt.ones(3)}}
    end)
    fails("expected the field 2 of sample 1 in sample 2, got nil",
      function() data.default_collate {{1, 2}, {1}} end)
    fails("expected a number in sample 2", function() data.default_collate {{1}, {"a"}} end)
  end)

  it("uses a collate_fn", function()
    local loader = data.DataLoader(Squares(4), {batch_size = 4, collate_fn = function(samples)
      return #samples, samples[3][2]
    end})
    local n, third = loader:iter()()
    assert.equal(4, n)
    assert.equal(9, third)
  end)

  it("moves batches to a device", function()
    for a, b in data.DataLoader(set, {batch_size = 5, device = "meta"}):iter() do
      assert.equal("meta", a.device)
      assert.equal("meta", b.device)
    end
    for a in data.DataLoader(set, {batch_size = 5, device = "cpu", pin_memory = true}):iter() do
      assert.equal("cpu", a.device)
    end
  end)

  it("copies: writing into a batch leaves the data alone", function()
    for a in data.DataLoader(set, {batch_size = 10}):iter() do a:fill_(0) end
    assert.equal(10, x[1][2]:item())
  end)

  it("of an empty dataset gives nothing", function()
    local loader = data.DataLoader(data.TensorDataset(lt.zeros(0, 2)), {batch_size = 3})
    assert.equal(0, #loader)
    assert.is_nil(loader:iter()())
  end)

  it("refuses wrong settings", function()
    fails({"dataset", "TensorDataset"},
      function() local _ = data.DataLoader(lt.tensor(2), {batch_size = 2}) end)
    local strings = setmetatable({}, {
      __len = function() return 3 end, __index = function(_, key) return key end,
    })
    fails("DataLoader: expected a dataset for argument 'dataset', got a table",
      function() local _ = data.DataLoader(strings, {batch_size = 2}) end)
    fails("Subset: expected a dataset for argument 'dataset', got a table",
      function() local _ = data.Subset(strings, {1}) end)
    fails("batch_size", function() local _ = data.DataLoader(set, {batch_size = 0}) end)
    fails({"bach_size", "batch_size"},
      function() local _ = data.DataLoader(set, {bach_size = 2}) end)
    fails("cannot shuffle: the sampler gives the order",
      function() local _ = data.DataLoader(set, {shuffle = true, sampler = {1}}) end)
    fails("num_workers", function() local _ = data.DataLoader(set, {num_workers = -1}) end)
    fails("device", function() local _ = data.DataLoader(set, {device = "nowhere"}) end)
  end)
end)

describe("mnist", function()
  local folder = os.tmpname()
  os.remove(folder)
  setup(function() os.execute("mkdir '" .. folder .. "'") end)
  teardown(function() os.execute("rm -r '" .. folder .. "'") end)

  -- Writes an IDX file of bytes with the given sizes.
  local function write(name, sizes, bytes)
    local file = assert(io.open(folder .. "/" .. name, "wb"))
    file:write(string.pack(">BBBB", 0, 0, 8, #sizes))
    for _, size in ipairs(sizes) do file:write(string.pack(">I4", size)) end
    file:write(bytes)
    file:close()
  end

  it("reads images and labels, which count from 1", function()
    write("train-images-idx3-ubyte", {2, 2, 3}, "\0\1\2\3\4\5\6\7\8\9\10\255")
    write("train-labels-idx1-ubyte", {2}, "\0\9")
    local images, labels = data.mnist(folder)
    assert.same({{{0, 1, 2}, {3, 4, 5}}, {{6, 7, 8}, {9, 10, 255}}}, images:totable())
    assert.same({1, 10}, labels:totable())
    assert.equal("int64", labels.dtype)
    assert.same({0, 9}, data.idx(folder .. "/train-labels-idx1-ubyte"):totable())
  end)

  it("refuses what is not MNIST", function()
    fails("no-such-folder", function() data.mnist "no-such-folder" end)
    write("t10k-images-idx3-ubyte", {2, 1, 1}, "\0\1")
    write("t10k-labels-idx1-ubyte", {3}, "\0\1\2")
    fails({"2 images", "3 labels"}, function() data.mnist(folder, "t10k") end)
    write("t10k-labels-idx1-ubyte", {2}, "\0\10")
    fails("expected labels from 0 to 9 in", function() data.mnist(folder, "t10k") end)
    write("t10k-labels-idx1-ubyte", {2, 1}, "\0\1")
    fails("expected labels of shape {n}", function() data.mnist(folder, "t10k") end)
    write("t10k-labels-idx1-ubyte", {2}, "\0")
    assert.is_false(pcall(data.mnist, folder, "t10k"))
  end)
end)
