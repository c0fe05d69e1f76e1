-- The prompt and its commands go on whatever a cell does to the globals that they use, too: modules
-- of Lutra have globals of their own, and the functions of string come back.

local support = require "program_support"

-- Each line after `before`, and a string that it must give.
local function script(folder)
  return {
    {"1 + 1", "2"}, {"t", "{1, 2, a = 3}"}, {"x", "tensor{1"}, {":whos x", "int64"},
    {":tree {a = x}", "3 elements"}, {":plot x", "┤"}, {":plot --hist x", "1 .. 2"},
    {":image x:reshape{1, 3}", "{1, 3} int64"}, {":where x", "strides"},
    {":grad sum", "SumBackward"},
    {":help whos", "totals"}, {"?x.matmul", "matmul"}, {":set items", "60"},
    {":history 1", "x"}, {":print", "edgeitems"}, {":pwd", "/"}, {"!echo sh''ell", "shell"},
    {":save --force " .. folder .. "/s.lua", "wrote"},
    {":keep " .. folder .. "/w.st", "kept 2 tensors in 3 variables"},
    {":load " .. folder .. "/w.st", "loaded 2 tensors"}, {":time 20 + 3", "23"},
    {":timeit -n 1 -r 1 20 + 4", "s"}, {":prof x:size(1)", "3"}, {":reload", "no module"},
    {":apropos softmax", "log_softmax"}, {":devices", "cpu"}, {"x:nosuch()", ""},
    {":debug", "cell"}, {":locals", "no local variables"}, {":continue", ""}, {":reset", "removed"},
  }
end

local function session(before)
  local folder = support.folder()
  local lines = {
    "x = tensor{1, 2, 3}; t = {1, 2, a = 3}; sum = (lt.ones{2, requires_grad = true} * 2):sum()",
    before,
  }
  local rows = script(folder)
  for _, row in ipairs(rows) do lines[#lines + 1] = row[1] end
  local result = support.session(table.concat(lines, "\n") .. "\n")
  support.remove(folder)
  return result, rows
end

describe("whatever a cell does to the globals", function()
  for _, before in ipairs {
    "print = nil", "require = nil", "string = nil", "io = nil", "debug = nil", "coroutine = nil",
    "table = {}", "error = 0.3", "type = 'x'", "next, pairs, ipairs = nil", "select = 1",
    "tostring = function() return 5 end", "math = nil", "os = nil", "utf8 = nil", "load = nil",
    "rawget, rawset, rawequal, rawlen = nil", "setmetatable, getmetatable = nil", "pcall = nil",
    "io.write = function() error 'io' end", "table.concat = function() error 'concat' end",
    "coroutine.resume = nil", "package.path = ''", "package = nil", "package.searchers = nil",
    "setmetatable(_G, {__metatable = false})", "setmetatable(_G, {__index = error})",
    "for name in next, table do table[name] = nil end",
    "do local G, set, mine = _G, rawset, {x = 1, t = 1, sum = 1} "
      .. "for name in next, G do if not mine[name] then set(G, name, nil) end end end",
    "_G = nil",
  } do
    it("continues after " .. before, function()
      local result, rows = session(before)
      assert.equal(0, result.status)
      for _, row in ipairs(rows) do
        assert(result.out:find(row[2], 1, true), ("%s does not give %s: %s %s"):format(row[1],
          row[2], result.out, result.err))
      end
      -- one error was asked for
      assert.equal(1, select(2, ("\n" .. result.err):gsub("\nerror: ", "")))
      assert(result.err:find("no field or method \"nosuch\"", 1, true), result.err)
    end)
  end

  for _, before in ipairs {
    "string.format = nil", "string.sub = 5", "getmetatable('').__index = nil",
    "debug.setmetatable('', nil)", "for name in next, string do string[name] = nil end",
  } do
    it("puts the functions of string back after " .. before, function()
      local result = support.session("x = 7\n" .. before .. "\n('%d'):format(x)\n:whos\n")
      assert.equal(0, result.status)
      assert(result.out:find("\n\"7\"\n", 1, true) or result.out:find "^\"7\"\n", result.out)
      assert(result.out:find("x     integer  7", 1, true), result.out)
      assert(result.err:find("functions of string were changed; the prompt needs them and restored",
        1, true), result.err)
    end)
  end

  it("leaves functions of string that do what they should", function()
    local result = support.session "string.shout = string.upper\n1\n('a'):shout()\n"
    assert.equal("1\n\"A\"\n", result.out)
    assert.equal("", result.err)
  end)

  it("does not show in the program's globals", function()
    local result = support.session "_G.table == package.loaded.table, _G == _ENV\nrequire\n"
    assert.equal("true\ttrue\nfunction: builtin\n", result.out)
    result = support.session "own = 1; lt.tensor{1}; require 'lutra.cli'; own, cli, args\n"
    assert.equal("1\tnil\tnil\n", result.out)
  end)

  it("leaves -e, scripts and their errors whole", function()
    local result = support.run "-e 'error = 0.3; table = nil' -e 'tensor{1}:nosuch()'"
    assert.equal(1, result.status)
    assert(result.err:find("no field or method \"nosuch\"", 1, true), result.err)
    result = support.run "-e 'package.path = \"\"; require = nil; print(optim.SGD ~= nil)'"
    assert.equal("true\n", result.out)
  end)
end)
