-- The last results in _ and _1 to _9: lib/lutra/repl/results.lua.

local support = require "program_support"
local devices = require "device_support"
local screen = require "screen_support"

local session = support.session

describe("results", function()
  it("continue in _1 to _9, the newest first", function()
    assert.equal('1\n2\n"three"\n"three"\t"three"\t2\t1\tnil\n',
      session("1\n2\n'three'\n_, _1, _2, _3, _4\n").out)
  end)

  it("of one cell keep their order", function()
    local out = session("'old'\n'a', 'b'\n_1, _2, _3\n").out
    assert.equal('"old"\n"a"\t"b"\n"a"\t"b"\t"old"\n', out)
    assert.equal("tensor(3)\ttensor(1)\n3\t1\n",
      session("lt.tensor{3, 1}:max{dim = 1}\n_1:item(), _2:item()\n").out)
  end)

  it("are nine at most", function()
    local out = session("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11;\n_1, _9, _10\n").out
    assert.equal("1\t9\tnil\n", out)
    local lines = {}
    for i = 1, 12 do lines[i] = i .. ";" end
    assert.equal("12\t4\tnil\n", session(table.concat(lines, "\n") .. "\n_1, _9, _10\n").out)
  end)

  it("may be nil among others, but nil alone changes nothing", function()
    assert.equal('nil\t"no"\nnil\t"no"\n', session("nil, 'no'\n_1, _2\n").out)
    assert.equal("5\nnil\n5\n", session("5\nnil\n_\n").out)
    assert.equal("5\nx\n5\n", session("5\nprint 'x'\n_\n").out)
  end)

  it("are kept in quiet cells, and not by cells that fail", function()
    assert.equal("7\n", session("7;\nerror 'x'\n_\n").out)
  end)

  it("are what a cell returns, too", function()
    assert.equal("1\tnil\n3\n7\n1\n", session("return 1, nil\nlocal x = 3 return x\n"
      .. "do return 7 end\nreturn 8;\n_4\n").out)
  end)

  it("take their names back from the user", function()
    assert.equal("5\n5\n", session("_ = 3\n_1 = 4;\n5\n_\n").out)
    assert.equal("6\n6\n", session("local _, x = 1, 2\n6\n_\n").out)
  end)

  it("are no variables, and go with :reset", function()
    local out = session("1, 2;\n:reset\n_, _1, _2\n").out
    assert.equal("removed 0 variables\nnil\tnil\tnil\n", out)
  end)
end)

-- A session with two devices of 64 MiB.
local function on_device(input)
  local result = session(input, "--emulate cuda:2,memory=64MiB")
  assert.equal("", result.err)
  return result.out
end

local function with_devices(title, f)
  it(title, function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    f()
  end)
end

local function mib(count, device)
  return ("lt.ones({%d << 18}, {device = 'cuda:%d'})"):format(count, device or 0)
end

local allocated = "print((collectgarbage() + collectgarbage() + lt.cuda.memory_allocated()) // 1)\n"

describe("results on devices", function()
  with_devices("pin no memory beyond the option", function()
    local out = on_device(mib(20) .. ";\n_\n" .. allocated)
    assert.equal("nil\n0\n", out)
  end)

  with_devices("beyond it are shown, and it is said that they were not kept", function()
    local out = on_device(mib(20) .. "\n_, _1\n")
    assert.truthy(out:find("not kept in _1: it holds 20.0 MiB on cuda:0 (see :set results_bytes)",
      1, true), out)
    assert.truthy(out:find("nil\tnil\n$"), out)
  end)

  with_devices("are counted together, the older go first", function()
    local out = on_device(mib(10) .. ";\n" .. mib(5) .. ";\n" .. mib(3) .. ";\n" .. allocated
      .. "_1:numel() >> 18, _2:numel() >> 18, _3\n")
    assert.equal(("%d\n3\t5\tnil\n"):format(8 << 20), out)
  end)

  with_devices("that share memory are counted once", function()
    local out = on_device("x = " .. mib(10) .. "\nx;\nx:view{-1, 2};\nx[1];\nx = nil\n" .. allocated
      .. "_1 ~= nil, _2 ~= nil, _3 ~= nil\n")
    assert.equal(("%d\ntrue\ttrue\ttrue\n"):format(10 << 20), out)
  end)

  with_devices("are counted within tables, modules and closures", function()
    for _, code in ipairs {"{a = {" .. mib(20) .. "}}", "{[" .. mib(20) .. "] = 1}",
      "(function() local x = " .. mib(20) .. " return function() return x end end)()",
      "nn.Sequential(nn.Linear(2048, 2560)):to 'cuda'",
      "setmetatable({}, {__index = {x = " .. mib(20) .. "}})"} do
      assert.equal("nil\n0\n", on_device(code .. ";\n_\n" .. allocated), code)
    end
  end)

  with_devices("are kept without their graph", function()
    local out = on_device("w = lt.ones({4}, {device = 'cuda', requires_grad = true})\n"
      .. "(w * " .. mib(20) .. ":narrow(1, 1, 4)):sum();\n_.grad_fn, _:item()\n" .. allocated)
    assert.truthy(out:find "^nil\t4%.0\n", out)
    assert.is_true(tonumber(out:match "(%d+)\n$") < 4096, out)
    out = on_device("w = lt.ones({4}, {device = 'cuda', requires_grad = true})\n"
      .. "{(w * " .. mib(20) .. ":narrow(1, 1, 4)):sum()};\nw = nil\n_\n" .. allocated)
    assert.equal("nil\n0\n", out)
  end)

  with_devices("go when others push them out", function()
    local numbers = ("0;\n"):rep(9)
    assert.equal("0\n", on_device(mib(4) .. ";\n" .. numbers .. allocated))
  end)

  with_devices("may be more, or none, by the option", function()
    assert.equal("20\n", (on_device(":set results_bytes 32MiB\n" .. mib(20)
      .. ";\n_:numel() >> 18\n"):gsub("^.-results_bytes[^\n]*\n", "")))
    assert.truthy(on_device(":set results_bytes 0\nlt.ones({1}, {device = 'cuda'})\n_\n")
      :find "nil\n$")
  end)

  with_devices("of an error are nobody's after the next cell", function()
    local out = support.session("local function f() local x = " .. mib(20)
      .. " error({x}) end\nf()\n0;\n" .. allocated, "--emulate cuda:2,memory=64MiB").out
    assert.equal("0\n", out)
  end)
end)

for _, columns in ipairs {40, 120} do
  describe(("results at %d columns"):format(columns), function()
    it("are in _ and _2", function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns}
      s:expect "[1]>"
      s:enter "6 * 7;"
      s:expect "[2]>"
      s:enter "'x'"
      s:expect "[3]>"
      s:enter "_2, _"
      s:expect "[4]>"
      assert.truthy(s:text():match '\n42 +"x"\n%[4%]>', s:text())
      assert.truthy(s:text():find("[1]> 6 * 7;\n[2]>", 1, true), s:text())
    end)
  end)
end
