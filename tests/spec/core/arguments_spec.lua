-- The three spellings of one call, and what is said when a call is wrong.
local lt = require "lutra"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local function shape(x) return tostring(x.shape) end

describe("the three spellings", function()
  local x = lt.arange(6):view(2, 3):to "float32"

  it("give the same call", function()
    local expected = {{6}, {15}}
    assert.same(expected, x:sum(2, true):totable())
    assert.same(expected, x:sum(2, {keepdim = true}):totable())
    assert.same(expected, x:sum{2, keepdim = true}:totable())
    assert.same(expected, x:sum{dim = 2, keepdim = true}:totable())
    assert.same(expected, lt.sum(x, 2, true):totable())
    assert.same(expected, lt.sum(x, {dim = 2, keepdim = true}):totable())
    assert.same(expected, lt.sum{x, 2, keepdim = true}:totable())
    assert.same(expected, lt.sum{input = x, dim = 2, keepdim = true}:totable())
    assert.same(expected, lt.sum(x, {2, keepdim = true}):totable())
  end)

  it("know an argument whose own name is input", function()
    local weight, ids = lt.tensor{{1, 2}, {3, 4}}, lt.tensor{2}
    assert.same({{3, 4}}, lt.embedding{weight = weight, input = ids}:totable())
    assert.same({{3, 4}}, lt.embedding(weight, {input = ids}):totable())
  end)

  it("take sizes spread, in a table or as a shape", function()
    assert.equal("{2, 3}", shape(lt.zeros(2, 3)))
    assert.equal("{2, 3}", shape(lt.zeros({2, 3})))
    assert.equal("{2, 3}", shape(lt.zeros{2, 3}))
    assert.equal("{2, 3}", shape(lt.zeros(x.shape)))
    assert.equal("{2, 3}", shape(lt.zeros(x:size())))
    assert.equal("{3, 2}", shape(x:view(3, 2)))
    assert.equal("{3, 2}", shape(x:view{3, 2}))
    assert.equal("{3, 2}", shape(x:reshape({3, -1})))
    assert.equal("{2, 3}", shape(lt.zeros{size = {2, 3}}))
    assert.equal("{5}", shape(lt.zeros(5)))
    assert.equal("{}", shape(lt.zeros({})))
  end)

  it("take lists and nil before the last argument", function()
    assert.same({{6}, {15}}, x:sum({2}, true):totable())
    assert.same({{21}}, x:sum({1, -1}, true):totable())
    assert.same({{21}}, x:sum(nil, true):totable())
    assert.same({0, 1, 2, 3, 4, 5}, (x - 1):reshape({6}, nil):totable())
    assert.same({{1, 2, 3, 1}, {4, 5, 6, 2}},
      lt.cat({x, lt.tensor{{1.}, {2.}}}, 2):totable())
    assert.same({{2, 3}, {5, 6}}, x:narrow(2, 2, 2):totable())
    assert.same({{2, 3}, {5, 6}}, x:narrow(-1, lt.tensor(2), 2):totable())
    assert.matches("expected an integer for argument 'dim%[2%]', got the string \"a\"",
      fails(x.sum, x, {1, "a"}, true))
    assert.matches("expected a 1%-based dim for argument 'dim', got 0", fails(x.sum, x, {0}, true))
    assert.matches("expected a tensor for argument 'tensors%[2%]', got 1", fails(lt.cat, {x, 1}, 1))
  end)

  it("take options after sizes", function()
    assert.equal("float64", lt.zeros(2, 3, {dtype = "float64"}).dtype)
    assert.equal("float64", lt.zeros{2, 3, dtype = "float64"}.dtype)
    assert.equal("meta", lt.zeros({2, 3}, {device = "meta"}).device)
    assert.equal("meta", lt.zeros(x.shape, {device = "meta"}).device)
    assert.is_true(lt.zeros{2, requires_grad = true}.requires_grad)
    assert.equal("int32", lt.zeros{2, dtype = lt.int32}.dtype)
  end)

  it("hold an empty trailing table for no options", function()
    assert.equal(21, x:sum({}):item())
    assert.equal("{2, 3}", shape(lt.zeros(2, 3, {})))
  end)

  it("take a table as the list where the first parameter is one", function()
    assert.same(21.0, x:sum{1, 2}:item())
    assert.equal("{1, 3}", shape(x:sum{1, keepdim = true}))
    assert.equal("{4, 3}", shape(lt.cat{x, x}))
    assert.equal("{2, 6}", shape(lt.cat{x, x, dim = 2}))
    assert.equal("{2, 6}", shape(lt.cat({x, x}, 2)))
    assert.equal("{2, 6}", shape(lt.cat{{x, x}, 2}))
    assert.equal("{2, 2, 3}", shape(lt.stack{x, x}))
  end)

  it("leave numbers after a single one to the parameters behind the list", function()
    assert.equal(2, #x:split(1, 1))
    assert.equal(2, #x:split(2, 2))
    assert.equal("{2, 3}", shape(x:roll(1, 2)))
    assert.same({{3, 1, 2}, {6, 4, 5}}, x:roll(1, 2):totable())
  end)

  it("find the sizes of full and randint wherever they stand", function()
    assert.same({{7, 7}}, lt.full({1, 2}, 7):totable())
    assert.same({7, 7}, lt.full{{2}, 7}:totable())
    assert.same({7, 7}, lt.full{2, fill_value = 7}:totable())
    local die = lt.randint(1, 6, {100})
    assert.equal("{100}", shape(die))
    assert.is_true(die:min():item() >= 1 and die:max():item() <= 6)
    local to6 = lt.randint(6, {100})
    assert.is_true(to6:min():item() >= 1 and to6:max():item() <= 6)
    assert.equal("{2, 3}", shape(lt.randint{6, {2, 3}}))
    assert.equal("{2, 3}", shape(lt.randint{1, 6, {2, 3}, dtype = "int32"}))
    assert.equal("{4}", shape(lt.randint(1, 6, 4)))
    assert.equal("{}", shape(lt.randint(6, {size = {}})))
    assert.equal("{}", shape(lt.randint(1, 6, {}, {})))
    for _, sizes in ipairs{{6, {}}, {1, 6, {}}} do -- an empty trailing table holds no options
      local ok, message = pcall(lt.randint, table.unpack(sizes))
      assert.is_false(ok)
      assert.matches("hint: lt.randint(6, {100}), or lt.randint(6, {size = {}}) for a tensor of 0 "
        .. "dims", message, 1, true)
    end
  end)

  it("count dims from 1", function()
    assert.same({5, 7, 9}, x:sum(1):totable())
    assert.same({6, 15}, x:sum(2):totable())
    assert.same({6, 15}, x:sum(-1):totable())
    assert.equal("{3, 2}", shape(x:transpose(1, 2)))
    assert.equal("{3, 2}", shape(x:permute(2, 1)))
    assert.equal("{3, 2}", shape(x:permute{2, 1}))
    assert.same({4, 5, 6}, x:select(1, 2):totable())
    assert.same({{2, 3}, {5, 6}}, x:narrow(2, 2, 2):totable())
  end)

  it("take whole floats as integers", function()
    assert.equal("{2, 3}", shape(lt.zeros(2.0, 3.0)))
    assert.same({6, 15}, x:sum(2.0):totable())
  end)
end)

describe("a wrong call", function()
  local x = lt.zeros(2, 3)

  it("names the unknown argument and lists the valid ones", function()
    local message = fails(x.sum, x, {dims = 1})
    assert.matches("sum: expected an argument name (dim, keepdim, dtype), got 'dims'", message, 1,
      true)
    assert.matches("hint: did you mean 'dim'", message, 1, true)
    assert.matches("expected an argument name (dim, keepdim, dtype), got 'dims'", message, 1, true)
    assert.matches("expected an argument name (self, dim, keepdim, dtype)", fails(lt.sum, x,
      {axes = 1}), 1, true)
  end)

  it("names the dtype or device that is nearest to a name that is neither's", function()
    for _, value in ipairs {x, lt.nn.Linear(3, 2)} do
      for name, hint in pairs {flot32 = "float32", bflot16 = "bfloat16", cpuu = "cpu"} do
        local message = fails(value.to, value, name)
        assert.matches(('to: expected an available device or a dtype, got "%s". Available '
          .. 'devices: '):format(name), message, 1, true)
        assert.matches(('\nhint: did you mean "%s"?'):format(hint), message, 1, true)
      end
      assert.is_nil(fails(value.to, value, "xyz"):find "hint")
      assert.matches("expected a dtype (bool, uint8", fails(value.to, value, {dtype = "flot32"}), 1,
        true)
    end
  end)

  it("names the strings that an argument may be", function()
    assert.matches("gelu: expected 'none' or 'tanh' for argument 'approximate', got the string "
      .. '"fast"', fails(lt.gelu, x, "fast"), 1, true)
    assert.matches("mse_loss: expected 'mean', 'sum' or 'none' for argument 'reduction', got 3",
      fails(lt.mse_loss, x, x, {reduction = 3}), 1, true)
    assert.matches("div: expected 'floor' or 'trunc' for argument 'rounding_mode', got true",
      fails(x.div, x, {2, rounding_mode = true}), 1, true)
  end)

  it("names the types that an argument may be of", function()
    assert.matches("max: expected a tensor or an integer for argument 'dim', got 1.5",
      fails(x.max, x, 1.5), 1, true)
    assert.matches("max: expected a tensor or an integer for argument 'dim', got the string \"a\"",
      fails(lt.max, {x, dim = "a"}), 1, true)
    assert.equal("{3}", shape(x:max(1)))
    assert.equal("{2, 3}", shape(x:max(lt.ones(2, 3))))
  end)

  it("takes an empty list as the default of one", function()
    local row = lt.arange(6):view(2, 3)
    assert.same({{6, 1, 2}, {3, 4, 5}}, row:roll(1):totable())
    assert.same({{6, 1, 2}, {3, 4, 5}}, row:roll(1, {dims = {}}):totable())
    assert.same({{4, 5, 6}, {1, 2, 3}}, row:roll{1, dims = 1}:totable())
  end)

  it("names the wrong type: function, argument, expected and actual", function()
    assert.matches("sum: expected a boolean for argument 'keepdim', got the string \"yes\"",
      fails(x.sum, x, 1, "yes"), 1, true)
    assert.matches("matmul: expected a tensor for argument 'other', got 3",
      fails(x.matmul, x, 3), 1, true)
    assert.matches("add: expected a tensor or a number for argument 'other', got the string \"a\"",
      fails(function() return x + "a" end), 1, true)
    assert.matches("add: expected a tensor or a number for argument 'other', got a table",
      fails(function() return x + {1} end), 1, true)
    assert.matches("cat: expected a tensor for argument 'tensors[2]', got 3",
      fails(lt.cat, {x, 3}), 1, true)
    assert.matches("zeros: expected an integer for argument 'size[2]', got the string \"b\"",
      fails(lt.zeros, {2, "b"}), 1, true)
    assert.matches("add: expected a number for argument 'alpha', got a tensor of shape {2, 3}",
      fails(lt.add, x, x, x), 1, true)
  end)

  it("says what is missing", function()
    assert.matches("matmul: expected a tensor for argument 'other', got no value",
      fails(x.matmul, x), 1, true)
    assert.matches("zeros: expected sizes (integers) for argument 'size', got no value",
      fails(lt.zeros), 1, true)
    assert.matches("hint: call it as x:sum(...)", fails(x.sum), 1, true)
    assert.matches("sum: expected a tensor for argument 'self', got 3", fails(x.sum, 3), 1, true)
  end)

  it("counts the arguments", function()
    assert.matches("transpose: expected at most 3 arguments (self, dim0, dim1), got 4",
      fails(x.transpose, x, 1, 2, 3), 1, true)
    assert.matches("sum: expected one value for argument 'dim', got two: one by position, one "
      .. "by name", fails(x.sum, x, 1, {dim = 1}), 1, true)
  end)

  it("refuses 0 and fractions where things count from 1", function()
    assert.matches("sum: expected a 1-based dim for argument 'dim', got 0", fails(x.sum, x, 0), 1,
      true)
    assert.matches("dims count from 1", fails(x.transpose, x, 0, 1), 1, true)
    assert.matches("indices count from 1", fails(x.select, x, 1, 0), 1, true)
    assert.matches("sum: expected dims (integers) for argument 'dim', got 1.5", fails(x.sum, x,
      1.5), 1, true)
    assert.matches("zeros: expected sizes (integers) for argument 'size', got 2.5",
      fails(lt.zeros, 2.5), 1, true)
  end)

  it("knows the names of dtypes and devices", function()
    local message = fails(lt.zeros, 2, {dtype = "float31"})
    assert.matches("zeros: ", message, 1, true)
    assert.matches("float31", message, 1, true)
    assert.matches("float32", message, 1, true)
    message = fails(lt.zeros, 2, {device = "tpu"})
    assert.matches("zeros: ", message, 1, true)
    assert.matches("tpu", message, 1, true)
    assert.matches("cpu", message, 1, true)
    assert.matches("expected a dtype such as \"float32\" for argument 'dtype', got 3",
      fails(lt.zeros, 2, {dtype = 3}), 1, true)
  end)

  it("is raised at the caller's line", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local message = fails(function() local y = x:sum(0) return y end)
    assert.matches("arguments_spec.lua:" .. line .. ":", message, 1, true)
    message = fails(function() local y = lt.nn.Linear(3, 4)(x:to "float64") return y end)
    assert.matches("arguments_spec.lua:", message, 1, true)
  end)
end)

describe("x:to", function()
  local x = lt.ones(2)

  it("distinguishes devices, dtypes and tensors", function()
    assert.equal("float64", x:to("float64").dtype)
    assert.equal("meta", x:to("meta").device)
    local y = x:to("meta", "int32")
    assert.equal("meta int32", y.device .. " " .. y.dtype)
    y = x:to{device = "meta", dtype = lt.int8}
    assert.equal("meta int8", y.device .. " " .. y.dtype)
    y = x:to(lt.zeros{1, device = "meta", dtype = "bool"})
    assert.equal("meta bool", y.device .. " " .. y.dtype)
    assert.equal("float16", x:to{"float16", non_blocking = true}.dtype)
  end)

  it("gives the very same tensor when nothing changes", function()
    assert.is_true(rawequal(x, x:to "float32"))
    assert.is_true(rawequal(x, x:to "cpu"))
    assert.is_true(rawequal(x, x:float()))
    assert.is_true(rawequal(x, x:cpu()))
    assert.is_true(rawequal(x, x:contiguous()))
    assert.is_false(rawequal(x, x:to{"float32", copy = true}))
  end)

  it("reports what it expects", function()
    assert.matches("to: expected a device, a dtype or a tensor, got a function",
      fails(x.to, x, print), 1, true)
    assert.matches('expected an available device, got "cuda:99": driver library libcuda.so.1 '
      .. 'not found. Available devices: cpu, meta', fails(x.to, x, 99), 1, true)
    assert.matches("nonsense", fails(x.to, x, "nonsense"), 1, true)
    assert.matches("to: expected an argument name (device, dtype, non_blocking, copy), got "
      .. "'devise'", fails(x.to, x, {devise = "cpu"}), 1, true)
  end)

  it("has short names", function()
    local names = {float = "float32", double = "float64", half = "float16", bfloat16 = "bfloat16",
      int = "int32", long = "int64", short = "int16", char = "int8", byte = "uint8", bool = "bool"}
    for method, dtype in pairs(names) do assert.equal(dtype, x[method](x).dtype) end
  end)
end)
