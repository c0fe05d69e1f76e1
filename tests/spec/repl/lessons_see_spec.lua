-- What a lesson's checker looks with: lutra.repl.lesson.see.

local lt = require "lutra"
local see = require "lutra.repl.lesson.see"

local function fails(message, f, ...)
  local ok, why = pcall(f, ...)
  assert.is_false(ok)
  assert.equal(message, why)
end

-- A trace of those events.
local function trace(events, dropped) return {events = events, dropped = dropped or 0} end

describe("see", function()
  it("finds the user's functions, tensors and numbers, or says what is there", function()
    assert.equal(print, see.func({f = print}, "f"))
    fails('expected a function "f", got a table; :lesson with its number restores the first '
      .. "one", see.func, {f = {}}, "f")
    local x = lt.ones(1)
    assert.equal(x, see.tensor(x, "f()"))
    fails("expected a tensor from f(), got a number", see.tensor, 5, "f()")
    fails("expected a tensor from f(), got nothing; is a return missing?", see.tensor, nil, "f()")
    assert.equal(5, see.number(5, "f()"))
    fails("expected a number from f(), got a tensor", see.number, x, "f()")
    fails("expected a number from f(), got nothing; is a return missing?", see.number, nil, "f()")
  end)

  it("compares numbers and tensors, of which NaN is near to none", function()
    assert.is_true(see.near(1.5, 1.25, 0.25))
    assert.is_false(see.near(1.5, 1.25, 0.125))
    assert.is_false(see.near(0 / 0, 1, math.huge))
    local x = lt.tensor{1.0, 2.0}
    assert.is_true(see.near(lt.tensor{1.25, 2.0}, x, 0.25))
    assert.is_true(see.near(x:double(), x, 0))
    assert.is_false(see.near(lt.tensor{1.25, 2.0}, x, 0.125))
    assert.is_false(see.near(lt.tensor{1.0, 0 / 0}, x, 1))
    assert.is_false(see.near(x:unsqueeze(1), x, 1))
    assert.is_false(see.near(lt.tensor(1.0), x, 5))
  end)

  it("counts events, and names their lines", function()
    local events = trace{
      {kind = "copy", from = "cpu", to = "cuda:0", blocking = true, where = "a:1"},
      {kind = "copy", from = "cuda:0", to = "cpu", blocking = false, where = "a:2"},
      {kind = "copy", from = "cpu", to = "cuda:0", blocking = false, where = "a:1"},
      {kind = "sync", to = "cuda:0"},
      {kind = "alloc", to = "cuda:0", where = "a:3"},
      {kind = "op", name = "addmm", to = "cuda:0", kernel = true, computes = true, where = "a:4"},
      {kind = "op", name = "fill_", to = "cuda:0", kernel = true, where = "a:5"},
      {kind = "op", name = "add", to = "cpu", kernel = true, computes = true, where = "a:6"},
      {kind = "op", name = "view", to = "cpu", kernel = false, where = "a:7"},
    }
    local function said(test) return {see.count(events, test)} end
    assert.same({3, "a:1 (2 times), a:2"}, said(see.copy))
    assert.same({2, "a:1 (2 times)"}, said(see.out))
    assert.same({1, "a:2"}, said(see.home))
    assert.same({2, "a:1, a return of your code"}, said(see.waited))
    assert.same({1, "a:3"}, said(see.made "cuda:0"))
    assert.same({0, ""}, said(see.made "cuda:1"))
    assert.same({1, "a:4"}, said(see.product "cuda:0"))
    assert.same({0, ""}, said(see.product "cpu"))
    assert.same({1, "a:4"}, said(see.computed "cuda:0"))
    assert.same({1, "a:6"}, said(see.computed "cpu"))
  end)

  it("knows which copies a stream may rely on", function()
    local function copy(stream, bytes)
      return {kind = "copy", from = "cpu", to = "cuda:0", stream = stream, bytes = bytes}
    end
    local function product(stream)
      return {kind = "op", name = "addmm", to = "cuda:0", stream = stream}
    end
    local events = trace{
      copy("b", 10), product "a", -- nothing makes a wait for b
      {kind = "mark", mark = 1, stream = "b", to = "cuda:0"}, copy("b", 100),
      {kind = "after", mark = 1, stream = "a", to = "cuda:0"}, product "a", -- up to the mark
      product "b", copy("a", 1000), product "a",
    }
    assert.same({0, 10, 110, 1010}, see.arrived(events, see.product "cuda:0"))
    assert.same({}, see.arrived(events, see.product "cuda:1"))
  end)

  it("does not count in a trace that dropped events", function()
    fails("the code ran too long: 7 events could not be traced", see.count, trace({}, 7),
      see.copy)
  end)

  it("says numbers, counts and values in words", function()
    assert.equal("a tensor, a table, nothing", table.concat({see.kind(lt.ones(1)), see.kind {},
      see.kind(nil)}, ", "))
    assert.equal("2.5000 true nothing", table.concat({see.first(lt.tensor{{2.5, 1}}),
      see.first(lt.tensor{true}), see.first(lt.zeros(0))}, " "))
    assert.equal("once twice 3 times", see.times(1) .. " " .. see.times(2) .. " " .. see.times(3))
    assert.equal("1 copy 2 copies", see.copies(1) .. " " .. see.copies(2))
    assert.equal("3.0 MiB", see.bytes(3 << 20))
  end)
end)
