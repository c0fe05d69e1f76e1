-- Tensor files as Lua sees them; the readers themselves are tested in C.
local lt = require "lutra"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local path
before_each(function() path = os.tmpname() end)
after_each(function() os.remove(path) end)

describe("safetensors", function()
  it("keep names, values, dtypes, order and metadata", function()
    local tensors = {
      weight = lt.tensor{{1.5, -2}, {0, 4}}:t(),
      bias = lt.tensor({1, 2, 3}, {dtype = "int8"}),
      flag = lt.tensor(true),
      half = lt.tensor({0.5}, {dtype = "bfloat16"}),
    }
    lt.save_safetensors(path, tensors, {epoch = "3"})
    local back, metadata = lt.load_safetensors(path)
    local names = {}
    for name, t in pairs(back) do
      names[#names + 1] = name
      assert.equal(tensors[name].dtype, t.dtype)
      assert.is_true(lt.equal(tensors[name], t))
    end
    assert.equal(4, #names)
    assert.equal("3", metadata.epoch)
  end)

  it("refuse what cannot be saved", function()
    assert.matches('expected a tensor for "x", got 3',
      fails(lt.save_safetensors, path, {x = 3}), 1, true)
    assert.matches("expected a table for argument 'tensors', got nil",
      fails(lt.save_safetensors, path), 1, true)
    assert.matches("expected strings as names in argument 'tensors', got 1",
      fails(lt.save_safetensors, path, {lt.ones(1)}), 1, true)
    assert.matches("expected a string for argument 'path', got 3", fails(lt.save_safetensors, 3,
      {}), 1, true)
    assert.matches("expected strings as keys and values of argument 'metadata', got a table",
      fails(lt.save_safetensors, path, {}, {epoch = {}}), 1, true)
    assert.matches("meta",
      fails(lt.save_safetensors, path, {x = lt.ones{1, device = "meta"}}), 1, true)
  end)

  it("that are invalid are reported in one line with the path", function()
    local file = assert(io.open(path, "w"))
    file:write "this is no safetensors file"
    file:close()
    local message = fails(lt.load_safetensors, path)
    assert.matches("load_safetensors: ", message, 1, true)
    assert.matches(path, message, 1, true)
    assert.is_nil(message:find("\n", 1, true))
    assert.matches("/nowhere/x", fails(lt.load_safetensors, "/nowhere/x"), 1, true)
  end)
end)

describe("npy", function()
  it("keeps values and dtypes", function()
    for _, dtype in ipairs{"float64", "float16", "int32", "uint8", "bool"} do
      local x = lt.tensor({{1, 0, 1}, {0, 1, 1}}, {dtype = dtype})
      lt.save_npy(path, x:t())
      local y = lt.load_npy(path)
      assert.equal(dtype, y.dtype)
      assert.is_true(lt.equal(x:t(), y))
    end
  end)

  it("is read to the given device", function()
    local shape = lt.ones(2)
    lt.save_npy(path, shape)
    for _, x in ipairs {lt.load_npy(path, {device = "meta"}), lt.load_npy{path, device = "meta"},
      lt.load_npy(path, "meta")} do
      assert.equal("meta", x.device)
    end
    lt.save_safetensors(path, {a = shape})
    assert.equal("meta", lt.load_safetensors(path, {device = "meta"}).a.device)
    assert.equal("cpu", lt.load_safetensors(path).a.device)
    assert.matches("load_npy: expected an argument name (path, device), got 'devise'",
      fails(lt.load_npy, path,
      {devise = "meta"}), 1, true)
    assert.matches('load_safetensors: expected an available device, got "gpu". Available '
      .. 'devices: cpu, meta', fails(lt.load_safetensors, path,
      {device = "gpu"}), 1, true)
  end)

  it("says what is wrong", function()
    assert.matches("/nowhere/x", fails(lt.load_npy, "/nowhere/x"), 1, true)
    assert.matches("load_npy: expected a string for argument 'path', got no value",
      fails(lt.load_npy), 1, true)
    assert.matches("save_npy: expected a tensor for argument 'tensor', got 3", fails(lt.save_npy,
      path, 3), 1, true)
  end)
end)

describe("idx", function()
  it("is read, or refused in one line", function()
    local file = assert(io.open(path, "wb"))
    file:write "\0\0\8\2\0\0\0\2\0\0\0\3\1\2\3\4\5\255"
    file:close()
    local x = lt.load_idx(path)
    assert.equal("uint8", x.dtype)
    assert.same({{1, 2, 3}, {4, 5, 255}}, x:totable())
    file = assert(io.open(path, "wb"))
    file:write "\0\0\8\2\0\0\0\2\0\0\0\3\1\2\3\4\5"
    file:close()
    local message = fails(lt.load_idx, path)
    assert.matches("load_idx: ", message, 1, true)
    assert.is_nil(message:find("\n", 1, true))
  end)
end)

-- What fails says this, whole: the path stands for %s.
local function says(text, f, ...)
  assert.equal(text:format(path), (fails(f, ...):gsub("^[^:]*:%d+: ", "")))
end

local function write(bytes)
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
end

local function read(name)
  local file = assert(io.open(name, "rb"))
  local bytes = file:read "a"
  file:close()
  return bytes
end

-- A safetensors file of a header and data.
local function archive(header, data) return string.pack("<s8", header) .. data end

describe("tensor files", function()
  it("come back in the order of the header", function()
    write(archive('{"z":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},'
      .. '"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
      .. '"__metadata__":{"y":"1","b":"2"}}', "\5\6"))
    local tensors, metadata = lt.load_safetensors(path)
    local names, keys = {}, {}
    for name in pairs(tensors) do names[#names + 1] = name end
    for key in pairs(metadata) do keys[#keys + 1] = key end
    assert.same({"z", "a"}, names)
    assert.same({"y", "b"}, keys)
    assert.same({6}, tensors.z:totable())
    assert.same({5}, tensors.a:totable())
  end)

  it("of every dtype, of no dimension and of no element come back", function()
    for _, dtype in ipairs{"bool", "uint8", "int8", "int16", "int32", "int64", "float16",
      "bfloat16", "float32", "float64"} do
      local tensors = {
        a = lt.tensor({{0, 1, 1}, {1, 0, 1}}, {dtype = dtype}):t(),
        b = lt.tensor(1, {dtype = dtype}),
        c = lt.zeros(2, 0, {dtype = dtype}),
      }
      lt.save_safetensors(path, tensors)
      local back = lt.load_safetensors(path)
      for name, x in pairs(tensors) do
        local loaded = {back[name]}
        if dtype ~= "bfloat16" then
          lt.save_npy(path, x)
          loaded[2] = lt.load_npy(path)
        end
        for _, y in ipairs(loaded) do
          assert.equal(dtype, y.dtype)
          assert.same(tostring(x.shape), tostring(y.shape))
          assert.same(x:totable(), y:totable())
        end
      end
    end
  end)

  it("say what is wrong with them", function()
    os.remove(path)
    says('load_idx: cannot open "%s": No such file or directory', lt.load_idx, path)
    says('load_npy: cannot open "%s": No such file or directory', lt.load_npy, path)
    says('load_safetensors: cannot open "%s": No such file or directory', lt.load_safetensors, path)
    write ""
    says('load_idx: cannot read "%s": it is too short for an IDX file', lt.load_idx, path)
    says('load_npy: cannot read "%s": it is not a .npy file', lt.load_npy, path)
    says('load_safetensors: cannot read "%s": it is too short for a safetensors file',
      lt.load_safetensors, path)
    write "\0\0\8\1\0\0\0\3\1\2"
    says('load_idx: cannot read "%s": it is truncated or damaged, its header {3} of "uint8" '
      .. 'requires 11 bytes, '
      .. "it has 10", lt.load_idx, path)
    write "\0\0\x0a\1\0\0\0\0"
    says('load_idx: cannot read "%s": it is not an IDX file, it starts with 00 00 0a 01',
      lt.load_idx, path)
    write "\x1f\x8b\8\0\0\0"
    says('load_idx: cannot read "%s": it is truncated, its compressed data ends early',
      lt.load_idx, path)
    write(archive('{"a":{"dtype":"F9","shape":[1],"data_offsets":[0,4]}}', "1234"))
    says('load_safetensors: cannot read "%s": tensor "a" has dtype "F9", which is not supported',
      lt.load_safetensors, path)
    write(archive('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', "12345"))
    says('load_safetensors: cannot read "%s": it has bytes that belong to no tensor',
      lt.load_safetensors, path)
    write "\x93NUMPY\1\0\x38\0{'descr': '|O', 'fortran_order': False, 'shape': (1,), } "
    says('load_npy: cannot read "%s": it holds Python objects, which can run code', lt.load_npy,
      path)
    says('save_npy: cannot save dtype "bfloat16": NumPy does not support it\nhint: '
      .. 'x:to("float32")', lt.save_npy, path,
      lt.ones(1, {dtype = "bfloat16"}))
    says('save_npy: cannot save a tensor on "meta": it has no data', lt.save_npy, path, lt.ones(1,
      {device = "meta"}))
    says("load_idx: expected a string for argument 'path', got nil", lt.load_idx)
    says("load_npy: expected a string for argument 'path', got 3", lt.load_npy, 3)
  end)

  it("fail at the line that asked for them", function()
    for _, f in ipairs{lt.load_idx, lt.load_npy, lt.load_safetensors} do
      local line = debug.getinfo(1, "l").currentline + 1
      local _, message = pcall(function() local x = f "/nowhere" return x end)
      assert.matches("files_spec.lua:" .. line .. ": ", message, 1, true)
    end
  end)

  it("stay as they were when saving fails", function()
    lt.save_safetensors(path, {x = lt.ones(3)})
    local before = read(path)
    fails(lt.save_safetensors, path, {x = lt.ones(3), y = lt.ones(1, {device = "meta"})})
    fails(lt.save_safetensors, path, {["\xff"] = lt.ones(3)})
    fails(lt.save_safetensors, path, {__metadata__ = lt.ones(3)})
    fails(lt.save_safetensors, path, {["a\0b"] = lt.ones(3)})
    assert.equal(before, read(path))
    lt.save_safetensors(path, {})
    assert.is_nil(next((lt.load_safetensors(path))))
  end)

  it("are saved with what a computation gave", function()
    local w = lt.tensor({1, 2, 3}, {dtype = "float64", requires_grad = true})
    lt.save_safetensors(path, {w = w, twice = w * 2})
    local back = lt.load_safetensors(path)
    assert.same({2, 4, 6}, back.twice:totable())
    assert.is_false(back.w.requires_grad)
  end)
end)

-- The sums are NumPy's, of the bytes that Python's gzip gives.
describe("MNIST's files", function()
  local data = os.getenv "LUTRA_TEST_DATA"
  local file = data and io.open(data .. "/mnist/t10k-images-idx3-ubyte.gz", "rb")
  if not file then
    io.write "skipped MNIST's files: LUTRA_TEST_DATA names no folder that has mnist/\n"
    return
  end
  file:close()
  local images = data .. "/mnist/t10k-images-idx3-ubyte.gz"
  local labels = data .. "/mnist/t10k-labels-idx1-ubyte.gz"

  it("hold digits", function()
    local x, y = lt.load_idx(images), lt.load_idx(labels)
    assert.equal("{10000, 28, 28}", tostring(x.shape))
    assert.equal("{10000}", tostring(y.shape))
    assert.equal("uint8", x.dtype)
    assert.equal(264923200, x:to("int64"):sum():item())
    assert.equal(44434, y:to("int64"):sum():item())
    assert.equal(7, y[1]:item())
    assert.equal(255, x:max():item())
  end)

  it("are refused when they are cut or altered anywhere", function()
    local bytes = read(labels)
    for at = 1, #bytes, 397 do
      write(bytes:sub(1, at - 1))
      assert.matches('load_idx: cannot read "' .. path .. '": ', fails(lt.load_idx, path), 1, true)
    end
    for at = 11, #bytes, 397 do
      write(bytes:sub(1, at - 1) .. string.char(bytes:byte(at) ~ 0x10) .. bytes:sub(at + 1))
      local ok, got = pcall(lt.load_idx, path)
      if ok then -- the bytes of the name inside the file mean nothing
        assert.is_true(at < 40)
        assert.equal(44434, got:to("int64"):sum():item())
      else
        assert.matches('load_idx: cannot read "' .. path .. '": ', got, 1, true)
      end
    end
    write(bytes .. "x")
    says('load_idx: cannot read "%s": it has bytes after its compressed data', lt.load_idx, path)
  end)
end)
