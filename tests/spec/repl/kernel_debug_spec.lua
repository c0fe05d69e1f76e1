-- The debugger of notebooks (lutra.repl.kernel.debug), with a stand-in for the kernel.

local assert = require "luassert"
local debugger = require "lutra.repl.kernel.debug"
local hash = require "lutra.repl.kernel.debug.hash"
local host = require "lutra.repl.host"
local json = require "lutra.internal.json"
local lines = require "lutra.repl.kernel.debug.lines"
local session = require "lutra.repl.session"

-- Returns a kernel whose front end is `script(ask)`, a function that runs while the program is
-- stopped: ask(command, arguments) sends a request and returns the content of the reply. Fields:
-- events (a list of {event, body}), errors, out.
local function new_kernel(script)
  local kernel = {session = session.new(), texts = {}, events = {}, errors = {}, stopped = false}
  kernel.session:mark_builtin()
  kernel.session.typed = false
  function kernel.session.print_error(_, text) table.insert(kernel.errors, text) end
  function kernel.session.show() end
  local front = coroutine.create(script or function() end)
  local reply
  local function ask(command, arguments)
    return coroutine.yield{type = "request", seq = 7, command = command, arguments = arguments}
  end
  local started = false
  function kernel.next_control(_, seconds)
    if seconds == 0 and not kernel.polls or coroutine.status(front) == "dead" then return nil end
    local ok, content
    if started then
      ok, content = coroutine.resume(front, reply)
    else
      started, ok, content = true, coroutine.resume(front, ask, kernel)
    end
    if not ok then error(content, 0) end
    return content and {content = content} or nil
  end
  function kernel.handle(self, request)
    reply = debugger.debug_request(self, json.decode(json.encode(request.content)))
    json.encode(reply) -- it can be sent
  end
  function kernel.publish(self, kind, content)
    assert.equal("debug_event", kind)
    json.encode(content)
    table.insert(self.events, {content.event, content.body})
  end
  function kernel.ask(self, command, arguments)
    return debugger.debug_request(self, {type = "request", seq = 1, command = command,
      arguments = arguments})
  end
  -- Runs a cell.
  function kernel.run(self, text)
    local chunk = "=cell[" .. self.session.number .. "]"
    self.texts[chunk] = text
    debugger.cell_started(self, text, chunk)
    self.session:execute(text)
  end
  -- Sets breakpoints in the cell `text`, as a front end does; returns the list in the reply.
  function kernel.set_breakpoints(self, text, list)
    local path = self:ask("dumpCell", {code = text}).body.sourcePath
    local reply_content = self:ask("setBreakpoints", {source = {path = path}, breakpoints = list})
    assert.is_true(reply_content.success)
    return reply_content.body.breakpoints, path
  end
  return kernel
end

-- Runs a cell with breakpoints at lines (numbers or DAP breakpoints). Returns the kernel.
local function run(text, breakpoints, script)
  local kernel = new_kernel(script)
  assert.is_true(kernel:ask("initialize", {}).success)
  assert.is_true(kernel:ask("attach", {}).success)
  local list = {}
  for i, wanted in ipairs(breakpoints) do
    list[i] = type(wanted) == "number" and {line = wanted} or wanted
  end
  kernel:set_breakpoints(text, list)
  kernel:run(text)
  kernel:ask("disconnect", {})
  return kernel
end

-- Returns the reasons of the stops.
local function stops(kernel)
  local reasons = {}
  for _, event in ipairs(kernel.events) do
    if event[1] == "stopped" then reasons[#reasons + 1] = event[2].reason end
  end
  return reasons
end

-- Asks for the frames; returns "label:line" of the innermost one, and all.
local function where(ask)
  local frames = ask("stackTrace", {threadId = 1}).body.stackFrames
  return frames[1].name .. ":" .. frames[1].line, frames
end

-- Returns the variables of a scope of frame `id`, by name.
local function variables(ask, id, scope_name)
  for _, scope in ipairs(ask("scopes", {frameId = id}).body.scopes) do
    if scope.name == scope_name then
      local by_name = {}
      local reply = ask("variables", {variablesReference = scope.variablesReference})
      for _, variable in ipairs(reply.body.variables) do by_name[variable.name] = variable end
      return by_name, scope.variablesReference
    end
  end
end

local loop = [[
local total = 0
for i = 1, 5 do
  local square = i * i
  total = total + square
end
result = total]]

describe("MurmurHash2", function()
  -- Published: the verification value that Appleby's SMHasher computes from 256 hashes, and single
  -- hashes of the reference implementation that other implementations' tests list.
  it("has the verification value of SMHasher", function()
    local hashes = {}
    for i = 0, 255 do
      local key = {}
      for j = 0, i - 1 do key[#key + 1] = string.char(j) end
      hashes[#hashes + 1] = ("<I4"):pack(hash.murmur2(table.concat(key), 256 - i))
    end
    assert.equal(0x27864C1E, hash.murmur2(table.concat(hashes), 0))
  end)

  it("reads bytes, not characters, and returns 32 bits", function()
    assert.equal(0, hash.murmur2("", 0))
    assert.not_equal(hash.murmur2("\u{E9}", 1), hash.murmur2("\xE9", 1))
    assert.is_true(hash.murmur2("print('\u{1F600}')", 0xFFFFFFFF) >> 32 == 0)
  end)
end)

describe("lines with code", function()
  it("are those that Lua reports, of nested functions too", function()
    local f = load [[
local a = 1

local function g(...)
  -- a comment
  return {
    ...
  }
end
for i = 1, 2 do
  a = a + i
end
return g]]
    local expected = {}
    for _, of in ipairs{f, f()} do
      for line in pairs(debug.getinfo(of, "L").activelines) do expected[line] = true end
    end
    assert.same(expected, lines.of(f))
  end)

  it("are found across many lines without code and in code with constants of all kinds", function()
    local f = load("local t = {1, 2.5, 'x', nil, true, false, ('long'):rep(20), '"
      .. ("y"):rep(300) .. "'}\n" .. ("\n"):rep(500) .. "t = nil")
    assert.same(debug.getinfo(f, "L").activelines, lines.of(f))
  end)

  it("of code that does not compile are unknown", function()
    local found, message = lines.of_text("for", false)
    assert.is_nil(found)
    assert.is_string(message)
  end)
end)

describe("the debugger of notebooks", function()
  it("describes itself", function()
    local kernel = new_kernel()
    local reply = kernel:ask "debugInfo"
    assert.equal("response", reply.type)
    assert.equal(1, reply.request_seq)
    assert.equal("debugInfo", reply.command)
    assert.is_true(reply.success)
    local body = reply.body
    assert.is_false(body.isStarted)
    assert.equal("Murmur2", body.hashMethod)
    assert.equal(".lua", body.tmpFileSuffix)
    assert.equal("[]", json.encode(body.breakpoints))
    assert.equal("[]", json.encode(body.stoppedThreads))
    assert.equal("[]", json.encode(body.exceptionPaths))
  end)

  it("names a cell by the hash of its text", function()
    local kernel = new_kernel()
    local info = kernel:ask("debugInfo").body
    assert.equal(info.tmpFilePrefix .. hash.murmur2(loop, info.hashSeed) .. info.tmpFileSuffix,
      kernel:ask("dumpCell", {code = loop}).body.sourcePath)
  end)

  it("is started by initialize and ended by disconnect", function()
    local kernel = new_kernel()
    assert.is_false(kernel:ask("stackTrace", {}).success)
    assert.is_true(kernel:ask("initialize", {}).success)
    assert.equal("initialized", kernel.events[1][1])
    assert.is_true(kernel:ask("debugInfo").body.isStarted)
    assert.is_true(kernel:ask("configurationDone").success)
    kernel:ask("disconnect", {})
    assert.is_false(kernel:ask("debugInfo").body.isStarted)
  end)

  it("refuses what it does not know", function()
    local kernel = new_kernel()
    local reply = kernel:ask("selfDestruct", {})
    assert.is_false(reply.success)
    assert.equal('unknown command "selfDestruct"', reply.message)
    assert.is_false(kernel:ask("dumpCell", {}).success)
    assert.is_false(debugger.debug_request(kernel, json.null).success)
  end)

  it("refuses requests for a stopped program while none is", function()
    local kernel = new_kernel()
    kernel:ask "initialize"
    for _, command in ipairs{"stackTrace", "scopes", "continue", "next", "stepIn", "stepOut"} do
      local reply = kernel:ask(command, {threadId = 1})
      assert.is_false(reply.success)
      assert.equal("the program is not stopped", reply.message)
    end
    assert.is_false(kernel:ask("variables", {variablesReference = 99}).success)
    kernel:ask "disconnect"
  end)
end)

describe("a breakpoint", function()
  it("stops each time its line runs, with the frame's variables", function()
    local seen = {}
    local kernel = run(loop, {4}, function(ask)
      for i = 1, 5 do
        assert.equal("cell:4", (where(ask)))
        local locals = variables(ask, 1, "Locals")
        seen[i] = locals.i.value .. " " .. locals.total.value
        assert.equal("int", locals.square.type)
        ask("continue", {threadId = 1})
      end
    end)
    assert.same({"1 0", "2 1", "3 5", "4 14", "5 30"}, seen)
    assert.same({"breakpoint", "breakpoint", "breakpoint", "breakpoint", "breakpoint"},
      stops(kernel))
    assert.equal(55, result) -- luacheck: ignore
    assert.same({}, kernel.errors)
  end)

  it("moves to the next line with code", function()
    local kernel = new_kernel()
    kernel:ask "initialize"
    local text = "-- a comment\n\nx = 1\nif x then\n  x = 2\nend\n"
    local set = kernel:set_breakpoints(text, {{line = 1}, {line = 6}})
    assert.equal(3, set[1].line)
    assert.is_true(set[1].verified)
    assert.is_false(set[2].verified)
    assert.equal("there is no code at this line or behind it", set[2].message)
    assert.same({{line = 3}}, kernel:ask("debugInfo").body.breakpoints[1].breakpoints)
    kernel:ask "disconnect"
  end)

  it("works in the code between commands", function()
    local kernel = new_kernel()
    kernel:ask "initialize"
    local set = kernel:set_breakpoints(":whos\nx = 1\n!ls\ny = 2", {{line = 1}, {line = 3}})
    assert.same({2, 4}, {set[1].line, set[2].line})
    kernel:ask "disconnect"
  end)

  it("in a cell that does not compile is not verified", function()
    local kernel = new_kernel()
    kernel:ask "initialize"
    local set = kernel:set_breakpoints("x = = 1", {{line = 1}})
    assert.is_false(set[1].verified)
    assert.truthy(set[1].message:find "unexpected symbol")
    kernel:ask "disconnect"
  end)

  it("works in a function that an earlier cell defined, and names its cell", function()
    local first = "function twice(x)\n  local y = 2 * x\n  return y\nend"
    local kernel = new_kernel(function(ask)
      local at, frames = where(ask)
      assert.equal("function 'twice':3", at)
      assert.equal("cell", frames[2].name)
      local path = frames[1].source.path
      assert.equal(first, ask("source", {source = {path = path}}).body.content)
      assert.not_equal(path, frames[2].source.path)
      ask("continue", {})
    end)
    kernel:run(first) -- before the debugger is attached
    kernel:ask "initialize"
    local _, path = kernel:set_breakpoints(first, {{line = 3}})
    assert.equal(path, kernel:ask("debugInfo").body.breakpoints[1].source)
    kernel:run "answer = twice(21)"
    kernel:ask "disconnect"
    assert.same({"breakpoint"}, stops(kernel))
    assert.equal(42, answer) -- luacheck: ignore
  end)

  it("with a condition stops where it holds, or fails", function()
    local kernel = run(loop, {{line = 4, condition = "i == 3"}}, function(ask)
      assert.equal("3", variables(ask, 1, "Locals").i.value)
      ask("continue", {})
    end)
    assert.same({"breakpoint"}, stops(kernel))
    kernel = run(loop, {{line = 4, condition = "nil + i"}}, function(ask)
      for _ = 1, 5 do ask("continue", {}) end
    end)
    assert.equal(5, #stops(kernel))
    assert.truthy(kernel.events[2][2].text:find "the condition failed")
  end)

  it("with a hit count stops from that hit on, or at it", function()
    local function count(condition)
      local kernel = run(loop, {{line = 4, hitCondition = condition}}, function(ask)
        for _ = 1, 5 do ask("continue", {}) end
      end)
      return #stops(kernel)
    end
    assert.equal(2, count "4")
    assert.equal(1, count "== 4")
    assert.equal(2, count "% 2")
    assert.equal(2, count "<3")
  end)

  it("with a message writes it and does not stop", function()
    local kernel = run(loop, {{line = 4, logMessage = "square {square}"}})
    assert.same({}, stops(kernel))
  end)

  it("works in coroutines, also in one that is older than the debugger", function()
    local text =
      "local co = coroutine.wrap(function()\n  inner = 1\n  coroutine.yield()\nend)\nco()"
    local kernel = run(text, {2}, function(ask)
      assert.truthy(where(ask):find ":2$")
      ask("continue", {})
    end)
    assert.same({"breakpoint"}, stops(kernel))
    local first = "old = coroutine.wrap(function()\n  coroutine.yield()\n  late = 1\nend)\nold()"
    kernel = new_kernel(function(ask)
      ask("continue", {})
    end)
    kernel:run(first)
    kernel:ask "initialize"
    kernel:set_breakpoints(first, {{line = 3}})
    kernel:run "old()"
    kernel:ask "disconnect"
    assert.same({"breakpoint"}, stops(kernel))
  end)

  it("is set while a cell runs", function()
    local text = "flag = true\nwhile flag do\n  count = (count or 0) + 1\nend"
    local asked = false
    local kernel
    kernel = new_kernel(function(ask)
      asked = true
      local path = ask("dumpCell", {code = text}).body.sourcePath
      ask("setBreakpoints", {source = {path = path}, breakpoints = {{line = 3}}})
      kernel.polls = false
      assert.equal("cell:3", (where(ask)))
      assert.is_true(ask("evaluate", {expression = "flag = false", frameId = 1}).success)
      ask("continue", {})
    end)
    kernel.polls = true
    kernel:ask "initialize"
    kernel:run(text)
    kernel:ask "disconnect"
    assert.is_true(asked)
    assert.same({"breakpoint"}, stops(kernel))
  end)

  it("costs nothing after disconnect", function()
    run("x = 1", {1}, function(ask) ask("continue", {}) end)
    assert.is_nil((debug.gethook()))
    local kernel = new_kernel()
    kernel:run "hook_of_cell = debug.gethook()"
    assert.is_nil(hook_of_cell) -- luacheck: ignore
  end)
end)

local calls = [[
local function inner(n)
  local m = n + 1
  return m
end
local a = inner(1)
local b = inner(a)
done = b]]

describe("a step", function()
  -- Runs `calls` with a stop at `line` and the steps; returns the places where they end.
  local function steps(line, list)
    local places = {}
    local kernel = run(calls, {line}, function(ask)
      for i, command in ipairs(list) do
        ask(command, {threadId = 1})
        places[i] = where(ask)
      end
      ask("continue", {})
    end)
    assert.equal("step", stops(kernel)[2])
    return places
  end

  it("over a call ends at the next line of the frame", function()
    assert.same({"cell:6", "cell:7"}, steps(5, {"next", "next"}))
  end)

  it("into a call ends in the function", function()
    assert.same({"function 'inner':2", "function 'inner':3"}, steps(5, {"stepIn", "stepIn"}))
  end)

  it("out of a function ends in its caller", function()
    assert.same({"function 'inner':2", "cell:6"}, steps(5, {"stepIn", "stepOut"}))
  end)

  it("over the end of a function ends in its caller", function()
    assert.same({"function 'inner':2", "function 'inner':3", "cell:6"},
      steps(5, {"stepIn", "next", "next"}))
  end)

  it("over the last line ends with the cell", function()
    local kernel = run(calls, {7}, function(ask) ask("next", {}) end)
    assert.same({"breakpoint"}, stops(kernel))
    assert.equal(3, done) -- luacheck: ignore
    assert.equal("continued", kernel.events[#kernel.events][1])
  end)

  it("does not enter functions of the library", function()
    local text = "local lt = require 'lutra'\nlocal net = lt.nn.Linear(2, 3)\nlast = 1"
    local kernel = run(text, {2}, function(ask)
      ask("stepIn", {})
      assert.equal("cell:3", (where(ask)))
      ask("continue", {})
    end)
    assert.same({"breakpoint", "step"}, stops(kernel))
  end)

  it("over a resume does not stop in the coroutine, and out of one ends behind it", function()
    local text = "local co = coroutine.wrap(function()\n  local x = 1\n  coroutine.yield()\nend)\n"
      .. "co()\nlast = 2"
    local kernel = run(text, {5}, function(ask)
      ask("next", {})
      assert.equal("cell:6", (where(ask)))
      ask("continue", {})
    end)
    assert.same({"breakpoint", "step"}, stops(kernel))
    run(text, {2}, function(ask)
      ask("stepOut", {})
      assert.equal("cell:6", (where(ask)))
      ask("continue", {})
    end)
  end)

  it("by pause stops a running program", function()
    local text = "go = true\nwhile go do\n  local x = 1\nend"
    local kernel
    kernel = new_kernel(function(ask)
      ask("pause", {threadId = 1})
      kernel.polls = false
      assert.truthy(where(ask):find "^cell:")
      ask("evaluate", {expression = "go = false", frameId = 1})
      ask("continue", {})
    end)
    kernel.polls = true
    kernel:ask "initialize"
    kernel:run(text)
    kernel:ask "disconnect"
    assert.same({"pause"}, stops(kernel))
  end)
end)

describe("a stopped program", function()
  it("lists locals, the values of ..., and upvalues that no local hides", function()
    local text = "local up, same = 1, 2\nlocal function f(...)\n  local same, kept = 3, up\n"
      .. "  return same, kept\nend\nf('a', 'b')"
    run(text, {4}, function(ask)
      local list = variables(ask, 1, "Locals")
      assert.equal("1", list.up.value)
      assert.equal("3", list.same.value)
      assert.equal('"b"', list["...[2]"].value)
      ask("continue", {})
    end)
  end)

  it("shows tables, modules and functions with their children, by pages", function()
    local text = [[
local lt = require "lutra"
local t = {10, 20, name = "x", nested = {deep = true}}
local long = {}
for i = 1, 2500 do long[i] = i end
local net = lt.nn.Linear(2, 3)
local data = lt.tensor{{1, 2}, {3, 4}}
local function f() return t end
stop_here = 1]]
    run(text, {8}, function(ask)
      local locals = variables(ask, 1, "Locals")
      local function children(name, arguments)
        arguments = arguments or {}
        arguments.variablesReference = locals[name].variablesReference
        local list, by_name = ask("variables", arguments).body.variables, {}
        for _, variable in ipairs(list) do by_name[variable.name] = variable end
        return by_name, list
      end
      local t = children "t"
      assert.equal("10", t["[1]"].value)
      assert.equal('"x"', t.name.value)
      assert.equal("str", t.name.type)
      assert.equal("t.nested", t.nested.evaluateName)
      assert.is_true(t.nested.variablesReference > 0)
      local _, long = children("long", {start = 2000, count = 3})
      assert.equal("[2001]", long[1].name)
      assert.equal(3, #long)
      _, long = children "long"
      assert.equal("1500 more", long[1001].value)
      assert.truthy(children("net").weight)
      local data = children "data"
      assert.equal("tensor {2, 2} float32", locals.data.type)
      assert.equal("{2, 2}", data.shape.value)
      assert.truthy(data["[2]"].value:find "3")
      assert.truthy(children("f").t)
      ask("continue", {})
    end)
  end)

  it("evaluates code in a frame, also assignments", function()
    local kernel = run(loop, {{line = 4, condition = "i == 5"}}, function(ask)
      local function evaluate(code) return ask("evaluate", {expression = code, frameId = 1}) end
      assert.equal("35", evaluate("total + i").body.result)
      assert.equal("", evaluate("total = 1000").body.result)
      assert.equal("1000", variables(ask, 1, "Locals").total.value)
      assert.is_true(evaluate("{1, 2}").body.variablesReference > 0)
      local reply = evaluate "nil + 1"
      assert.is_false(reply.success)
      assert.truthy(reply.message:find "attempt to perform arithmetic")
      assert.is_false(evaluate("1 1").success)
      assert.is_false(ask("evaluate", {expression = "1", frameId = 99}).success)
      ask("continue", {})
    end)
    assert.same({}, kernel.errors)
    assert.equal(1025, result) -- luacheck: ignore
  end)

  it("assigns a variable and an item of a table", function()
    run("local t = {a = 1}\nlocal n = 5\nset = t.a + n", {3}, function(ask)
      local locals, reference = variables(ask, 1, "Locals")
      local function assign(where_to, name, value)
        return ask("setVariable", {variablesReference = where_to, name = name, value = value})
      end
      local reply = assign(reference, "n", "n * 2")
      assert.equal("10", reply.body.value)
      assign(locals.t.variablesReference, "a", "7")
      reply = assign(reference, "none", "1")
      assert.is_false(reply.success)
      ask("continue", {})
    end)
    assert.equal(17, set) -- luacheck: ignore
  end)

  it("copies a variable to the session, and represents one richly", function()
    run(loop, {{line = 4, condition = "i == 2"}}, function(ask)
      local reply = ask("copyToGlobals",
        {srcVariableName = "square", dstVariableName = "kept", srcFrameId = 1})
      assert.is_true(reply.success)
      reply = ask("copyToGlobals",
        {srcVariableName = "no name", dstVariableName = "kept", srcFrameId = 1})
      assert.is_false(reply.success)
      reply = ask("richInspectVariables", {variableName = "square", frameId = 1})
      assert.equal("4", reply.body.data["text/plain"])
      ask("continue", {})
    end)
    assert.equal(4, kept) -- luacheck: ignore
  end)

  it("completes the names of a frame", function()
    run(loop, {{line = 4, condition = "i == 2"}}, function(ask)
      local targets = ask("completions", {text = "squ", column = 4, frameId = 1}).body.targets
      assert.equal("square", targets[1].label)
      assert.equal(0, targets[1].start)
      assert.equal(3, targets[1].length)
      ask("continue", {})
    end)
  end)

  it("continues when the front end disconnects", function()
    local kernel = run(loop, {4}, function(ask) ask("disconnect", {}) end)
    assert.same({"breakpoint"}, stops(kernel))
    assert.equal(55, result) -- luacheck: ignore
  end)

  it("ends at terminate", function()
    rawset(_G, "result", nil)
    local kernel = run(loop, {4}, function(ask) ask("terminate", {}) end)
    assert.truthy(kernel.errors[1]:find "stopped in the debugger")
    assert.is_nil(result) -- luacheck: ignore
  end)

  it("ends at an interrupt", function()
    local kept = host.keep(true)
    rawset(_G, "result", nil)
    local kernel = run(loop, {4}, function()
      io.popen("kill -INT $PPID"):close()
    end)
    host.keep(kept)
    assert.truthy(kernel.errors[1]:find "interrupted")
    assert.is_nil(result) -- luacheck: ignore
    assert.equal("continued", kernel.events[#kernel.events][1])
  end)

  it("keeps its breakpoints after an interrupt that the code caught", function()
    local kept = host.keep(true)
    local text = "caught = pcall(function() while true do kill() end end)\nafter = 1"
    kill = function() io.popen("kill -INT $PPID"):close() end -- luacheck: ignore
    local kernel = run(text, {2}, function(ask) ask("continue", {}) end)
    host.keep(kept)
    assert.is_false(caught) -- luacheck: ignore
    assert.same({"breakpoint"}, stops(kernel))
  end)
end)

describe("lt.breakpoint()", function()
  it("stops there when a front end debugs", function()
    local text = "local lt = require 'lutra'\nlocal x = 3\nlt.breakpoint()\nafter = x"
    local kernel = run(text, {}, function(ask)
      assert.equal("cell:3", (where(ask)))
      assert.equal("3", variables(ask, 1, "Locals").x.value)
      ask("next", {})
      assert.equal("cell:4", (where(ask)))
      ask("continue", {})
    end)
    assert.same({"breakpoint", "step"}, stops(kernel))
  end)

  it("is interrupted while stopped", function()
    local kept = host.keep(true)
    local kernel = run("require('lutra').breakpoint()\nafter_it = 1", {}, function()
      io.popen("kill -INT $PPID"):close()
    end)
    host.keep(kept)
    assert.truthy(kernel.errors[1]:find "interrupted")
    assert.equal("continued", kernel.events[#kernel.events][1])
    assert.is_nil(after_it) -- luacheck: ignore
  end)
end)

describe("errors", function()
  local failing = "local depth = 4\nlocal function bad(x)\n  error('boom ' .. x)\nend\nbad(depth)"

  it("that end a cell stop when the front end asks for it, and are reported afterwards", function()
    local kernel = new_kernel(function(ask)
      local at, frames = where(ask)
      assert.equal("function 'bad':3", at)
      assert.equal("4", variables(ask, 1, "Locals").x.value)
      assert.equal("4", variables(ask, 2, "Locals").depth.value)
      assert.equal(2, #frames)
      assert.truthy(ask("exceptionInfo", {}).body.description:find "boom 4")
      assert.equal("8", ask("evaluate", {expression = "x * 2", frameId = 1}).body.result)
      ask("continue", {})
    end)
    local filters = kernel:ask("initialize").body.exceptionBreakpointFilters
    assert.equal("uncaught", filters[1].filter)
    kernel:ask("setExceptionBreakpoints", {filters = {"uncaught"}})
    kernel:run(failing)
    kernel:ask "disconnect"
    assert.same({"exception"}, stops(kernel))
    assert.truthy(kernel.events[2][2].text:find "boom 4")
    assert.truthy(kernel.errors[1]:find "boom 4")
  end)

  it("do not stop otherwise, nor when they are caught", function()
    assert.same({}, stops(run(failing, {}, function() end)))
    local kernel = new_kernel()
    kernel:ask "initialize"
    kernel:ask("setExceptionBreakpoints", {filters = {"uncaught"}})
    kernel:run "pcall(error, 'caught')"
    kernel:ask "disconnect"
    assert.same({}, stops(kernel))
  end)
end)

describe("without a stop", function()
  it("the session's variables are listed, with their children", function()
    local kernel = new_kernel()
    kernel:run "local mine = {1, 2, 3}\nyours = 'text'"
    local by_name = {}
    local all = kernel:ask "inspectVariables"
    assert.is_nil(all.message)
    for _, variable in ipairs(all.body.variables) do
      by_name[variable.name] = variable
    end
    assert.equal("table of 3", by_name.mine.type)
    assert.equal('"text"', by_name.yours.value)
    local reply = kernel:ask("variables", {variablesReference = by_name.mine.variablesReference})
    assert.equal("[1]", reply.body.variables[1].name)
    local rich = kernel:ask("richInspectVariables", {variableName = "mine"})
    assert.truthy(rich.body.data["text/plain"]:find "1, 2, 3")
    assert.equal("6", kernel:ask("evaluate", {expression = "#mine + 3"}).body.result)
  end)

  it("a value whose __tostring fails is listed", function()
    local kernel = new_kernel()
    kernel:run "bad = setmetatable({}, {__tostring = function() error 'no' end})"
    assert.is_true(kernel:ask("inspectVariables").success)
  end)

  it("the modules with files are listed", function()
    local body = new_kernel():ask("modules", {moduleCount = 2}).body
    assert.equal(2, #body.modules)
    assert.is_true(body.totalModules > 2)
    assert.truthy(body.modules[1].path:find "%.lua$")
  end)
end)
