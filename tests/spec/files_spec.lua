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
    assert.matches('"x" is 3, it wants a tensor',
      fails(lt.save_safetensors, path, {x = 3}), 1, true)
    assert.matches('argument "tensors" is nil', fails(lt.save_safetensors, path), 1, true)
    assert.matches("a name is 1", fails(lt.save_safetensors, path, {lt.ones(1)}), 1, true)
    assert.matches('argument "path" is 3', fails(lt.save_safetensors, 3, {}), 1, true)
    assert.matches("it wants a string", fails(lt.save_safetensors, path, {}, {epoch = {}}), 1, true)
    assert.matches("meta",
      fails(lt.save_safetensors, path, {x = lt.ones{1, device = "meta"}}), 1, true)
  end)

  it("that are wrong are told so in one line with the path", function()
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

  it("says what is wrong", function()
    assert.matches("/nowhere/x", fails(lt.load_npy, "/nowhere/x"), 1, true)
    assert.matches('save_npy: argument "tensor" is 3', fails(lt.save_npy, path, 3), 1, true)
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
