-- lt.display, lt.clear_output, and lt.progress in a notebook.

local lt = require "lutra"
local notebook = require "notebook_support"
local pictures = require "pictures_support"
local program = require "program_support"

local function says(message, f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(text:find(message, 1, true), ("%q is not in: %s"):format(message, text))
end

-- Returns the calls of the notebook while f runs.
local function during(f) return notebook.notebook(function(log)
  f()
  return log
end) end

describe("lt.display in a notebook", function()
  it("displays the forms of a value, and updates them", function()
    local log = during(function()
      local handle = lt.display(lt.tensor{1., 2.})
      handle:update "two"
      lt.display(3)
    end)
    local method, forms, metadata, id = table.unpack(log[1], 1, 4)
    assert.equal("display", method)
    assert.equal("tensor{1., 2.}", forms["text/plain"])
    assert.same({{"1", "2"}, {"1.", "2."}}, notebook.rows_of(forms["text/html"]))
    assert.is_nil(metadata)
    assert.same({"update", {["text/plain"] = '"two"'}, nil, id}, log[2])
    assert.is_string(id)
    assert.are_not.equal(id, log[3][4])
  end)

  it("takes a bundle with or without a value", function()
    local log = during(function()
      lt.display{["text/html"] = "<b>x</b>", ["text/plain"] = "x"}
      lt.display(lt.tensor{1.}, {["text/html"] = "<b>x</b>"})
      lt.display{["image/png"] = "\x89PNG", ["image/svg+xml"] = "<svg/>"}
      lt.display{["data/train"] = 3}
    end)
    assert.same({["text/html"] = "<b>x</b>", ["text/plain"] = "x"}, log[1][2])
    assert.same({["text/html"] = "<b>x</b>", ["text/plain"] = "tensor{1.}"}, log[2][2])
    assert.same({["image/png"] = "iVBORw==", ["image/svg+xml"] = "<svg/>"}, log[3][2])
    assert.equal('{["data/train"] = 3}', log[4][2]["text/plain"]) -- a table of the user
  end)

  it("shows other forms of a value by `as`", function()
    local w = lt.ones{2, requires_grad = true}
    local function form(...)
      local arguments = table.pack(...)
      return during(function() lt.display(table.unpack(arguments)) end)[1][2]
    end
    local png = form(lt.rand(8, 8), {as = "image"})["image/png"]
    assert.equal("\x89PNG", notebook.decoded(png):sub(1, 4))
    for _, as in ipairs {"plot", "points", "hist"} do
      assert.is_true(pictures.is_closed(form({1, 2, 4}, {as = as})["image/svg+xml"]))
    end
    assert.truthy(form((w * 2):sum(), {as = "graph"})["image/svg+xml"]:find("SumBackward", 1, true))
    assert.truthy(form({lt.zeros(2)}, {as = "tree"})["text/html"]:find("<details", 1, true))
    assert.same({["text/plain"] = "tensor{0.}"}, form(lt.zeros(1), {as = "text"}))
  end)

  it("colours cells, and follows the other options", function()
    local forms = during(function()
      lt.display(lt.tensor{1, 2}, {heat = true, statistics = false})
      lt.display(lt.zeros(9000), {edgeitems = 1})
    end)
    assert.truthy(forms[1][2]["text/html"]:find("rgba(213,94,0,0.70)", 1, true))
    assert.is_nil(forms[1][2]["text/html"]:find("mean", 1, true))
    assert.same({{"1", "…", "9000"}, {"0.", "…", "0."}},
      notebook.rows_of(forms[2][2]["text/html"]))
  end)

  it("is not printed as a result of the cell", function()
    local log, results = notebook.cells{"lt.display(3)", "_.id"}
    assert.equal(1, #log)
    assert.same({('"%s"'):format(log[1][4])}, results)
  end)
end)

describe("lt.display", function()
  it("at a terminal and in scripts prints the text", function()
    local code = [[
      local h = lt.display(lt.tensor{1., 2.}, {heat = true})
      h:update(3)
      lt.display{["text/html"] = "<b>x</b>", ["text/plain"] = "x"}
      lt.display{["text/html"] = "<b>x</b>"}
      lt.display{["text/markdown"] = "*x*"}
      lt.display({1}, {["text/html"] = "<b>x</b>"})
      lt.clear_output()
      lt.clear_output{wait = true}]]
    local expected = 'tensor{1., 2.}\n3\nx\n<text/html, 8 bytes>\n*x*\n{1}\n'
    local result = program.shell(("%s -e %s"):format(program.quote(program.program),
      program.quote('local lt = require "lutra"\n' .. code)))
    assert.equal("", result.err)
    assert.equal(expected, result.out)
  end)

  it("reports wrong arguments at the line of the call", function()
    local x = lt.zeros(2)
    says("display: expected a value for argument 'value', got none", lt.display)
    says("display: expected at most 2 arguments, got 3", lt.display, 1, {}, 3)
    says("display_spec.lua:", function() lt.display(1, 2) end)
    says("display: expected a table of options, or of strings by MIME type, for argument 'options'",
      lt.display, 1, 2)
    says("display: expected 'text', 'image', 'plot', 'points', 'hist', 'tree' or 'graph' for "
      .. "argument 'as', got the string \"x\"", lt.display, x, {as = "x"})
    says("got 'hot'", lt.display, x, {hot = true})
    says("display: expected a tensor for option 'heat', got 3", lt.display, 3, {heat = true})
    says("display: cannot use option 'heat' with as = \"plot\"", lt.display, x,
      {heat = true, as = "plot"})
    says("display: expected a string for \"text/html\" in argument 'options', got 3", lt.display, x,
      {["text/html"] = 3})
    says("display: expected MIME types such as \"text/html\" as keys of argument 'options', got "
      .. "the string \"heat\"", lt.display, x, {["text/html"] = "", heat = true})
    says("display: image: expected a tensor, got a number", lt.display, 3, {as = "image"})
    says("display_spec.lua:", function() lt.display(3, {as = "image"}) end)
    says("display: expected a module or a table for argument 'value', got 3", lt.display, 3,
      {as = "tree"})
    says("display: expected a tensor with an autograd graph for argument 'value'", lt.display, x,
      {as = "graph"})
    local freed = lt.zeros(2)
    freed:free()
    says("display: cannot draw a tensor that was freed", lt.display, freed, {as = "image"})
    says("display: expected a real tensor for argument 'value', got \"complex64\"", lt.display,
      lt.tensor{lt.complex(1., 2.)}, {as = "plot"})
    says("display: plot: cannot plot an empty tensor", lt.display, lt.zeros(0, 3), {as = "plot"})
    local log = during(function()
      says("update: expected a value for argument 'value', got none", lt.display(1).update, {})
    end)
    assert.equal(1, #log)
    says("clear_output: expected a boolean for argument 'wait', got 3", lt.clear_output, 3)
  end)
end)

describe("lt.clear_output", function()
  it("clears the output of the cell in a notebook", function()
    local log = during(function()
      lt.clear_output()
      lt.clear_output{wait = true}
    end)
    assert.same({{"clear", false}, {"clear", true}}, log)
  end)
end)

describe("lt.progress in a notebook", function()
  local function bar_of(options, f)
    local now = 0
    options.clock, options.ncols, options.ascii = function() return now end, 60, true
    return during(function()
      local bar = lt.progress(options)
      f(bar, function(seconds) now = seconds end)
    end)
  end

  it("is one display, updated at most every mininterval", function()
    local log = bar_of({total = 4, desc = "a<b"}, function(bar, at)
      bar:update(1) -- at 0 s: not due
      at(0.05)
      bar:update(1)
      at(0.2)
      bar:update(1)
      at(1)
      bar:close()
      bar:close()
    end)
    assert.equal(3, #log)
    assert.equal("display", log[1][1])
    assert.matches("^a<b:   0%%|.*| 0/4 %[00:00<%?, %?it/s%]$", log[1][2]["text/plain"])
    assert.equal("update", log[2][1])
    assert.matches("^a<b:  75%%|#.*| 3/4 %[00:00<00:00, 15%.00it/s%]$", log[2][2]["text/plain"])
    local html = log[2][2]["text/html"]
    assert.truthy(html:find('<progress value="0.7500" max="1"', 1, true))
    assert.is_true(pictures.is_closed(html))
    assert.equal("a<b: 75% 3/4 [00:00<00:00, 15.00it/s]", notebook.text_of(html))
    assert.matches("3/4 %[00:01<00:00,  3%.00it/s%]$", log[3][2]["text/plain"])
    for i = 2, 3 do assert.equal(log[1][4], log[i][4]) end
  end)

  it("with leave = false ends empty", function()
    local log = bar_of({total = 1, leave = false}, function(bar) bar:close() end)
    assert.same({"update", {["text/plain"] = "", ["text/html"] = ""}, nil, log[1][4]}, log[2])
  end)

  it("without a total has no bar", function()
    local log = bar_of({unit = "B"}, function(bar) bar:close() end)
    assert.equal("0B [00:00, ?B/s]", log[1][2]["text/plain"])
    assert.is_nil(log[1][2]["text/html"]:find("<progress", 1, true))
  end)

  it("is also that of a loop, and can be disabled", function()
    local log = during(function()
      for i in lt.progress(3) do assert(i) end
      for i in lt.progress(3, {disable = true}) do assert(i) end
    end)
    assert.equal("display", log[1][1])
    assert.matches("3/3", log[#log][2]["text/plain"])
    assert.equal(2, #log)
  end)

  it("writes to other files as elsewhere", function()
    local file = io.tmpfile()
    local log = during(function()
      for i in lt.progress(2, {file = file, disable = false, ncols = 40}) do assert(i) end
    end)
    assert.same({}, log)
    file:seek "set"
    assert.truthy(file:read "a":find("2/2", 1, true))
  end)
end)
