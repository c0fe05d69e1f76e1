-- history_request, comm messages, and user_expressions, as the protocol describes them.

local comm = require "lutra.repl.kernel.comm"
local expressions = require "lutra.repl.kernel.expressions"
local history = require "lutra.repl.kernel.history"
local json = require "lutra.internal.json"
local kernel_support = require "kernel_support"
local support = require "program_support"

local kernel

before_each(function() kernel = kernel_support.kernel() end)

-- The result of Lua code in a fresh program, whose state folder is `home`, as JSON text.
local function in_program(home, code)
  local file = support.file(code)
  local result = support.shell(("XDG_STATE_HOME=%s HOME=%s %s %s"):format(home, home,
    support.quote(support.program), file))
  support.remove(file)
  assert.equal("", result.err)
  return assert(json.decode(result.out))
end

describe("history_request", function()
  local home
  local old = "old = 1\nfor i = 1, 2 do\\n  print(i)\\nend\nx = 2\n" -- the file of earlier sessions

  before_each(function()
    home = support.folder()
    support.shell("mkdir " .. home .. "/lutra")
  end)

  after_each(function() support.remove(home) end)

  -- The history of a kernel that ran these cells in a program with that file, or with
  -- another `text` in it.
  local function ask(cells, content, text)
    do
      local file <close> = assert(io.open(home .. "/lutra/history", "w"))
      file:write(text or old)
    end
    return in_program(home, ([[
      local json = require "lutra.internal.json"
      require("lutra.repl.front").notebook = {}
      local history = require "lutra.repl.kernel.history"
      local kernel = {session = {cells = {}}}
      for number, cell in ipairs(json.decode %q) do
        history.record(kernel, number, cell)
      end
      history.record_output(kernel, 1, "one")
      local reply = history.history_request(kernel, json.decode %q)
      io.write(json.encode(reply))
    ]]):format(json.encode(json.array(cells)), json.encode(content))).history
  end

  local new = {"x = 2", "y = 'ä'", "y"}

  it("returns the last n cells, of this session and of earlier ones", function()
    assert.same({{0, 2, "y = 'ä'"}, {0, 3, "y"}}, ask(new, {hist_access_type = "tail", n = 2,
      output = false, raw = true}))
    assert.same({{-1, 2, "for i = 1, 2 do\n  print(i)\nend"}, {-1, 3, "x = 2"}, {0, 1, "x = 2"},
      {0, 2, "y = 'ä'"}, {0, 3, "y"}}, ask(new, {hist_access_type = "tail", n = 5}))
    assert.equal(6, #ask(new, {hist_access_type = "tail", n = 100}))
    assert.same({}, ask(new, {hist_access_type = "tail", n = 0}))
    assert.same({}, ask(new, {hist_access_type = "tail", n = -1}))
  end)

  it("returns a range of this session, or of the earlier ones", function()
    assert.same({{0, 1, "x = 2"}, {0, 2, "y = 'ä'"}}, ask(new, {hist_access_type = "range",
      session = 0, start = 1, stop = 3}))
    assert.same({{0, 3, "y"}}, ask(new, {hist_access_type = "range", session = 0, start = 3,
      stop = json.null}))
    assert.same({{-1, 1, "old = 1"}}, ask(new, {hist_access_type = "range", session = -1,
      start = 0, stop = 2}))
    assert.same({}, ask(new, {hist_access_type = "range", session = -2, start = 1, stop = 5}))
  end)

  it("searches for a pattern, the last n, each once if asked", function()
    local function search(pattern, unique, n)
      return ask(new, {hist_access_type = "search", pattern = pattern, unique = unique, n = n})
    end
    assert.same({{-1, 3, "x = 2"}, {0, 1, "x = 2"}}, search("x*"))
    assert.same({{0, 1, "x = 2"}}, search("x*", true))
    assert.same({{0, 1, "x = 2"}}, search("x*", false, 1))
    assert.same({{0, 2, "y = 'ä'"}}, search "y = '?'")
    assert.same({{-1, 2, "for i = 1, 2 do\n  print(i)\nend"}}, search "*print*")
    assert.same({}, search "print")
    assert.same({{0, 3, "y"}}, search "y")
    assert.equal(6, #search "*")
  end)

  it("returns the outputs if asked, null where there is none", function()
    local list = ask(new, {hist_access_type = "range", session = 0, start = 1, stop = 3,
      output = true})
    assert.same({0, 1, {"x = 2", "one"}}, list[1])
    assert.same({0, 2, {"y = 'ä'", json.null}}, list[2])
  end)

  it("adds the cells to the file of the prompt", function()
    ask(new, {hist_access_type = "tail", n = 1})
    local file <close> = assert(io.open(home .. "/lutra/history"))
    assert.equal(old .. "x = 2\ny = 'ä'\ny\n", file:read "a")
  end)

  it("is empty without cells", function()
    assert.same({}, ask({}, {hist_access_type = "tail", n = 5}, ""))
    assert.same({}, ask({}, {hist_access_type = "search", pattern = "*"}, ""))
  end)

  it("reports a field of a wrong type", function()
    local function reports(content, expected)
      assert.error_matches(function() history.history_request(kernel, content) end, expected)
    end
    reports({}, "expected a string as 'hist_access_type', got nil")
    reports({hist_access_type = "all"}, "expected tail, range or search as 'hist_access_type'")
    reports({hist_access_type = "tail", n = 1.5}, "expected an integer as 'n', got number")
    reports({hist_access_type = "search", pattern = json.null}, "'pattern', got null")
  end)

  it("matches long patterns of many stars in time", function()
    local text = ("a"):rep(20000)
    assert.is_false(history.matches(("*a"):rep(20) .. "b", text))
    assert.is_true(history.matches(("*a"):rep(20) .. "*", text))
    assert.is_true(history.matches("*", ""))
    assert.is_false(history.matches("?", ""))
    assert.is_true(history.matches("[%a]", "[%a]"))
  end)
end)

describe("user_expressions", function()
  local function evaluate(list)
    return kernel_support.sent(expressions.evaluate(kernel, json.decode(json.encode(list))))
  end

  it("are values as text", function()
    kernel.session:execute "local x = 20"
    local replies = evaluate{a = "x + 22", b = '"text"', c = "1, 2", d = ""}
    assert.same({status = "ok", data = {["text/plain"] = "42"}, metadata = {}}, replies.a)
    assert.equal('"text"', replies.b.data["text/plain"])
    assert.truthy(replies.c.data["text/plain"]:find "^1%s+2$")
    assert.equal("", replies.d.data["text/plain"])
    local x = evaluate{x = 'require("lutra").ones(2)'}.x.data
    assert.truthy(x["text/html"]:find("<table", 1, true))
  end)

  it("fail one by one", function()
    local replies = evaluate{good = "1", bad = "nothing.x", wrong = "1 +", cut = "x = = 1",
      raised = "error 'boom'"}
    assert.equal("ok", replies.good.status)
    for _, name in ipairs {"bad", "wrong", "cut", "raised"} do
      local one = replies[name]
      assert.equal("error", one.status)
      assert.equal("string", type(one.ename))
      assert.equal("table", type(one.traceback))
    end
    assert.truthy(replies.raised.evalue:find("boom", 1, true))
    assert.truthy(replies.bad.evalue:find("nothing", 1, true))
  end)

  it("print nothing, and leave _ and the last error", function()
    local s = kernel.session
    s.show = function() end
    s:execute "42"
    s:execute "error 'first'"
    local errors, failure, before = #kernel.errors, s.failure, _G._
    evaluate{a = "7", b = "error 'second'"}
    assert.equal(errors, #kernel.errors)
    assert.equal(failure, s.failure)
    assert.equal(before, _G._)
  end)

  it("may fail while they are shown", function()
    local one = evaluate{a = "setmetatable({}, {__tostring = function() error 'shown' end})"}.a
    assert.truthy(one.status == "ok" or one.evalue:find("shown", 1, true))
  end)

  it("must be strings", function()
    assert.equal("error", evaluate{a = 3}.a.status)
    assert.same({}, expressions.evaluate(kernel, json.null))
    assert.same({}, expressions.evaluate(kernel, nil))
  end)
end)

describe("comm messages", function()
  local function info(content)
    return kernel_support.sent(comm.comm_info_request(kernel, content or {}))
  end

  it("to an unknown target close the comm", function()
    assert.is_nil(comm.comm_open(kernel, {comm_id = "a", target_name = "none", data = {}}))
    assert.same({{"comm_close", {comm_id = "a", data = {}}}}, kernel.sent)
    assert.same({status = "ok", comms = {}}, info())
  end)

  it("to unknown comms are ignored", function()
    assert.is_nil(comm.comm_msg(kernel, {comm_id = "a", data = {}}))
    assert.is_nil(comm.comm_close(kernel, {comm_id = "a", data = {}}))
    assert.same({}, kernel.sent)
    assert.same({}, kernel.errors)
  end)

  it("reach a registered target", function()
    local got = {}
    comm.register(kernel, "mine", function(one, data)
      got[#got + 1] = data.x
      one.on_message = function(later) got[#got + 1] = later.x end
      one.on_close = function() got[#got + 1] = "closed" end
    end)
    comm.comm_open(kernel, {comm_id = "a", target_name = "mine", data = {x = 1}})
    comm.comm_msg(kernel, {comm_id = "a", data = {x = 2}})
    assert.same({a = {target_name = "mine"}}, info().comms)
    assert.same({a = {target_name = "mine"}}, info{target_name = "mine"}.comms)
    assert.same({}, info{target_name = "other"}.comms)
    comm.comm_close(kernel, {comm_id = "a", data = {}})
    assert.same({1, 2, "closed"}, got)
    assert.same({}, info().comms)
    assert.same({}, kernel.sent)
  end)

  it("to a target that fails report the error and close the comm", function()
    comm.register(kernel, "bad", function() error "boom" end)
    comm.comm_open(kernel, {comm_id = "b", target_name = "bad", data = {}})
    assert.equal(1, #kernel.errors)
    assert.equal("comm_close", kernel.sent[1][1])
    assert.same({}, info().comms)
  end)

  it("without an identifier are an error", function()
    for _, kind in ipairs {"comm_open", "comm_msg", "comm_close"} do
      assert.error_matches(function() comm[kind](kernel, {}) end, "expected a string as 'comm_id'")
    end
  end)

  it("need a name and a function to register", function()
    assert.error_matches(function() comm.register(kernel, 3, print) end,
      "register: expected a string for argument 'target_name', got number")
    assert.error_matches(function() comm.register(kernel, "a") end,
      "register: expected a function for argument 'open', got nil")
  end)
end)
