-- The program from outside: arguments, scripts, errors, the prompt without a terminal.

local support = require "program_support"
local run, session, quote = support.run, support.session, support.quote

local has, has_not = support.has, support.has_not

-- Runs a script with that text; also returns its path.
local function script(text, arguments)
  local path = support.file(text)
  local result = run(quote(path) .. " " .. (arguments or ""))
  os.remove(path)
  return result, path
end

describe("arguments", function()
  it("give a script its table arg and its ...", function()
    local result, path = script("print(arg[0], arg[1], arg[2], #arg, select('#', ...), ...)",
      "a 'b c'")
    assert.same({out = path .. "\ta\tb c\t2\t2\ta\tb c\n", err = "", status = 0}, result)
  end)

  it("leave a script's own options alone", function()
    assert.equal("-e\t--version\n", (script("print(...)", "-e --version")).out)
  end)

  it("put what precedes the script at negative indices", function()
    local path = support.file "print(arg[-1])"
    local result = run("-- " .. quote(path))
    os.remove(path)
    assert.equal("--\n", result.out)
  end)

  it("run code given by -e, in order, before a script", function()
    local path = support.file "print(x, y, ...)"
    local result = run("-e 'x = 1' -e 'y = x + 1' " .. quote(path) .. " z")
    os.remove(path)
    assert.same({out = "1\t2\tz\n", err = "", status = 0}, result)
  end)

  it("run stdin for - and without arguments when it is no terminal", function()
    assert.equal("1\t2\n", run("- 1 2", "print(...)").out)
    assert.equal("3\n", run("", "print(1 + 2)").out)
    assert.equal("", run("", "").out)
  end)

  it("skip a first line with #!, and count it", function()
    local text = "#!/usr/bin/env lutra\nprint(debug.getinfo(1, 'l').currentline)"
    assert.equal("2\n", run("", text).out)
    assert.equal("2\n", (script(text)).out)
  end)

  it("explain themselves", function()
    local help = run "--help"
    assert.equal(0, help.status)
    has(help.out, "lutra script.lua")
    assert.matches("^Lutra %d+%.%d+%.%d+ %(Lua 5%.4", run("--version").out)
    assert.equal(0, run("--version").status)
  end)

  it("that are invalid end with status 2 and the usage on stderr", function()
    for _, wrong in ipairs {"--nonsense", "-x", "-e"} do
      local result = run(wrong)
      assert.equal(2, result.status, wrong)
      assert.equal("", result.out, wrong)
      has(result.err, "usage: lutra")
      has(result.err, wrong)
    end
  end)

  it("--info shows the version, the threads and each device", function()
    local result = run "--info"
    assert.equal(0, result.status)
    assert.matches("^Lutra %d+%.%d+%.%d+", result.out)
    for _, word in ipairs {"cpu", "threads", "blas", "devices", "meta"} do has(result.out, word) end
  end)

  it("--info shows the MPI library, or why there is none", function()
    local name = require("lutra.core")._communication.find_library "cpu"
    has(run("--info").out, "\nmpi           " .. (name or "not available: "))
    has(support.shell("LUTRA_MPI=0 " .. quote(support.program) .. " --info").out,
      "\nmpi           not available: ")
  end)
end)

describe("--info about a GPU", function()
  local info = require "lutra.repl.info"
  local function lines(facts, release)
    local list = {}
    for _, one in ipairs(info.device_lines(function(what) return facts[what] end, release)) do
      list[#list + 1] = one[1]:match "%S+" .. ": " .. one[2]
    end
    return list
  end

  it("says what the driver, the toolkit and the code are, and where libraries are", function()
    assert.same({"driver: 570.86.10, for CUDA 12.8", "toolkit: CUDA 13.0",
      "code: sm_80, sm_90, PTX of compute_90", "GPU: sm_89", "cuBLAS: /opt/libcublas.so.13",
      "NVRTC: not found (custom kernels, lt.elementwise)"},
      lines({driver = "12.8", runtime = "13.0", archs = "sm_80, sm_90, PTX of compute_90",
        isa = "sm_89", code = "native", libraries = "cuBLAS\t/opt/libcublas.so.13\nNVRTC\t\n"},
        "570.86.10"))
  end)

  it("says what code the GPU lacks", function()
    local facts = {archs = "sm_90, PTX of compute_90", isa = "sm_75", code = "none"}
    assert.equal("GPU: sm_75: no code for it in this build; build Lutra with make CUDA_ARCHS=75",
      lines(facts)[2])
    facts.isa, facts.code = "sm_120", "PTX"
    assert.equal("GPU: sm_120, compiled from PTX by the driver at the first use", lines(facts)[2])
    assert.same({}, lines {})
  end)
end)

describe("the library", function()
  it("is found from the program's own place, also through a link", function()
    local dir = support.folder()
    os.execute(("ln -s \"$(cd %s && pwd)/%s\" %s/lutra"):format(
      quote(support.program:match "^(.*)/" or "."), support.program:match "[^/]*$", dir))
    local line = "cd / && %s/lutra -e 'print(require(\"lutra\") == lt)'"
    local result = support.shell(line:format(dir))
    support.remove(dir)
    assert.same({out = "true\n", err = "", status = 0}, result)
  end)

  it("is there under its short names for typed code, not for files", function()
    local names = "print(lt ~= nil, tensor == lt.tensor, nn and F and optim and data ~= nil)"
    local all = "true\ttrue\ttrue\n"
    assert.equal(all, run("-e " .. quote(names)).out)
    assert.equal(all, run("", names).out)
    assert.equal("nil\tnil\n", (script "print(lt, tensor)").out)
    assert.equal("true\n", (script "print(require 'lutra' ~= nil)").out)
  end)

  it("leaves other undefined globals nil", function()
    assert.equal("nil\n", run("-e 'print(undefined_name)'").out)
  end)
end)

describe("a failing script", function()
  it("says what went wrong and shows its lines, and only those", function()
    local result, path = script [[
local function deep(t)
  return t.a.b + 1
end
local function outer(t)
  local r = deep(t)
  return r
end
outer {}
]]
    assert.equal(1, result.status)
    assert.equal("", result.out)
    assert.equal(("lutra: %s:2: attempt to index a nil value (field 'a')\n"):format(path)
      .. "Traceback, the innermost call first:\n"
      .. ("  %s:2: in function 'deep'\n"):format(path)
      .. "       1 | local function deep(t)\n"
      .. "  >    2 |   return t.a.b + 1\n"
      .. "         |            ^\n"
      .. "       3 | end\n"
      .. ("  %s:5: in function 'outer'\n       5 | local r = deep(t)\n"):format(path)
      .. ("  %s:8: in main chunk\n       8 | outer {}\n"):format(path), result.err)
  end)

  it("that does not parse is one message with its line", function()
    local result, path = script "x = 1\ny = = 2\n"
    assert.equal(1, result.status)
    assert.equal(("lutra: %s:2: unexpected symbol near '='\n"):format(path)
      .. "       1 | x = 1\n  >    2 | y = = 2\n         |     ^\n", result.err)
  end)

  it("that is not there is one line", function()
    local result = run "/nonexistent/script.lua"
    assert.equal(1, result.status)
    assert.equal("lutra: cannot open /nonexistent/script.lua: No such file or directory\n",
      result.err:gsub("cannot open /nonexistent/script.lua$", "%0"))
  end)

  it("may raise any value", function()
    has((script "error(nil)").err, "nil was raised as an error")
    has((script "error(setmetatable({}, {__tostring = function() return 'my error' end}))").err,
      "lutra: my error\n")
    has((script "error({code = 5})").err, "a table was raised as an error: {code = 5}\n")
    has((script "error(setmetatable({}, {__tostring = error}))").err, "a table was raised as")
  end)

  it("has a traceback also for -e and stdin", function()
    local result = run("-e 'local x = nil; x()'")
    assert.equal(1, result.status)
    has(result.err, "(command line):1: attempt to call a nil value (local 'x')")
    has(result.err, "1 | local x = nil; x()")
    has(run("", "\n\nerror 'three'").err, "3 | error 'three'")
  end)

  it("is not kept up by an endless recursion", function()
    local result = run("", "local function r() return 1 + r() end\nr()")
    assert.equal(1, result.status)
    has(result.err, "stack overflow")
    has(result.err, "the same")
    has(result.err, "2 | r()")
    assert.is_true(#result.err < 2000)
  end)

  it("closes its <close> variables and runs finalizers", function()
    local result = script [[
local c <close> = setmetatable({}, {__close = function() print "closed" end})
kept = setmetatable({}, {__gc = function() print "collected" end})
error "x"]]
    assert.equal("closed\ncollected\n", result.out)
    assert.equal(1, result.status)
  end)

  it("may yield where nothing resumes it", function()
    local result = script "print(1) coroutine.yield() print(2)"
    assert.equal(1, result.status)
    assert.equal("1\n", result.out)
    has(result.err, "attempt to yield from outside a coroutine")
  end)

  it("shows the line of the call for an error of the library", function()
    local result, path = script "local lt = require 'lutra'\nlocal x = lt.ones(2)\nx:reshape(7)\n"
    assert.equal(1, result.status)
    has(result.err, ("lutra: %s:3: reshape: "):format(path))
    has(result.err, "3 | x:reshape(7)")
  end)

  it("shows the user's line where the library found the mistake", function()
    local result, path = script [[
local lt = require "lutra"
local net = lt.nn.Sequential(lt.nn.Linear(2, 3), lt.nn.Linear(5, 2))
local y = net(lt.ones(1, 2))]]
    has(result.err, ("lutra: %s:3: net.2: Linear"):format(path))
    has(result.err, ("Traceback, the innermost call first:\n  %s:3: in main chunk\n"):format(path))
    has(result.err, "  >    3 | local y = net(lt.ones(1, 2))\n         |           ^^^\n")
  end)

  it("can end by os.exit with its own status", function()
    assert.equal(7, (script "os.exit(7)").status)
    assert.equal(0, (script "os.exit(true, true)").status)
  end)
end)

describe("coroutines", function()
  it("behave as in Lua", function()
    local result = script [[
local co = coroutine.create(function(a, b)
  local c = coroutine.yield(a + b)
  error("bad " .. c, 0)
end)
print(coroutine.resume(co, 1, 2))
print(coroutine.resume(co, "x"))
print(coroutine.resume(co))
print(coroutine.status(co))
local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i, nil) end end)
print(gen()) print(gen()) print(gen()) print(gen())
print(select(2, pcall(gen)))
print(pcall(coroutine.resume, 5))
print(pcall(coroutine.wrap, 5))
print(select("#", coroutine.resume(coroutine.create(function() end))))
print(coroutine.resume(coroutine.running()))
print(select("#", coroutine.wrap(function(...) return ... end)(nil, nil, nil)))
]]
    local lua = [[
true	3
false	bad x
false	cannot resume dead coroutine
dead
1	nil
2	nil
3	nil

cannot resume dead coroutine
]]
    assert.equal("", result.err)
    assert.equal(lua, result.out:sub(1, #lua))
    local rest = result.out:sub(#lua + 1)
    has(rest, "bad argument #1 to 'coroutine.resume' (coroutine expected")
    has(rest, "bad argument #1 to 'coroutine.wrap' (function expected")
    assert.matches("\n1\nfalse\tcannot resume non%-suspended coroutine\n3\n$", rest)
  end)
end)

describe("the prompt", function()
  it("prints expressions and keeps the last value in _", function()
    assert.equal("3\n6\n6\n", session("1 + 2\n_ * 2\n_\n").out)
    assert.equal("1\t2\n", session("1, 2\n").out)
    assert.equal("nil\n", session("nil\n").out)
    assert.equal("", session("x = 1\nlocal y = 2\n\n-- a comment\n").out)
    assert.equal("hello\n", session("print 'hello'\n").out)
  end)

  it("shows the value behind the last semicolon, as that of a last line", function()
    local result = support.session("x = 5; x + 1\nlocal y = 2; y = 3; y\nx = 1; x;\nx = 'a;b'\n"
      .. "local t = {1; 2}\nfor i = 1, 2 do x = i; x = 2 end\n")
    assert.equal("6\n3\n", result.out)
    assert.equal("", result.err)
  end)

  it("is silent after a semicolon, but keeps the value", function()
    assert.equal("5\n", session("5;\n_\n").out)
    assert.equal("5\n", session("5 ; -- quiet\n_\n").out)
  end)

  it("prints tables and strings as code", function()
    assert.equal('"a\\n\\"b\\""\n', session([['a\n"b"']] .. "\n").out)
    assert.equal('{1, 2, ["a b"] = true, ["end"] = 1, x = {"y"}}\n',
      session('{1, 2, x = {"y"}, ["end"] = 1, ["a b"] = true}\n').out)
    assert.equal("{self = {--[[ itself, 1 up ]]}}\n",
      session("local t = {}\nt.self = t\nt\n").out)
    assert.equal("{}\n", session("{}\n").out)
    assert.equal("{{{{{...}}}}}\n", session("{{{{{{}}}}}}\n").out)
    assert.equal("{{{--[[ itself, 1 up ]]}}}\n", session("t = {{}} t[1][1] = t[1]\nt\n").out)
    assert.equal("point {x = 1}\n", session("setmetatable({x = 1}, {__name = 'point'})\n").out)
    assert.equal("{function(a, b, ...) --[[cell[1]:1]]}\n",
      session("{function(a, b, ...) end}\n").out)
  end)

  it("cuts long tables off", function()
    local out = session("t = {} for i = 1, 1e5 do t[i] = i end\nt\n").out
    assert.is_true(#out < 1000)
    has(out, "100000 items")
  end)

  it("prints tensors by their own rules", function()
    assert.equal(run("-e 'print(lt.eye(2))'").out, session("lt.eye(2)\n").out)
    assert.equal("{\n  b = tensor{{1., 0.},\n             {0., 1.}, shape = {2, 2}},\n"
      .. "  t = {\n    tensor{{1., 0.},\n           {0., 1.}, shape = {2, 2}},\n  },\n}\n",
      session("{b = lt.eye(2), t = {lt.eye(2)}}\n").out)
  end)

  it("continues while a cell is not finished", function()
    assert.equal("3\n", session("1 +\n2\n").out)
    assert.equal("1\n2\n", session("for i = 1, 2 do\nprint(i)\nend\n").out)
    assert.equal('"a\\nb"\n', session("[[a\nb]]\n").out)
    assert.equal("true\n", session("not\nfalse\n").out)
    assert.equal('"ab"\n', session("'a' ..\n'b'\n").out)
    assert.equal("1\n", session("--[[ a\ncomment ]] 1\n").out)
    assert.equal("[1]> 3\n[2]> \n", session("1 +\n2\n").raw)
  end)

  it("does not continue after an unfinished quoted string", function()
    local result = session("'abc\n1\n")
    assert.equal("1\n", result.out)
    has(result.err, "unfinished string")
  end)

  it("runs what there is at the end of its input", function()
    local result = session("for i = 1, 2 do")
    has(result.err, "'end' expected")
    assert.equal(0, result.status)
  end)

  it("keeps local variables, and they stay the same variables", function()
    assert.equal("5\n", session("local x = 5\nx\n").out)
    assert.equal("6\n6\n", session(
      "local x = 1\nlocal function get() return x end\nx = 6\nget()\nx\n").out)
    assert.equal("2\t3\n", session("local a <const>, b = 2, 3\na, b\n").out)
    assert.equal("nil\n", session("local x = 5\nrawget(_G, 'x')\n").out)
    assert.equal("1\t2\n", session("local type = 1\nlocal x = 2\ntype, x\n").out)
    assert.equal("7\n", session("local x = 5\nlocal x = x + 2\nx\n").out)
    assert.equal("120\n", session(
      "local function f(n) return n < 2 and 1 or n * f(n - 1) end\nf(5)\n").out)
    assert.equal("9\n", session("local n = 0\nfor i = 2, 4 do n = n + i end\nn\n").out)
  end)

  it("keeps what a cell had assigned when it failed", function()
    local result = session("local a, b = 1, 2; error 'x'; local c = 3\na, b, c\n")
    assert.equal("1\t2\tnil\n", result.out)
  end)

  it("respects constants and closes what is to be closed", function()
    local result = session("local K <const> = 1\nK = 2\nK\n")
    has(result.err, "attempt to assign to const variable 'K'")
    assert.equal("1\n", result.out)
    assert.equal("closed\n1\n", session(
      "local c <close> = setmetatable({}, {__close = function() print 'closed' end})\n1\n").out)
  end)

  it("takes several statements with a value at the end, as a paste gives them", function()
    local result = session("do\nx = 1 end\nx\n", "-e 'y = 1'")
    assert.equal("1\n", result.out)
  end)

  it("takes expressions between statements, as a paste of several cells gives them", function()
    local cell = require "lutra.repl.cell"
    local function value_of(text)
      local status, code = cell.read(text, "=test")
      assert.equal("complete", status, code)
      return assert(load(code.body, "=test", "t", setmetatable({}, {__index = _G})))()
    end
    local made = "x = 5\nx + 1\nlocal function f(a)\n  return a + x\nend\n{x}\nf(2) -- last"
    assert.equal(7, value_of(made))
    assert.same({5}, value_of "x = 5\n'a'\n\n{x}\n-- done\n")
    assert.is_nil((value_of "x = 5\nx + 1\ny = 2"))
    assert.is_nil((select(2, cell.read("x\ny = 2\n-- done", "=test"))).value_at)
    assert.equal(4, value_of "'a' .. 1\n(2)\nreturn debug.getinfo(1, 'l').currentline + 1")
    local status, message = cell.read("x = 1\nx + 1\ny = = 2\nx", "=test")
    assert.same({"error", "test:2: syntax error near '+'"}, {status, message})
  end)

  it("reports errors with the user's lines and continues", function()
    local result = session("local function f(x)\n  return x + q_q_q_q\nend\nf(1)\n1 + 1\n")
    assert.equal("2\n", result.out)
    assert.equal([[
error: cell[1]:2: attempt to perform arithmetic on a nil value (global 'q_q_q_q')
Traceback, the innermost call first:
  cell[1]:2: in function 'f'
       1 | local function f(x)
  >    2 |   return x + q_q_q_q
         |              ^^^^^^^
       3 | end
  cell[2]:1: in cell
       1 | f(1)
]], result.err)
    assert.equal(0, result.status)
  end)

  it("shows the line of a syntax error", function()
    assert.equal("error: cell[1]:1: unexpected symbol near '='\n"
      .. "  >    1 | x = = 1\n         |     ^\n",
      session("x = = 1\n").err)
  end)

  it("survives errors in __tostring, stack overflow and a lack of memory", function()
    local result = session("setmetatable({}, {__tostring = function() error 'no text' end})\n1\n")
    assert.equal("<table: __tostring failed: cell[1]:1: no text>\n1\n", result.out)
    result = session("local function r() return 1 + r() end r()\n2\n")
    has(result.err, "stack overflow")
    assert.equal("2\n", result.out)
  end)

  it("survives a lack of memory", function()
    if os.getenv "LUTRA_TEST_DEBUG" then
      pending "AddressSanitizer needs all of the address space"
      return
    end
    local result = support.shell(("ulimit -v 1800000; %s -i"):format(quote(support.program)),
      "local s = ('x'):rep((1 << 31) - 1)\n3\n")
    has(result.err, "not enough memory")
    has(result.out, "3\n")
    assert.equal(0, result.status)
  end)

  it("ends by its commands", function()
    for _, word in ipairs {":quit", ":q", "exit", "quit()", "exit();"} do
      local result = session(word .. "\nprint 'still here'\n")
      assert.same({"", "", 0}, {result.out, result.err, result.status}, word)
    end
    has(session(":help\n").out, ":quit")
    has(session(":nonsense\n").err, "unknown command :nonsense")
    assert.equal("5\n", session("exit = 5\nexit\n").out)
  end)

  it("comes after a script given with -i, with the script's locals", function()
    local path = support.file "#!/usr/bin/env lutra\nlocal a = 5\nb = a + 1\nprint(...)\n"
    local result = session("a, b\n", quote(path) .. " x y")
    assert.equal("x\ty\n5\t6\n", result.out)
    os.remove(path)
    path = support.file "local a = 5\nerror 'stop'\n"
    result = session("a\n", quote(path))
    assert.equal("5\n", result.out)
    has(result.err, "2 | error 'stop'")
    os.remove(path)
    has(session("1\n", "/nonexistent.lua").err, "/nonexistent.lua: No such file")
  end)

  it("writes no escapes and no history without a terminal", function()
    local dir = support.folder()
    local result = support.shell(("XDG_STATE_HOME=%s %s -i; ls -A %s"):format(dir,
      quote(support.program), dir), "1 + 1\n")
    support.remove(dir)
    has_not(result.out, "\27")
    assert.equal("[1]> 2\n[2]> \n", result.out) -- and no file in the folder
  end)
end)

describe("the prompt on a terminal", function()
  local state
  before_each(function()
    state = support.folder()
  end)
  after_each(function() support.remove(state) end)

  local function terminal(name, steps, environment)
    it(name, function()
      if not support.has_terminal() then
        pending "needs python3"
        return
      end
      local result = support.terminal(steps, ("XDG_STATE_HOME=%s %s"):format(state,
        environment or ""))
      assert(result.status == 0,
        ("status %s\n%s\n%s"):format(result.status, result.out, result.err))
    end)
  end

  for _, editor in ipairs {"", "LUTRA_READLINE=none", "LUTRA_READLINE=libedit.so.2", "TERM=dumb"} do
    local suffix = editor == "" and "" or " (" .. editor .. ")"
    terminal("reads, prints, goes on and leaves by Ctrl-D" .. suffix, {
      [[expect > ]],
      [[send 20 + 22\r]],
      [[expect 42]],
      [[expect > ]],
      [[send for i = 7, 7 do\r]],
      [[expect \r\n]],
      [[send print(i * 11)\r]],
      [[expect \r\n]],
      [[send end\r]],
      [[expect 77]],
      [[expect > ]],
      [[send \x04]],
    }, editor)

    terminal("forgets a line at Ctrl-C and goes on" .. suffix, {
      [[expect > ]],
      [[send x = nonsense(]],
      [[pause 0.3]],
      [[send \x03]],
      [[expect > ]],
      [[send 20 + 22\r]],
      [[expect 42]],
      [[expect > ]],
      [[send \x04]],
    }, editor)

    terminal("stops a running cell at Ctrl-C" .. suffix, {
      [[expect > ]],
      [[send print 'go' while true do end\r]],
      [[expect go\r\n]],
      [[send \x03]],
      [[expect interrupted]],
      [[expect > ]],
      [[send 20 + 22\r]],
      [[expect 42]],
      [[expect > ]],
      [[send \x04]],
    }, editor)
  end

  terminal("stops a coroutine", {
    [[expect > ]],
    [[send coroutine.wrap(function() print 'go' while true do end end)()\r]],
    [[expect go\r\n]],
    [[send \x03]],
    [[expect interrupted]],
    [[expect > ]],
    [[send \x04]],
  })

  terminal("abandons what swallows the first Ctrl-C", {
    [[expect > ]],
    [[send while true do pcall(function() print 'go' while true do end end) end\r]],
    [[expect go\r\n]],
    [[send \x03]],
    [[expect go\r\n]],
    [[send \x03]],
    [[expect interrupted]],
    [[expect > ]],
    [[send 20 + 22\r]],
    [[expect 42]],
    [[expect > ]],
    [[send \x04]],
  })

  terminal("abandons it also inside coroutines and callbacks of C functions", {
    [[expect > ]],
    [[send function spin() print 'go' while true do end end\r]],
    [[expect > ]],
    [[send function sort() while true do pcall(table.sort, {1, 2, 3}, spin) end end\r]],
    [[expect > ]],
    [[send while true do pcall(coroutine.wrap(sort)) end\r]],
    [[expect go\r\n]],
    [[send \x03]],
    [[expect go\r\n]],
    [[send \x03]],
    [[expect interrupted]],
    [[expect > ]],
    [[send \x04]],
  })

  terminal("passes the first Ctrl-C to code that cleans up", {
    [[expect > ]],
    [[send print(pcall(function() print 'go' while true do end end)) print 'cleaned' .. ' up'\r]],
    [[expect > ]],
    [[send print(pcall(function() print 'go' while true do end end)) print('clea' .. 'ned')\r]],
    [[expect go\r\n]],
    [[send \x03]],
    [[expect interrupted]],
    [[expect cleaned]],
    [[expect > ]],
    [[send \x04]],
  })

  terminal("stops a long operation of the core, and leaves the core usable", {
    [[expect > ]],
    [[send local x = lt.ones(1000, 1000)\r]],
    [[expect > ]],
    [[send print 'go' while true do local y = x + 1 end\r]],
    [[expect go\r\n]],
    [[send \x03]],
    [[expect interrupted]],
    [[expect > ]],
    [[send lt.ones(41):sum() + 1\r]],
    [[expect tensor(42.)]],
    [[expect > ]],
    [[send function work() print 'go' while true do x = x:cumsum(1):sin() end end\r]],
    [[expect > ]],
    [[send print(pcall(work)) print(lt.ones(41):sum() + 1)\r]],
    [[expect go\r\n]],
    [[send \x03]],
    [[expect interrupted]],
    [[expect tensor(42.)]],
    [[expect > ]],
    [[send \x04]],
  })

  terminal("stops reading from the terminal", {
    [[expect > ]],
    [[send print 'go' io.read()\r]],
    [[expect go\r\n]],
    [[pause 0.3]],
    [[send \x03]],
    [[expect interrupted]],
    [[expect > ]],
    [[send 20 + 22\r]],
    [[expect 42]],
    [[expect > ]],
    [[send \x04]],
  })

  terminal("takes a paste of several lines as one cell", {
    [[expect > ]],
    [[send \x1b[200~local function f(a)\n\n\treturn a * 2\nend\nf(21)\x1b[201~\r]],
    [[expect 42]],
    [[expect > ]],
    [[send f(50)\r]],
    [[expect 100]],
    [[expect > ]],
    [[send \x04]],
  })

  terminal("takes a transcript of several cells as one cell", {
    [[expect > ]],
    [[send \x1b[200~[1]> x = 5\n[2]> x + 1\n6\n[3]> function f(a)\n       return a * x\n     end]]
      .. [[\n[4]> f(20)\x1b[201~\r]],
    [[expect 100]],
    [[expect [2]> ]],
    [[send \x04]],
  })

  terminal("takes a paste of several lines without an editor", {
    [[expect > ]],
    [[send local function f(a)\n\n\treturn a * 2\nend\nf(21)\n]],
    [[expect 42]],
    [[expect > ]],
    [[send \x04]],
  }, "LUTRA_READLINE=none")

  terminal("ends a cell at an empty line", {
    [[expect > ]],
    [[send x = (\r]],
    [[expect \x20\x20\x20\x20]],
    [[send \r]],
    [[expect unexpected symbol near <eof>]],
    [[expect > ]],
    [[send \x04]],
  })

  it("says how to end what cannot be stopped, and then can be ended", function()
    if not support.has_terminal() then
      pending "needs python3"
      return
    end
    -- Lua's matcher looks at no signal, and tries 2^40 ways here.
    local result = support.terminal({
      [[expect > ]],
      [[send print 'go' local f = ('a'):rep(40):find(('a-'):rep(40) .. 'b')\r]],
      [[expect go\r\n]],
      [[send \x03]],
      [[pause 0.2]],
      [[send \x03]],
      [[pause 0.2]],
      [[send \x03]],
      [[expect Ctrl-\\ ends]],
      [[send \x1c]],
    }, "XDG_STATE_HOME=" .. state)
    assert.equal(128 + 3, result.status, result.out)
  end)

  it("keeps its history, one entry a cell, for its owner only", function()
    if not support.has_terminal() then
      pending "needs python3"
      return
    end
    local environment = "XDG_STATE_HOME=" .. state
    local first = support.terminal({
      [[expect > ]],
      [[send print(6 *\r]],
      [[expect \x20\x20\x20\x20]],
      [[send 7, '\\n')\r]],
      [[expect 42]],
      [[expect > ]],
      [[send \x04]],
    }, environment)
    assert.equal(0, first.status, first.out)
    local file = assert(io.open(state .. "/lutra/history"))
    assert.equal("print(6 *\\n  7, '\\\\n')\n", file:read "a")
    file:close()
    assert.equal("-rw-------", support.shell("ls -l " .. state .. "/lutra/history").out:sub(1, 10))
    assert.equal("drwx------", support.shell("ls -ld " .. state .. "/lutra").out:sub(1, 10))
    local second = support.terminal({
      [[expect > ]],
      [[send \x1b[A\r]],
      [[expect 42]],
      [[expect > ]],
      [[send \x04]],
    }, environment)
    assert(second.status == 0, second.out)
  end)

  it("writes no escapes to a dumb terminal", function()
    if not support.has_terminal() then
      pending "needs python3"
      return
    end
    local result = support.terminal({"expect > ", [[send lt.eye(2)\r]], "expect > ", [[send \x04]]},
      "TERM=dumb XDG_STATE_HOME=" .. state)
    has_not(result.out, "\27")
  end)
end)

describe("Ctrl-C in a script", function()
  it("ends it with a traceback and status 130", function()
    if not support.has_terminal() then
      pending "needs python3"
      return
    end
    local path = support.file "print 'go'\nwhile true do\nend\n"
    local result = support.terminal({[[expect go\r\n]], [[send \x03]]}, "", quote(path))
    os.remove(path)
    assert.equal(130, result.status)
    has(result.out, "interrupted")
    has(result.out, "in main chunk")
  end)

  it("kills it the second time, whatever it does", function()
    if not support.has_terminal() then
      pending "needs python3"
      return
    end
    local path = support.file [[
local function spin() print "go" while true do end end
while true do pcall(spin) end]]
    local result = support.terminal({[[expect go\r\n]], [[send \x03]], [[expect go\r\n]],
      [[send \x03]]}, "", quote(path))
    os.remove(path)
    assert.equal(130, result.status)
  end)
end)
