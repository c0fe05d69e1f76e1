-- Indexing on devices: reading and writing by positions and masks, and its gradients, in all dtypes
-- and layouts. The CPU gives the expected values, bit for bit: nothing depends on the order of
-- threads.

local devices = require "device_support"
local options = {any = true, emulate = {"cuda:2", "mps"}, reverse = true, memory = "1GiB"}
if devices.elsewhere("cuda/cuda_index", _ENV, options) then return end

local lt = require "lutra"
local DEVICE = devices.device()

local DTYPES = devices.dtypes {
  "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
}

-- Numbers whose sums are rounded, so that another order of adding is seen.
local function noise(dtype, ...)
  if dtype == "bool" then return lt.randint(0, 1, {...}):to "bool" end
  local x = lt.randn {...}
  return dtype:match "float" and x:to(dtype) or (x * 20):to(dtype:match "^u" and "uint8" or dtype)
end

-- The tensor laid out in memory in another way: 1 as it is, 2 with the first and last dim
-- exchanged, 3 with gaps, 4 behind an odd offset.
local function lay(x, layout)
  if layout == 2 then return x:transpose(1, -1):contiguous():transpose(1, -1) end
  if layout == 3 then return lt.stack({x, x}, -1)[{"...", 1}] end
  if layout == 4 then
    local flat = x:reshape(-1)
    return lt.cat {flat:narrow(1, 1, 1), flat}:narrow(1, 2, x:numel()):view(x.shape)
  end
  return x
end

local function same(want, got, label)
  label = label or "result"
  assert.equal(DEVICE, tostring(got.device), label)
  assert.equal(want.dtype, got.dtype, label)
  assert.equal(table.concat(want.shape, ","), table.concat(got.shape, ","), label)
  local here = got:cpu()
  if not lt.equal(here, want) then
    error(("%s: got\n%s\nwanted\n%s"):format(label, here, want), 0)
  end
end

local function here(t) return t end
local function there(t) return t:to(DEVICE) end

-- What f makes is the same on both devices; f(on) moves its tensors with `on`.
local function both(label, f)
  local want, got = table.pack(f(here)), table.pack(f(there))
  for i = 1, want.n do same(want[i], got[i], label .. ", result " .. i) end
end

local function positions(n, ...) return lt.randint(n, {...}) end
local function ints(...) return lt.tensor({...}, {dtype = "int64"}) end

-- The message with which f fails, at once or when the host synchronizes.
local function fails(text, f)
  local ok, message = pcall(function()
    f()
    lt.zeros(1, {device = DEVICE}):cpu()
  end)
  assert.is_false(ok, "no error; expected: " .. text)
  message = tostring(message)
  assert.is_truthy(message:find(text, 1, true), "expected: " .. text .. "\ngot: " .. message)
end

lt.manual_seed(5)

describe("reading by positions on a device", function()
  it("selects rows in every dtype, dim and layout", function()
    for _, dtype in ipairs(DTYPES) do
      local x = noise(dtype, 4, 3, 6)
      for dim = 1, 3 do
        for layout = 1, 4 do
          local index = positions(x.shape[dim], 7)
          both(dtype .. " dim " .. dim .. " layout " .. layout, function(on)
            return lay(on(x), layout):index_select(dim, on(index))
          end)
        end
      end
    end
  end)

  it("selects rows of all widths, in units of up to 16 bytes", function()
    for width = 1, 40 do
      for _, dtype in ipairs {"uint8", "float16", "float32", "int64"} do
        local x, index = noise(dtype, 5, width), positions(5, 3)
        both(dtype .. " width " .. width, function(on)
          return on(x):index_select(1, on(index)),
            on(x)[{{2, 5}}]:index_select(1, on(index:clamp(1, 4))),
            lay(on(x), 4):index_select(1, on(index))
        end)
      end
    end
  end)

  it("gathers in every dtype, dim and layout", function()
    for _, dtype in ipairs(DTYPES) do
      local x = noise(dtype, 4, 5, 6)
      for dim = 1, 3 do
        for layout = 1, 4 do
          local index = lay(positions(x.shape[dim], 3, 5, 2), 1 + layout % 4)
          both(dtype .. " dim " .. dim .. " layout " .. layout, function(on)
            return lay(on(x), layout):gather(dim, on(index))
          end)
        end
      end
    end
  end)

  it("takes indices of every integer dtype and layout", function()
    local x = lt.randn(6, 4)
    for _, dtype in ipairs {"int8", "int16", "int32", "int64"} do
      local index = positions(6, 4, 3):to(dtype)
      for layout = 1, 4 do
        both(dtype .. " layout " .. layout, function(on)
          local i = lay(on(index), layout)
          return on(x)[i], lt.embedding(on(x), i), on(x):index_select(1, i[{{}, 2}]),
            on(x):gather(1, i:t())
        end)
      end
    end
  end)

  it("knows 0-d and empty tensors", function()
    local zero, five, none = lt.tensor(3.5), lt.randn(5), lt.zeros({0}, {dtype = "int64"})
    local one = lt.ones({}, {dtype = "int64"})
    both("0-d", function(on)
      return on(zero):index_select(1, on(one)), on(zero):gather(1, on(one)), on(five)[on(one)],
        on(five):index_select(1, on(one)), on(zero):gather(1, on(lt.ones({3}, {dtype = "int64"}))),
        lt.embedding(on(lt.randn(3, 2):fill_(2)), on(one))
    end)
    both("empty", function(on)
      return on(five)[on(none)], on(lt.randn(4, 0)):index_select(1, on(ints(2, 4))),
        on(five):gather(1, on(none)), on(lt.randn(0, 4))[on(none)],
        lt.embedding(on(lt.randn(3, 2)), on(none)),
        on(five):index_copy(1, on(none), on(lt.zeros(0))),
        on(five):index_add(1, on(none), on(lt.zeros(0))),
        on(five):scatter(1, on(none), on(lt.zeros(0))), on(five):index_fill(1, on(none), 3),
        on(lt.zeros(2, 0)):masked_select(on(lt.zeros({2, 0}, {dtype = "bool"}))),
        lt.nonzero(on(lt.zeros(0, 3)))
    end)
  end)

  it("reads more elements than a grid's block", function()
    local x, index = lt.randn(50, 33), positions(50, 4000)
    both("many", function(on)
      return on(x)[on(index)], on(x):t():index_select(2, on(index)),
        on(x):gather(1, on(positions(50, 50, 33):fill_(7)))
    end)
  end)
end)

describe("x[...] on a device", function()
  local x = lt.randn(4, 5, 3, 2)
  local a, b = positions(4, 6), positions(3, 6)
  local column = positions(5, 2, 1)
  local keys = {
    {"2", function() return 2 end}, {"{2, 3}", function() return {2, 3} end},
    {"ranges", function() return {{1, 3, 2}, {}, -1} end},
    {"text", function() return "2:3, :, -1" end},
    {"newaxis", function() return {lt.newaxis, "...", 1} end},
    {"one index", function(on) return on(a) end},
    {"second dim", function(on) return {{}, on(column)} end},
    {"neighbours", function(on) return {on(a), on(a)} end},
    {"neighbours inside", function(on) return {{}, on(a), on(b)} end},
    {"neighbours at the end", function(on) return {"...", on(b), on(lt.ones_like(b))} end},
    {"apart", function(on) return {on(a), {}, on(b)} end},
    {"apart, dims behind", function(on) return {{}, on(a), {}, on(lt.ones_like(b))} end},
    {"broadcast together", function(on) return {on(column), on(a[{{1, 3}}])} end},
    {"three", function(on) return {on(a), on(a), on(b)} end},
    {"all four", function(on) return {on(a), on(a), on(b), on(lt.ones_like(b))} end},
    {"a position between", function(on) return {on(a), 2, on(b)} end},
    {"negative", function(on) return {on(-a), {2, 4}, on(b)} end},
    {"mask over all", function(on) return on(x:gt(0)) end},
    {"mask of rows", function(on) return on(x[{{}, 1, 1, 1}]:gt(-0.5)) end},
    {"mask of two dims", function(on) return {{}, on(x[{1, {}, {}, 1}]:gt(0))} end},
    {"a mask of nothing", function(on) return on(x:gt(100)) end},
    {"index of the CPU", function() return {a, {}, b} end},
    {"mask of the CPU", function() return x:gt(0) end},
  }

  it("reads in every form", function()
    for _, key in ipairs(keys) do
      for layout = 1, 4 do
        both(key[1] .. " layout " .. layout, function(on)
          return lay(on(x), layout)[key[2](on)]
        end)
      end
    end
  end)

  it("writes in every form, tensors and numbers", function()
    for _, key in ipairs(keys) do
      local value = lt.randn(x[key[2](here)].shape)
      for layout = 1, 4 do
        both(key[1] .. " layout " .. layout, function(on)
          local y, z = lay(on(x), layout):clone(), lay(on(x), layout):clone()
          y[key[2](on)] = on(value)
          z[key[2](on)] = 7.5
          local w = lay(on(x), layout)
          w = w:is_contiguous() and w:clone() or w
          w[key[2](on)] = value:numel() > 0 and value:view(-1)[1] or 3 -- a 0-d tensor of the CPU
          return y, z, w
        end)
      end
    end
  end)

  it("keeps the last of equal positions", function()
    for _, dtype in ipairs(DTYPES) do
      for _, n in ipairs {1, 3, 40, 2000} do
        local y = noise(dtype, n)
        local index, value = positions(n, 1500), noise(dtype, 1500)
        local rows, wide = noise(dtype, n, 3), noise(dtype, 1500, 3)
        both(dtype .. " " .. n, function(on)
          local to = on(y):clone()
          to[on(index)] = on(value)
          local flat = on(rows):clone()
          flat[on(index)] = on(wide)
          return to, flat, on(y):index_copy(1, on(index), on(value)),
            on(y):scatter(1, on(index[{{1, math.min(n, 1500)}}]), on(value))
        end)
      end
    end
    -- Far more places than positions.
    local big, index, value = lt.zeros(200000), positions(50, 3000) * 4000, lt.randn(3000)
    both("few of many", function(on)
      local to = on(big):clone()
      to[on(index)] = on(value)
      return to
    end)
  end)
end)

describe("writing by positions on a device", function()
  it("scatters in every dtype, dim and layout", function()
    for _, dtype in ipairs(DTYPES) do
      local x, src = noise(dtype, 4, 5, 6), noise(dtype, 3, 5, 7)
      for dim = 1, 3 do
        local index = positions(x.shape[dim], 3, 4, 6)
        for layout = 1, 4 do
          both(dtype .. " dim " .. dim .. " layout " .. layout, function(on)
            local from, to = lay(on(src), layout), lay(on(x), 1 + layout % 4)
            local inside = to:clone()
            inside:transpose(1, -1):scatter_(4 - dim, on(index):transpose(1, -1),
              from:transpose(1, -1))
            return to:scatter(dim, on(index), from), to:scatter_add(dim, on(index), from),
              to:scatter(dim, on(index), 1), inside
          end)
        end
      end
    end
  end)

  it("adds, copies and fills rows in every dtype, dim and layout", function()
    for _, dtype in ipairs(DTYPES) do
      local x = noise(dtype, 4, 5, 6)
      for dim = 1, 3 do
        local index = positions(x.shape[dim], 9)
        local shape = {4, 5, 6}
        shape[dim] = 9
        local src = noise(dtype, table.unpack(shape))
        for layout = 1, 4 do
          both(dtype .. " dim " .. dim .. " layout " .. layout, function(on)
            local from, to, i = lay(on(src), layout), lay(on(x), 1 + layout % 4), on(index)
            local inside = lay(on(x), layout):clone():transpose(1, -1)
            inside:index_add_(4 - dim, i, from:transpose(1, -1))
            return to:index_add(dim, i, from), to:index_add(dim, i, from, {alpha = 3}),
              to:index_copy(dim, i, from), to:index_fill(dim, i, 1), inside
          end)
        end
      end
    end
  end)

  it("adds in the order of the index, however many there are", function()
    local dtypes = devices.dtypes {"float32", "float64", "float16", "bfloat16", "int8", "int64"}
    for _, dtype in ipairs(dtypes) do
      for _, count in ipairs {1, 2, 33, 1000, 5000} do
        for _, n in ipairs {1, 7, 900} do
          local index, src, wide = positions(n, count), noise(dtype, count), noise(dtype, count, 3)
          local zero = lt.zeros({n}, {dtype = dtype})
          both(("%s %d into %d"):format(dtype, count, n), function(on)
            local to = on(zero):clone()
            to:_index_put_({on(index)}, {0}, on(src), true)
            return to, on(zero):index_add(1, on(index), on(src)),
              on(zero):scatter_add(1, on(index[{{1, math.min(n, count)}}]), on(src)),
              on(zero):unsqueeze(2):expand(n, 3):index_add(1, on(index), on(wide)),
              on(zero):expand(3, n):index_add(2, on(index), on(wide):t(), {alpha = 0.3})
          end)
        end
      end
    end
  end)

  it("writes and adds rows of all widths, aligned and not", function()
    for _, dtype in ipairs(devices.dtypes {"float16", "bfloat16", "float32", "float64", "int8"}) do
      for _, width in ipairs {1, 2, 4, 5, 8, 12, 20} do
        local alpha = dtype == "int8" and 3 or 0.7
        local x, src, index = noise(dtype, 9, width), noise(dtype, 300, width), positions(9, 300)
        for layout = 1, 4 do
          both(("%s width %d layout %d"):format(dtype, width, layout), function(on)
            local from, part = lay(on(src), layout), on(x):clone()
            part[{{2, 9}}]:index_add_(1, on(index:clamp(1, 8)), from)
            return part, on(x):index_add(1, on(index), from, {alpha = alpha}),
              on(x):index_copy(1, on(index), from), on(x):index_fill(1, on(index), 2)
          end)
        end
      end
    end
  end)

  it("accumulates at several indices", function()
    local x = lt.randn(4, 5, 6)
    local i, j = positions(4, 2000), positions(6, 2000)
    both("apart", function(on)
      local y, z = on(x):clone(), on(x):transpose(1, 3):contiguous():transpose(1, 3)
      y:_index_put_({on(i), on(j)}, {0, 2}, on(lt.ones(2000, 5) * 0.1), true)
      z:_index_put_({on(i), on(j)}, {0, 2}, on(lt.ones(2000, 1) * 0.1), true)
      return y, z
    end)
  end)

  it("reads what is written from the same memory first", function()
    local x, i = lt.randn(6, 6), positions(6, 6)
    both("overlap", function(on)
      local y, z = on(x):clone(), on(x):clone()
      y[on(i)] = y
      z:index_add_(1, on(i), z:t())
      return y, z
    end)
  end)
end)

describe("masks on a device", function()
  it("select, find and fill in, in every dtype and layout", function()
    for _, dtype in ipairs(DTYPES) do
      local x, source = noise(dtype, 5, 4, 7), noise(dtype, 20, 7)
      local mask, row = lt.randn(5, 4, 7):gt(0.3), lt.randn(4, 1):gt(0)
      for layout = 1, 4 do
        both(dtype .. " layout " .. layout, function(on)
          local y, m = lay(on(x), layout), lay(on(mask), 1 + layout % 4)
          return y:masked_select(m), y:masked_select(on(row)), y:nonzero(),
            y:transpose(1, 2):nonzero(), y:masked_scatter(m, lay(on(source), layout)),
            y:masked_scatter(on(row), on(source)), y[m]
        end)
      end
    end
  end)

  it("count from 0 to all, over many chunks", function()
    for _, n in ipairs {1, 15, 16, 17, 255, 4096, 70001} do
      local x = lt.arange(n)
      for _, share in ipairs {-1, 0.02, 0.5, 2} do
        local mask = lt.rand(n):lt(share)
        both(n .. " " .. share, function(on)
          return on(x):masked_select(on(mask)), lt.nonzero(on(mask)),
            on(x):masked_scatter(on(mask), on(-x)),
            on(x):narrow(1, 1, n):masked_select(lay(on(mask), 4))
        end)
      end
    end
  end)

  it("know 0-d tensors", function()
    both("0-d", function(on)
      return on(lt.tensor(2.5)):nonzero(), on(lt.tensor(0)):nonzero(),
        on(lt.tensor(2.5)):masked_select(on(lt.tensor(true))),
        on(lt.tensor(2.5)):masked_scatter(on(lt.tensor(true)), on(lt.tensor {4.5, 5}))
    end)
  end)

  it("expect enough elements, and change nothing otherwise", function()
    local x = lt.arange(6):to(DEVICE)
    fails("masked_scatter_: expected at least 4 elements for argument 'source', one for each "
      .. "true element of the mask, got 3", function()
      x:masked_scatter_(x:gt(2), lt.zeros(3, {device = DEVICE, dtype = x.dtype}))
    end)
    same(lt.arange(6), x)
  end)
end)

describe("embedding on a device", function()
  it("gives rows, and sums their gradients in order", function()
    for _, dtype in ipairs(devices.dtypes {"float16", "bfloat16", "float32", "float64"}) do
      for _, width in ipairs {1, 3, 16} do
        local weight = noise(dtype, 11, width)
        local input, g = positions(11, 40, 50), noise(dtype, 40, 50, width)
        for _, padding in ipairs {0, 4, -1} do
          both(dtype .. " " .. width .. " padding " .. padding, function(on)
            local w = on(weight):clone():requires_grad_()
            local y = lt.embedding(w, on(input), padding)
            y:backward(on(g))
            return y:detach(), w.grad
          end)
        end
      end
    end
  end)

  it("works on a weight in any layout, and has a second derivative", function()
    local weight, input = lt.randn(6, 5), positions(6, 8)
    for layout = 1, 4 do
      both("layout " .. layout, function(on)
        local base = on(weight):clone():requires_grad_()
        local y = lt.embedding(lay(base, layout), on(input), 2)
        local first = lt.autograd.grad((y * y * y):sum(), base, {create_graph = true})
        return y:detach(), lt.autograd.grad(first:sum(), base)
      end)
    end
  end)
end)

describe("gradients of indexing on a device", function()
  local x, v = lt.randn(4, 5, 6), lt.randn(4, 5, 6)
  local row, each, m = positions(4, 9), positions(4, 3, 5, 6), lt.randn(4, 5, 6):gt(0)
  local source = lt.randn(9, 5, 6)
  local calls = {
    index_select = function(on, a) return a:index_select(1, on(row)) end,
    gather = function(on, a) return a:gather(1, on(each)) end,
    index = function(on, a) return a[{on(row), {}, on(row)}] end,
    mask = function(on, a) return a[on(m)] end,
    masked_select = function(on, a) return a:masked_select(on(m[1])) end,
    scatter = function(on, a, b) return a:scatter(1, on(each:clamp(1, 1)), b) end,
    scatter_add = function(on, a, b) return a:scatter_add(1, on(each), b) end,
    index_add = function(on, a, _, s) return a:index_add(1, on(row), s, {alpha = 0.5}) end,
    index_copy = function(on, a, b) return a:index_copy(1, on(ints(3, 1, 4, 2)), b) end,
    index_fill = function(on, a) return a:index_fill(1, on(row), 2) end,
    masked_scatter = function(on, a, b) return a:masked_scatter(on(m), b) end,
    put = function(on, a, b)
      local y = a * 1
      y[{on(ints(4, 1)), on(ints(2, 3))}] = b[{{1, 2}, 1}]
      return y
    end,
  }

  it("are the CPU's", function()
    for name, call in pairs(calls) do
      both(name, function(on)
        local a, b = on(x):clone():requires_grad_(), on(v):clone():requires_grad_()
        local s = on(source):clone():requires_grad_()
        local y = call(on, a, b, s)
        y:pow(2):sum():backward()
        return y:detach(), a.grad, b.grad or on(lt.zeros(1)), s.grad or on(lt.zeros(1))
      end)
    end
  end)
end)

describe("bad positions on a device", function()
  local function index(...) return lt.tensor({...}, {dtype = "int64", device = DEVICE}) end

  it("are reported with op, value and index, and change nothing", function()
    local x = lt.arange(12):view(3, 4):to "float32"
    local row, three = lt.zeros({2, 4}, {device = DEVICE}), lt.zeros({3, 4}, {device = DEVICE})
    local wide = index(1, 1, 2, 1, 1, 1, 7, 1, 1, 9, 1, 1):view(3, 4)
    local cases = {
      {"index_select: expected an index from 1 to 3 for argument 'index', got 4 at index {2}",
        function(y) y:index_select(1, index(1, 4)) end},
      {"gather: expected an index from 1 to 3 for argument 'index', got 7 at index {2, 3}",
        function(y) y:gather(1, wide) end},
      {"embedding: expected an index from 1 to 3 for argument 'input', got -1 at index {1, 2}",
        function(y) lt.embedding(y, index(1, -1):view(1, 2)) end},
      {"index: expected an index from 1 to 4, or negative from the end, for argument 'index', "
        .. "got 9 at index {1}",
        function(y) return y[{index(1, 2), index(9, 5)}] end},
      {"index_fill_: expected an index from 1 to 3 for argument 'index', got 0 at index {2}",
        function(y) y:index_fill_(1, index(1, 0, 9), 5) end},
      {"index_copy_: expected an index from 1 to 3 for argument 'index', got 4 at index {1}",
        function(y) y:index_copy_(1, index(4, 2), row) end},
      {"index_add_: expected an index from 1 to 3 for argument 'index', got 9 at index {2}",
        function(y) y:index_add_(1, index(1, 9), row) end},
      {"scatter_: expected an index from 1 to 3 for argument 'index', got 7 at index {2, 3}",
        function(y) y:scatter_(1, wide, three) end},
      {"scatter_: expected an index from 1 to 3 for argument 'index', got 7 at index {2, 3}",
        function(y) y:scatter_(1, wide, 3) end},
      {"scatter_add_: expected an index from 1 to 3 for argument 'index', got 7 at index {2, 3}",
        function(y) y:scatter_add_(1, wide, three) end},
      {"for argument 'index', got 4 at index {1}", function(y) y[index(4, 1)] = 5 end},
      {"for argument 'index', got -5 at index {2}",
        function(y) y[{index(1, 2), index(1, -5)}] = 5 end},
      {"for argument 'index', got 8 at index {1}",
        function(y) y[{index(8, 2), index(1, 1)}] = 5 end},
      {"for argument 'index', got 8 at index {1}",
        function(y) y:_index_put_({index(8, 2), index(1, 1)}, {0, 1}, row[{1, {1, 2}}], true) end},
    }
    for _, case in ipairs(cases) do
      local y = x:to(DEVICE):clone()
      fails(case[1], function() case[2](y) end)
      same(x, y, case[1])
    end
  end)

  it("are reported by the first one of the first call, however many there are", function()
    local x = lt.arange(3):to(DEVICE)
    local many = lt.full({300000}, 4, {dtype = "int64", device = DEVICE})
    many[{{1, 1234}}] = 2
    local all = lt.zeros({100000}, {dtype = "int64", device = DEVICE})
    local side = lt.accelerator.Stream(DEVICE)
    lt.accelerator.synchronize(DEVICE)
    for _ = 1, 3 do
      fails("index_select: expected an index from 1 to 3 for argument 'index', got 4 at index "
        .. "{1235}", function()
        x:index_select(1, many)
      end)
      fails("index_select: expected an index from 1 to 3 for argument 'index', got 0 at index {1}",
        function()
        lt.accelerator.with_stream(side, function() x:index_select(1, all) end)
        lt.accelerator.synchronize(DEVICE)
      end)
      same(lt.tensor({3, 1}, {dtype = x.dtype}), x[index(3, 1)])
    end
  end)

  it("are reported for an empty dimension, and in a backward", function()
    local empty = lt.zeros({0, 3}, {device = DEVICE})
    fails("index_select: cannot index an empty dimension: 'index' is 1 at index {1}",
      function() empty:index_select(1, index(1)) end)
    fails("embedding: expected an index from 1 to 3 for argument 'input', got 9 at index {2}",
      function()
      local w = lt.zeros({3, 2}, {device = DEVICE}):requires_grad_()
      lt.embedding(w, index(1, 9)):sum():backward()
    end)
    local x = lt.arange(3):to(DEVICE)
    same(lt.tensor({3, 1}, {dtype = x.dtype}), x[index(3, 1)])
  end)
end)
