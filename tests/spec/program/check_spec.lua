-- The warnings of `lutra --check`.

local check_code = require "lutra.repl.check_code"
local support = require "program_support"

-- Returns the warnings about code as "line: text" lines.
local function warnings(code)
  local lines = {}
  for i, warning in ipairs(check_code.warnings(code)) do
    lines[i] = warning.line .. ": " .. warning.text
  end
  return table.concat(lines, "\n")
end

local function warns(code, ...)
  local text = warnings(code)
  for _, part in ipairs {...} do
    assert.is_truthy(text:find(part, 1, true), code .. "\n" .. text)
  end
end

local function silent(code) assert.equal("", warnings(code)) end

describe("--check warns of", function()
  it("an index that is a comparison", function()
    warns("x[x == 0] = 9", "1: == gives one boolean", "x:eq(0)")
    warns("local y = x[x.value > 0.5]", "> gives one boolean")
    warns("local a = lt.ones(3)\nprint(a[b ~= c])", "2: ~= gives one boolean", "b:ne(c)")
    silent "x[x:eq(0)] = 9"
    silent "local v = list[#list == 1 and 1 or i]"
    silent "local v = names[kind == other]"
    silent "local v = x[f(a == 0)]"
  end)

  it("a tensor compared with a number", function()
    warns("local x = lt.zeros(3)\nif x == 0 then end", "2: x is a tensor", "x:eq(0)",
      "x:item() == 0")
    warns("local x = lt.zeros{3, 4}\nreturn 1 ~= x", "x:ne(1)")
    warns("local x, y = lt.zeros(3), lt.ones(3)\nif y == 0 then end", "2: y is a tensor")
    warns("local x = lt.zeros(3)\nlocal y = x:sum()\nif y == 0 then end", "3: y is a tensor")
    warns("local loss = F.mse_loss(a, b)\nif loss ~= 0 then end", "2: loss is a tensor")
    warns("if x:sum() == 0 then end", "x:sum(...) gives a tensor", ":eq(0), or one: :item() == 0")
    warns("if lt.zeros(1) == 1 then end", "lt.zeros(...) gives a tensor")
    warns("local x = lt.zeros(3)\nif x:abs() == 1 then end", "2: x:abs(...) gives a tensor")
    silent "if x:sum():item() == 0 or x:size(1) == 3 or x:abs() == 1 then end"
    silent "local x, y = lt.zeros(3):numel(), f(lt.ones(3))\nif x == 0 or y == 0 then end"
    silent "local x = lt.zeros(3)\nx, y = f()\nif x == 0 then end"
    silent "local x = lt.zeros(3)\nlocal n = x:sum() and 3\nif n == 0 then end"
    silent "local x = lt.zeros(3):sum():item()\nif x == 0 then end"
    silent "local x = 3\nx = lt.zeros(3)\nif x == 0 then end"
    silent "local x = lt.zeros(3)\nlocal function f(x) return x == 0 end"
    silent "local x = lt.zeros(3)\nif x.ndim == 0 or x == nil then end"
    silent "local x = lt.zeros(3) == y\nif x == 0 then end"
  end)

  it("not of a tensor", function()
    warns("local mask = lt.ones(3)\nprint(not mask)", "2: mask is a tensor", "mask:logical_not()")
    warns("print(not x:eq(1))", "x:eq(...):logical_not()")
    warns("if not x:eq(1):any() then end", "not ...:any():item()")
    silent "print(not x:eq(1):any():item())"
    silent "local x = lt.ones(3)\nprint(not x.is_leaf, not x:is_contiguous())"
  end)

  it("a bracket that continues the line before", function()
    warns("local y = f\n(g or h)(1)", "2: this ( calls the value at the end of the line before",
      "put a ; between them")
    warns("x:sum()\n(y):print()", "2: this (")
    silent "local y = f;\n(g or h)(1)"
    silent "local y = f(\n(1))"
    silent "local y = 1 +\n(2)"
    silent "-- comment\n(f)()"
  end)

  it("modules that are registered in the reverse order", function()
    warns("self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1)",
      "1: Lua assigns from the right, so that self.b is registered before self.a")
    warns("self.a, self.b, self.c = nn.ReLU(), 1, 2", "self.c is registered before self.a")
    silent "self.a, self.b = 1, 2"
    silent "self.a = nn.Linear(1, 1)"
    silent "return self.a, self.b"
  end)

  it("something in code that is incomplete, or nothing", function()
    for _, code in ipairs {"x[", "x[a == ", "self.a, ", "not", "local x = lt.zeros(", "(", ")]"} do
      assert.is_string(warnings(code))
    end
  end)

  it("what it finds on stderr, with the exit status 0", function()
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write "#!/usr/bin/env lutra\nx[x == 0] = 9\n"
    file:close()
    local result = support.run("--check " .. path)
    os.remove(path)
    assert.equal(0, result.status)
    assert.equal("", result.out)
    assert.is_truthy(result.err:find("lutra: warning: " .. path .. ":2: == gives", 1, true))
    result = support.run("--check -", "x[x == 0] = 9")
    assert.is_truthy(result.err:find("lutra: warning: stdin:1: == gives", 1, true))
  end)
end)
