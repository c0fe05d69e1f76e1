-- Cells of a notebook: where Lua code ends and a command begins; commands of IPython.

local kernel_support = require "kernel_support"
local other_languages = require "lutra.repl.other_languages"
local pieces = require "lutra.repl.kernel.pieces"

-- The pieces of a cell as strings "line kind text", without newlines around the text.
local function split(text)
  local list = {}
  for i, piece in ipairs(pieces.split(text)) do
    list[i] = ("%d %s %s"):format(piece.line, piece.kind, piece.text:match "^\n*(.-)\n*$")
  end
  return list
end

-- Asserts that the whole cell is Lua code.
local function is_lua(text)
  local list = pieces.split(text)
  assert.equal(1, #list, text)
  assert.equal("lua", list[1].kind, text)
  assert.equal(text, list[1].text)
end

describe("a cell", function()
  it("of Lua code is one piece", function()
    is_lua "x = 1\ny = 2"
    is_lua "1 + 1"
    is_lua "x = = 1"
    is_lua "for i = 1, 3 do"
  end)

  it("without code has no pieces", function()
    for _, text in ipairs {"", " \n\n", "-- a comment", "--[[ a\n:whos\n]]"} do
      assert.same({}, pieces.split(text))
    end
  end)

  it("that is one command is one piece, also indented and unknown", function()
    assert.same({"1 command :whos"}, split ":whos")
    assert.same({"1 command   :whos"}, split "  :whos")
    assert.same({"2 command :whos x"}, split "\n:whos x")
    assert.same({"1 command :nothing"}, split ":nothing")
    assert.same({"1 shell !ls -l"}, split "!ls -l")
    assert.same({"1 help ?lt.matmul"}, split "?lt.matmul")
    assert.same({"1 help lt.matmul??"}, split "lt.matmul??")
  end)

  it("may mix code and commands", function()
    assert.same({"1 lua x = 1", "2 command :whos", "3 lua y = 2\nprint(y)", "5 shell !pwd",
      "6 help y?"}, split "x = 1\n:whos\ny = 2\nprint(y)\n!pwd\ny?")
    assert.same({"1 command :whos", "2 command :devices"}, split ":whos\n:devices")
    assert.same({"1 lua x = f()", "2 command :h", "3 command :q"}, split "x = f()\n:h\n:q")
  end)

  it("may have comments that end in a question mark", function()
    assert.same({}, pieces.split "-- why?")
    is_lua "x = 1\n-- why?\ny = 2 -- is it?"
    assert.same({"2 command :whos"}, split "-- what?\n:whos")
  end)

  it("may have comments between and after commands", function()
    assert.same({"2 command :whos"}, split "-- variables\n:whos\n-- end")
    assert.same({"2 command :whos", "3 lua -- then\nx = 1"}, split "-- a\n:whos\n-- then\nx = 1")
  end)

  it("has the line numbers of the cell in each piece of code", function()
    assert.equal("\n\n\nerror 'x'", pieces.split("x = 1\n:whos\n\nerror 'x'")[3].text)
    local f = load(pieces.split("x = 1\n:whos\n\nerror 'x'")[3].text, "=cell[1]")
    assert.equal("cell[1]:4: x", select(2, pcall(f)))
  end)

  it("reports a command with an unknown name, but not a method", function()
    assert.same({"1 lua x = 1", "2 command :whoss"}, split "x = 1\n:whoss")
    is_lua "x = y\n:whoss()"
  end)
end)

describe("code that looks like a command", function()
  it("in a long string or comment is code", function()
    is_lua "s = [[\n:whos\n!ls\nx?\n]]"
    is_lua "--[[\n:whos\n]]\nx = 1"
    is_lua "s = [==[\n]]\n:whos\n]==]"
  end)

  it("in a call, a table or a block is code", function()
    is_lua "f(\n:whos\n)"
    is_lua "t = {\n!x\n}"
    is_lua "for i = 1, 3 do\n:whos\nend"
    is_lua "x = y +\n:whos"
  end)

  it("is a method of the expression above", function()
    is_lua "x\n:save('file')"
    is_lua "x = net(input)\n:step()\n:next{1}\n:c 'text'\n:load [[text]]"
    is_lua "x = t[1]\n:reset()"
    is_lua "local y = f 'x'\n:time(3)"
    is_lua "x = y -- a comment\n:foo()"
    is_lua "x\n:foo()"
  end)

  it("is a command where the code above does not end in an object, or a line is empty", function()
    assert.same({"1 lua x = 1", "2 command :load 'file'"}, split "x = 1\n:load 'file'")
    assert.same({"1 lua x = f()", "3 command :load 'file'"}, split "x = f()\n\n:load 'file'")
    assert.same({"1 lua for i = 1, 2 do f() end", "2 command :cd 'a b'"},
      split "for i = 1, 2 do f() end\n:cd 'a b'")
    assert.same({"1 lua x = f()", "2 command :time g()"}, split "x = f()\n:time g()")
  end)

  it("may be a label", function()
    is_lua "do goto a end\n::a::\nx = 1"
    is_lua "::a::"
  end)

  it("is code where it is indented below other code", function()
    is_lua "x = 1\n  :whos"
  end)
end)

describe("a command that takes code", function()
  it("takes the rest of the cell when its line has none", function()
    assert.same({"1 command :timeit\nx = 1\ny = 2"}, split ":timeit\nx = 1\ny = 2")
    assert.same({"1 command :timeit -n 10 -r 3\nf()\n:whos"},
      split ":timeit -n 10 -r 3\nf()\n:whos")
    assert.same({"2 command :prof --sort bytes\nf()"}, split "-- profile\n:prof --sort bytes\nf()")
    assert.same({"1 command :tree\nnet"}, split ":tree\nnet")
    assert.same({"1 lua x = 3", "2 command :time\nf(x)"}, split "x = 3\n:time\nf(x)")
  end)

  it("takes the lines that complete its code", function()
    assert.same({"1 command :time f(\n1,\n2)", "4 lua x = 3"}, split ":time f(\n1,\n2)\nx = 3")
    assert.same({"1 command :timeit for i = 1, 3 do\n  f()\nend", "4 command :whos"},
      split ":timeit for i = 1, 3 do\n  f()\nend\n:whos")
  end)

  it("with complete code in its line takes only that", function()
    assert.same({"1 command :time f(x)", "2 command :time g(x)", "3 lua y = 2"},
      split ":time f(x)\n:time g(x)\ny = 2")
    assert.same({"1 command :plot losses", "2 lua x = 1"}, split ":plot losses\nx = 1")
  end)

  it("takes no further line where its code is optional, or a name", function()
    assert.same({"1 lua x = 1", "2 command :transfers", "3 lua y = 2"},
      split "x = 1\n:transfers\ny = 2")
    assert.same({"1 command :doc for", "2 lua x = 1"}, split ":doc for\nx = 1")
  end)

  it("says when the cell ends in its code", function()
    assert.is_true(pieces.split(":time f(\n1,")[1].incomplete)
    assert.is_nil(pieces.split(":time f(\n1)")[1].incomplete)
  end)

  it("of the shell continues after a backslash", function()
    assert.same({"1 shell !ls \\\n -l", "3 lua x = 1"}, split "!ls \\\n -l\nx = 1")
  end)
end)

describe("commands of IPython", function()
  it("get the hint with the command here", function()
    for line, advice in pairs {["%timeit f(x)"] = ":timeit f(x)", ["%%time"] = ":time",
      ["%whos"] = ":whos", ["%cd ~/x"] = ":cd ~/x", ["%%bash"] = "!", ["  %pwd"] = ":pwd"} do
      assert.equal(advice, other_languages.magic(line))
    end
    assert.truthy(other_languages.magic("%matplotlib inline"):find("lt.plot", 1, true))
    assert.is_nil(other_languages.magic "%modulo")
    assert.is_nil(other_languages.magic "% time")
  end)

  it("are reported in the cell's line, also below an expression", function()
    local kernel = kernel_support.kernel()
    for _, piece in ipairs(pieces.split "x = 1\n%whos") do kernel.session:execute(piece.text) end
    assert.equal(1, #kernel.errors)
    assert.truthy(kernel.errors[1]:find("%]:2: unexpected symbol near '%%'\nhint: :whos\n"),
      kernel.errors[1])
  end)

  it("of other names are Lua's operator", function() is_lua "x = y\n%z" end)
end)
