-- :debug after an error, and lt.breakpoint().

local assert = require "luassert"
local devices = require "device_support"
local support = require "program_support"
local screen = require "screen_support"

local session = support.session

-- Fails unless `text` holds each of the texts, in this order.
local function holds(text, ...)
  local at = 1
  for _, expected in ipairs {...} do
    local first, last = text:find(expected, at, true)
    assert.is_truthy(first, ("%q is missing, or not in order, in:\n%s"):format(expected, text))
    at = last + 1
  end
end

local failing = [[
function outer(x) local kept = x * 2; return (inner(kept, "a", "b")) end
function inner(n, ...)
  local secret = n + 1
  local first = secret
  local first = "hides"
  error("boom")
end
outer(10)
]]

describe(":debug", function()
  it("without an error reports that there is none", function()
    local result = session ":debug\n"
    holds(result.err, "debug: cannot inspect an error: the last cell did not fail")
  end)

  it("shows the frames, the innermost selected, with source and variables", function()
    local out = session(failing .. ":debug\n").out
    holds(out, "boom", "> 1  cell[2]:5: in function 'inner'", "2  cell[1]:1: in function 'outer'",
      "3  cell[3]:1: in cell", ">    5 | ", "error(\"boom\")", "n = 20", "secret = 21")
  end)

  it("has the number of the failed cell in its prompt", function()
    holds(session(failing .. ":debug\nsecret\n").raw, "debug[3]> 21")
  end)

  it("evaluates names, expressions and calls in the frame", function()
    local out = session(failing .. ":debug\nsecret\nsecret + n\n('x'):rep(n // 10)\n").out
    holds(out, "21", "41", '"xx"')
  end)

  it("finds the local that hides another, and the frame's ...", function()
    holds(session(failing .. ":debug\nfirst\nselect('#', ...)\n(...)\n").out, '"hides"', "2", '"a"')
  end)

  it("changes the copy of a local", function()
    holds(session(failing .. ":debug\nsecret = 99\nsecret\n:locals\n").out, "debug[3]> 99",
      "secret = 99")
  end)

  it("moves up and down, and reports the ends", function()
    local result = session(failing .. ":debug\n:up\nkept\n:up\n:up\n:down 2\nsecret\n:down\n")
    holds(result.out, "cell[1]:1: in function 'outer'", "debug[3]> 20", "in cell",
      "in function 'inner'", "debug[3]> 21")
    holds(result.err, "up: cannot go further: this is the outermost frame",
      "down: cannot go further: this is the innermost frame")
  end)

  it("selects a frame by its number", function()
    local result = session(failing .. ":debug\n:frame 2\nx\n:frame 7\n:frame up\n")
    holds(result.out, "debug[3]> 10")
    holds(result.err, "frame: expected a frame from 1 to 3, got \"7\"", 'got "up"')
  end)

  it("reads a global, and a local of the session, that the frame has not", function()
    local text = "local mine = 5\nshared = 6\n" .. failing .. ":debug\nmine\nshared\n"
    holds(session(text).out, "5", "6")
  end)

  it("sees upvalues", function()
    local text = "do local up = 7; function f() local a = up; error 'x' end end\nf()\n:debug\nup\n"
    holds(session(text).out, "up = 7  (outer)", "debug[2]> 7")
  end)

  it("sees a <close> variable as it was, which is closed right after the failure", function()
    local out = session [[
do local t <close> = setmetatable({}, {__close = function() print "closed" end}); error "x" end
:debug
type(t)
]].out
    holds(out, "closed", '"table"')
  end)

  it("survives errors in what is typed, and keeps the failure", function()
    local result = session(failing .. ":debug\nnil + 1\n1 1\nsecret\n:quit\n:debug\nsecret\n")
    holds(result.err, "attempt to perform arithmetic", "near '1'")
    holds(result.out, "21", "left the debugger", "boom", "debug[3]> 21")
  end)

  it("is left by :quit, :continue and the end of input, without an end of the session", function()
    for _, how in ipairs {":quit", ":continue", ":c", "quit", "exit"} do
      local out = session(failing .. ":debug\n" .. how .. "\n1 + 1\n").raw
      holds(out, "debug[3]> ", "[4]> 2")
    end
  end)

  it("cannot continue after an error", function()
    holds(session(failing .. ":debug\n:next\n").err,
      "next: cannot continue: the code failed\nhint: :continue leaves the debugger")
  end)

  it("is forgotten when the next cell starts", function()
    local result = session(failing .. "1\n:debug\n")
    holds(result.err, "cannot inspect an error")
  end)

  it("keeps nothing alive past the next cell", function()
    local out = session [[
watched = setmetatable({}, {__mode = "v"})
function f() local t = {}; watched[1] = t; error "x" end
f()
:debug
:quit
1
collectgarbage()
watched[1]
]].out
    holds(out, "left the debugger", "1", "nil")
  end)

  it("keeps no memory of a device past the next cell", function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local out = session([[
function f() local big = lt.zeros{1000, 1000, device = "cuda"}; error "x" end
f()
:debug
collectgarbage()
lt.cuda.memory_allocated() >= 4000000
:quit
collectgarbage()
lt.cuda.memory_allocated()
]], "--emulate cuda:1").out
    holds(out, "big = tensor {1000, 1000} float32 on cuda:0", "debug[2]> true", "left", "0\n0")
  end)

  it("looks into a script that failed, with -i", function()
    local path = support.file [[
local w = 3
local function f(a) local q = a + w; error "bad" end
f(4)
]]
    local result = session(":debug\nq\n:up\nw\n", support.quote(path))
    os.remove(path)
    holds(result.out, "bad", "debug> 7", "in main chunk", "debug> 3")
  end)

  it("shows the first and last frames of a deep recursion", function()
    local out = session [[
function r(n) return 1 + r(n + 1) end
r(1)
:debug
n > 1000
:frame 121
n
]].out
    holds(out, "stack overflow", "> 1  cell[1]:1", "more ...", "in cell", "true")
  end)

  it("inspects an error that is not a string, and one of a command", function()
    holds(session "do local a = 3; error {code = 5} end\n:debug\na\n".out, "code = 5", "a = 3",
      "debug[1]> 3")
    holds(session ":time (function() local q = 8; error 'x' end)()\n:debug\nq\n".out, "debug> 8")
  end)

  it("looks at a library's frame too", function()
    local out = session [[
do local w = 4; nn.Linear(w) end
:debug
w
]].out
    holds(out, "debug[1]> 4")
  end)

  it("refuses its commands outside", function()
    for _, command in ipairs {"up", "down", "frame", "locals", "bt", "next", "step", "continue"} do
      holds(session(":" .. command .. "\n").err, command .. ": cannot debug: no debugger is open")
    end
    holds(session(":next\n").err, ":lesson opens a lesson")
  end)

  it("refuses invalid arguments", function()
    local result = session(failing .. ":debug\n:up x\n:locals y\n:debug now\n:down 0\n")
    holds(result.err, 'up: expected a number of frames, got "x"', "locals: expected no argument",
      "debug: expected no argument", 'down: expected a number of frames, got "0"')
  end)
end)

local loop = [[
function f(n)
  local total = 0
  for i = 1, n do
    lt.breakpoint(i == 2)
    total = total + i
  end
  return total
end
]]

describe("lt.breakpoint", function()
  it("stops at its line, shows variables, continues", function()
    local out = session(loop .. "f(3)\ntotal\ni\n:continue\n").raw
    holds(out, "stopped at cell[1]:4: in function 'f'", "lt.breakpoint(i == 2)", "n = 3",
      "total = 1", "i = 2", "debug> 1", "debug> 2", "debug> 6", "[3]> ")
  end)

  it("changes the variables of the running function, upvalues too", function()
    holds(session(loop .. "f(3)\ntotal = 100\n:c\n").raw, "debug> 105")
    holds(session [[
do local up = 1; function g() lt.breakpoint(); return up end end
g()
up = 9
:c
]].raw, "debug> 9")
  end)

  it("stops only when its condition holds", function()
    holds(session "lt.breakpoint(false); lt.breakpoint(nil); print 'on'\n".raw, "[1]> on")
  end)

  it(":next goes to the next line, over calls; :step into them", function()
    local text = [[
function double(v)
  return v * 2
end
function f()
  lt.breakpoint()
  local a = double(4)
  return a
end
f()
]]
    holds(session(text .. ":next\n:next\na\n:c\n").raw, "cell[2]:2", "cell[2]:3", "cell[2]:4",
      "debug> 8", "debug> 8")
    holds(session(text .. ":step\n:step\nv\n:c\n").raw, "cell[2]:3", "cell[1]:2", "debug> 4",
      "debug> 8")
  end)

  it(":next after the last line goes to the caller", function()
    holds(session [[
function f()
  lt.breakpoint()
end
function g()
  f()
  local after = 1
  return after
end
g()
:next
:next
:c
]].raw, "cell[1]:2", "cell[1]:3", "cell[2]:3", "debug> 1")
  end)

  it(":quit stops the cell with an error", function()
    local result = session(loop .. "f(3)\n:quit\n1 + 1\n")
    holds(result.err, "stopped in the debugger", "cell[1]:4: in function 'f'")
    holds(result.raw, "[3]> 2")
  end)

  it("continues at the end of input", function()
    holds(session(loop .. "f(3)\n").raw, "debug> ", "6")
  end)

  it("is left by a bare quit, unless there is a variable of that name", function()
    holds(session(loop .. "f(3)\nquit\n").err, "stopped in the debugger")
    local text = "function f() local quit = 4; lt.breakpoint(); return quit end\nf()\nquit\n:c\n"
    holds(session(text).raw, "debug> 4", "debug> 4")
  end)

  it("stops inside a callback and in a coroutine", function()
    local sorting = "table.sort({2, 1}, function(a, b) lt.breakpoint(); return a < b end)\n"
    holds(session(sorting .. "a + b\n").raw, "debug> 3")
    holds(session [[
co = coroutine.wrap(function(z) lt.breakpoint(); return z + 1 end)
co(4)
z
:c
]].raw, "debug> 4", "debug> 5")
  end)

  it("stops in a backward hook", function()
    holds(session [[
x = lt.ones{2, requires_grad = true}; x:register_hook(function(g) lt.breakpoint() end)
x:sum():backward()
g:tolist()
:c
x.grad:tolist()
]].raw, "debug> {1.0, 1.0}", "{1.0, 1.0}")
  end)

  it("may be hit by what is typed at one", function()
    local out = session(loop .. "f(3)\nf(2)\ntotal = 50\n:c\ntotal\n:c\n").raw
    holds(out, "total = 1", "debug> debug> 52", "debug> 1", "debug> 6")
  end)

  it("in a script without a terminal warns once and continues", function()
    local path = support.file [[
local lt = require "lutra"
for _ = 1, 3 do lt.breakpoint() end
print(io.read "l")
]]
    local result = support.run(support.quote(path), "unread\n")
    os.remove(path)
    assert.equal(0, result.status)
    assert.equal("unread\n", result.out)
    local _, count = result.err:gsub("stdin is not a terminal", "")
    assert.equal(1, count, result.err)
  end)
end)

describe("a debugger on a terminal", function()
  for _, columns in ipairs {40, 120} do
    it(("looks into an error, %d columns"):format(columns), function()
      if not screen.available() then return pending "no tmux" end
      local s <close> = screen.open{columns = columns, rows = 40}
      s:expect_last "[1]>"
      s:enter "function f(n) local secret = n * 2; error('boom') end"
      s:expect_last "[2]>"
      s:enter "f(21)"
      s:expect_last "[3]>"
      s:enter ":debug"
      s:expect_last "debug[2]>"
      s:expect "> 1  cell[1]:1: in function 'f'"
      s:expect "secret = 42"
      s:enter "secret + 1"
      s:expect "43"
      s:send "secr"
      s:key "Tab"
      s:enter " + 2"
      s:expect "44"
      s:key "C-d"
      s:expect_last "[3]>"
    end)

    it(("stops a script at a breakpoint, %d columns"):format(columns), function()
      if not screen.available() then return pending "no tmux" end
      local path = support.file [[
local lt = require "lutra"
local function f(n)
  lt.breakpoint()
  return n + 1
end
print("result", f(20))
]]
      local s <close> = screen.open{columns = columns, rows = 30, arguments = support.quote(path)}
      s:expect_last "debug>"
      s:enter "n"
      s:expect "20"
      s:expect_last "debug>"
      s:key "C-c"
      s:expect "^C\ndebug>"
      s:enter "n = 41"
      s:enter "print('looping'); while true do end"
      s:expect "\nlooping"
      s:key "C-c"
      s:expect "interrupted"
      s:expect_last "debug>"
      s:enter ":c"
      s:expect "result  42"
      assert.equal(0, s:finish())
      os.remove(path)
    end)
  end
end)
