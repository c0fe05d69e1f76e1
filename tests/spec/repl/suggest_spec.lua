-- "did you mean": nearest words, unknown fields of the library, advice about errors.

local strict_table = require "lutra.internal.strict_table"
local lt = require "lutra"
local nearest = require "lutra.internal.nearest"
local screen = require "screen_support"
local suggest = require "lutra.repl.suggest"
local support = require "program_support"

-- The message of what f raises.
local function message_of(f)
  local ok, message = pcall(f)
  assert.falsy(ok)
  return message
end

-- The error of a piece of code, and the coroutine it ended.
local function fail(text)
  local f, message = load(text, "=piece", "t")
  if not f then return message end
  local co = coroutine.create(f)
  local ok
  ok, message = coroutine.resume(co)
  assert.falsy(ok)
  return message, co
end

-- Advice about a piece of code, whose source is known as that of a cell is.
local function hint(text)
  local host = require "lutra.repl.host"
  host.sources.piece = text
  local message, co = fail(text)
  local advice = suggest.hint(message, co)
  if co then coroutine.close(co) end -- ends the scopes that it was in, as no_grad
  return advice
end

describe("nearest.find", function()
  it("counts letters that are missing, wrong, too many or swapped", function()
    local names = {"matmul", "softmax", "transpose"}
    assert.equal("relu", nearest.find("relu6x", {"relu_", "relu", "reluu"}))
    for _, word in ipairs {"matmull", "matmu", "matnul", "mtamul"} do
      assert.equal("matmul", nearest.find(word, names))
    end
  end)

  it("takes case and underscores for no misspelling", function()
    assert.equal("ReLU", nearest.find("relu", {"ReLU", "Tanh"}))
    assert.equal("memory_live", nearest.find("memorylive", {"memory", "memory_live"}))
  end)

  it("gives nil when nothing is near, for one letter, and for the word itself", function()
    assert.is_nil(nearest.find("attention", {"matmul", "sum"}))
    assert.is_nil(nearest.find("x", {"y"}))
    assert.is_nil(nearest.find("sum", {"sum"}))
  end)

  it("does not take another word for a misspelling", function()
    local cases = {
      {"nothing", "string"}, {"numpy", "numel"}, {"load", "log"}, {"xy", "x"}, {"sum", "um_2"},
      {"a", "T"}, {"x", "X1"}, {"net", "next"},
    }
    for _, case in ipairs(cases) do assert.is_nil(nearest.find(case[1], {case[2]}), case[1]) end
    local lt_message = message_of(function() return lt.ones(2).numpy end)
    assert.falsy(lt_message:find("did you mean", 1, true), lt_message)
    assert.truthy(message_of(function() return lt.ones(2).RELU end):find "did you mean \"relu\"")
  end)

  it("expects words", function()
    assert.has_error(function() nearest.find(nil, {"a"}) end)
  end)

  it("takes the names of a table that are not its own affair", function()
    local names = nearest.names(setmetatable({a = 1, _b = 2, [3] = 4}, {__index = error}))
    assert.same({"a"}, names)
  end)
end)

describe("unknown fields of the library's tables", function()
  it("are errors that name the nearest", function()
    local cases = {
      {function() return lt.ranndn end,
        'lt has no field "ranndn"\nhint: did you mean \'lt.randn\'?'},
      {function() return lt.cuuda end,
        'lt has no field "cuuda"\nhint: did you mean \'lt.cuda\'?'},
      {function() return lt.nn.Linaer end,
        'nn has no field "Linaer"\nhint: did you mean \'nn.Linear\'?'},
      {function() return lt.nn.relu end,
        'nn has no field "relu"\nhint: did you mean \'nn.ReLU\'?'},
      {function() return lt.F.sofmax end,
        'F has no field "sofmax"\nhint: did you mean \'F.softmax\'?'},
      {function() return lt.optim.adamw end,
        'optim has no field "adamw"\nhint: did you mean \'optim.AdamW\'?'},
      {function() return lt.data.Dataloader end, "did you mean 'data.DataLoader'?"},
      {function() return lt.cuda.memory_alocated end, "did you mean 'lt.cuda.memory_allocated'?"},
      {function() return lt.nn.init.kaiming end, 'nn.init has no field "kaiming"'},
      {function() return lt.nn.init.kaiming_normal end,
        'nn.init has no field "kaiming_normal"\nhint: did you mean \'nn.init.kaiming_normal_\'?'},
      {function() return lt.nn.utils.clip_grad_norm end,
        "did you mean 'nn.utils.clip_grad_norm_'?"},
      {function() return lt.backends.cpu.capabilty end, "capability'?"},
      {function() return lt.autograd.gard end, "did you mean 'lt.autograd.grad'?"},
      {function() return lt.nn[1] end, "nn has no field 1"},
    }
    for _, case in ipairs(cases) do
      local message = message_of(case[1])
      assert.truthy(message:find(case[2], 1, true), message)
      assert.truthy(message:find "^[^\n]*suggest_spec.lua:%d+: ", message)
    end
  end)

  it("are given for arguments, too", function()
    local message = message_of(function() lt.data.DataLoader({1}, {batchsize = 2}) end)
    assert.truthy(message:find("got 'batchsize'\nhint: did you mean 'batch_size'?", 1, true))
    message = message_of(function() lt.nn.Linear(2, 3, {entirely = 1}) end)
    assert.truthy(message:find("got 'entirely'", 1, true), message)
  end)

  it("are given for a class without forward", function()
    local Net = lt.nn.Module:extend "Net"
    local message = message_of(function() Net()(1) end)
    assert.truthy(message:find "Net: cannot call the module: its class has no method forward$",
      message)
    function Net.forwrad() end
    message = message_of(function() Net()(1) end)
    assert.truthy(message:find("no method forward\nhint: rename its method forwrad to forward", 1,
      true), message)
  end)

  it("leave rawget, assigning and what is loaded when it is read as they were", function()
    assert.is_nil(rawget(lt, "nothing_here"))
    lt.something_new = 1
    assert.equal(1, lt.something_new)
    lt.something_new = nil
    assert.truthy(lt.cuda and lt.progress and lt.backends.cuda)
  end)

  it("fields.strict makes any table so", function()
    local t = strict_table.strict({alpha = 1}, "my.table")
    assert.equal(1, t.alpha)
    assert.truthy(message_of(function() return t.alhpa end):find 'my.table has no field "alhpa"\n'
      .. "hint: did you mean 'my.table.alpha'?")
  end)
end)

describe("advice about errors", function()
  it("finds a near global, and the table that has the name", function()
    assert.equal("did you mean 'print'?", hint "prnt(1)")
    assert.equal("did you mean 'math.sqrt'?", hint "sqrt(2)")
    assert.equal("did you mean 'lt.nn.Linear'?",
      hint "local lt = require 'lutra' Linear(2, 3)")
    assert.equal("did you mean 'lt.sqrt' or 'math.sqrt'?",
      hint "local lt = require 'lutra' sqrt(2)")
    assert.is_nil(hint "entirely_unknown_word()")
  end)

  it("says how a script declares what the prompt has", function()
    assert.equal('a script must declare it: local lt = require "lutra"', hint "lt.zeros(2)")
    assert.equal('a script must declare it: local nn = require "lutra.nn"', hint "nn.Linear(2, 3)")
    assert.equal('a script must declare it: local tensor = require("lutra").tensor',
      hint "tensor{1}")
  end)

  it("finds a near local variable and upvalue of the frame", function()
    assert.equal("did you mean 'counter'?", hint "local counter = 1 conter.x = 1")
    assert.equal("did you mean 'counter'?",
      hint "local counter = 1 local function f() return counter and conter.x end f()")
  end)

  it("finds the near field of the table before the dot", function()
    assert.equal("did you mean 'string.format'?", hint "string.formt('x')")
    assert.equal("did you mean 't.beta.gamma'?",
      hint "local t = {beta = {gamma = print}} t.beta.gama()")
    assert.equal("did you mean 'options.rate'?",
      hint "local options = {rate = 1} return options.rtae + 1")
  end)

  it("finds the near method of a module, of an object, of a string", function()
    assert.equal("did you mean 'net:forward'?",
      hint "local net = require('lutra').nn.ReLU() net:forwrad(1)")
    assert.equal("did you mean 's:upper'?", hint "local s = 'x' s:uper()")
    assert.equal("did you mean 'a:walk'?",
      hint "local A = {walk = print} A.__index = A local a = setmetatable({}, A) a:wlak()")
  end)

  it("runs nothing of the user's", function()
    rawset(_G, "suggest_ran", false)
    hint [[local t = setmetatable({}, {__index = function() return nil end, __pairs = function()
      suggest_ran = true end, __tostring = function() suggest_ran = true end}) t.foo()]]
    assert.is_false(rawget(_G, "suggest_ran"))
    rawset(_G, "suggest_ran", nil)
  end)

  it("knows what other languages write", function()
    local cases = {
      {"x != 1", "Lua writes ~= for !="}, {"x += 1", "Lua writes x = x + 1 for x += 1"},
      {"x++", "Lua writes x = x + 1 for x++"}, {"if x && y then end", "Lua writes and for &&"},
      {"import torch", "Lua writes local name = require \"name\" for import name"},
      {"def f(x):", "Lua writes function name(x) ... end for def"},
      {"if x > 1:\n  y()", "Lua writes if ... then ... end"},
      {"for i in range(3):\n  print(i)", "Lua writes for i = 1, n do ... end for a range"},
      {"f(dim=1)", "put named arguments in braces: f{dim = 1} or f(x, {dim = 1})"},
      {"require 'lutra'.ones(2).shape()", "a shape is a field: x.shape, x.shape[1] or x:size(1)"},
      {"require 'lutra'.plot({1, 2})", "lt.plot is a table of functions: lt.plot.line(losses)"},
      {"return ({} == {}):sum()", "== is one boolean; a:eq(b) compares the elements of tensors"},
      {"torch.zeros(3)", "the library is lt: lt.zeros(2, 3)"},
        {"len({})", "Lua writes #x for len(x)"},
      {"print(None.x)", "Lua writes nil for None"},
      {"x = [1, 2]", "Lua writes {1, 2} for [1, 2]"},
      {"x = 1 if y else 2", "Lua writes c and a or b for a if c else b"},
      {"return 'a' + 'b'", "Lua writes a .. b to join strings"},
      {"local t = {} t.append(1)", "Lua writes t[#t + 1] = x, or table.insert(t, x)"},
      {"return x:shape", "read a field with a dot, x.shape; call a method with a colon, x:sum()"},
    }
    for _, case in ipairs(cases) do assert.equal(case[2], hint(case[1])) end
  end)

  it("knows the syntax of other languages", function()
    local cases = {
      {"if not x in t then end", "Lua writes t[x] ~= nil for x in t"},
      {"if x in t then end", "Lua writes t[x] ~= nil for x in t"},
      {"local x = 1 print x", "Lua writes print(x) for print x"},
      {"x = [i for i in range(10)]", "Lua fills a list in a loop: for i = 1, n do t[i] = ... end"},
      {"if (x == nil) { print(1) }", "Lua writes if ... then ... end, without braces"},
      {"while (true) { x() }", "Lua writes while ... do ... end, without braces"},
      {"function f(x) { return x }", "Lua writes function f(x) ... end, without braces"},
      {"function f(x): return x", "Lua writes function f(x) ... end, without a colon"},
      {"raise ValueError(1)", "Lua writes error(\"message\") for raise"},
      {"except:\n  y = 1", "Lua writes local ok, result = pcall(f) for try"},
      {"x = 1_000", "Lua writes 1000000 or 1e6, without _"},
      {"x = {1: 2}", "Lua writes {[1] = 2} for {1: 2}, {a = 2} for {\"a\": 2}"},
      {"x = {'a': 2}", "Lua writes {[1] = 2} for {1: 2}, {a = 2} for {\"a\": 2}"},
      {"local t = {\na = 1\nb = 2}", "a comma or a } may be missing"},
      {"local t = {1, 2 3}", "a comma or a } may be missing"},
      {"print('a' b)", "a comma, an operator or a ) may be missing"},
      {"t = (1, 2)", "Lua writes {1, 2} for (1, 2)"},
      {"global x", "a variable is global where nothing declares it local"},
      {"assert x == 1", "Lua writes assert(x == 1, \"message\")"},
      {"while x do: y() end", "Lua writes do without a colon"},
      {"x := 5", "Lua writes x = 5 for x := 5"}, {"if x <> y then end", "Lua writes ~= for <>"},
      {"if x === y then end", "Lua writes == for ==="},
      {"f = x => x", "Lua writes function(x) return x end; and >= for at least"},
      {"if x = 1 then end", "Lua writes == to compare"},
      {"x: int = 3", "Lua declares no types: local x = 3"},
      {"return x[1, 2]", "an element is x[{1, 2}], a range x[\"1:3, 2\"]"},
      {"f'{x}'", "Lua writes (\"%d\"):format(x) for f\"{x}\""},
      {"return '%d' % 5", "Lua writes (\"%d\"):format(x) for \"%d\" % x"},
      {"local function f() self.x = 1 end f()",
        "self exists only in methods: function Net:forward(x), with a colon"},
      {"for k in {1} do end", "Lua writes for key, value in pairs(t) do, of lists ipairs(t)"},
      {"local lt = require 'lutra' for k in lt.ones(2) do end",
        "Lua writes for i = 1, #x do ... x[i] ... end"},
      {"local lt = require 'lutra' local x = lt.ones(2) return x:shape()",
        "read a field with a dot, x.shape; call a method with a colon, x:sum()"},
      {"local lt = require 'lutra' return lt.all(lt.ones(2) == lt.ones(2))",
        "== is one boolean; a:eq(b) compares the elements of tensors"},
      {"local lt = require 'lutra' return lt.where(true, lt.ones(2), 0)",
        "== is one boolean; a:eq(b) compares the elements of tensors"},
      {"return 1\nprint(2)", "return must be the last statement of its block: do return end"},
      {"local t = {} local x = 1; t.x", "a value alone is not a statement"},
      {"for i = 1, 2 do\nif i then\n x()\nelse if j then\n y()\nend\nend",
        "Lua writes elseif in one word; else if opens another block"},
    }
    for _, case in ipairs(cases) do assert.equal(case[2], hint(case[1]), case[1]) end
    assert.is_nil(hint "for x in y do local a b end")
  end)

  it("finds by the indentation the block that has no end", function()
    local function of(text) return hint((text:gsub("\n *|", "\n"))) end
    assert.equal("the 'for' in line 3 seems to have no end (by its indentation)",
      of [[local function f(x)
      |  if x then
      |    for i = 1, 3 do
      |      print(i)
      |  end
      |end]])
    assert.equal("the 'if' in line 3 seems to have no end (by its indentation)", of [[local t = {}
      |function t.f(x)
      |  if x then
      |    x()
      |end
      |t.f(1)]])
    -- where the indentation tells nothing, nothing is said
    assert.is_nil(of "local function f(x) if x then x()\nend")
    assert.is_nil(of "if x then\nfor i = 1, 2 do\nx()\nend")
  end)

  it("names what is nil, where an argument is", function()
    local start = "local lt = require 'lutra' local h = lt.ones(3) "
    local cases = {
      {"return h:sum() + undefined_thing", "undefined_thing is not defined"},
      {"local counter = 1 return h + conter", "conter is not defined; did you mean 'counter'?"},
      {"return lt.add(h, sqrt)", "sqrt is not defined; did you mean 'lt.sqrt' or 'math.sqrt'?"},
      {"return lt.add(h,\n undefined_thing)", "undefined_thing is not defined"},
      {"local k return lt.add(h, k)", "the variable k is nil"},
      {"local t = {rate = 1} return h + t.rtae", "t.rtae is nil; did you mean 't.rate'?"},
      {"for i in ipairs(undefined_thing) do end", "undefined_thing is not defined"},
      {"string.rep(undefined_thing)", "undefined_thing is not defined"},
      {"local a = h + undefined_thing", "undefined_thing is not defined"},
      {"undefined_thing = h + nil", nil}, {"return h + nil", nil},
      {"local f = function(a) return a end return h + f()", nil},
      {"local t = {undefined_thing = 1} return h + t.y", nil},
      {"return h + lt.ones(4), undefined_thing", nil}, -- not about nil
    }
    for _, case in ipairs(cases) do assert.equal(case[2], hint(start .. case[1]), case[1]) end
  end)

  it("knows that lists count from 1", function()
    local list = "local list = {1, 2, 3} "
    local cases = {
      {"for i = 0, #list do local x = 1 + list[i] end", "list[0] is nil: indices start at 1"},
      {"return list[4].x", "list[4] is nil: the last index is 3"},
      {"return list[0] + list[1]", "list[0] is nil: indices start at 1"},
      {"return list[9] + 1", nil}, {"list.x[0] = 1", nil},
    }
    for _, case in ipairs(cases) do assert.equal(case[2], hint(list .. case[1]), case[1]) end
  end)

  it("recognizes a line that continues the one before", function()
    local advice = "the ( of the next line calls the value of this line: put a ; between them"
    assert.equal(advice, hint "local t = {f = function() return {} end}\nt.f()\n(t.f or t)()")
    assert.equal(advice, hint "local a = 1\nlocal b = a\n(print or 1)()")
    assert.is_nil(hint "local a = 1\na()\n(print or 1)()")
  end)

  it("knows dots from colons", function()
    local start = "local lt = require 'lutra' local x = lt.ones(3) local net = lt.nn.Linear(2, 3) "
    local cases = {
      {"lt:zeros(3)", "call a function of lt with a dot: lt.zeros(...)"},
      {"lt.nn:Linear(2, 3)", "call a function of lt.nn with a dot: lt.nn.Linear(...)"},
      {"math:sqrt(2)", "call a function of math with a dot: math.sqrt(...)"},
      {"x.reshape(3, 1)", "call a method with a colon: x:reshape(...)"},
      {"local o = lt.optim.SGD(net:parameters(), {lr = 1}) o.step()",
        "call a method with a colon: o:step(...)"},
      {"net.forward(x)", "call a method with a colon: net:forward(...)"},
      {"local s = 'a' s.rep(3)", "call a method with a colon: s:rep(...)"},
      {"local A = {} A.__index = A function A:f() return self.x.y end local a = setmetatable({}, A)"
        .. "\na.f(1)", "call a method with a colon: a:f(...)"},
      {"x.sum()", nil}, {"x:reshape(7)", nil}, {"lt.reshape(x, 7)", nil},
      {"lt.nn.Linear.forward(net, x)", nil},
    }
    for _, case in ipairs(cases) do assert.equal(case[2], hint(start .. case[1]), case[1]) end
  end)

  it("knows methods of modules that are defined with a dot", function()
    local start = "local lt = require 'lutra' local Net = lt.nn.Module:extend 'Net' "
    assert.equal("define the method with a colon: function Net:init(...)",
      hint(start .. "function Net.init(n) local k = n + 1 return k end Net(3)"))
    assert.equal("define the method with a colon: function Net:forward(...)",
      hint(start .. "function Net.forward(x) return x:relu() end Net()(lt.ones(1))"))
    assert.is_nil(hint(start .. "function Net.forward(self, x) return x + self.n end "
      .. "Net()(lt.ones(1))"))
  end)

  it("names the class of the value before a dot in place of a colon", function()
    local cases = {
      ["local opt = lt.optim.Adam({lt.ones(1)}) opt.step()"] =
        "step: expected an Adam for argument 'self', got nil\nhint: call a method with a colon: "
          .. "opt:step(...)",
      ["local d = lt.distributions.Normal(0, 1) d.sample()"] =
        "sample: expected a Normal for argument 'self', got nil",
      ["local net = lt.nn.Linear(1, 1) net.forward(lt.ones(1))"] =
        "forward: expected a module for argument 'self', got a tensor of shape {1}",
    }
    for code, expected in pairs(cases) do
      local text = "local lt = require 'lutra' " .. code
      require("lutra.repl.host").sources.piece = text
      local _, co = fail(text)
      local message = suggest.without_self(co)
      coroutine.close(co)
      assert.truthy(message and message:find(expected, 1, true), message)
    end
  end)

  it("knows a variable of the name of a field that is not there", function()
    assert.equal("the variable linear exists, but t.linear was never set",
      hint "local t, linear = {}, 1 t.linear()")
  end)

  it("is not misled by strings and comments", function()
    assert.is_nil(hint "local s = 'x != 1' local = 2")
    assert.is_nil(hint "local = 2 -- x += 1")
  end)

  it("never raises and says nothing of what it does not know", function()
    for _, message in ipairs {"", "x", "a nil value (field '?')", "attempt to call a nil value (",
      "nowhere:1: attempt to call a nil value (field 'foo')", "piece:99: syntax error near 'x'"} do
      assert.is_nil(suggest.hint(message))
    end
    assert.is_nil(suggest.hint(nil))
    assert.is_nil(suggest.hint({}, coroutine.create(print)))
    assert.is_nil(suggest.hint('lt has no field "foo"\nhint: did you mean \'lt.fmod\'?'))
  end)

  it("explains a name without an error", function()
    assert.equal("did you mean 'print'?", suggest.global "prnt")
    assert.is_nil(suggest.global "entirely_unknown_word")
    assert.is_nil(suggest.global "e") -- lt.e is not meant
    local function f()
      local counter = 1
      local variables = suggest.variables(1)
      return counter, suggest.global("conter", variables)
    end
    assert.same({1, "did you mean 'counter'?"}, {f()})
  end)
end)

describe("the prompt", function()
  it("advises below the message of an error", function()
    local result = support.session "prnt(1)\nlt.ranndn(3)\nlocal net = nn.ReLU()\nnet:forwrad(1)\n"
    assert.truthy(result.err:find "prnt'%)\n[^\n]*did you mean 'print'%?\n")
    assert.truthy(result.err:find('lt has no field "ranndn"\nhint: did you mean \'lt.randn\'?', 1,
      true))
    assert.truthy(result.err:find "forwrad'%)\n[^\n]*did you mean 'net:forward'%?\n")
  end)

  it("prints nil for an undefined name, and what may be meant on stderr", function()
    local result = support.session("tensro\nentirely_unknown\nx = 1\nx\nlocal y = nil\ny\n"
      .. "Linear\nwhos\nc\n")
    assert.equal("nil\nnil\n1\nnil\nnil\nnil\nnil\n", result.out)
    assert.equal("(tensro is not defined; did you mean 'tensor'?)\n"
      .. "(Linear is not defined; did you mean 'nn.Linear'?)\n"
      .. "(whos is not defined; did you mean ':whos'?)\n", result.err)
  end)

  it("advises about commands", function()
    local result = support.session ":hlep\n"
    assert.truthy(result.err:find("unknown command :hlep\nhint: did you mean :help?", 1, true))
  end)
end)

describe("a script", function()
  it("advises below the message of an error", function()
    local path = support.file "local t = {rate = 1}\nprint(t.rtae + 1)\n"
    local result = support.run(path)
    os.remove(path)
    assert.equal(1, result.status)
    assert.truthy(result.err:find("did you mean 't.rate'?", 1, true), result.err)
  end)
end)

for _, columns in ipairs {40, 120} do
  it(("advises on a terminal of %d columns"):format(columns), function()
    if not screen.available() then return pending "needs tmux" end
    local s <close> = screen.open{columns = columns}
    s:expect_last "[1]>"
    s:enter "prnt(1)"
    s:expect "did you mean 'print'?"
    s:enter "tensro"
    s:wait(function() -- the narrow screen breaks it
      local said = "(tensro is not defined; did you mean 'tensor'?)"
      return s:text():gsub("\n", ""):find(said, 1, true)
    end)
  end)
end
