-- lutra --export: notebooks as scripts and back, and parameters; :save notebook.ipynb.

local notebook_file = require "lutra.repl.notebook_file"
local notebook_parameters = require "lutra.repl.notebook_parameters"
local notebook_script = require "lutra.repl.notebook_script"
local support = require "program_support"

local has, has_not, quote = support.has, support.has_not, support.quote

local folder
before_each(function() folder = support.folder() end)
after_each(function() support.remove(folder) end)

local function path(name) return folder .. "/" .. name end

local function write(name, text)
  local file <close> = assert(io.open(path(name), "wb"))
  file:write(text)
end

local function read(name)
  local file <close> = assert(io.open(path(name), "rb"))
  return file:read "a"
end

-- Runs lutra --export in the folder.
local function export(words)
  return support.shell(("cd %s && %s --export %s"):format(quote(folder), quote(support.program),
    words))
end

-- A notebook of cells {kind, source, tags...}.
local function notebook(cells)
  local result = notebook_file.new()
  for i, cell in ipairs(cells) do
    result.cells[i] = notebook_file.cell(cell[1], cell[2], {table.unpack(cell, 3)})
  end
  return result
end

local function script(cells) return assert(notebook_script.from_notebook(notebook(cells))) end

-- The cells of a notebook in the form that `notebook` takes.
local function cells_of(result)
  local list = {}
  for i, cell in ipairs(result.cells) do
    list[i] = {cell.kind, cell.source, table.unpack(cell.tags)}
  end
  return list
end

local tour = {
  {"markdown", "# Title\n\nText with -- and `code`.\n\n* item", "intro"},
  {"code", "lr = 0.1\nname = \"x\"", "parameters", "second"},
  {"code", "local x = lt.ones{2} * lr\nlocal function f(y)\n\n  return y + 1\nend"},
  {"code", "f(x) -- a comment"},
  {"code", "x + 1"},
  {"code", "x;"},
  {"code", "print 'one'"},
  {"code", ":timeit x + 1"},
  {"code", "!echo hello\n"},
  {"code", "x?"},
  {"code", "local z = x:sum()\n:whos\nz"},
  {"code", ":timeit\nlocal w = 1\nw + 1"},
  {"code", "local v = 1\n!echo a \\\nb\n:time do\nlocal w = 1\nend\nv"},
  {"code", "local = 1"},
  {"code", "error 'x'", "raises-exception"},
  {"code", "-- only a comment"},
  {"code", ""},
  {"raw", "raw\ntext"},
}

describe("lutra --export notebook.ipynb", function()
  it("writes a script that runs and prints what the cells show", function()
    write("tour.ipynb", notebook_file.encode(notebook(tour)))
    local result = export "tour.ipynb"
    assert.equal("", result.err)
    assert.equal("wrote 18 cells to tour.lua\n", result.out)
    local text = read "tour.lua"
    has(text, "\nlocal lt = require \"lutra\"\n")
    has_not(text, "lutra.nn")
    has(text, "\n-- %% [markdown] tags=[\"intro\"]\n-- # Title\n--\n-- Text with")
    has(text, "\n-- %% tags=[\"parameters\",\"second\"]\nlr = 0.1\n")
    has(text, "\n-- :timeit x + 1\n")
    has(text, "\n-- !echo hello\n")
    has(text, "\n-- x?\n")
    has(text, "\n-- %% [raw]\n-- raw\n-- text\n")
    result = support.run(quote(path "tour.lua"))
    assert.equal("", result.err)
    assert.equal("tensor{1.1000, 1.1000}\none\ntensor(0.2000)\n1\n", result.out)
  end)

  it("keeps cells, markdown and tags when it is converted back", function()
    write("tour.ipynb", notebook_file.encode(notebook(tour)))
    assert.equal(0, export("tour.ipynb script.lua").status)
    assert.equal(0, export("script.lua again.ipynb").status)
    local again = assert(notebook_file.decode(read "again.ipynb"))
    for i, cell in ipairs(cells_of(again)) do
      local expected = {tour[i][1], (tour[i][2]:gsub("\n$", "")), table.unpack(tour[i], 3)}
      assert.same(expected, cell)
    end
    assert.equal(#tour, #again.cells)
  end)

  it("prints the value of a call that had a result", function()
    local with = notebook{{"code", "f(1)"}, {"code", "g(1)"}}
    with.cells[1].outputs[1] = {output_type = "execute_result"}
    local text = assert(notebook_script.from_notebook(with))
    has(text, "\n-- %% shown=true\nprint(f(1))\n")
    has(text, "\n-- %%\ng(1)\n")
    assert.same({{"code", "f(1)"}, {"code", "g(1)"}}, cells_of(notebook_script.to_notebook(text)))
  end)

  it("stores results when a cell uses them", function()
    local cells = {{"code", "1 + 1"}, {"code", "_ + 1 -- more"}, {"code", "_1 * 2;"},
      {"code", "_"}}
    local text = script(cells)
    write("s.lua", text)
    assert.equal("2\n3\n6\n", support.run(quote(path "s.lua")).out)
    assert.same(cells, cells_of(notebook_script.to_notebook(text)))
  end)

  it("makes globals of more locals than a function may have", function()
    local cells = {}
    for i = 1, 250 do cells[i] = {"code", ("local v%d <const>, w%d = %d, 2"):format(i, i, i)} end
    cells[251] = {"code", "local function f() local v1 = 5 return v1 + v250 end\nlocal u"}
    cells[252] = {"code", "f(), u, w3"}
    local text = script(cells)
    has(text, "too many locals for one script")
    write("s.lua", text)
    local result = support.run(quote(path "s.lua"))
    assert.equal("255\tnil\t2\n", result.out)
    has_not(script{{"code", "local a = 1"}}, "too many locals")
  end)

  it("reports cells that are no script together", function()
    local none, why = notebook_script.from_notebook(notebook{{"code", "::a::"}, {"code", "::a::"}})
    assert.is_nil(none)
    has(why, "label 'a' already defined")
  end)
end)

describe("lutra --export script.lua", function()
  it("reads the cells of other programs", function()
    local result = notebook_script.to_notebook("#!/usr/bin/lutra\r\n-- ---\n-- jupyter:\n--   x\n"
      .. "-- ---\n\n-- %% A title {\"a\": 1}\r\nx = 1\r\n\n\n--%% [md]\n-- # T\n--text\n"
      .. "-- %% [markdown]\n--[[\n* a\n]]\n-- %% tags=[broken\nprint(x)\n")
    assert.same({{"code", "x = 1"}, {"markdown", "# T\ntext"}, {"markdown", "* a"},
      {"code", "print(x)"}}, cells_of(result))
  end)

  it("keeps code before the first cell", function()
    local text = "local lt = require \"lutra\"\nlocal a = 1\n-- %%\na\n"
    assert.same({{"code", "local lt = require \"lutra\"\nlocal a = 1"}, {"code", "a"}},
      cells_of(notebook_script.to_notebook(text)))
  end)

  it("splits a script without markers where its parts are complete", function()
    local text = "-- Purpose.\n-- More.\n\nlocal a = 1\n\n-- about f\n\nlocal function f()\n\n"
      .. "  return [[\n\n-- %x\n\n]]\nend\n\n\n\nprint(f())\nif a then\n\n  print(a) end"
    assert.same({{"markdown", "Purpose.\nMore."}, {"code", "local a = 1"},
      {"code", "-- about f\n\nlocal function f()\n\n  return [[\n\n-- %x\n\n]]\nend"},
      {"code", "print(f())\nif a then\n\n  print(a) end"}},
      cells_of(notebook_script.to_notebook(text)))
  end)

  it("reads what :save wrote", function()
    support.session(("local x = lt.ones{2}\nx\n_ + 1\n:save %s\n"):format(path "s.lua"))
    assert.equal(0, export("s.lua").status)
    local cells = cells_of(notebook_file.decode(read "s.ipynb"))
    assert.equal(3, #cells)
    assert.same({"code", "local x = lt.ones{2}"}, cells[1])
  end)

  it("reports a script that is not Lua", function()
    write("s.lua", "x = 1\n\nlocal = 2\n")
    local result = export "s.lua"
    assert.equal(1, result.status)
    has(result.err, "lutra: export: cannot read s.lua: ")
    has(result.err, "<name> expected near '='")
  end)
end)

describe("lutra --export --parameter", function()
  local function injected(cells, ...)
    local result = notebook(cells)
    for _, cell in ipairs(result.cells) do cell.count, cell.outputs = 3, {{}} end
    local list = {}
    for i, word in ipairs {...} do list[i] = assert(notebook_parameters.assignment(word)) end
    return cells_of(result), notebook_parameters.inject(result, list), result
  end

  it("adds a cell after the parameters, and replaces it", function()
    local _, found, result = injected({{"code", "a"}, {"code", "lr = 1", "parameters"},
      {"code", "b"}}, "lr=0.5")
    assert.is_true(found)
    local expected = {{"code", "a"}, {"code", "lr = 1", "parameters"},
      {"code", "-- Parameters\nlr = 0.5", "injected-parameters"}, {"code", "b"}}
    assert.same(expected, cells_of(result))
    assert.same({}, result.cells[1].outputs)
    assert.is_nil(result.cells[1].count)
    notebook_parameters.inject(result, {"lr = 2"})
    expected[3][2] = "-- Parameters\nlr = 2"
    assert.same(expected, cells_of(result))
  end)

  it("writes numbers and booleans as they are, other values as strings", function()
    for word, expected in pairs {["a=1"] = "a = 1", ["a=-1e-3"] = "a = -1e-3",
      ["a=true"] = "a = true",
      ["a=x y"] = 'a = "x y"', ["a='1'"] = 'a = "1"', ["a="] = 'a = ""', ["a=nil"] = "a = nil",
      ["a=b=c"] = 'a = "b=c"', ["a=\") os.exit() --\n"] = 'a = "\\") os.exit() --\\n"',
      ["a=inf"] = 'a = "inf"', ["a=0x10"] = "a = 0x10", ["a=.5"] = "a = .5"} do
      assert.equal(expected, notebook_parameters.assignment(word))
      assert.is_truthy(load(expected))
    end
    for word, reason in pairs {["a"] = "NAME=VALUE", ["end=1"] = "the name of a variable before =",
      ["a.b=1"] = "the name of a variable before =", ["=1"] = "NAME=VALUE"} do
      local none, expected = notebook_parameters.assignment(word)
      assert.is_nil(none)
      assert.equal(reason, expected)
    end
  end)

  it("writes a copy of the notebook, or a script", function()
    write("in.ipynb", notebook_file.encode(notebook{{"code", "lr = 1", "parameters"},
      {"code", "print(lr)"}}))
    assert.equal(0, export("in.ipynb out.ipynb --parameter lr=0.25").status)
    assert.equal(3, #notebook_file.decode(read "out.ipynb").cells)
    assert.equal(0, export("in.ipynb out.lua --parameter=lr=0.25").status)
    assert.equal("0.25\n", support.run(quote(path "out.lua")).out)
  end)

  it("warns when no cell declares parameters", function()
    write("in.ipynb", notebook_file.encode(notebook{{"code", "print(lr)"}}))
    local result = export "in.ipynb out.ipynb -p lr=1"
    assert.equal(0, result.status)
    has(result.err, "warning: no cell has the tag \"parameters\"")
    assert.equal("-- Parameters\nlr = 1", notebook_file.decode(read "out.ipynb").cells[1].source)
  end)
end)

describe("lutra --export", function()
  it("overwrites a file with --force only", function()
    write("a.ipynb", notebook_file.encode(notebook{{"code", "1"}}))
    write("a.lua", "mine")
    local result = export "a.ipynb"
    assert.equal(1, result.status)
    assert.equal("lutra: export: cannot overwrite a.lua: it exists\nhint: --force\n", result.err)
    assert.equal("mine", read "a.lua")
    assert.equal(0, export("a.ipynb --force").status)
    has(read "a.lua", "print(1)")
  end)

  it("reports wrong arguments with the usage, and files that it cannot read", function()
    for words, message in pairs {
      [""] = "expected a file and its result, got 0 files",
      ["a.lua b.ipynb c.lua"] = "expected a file and its result, got 3 files",
      ["a.txt"] = "expected a file .ipynb or .lua, got \"a.txt\"",
      ["a.lua b.lua"] = "expected a notebook as one of the files",
      ["a.ipynb --all"] = "unknown argument --all",
      ["a.ipynb --parameter"] = "expected NAME=VALUE after --parameter",
      ["a.ipynb --parameter 3=4"] = "expected the name of a variable before =, got \"3=4\"",
    } do
      local result = export(words)
      assert.equal(2, result.status, words)
      has(result.err, "lutra: export: " .. message)
      has(result.err, "usage: lutra --export")
    end
    local result = export "missing.ipynb"
    assert.equal(1, result.status)
    has(result.err, "lutra: export: cannot read missing.ipynb: No such file")
    write("bad.ipynb", "{}")
    has(export("bad.ipynb").err, "cannot read bad.ipynb: expected a JSON object with the field")
    write("a.ipynb", notebook_file.encode(notebook{{"code", "1"}}))
    has(export("a.ipynb no/folder.lua").err, "lutra: export: cannot write \"no/folder.lua\"")
  end)
end)

describe(":save notebook.ipynb", function()
  it("writes the cells that succeeded as they were typed", function()
    local result = support.session(("local x = 1 -- one\nx;\nerror 'no'\nx + 1\n:save %s\n"
      .. ":save %s\n"):format(path "s.ipynb", path "s.ipynb"))
    has(result.out, "wrote 3 cells to ")
    has(result.err, "it exists\nhint: :save --force")
    assert.same({{"code", "local x = 1 -- one"}, {"code", "x;"}, {"code", "x + 1"}},
      cells_of(assert(notebook_file.decode(read "s.ipynb"))))
  end)
end)
