--- Namespaces of ops: a row's flags in the op table (namespaces.def) put it into lt.special, F and
-- the others, with help and completion.

local lt = require "lutra"
local core = require "lutra.core"
local support = require "program_support"

local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "no error was raised")
  assert.is_truthy(message:find(text, 1, true), ("%q is not in: %s"):format(text, message))
end

local function has(text, ...)
  for _, expected in ipairs {...} do
    assert.is_truthy(text:find(expected, 1, true), ("%q is not in: %s"):format(expected, text))
  end
end

describe("a namespace", function()
  it("has the ops whose rows have its flag, and only those", function()
    local expected, found = {}, {}
    for _, op in ipairs(lt.ops()) do
      for space, name in pairs(op.namespaces) do expected[space .. "." .. name] = true end
    end
    for _, space in ipairs(core._namespaces) do
      local ops = lt
      for part in space.name:gmatch "[^.]+" do ops = ops[part] end
      for name, f in next, ops do
        found[space.name .. "." .. name] = true
        assert.equal(f, ops[name])
      end
    end
    assert.same(expected, found)
    for _, name in ipairs {"F.relu", "F.linear", "F.normalize", "special.erf", "linalg.matmul"} do
      assert.is_true(found[name], name)
    end
    assert.is_nil(found["F.matmul"])
  end)

  it("shares the functions of lt and calculates", function()
    assert.equal(lt.erf, lt.special.erf)
    assert.equal(lt.conv2d, lt.F.conv2d)
    assert.equal(lt.special, require "lutra.special")
    assert.equal(11, lt.linalg.matmul(lt.tensor{1, 2}, lt.tensor{3, 4}):item())
  end)

  it("is a module, also after package.loaded was cleared", function()
    for _, name in ipairs{"linalg", "signal"} do
      local module = "lutra." .. name
      assert.equal(lt[name], require(module))
      package.loaded[module] = nil
      assert.equal(lt[name], require(module))
    end
  end)

  it("names the nearest function where there is none", function()
    fails('lt.special has no field "erff"\nhint: did you mean \'lt.special.erf\'?',
      function() return lt.special.erff end)
    fails('F has no field "softmux"\nhint: did you mean \'F.softmax\'?',
      function() return lt.F.softmux end)
  end)

  it("has help and completion", function()
    local complete = require "lutra.repl.complete"
    local locals = require "lutra.repl.locals"
    local session = {locals = locals.new()}
    session.locals:set("lt", lt)
    local found = {}
    for _, text in ipairs {"lt.special.er", "lt.lina", "lt.special.softmax{"} do
      local at = complete.at(text, #text, session)
      for _, item in ipairs(at and at.items or {}) do found[item.text] = true end
    end
    assert.is_true(found.erf and found.erfc and found.linalg and found.dim)
    local out = support.session("?lt.special.erf\n?lt.linalg\n").out
    has(out, "lt.special.erf(self)", "x:erf_()", "?lt.linalg.NAME",
      "Linear algebra.")
  end)
end)

-- In programs of their own: what is defined stays for the rest of a program.
describe("a composite written in Lua, of a namespace", function()
  local define = 'lt._define{signature = "fft.halve(Tensor x, ints[] pairs = {{1, 2}})",'
    .. ' doc = "Half of x.", fn = function(x) return x / 2 end}\n'

  it("is in the namespace", function()
    local out = support.session(define .. [[
lt.fft.halve(lt.tensor{4, 6}), require "lutra.fft" == lt.fft
?lt.fft.halve
:apropos Half of
lt.fft.halve{lt.ones(1), pairs = {{1, "a"}}}
c = require "lutra.repl.complete"; l = require("lutra.repl.locals").new()
table.concat((function(t) local o = {}; for i, v in ipairs(c.at(t, #t, {locals = l}).items) do
 o[i] = v.text end; return o end)("lt.fft.ha"), "+")
]])
    has(out.err .. out.out, "tensor{2., 3.}", "true", "Half of x.",
      "lt.fft.halve(x, {pairs = {{1, 2}}})", "lists of integers", "lt.fft.halve",
      "halve: expected an integer for argument 'pairs[1][2]', got the string", '"halve"')
  end)

  it("may be a function of lt, and of no unknown namespace", function()
    local out = support.session('lt._define{signature = "lt.halve(Tensor x)", doc = "Half of x.",'
      .. ' fn = function(x) return x / 2 end}; lt.halve(lt.tensor{4, 6})\n')
    has(out.out, "tensor{2., 3.}")
    fails('_define: expected a namespace (lt, F, linalg, fft, special, signal.windows, masked) for '
      .. 'argument \'signature\', '
      .. 'got "nowhere"', lt._define, {signature = "nowhere.f(int n)", doc = "x", fn = print})
  end)
end)

describe("a composite written in Lua", function()
  local define = [[lt._define{signature = "lt.halve(Tensor self)", doc = "Half of self.",
 method = true, in_place = true, aliases = {"divide_by_2"}, also = {"special"},
 example = "lt.halve(lt.tensor{2, 4})",
 fn = function(x) return x / 2 end}
x = lt.tensor{4.0, 6}
]]

  it("may be a method, an in-place method, of several namespaces, and have other names", function()
    local out = support.session(define .. [[
x:halve(), x:divide_by_2(), lt.divide_by_2(x), lt.special.halve(x)
y = x:halve_()
y, y == x, x:divide_by_2_()
?lt.halve
?x:divide_by_2
]])
    has(out.out, "tensor{2., 3.}\ttensor{2., 3.}\ttensor{2., 3.}\ttensor{2., 3.}",
      "tensor{1.0000, 1.5000}", "lt.halve(self)", "x:halve_()", "aliases  divide_by_2",
      "> lt.halve(lt.tensor{2, 4})")
  end)

  it("refuses to write a result of another shape or dtype into self", function()
    local out = support.session(define .. [[
lt.tensor{1, 2}:halve_()
lt._define{signature = "lt.total(Tensor self)", doc = "Sum.", in_place = true,
 fn = function(x) return x:sum() end}
x:total_()
x
]])
    has(out.err .. out.out,
      "halve_: cannot write a result of dtype float32 into self, a tensor of dtype int64",
      "total_: cannot write a result of shape {} into self, a tensor of shape {2}",
      "tensor{4., 6.}")
  end)

  it("lists each of its few fields once, also those that were loaded", function()
    local _ = lt.utils.checkpoint
    local ok, message = pcall(function() return lt.utils.zzz end)
    assert.is_false(ok)
    has(message, "hint: its fields are benchmark, checkpoint, data, tensorboard")
  end)
end)
