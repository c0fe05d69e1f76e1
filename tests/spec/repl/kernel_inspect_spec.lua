-- inspect_request, as the protocol and IPython's tooltips describe it. The name at the cursor is
-- followed by help about it; expected headings are the names in the help of the prompt.

local front = require "lutra.repl.front"
local inspect = require "lutra.repl.kernel.inspect"
local kernel_support = require "kernel_support"
local lt = require "lutra"
local nn = require "lutra.nn"
local options = require "lutra.repl.options"

local kernel

before_each(function()
  kernel = kernel_support.kernel()
  kernel.session.locals:set("lt", lt)
  kernel.session.locals:set("nn", nn)
end)

local function reply(code, level)
  local text, cursor = kernel_support.cursor(code)
  return kernel_support.sent(inspect.inspect_request(kernel,
    {code = text, cursor_pos = cursor, detail_level = level or 0}))
end

-- The first line of the page for the cursor in a code, or nil when nothing is found.
local function title(code, level)
  local one = reply(code, level)
  assert.equal("ok", one.status)
  assert.same({}, one.metadata)
  return one.found and one.data["text/plain"]:match "^[^\n]*" or nil
end

local function finds(expected, ...)
  for _, code in ipairs {...} do
    local found = title(code)
    assert.is_truthy(found, ("%q finds nothing"):format(code))
    assert.is_truthy(found:find(expected, 1, true), ("%q finds %s"):format(code, found))
  end
end

describe("inspect_request", function()
  it("finds the name under or just before the cursor", function()
    finds("lt.matmul(", "lt.matmul|", "lt.mat|mul", "lt.m|atmul(a, b)", "x = lt.matmul|(a, b) + 1",
      "für = 'ä€😀' .. lt.mat|mul", "print(lt.mat|mul)")
    finds("nn.Linear", "local net = nn.Lin|ear(2, 3)", "nn.Linear|")
    finds("string.format", "string.for|mat('%d', 1)")
    finds("lt", "l|t.matmul(a, b)")
    finds("lt", "|lt.matmul", "x = |lt.matmul")
    finds("lt.matmul(", "lt.|matmul")
  end)

  it("finds the function whose arguments contain the cursor", function()
    finds("nn.Linear", "nn.Linear(|", "nn.Linear(2, |", "nn.Linear(|)", "nn.Linear(2, 3|)",
      "nn.Linear{|", "nn.Linear{in_features = |}", "nn.Linear(2, {bias = |})", "nn.Linear(2, 3)|")
    finds("lt.zeros(", "lt.zeros(2, \"abc|\")", "lt.zeros(2,\n  |")
    finds("require", "require 'lut|ra'", "require \"|")
  end)

  it("finds the innermost of nested calls", function()
    finds("lt.ones(", "lt.matmul(lt.zeros(2), lt.ones(|))", "lt.matmul(lt.ones(2, |")
    finds("lt.matmul(", "lt.matmul(lt.ones(2), |", "lt.matmul(a, {1, |")
    finds("nn.Linear", "print((nn.Linear(|")
  end)

  it("finds methods, fields and items", function()
    kernel.session:execute "local x = lt.ones(2, 3)"
    kernel.session:execute "local net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())"
    finds("view", "x:view(2, |", "x:vi|ew(2)", "x\n  :vi|ew(2)")
    finds("x.shape", "x.sha|pe")
    finds("net[1].weight", "net[1].wei|ght", "print(net[1].weight|)")
  end)

  it("knows variables that the cell declares and that did not run", function()
    finds("sum(", "local fresh = lt.ones(2)\nfresh:sum(|", "fresh = lt.ones(2)\nfresh:su|m()")
    finds("sum(", ":whos\nlocal fresh = lt.ones(2)\nfresh:sum(|")
  end)

  it("finds variables, keywords, commands and questions", function()
    kernel.session:execute "local scale = 3"
    finds("scale", "sca|le + 1")
    finds("for", "fo|r i = 1, 3 do")
    finds(":timeit", ":timeit|", ":time|it x", ":timeit |", "x = 1\n:tim|eit x")
    finds("lt.matmul(", ":timeit lt.mat|mul(a, b)", ":time lt.matmul(|a)", "?lt.mat|mul",
      "lt.mat|mul?", "x = 1\n?lt.mat|mul", ":timeit -n 3 lt.mat|mul")
    finds(":whos", ":who|s pattern", ":whos pat|tern")
  end)

  it("shows the source at level 1, else the page", function()
    kernel.session:execute "local function twice(x) return 2 * x end"
    local one = reply("twi|ce(3)", 1)
    assert.truthy(one.data["text/plain"]:find("return 2 * x", 1, true))
    assert.truthy(reply("nn.Lin|ear", 1).data["text/plain"]:find("init", 1, true))
    -- A function in C has no source in Lua.
    assert.truthy(title("string.for|mat", 1):find("string.format", 1, true))
  end)

  it("finds nothing for other text, with empty data", function()
    for _, code in ipairs {"", "|", "   |", "3 + |4", "-- lt.mat|mul", "xyzzy_no|",
      "!ls lt.mat|mul", "'lt.mat|mul'", "function lt.f(a, |", "x = {1, |", "(|",
      "nothing_here:f(|", "a = ä|"} do
      local one = reply(code)
      assert.same({"ok", false}, {one.status, one.found}, code)
      assert.same({}, one.data)
    end
  end)

  it("runs no code", function()
    kernel.session:execute [[ran = 0
      trap = setmetatable({}, {__index = function() ran = ran + 1 end, __tostring = error,
        __call = function() ran = ran + 1 end, __len = function() ran = ran + 1 end})]]
    reply "trap|"
    reply "trap.x|"
    reply "trap.x:y(|"
    reply "trap(1, |"
    assert.equal(0, ran) -- luacheck: ignore
    ran, trap = nil, nil -- luacheck: ignore
  end)

  it("has colours in a notebook, unless they are off", function()
    front.notebook = {}
    local colored = reply "lt.matmul|".data["text/plain"]
    options.set("colors", "off")
    local plain = reply "lt.matmul|".data["text/plain"]
    front.notebook = nil
    options.set("colors", "auto")
    assert.truthy(colored:find("\27[1m", 1, true))
    assert.is_nil(plain:find("\27", 1, true))
    assert.equal(plain, (colored:gsub("\27%[[%d;]*m", "")))
  end)
end)
