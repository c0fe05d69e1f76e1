-- Functions and names that programs written for PyTorch expect.

local lt = require "lutra"

local nn = lt.nn

local function fails(text, f, ...)
  local ok, reason = pcall(f, ...)
  assert.is_false(ok, "expected an error: " .. text)
  assert.truthy(tostring(reason):find(text, 1, true), tostring(reason))
end

describe("the names of dtypes", function()
  it("include those from C", function()
    assert.same({"int64", "int32", "int16"}, {lt.long, lt.int, lt.short})
    assert.same({"float64", "float32", "float16"}, {lt.double, lt.float, lt.half})
    assert.same({"complex64", "complex128"}, {lt.cfloat, lt.cdouble})
    assert.equal("int64", lt.zeros{2, dtype = lt.long}.dtype)
  end)
end)

describe("x:type", function()
  it("returns the dtype, or the tensor in another", function()
    local x = lt.ones(2)
    assert.equal("float32", x:type())
    assert.equal("int64", x:type(lt.long).dtype)
    assert.equal("uint8", x:type{dtype = "uint8"}.dtype)
    assert.equal(x, x:type(x:type()))
    fails("type: expected", x.type, x, 3)
    fails("type: expected a tensor", x.type, 3)
  end)
end)

describe("a shape", function()
  it("counts from the end with negative indices", function()
    local shape = lt.zeros(2, 3, 5).shape
    assert.same({5, 3, 2}, {shape[-1], shape[-2], shape[-3]})
    assert.is_nil(shape[-4])
    assert.is_nil(shape[0])
    assert.is_nil(shape[4])
    assert.equal(30, shape:numel())
  end)
end)

describe("isinstance", function()
  local Net = nn.Linear:extend "Net"
  function Net:init() nn.Linear.init(self, 2, 2) end

  it("finds the class of a module and its parents", function()
    local m = Net()
    assert.is_true(m:isinstance(Net))
    assert.is_true(m:isinstance(nn.Linear))
    assert.is_true(lt.isinstance(m, nn.Module))
    assert.is_false(m:isinstance(nn.Conv2d))
    assert.is_true(m:isinstance{nn.Conv2d, nn.Linear})
    assert.is_false(nn.Linear(2, 2):isinstance(Net))
  end)

  it("knows datasets, optimizers and distributions", function()
    local set = lt.data.TensorDataset(lt.zeros(2))
    assert.is_true(lt.isinstance(set, lt.data.Dataset))
    local opt = lt.optim.SGD(Net():parameters(), {lr = 1})
    assert.is_true(lt.isinstance(opt, lt.optim.SGD))
    assert.is_true(lt.isinstance(opt, lt.optim.Optimizer))
    assert.is_false(lt.isinstance(opt, lt.optim.Adam))
    assert.is_true(lt.isinstance(lt.distributions.Normal(0, 1), lt.distributions.Normal))
  end)

  it("is false for other values", function()
    for _, value in ipairs{3, "x", lt.zeros(2), {}, print} do
      assert.is_false(lt.isinstance(value, nn.Linear))
    end
    assert.is_false(lt.isinstance(nil, nn.Linear))
  end)

  it("expects a class", function()
    fails("isinstance: expected a class, such as nn.Linear for argument 'class', got the string",
      lt.isinstance, Net(), "Linear")
    fails("isinstance: expected a class", lt.isinstance, Net(), nn.Linear(2, 2).weight)
    fails("isinstance: expected a class, or a list of classes", lt.isinstance, Net(), {})
    fails("isinstance: expected a class", lt.isinstance, Net(), nil)
  end)
end)

describe("settings of PyTorch", function()
  it("of cuDNN are stored and have no effect", function()
    local cudnn = lt.backends.cudnn
    assert.is_false(cudnn.is_available())
    assert.is_nil(cudnn.version())
    for _, name in ipairs{"benchmark", "deterministic", "enabled", "allow_tf32"} do
      local before = cudnn[name]
      assert.is_boolean(before)
      cudnn[name] = not before
      assert.equal(not before, cudnn[name])
      cudnn[name] = before
    end
    fails("backends.cudnn.benchmark: expected a boolean", function() cudnn.benchmark = 1 end)
    fails("no switch", function() cudnn.speed = true end)
  end)

  it("of the precision of matrix products are those of CUDA", function()
    local before = lt.get_float32_matmul_precision()
    lt.set_float32_matmul_precision "high"
    assert.is_true(lt.backends.cuda.matmul.allow_tf32)
    assert.equal("high", lt.get_float32_matmul_precision())
    lt.set_float32_matmul_precision "highest"
    assert.is_false(lt.backends.cuda.matmul.allow_tf32)
    fails('set_float32_matmul_precision: expected "highest", "high" or "medium"',
      lt.set_float32_matmul_precision, "low")
    lt.set_float32_matmul_precision(before)
  end)

  it("compile accepts the options of PyTorch", function()
    local m = nn.Linear(2, 2)
    assert.equal(m, lt.compile(m, {disable = true}))
    assert.equal(2, lt.compile(math.max, {mode = "max-autotune"})(1, 2))
    fails("compile: expected a module or a function for argument 'model', got 3", lt.compile, 3)
    fails("compile: expected 'default', 'reduce-overhead', 'max-autotune' or "
      .. "'max-autotune-no-cudagraphs' for argument 'mode', got the string \"fast\"",
      lt.compile, print, {mode = "fast"})
    local missing = "compile: expected a module or a function for argument 'model', got no value"
    fails(missing, lt.compile)
    fails(missing, lt.compile, nil)
    fails(missing, lt.compile, {fullgraph = true})
  end)

  it("vmap is that of func", function()
    local x = lt.randn(3, 2)
    assert.is_true(lt.equal(x * 2, lt.vmap(function(row) return row * 2 end)(x)))
  end)
end)
