-- Tensors in a notebook: lib/lutra/repl/rich.

local lt = require "lutra"
local notebook = require "notebook_support"
local pictures = require "pictures_support"
local program = require "program_support"
local rich = require "lutra.repl.rich"

local function html(x, options) return rich.bundle(x, options)["text/html"] end
local function rows(x, options) return notebook.rows_of(html(x, options)) end
local function text(x, options) return notebook.text_of(html(x, options)) end
local function has(whole, part)
  assert.truthy(whole:find(part, 1, true), ("%q is not in: %s"):format(part, whole))
end

describe("a tensor's table", function()
  it("has a row for each row, with indices, and the texts of the printed tensor", function()
    assert.same({{"", "1", "2", "3"}, {"1", "1", "-2", "3"}, {"2", "40", "5", "6"}},
      rows(lt.tensor{{1, -2, 3}, {40, 5, 6}}))
    assert.same({{"1", "2"}, {"1.", "2."}}, rows(lt.tensor{1., 2.}))
    assert.same({{"1", "2"}, {"0.5000", "nan"}}, rows(lt.tensor{0.5, lt.nan}))
    assert.same({{"1", "2"}, {"true", "false"}}, rows(lt.tensor{true, false}))
    assert.same({{"1"}, {"1.5000-2.i"}}, rows(lt.tensor{lt.complex(1.5, -2.)}))
  end)

  it("follows the print options, and leaves them as they are", function()
    local before = lt.get_printoptions()
    local _ <close> = setmetatable({}, {__close = function() lt.set_printoptions(before) end})
    lt.set_printoptions{precision = 1, edgeitems = 1, threshold = 4}
    assert.same({{"1", "…", "9"}, {"1.5", "…", "1.5"}}, rows(lt.full(9, 1.5)))
    assert.equal(1, lt.get_printoptions().precision)
    assert.equal(4, lt.get_printoptions().threshold)
    lt.set_printoptions{profile = "summary"}
    assert.same({{"1"}, {"1.5000"}}, rows(lt.full(1, 1.5)))
    assert.equal("summary", lt.get_printoptions().profile)
  end)

  it("shows the first and the last elements of a large tensor", function()
    local all = rows(lt.arange(1, 4000):reshape(40, 100))
    assert.same({"", "1", "2", "3", "…", "98", "99", "100"}, all[1])
    assert.same({"1", "1", "2", "3", "…", "98", "99", "100"}, all[2])
    assert.same({"⋮", "⋮", "⋮", "⋮", "⋱", "⋮", "⋮", "⋮"}, all[5])
    assert.same({"40", "3901", "3902", "3903", "…", "3998", "3999", "4000"}, all[8])
    assert.equal(8, #all)
  end)

  it("has a table for each slice of more dimensions", function()
    local x = lt.arange(1, 12):reshape(3, 2, 2)
    assert.same({
      {"", "1", "2"}, {"1", "1", "2"}, {"2", "3", "4"},
      {"", "1", "2"}, {"1", "5", "6"}, {"2", "7", "8"},
      {"", "1", "2"}, {"1", "9", "10"}, {"2", "11", "12"},
    }, rows(x))
    local whole = text(x)
    has(whole, "[1] 1 2")
    has(whole, "[3] 1 2")
    has(text(lt.zeros(9, 9, 9, 9)), "[9][9]")
    has(text(lt.zeros(2000, 2, 2)), "[3] 1 2 1 0. 0. 2 0. 0. … [1998]")
  end)

  it("stays small, and costs the same for a huge tensor", function()
    local x = lt.zeros(1):expand(100000, 100000)
    local start = lt.clock()
    assert.is_true(#html(x) < 20000)
    assert.is_true(lt.clock() - start < 1)
    assert.is_true(#html(lt.zeros(9, 9, 9, 9, 9, 9)) < 300000)
    assert.is_true(#html(lt.rand(50, 50), {heat = true}) < 400000)
    -- even one element at both ends of each dimension would be 2^14
    assert.same({}, rows(lt.zeros(table.unpack(lt.full(14, 2, {dtype = "int64"}):totable()))))
  end)

  it("is what is there for a single number, none, freed and meta tensors", function()
    assert.equal("tensor {} float32, cpu, 4 B 3.5000", text(lt.tensor(3.5)))
    assert.equal("tensor {0, 3} float32, cpu, 0 B no elements", text(lt.zeros(0, 3)))
    assert.equal("tensor {2} float32, meta, 8 B no data", text(lt.empty{2, device = "meta"}))
    local x = lt.zeros(2)
    x:free()
    local bundle = rich.bundle(x)
    assert.is_nil(bundle["text/html"])
    assert.equal("tensor (freed)", bundle["text/plain"])
  end)
end)

describe("a tensor on a device", function()
  it("is copied only as far as it is shown, and without a gradient's record", function()
    local code = [[
      local lt, rich = require "lutra", require "lutra.repl.rich"
      local x = lt.zeros{2000, 2000, device = "cuda:1", requires_grad = true} * 2
      local html
      local trace = lt.placement.trace(function()
        html = require("lutra.repl.rich.tensor").html(x, {})
      end)
      local bytes = 0
      for _, event in ipairs(trace.events) do
        if event.kind == "copy" and event.to == "cpu" then bytes = bytes + event.bytes end
      end
      print(bytes)
      print(html:find("min", 1, true),
        html:find("cuda:1, grad_fn=&lt;MulBackward&gt;", 1, true) ~= nil)
      print(rich.bundle(x, {statistics = true})["text/html"]:find("min 0, max 0", 1, true) ~= nil)]]
    local result = program.shell(("%s --emulate cuda:2 -e %s"):format(
      program.quote(program.program), program.quote(code)))
    assert.equal("", result.err)
    -- 6 x 6 elements of 4 bytes
    assert.equal("144\nnil\ttrue\ntrue\n", result.out)
  end)
end)

describe("a tensor's caption", function()
  it("has shape, dtype, device, bytes and what requires grad", function()
    has(text(lt.zeros{2, 3, dtype = "float64"}), "tensor {2, 3} float64, cpu, 48 B")
    has(text(lt.zeros{2, requires_grad = true}), "tensor {2} float32, cpu, requires_grad, 8 B")
    has(text(lt.zeros{2, requires_grad = true} * 2), "grad_fn=<MulBackward>")
    has(text(lt.nn.Linear(2, 2).bias), "Parameter {2} float32")
  end)

  it("has the statistics of the finite values", function()
    -- mean 2, deviations -1, 0, 1: the standard deviation is 1
    has(text(lt.tensor{1., 2, 3}), "min 1, max 3, mean 2, std 1 1 2 3")
    has(text(lt.tensor{1., 2, 3, lt.nan, lt.nan, lt.inf}),
      "min 1, max 3, mean 2, std 1, NaN 2, inf 1")
    has(text(lt.tensor{1, 2, 3}:to "float16"), "min 1, max 3, mean 2, std 1")
    has(text(lt.tensor{7, 7}), "min 7, max 7")
    has(text(lt.tensor{true, false, true}), "true 2, false 1")
    has(text(lt.tensor{lt.complex(3., 4.), lt.complex(0., 1.)}), "absolute values: min 1, max 5")
    has(text(lt.tensor{lt.nan}), "NaN 1")
  end)

  it("has them for large tensors only on request", function()
    local x = lt.zeros(1 << 21)
    assert.is_nil(text(x):find "min")
    has(text(x, {statistics = true}), "min 0, max 0")
    assert.is_nil(text(lt.zeros(3), {statistics = false}):find "min")
    assert.is_nil(text(lt.empty{3, device = "meta"}, {statistics = true}):find "min")
  end)

  it("records nothing for gradients", function()
    local x = lt.ones{3, requires_grad = true}
    local y = x * 2
    html(y, {heat = true})
    y:sum():backward()
    assert.same({2, 2, 2}, x.grad:totable())
  end)
end)

describe("heat", function()
  -- The colour of each cell, false without one.
  local function colors(x)
    local list = {}
    for style in html(x, {heat = true}):gmatch '<td style="([^"]*)">' do
      list[#list + 1] = style:match "background:(rgba%b())" or false
    end
    return list
  end

  it("has two sides when both signs occur", function()
    -- 0.7 is the opacity of the largest absolute value, 4
    assert.same({"rgba(0,114,178,0.35)", false, "rgba(213,94,0,0.70)", "rgba(213,94,0,0.35)"},
      colors(lt.tensor{-2., 0, 4, 2}))
  end)

  it("has one side else", function()
    assert.same({false, "rgba(213,94,0,0.35)", "rgba(213,94,0,0.70)"}, colors(lt.tensor{1, 2, 3}))
    assert.same({false, "rgba(0,114,178,0.35)", "rgba(0,114,178,0.70)"},
      colors(lt.tensor{-1, -2, -3}))
  end)

  it("leaves out what is not finite, and equal values", function()
    assert.same({false, false, "rgba(213,94,0,0.70)", false},
      colors(lt.tensor{lt.nan, 0, 5, lt.inf}))
    assert.same({false, false}, colors(lt.tensor{2, 2}))
    assert.same({}, colors(lt.zeros(0)))
  end)

  it("shows up to 2500 elements", function()
    assert.equal(51, #rows(lt.rand(50, 50), {heat = true}))
    assert.equal(8, #rows(lt.rand(51, 50), {heat = true}))
    assert.equal(6, #rows(lt.rand(51, 50), {heat = true, edgeitems = 2}))
  end)
end)

describe("a bundle", function()
  it("is well-formed HTML in which texts are escaped", function()
    for _, x in ipairs {lt.rand(3, 4), lt.zeros(3), lt.zeros(3, 3, 3), lt.zeros{2,
      requires_grad = true} * 2} do
      assert.is_true(pictures.is_closed(html(x)))
    end
    local x = lt.zeros{2, requires_grad = true} * 2
    assert.is_nil(html(x):find("<MulBackward>", 1, true))
  end)

  it("has the text of the prompt, and of most values only it", function()
    assert.same({["text/plain"] = "3"}, rich.bundle(3))
    assert.same({["text/plain"] = '"<b>"'}, rich.bundle "<b>")
    assert.same({["text/plain"] = "nil"}, rich.bundle(nil))
    assert.same({["text/plain"] = "{1, 2}"}, rich.bundle{1, 2})
    assert.equal("tensor{1., 2.}", rich.bundle(lt.tensor{1., 2.})["text/plain"])
  end)

  it("has the forms of an object's __mimebundle", function()
    local object = setmetatable({}, {__tostring = function() return "an object" end,
      __mimebundle = function(self)
        assert(self)
        return {["text/html"] = "<i>x</i>", ["image/png"] = "\x89PNG\0", no = "type", ["a/b"] = 3}
      end})
    assert.same({["text/plain"] = "an object", ["text/html"] = "<i>x</i>",
      ["image/png"] = "iVBORwA="}, rich.bundle(object))
  end)

  it("leaves out a form that fails or is huge", function()
    local function with(f)
      return rich.bundle(setmetatable({},
        {__tostring = function() return "x" end, __mimebundle = f}))
    end
    assert.same({["text/plain"] = "x"}, with(function() error "no" end))
    assert.same({["text/plain"] = "x"}, with(function() return 3 end))
    assert.same({["text/plain"] = "x"}, with(42))
    assert.same({["text/plain"] = "x"},
      with(function() return {["text/html"] = ("x"):rep(2000000)} end))
  end)

  it("of several results has the HTML of all when each has some", function()
    local two = rich.results(lt.zeros(1), lt.ones(1))
    assert.same({{"1"}, {"0."}, {"1"}, {"1."}}, notebook.rows_of(two["text/html"]))
    assert.equal("tensor{0.}\ttensor{1.}", two["text/plain"])
    assert.is_nil(rich.results(lt.zeros(1), 3)["text/html"])
    assert.is_string(rich.results(lt.zeros(1))["text/html"])
    assert.same({["text/plain"] = ""}, rich.results())
  end)

  it("encodes bytes as base64", function()
    local bytes = {}
    for n = 0, 40 do
      bytes[n + 1] = string.char((n * 37 + 250) % 256)
      local whole = table.concat(bytes)
      assert.equal(whole, notebook.decoded(rich.base64(whole)))
    end
    assert.equal("", rich.base64 "")
    assert.equal("Zg==", rich.base64 "f") -- RFC 4648, section 10
    assert.equal("Zm9vYmE=", rich.base64 "fooba")
  end)
end)
