-- Names that PyTorch has and Lutra lacks: errors say so and suggest no other operation.

local lt = require "lutra"
local names = require "lutra.internal.pytorch_names"
local missing = require "lutra.internal.missing"
local support = require "nn_support"

local fails = support.fails

-- Returns the first name of PyTorch in a namespace that `has` does not have and that has no
-- replacement, or nil. A function that is there in place (kaiming_normal_) is a replacement.
local function absent(space, has)
  for name in names[space]:gmatch "%S+" do
    if not has(name) and not has(name .. "_") and missing.hint(space, name):find "^PyTorch" then
      return name
    end
  end
end

local function has_field(t)
  return function(name) return (pcall(function() return t[name] end)) end
end

describe("a name that only PyTorch has", function()
  it("comes with what to write instead, where there is something", function()
    fails('write lt.tensor(data, {dtype = "int64"})', function() return lt.LongTensor end)
    fails("write x.ndim, or x:dim()", function() return lt.zeros(2):ndimension() end)
    fails('write x:to "float64"', function() return lt.zeros(2):float64() end)
    fails('write x:to "uint8"', function() return lt.zeros(2):uint8() end)
    fails("write the tensor itself", function() return lt.autograd.Variable end)
    local message = fails("write lt.isin(x, ...)", function() return lt.zeros(2).isin end)
    assert.is_nil(message:find "did you mean")
  end)

  it("is recognized in each namespace", function()
    local tables = {lt = lt, nn = lt.nn, F = lt.F, optim = lt.optim, data = lt.data,
      ["lt.linalg"] = lt.linalg, ["lt.special"] = lt.special, ["nn.utils"] = lt.nn.utils}
    local found = 0
    for space, t in pairs(tables) do
      local name = absent(space, has_field(t))
      if name then
        found = found + 1
        local message = fails(("PyTorch has %s.%s; Lutra does not have it yet"):format(space, name),
          function() local _ = t[name] end)
        assert.is_nil(message:find "did you mean")
      end
    end
    assert.is_true(found >= 3)
  end)

  it("is recognized as a method of a tensor", function()
    local x = lt.ones(2)
    local name = absent("x", function(name) return name:find "%u" or has_field(x)(name) end)
    local message = fails(("PyTorch has x:%s(); Lutra does not have it yet"):format(name),
      function() local _ = x[name] end)
    assert.is_nil(message:find "did you mean")
    fails('did you mean "softmax"', function() x:sofmax(1) end)
  end)

  it("is not one that Lutra spells otherwise, or that nobody has", function()
    assert.is_nil(missing.hint("lt", "from_numpy"))
    assert.is_nil(missing.hint("lt", "softmacks"))
    assert.is_nil(missing.hint("nothing", "relu"))
    fails("hint: write F.binary_cross_entropy(input, target)",
      function() local _ = lt.F.bce_loss end)
    assert.equal("PyTorch has m:xpu(); Lutra does not have it yet", missing.hint("m", "xpu"))
    fails("did you mean 'F.softmax'?", function() local _ = lt.F.softmux end)
  end)
end)
