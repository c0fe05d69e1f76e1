-- Notebook files: reading and writing of nbformat 4.

local json = require "lutra.internal.json"
local notebook_file = require "lutra.repl.notebook_file"

-- A notebook of these cells, as JSON texts.
local function file(cells, minor)
  return ('{"cells": [%s], "metadata": {"x": []}, "nbformat": 4, "nbformat_minor": %d}'):format(
    cells, minor or 5)
end

describe("a notebook file", function()
  it("is read with sources of one string and of lists", function()
    local text = file('{"cell_type": "code", "metadata": {"tags": ["parameters"], "a": 1}, '
      .. '"source": ["x = 1\\n", "x"], "outputs": [], "execution_count": 3},'
      .. '{"cell_type": "markdown", "metadata": {}, "source": "# é"},'
      .. '{"cell_type": "raw", "source": [], "metadata": {}}', 0)
    local notebook = assert(notebook_file.decode("\xEF\xBB\xBF" .. text))
    local code, markdown, raw = table.unpack(notebook.cells)
    assert.same({"code", "markdown", "raw"}, {code.kind, markdown.kind, raw.kind})
    assert.equal("x = 1\nx", code.source)
    assert.same({"parameters"}, code.tags)
    assert.equal(3, code.count)
    assert.equal("# é", markdown.source)
    assert.equal("", raw.source)
  end)

  it("is written with ids and one line of the source a string", function()
    local notebook = notebook_file.new()
    notebook.cells = {notebook_file.cell("code", "a\n\nb\n", {"t"}),
      notebook_file.cell("markdown", "")}
    notebook.cells[2].id = "cell-1"
    local value = assert(json.decode(notebook_file.encode(notebook)))
    assert.equal(4, value.nbformat)
    assert.equal(5, value.nbformat_minor)
    assert.equal("lutra", value.metadata.kernelspec.name)
    assert.equal("lua", value.metadata.language_info.name)
    assert.same({"a\n", "\n", "b\n"}, value.cells[1].source)
    assert.same({"t"}, value.cells[1].metadata.tags)
    assert.equal(json.null, value.cells[1].execution_count)
    assert.equal("cell-1", value.cells[2].id)
    assert.is_true(value.cells[1].id ~= "cell-1")
    assert.is_true(value.cells[1].id:find "^[%w_-]+$" ~= nil)
    assert.is_nil(value.cells[2].outputs)
  end)

  it("keeps outputs and metadata that it does not know", function()
    local cell = '{"cell_type":"code","execution_count":1,"id":"a","metadata":{"z":[],"a":{}},'
      .. '"outputs":[{"data":{"image/png":"QQ==","text/plain":["x"]},"metadata":{},'
      .. '"output_type":"display_data"},{"name":"stdout","output_type":"stream","text":[]}],'
      .. '"source":["1"]}'
    local text = file(cell)
    local again = notebook_file.encode(assert(notebook_file.decode(text)))
    assert.equal(json.encode(json.decode(text)), json.encode(json.decode(again)))
    assert.is_true(again:find('"z": []', 1, true) ~= nil)
    assert.is_true(again:find('"a": {}', 1, true) ~= nil)
    assert.equal(again, notebook_file.encode(assert(notebook_file.decode(again))))
  end)

  it("replaces ids that are not valid or occur twice", function()
    local cells = {}
    for i, id in ipairs {'"a"', '"a"', '"b c"', "3", '"' .. ("x"):rep(65) .. '"'} do
      cells[i] = ('{"cell_type":"raw","metadata":{},"source":"","id":%s}'):format(id)
    end
    local notebook = assert(notebook_file.decode(file(table.concat(cells, ","))))
    local seen = {}
    for _, cell in ipairs(json.decode(notebook_file.encode(notebook)).cells) do
      assert.is_nil(seen[cell.id])
      assert.is_true(#cell.id <= 64 and cell.id:find "^[%w_-]+$" ~= nil)
      seen[cell.id] = true
    end
    assert.is_true(seen.a)
  end)

  it("is refused with the reason when it is another file", function()
    for text, reason in pairs {
      [""] = "it is not valid JSON: expected a value at byte 1",
      ["{"] = "it is not valid JSON",
      ["[1]"] = "expected a JSON object with the field nbformat",
      ["3"] = "expected a JSON object with the field nbformat",
      ['{"nbformat": "4"}'] = "expected a JSON object with the field nbformat",
      ['{"nbformat": 3, "worksheets": []}'] = "expected nbformat 4, got 3\nhint: ",
      ['{"nbformat": 4}'] = "expected a list of cells",
      ['{"nbformat": 4, "cells": {}}'] = "expected a list of cells",
      [file "1"] = "expected a cell of type code, markdown or raw as cell 1",
      [file '{"cell_type": "heading", "source": ""}'] = "expected a cell of type code",
      [file '{"cell_type": "code", "source": 1}'] =
        "expected a string or a list of strings as source of cell 1",
      [file '{"cell_type": "code", "source": ["a", {}]}'] = "as source of cell 1",
    } do
      local notebook, why = notebook_file.decode(text)
      assert.is_nil(notebook, text)
      assert.is_true(why:sub(1, #reason) == reason or why:find(reason, 1, true) ~= nil, why)
    end
  end)

  it("is read with metadata, tags and outputs of wrong types as if they were absent", function()
    local notebook = assert(notebook_file.decode('{"nbformat": 4, "metadata": 1, "cells": [{'
      .. '"cell_type": "code", "source": "1", "metadata": [], "outputs": 1, "execution_count": "x",'
      .. '"id": null}, {"cell_type": "code", "source": "2", "metadata": {"tags": "a"}}]}'))
    assert.same({}, notebook.cells[1].tags)
    assert.same({}, notebook.cells[1].outputs)
    assert.same({}, notebook.cells[2].tags)
    assert.is_truthy(json.decode(notebook_file.encode(notebook)))
  end)
end)

describe("json.indented", function()
  it("writes each value in a line of its own", function()
    local value = json.decode '{"a":[1,{"b":[]},"x\\"]{,:"],"c":{},"d":-1.5,"e":true}'
    json.array(value.a[2].b)
    local text = json.indented(value)
    assert.equal('{\n "a": [\n  1,\n  {\n   "b": []\n  },\n  "x\\"]{,:"\n ],\n "c": {},\n'
      .. ' "d": -1.5,\n "e": true\n}', text)
    assert.equal("3", json.indented(3))
    assert.equal("[]", json.indented(json.array{}))
    assert.has_error(function() json.indented(print) end, "json: cannot encode a function")
  end)
end)
