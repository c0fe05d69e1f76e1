--- Strings are read whole: one with a NUL byte is refused, not cut at it; a number in a string that
-- does not fit is refused, not clamped.

local lt = require "lutra"

local x = lt.arange(5)

-- What a string with a NUL is given to, by the argument that the error names. Each call works with
-- the string up to the NUL.
local cases = {
  {"index", function(s) return x[s] end, "1:3"},
  {"index", function(s) return x[{s}] end, "2"},
  {"index", function(s) x[s] = 2 end, "2"},
  {"index", function(s) x[{s}] = 2 end, "2"},
  {"dtype", function(s) return lt.zeros(2, {dtype = s}) end, "float32"},
  {"dtype", function(s) return lt.tensor({2}, {dtype = s}) end, "float32"},
  {"dtype", function(s) return x:to(s) end, "float32"},
  {"dtype", function(s) return x:to{dtype = s} end, "float32"},
  {"dtype", function(s) return x:sum{dtype = s} end, "float32"},
  {"dtype", function(s) lt.set_default_dtype(s) end, "float32"},
  {"type2", function(s) return lt.promote_types("int8", s) end, "float32"},
  {"device", function(s) return lt.zeros{2, device = s} end, "cpu"},
  {"device", function(s) return lt.tensor{2, device = s} end, "cpu"},
  {"device", function(s) return x:to(s) end, "cpu"},
  {"device", function(s) return lt.device(s) end, "cpu"},
  {"device", function(s) lt.set_default_device(s) end, "cpu"},
  {"device", function(s) lt.synchronize(s) end, "cpu"},
  {"rounding_mode", function(s) return lt.div(x, 2, s) end, "floor"},
  {"approximate", function(s) return lt.gelu(x:float(), s) end, "tanh"},
  {"reduction", function(s) return lt.mse_loss(lt.ones(2), lt.ones(2), nil, nil, s) end,
    "sum"},
  {"reduction", function(s) return lt.l1_loss(lt.ones(2), lt.ones(2), {reduction = s}) end, "sum"},
  {"reduction", function(s)
    return lt.nll_loss(lt.ones(1, 2), lt.tensor{1}, {reduction = s})
  end, "sum"},
  {"profile", function(s) lt.set_printoptions{profile = s} end, "default"},
}

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "no error was raised")
  return message
end

local function contains(text, message)
  assert.is_truthy(message:find(text, 1, true), ("%q is not in: %s"):format(text, message))
end

describe("a string with a NUL byte", function()
  it("is refused where C reads it, by the argument's name", function()
    for _, case in ipairs(cases) do
      local argument, f, good = table.unpack(case)
      f(good)
      for _, bad in ipairs {good .. "\0", good .. "\0:2", "\0" .. good} do
        -- what begins with a NUL looks like no index and no dtype
        local message = message_of(f, bad)
        if bad:byte() ~= 0 then
          contains(("expected a string without NUL bytes for argument '%s', got the string \"%s\"")
            :format(argument, (bad:gsub("%z", "\\0"))), message)
        end
        contains("\\0", message)
      end
    end
    assert.same({1, 2, 3, 4, 5}, lt.arange(5):totable())
    assert.equal("float32", lt.get_default_dtype())
  end)

  it("is no name of an argument", function()
    contains([[sum: expected an argument name (dim, keepdim, dtype), got 'dim\0x']],
      message_of(function() return x:sum{["dim\0x"] = 1} end))
    contains([[got 'bias\0']],
      message_of(lt.nn.Linear, 2, 2, {["bias\0"] = false}))
  end)

  it("is no field", function()
    local y = lt.ones{2, requires_grad = true}
    contains([[a tensor has no field or method "grad\0x"]],
      message_of(function() return y["grad\0x"] end))
    contains([[a tensor has no field or method "grad\0x"]],
      message_of(function() y["grad\0x"] = lt.ones(2) end))
    contains([[a tensor has no field or method "sum\0"]],
      message_of(function() return y["sum\0"] end))
    assert.is_nil(y.grad)
    message_of(function() y["requires_grad\0"] = false end)
    assert.is_true(y.requires_grad)
    message_of(function() y["data\0"] = lt.zeros(2) end)
    assert.same({1, 1}, y:totable())
    assert.has_error(function() return lt["ones\0"] end)
  end)

  it("is shown whole in messages", function()
    contains([[the string "a\0b"]], message_of(function() return x:sum "a\0b" end))
    contains([[the string "a\0b"]], message_of(lt.tensor, {1, "a\0b"}))
  end)
end)

describe("a number in an index string", function()
  it("that does not fit 64 bits is refused", function()
    for _, bad in ipairs {"99999999999999999999", "-99999999999999999999", "1:99999999999999999999",
      "1:5:99999999999999999999", "99999999999999999999:", ":, 9223372036854775808"} do
      local message = message_of(function() return x[bad] end)
      contains("index: expected numbers of at most 64 bits for argument 'index', got ", message)
      message_of(function() x[bad] = 1 end)
    end
    contains("got 99999999999999999999",
      message_of(function() return x["1:99999999999999999999"] end))
    assert.same({5, 4}, {x:numel(), #x["2:9223372036854775807"]})
    contains("out of range", message_of(function() return x["9223372036854775807"] end))
    contains("out of range", message_of(function() return x["-9223372036854775808"] end))
  end)

  it("of a device is refused, too", function()
    for _, bad in ipairs {"cuda:99999999999999999999", "cuda:4294967296", "cpu:256", "cuda:-1"} do
      message_of(lt.device, bad)
    end
  end)
end)
