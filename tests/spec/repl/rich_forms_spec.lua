-- Modules, tables, CSV data, figures and the prompt's commands in a notebook: lib/lutra/repl/rich.

local lt = require "lutra"
local notebook = require "notebook_support"
local pictures = require "pictures_support"
local rich = require "lutra.repl.rich"
local nn = lt.nn

local function has(whole, ...)
  for _, part in ipairs {...} do
    assert.truthy(whole:find(part, 1, true), ("%q is not in: %s"):format(part, whole))
  end
end

-- Returns the size of a PNG image.
local function png_size(bytes)
  assert.equal("\x89PNG\r\n\26\n", bytes:sub(1, 8))
  local width, height = (">I4I4"):unpack(bytes, 17)
  return width, height
end

describe("a module", function()
  it("is a tree with classes, options, parameters, shapes and totals", function()
    local html = rich.bundle(nn.Sequential(nn.Linear(3, 4), nn.ReLU()))["text/html"]
    assert.is_true(pictures.is_closed(html))
    local text = notebook.text_of(html)
    -- 3 x 4 + 4 parameters of 4 bytes
    has(text, "Sequential 16 params, 64 B on cpu",
      "1 Linear(in_features=3, out_features=4, bias=true) 16 params",
      "weight {4, 3} float32", "bias {4} float32", "2 ReLU")
    local _, count = html:gsub("<details", "")
    assert.equal(2, count) -- the whole and the layer with parameters
    has(html, "<details open")
  end)

  it("counts trained parameters, and marks frozen ones and buffers", function()
    local net = nn.BatchNorm1d(4)
    net.weight:requires_grad_(false)
    local text = notebook.text_of(rich.bundle(net)["text/html"])
    has(text, "8 params (4 trained)", "weight {4} float32 frozen",
      "running_mean {4} float32 buffer")
  end)

  it("is escaped, and survives a failing extra_repr", function()
    local Odd = nn.Module:extend "Odd<b>"
    function Odd.extra_repr() error "no" end
    function Odd:init() self.p = nn.Parameter(lt.zeros(1)) end
    local html = require("lutra.repl.rich.tree").html(Odd())
    assert.is_true(pictures.is_closed(html))
    has(notebook.text_of(html), "Odd<b> 1 param")
  end)

  it("of a thousand layers is cut", function()
    local layers = {}
    for i = 1, 1200 do layers[i] = nn.ReLU() end
    local html = rich.bundle(nn.Sequential(table.unpack(layers)))["text/html"]
    assert.is_true(#html < 100000)
    has(notebook.text_of(html), "999 ReLU …")
  end)
end)

describe("a table", function()
  it("is a tree when it is nested and its text is long", function()
    local t = {}
    for i = 1, 30 do t["layer_" .. i] = {lt.zeros(2, 2), "<i>"} end
    has(notebook.text_of(rich.bundle(t)["text/html"]), "layer_1 table 4 elements, 16 B on cpu",
      '[1] {2, 2} float32', '"<i>"')
  end)

  it("is text else", function()
    assert.is_nil(rich.bundle({1, {2, 3}, lt.zeros(2)})["text/html"])
    local long = {}
    for i = 1, 60 do long[i] = "a string that takes a line " .. i end
    assert.is_nil(rich.bundle(long)["text/html"])
  end)

  it("may contain itself", function()
    local t = {}
    t.self = t
    has(notebook.text_of(require("lutra.repl.rich.tree").html(t)), "self table (seen above)")
  end)
end)

describe("CSV data", function()
  local function read(lines)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(table.concat(lines, "\n"), "\n")
    file:close()
    local _ <close> = setmetatable({}, {__close = function() os.remove(path) end})
    return lt.data.read_csv(path)
  end

  it("is a table with names and types of columns", function()
    local html = rich.bundle(read{"name,n,x", "<b>,1,0.5", "é,2,"})["text/html"]
    assert.is_true(pictures.is_closed(html))
    assert.same({
      {"", "name", "n", "x"}, {"", "string", "int64", "float64, 1 missing"},
      {"1", "<b>", "1", "0.5"}, {"2", "é", "2", "nan"},
    }, notebook.rows_of(html))
    has(notebook.text_of(html), "CSV data of 2 rows, 3 columns")
  end)

  it("has the first and the last rows and columns of many", function()
    local names, lines = {}, {}
    for k = 1, 30 do names[k] = "c" .. k end
    lines[1] = table.concat(names, ",")
    for i = 1, 100 do
      local values = {}
      for k = 1, 30 do values[k] = i * k end
      lines[i + 1] = table.concat(values, ",")
    end
    local rows = notebook.rows_of(rich.bundle(read(lines))["text/html"])
    assert.equal(2 + 11, #rows)
    assert.equal(1 + 17, #rows[1])
    assert.same({"⋮", "⋮", "⋱"}, {rows[8][1], rows[8][2], rows[8][10]})
    assert.equal("3000", rows[13][18])
    assert.equal("c30", rows[1][18])
  end)
end)

describe("a summary of layers", function()
  it("is a table with sums", function()
    local net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    local html = rich.bundle(nn.summary(net, {2, 3}))["text/html"]
    assert.is_true(pictures.is_closed(html))
    local rows = notebook.rows_of(html)
    assert.same({"Layer (name)", "Input", "Output", "Param #", "Mult-Adds"}, rows[1])
    -- 3 x 4 + 4 parameters, 2 x 3 x 4 multiplications
    assert.same({"├─ Linear (1)", "{2, 3}", "{2, 4}", "16", "24"}, rows[3])
    assert.equal(4, #rows)
    has(notebook.text_of(html), "Total params: 16, Trainable params: 16")
  end)
end)

describe("a figure", function()
  it("is an SVG picture", function()
    local bundle = rich.bundle(lt.plot.line({1, 2, 4}, {title = "<t>"}))
    has(bundle["image/svg+xml"], "<svg", "&lt;t&gt;")
    has(bundle["text/plain"], "<t>")
  end)

  it("has styles and ids that apply to no other picture of a page", function()
    local scoped = require("lutra.internal.plot.svg").scoped
    local picture = '<svg xmlns="x">\n<style>\nsvg { a: b; }\n.edge { c: url(#arrow); }\ntext '
      .. '{ d: e; }\n</style>\n<defs><marker id="arrow" x="1"/></defs><text>id="arrow"</text></svg>'
    local whole = scoped(picture)
    assert.equal(whole, scoped(picture))
    local id = whole:match '^<svg id="(lutra%-%x+)" '
    assert.equal(('<svg id="ID" style="max-width:100%;height:auto" xmlns="x">\n<style>\n'
      .. '#ID { a: b; }\n'
      .. '#ID .edge { c: url(#ID-arrow); }\n#ID text { d: e; }\n</style>\n<defs>'
      .. '<marker id="ID-arrow" x="1"/></defs><text>id="arrow"</text></svg>'):gsub("ID", id), whole)
    for _, made in ipairs {rich.bundle(lt.plot.line{1, 2})["image/svg+xml"],
      notebook.cells{":devices"}[1][2]["image/svg+xml"]} do
      assert.matches("^<svg id=\"lutra", made)
      assert.is_nil(made:find "\ntext {")
    end
  end)
end)

describe("an image", function()
  local png = require("lutra.repl.rich.image").png

  it("is a PNG picture, enlarged when it is small", function()
    assert.same({252, 252}, {png_size(png(lt.rand(28, 28)))}) -- 256 // 28 = 9 times
    assert.same({640, 320}, {png_size(png(lt.rand(3, 500, 1000)))})
    assert.same({300, 200}, {png_size(png(lt.rand(200, 300, 3)))})
  end)

  it("of a batch is a grid", function()
    -- 2 x 2 images of 128 // 28 = 4 times 28 pixels, with gaps of 2
    assert.same({226, 226}, {png_size(png(lt.rand(4, 1, 28, 28)))})
    assert.same({226, 226}, {png_size(png(lt.rand(3, 28, 28, 1)))})
  end)

  it("has the values of the tensor", function()
    local ok, image = pcall(lt.vision.io.decode_png, png(lt.tensor{{0, 255}, {51, 0}}:to "uint8"))
    if not ok then return pending "libpng is missing" end
    assert.equal("{4, 256, 256}", tostring(image.shape))
    assert.same({255, 255, 255, 255}, image:select(3, 256):select(2, 1):totable())
    assert.same({51, 51, 51, 255}, image:select(3, 1):select(2, 256):totable())
  end)

  it("reports what it cannot show", function()
    assert.has_error(function() png(3) end, "image: expected a tensor, got a number")
    assert.has_error(function() png(lt.zeros(0, 2)) end,
      "image: cannot show an empty tensor of shape {0, 2}")
  end)
end)

describe("commands in a notebook", function()
  -- Returns the forms that the last of the lines displayed.
  local function shown(...)
    local log, results = notebook.cells{...}
    assert.same({}, results)
    assert.equal(1, #log)
    assert.equal("display", log[1][1])
    local forms = log[1][2]
    forms["text/plain"] = forms["text/plain"]:gsub("\27%[[%d;]*m", "") -- colours
    return forms
  end

  it("show pictures with the text of the terminal", function()
    local forms = shown("x = lt.rand(8, 8);", ":image x")
    png_size(notebook.decoded(forms["image/png"]))
    has(forms["text/plain"], "{8, 8} float32")
    for _, line in ipairs {":plot x", ":plot --hist x", ":plot --bins 4 x", ":plot x[1], x[2]",
      ":plot --points x[1]", ":plot lt.zeros(3)", ":plot lt.tensor{1, 2, 3} --hist",
      ":plot lt.rand(5000), lt.rand(5000)", ":plot lt.tensor{1., lt.nan, 3}"} do
      forms = shown("x = lt.rand(8, 8);", line)
      assert.is_true(pictures.is_closed(forms["image/svg+xml"]), line)
      assert.is_true(#forms["text/plain"] > 10)
    end
    has(shown(":plot lt.rand(3, 5)")["image/svg+xml"], "row 3")
    assert.is_true(#shown(":plot lt.rand(1000000)")["image/svg+xml"] < 100000)
  end)

  it("show graphs, devices, storages, transfers and trees", function()
    local forms = shown("w = lt.ones{2, requires_grad = true};", "y = (w * 3):sum();", ":grad y")
    has(forms["image/svg+xml"], "<svg", "SumBackward", "w")
    has(forms["text/plain"], "SumBackward", "1 leaf")
    forms = shown ":devices"
    has(forms["image/svg+xml"], "<svg", "cpu")
    has(forms["text/plain"], "cpu", " in tensors")
    forms = shown("x = lt.zeros(3, 4);", ":where x")
    has(forms["image/svg+xml"], "<svg", "contiguous")
    has(forms["text/plain"], "strides  {4, 1}, contiguous")
    forms = shown(":transfers lt.ones(3);")
    has(forms["image/svg+xml"], "<svg")
    forms = shown(":tree {a = {lt.zeros(2)}}")
    has(forms["text/html"], "<details")
    has(forms["text/plain"], "a  table")
  end)

  it("report their errors as at a terminal", function()
    local session = require("lutra.repl.session").new()
    session:mark_builtin()
    local message
    function session:print_error(text) message = self and text end
    local log = notebook.notebook(function(log)
      session:execute ":image 3"
      return log
    end)
    assert.same({}, log)
    has(message, "image: expected a tensor, got a number")
  end)
end)
