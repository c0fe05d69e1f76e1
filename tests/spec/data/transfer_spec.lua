-- What travels to a worker: closures with their variables, classes, tensors, globals; and errors
-- that name what does not.

local lt = require "lutra"
local support = require "nn_support"

local data = lt.data
local fails = support.fails

-- Returns what f returns in a worker, as one value.
local function in_worker(f)
  return data.DataLoader({0}, {batch_size = false, num_workers = 1, collate_fn = f}):iter()()
end

local function refuse(path, what, f)
  fails(("DataLoader: cannot send '%s' to a worker: it is %s"):format(path, what),
    function() in_worker(f) end)
end

describe("a function in a worker", function()
  it("has its variables", function()
    local n, text, list = 3, "x", {1, {2.5, true}}
    assert.same({n = 3, text = "x", list = {1, {2.5, true}}, inf = math.huge},
      in_worker(function() return {n = n, text = text, list = list, inf = math.huge} end))
  end)

  it("shares variables with other functions", function()
    local count = 0
    local function add() count = count + 1 end
    local function get() return count end
    assert.equal(2, in_worker(function()
      add()
      add()
      return get()
    end))
    assert.equal(0, count)
  end)

  it("may be recursive, and so may tables", function()
    local function factorial(n) return n == 0 and 1 or n * factorial(n - 1) end
    local ring = {}
    ring.self = ring
    assert.equal(120, in_worker(function() return ring.self.self == ring and factorial(5) end))
  end)

  it("has the library, Lua's functions and the methods of strings", function()
    local find, insert, relu, nn = string.find, table.insert, lt.nn.functional.relu, lt.nn
    local Linear = lt.nn.Linear
    assert.is_true(in_worker(function()
      assert(find == string.find and insert == table.insert and relu == lt.F.relu)
      assert(nn == require "lutra.nn" and Linear == nn.Linear)
      assert(lt.zeros(2):sum():item() == 0 and ("a"):upper() == "A")
      return true
    end))
  end)

  it("has the globals that it uses, as they are now", function()
    -- luacheck: push globals transfer_base transfer_scale transfer_file string.transfer_twice
    transfer_base = 7
    function transfer_scale(x) return x * transfer_base end
    transfer_file = io.stdout
    function string.transfer_twice(s) return s .. s end
    assert.equal(21, in_worker(function() return transfer_scale(3) end))
    assert.equal("abab", in_worker(function() return ("ab"):transfer_twice() end))
    fails("cannot use the global 'transfer_file' in a worker: it is an open file",
      function() in_worker(function() return transfer_file ~= nil end) end)
    transfer_base, transfer_scale, transfer_file, string.transfer_twice = nil, nil, nil, nil
    -- luacheck: pop
  end)

  it("has modules, and objects of classes of its own", function()
    local Animal = {}
    Animal.__index = Animal
    function Animal:name() return "a " .. self.kind end
    function Animal.__eq(a, b) return a.kind == b.kind end
    local cat, other = setmetatable({kind = "cat"}, Animal), setmetatable({kind = "cat"}, Animal)
    local net = lt.nn.Sequential(lt.nn.Linear(2, 3), lt.nn.ReLU())
    local x = lt.rand(4, 2)
    local name, equal, out = data.DataLoader({0}, {batch_size = false, num_workers = 1,
      collate_fn = function()
        return cat:name(), cat == other, lt.no_grad(function() return net(x) end)
      end}):iter()()
    assert.equal("a cat", name)
    assert.is_true(equal)
    assert.is_true(lt.equal(net(x):detach(), out))
  end)

  it("has tensors, generators, complex numbers and shapes", function()
    local weight, half = lt.nn.Parameter(lt.ones(2)), lt.ones(2, 3):to "float16"
    local g, z, shape = lt.Generator(4), lt.complex(1, 2), half.shape
    local expected = lt.rand{3, generator = lt.Generator(4)}
    local drawn, same = data.DataLoader({0}, {batch_size = false, num_workers = 1,
      collate_fn = function()
        assert(lt.is_parameter(weight) and weight.requires_grad)
        assert(half.dtype == "float16" and shape == half.shape and tostring(shape) == "{2, 3}")
        assert(z.re == 1 and z.im == 2)
        return lt.rand{3, generator = g}, true
      end}):iter()()
    assert.is_true(same)
    assert.is_true(lt.equal(expected, drawn))
  end)
end)

describe("what cannot travel", function()
  it("is named by its path", function()
    local file <close> = assert(io.tmpfile())
    local Images = data.Dataset:extend "Images"
    function Images:__len() return 1 end -- luacheck: ignore 212
    function Images:get(i) return self.transform(i) end
    local set = Images()
    local cache = file
    set.transform = function(i) return cache and i end
    fails("DataLoader: cannot send 'dataset.transform.cache' to a worker: it is an open file",
      function() data.DataLoader(set, {num_workers = 1}):iter() end)
    set.transform = {deep = {file, 2}}
    fails("'dataset.transform.deep[1]'",
      function() data.DataLoader(set, {num_workers = 1}):iter() end)
  end)

  it("is a coroutine, userdata, a freed tensor, a tensor with a graph", function()
    local thread = coroutine.create(function() end)
    refuse("collate_fn.thread", "a coroutine", function() return thread end)
    local freed = lt.ones(2)
    freed:free()
    refuse("collate_fn.freed", "a tensor that was freed", function() return freed end)
    local y = lt.ones{2, requires_grad = true} * 2
    refuse("collate_fn.y", "a tensor with an autograd graph", function() return y end)
  end)
end)
