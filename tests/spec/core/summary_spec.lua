-- A tensor on one line: x:summary() and the profile "summary". Its numbers are those of arithmetic.

local lt = require "lutra"
local devices = require "device_support"
local program = require "program_support"

local inf, nan = math.huge, 0 / 0

local here = devices.elsewhere("core/summary", _ENV) and "cpu" or "cuda:0" -- the test runs in both

describe("summary on " .. here, function()
  local device = here
  local options = {device = device, dtype = "float32"}

  -- The line, in whichever alphabet, without the device at its end.
  local function line(t)
    local text = t:summary():gsub("∈", " in "):gsub("μ", "mean"):gsub("σ", "std")
    assert.equal(" " .. device, text:sub(-#device - 1))
    return text:sub(1, -#device - 2)
  end

  local function tensor(data, dtype)
    return lt.tensor(data, {device = device, dtype = dtype or "float32"})
  end

  it("gives range, mean, deviation and what is not finite", function()
    local text = line(tensor{1, 2, 3, 4, nan, inf, -inf})
    -- mean of 1..4: 2.5; sqrt((2.25 + 0.25) * 2 / 3) = 1.29
    assert.truthy(text:match "^f32%[7%] n=7 %(28 B%) x in %[1%.0|.-|4%.0%] mean=2%.50 std=1%.29 "
      .. "nan:1 inf:2$", text)
  end)

  it("gives shape and bytes of every dtype", function()
    local names = {float64 = "f64", float32 = "f32", float16 = "f16", bfloat16 = "bf16",
      int64 = "i64", int32 = "i32", int16 = "i16", int8 = "i8", uint8 = "u8"}
    for dtype, name in pairs(names) do
      local t = tensor({{1, 2, 3}, {4, 5, 6}}, dtype)
      local text = line(t)
      assert.equal(("%s[2,3] n=6 (%d B) "):format(name, 6 * t.itemsize), text:match "^.-%) ")
      assert.truthy(text:find("mean=3.50 std=1.87", 1, true), text) -- sqrt(17.5 / 5)
      assert.equal(t:is_floating_point(), text:find("nan:0 inf:0", 1, true) ~= nil)
    end
  end)

  it("is the example of the manual", function()
    local t = lt.zeros({3, 196, 196}, options)
    assert.truthy(line(t):find("f32[3,196,196] n=115248 (0.4 MiB) ", 1, true))
  end)

  it("draws five parts of the range", function()
    -- 8, 4, 2, 0 and 1 values in the fifths of 0..10: eighths 8, 4, 2, none, 1 of the height
    local data = {0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 10}
    local text = line(tensor(data))
    local drawn = text:match "|(.-)|"
    assert.truthy(drawn == "█▄▂ ▁" or drawn == "@=: .", text)
  end)

  it("knows what has no range", function()
    assert.equal("f32[0] n=0 (0 B)", line(lt.zeros({0}, options)))
    assert.equal("f32[2] n=2 (8 B) nan:2 inf:0", line(tensor{nan, nan}))
    assert.equal("f32[3] n=3 (12 B) x=2.5 nan:0 inf:0", line(tensor{2.5, 2.5, 2.5}))
    assert.equal("f32[] 3.1416", line(tensor(3.14159265)))
    assert.equal("i64[] -7", line(tensor(-7, "int64")))
    assert.equal("bool[3] n=3 (3 B) true:2 false:1", line(tensor({1, 0, 1}, "bool")))
    assert.equal("f32[3,4] n=12 (48 B) meta", lt.empty{3, 4, device = "meta"}:summary())
  end)

  it("copes with numbers of any size", function()
    local text = line(tensor{-1e30, 1e30})
    assert.truthy(text:find("x in [-1e+30|", 1, true), text)
    assert.truthy(line(tensor{1e-9, 2e-9}):find("|2e-09] mean=1.5e-09", 1, true))
    assert.truthy(line(tensor({60000, -60000}, "float16")):find("nan:0 inf:0", 1, true))
    assert.truthy(line(tensor({-2 ^ 62, 2 ^ 62}, "float64")):find("x in [-4.6e+18|", 1, true))
  end)

  it("names what a gradient needs, and records nothing", function()
    local x = lt.ones({2}, {device = device, requires_grad = true})
    assert.truthy(x:summary():find(device .. " requires_grad", 1, true))
    assert.truthy((x * 2):summary():find(device .. " grad_fn=<MulBackward>", 1, true))
    assert.is_nil(x.grad_fn)
  end)

  it("is how tensors print with its profile", function()
    local t = tensor{1, 2}
    lt.set_printoptions{profile = "summary"}
    local text = tostring(t)
    lt.set_printoptions{profile = "default"}
    assert.equal(t:summary(), text)
    assert.equal("tensor{1., 2.", tostring(t):sub(1, 13))
  end)

  it("is no method of anything else", function()
    devices.fails({"summary: expected a tensor for argument 'self', got 3"}, lt._methods.summary, 3)
  end)
end)

describe("the alphabet of a summary", function()
  local function summary(locale)
    return program.shell(("env LC_ALL=%s %s -e 'print(lt.arange(1, 2):summary())'"):format(locale,
      program.quote(program.program))).out
  end

  it("is the terminal's", function()
    assert.equal("i64[2] n=2 (16 B) x∈[1|█   █|2] μ=1.50 σ=0.71 cpu\n", summary "C.UTF-8")
    assert.equal("i64[2] n=2 (16 B) x in [1|@   @|2] mean=1.50 std=0.71 cpu\n", summary "C")
  end)
end)
