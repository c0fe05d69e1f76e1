-- Values as the prompt prints them: lib/lutra/repl/format_value.lua.

local support = require "program_support"
local screen = require "screen_support"

-- What the prompt prints for one input.
local function shown(text)
  local result = support.session(text .. "\n")
  assert.equal("", result.err)
  return (result.out:gsub("\n$", ""))
end

describe("strings", function()
  it("show bytes that move the cursor or are no UTF-8 as escapes", function()
    assert.equal([["a\000b\001\027[31m\1279\255"]], shown [["a\0b\1\27[31m\1279\255"]])
    assert.equal([["\r\n\t\\\""]], shown [["\r\n\t\\\""]])
    -- a control character, a line separator and a mark of direction, beyond ASCII
    assert.equal([["\194\128\226\128\168\226\128\174"]], shown [["\u{80}\u{2028}\u{202e}"]])
    assert.equal('"é 日本 😀"', shown '"é 日本 😀"')
    assert.equal([["é\195"]], shown [["é\xC3"]])
  end)

  it("are cut off with their length, never within a character", function()
    assert.equal('"' .. ("x"):rep(1000) .. '"', shown '("x"):rep(1000)')
    assert.equal('"' .. ("x"):rep(1000) .. '..." --[[1001 bytes]]', shown '("x"):rep(1001)')
    assert.equal('"x' .. ("é"):rep(499) .. '..." --[[2001 bytes]]', shown '"x" .. ("é"):rep(1000)')
    assert.truthy(shown '{("x"):rep(500)}':find('x..." --[[500 bytes]]', 1, true))
    assert.equal('"xxxxxxxxxx..." --[[11 bytes]]',
      (shown(':set text 10\n("x"):rep(11)'):gsub("^[^\n]*\n", "")))
  end)
end)

describe("tables", function()
  it("show keys sorted: booleans, numbers, strings, others", function()
    assert.equal('{1, [false] = 5, [true] = 4, [-1] = 3, [1.5] = 2, [4] = 0, B = 7, a = 6}',
      shown "{1, [1.5] = 2, [-1] = 3, [true] = 4, [false] = 5, a = 6, B = 7, [4] = 0}")
    assert.equal("{[function: builtin] = 1}", shown "{[print] = 1}")
    assert.equal("{[9007199254740992] = 1}", shown "{[2^53] = 1}")
    assert.equal("{[{1}] = 2}", shown "{[{1}] = 2}")
  end)

  it("go down to a depth, which is an option", function()
    assert.equal("{{{...}}}", shown(":set depth 2\n{{{1}}}"):match "[^\n]*$")
    assert.equal("{{{1}}}", shown(":set depth 3\n{{{1}}}"):match "[^\n]*$")
    assert.equal("{...}", shown(":set depth 0\n{1}"):match "[^\n]*$")
  end)

  it("have a number of items, which is an option", function()
    local out = shown ":set items 3\n{1, 2, 3}, {1, 2, 3, 4}, {a = 1, b = 2, c = 3, d = 4}"
    assert.equal("{1, 2, 3}\t{1, 2, 3, ... 4 items}\t{a = 1, b = 2, c = 3, ...}",
      out:match "[^\n]*$")
  end)

  it("fit a width, which is an option; short items share lines", function()
    assert.equal("{\n  1000, 2000,\n  3000,\n}",
      (shown(":set width 16\n{1000, 2000, 3000}"):gsub("^.-columns[^\n]*\n.-\n?{", "{")))
    assert.equal("{1000, 2000, 3000}",
      shown(":set width 18\n{1000, 2000, 3000}"):match "[^\n]*$")
    for line in shown("t = {} for i = 1, 60 do t[i] = i * 1000 end\nt"):gmatch "[^\n]+" do
      assert.is_true(#line <= 80, line)
    end
  end)

  it("that hold themselves end; those that are there twice are shown twice", function()
    assert.equal("{{--[[ itself, 1 up ]]}}", shown "t = {}; t[1] = t\nt")
    assert.equal("{{1}, {1}}", shown "s = {1}\n{s, s}")
    assert.equal("{[{--[[ itself, 1 up ]]}] = 1}", shown "t = {}; t[t] = 1\nt")
  end)

  it("of a million items, and nested without end, print at once", function()
    local out = shown("t = {} for i = 1, 1e6 do t[i] = i end\nt\n"
      .. "h = {} for i = 1, 1e6 do h['k' .. i] = i end\nh\n"
      .. "n = {} m = n for i = 1, 1e5 do m.x = {} m = m.x end\nn\n"
      .. "w = {} for i = 1, 50 do w[i] = {} for j = 1, 50 do w[i][j] = {} "
      .. "for k = 1, 50 do w[i][j][k] = k end end end\nw")
    assert.truthy(out:find("... 1000000 items", 1, true))
    assert.truthy(out:find("k1 = 1,\n  k10 = 10,", 1, true))
    assert.truthy(out:find("{x = {x = {x = {x = {...}}}}}", 1, true))
    assert.is_true(#out < 60000, "it is long: " .. #out)
  end)

  it("show nothing of a metatable but its name, and call no __index", function()
    assert.equal("point {x = 1}",
      shown "setmetatable({x = 1}, {__name = 'point', __index = error})")
    assert.equal("{x = 1}", shown "setmetatable({x = 1}, {__name = 5, __len = error})")
    assert.equal([[a\nb {1}]], shown [[setmetatable({1}, {__name = "a\nb"})]])
    assert.equal("{1}", shown "setmetatable({1}, {__metatable = 'locked'})")
  end)
end)

describe("objects whose metamethods fail", function()
  it("show what failed", function()
    assert.equal("<table: __tostring failed: cell[1]:1: bad>",
      shown "setmetatable({}, {__tostring = function() error 'bad' end})")
    assert.equal("<N: __tostring failed: '__tostring' must return a string>",
      shown "setmetatable({}, {__name = 'N', __tostring = function() return {} end})")
    assert.equal("{--[[ __pairs failed: an error of type table ]]}",
      shown "setmetatable({a = 1}, {__pairs = function() error {} end})")
  end)

  it("are cut off when they never end", function()
    local out = shown("setmetatable({}, {__pairs = function()\n"
      .. "return function() return 'k', 2 end end})")
    assert.truthy(out:find("k = 2,\n  ...,", 1, true))
    assert.is_true(#out < 1000)
  end)
end)

describe("other values", function()
  it("show as Lua writes them, functions with their place", function()
    assert.equal("1e+15\n0.1\n-0.0\ninf\n3.0\n", shown("1e15\n0.1\n-0.0\n1/0\n3.0") .. "\n")
    assert.equal("function(a, ...) --[[cell[1]:1]]", shown "function(a, ...) end")
    assert.equal("coroutine --[[suspended]]", shown "coroutine.create(print)")
    assert.truthy(shown "io.stdout":find "^file %(0x")
  end)

  it("share a line when they are short, else have one each", function()
    assert.equal('1\t"a"\tnil\t{1}', shown "1, 'a', nil, {1}")
    local long = ("x"):rep(60)
    assert.equal(('"%s"\n"%s"'):format(long, long), shown(("%q, %q"):format(long, long)))
    assert.equal("tensor(3)\ttensor(1)", shown "lt.tensor{3, 1}:max{dim = 1}")
  end)
end)

for _, columns in ipairs {40, 120} do
  describe(("results at %d columns"):format(columns), function()
    it("fit the terminal", function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns}
      s:expect "[1]>"
      s:enter "{alpha = 1000000, beta = {2000000, 3000000}}"
      s:expect "[2]>"
      local one_line = "{alpha = 1000000, beta = {2000000, 3000000}}"
      local lines = "{\n  alpha = 1000000,\n  beta = {2000000, 3000000},\n}"
      local expected = "\n" .. (columns == 40 and lines or one_line) .. "\n[2]>"
      assert.truthy(s:text():find(expected, 1, true), s:text())
    end)
  end)
end
