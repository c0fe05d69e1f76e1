-- lt.load on files of torch.save. The files are PyTorch's (tools/golden/files.py), and the values
-- follow from that script.

local lt = require "lutra"
local zip = require "lutra.internal.zip"

local folder = debug.getinfo(1, "S").source:match "^@(.*)spec/core/" .. "golden/files/"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local path
before_each(function() path = os.tmpname() end)
after_each(function() os.remove(path) end)

local function write(bytes)
  local file <close> = assert(io.open(path, "wb"))
  file:write(bytes)
end

local function keys(t)
  local list = {}
  for key in pairs(t) do list[#list + 1] = key end
  return list
end

for _, name in ipairs{"values.pt", "values_protocol3.pt", "values_protocol5.pt",
  "values_old.pt"} do
  describe(name, function()
    local v
    before_each(function() v = lt.load(folder .. name) end)

    it("has every dtype", function()
      local n = 0
      for dtype, x in pairs(v.dtypes) do
        n = n + 1
        assert.equal(dtype, x.dtype)
        local expected = lt.arange(0, 11):reshape(3, 4):to(dtype)
        assert.is_true(lt.equal(expected, x))
      end
      assert.equal(12, n)
    end)

    it("keeps strides, offsets and shared memory", function()
      assert.same({1, 4}, {table.unpack(v.transposed:stride())})
      assert.same({0}, {table.unpack(v.expanded:stride())})
      assert.equal(4, v.row:storage_offset())
      assert.equal("{0, 3}", tostring(v.empty.shape))
      assert.equal(5, v.scalar:item())
      v.row:fill_(-1)
      assert.same({{0, 1, 2, 3}, {-1, -1, -1, -1}, {8, 9, 10, 11}}, v.x:totable())
      assert.same({-1, -1, -1, -1}, v.transposed[{{}, 2}]:totable())
    end)

    it("keeps parameters and requires_grad", function()
      assert.is_true(lt.is_parameter(v.parameter))
      assert.is_true(v.parameter.requires_grad)
      assert.is_true(lt.is_parameter(v.frozen))
      assert.is_false(v.frozen.requires_grad)
      assert.is_true(v.grad.requires_grad)
      assert.is_false(lt.is_parameter(v.grad))
      assert.is_false(v.x.requires_grad)
      v.grad:sum():backward()
      assert.same({1, 1}, v.grad.grad:totable())
    end)

    it("has Python's values", function()
      assert.is_nil(v.none)
      assert.same({1, 2.5, "a", false, true, {1, 2, {3, false}}}, v.list)
      assert.same({[1] = true, two = true}, v.set)
      assert.equal(2 ^ 40 | 0, v.big)
      assert.equal(math.mininteger, v.least)
      assert.equal(2.0 ^ 70, v.huge)
      assert.equal(-5, v.negative)
      assert.equal("\0\255", v.bytes)
      assert.same({3, 4}, v.shape)
      assert.equal("cuda:1", v.device)
      assert.equal("float16", v.dtype)
      assert.equal("1 + 2i", tostring(v.complex))
      assert.equal("é", v.text)
      assert.same({"z", "a"}, keys(v.ordered))
      assert.equal("seven", v[7])
      assert.equal(1.5, v.number)
      assert.equal(7, v.integer)
      assert.same({{0, 1, 2}, {3, 4, 5}}, v.array:totable())
    end)

    it("loads into a module by PyTorch's numbers", function()
      assert.same({"0.weight", "0.bias", "2.weight", "2.bias"}, keys(v.model))
      local m = lt.nn.Sequential(lt.nn.Linear(3, 2), lt.nn.ReLU(), lt.nn.Linear(2, 1))
      m:load_state_dict(v.model, {base = 0})
      assert.same({{0, 0.25, 0.5}, {0.75, 1, 1.25}}, m[1].weight:totable())
      assert.same({{2, 2.25}}, m[3].weight:totable())
      assert.equal(0.5, v.optimizer.param_groups[1].lr)
      assert.equal(1, v.optimizer.state[0].step:item())
      assert.equal("{2, 3}", tostring(v.optimizer.state[0].exp_avg.shape))
    end)
  end)
end

describe("lt.load of PyTorch's files", function()
  it("has the elements of conjugated and negated tensors", function()
    for _, name in ipairs{"lazy.pt", "lazy_old.pt"} do
      local v = lt.load(folder .. name)
      assert.is_true(lt.equal(lt.tensor{lt.complex(1, 2), lt.complex(3, -4)}, v.z))
      assert.is_true(lt.equal(lt.tensor{lt.complex(1, -2), lt.complex(3, 4)}, v.conj))
      assert.same({-2, 4}, v.neg:totable())
      assert.same({4}, v.part:totable())
    end
  end)

  it("returns values that are no table", function()
    assert.same({0, 1, 2}, lt.load(folder .. "tensor.pt"):totable())
    assert.is_nil(lt.load(folder .. "none.pt"))
  end)

  it("sends tensors to map_location", function()
    assert.equal("meta", lt.load(folder .. "tensor.pt", {map_location = "meta"}).device)
    assert.equal("meta", lt.load(folder .. "tensor.pt", "meta").device)
    assert.equal("meta", lt.load(folder .. "tensor.pt", {map_location = {cpu = "meta"}}).device)
    local seen
    local x = lt.load(folder .. "tensor.pt", {map_location = function(t, location)
      seen = location
      return t * 2
    end})
    assert.equal("cpu", seen)
    assert.same({0, 2, 4}, x:totable())
    assert.matches("expected a device, a table or a function for argument 'map_location', got 3",
      fails(lt.load, folder .. "tensor.pt", {map_location = 3}), 1, true)
    assert.matches("expected an available device",
      fails(lt.load, folder .. "tensor.pt", {map_location = "gpu"}), 1, true)
    assert.matches("expected a tensor of the same shape and dtype as result of 'map_location'",
      fails(lt.load, folder .. "tensor.pt", {map_location = function() return 1 end}), 1, true)
  end)

  it("maps a large file into memory", function()
    local x = lt.arange(500000)
    lt.save({x = x}, path)
    for _, mmap in ipairs{true, false} do
      local y = lt.load(path, {mmap = mmap}).x
      assert.is_true(lt.equal(x, y))
      y:zero_() -- a copy of the pages: the file stays
      assert.is_true(lt.equal(x, lt.load(path).x))
    end
  end)

  it("refuses modules and programs", function()
    local message = fails(lt.load, folder .. "module.pt")
    assert.matches('it contains "torch.nn.modules.container.Sequential", which is code', message, 1,
      true)
    assert.matches("hint: in Python: torch.save(model.state_dict(), path)", message, 1, true)
    assert.matches("TorchScript", fails(lt.load, folder .. "script.pt"), 1, true)
  end)

  it("refuses other files and says how to read them", function()
    assert.matches("cannot open", fails(lt.load, path .. ".none"), 1, true)
    for start, hint in pairs{["\x93NUMPY"] = "lt.load_npy", ["RIFF"] = "lt.audio.load",
      ["\x89PNG"] = "read_image", [""] = "it is not a file of lt.save or torch.save",
      ["\x80\4."] = "it is a pickle"} do
      write(start)
      local message = fails(lt.load, path)
      assert.matches(hint, message, 1, true)
      assert.matches('load: cannot read "' .. path, message, 1, true)
    end
    assert.matches("lt.load_npz(path)", fails(lt.load, folder .. "arrays.npz"), 1, true)
  end)
end)

-- ---- files that PyTorch does not write

-- Returns a zip archive of these entries, in order.
local function archive(entries)
  local parts = {}
  local writer = zip.writer(function(...)
    for _, text in ipairs{...} do parts[#parts + 1] = text end
  end)
  for _, entry in ipairs(entries) do writer:add(entry[1], entry[2], entry.compressed) end
  writer:finish()
  return table.concat(parts)
end

-- Writes an archive with this pickle and one storage of 4 float32.
local function write_pickle(text)
  write(archive{{"a/data.pkl", text}, {"a/byteorder", "little"},
    {"a/data/0", ("<ffff"):pack(1, 2, 3, 4)}})
end

local function unicode(text) return "X" .. ("<s4"):pack(text) end

-- A tensor: storage class, key, elements, then the geometry.
local function tensor(class, key, numel, offset, size, stride)
  local function tuple(list)
    local parts = {"("}
    for _, n in ipairs(list) do parts[#parts + 1] = "\x8a\8" .. ("<i8"):pack(n) end
    return table.concat(parts) .. "t"
  end
  return "\x80\2ctorch._utils\n_rebuild_tensor_v2\n((" .. unicode "storage" .. "ctorch\n" .. class
    .. "\n" .. unicode(key) .. unicode "cpu" .. "\x8a\8" .. ("<i8"):pack(numel) .. "tQ\x8a\8"
    .. ("<i8"):pack(offset) .. tuple(size) .. tuple(stride)
    .. "\x89ccollections\nOrderedDict\n)RtR."
end

local function load_pickle(text)
  write_pickle(text)
  return lt.load(path)
end

describe("a pickle", function()
  it("is read", function()
    assert.same({2, 3}, load_pickle(tensor("FloatStorage", "0", 4, 1, {2}, {1})):totable())
    assert.same({{1, 1}, {2, 2}}, load_pickle(tensor("FloatStorage", "0", 4, 0, {2, 2}, {1, 0}))
      :totable())
    assert.same({1, 2, a = 1}, (function()
      local t = load_pickle("\x80\2}(K\1K\1K\2K\2" .. unicode "a" .. "K\1u.")
      return {t[1], t[2], a = t.a}
    end)())
  end)

  it("that contains itself is read", function()
    local t = load_pickle "\x80\2]q\0h\0a."
    assert.equal(t, t[1])
  end)

  it("that calls a function is refused by its name, and nothing runs", function()
    local marker = path .. ".marker"
    local command = "touch " .. marker
    for module, name in pairs{os = "system", posix = "system", builtins = "eval",
      subprocess = "Popen", ["torch.hub"] = "load", io = "popen"} do
      local message = fails(load_pickle, "\x80\2c" .. module .. "\n" .. name .. "\n"
        .. unicode(command) .. "\x85R.")
      assert.matches(('it contains "%s.%s", which is code'):format(module, name), message, 1, true)
    end
    assert.matches('it contains "os.system"', fails(load_pickle, "\x80\4\x8c\2os\x8c\6system\x93"
      .. unicode(command) .. "\x85R."), 1, true)
    assert.matches('"builtins.eval"', fails(load_pickle, "\x80\2c__builtin__\neval\n."), 1, true)
    assert.is_nil(io.open(marker))
  end)

  it("that is damaged is refused in one line", function()
    for text, piece in pairs{
      [""] = "truncated", ["\x80\2"] = "truncated", ["\x80\9N."] = "protocol 9",
      ["."] = "damaged", ["0."] = "damaged", ["e."] = "damaged", ["t."] = "damaged",
      ["h\5."] = "damaged", ["(."] = "damaged", ["NR."] = "damaged", ["NNR."] = "damaged",
      ["K\1K\2a."] = "appends to what is no list", ["NK\1K\2s."] = "no dict",
      ["}(K\1u."] = "no dict", ["}NK\1s."] = "a key that is no string",
      ["}]K\1s."] = "a key that is no string", ["NNb."] = "a state that is not supported",
      ["\xff."] = "the opcode 0xff", ["P0\n."] = "the opcode PERSID", ["i"] = "the opcode INST",
      ["N.N."] = "bytes after its end", ["X\255\255\255\127a."] = "truncated",
      ["\x8d\255\255\255\255\255\255\255\255."] = "truncated", ["NQ."] = "no storage",
      [")Q."] = "no storage", ["\x8b\255\255\255\255."] = "truncated",
      ["(" .. ("\x85"):rep(3) .. "."] = "damaged",
      ["N" .. ("\x85"):rep(100000) .. "."] = "nested tuples",
    } do
      local message = fails(load_pickle, text)
      assert.matches(piece, message, 1, true)
      assert.matches('load: cannot read "' .. path, message, 1, true)
    end
  end)

  it("with a tensor outside of its storage is refused", function()
    for _, case in ipairs{
      {0, {5}, {1}}, {4, {1}, {1}}, {0, {2, 2}, {3, 1}}, {-1, {1}, {1}}, {0, {-1}, {1}},
      {0, {2}, {-1}}, {0, {1}, {1, 1}}, {0, {math.maxinteger, math.maxinteger}, {1, 1}},
      {0, {2}, {math.maxinteger}}, {math.maxinteger, {2}, {math.maxinteger}},
      {0, {3, 1 << 62}, {0, 0}}, {5, {0}, {1}},
    } do
      local message = fails(load_pickle, tensor("FloatStorage", "0", 4, table.unpack(case)))
      assert.is_truthy(message:find "outside of its storage" or message:find "invalid geometry")
    end
    assert.matches("16 bytes, expected 5 elements", fails(load_pickle,
      tensor("FloatStorage", "0", 5, 0, {1}, {1})), 1, true)
    assert.matches("expected 4611686018427387904 elements", fails(load_pickle,
      tensor("FloatStorage", "0", 1 << 62, 0, {1}, {1})), 1, true)
    assert.matches('lacks the storage "../0"', fails(load_pickle,
      tensor("FloatStorage", "../0", 4, 0, {1}, {1})), 1, true)
    assert.matches('it contains "torch.QInt8Storage"', fails(load_pickle,
      tensor("QInt8Storage", "0", 4, 0, {1}, {1})), 1, true)
  end)

  it("in a compressed archive is read, and in a damaged one refused", function()
    local text = tensor("FloatStorage", "0", 4, 0, {4}, {1})
    local data = ("<ffff"):pack(1, 2, 3, 4)
    local good = archive{{"a/data.pkl", text, compressed = true}, {"a/data/0", data,
      compressed = true}}
    write(good)
    assert.same({1, 2, 3, 4}, lt.load(path):totable())
    write(archive{{"a/data.pkl", text}, {"a/byteorder", "big"}, {"a/data/0",
      (">ffff"):pack(1, 2, 3, 4)}})
    assert.same({1, 2, 3, 4}, lt.load(path):totable())
    for cut = 0, #good - 1 do
      write(good:sub(1, cut))
      assert.matches("load: cannot read", fails(lt.load, path), 1, true)
    end
    write(archive{{"a/data.pkl", text}, {"a/data/0", data}, {"a/data/0", data}})
    assert.matches('the entry "a/data/0" twice', fails(lt.load, path), 1, true)
    write(archive{{"b/c", "x"}})
    assert.matches("without data.pkl", fails(lt.load, path), 1, true)
  end)
end)

describe("a zip archive", function()
  -- Returns an archive with the bytes at `at` of the directory's first entry replaced.
  local function patched(entries, at, bytes)
    local text = archive(entries)
    local start = text:find("PK\1\2", 1, true)
    return text:sub(1, start + at - 1) .. bytes .. text:sub(start + at + #bytes)
  end

  it("that claims sizes it cannot have is refused", function()
    local entries = {{"x.npy", ("\0"):rep(1000), compressed = true}, {"y.npy", "abc"}}
    for at, case in pairs{[8] = {"\1\0", "encrypted"}, [10] = {"\12\0", "method 12"},
      [20] = {"\255\255\255\127", "truncated"}, [24] = {"\255\255\255\127", "cannot have"},
      [42] = {"\1\0\0\0", "damaged"}, [28] = {"\255\255", "damaged"}, [16] = {"\0\0", "checksum"}}
    do
      write(patched(entries, at, case[1]))
      assert.matches(case[2], fails(lt.load_npz, path), 1, true)
    end
  end)

  it("with overlapping entries is refused", function()
    local text = archive{{"x.npy", "abc"}, {"y.npy", "abc"}}
    local second = select(2, text:find("PK\1\2.-PK\1\2"))
    text = text:sub(1, second + 38) .. "\0\0\0\0" .. text:sub(second + 43)
    write(text)
    assert.matches("overlap", fails(lt.load_npz, path), 1, true)
  end)
end)

describe("npz", function()
  it("of NumPy are read", function()
    local a = lt.load_npz(folder .. "arrays.npz")
    assert.same({"a", "b"}, keys(a))
    assert.same({{0, 1, 2}, {3, 4, 5}}, a.a:totable())
    assert.equal("float64", a.a.dtype)
    assert.same({0, 1, 2}, a.b:totable())
    assert.equal("int16", a.b.dtype)
    local c = lt.load_npz(folder .. "compressed.npz", {device = "meta"})
    assert.equal("{30, 30}", tostring(c.zeros.shape))
    assert.equal("meta", c.one.device)
    local message = fails(lt.load_npz, folder .. "objects.npz")
    assert.matches('array "o": it holds Python objects, which can run code', message, 1, true)
  end)

  it("are written of tables with a __pairs that is wrong", function()
    local odd = setmetatable({a = lt.ones(2)}, {__pairs = function() return lt.ones(1) end})
    lt.save_npz(path, odd)
    assert.same({"a"}, keys(lt.load_npz(path)))
  end)

  it("are written", function()
    local values = {a = lt.arange(6):reshape(2, 3):t(), b = lt.tensor(1.5), c = lt.zeros{0}}
    for _, compressed in ipairs{false, true} do
      lt.save_npz(path, values, {compressed = compressed})
      local back = lt.load_npz(path)
      assert.same({"a", "b", "c"}, keys(back))
      for name, x in pairs(values) do assert.is_true(lt.equal(x, back[name])) end
    end
    lt.save_npz(path, {lt.ones(2), lt.zeros(3)})
    assert.same({"arr_0", "arr_1"}, keys(lt.load_npz(path)))
  end)

  it("refuse what cannot be saved", function()
    write "old"
    assert.matches('save_npz: expected a tensor for "a", got 3', fails(lt.save_npz, path, {a = 3}),
      1, true)
    assert.matches("bfloat16", fails(lt.save_npz, path, {a = lt.ones(1):bfloat16()}), 1, true)
    assert.matches("expected a table of tensors for argument 'tensors'", fails(lt.save_npz, path),
      1, true)
    assert.matches("expected a string for argument 'path'", fails(lt.save_npz, 3, {}), 1, true)
    assert.matches("'compressed'", fails(lt.save_npz, path, {}, {level = 3}), 1, true)
    local file <close> = assert(io.open(path, "rb"))
    assert.equal("old", file:read "a")
  end)
end)

describe("what PyTorch saved", function()
  it("is saved and loaded again", function()
    local v = lt.load(folder .. "values.pt")
    lt.save(v, path)
    local back = lt.load(path)
    assert.same(keys(v.model), keys(back.model))
    assert.is_true(lt.equal(v.x, back.x))
    back.row:zero_()
    assert.same({0, 0, 0, 0}, back.x[2]:totable())
  end)
end)
