-- The session's values: :keep, :load and :reset; :reload of modules.

local support = require "program_support"
local devices = require "device_support"
local screen = require "screen_support"

local session, quote = support.session, support.quote

local has = support.has

local folder

before_each(function() folder = support.folder() end)
after_each(function() support.remove(folder) end)

local function path(name) return folder .. "/" .. name end

local function write(name, text)
  local file = assert(io.open(path(name), "wb"))
  file:write(text)
  file:close()
end

local function read(name)
  local file = io.open(path(name), "rb")
  local text = file and file:read "a"
  if file then file:close() end
  return text
end

-- Keeps what `made` makes, then runs `asked` in a new session that loads it. Returns the output of
-- `asked`, and what :keep and :load said.
local function through(made, asked, arguments)
  local kept = session(made .. "\n:keep " .. path "w.st" .. "\nprint 'kept'\n", arguments)
  assert.equal("", kept.err)
  local result = session(":load " .. path "w.st" .. "\nprint '--'\n" .. asked .. "\n", arguments)
  assert.equal("", result.err)
  local said, out = result.out:match "^(.-)%-%-\n(.*)$"
  return out, kept.out, said
end

describe(":keep and :load", function()
  it("bring tensors back with dtype, shape and values", function()
    local out = through("a = lt.tensor{{1, 2}, {3, 4}}\nb = lt.tensor{true, false}\n"
      .. "c = lt.tensor(2.5, {dtype = 'bfloat16'})\nd = lt.zeros{0, 3}\n"
      .. "e = lt.arange(6, {dtype = 'int64'}):reshape{2, 3}:t()",
      "a, b, c, c.dtype, d, e, e.dtype")
    assert.equal(session("lt.tensor{{1, 2}, {3, 4}}, lt.tensor{true, false}, "
      .. "lt.tensor(2.5, {dtype = 'bfloat16'}), 'bfloat16', lt.zeros{0, 3}, "
      .. "lt.arange(6, {dtype = 'int64'}):reshape{2, 3}:t(), 'int64'\n").out, out)
  end)

  it("name some of many variables", function()
    local _, kept, loaded = through("for i = 1, 1000 do _G['v' .. i] = i; _G['f' .. i] = print end",
      "v1000")
    has(kept, "kept 0 tensors in 1000 variables: v1, v10, v100,")
    has((kept:gsub("%s+", " ")), "and 960 more not kept: f1 (function), f10")
    has((loaded:gsub("%s+", " ")), "and 960 more")
  end)

  it("bring back locals as locals, constants as constants, globals as globals", function()
    local out = through("local l, c <const> = lt.ones{2}, lt.zeros{1}\ng = 5",
      "l, rawget(_G, 'l'), rawget(_G, 'g')")
    assert.equal("tensor{1., 1.}\nnil\n5\n", (out:gsub("\t", "\n")))
    local result = session(":load " .. path "w.st" .. "\nc = 3\n")
    has(result.err, "attempt to assign to const variable 'c'")
  end)

  it("bring back what requires a gradient, and parameters", function()
    local out = through("p = nn.Parameter(lt.ones{2})\nf = nn.Parameter(lt.ones{2}, false)\n"
      .. "x = lt.ones({2}, {requires_grad = true})\ny = x * 2",
      "lt.is_parameter(p), p.requires_grad, lt.is_parameter(f), f.requires_grad\n"
      .. "lt.is_parameter(x), x.requires_grad, x.is_leaf, y.requires_grad")
    assert.equal("true\ttrue\ttrue\tfalse\nfalse\ttrue\ttrue\tfalse\n", out)
  end)

  it("bring back numbers, strings and booleans exactly", function()
    local text = [["a\"b\\\n\0\255é '"]]
    local out = through("i = math.mininteger f = 0.1 g = 3.0 z = -0.0 n = 0/0 h = 1/0\n"
      .. "b = false e = '' s = " .. text,
      "i == math.mininteger, f == 0.1, math.type(g), 1/z, n ~= n\n"
      .. "h, b, e == '', s == " .. text)
    assert.equal('true\ttrue\t"float"\t-inf\ttrue\ninf\tfalse\ttrue\ttrue\n', out)
  end)

  it("bring back nested, shared and cyclic tables", function()
    local out = through("x = lt.ones{2}\nt = {x, {a = {b = x}}, [2.5] = 'f', [true] = 1}\n"
      .. "t.self = t\nu = t[2]\nd = {} m = d for i = 1, 1e5 do m.x = {} m = m.x end",
      "rawequal(t[1], x), rawequal(t[2].a.b, x), t[2.5], t[true], t.self == t, t[2] == u\n"
      .. "n = 0 while d.x do d = d.x n = n + 1 end\nn")
    assert.equal('true\ttrue\t"f"\t1\ttrue\ttrue\n100000\n', out)
  end)

  it("bring back views as views of the same memory", function()
    local out = through("x = lt.arange(6):reshape{2, 3}\nv = x:t()\nr = x[2]\ns = x\nc = x:clone()",
      "x[2][1] = 100\nv[1][2]:item(), r[1]:item(), rawequal(s, x), c[2][1]:item()\n"
      .. "v:shares_storage(x), r:shares_storage(x), c:shares_storage(x)")
    assert.equal("100\t100\ttrue\t4\ntrue\ttrue\tfalse\n", out)
  end)

  it("say which tensors will not share memory any more", function()
    local out, said = through("a = lt.arange(6)\nb, c, a = a:narrow(1, 1, 4), a:narrow(1, 3, 4)",
      "b, c, b:shares_storage(c)")
    assert.equal("tensor{1, 2, 3, 4}\ttensor{3, 4, 5, 6}\tfalse\n", out)
    has(said, "share memory now, but not after loading: c and b")
  end)

  it("name what is not kept, and why", function()
    local _, said = through("x = lt.ones{1}\nf = print\nco = coroutine.create(print)\n"
      .. "m = lt.zeros({2}, {device = 'meta'})\nC = nn.Module:extend 'C'\nt = {g = print, 1}\n"
      .. "o = setmetatable({}, {__name = 'thing'})\nk = {[print] = 1}", "x")
    for _, text in ipairs {"f (function)", "co (thread)", "m (on meta, without data)",
      "C (class C)", "t.g (function)", "o (thing)", "k (a function as a key)"} do
      has(said:gsub("%s+", " "), text)
    end
  end)

  it("bring back a model and its optimizer where they are", function()
    local make = "net = nn.Linear(2, 1) opt = optim.Adam(net:parameters(), {lr = 0.5})\n"
    local train = "net(lt.ones{1, 2}):sum():backward() opt:step()\n"
    session(make .. train .. "w = net.weight:detach():clone()\n:keep " .. path "w.st" .. "\n")
    local result = session(make .. "p = net.weight\n:load " .. path "w.st"
      .. "\nnet.weight:equal(w), rawequal(net.weight, p), opt:state_dict().state[1].step\n")
    assert.equal("", result.err)
    assert.truthy(result.out:find "true\ttrue\t1\n$", result.out)
  end)

  it("give the state of a model that does not exist yet, until it does", function()
    local make = "net = {body = nn.Linear(2, 1)}\n"
    session(make .. ":keep " .. path "w.st" .. "\n")
    local result = session(":load " .. path "w.st" .. "\nnet.body.weight.shape\n" .. make
      .. ":load " .. path "w.st" .. "\nnn.is_module(net.body)\n")
    assert.equal("", result.err)
    has(result.out:gsub("%s+", " "), "net.body holds the state of a Linear")
    has(result.out, "{1, 2}\n")
    assert.truthy(result.out:find "true\n$")
  end)

  it("load all or nothing", function()
    session("a = lt.ones{1}\nm = nn.Linear(2, 2)\nn = nn.Linear(3, 3)\n:keep " .. path "w.st"
      .. "\n")
    local result = session("a = 5\nm = nn.Linear(2, 2) w = m.weight:clone()\nn = nn.Linear(4, 3)\n"
      .. ":load " .. path "w.st" .. "\na, m.weight:equal(w)\n")
    has(result.err, "load: cannot load n into the Linear of the session: weight has shape "
      .. "{3, 3} in the file, {3, 4} in the session; nothing was loaded")
    assert.equal("5\ttrue\n", result.out)
  end)

  it("refuse files that are none of theirs", function()
    write("text.st", "nothing of the kind")
    session("lt.save_safetensors('" .. path "other.st" .. "', {x = lt.ones{1}})\n")
    session("a = 1\nb = {lt.ones{2}, 'x y'}\n:keep " .. path "w.st" .. "\n")
    local whole = read "w.st"
    write("short.st", whole:sub(1, -5))
    for name, expected in pairs {
      ["none.st"] = "No such file", ["text.st"] = "not a safetensors file",
      ["other.st"] = "it was not written by :keep\nhint: lt.load_safetensors(",
      ["short.st"] = "short.st"} do
      local result = session("a = 7\n:load " .. path(name) .. "\na\n")
      has(result.err, "load: ")
      has(result.err, expected)
      assert.equal("7\n", result.out)
    end
    has(session(":load\n").err, "load: expected a file, got none")
    has(session(":load a b\n").err, "load: expected one FILE, got 2 words")
  end)

  it("read no description but one that was written", function()
    local format = require "lutra.repl.workspace.format"
    local title = "lutra workspace 1\n"
    assert.same({tensors = {}, tables = {{kind = "plain", items = {{1, "a b"}}}}, objects = {},
      variables = {{scope = "global", name = "t", attribute = "", value = {kind = "t", id = 1}}}},
      format.read(title .. 'table "plain"\nitem i1 "a b"\nvariable "global" "t" "" t1'))
    for _, text in ipairs {"", "lutra workspace 2", title .. "what", title .. "item i1 i1",
      title .. 'table "plain"\nitem i1', title .. 'table "plain"\nitem i1 x1',
      title .. 'table "plain"\nitem nnan i1', title .. 'table i1', title .. 'table "plain',
      title .. 'variable "global" "t" "" t1', title .. 'variable "global" "t" ""',
      title .. 'view i1 "2" "1" i0', title .. 'object "C" o2 "c"', title .. 'tensor "x"'} do
      local image, why = format.read(text)
      assert.is_nil(image, text)
      assert.equal("string", type(why))
    end
  end)

  it("write whole files, over their own only", function()
    write("mine.lua", "x = 1")
    local result = session("a = lt.ones{1}\n:keep " .. path "mine.lua" .. "\n:keep "
      .. path "w.st" .. "\na = 2\n:keep " .. path "w.st" .. "\n:keep " .. path "no/w.st" .. "\n")
    has(result.err, "it exists and was not written by :keep")
    has(result.err, "no/w.st\": No such file or directory")
    assert.equal("x = 1", read "mine.lua")
    assert.truthy(session(":load " .. path "w.st" .. "\na\n").out:find "\n2\n$")
    has(session(":keep " .. path "e.st" .. "\n").err, "no variable can be saved")
    has(session(":keep\n").err, "keep: expected a file, got none")
  end)

  it("keep tensors on their device, and say when it is not there", function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local two = "--emulate cuda:2"
    local out = through("x = lt.ones({3}, {device = 'cuda:1'})\nv = x:narrow(1, 2, 2)",
      "x, v.device, v:shares_storage(x)", two)
    assert.equal('tensor{1., 1., 1., device = "cuda:1"}\n"cuda:1"\ntrue\n', (out:gsub("\t", "\n")))
    local result = support.run("-i --no-init --emulate cuda:1", ":load " .. path "w.st"
      .. "\nx.device\n")
    assert.equal("", result.err)
    has(result.out, "x was on cuda:1, which is not available: it is on the cpu")
    has(result.out, '"cpu"')
  end)
end)

describe(":reset", function()
  it("forgets variables, results and changes of what was there", function()
    local result = session("local x = 1\ny = 2\nprint = 3\nlt = 4\nstring.mine = 5\n6;\n:reset\n"
      .. "x, y, type(print), lt.is_tensor ~= nil, _\n")
    assert.equal("", result.err)
    assert.equal('removed 2 variables\nnil\tnil\t"function"\ttrue\tnil\n', result.out)
  end)

  it("continues counting, and takes no argument", function()
    local result = support.run("-i --no-init", "1\n:reset\n2\n:reset hard\n")
    has(result.out, "[2]> removed 0 variables\n[2]> 2\n")
    has(result.err, "reset: expected no argument")
  end)

  it("gives the memory of devices back", function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local result = session("local x = lt.ones({1000}, {device = 'cuda'})\ny = {x};\n"
      .. "x:narrow(1, 1, 2);\nlocal function f() local z = x:clone() error(z) end f()\n:reset\n"
      .. "lt.cuda.memory_allocated(), lt.cuda.memory_reserved()\n", "--emulate cuda:1")
    assert.truthy(result.out:find "\n0\t0\n$", result.out)
  end)
end)

describe(":reload", function()
  local before = [[
local lt = require "lutra"
local M = {rate = 1, cache = {}, list = {1, 2, 3}}
local count = 0
local function helper(x) return "old " .. x end
local Net = lt.nn.Module:extend "Net"
function Net:forward(x) return x + 1 end
M.Net = Net
local Account = {}
Account.__index = Account
function Account.new(sum) return setmetatable({sum = sum}, Account) end
function Account:get() return "old", self.sum end
M.Account = Account
M.open = Account.new(5)
function M.f(x)
  count = count + 1
  M.cache[x] = count
  return helper(x), count
end
function M.gone() end
function M.callback() return helper "cb" end
return M
]]
  local after = before:gsub("old", "new"):gsub("x %+ 1", "x + 10"):gsub("rate = 1", "rate = 2")
    :gsub("{1, 2, 3}", "{7}")
    :gsub("function M.gone%(%) end", "function M.fresh() return Account end")

  -- A session with the module `before`; the file is `text` from the line !change on.
  local function reloaded(text, input)
    write("mine.lua", before)
    write("changed", text)
    local change = ("!cp %s %s"):format(path "changed", path "mine.lua")
    return support.shell(("cd %s && %s -i --no-init"):format(quote(folder),
      quote(support.program)), (input:gsub("!change", (change:gsub("%%", "%%%%")))))
  end

  -- What stood after the prompts of a session.
  local function values(result)
    local out = "\n" .. result.out
    while out:find "\n%[%d+%]> " do out = out:gsub("\n%[%d+%]> ", "\n") end
    return out:sub(2)
  end

  it("puts new functions into the old tables; classes and instances follow", function()
    local result = reloaded(after, "m = require 'mine' a, n = m.Account.new(3), m.Net()\n"
      .. "!change\n:reload mine\nm == require 'mine', (m.f(1))\na:get()\nn(lt.zeros{1}):item()\n"
      .. "m.open:get()\nm.fresh() == m.Account, m.gone, m.rate, #m.list\n")
    assert.equal("", result.err)
    has(values(result), "reloaded ./mine.lua: ")
    has(values(result),
      '1 new, 1 removed\ntrue\t"new 1"\n"new"\t3\n10.0\n"new"\t5\ntrue\tnil\t2\t1\n')
  end)

  it("keeps the state of file-level variables and tables", function()
    local result = reloaded(after, "m = require 'mine'\nm.f 'a', m.f 'b';\n!change\n:reload mine\n"
      .. "m.f 'c'\nm.cache\n")
    assert.equal("", result.err)
    has(values(result), '"new c"\t3\n{a = 1, b = 2, c = 3}\n')
  end)

  it("takes the constants of the file as they are now", function()
    local text = before
      :gsub("local count = 0", "local count\ncount = 0\nlocal NAME, LIMIT = 'a', 10")
      :gsub("return helper%(x%), count", "return LIMIT, NAME, count")
    local edited = text:gsub("10", "20"):gsub("'a'", "'b'")
    local result = reloaded(edited, ("!cp %s %s\n"):format(path "changed", path "mine.lua")
      .. "m = require 'mine'\nm.f 'a';\n!sed -i -e \"s/20/30/; s/'b'/'c'/\" mine.lua\n"
      .. ":reload mine\nm.f 'c'\n")
    assert.equal("", result.err)
    has(values(result), '30\t"c"\t2\n')
  end)

  it("changes variables of the session that hold a function, and old closures", function()
    local result = reloaded(after, "local f, keep = require('mine').f, {require('mine').callback}\n"
      .. "g = f\n!change\n:reload mine\n(f(1)), (g(2)), keep[1]()\n")
    assert.equal("", result.err)
    has(values(result), '"new 1"\t"new 2"\t"new cb"\n')
  end)

  it("leaves the module whole when the file fails", function()
    for text, expected in pairs {
      ["x = = 1"] = "mine.lua:1: unexpected symbol",
      ["package.loaded.mine = 5\nleft = 1\nprint = nil\nerror 'late'"] = "mine.lua:4: late",
    } do
      local result = reloaded(text, "m = require 'mine'\n!change\n:reload mine\n"
        .. "left, (m.f(1)), package.loaded.mine == m\nprint 'printed'\n")
      has(result.err, expected)
      has(values(result), 'nil\t"old 1"\ttrue\nprinted\n')
    end
  end)

  it("knows a module with a metatable, whose objects keep their fields", function()
    local text = [[
local State = {}
State.__index = State
function State:name() return "old" end
return setmetatable({inner = {f = function() return "old" end},
  state = setmetatable({n = 1}, State)}, {__call = function() return "old" end})
]]
    write("mine.lua", text)
    write("changed", (text:gsub("old", "new"):gsub("n = 1", "n = 2")))
    local result = support.shell(("cd %s && %s -i --no-init"):format(quote(folder),
      quote(support.program)), "m = require 'mine' m.state.n = 7 inner = m.inner\n"
      .. "!cp changed mine.lua\n:reload mine\nm(), inner.f(), m.state:name(), m.state.n\n")
    assert.equal("", result.err)
    has(result.out, '"new"\t"new"\t"new"\t7\n')
  end)

  it("knows a module that is a function, and one that gives nothing", function()
    local result = reloaded("return function() return 2 end", "m = require 'mine'\n!change\n"
      .. ":reload mine\nrequire('mine')()\n")
    assert.equal("", result.err)
    has(values(result), "\n2\n")
    result = reloaded("mine = 5", "m = require 'mine'\n!change\n:reload mine\n"
      .. "require('mine'), mine\n")
    has(values(result), "\ntrue\t5\n")
  end)

  it("lists and checks the names", function()
    has(reloaded(after, "m = require 'mine'\n:reload\n").out, "loaded: mine")
    has(session(":reload\n").out, "no module of yours is loaded")
    has(session(":reload lutra.nn\n").err, "it is part of Lutra")
    has(session(":reload none\n").err, 'reload: cannot find a loaded module "none"')
    has(session(":reload a b\n").err, "reload: expected the name of one MODULE, got 2 words")
    has(reloaded(after, "m = require 'mine'\n!rm mine.lua\n:reload mine\n").err,
      "cannot find a file of the module mine")
  end)
end)

for _, columns in ipairs {40, 120} do
  describe(("at %d columns"):format(columns), function()
    it(":keep, :reset and :load go round", function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns, home = folder,
        command = ("env -C %s %s"):format(folder, quote(support.program))}
      s:expect "[1]>"
      s:enter "local weight = lt.ones{2}"
      s:expect "[2]>"
      s:enter ":keep w.st"
      s:expect "kept 1 tensor in 1 variable: weight"
      s:enter ":reset"
      s:expect "removed 1 variable"
      s:enter "weight == nil"
      s:expect "true"
      s:enter ":load w.st"
      s:expect "loaded 1 tensor in 1 variable: weight"
      s:enter "weight * 2"
      s:expect "tensor{2., 2.}"
    end)

    it(":reload reads a module again", function()
      if not screen.available() then return pending "needs tmux" end
      write("mine.lua", "return {f = function() return 'old' end}")
      local s <close> = screen.open{columns = columns, home = folder,
        command = ("env -C %s %s"):format(folder, quote(support.program))}
      s:expect "[1]>"
      s:enter "m = require 'mine'"
      s:expect "[2]>"
      write("mine.lua", "return {f = function() return 'new' end}")
      s:enter ":reload mine"
      s:expect "reloaded ./mine.lua: 1 function"
      s:enter "m.f()"
      s:expect '"new"'
    end)
  end)
end
