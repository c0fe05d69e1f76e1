-- lt.safe_open, the index of files in several parts, and tensors that are mapped into memory. The
-- reader of a single file is tested in C (test_io.c) and in files_spec.lua.

local lt = require "lutra"
local support = require "program_support"

local folder
before_each(function() folder = support.folder() end)
after_each(function() support.remove(folder) end)

local function path(name) return folder .. "/" .. name end

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local function write(name, text)
  local file <close> = assert(io.open(path(name), "wb"))
  file:write(text)
end

local index = "model.safetensors.index.json"

-- Writes two parts and an index with this weight_map, JSON text.
local function write_parts(map)
  lt.save_safetensors(path "1.safetensors", {a = lt.ones(2), b = lt.zeros(3)})
  lt.save_safetensors(path "2.safetensors", {c = lt.arange(4)})
  write(index, ('{"metadata": {"total_size": 52}, "weight_map": %s}'):format(map))
end

local good = '{"c": "2.safetensors", "a": "1.safetensors", "b": "1.safetensors"}'

describe("a safetensors file in several parts", function()
  it("is read in the order of its index", function()
    write_parts(good)
    local tensors, metadata = lt.load_safetensors(path(index))
    local names = {}
    for name in pairs(tensors) do names[#names + 1] = name end
    assert.same({"c", "a", "b"}, names)
    assert.same({1, 2, 3, 4}, tensors.c:totable())
    assert.equal("52", metadata.total_size)
    assert.equal("meta", lt.load_safetensors(path(index), {device = "meta"}).a.device)
  end)

  it("is refused when it is not valid", function()
    for map, piece in pairs{
      ['{"a": "../1.safetensors"}'] = "in the same folder",
      ['{"a": "/etc/passwd"}'] = "in the same folder", ['{"a": ".."}'] = "in the same folder",
      ['{"a": ""}'] = "in the same folder", ['{"a": 1}'] = "in the same folder",
      ['{"a": "x\\\\y"}'] = "in the same folder",
      ['{"a": "1.safetensors"}'] = 'has tensor "b", which the index does not have there',
      ['{"a": "1.safetensors", "b": "1.safetensors", "d": "1.safetensors"}'] = 'lacks tensor "d"',
      ['{"a": "1.safetensors", "b": "2.safetensors", "c": "2.safetensors"}'] =
        "which the index does not have there",
      ['{"a": "3.safetensors"}'] = "cannot open", ['[]'] = "no weight_map", ["3"] = "no weight_map",
      ['{"a": "1", "a": "2"}'] = "each name once", ["{"] = "expected",
    } do
      write_parts(map)
      assert.matches(piece, fails(lt.load_safetensors, path(index)), 1, true)
      assert.matches("safe_open: cannot", fails(lt.safe_open, path(index)), 1, true)
    end
    write(index, "[]")
    assert.matches("no weight_map", fails(lt.load_safetensors, path(index)), 1, true)
    assert.matches("cannot open", fails(lt.load_safetensors, path "x.index.json"), 1, true)
  end)
end)

describe("safe_open", function()
  it("names itself and the file in errors", function()
    write("x.safetensors", "x")
    assert.matches(('safe_open: cannot read "%s": it is too short'):format(path "x.safetensors"),
      fails(lt.safe_open, path "x.safetensors"), 1, true)
    assert.matches('safe_open: cannot open "', fails(lt.safe_open, path "none"), 1, true)
  end)

  it("reads tensors one at a time", function()
    write_parts(good)
    for _, name in ipairs{"1.safetensors", index} do
      local f = lt.safe_open(path(name))
      assert.equal(name == index and 3 or 2, #f:keys())
      assert.same({1, 1}, f:get_tensor "a":totable())
      local slice = f:get_slice "b"
      assert.equal("{3}", tostring(slice:get_shape()))
      assert.equal("float32", slice:get_dtype())
      assert.same({0, 0}, slice[{{1, 2}}]:totable())
      assert.same({0, 0}, slice["2:3"]:totable())
      assert.equal(0, slice[1]:item())
      assert.matches('expected the name of a tensor in the file for argument \'name\', got "z"',
        fails(f.get_tensor, f, "z"), 1, true)
      assert.matches("expected a string", fails(f.get_slice, f, 1), 1, true)
    end
    lt.save_safetensors(path "m", {x = lt.ones(1)}, {note = "n"})
    local f = lt.safe_open(path "m", {framework = "pt", device = "meta"})
    assert.equal("n", f:metadata().note)
    assert.equal("meta", f:get_tensor "x".device)
    assert.equal("meta", f:get_slice "x"[1].device)
    assert.matches("cannot open", fails(lt.safe_open, path "none"), 1, true)
    assert.matches("expected an available device", fails(lt.safe_open, path "m", {device = "gpu"}),
      1, true)
  end)
end)

describe("a mapped file", function()
  it("has the values of each dtype, and is not changed by writes", function()
    local tensors = {}
    for _, dtype in ipairs{"float64", "float32", "float16", "bfloat16", "int64", "int32", "int16",
      "int8", "uint8", "bool", "complex64"} do
      tensors[dtype] = (lt.arange(70000) % 2):to(dtype)
    end
    tensors.small = lt.tensor(7)
    lt.save_safetensors(path "x", tensors)
    for _, mmap in ipairs{true, false} do
      local back = lt.load_safetensors(path "x", {mmap = mmap})
      for name, x in pairs(tensors) do
        assert.is_true(lt.equal(x, back[name]))
        back[name]:zero_()
      end
      local again = lt.load_safetensors(path "x")
      for name, x in pairs(tensors) do assert.is_true(lt.equal(x, again[name])) end
    end
  end)

  it("stays valid when the file is saved again", function()
    local x = lt.arange(300000)
    lt.save_safetensors(path "x", {x = x})
    local old = lt.load_safetensors(path "x").x
    lt.save_safetensors(path "x", {x = old * 0})
    collectgarbage()
    assert.is_true(lt.equal(x, old))
    os.remove(path "x")
    assert.is_true(lt.equal(x, old))
  end)

  it("whose elements are not aligned is copied", function()
    local header = '{"x":{"dtype":"F32","shape":[400000],"data_offsets":[0,1600000]}}'
    header = header .. (" "):rep(5 - #header % 4) -- an offset that is no multiple of 4
    local data = lt.arange(0, 399999):float()
    local bytes = require "lutra.core"._tensor_bytes(data)
    write("x", ("<s8"):pack(header) .. bytes)
    assert.is_true((8 + #header) % 4 ~= 0)
    assert.is_true(lt.equal(data, lt.load_safetensors(path "x").x))
    -- bool bytes other than 0 and 1 are true
    header = '{"x":{"dtype":"BOOL","shape":[1100000],"data_offsets":[0,1100000]}}'
    write("x", ("<s8"):pack(header) .. ("\2"):rep(1100000))
    local x = lt.load_safetensors(path "x").x
    assert.equal(1100000, x:sum():item())
    assert.is_true(lt.equal(x, lt.ones_like(x)))
  end)
end)
