-- Printing: PyTorch's layout in Lua's braces. The texts are PyTorch's, with its brackets exchanged.
local lt = require "lutra"

local inf, nan = math.huge, 0 / 0
local function text(data, options) return tostring(lt.tensor(data, options)) end

describe("numbers", function()
  before_each(function() lt.set_printoptions{profile = "default"} end)

  it("of floats share one format", function()
    assert.equal("tensor{1.5000e+00, 2.0000e+03, 1.0000e+00}", text{1.5, 2000., 1.})
    assert.equal("tensor{   1.5000, 1500.0000}", text{1.5, 1500.})
    assert.equal("tensor{1.0000e+00, 2.0000e+03}", text{1., 2000.})
    assert.equal("tensor{1.0000e+08, 2.0000e+08}", text{1e8, 2e8})
    assert.equal("tensor{9.0000e-05, 1.0000e-04}", text{9e-5, 1e-4})
    assert.equal("tensor{1., nan, inf, -inf}", text{1., nan, inf, -inf})
    assert.equal("tensor{1.5000,    nan,    inf}", text{1.5, nan, inf})
    assert.equal("tensor{-0., 0.}", text{-0., 0.})
    assert.equal("tensor{0.0000, 0.2500, 0.5000}", text{0, 0.25, 0.5})
    assert.equal("tensor{nan}", text{nan})
    assert.equal("tensor{ 1., -2.,  0.}", text{1., -2., 0.})
    assert.equal("tensor{100000000.}", text{1e8})
  end)

  it("of integers and bools are right-aligned", function()
    assert.equal('tensor{  1, 200, dtype = "uint8"}', text({1, 200}, {dtype = "uint8"}))
    assert.equal("tensor{ 1, -2}", text{1, -2})
    assert.equal("tensor{ true, false}", text{true, false})
    assert.equal("tensor{true, true}", text{true, true})
    assert.equal("tensor{10000000000}", text{10000000000})
  end)

  it("of 0 dims stand in parentheses", function()
    assert.equal("tensor(3.1416)", text(3.14159265))
    assert.equal("tensor(7)", text(7))
    assert.equal("tensor(true)", text(true))
    assert.equal('tensor(7., {dtype = "float64"})', text(7., {dtype = "float64"}))
  end)
end)

describe("layout", function()
  before_each(function() lt.set_printoptions{profile = "default"} end)

  it("of matrices", function()
    assert.equal([[
tensor{{1., 0.},
       {0., 1.}, shape = {2, 2}}]], tostring(lt.eye(2)))
    assert.equal([[
tensor{{{1, 2},
        {3, 4}},

       {{5, 6},
        {7, 8}}, shape = {2, 2, 2}}]], tostring(lt.arange(8):view(2, 2, 2)))
    assert.equal("tensor{{1, 2}, shape = {1, 2}}", tostring(lt.arange(2):view(1, 2)))
  end)

  it("of strided views", function()
    assert.equal([[
tensor{{1, 3},
       {2, 4}, shape = {2, 2}}]], tostring(lt.arange(4):view(2, 2):t()))
  end)

  it("breaks long rows", function()
    -- linewidth 80, 6 columns used, each number 2 wide and a comma and a space: 18 on a line
    local lines = {}
    for line in tostring(lt.arange(40)):gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal(3, #lines)
    assert.equal("tensor{ 1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18,",
      lines[1])
    assert.equal("       19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36,",
      lines[2])
    assert.equal("       37, 38, 39, 40}", lines[3])
  end)

  it("shows the ends of what is large", function()
    assert.equal("tensor{   0,    1,    2,  ...,  998,  999, 1000, shape = {1001}}",
      tostring(lt.arange(0, 1000)))
    assert.is_nil(tostring(lt.arange(1000)):find("...", 1, true))
    assert.equal([[
tensor{{   1,    2,    3,  ...,   18,   19,   20},
       {  21,   22,   23,  ...,   38,   39,   40},
       {  41,   42,   43,  ...,   58,   59,   60},
       ...,
       {1141, 1142, 1143,  ..., 1158, 1159, 1160},
       {1161, 1162, 1163,  ..., 1178, 1179, 1180},
       {1181, 1182, 1183,  ..., 1198, 1199, 1200}, shape = {60, 20}}]],
      tostring(lt.arange(1200):view(60, 20)))
    assert.equal([[
tensor{{1, 1, 1,  ..., 1, 1, 1},
       {1, 1, 1,  ..., 1, 1, 1}, shape = {2, 600}, dtype = "int8"}]],
      tostring(lt.ones{2, 600, dtype = "int8"}))
  end)

  it("decides the format by what is shown", function()
    local x = lt.zeros(2000) + 0.5
    x[1000] = 1e9
    assert.equal("tensor{0.5000, 0.5000, 0.5000,  ..., 0.5000, 0.5000, 0.5000, shape = {2000}}",
      tostring(x))
  end)
end)

describe("suffixes", function()
  before_each(function() lt.set_printoptions{profile = "default"} end)

  it("name shape, dtype and what requires grad", function()
    assert.equal('tensor{1., 2., dtype = "float64"}', text({1, 2}, {dtype = "float64"}))
    assert.equal('tensor{1, 2, dtype = "int32"}', text({1, 2}, {dtype = "int32"}))
    assert.equal('tensor{{1., 2.}, shape = {1, 2}, dtype = "float16"}',
      text({{1, 2}}, {dtype = "float16"}))
    assert.equal("tensor{1., 2., requires_grad = true}",
      text({1., 2.}, {requires_grad = true}))
    assert.equal("tensor{2., 4., grad_fn = <MulBackward>}",
      tostring(lt.tensor({1., 2.}, {requires_grad = true}) * 2))
    assert.equal("tensor(3., {grad_fn = <SumBackward>})",
      tostring(lt.tensor({1., 2.}, {requires_grad = true}):sum()))
  end)

  it("stand alone where there is no element", function()
    assert.equal("tensor{}", text{})
    assert.equal("tensor{shape = {2, 0, 3}}", tostring(lt.empty(2, 0, 3)))
    assert.equal('tensor{dtype = "int64"}', text({}, {dtype = "int64"}))
    assert.equal('tensor{shape = {0, 2}, dtype = "bool"}',
      tostring(lt.empty{0, 2, dtype = "bool"}))
  end)

  it("say where a meta tensor is", function()
    assert.equal('tensor{..., device = "meta", shape = {2, 3}}',
      tostring(lt.empty{2, 3, device = "meta"}))
    assert.equal('tensor{..., device = "meta", shape = {2}, dtype = "int64"}',
      tostring(lt.empty{2, device = "meta", dtype = "int64"}))
  end)

  it("go to a line of their own where they do not fit", function()
    assert.equal("tensor{1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.,\n"
      .. "       requires_grad = true}", tostring(lt.ones{16, requires_grad = true}))
  end)

  it("follow the default dtype", function()
    lt.set_default_dtype "float64"
    local double, single = text{1.5}, text({1.5}, {dtype = "float32"})
    lt.set_default_dtype "float32"
    assert.equal("tensor{1.5000}", double)
    assert.equal('tensor{1.5000, dtype = "float32"}', single)
  end)
end)

describe("options", function()
  after_each(function() lt.set_printoptions{profile = "default"} end)

  it("change precision, threshold, edges, width and exponents", function()
    lt.set_printoptions{precision = 2}
    assert.equal("tensor{1.23}", text{1.234567})
    lt.set_printoptions{threshold = 5, edgeitems = 1}
    assert.equal("tensor{1,  ..., 6, shape = {6}}", text{1, 2, 3, 4, 5, 6})
    lt.set_printoptions{profile = "default"}
    lt.set_printoptions{sci_mode = false}
    assert.equal("tensor{   1.5000, 2000.0000}", text{1.5, 2000.})
    lt.set_printoptions{sci_mode = true, precision = 1}
    assert.equal("tensor{1.5e+00, 2.0e+00}", text{1.5, 2.})
    lt.set_printoptions{profile = "full"}
    assert.is_nil(tostring(lt.arange(2000)):find("...", 1, true))
    lt.set_printoptions{profile = "short"}
    assert.equal("tensor{0.50, 0.50,  ..., 0.50, 0.50, shape = {1001}}",
      tostring(lt.full({1001}, 0.5)))
    lt.set_printoptions{linewidth = 20}
    assert.equal("tensor{1, 2, 3, 4,\n       5, 6}", text{1, 2, 3, 4, 5, 6})
  end)

  it("leave exponents to the numbers again", function()
    lt.set_printoptions{sci_mode = true}
    lt.set_printoptions{sci_mode = "auto"}
    assert.equal("tensor{1.5000, 2.0000}", text{1.5, 2.})
    assert.equal("auto", lt.get_printoptions().sci_mode)
    local ok, message = pcall(lt.set_printoptions, {sci_mode = "never"})
    assert.is_false(ok)
    assert.matches('expected true, false or "auto" for argument \'sci_mode\', got the string '
      .. '"never"', message, 1,
      true)
  end)

  it("can be kept and put back", function()
    local cases = {{profile = "short"}, {profile = "full", linewidth = 50}, {profile = "summary"},
      {sci_mode = false, precision = 7, threshold = 3, edgeitems = 5}}
    for _, case in ipairs(cases) do
      lt.set_printoptions{profile = "default"}
      lt.set_printoptions(case)
      local kept = lt.get_printoptions()
      for name, value in pairs(case) do assert.equal(value, kept[name]) end
      lt.set_printoptions{profile = "default", sci_mode = true, precision = 1}
      lt.set_printoptions(kept)
      assert.same(kept, lt.get_printoptions())
    end
  end)

  it("are checked", function()
    local ok, message = pcall(lt.set_printoptions, {profile = "tiny"})
    assert.is_false(ok)
    assert.matches('expected "default", "short", "full" or "summary" for argument \'profile\', '
      .. 'got "tiny"', message, 1, true)
    assert.is_false(pcall(lt.set_printoptions, {precision = -1}))
    assert.is_false(pcall(lt.set_printoptions, {edgeitems = 0}))
    assert.is_false(pcall(lt.set_printoptions, {digits = 3}))
  end)
end)

describe("shapes", function()
  it("print and compare by their sizes", function()
    local x = lt.zeros(2, 3)
    assert.equal("{2, 3}", tostring(x.shape))
    assert.equal("{}", tostring(lt.tensor(1).shape))
    assert.is_true(x.shape == lt.ones(2, 3).shape)
    assert.is_true(x.shape == {2, 3})
    assert.is_false(x.shape == {3, 2})
    assert.error_matches(function() return "a " .. x.shape end,
      "attempt to concatenate a Shape value %(field 'shape'%)")
    assert.equal(6, x.shape:numel())
    x.shape[1] = 7
    assert.equal(2, x.shape[1])
  end)
end)
