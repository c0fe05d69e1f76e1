-- ModuleDict, ParameterList, ParameterDict, the order of Sequential: methods, state dicts, errors.

local lt = require "lutra"
local support = require "nn_support"

local nn = lt.nn
local fails, list = support.fails, support.list

local function state_names(module, options)
  local names = {}
  for name in pairs(module:state_dict(options)) do names[#names + 1] = name end
  return table.concat(names, " ")
end

describe("ModuleDict", function()
  it("keeps modules by name, in order", function()
    local dict = nn.ModuleDict{{"b", nn.Linear(1, 2)}, {"a", nn.ReLU()}}
    assert.equal(2, #dict)
    assert.same({"b", "a"}, list(1, dict:keys()))
    assert.equal("ReLU", dict.a:type_name())
    assert.equal(dict.a, dict["a"])
    assert.same({"b", "a"}, list(1, pairs(dict)))
    assert.equal("b.weight b.bias", state_names(dict))
    dict.c = nn.Tanh()
    dict:update{b = nn.ReLU(), d = nn.Tanh()}
    assert.same({"b", "a", "c", "d"}, list(1, dict:items()))
    assert.equal("ReLU", dict.b:type_name())
    assert.equal("Tanh", dict:pop "c":type_name())
    assert.is_false(dict:contains "c")
    assert.is_nil(dict.c)
    assert.equal(0, #dict:clear())
    assert.same({"a", "b"}, list(1, nn.ModuleDict{b = nn.ReLU(), a = nn.ReLU()}:keys()))
  end)

  it("reports what is wrong and changes nothing", function()
    local dict = nn.ModuleDict()
    fails({"ModuleDict", "a module", '"a"', "got 2"}, function() nn.ModuleDict{a = 2} end)
    fails({"ModuleDict", "a pair"}, function() nn.ModuleDict{nn.ReLU()} end)
    fails({"ModuleDict", '"pop"', "a method"}, function() dict.pop = nn.ReLU() end)
    fails({"ModuleDict", "pop", '"x"'}, function() dict:pop "x" end)
    fails("got 3", function() dict:update{{"a", nn.ReLU()}, {"b", 3}} end)
    assert.equal(0, #dict)
  end)
end)

describe("ParameterList", function()
  it("keeps parameters by number", function()
    local params = nn.ParameterList{lt.ones(2, 3), nn.Parameter(lt.ones(1), false)}
    assert.is_true(lt.is_parameter(params[1]) and params[1].requires_grad)
    assert.is_false(params[-1].requires_grad)
    params:append(lt.ones(4)):insert(1, lt.ones(5))
    assert.equal(4, #params)
    assert.equal("1 2 3 4", state_names(params))
    assert.equal("0 1 2 3", state_names(params, {base = 0}))
    assert.equal("{2, 3}", tostring(params:pop(2).shape))
    params[1] = lt.zeros(7)
    assert.equal("{7}", tostring(params[1].shape))
    local copy = nn.ParameterList{lt.zeros(7), lt.zeros(1), lt.zeros(4)}
    copy:load_state_dict(params:state_dict{base = 0}, {base = 0})
    assert.is_true(lt.equal(params[3], copy[3]))
    local count = 0
    for i, p in ipairs(params) do
      count = i
      assert.is_true(lt.is_parameter(p))
    end
    assert.equal(3, count)
    fails({"ParameterList", "a tensor", "got 3"}, function() nn.ParameterList(3) end)
    fails({"ParameterList", "1 to 3", "got 9"}, function() params:pop(9) end)
  end)
end)

describe("ParameterDict", function()
  it("keeps parameters by name", function()
    local dict = nn.ParameterDict{{"left", lt.ones(2)}, {"right", lt.ones(3)}}
    dict.middle = lt.ones(1)
    assert.is_true(lt.is_parameter(dict.middle))
    assert.equal("left right middle", state_names(dict))
    assert.equal("none", dict:get("top", "none"))
    assert.equal(dict.left, dict:get "left")
    assert.equal(dict.left, dict:setdefault("left", lt.ones(9)))
    assert.equal("{5}", tostring(dict:setdefault("top", lt.ones(5)).shape))
    local name, p = dict:popitem()
    assert.equal("top", name)
    assert.equal("{5}", tostring(p.shape))
    assert.equal(dict.left, dict:copy().left)
    assert.same({"a", "b"}, list(1, dict:fromkeys({"a", "b"}, lt.ones(1)):keys()))
    assert.equal(3, #list(1, dict:parameters()))
    fails({"ParameterDict", "a tensor", '"x"'}, function() nn.ParameterDict{x = 1} end)
    fails({"ParameterDict", "empty"}, function() nn.ParameterDict():popitem() end)
  end)
end)

describe("Sequential", function()
  it("follows assignments by name", function()
    local net = nn.Sequential{{"features", nn.Linear(3, 8)}, {"head", nn.Linear(8, 10)}}
    net.head = nn.Linear(8, 2)
    assert.equal(net.head, net[2])
    assert.equal("{1, 2}", tostring(net(lt.ones(1, 3)).shape))
    net.last = nn.ReLU()
    assert.equal(3, #net)
    assert.equal("ReLU", net:pop():type_name())
    net.features = nil
    assert.equal(1, #net)
    assert.equal(net.head, net[1])
    fails({"Sequential", "for pop", "got 5"}, function() net:pop(5) end)
  end)
end)
