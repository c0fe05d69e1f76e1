-- Errors as they are shown: three lines of source, the marks, the modules that ran.

local support = require "program_support"
local screen = require "screen_support"
local run, quote = support.run, support.quote

local has, has_not = support.has, support.has_not

local function script(text, environment)
  local path = support.file(text)
  local result = support.shell(("%s %s %s"):format(environment or "", quote(support.program),
    quote(path)))
  os.remove(path)
  return result.err, path
end

-- The marks of an error, as a string as long as the line above them. `line` is the whole program.
local function marks(line)
  local err = run("", line).err
  local shown, under = err:match "  >    1 | ([^\n]*)\n         | ([^\n]*)"
  return under or "", shown, err
end

describe("the erring line", function()
  -- A line, and below it where the marks are to be.
  local cases = [[
local t = {} t.a.b = 1
               ^
local t = {} ; local u = t.a + t.b.c
                                 ^
local x = nil ; local y = 1 + x
                              ^
local x; local function f() return x.y end print(f())
                                   ^
print(1 + nothing)
          ^^^^^^^
local t = {} t.run(1)
               ^^^
local t = {} t:run(1)
               ^^^
local t = {} local s = t["key"].x
                         ^^^^^
undefined(1)
^^^^^^^^^
local a, b = {}, {} print(a < b)
                            ^
local a = {} print(a .. "x")
                   ^
print(#5)
      ^
print(1 // 0)
        ^^
print(2^53 | 1.5)
           ^
error("this")
^^^^^
local x = 1 error("this", 2)
            ^^^^^
assert(1 == 2)
^^^^^^
assert(false, "text")
^^^^^^
string.rep("x", -1, {})
       ^^^
("x"):rep({})
      ^^^
for i = 1, "x" do end
^^^
local f = function(t) return t.x.y end local t = {} ; f(t); print(t.x.z)
                               ^
local f = function(t) if t then error "a" end end ; do error "b" end
                                                       ^^^^^
for k in 5 do end
         ^
setmetatable({}, {__add = function() error "in add" end})()

local x <const> = 1; x = 2
                     ^
x = = 1
    ^
x = 'abc
    ^^^^
x = "\q"
    ^^^^
goto nowhere
     ^^^^^^^
break
^^^^^
x = 3x
    ^^
x = (1 + 2
          ^
x = {1, 2,, 3}
          ^
f(1)) (2)
    ^
lt.ones(2, 3):matmul(lt.ones(2, 3))
              ^^^^^^
lt.linalg.inv(lt.zeros(2, 2))
          ^^^
lt.matmul(lt.ones(2, 3), lt.ones(2, 3))
   ^^^^^^
local y = lt.ones(2) + lt.ones(3)
                     ^
local y = lt.ones(2) / lt.ones(3) - 1
                     ^
local y = -lt.ones(2):reshape(3)
                      ^^^^^^^
lt.ones(2).shappe = 1
           ^^^^^^
local y = lt.ones(2).shappe
                     ^^^^^^
local x = lt.ones(2) + lt.ones(3)[7]
                                 ^
local y = nn.Linear("x", 2)
             ^^^^^^
local net = nn.Linear(2, 3) net(lt.ones(5))
                            ^^^
require "no.such.module"
^^^^^^^
local y = lt.zeors(3)
             ^^^^^
local t = {1, 2} t[0].x = 1
                  ^
local net = nn.Sequential(nn.ReLU()) net[2](lt.ones(2))
                                        ^
local t = {} t[nil] = 1
              ^
local f = coroutine.wrap(function() local t = nil; return t.x end) f()
                                                          ^
x = 1_000
    ^^^^^
]]
  for line, expected in cases:gmatch "([^\n]+)\n([^\n]*)\n" do
    it("has its marks right: " .. line, function()
      local under, shown, err = marks(line)
      if expected ~= "" then
        assert.equal(line, shown, err)
        assert.equal(expected, under, err)
      else
        assert(not err:find("^", 1, true), err) -- what is not known is not marked
      end
    end)
  end

  it("has a mark for each place that it may be", function()
    assert.equal("                         ^      ^",
      (marks "local t = {} ; print(  t.a.x, t.a.y)"))
  end)

  it("is shown between its neighbours, without what all are indented by", function()
    has(script "do\n\t\tlocal a = {}\n\t\tlocal b = a.x.y\n\t\t\treturn b\nend\n",
      "       2 | local a = {}\n  >    3 | local b = a.x.y\n         |             ^\n"
      .. "       4 |     return b\n")
    has(script "\n\nerror 'x'\n\nlocal a", "       2 |\n  >    3 | error 'x'\n         | ^^^^^\n"
      .. "       4 |\n")
    has((script "error 'x'\n"):gsub("$", "<end>"), "  >    1 | error 'x'\n         | ^^^^^\n<end>")
  end)

  it("counts the cells of the terminal", function()
    local err = script "local s, t = '日本語 é e\u{301}', {} ; t.x.y = s\n"
    local line, under = err:match "  >    1 | ([^\n]*)\n         | ([^\n]*)"
    local before = line:match "^(.*)x%.y"
    -- Three of two cells, and one of none.
    assert.equal(utf8.len(before) + 3 - 1, #under - 1)
  end)

  it("is cut around the marks, and never wider than the terminal", function()
    local text = "local t = {} " .. ("t.y = 1 "):rep(40) .. "t.a.b = 2 " .. ("t.z = 1 "):rep(40)
    local line, under = script(text):match "  >    1 | ([^\n]*)\n         | ([^\n]*)"
    assert.equal("t.a.b", line:sub(#under - 2, #under + 2))
    assert.matches("^%.%.%..*%.%.%.$", line)
    assert(#line <= 100 - 11, #line)
  end)

  it("may be as long as it likes", function()
    local err = script("local t = {} " .. ("t.y = 1 "):rep(1e5) .. "t.a.b = 2")
    has(err, "attempt to index a nil value (field 'a')")
    assert(#err < 1000, #err)
  end)

  it("may hold anything", function()
    local err = script "local a = '\1\27[31m\xff' error 'x'"
    has(err, "local a = '??[31m?' error 'x'\n")
    has_not(err, "\27")
    has(script("x = [[\n'\n\"\n]] y = nil + 1 --[[\n]]"), "  >    4 | ]] y = nil + 1 --[[\n"
      .. "         |            ^\n")
  end)

  it("of a syntax error at the end is the last that has something", function()
    has(script "if true then\n  print(1)\n\n\n",
      "       1 | if true then\n  >    2 |   print(1)\n         |           ^\n       3 |\n")
  end)

  it("is the one that the message is about", function()
    local err = script "local function check(x)\n  error('wrong', 2)\nend\nlocal y = 1\ncheck(y)\n"
    has(err, "       4 | local y = 1\n  >    5 | check(y)\n         | ^^^^^\n")
    has(err, "       2 | error('wrong', 2)\n")
  end)
end)

describe("an error in another chunk", function()
  it("of a module that does not parse shows its line", function()
    local dir = support.folder()
    local file = assert(io.open(dir .. "/broken.lua", "w"))
    file:write "local a = 1\nlocal b = = 2\nreturn a\n"
    file:close()
    local err = support.shell(("LUTRA_PATH='%s/?.lua' %s -e 'require \"broken\"'"):format(dir,
      quote(support.program))).err
    support.remove(dir)
    has(err, "error loading module 'broken' from file")
    has(err, "       1 | local a = 1\n  >    2 | local b = = 2\n         |           ^\n"
      .. "       3 | return a\nTraceback, the innermost call first:\n")
    has(err, "  (command line):1: in main chunk\n       1 | require \"broken\"\n")
  end)

  it("of a coroutine that is gone shows the line it names", function()
    local text = "local co = coroutine.create(function()\n  local t\n  t.x = 1\nend)\n"
      .. "assert(coroutine.resume(co))\n"
    local err = script(text)
    has(err, "       2 |   local t\n  >    3 |   t.x = 1\n         |   ^\n       4 | end)\n")
    has(err, ":5: in main chunk\n       5 | assert(coroutine.resume(co))\n")
    err = script "local f = coroutine.wrap(function()\n  local t\n  t.x = 1\nend)\nf()\n"
    has(err, "  >    3 |   t.x = 1\n         |   ^\n")
    has(err, "       5 | f()\n")
  end)

  it("is not looked for in files that are no programs", function()
    local data = support.file("a = 1\nb = 2\n", ".txt")
    local err = script("local function read() error('" .. data .. ":2: no number') end\nread()\n")
    has(err, ":1: " .. data .. ":2: no number\nTraceback")
    has(err, "  >    1 | local function read() error(")
    os.remove(data)
  end)

  it("of load shows the text that was loaded", function()
    local err = script "local f = load('local a = {}\\nlocal b = a.x.y', '=made')\nf()\n"
    has(err, "made:2: attempt to index")
    err = script "local f = load('local a = {}\\nlocal b = a.x.y')\nf()\n"
    has(err, "       1 | local a = {}\n  >    2 | local b = a.x.y\n         |             ^\n")
  end)

  it("whose source is gone shows where it is", function()
    local err = script "local f = load('error(1)', '@/no/such/file.lua') f()"
    has(err, "\n  /no/such/file.lua:1: in ")
    has_not(err, "  >")
  end)
end)

describe("an error inside modules", function()
  local network = [[
local lt = require "lutra"
local nn = lt.nn
local Net = nn.Module:extend "Net"
function Net:init()
  self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(5, 2))
  self.blocks = nn.ModuleList{nn.Identity(), nn.Linear(3, 3)}
end
function Net:forward(x)
  if self.deep then return self.blocks[2](x) end
  if self.odd then return x + lt.ones(7) end
  if self.plain then return x.shape.nothing.at end
  return self.layers(x)
end
local model = {net = Net()}
]]

  it("names them from the outermost, and the op with its shapes", function()
    has(script(network .. "local y = model.net(lt.ones(1, 2))"),
      "\n  in model.net (Net) > layers (Sequential) > 3 (Linear): forward\nTraceback")
    has(script(network .. "model.net.odd = true\nlocal y = model.net(lt.ones(1, 2))"),
      "\n  in model.net (Net): add({1, 2}, {7})\nTraceback")
    has(script(network .. "model.net.deep = true\nlocal y = model.net(lt.ones(1, 2))"),
      "\n  in model.net (Net) > blocks.2 (Linear): forward\nTraceback")
    has(script(network .. "model.net.plain = true\nlocal y = model.net(lt.ones(1, 2))"),
      "\n  in model.net (Net): forward\nTraceback")
    has(script(network .. "nn.Sequential(Net())(lt.ones(1, 2))"),
      "\n  in Sequential > 1 (Net) > layers (Sequential) > 3 (Linear): forward\nTraceback")
  end)

  it("is none when no module was called", function()
    has_not(script(network .. "local x = lt.ones(2) + lt.ones(3)"), "\n  in ")
  end)
end)

describe("a traceback", function()
  it("begins at the user's line, also when the library found the mistake", function()
    has(script "local nn = require('lutra').nn\nlocal net = nn.Linear('x', 2)\n",
      "innermost call first:\n  /")
    -- between two frames of the user's it says why one called the other
    has(script("local nn = require('lutra').nn\nlocal Net = nn.Module:extend 'Net'\n"
      .. "function Net:forward(x) return x.y.z end\nNet()({})\n"),
      "\n  (calls inside lutra)\n")
  end)

  it("calls a script's main chunk so at the prompt, too", function()
    local path = support.file "error 'bad'\n"
    has(support.session("", quote(path)).err, ":1: in main chunk\n")
    has(support.session(":run " .. path .. "\n").err, ":1: in main chunk\n")
    has(support.session("error 'bad'\n").err, "cell[1]:1: in cell\n")
    has(support.session(":timeit error 'bad'\n").err, "timeit:1: in cell\n")
    os.remove(path)
  end)

  it("names a function without a name by its location", function()
    has(script "table.sort({3, 1, 2},\n  function(a, b) return a.x < b.x end)\n",
      ":2: in function <")
  end)

  it("names a place once", function()
    local err = script "local f = coroutine.wrap(function() error 'bad' end) f()"
    assert.equal(1, select(2, err:match "^[^\n]*":gsub("%.lua:1: ", "")), err)
  end)

  it("of a very deep recursion is short", function()
    local err = script("local function r(n) if n == 0 then error 'x' end r(n - 1) return n end "
      .. "r(190000)")
    has(err, "  ... the same")
    assert(#err < 4000, #err)
  end)

  it("survives every error value", function()
    has(script "error()", "nil was raised as an error")
    has(script "error(setmetatable({}, {__tostring = function() error 'x' end}))", "a table was")
    has(script "error(setmetatable({}, {__name = 'failure'}))", "lutra: failure: ")
    has(script "error(12)", "lutra: 12\n")
    has(script "error('')", "Traceback")
    has(script "error(('x'):rep(1e5))", "Traceback")
    has(script "error('%d %s %')", "%d %s %")
    has(script "error('a\\nb: c:3: d\\n', 0)", "lutra: a\nb: c:3: d\n\nTraceback")
  end)

  it("comes after an overflow of C's stack, and of a loop of metamethods", function()
    local err = script("local t = setmetatable({}, {})\ngetmetatable(t).__index = function(_, k)\n"
      .. "  return t[k .. 'x'] end\nprint(t.a)")
    has(err, "stack overflow")
    err = script "local s = 'x' local function f() return (s:gsub('x', f)) end f()"
    has(err, "stack overflow")
    has(err, "  >    1 | ")
  end)

  it("has a hint where a name is near, in scripts and in what does not parse", function()
    has(script "local counter = 1\nprint(conter + 1)", "(global 'conter')\nhint: did you mean "
      .. "'counter'?\nTraceback")
    has(script "if x != 1 then end", "\nhint: ")
    has_not(script "error 'x'", "hint")
  end)

  it("is not lost to an error in a finalizer", function()
    local err = script("setmetatable({}, {__gc = function() error 'late' end}) collectgarbage()\n"
      .. "error 'first'")
    has(err, ":2: first\n")
    has_not(err, "Lua warning")
  end)

  it("of a value whose __tostring does not return can be interrupted", function()
    if not support.has_terminal() then
      pending "needs python3"
      return
    end
    local result = support.terminal({
      [[expect > ]],
      [[send e = setmetatable({}, {__tostring = function() while true do end end})\r]],
      [[expect > ]],
      [[send print 'go' error(e)\r]],
      [[expect go\r\n]],
      [[pause 0.2]],
      [[send \x03]],
      [[expect a table was raised]],
      [[expect > ]],
      [[send \x04]],
    }, "", "--no-init")
    assert.equal(0, result.status, result.out)
  end)

  it("has its colours on a terminal only, and not with NO_COLOR", function()
    if not support.has_terminal() then
      pending "needs python3"
      return
    end
    local path = support.file "local t = {}\nt.a.b = 1\n"
    local colored = support.terminal({[[expect main]]}, "NO_COLOR=", quote(path)).out
    local plain = support.terminal({[[expect main]]}, "NO_COLOR=1", quote(path)).out
    os.remove(path)
    has(colored, "\27[31m^\27[0m")
    has_not(plain, "\27")
  end)
end)

describe("on a terminal of", function()
  for _, columns in ipairs {40, 120} do
    it(columns .. " columns marks stand under what they mark", function()
      if not screen.available() then
        pending "needs tmux"
        return
      end
      local text = "local t = {}\n" .. ("-- %s\n"):format(("long "):rep(40))
        .. "local quite_a_long_name = 'some text' .. t.first.second .. 'and more text behind it'\n"
      local path = support.file(text)
      -- Finds the mark on the screen, and what is above it.
      local function check(s)
        s:expect "^^^^^"
        local lines = s:lines()
        for i, line in ipairs(lines) do
          assert(#line <= columns)
          local first, last = line:find "%^+"
          if first then
            assert.equal("first", lines[i - 1]:sub(first, last), s:text())
            assert.matches("^  >    %d | ", lines[i - 1])
          end
        end
      end
      do
        local s <close> = screen.open{columns = columns, rows = 40, arguments = quote(path)}
        check(s)
        assert.equal(1, s:finish())
      end
      do
        local s <close> = screen.open{columns = columns, rows = 40, arguments = "--no-init"}
        s:expect "[1]>"
        s:enter "t = {}"
        s:expect "[2]>"
        s:enter "local x = 'some long enough text' .. t.first.second"
        check(s)
        s:expect "[3]>"
        s:enter ":quit"
        assert.equal(0, s:finish())
      end
      os.remove(path)
    end)

    it(columns .. " columns the prompt comes after a script that failed", function()
      if not screen.available() then
        pending "needs tmux"
        return
      end
      local path = support.file "local kept = 41\nerror 'stop'\n"
      local s <close> = screen.open{columns = columns, rows = 40,
        arguments = "-i --no-init " .. quote(path)}
      s:expect "error 'stop'"
      s:expect "[1]>"
      s:enter "kept + 1"
      s:expect "42"
      s:enter ":quit"
      assert.equal(0, s:finish())
      os.remove(path)
    end)
  end
end)
