-- Hooks of modules.

local lt = require "lutra"
local support = require "nn_support"

local nn = lt.nn
local fails, close = support.fails, support.close
local everywhere = nn.modules.module

describe("forward hooks", function()
  it("run in order of registration, with prepend first", function()
    local layer, seen = nn.ReLU(), {}
    local function note(text) return function() seen[#seen + 1] = text end end
    layer:register_forward_pre_hook(note "p1")
    layer:register_forward_pre_hook(note "p2", {prepend = true})
    layer:register_forward_hook(note "f1")
    local last = layer:register_forward_hook{note "f2", prepend = true}
    layer(lt.ones(1))
    assert.equal("p2 p1 f2 f1", table.concat(seen, " "))
    last:remove()
    last:remove()
    layer(lt.ones(1))
    assert.equal("p2 p1 f2 f1 p2 p1 f1", table.concat(seen, " "))
  end)

  it("may return the list of inputs, and remove themselves", function()
    local layer, handle = nn.Identity(), nil
    handle = layer:register_forward_pre_hook(function(_, inputs)
      handle:remove()
      inputs[1] = inputs[1] + 1
      return inputs
    end)
    assert.equal(2, layer(lt.tensor(1.0)):item())
    assert.equal(1, layer(lt.tensor(1.0)):item())
  end)

  it("may return a plain list of values in the place of inputs or several outputs", function()
    local Net = nn.Module:extend "Net"
    function Net.forward(_, ...) return ... end
    local function outputs(kind, result, ...)
      local net = Net()
      net["register_" .. kind](net, function() return result end)
      return table.pack(net(...))
    end
    local x, y = lt.ones(2), lt.zeros(2)
    assert.same({x, n = 1}, outputs("forward_pre_hook", {x}, y))
    assert.same({x, 3, n = 2}, outputs("forward_pre_hook", {x, 3}, y))
    assert.same({x, nil, y, n = 3}, outputs("forward_pre_hook", table.pack(x, nil, y), y))
    assert.same({x, y, n = 2}, outputs("forward_hook", {x, y}, y, x))
    -- tables that the module takes or gives
    for _, kind in ipairs{"forward_pre_hook", "forward_hook"} do
      local list, options = {x}, {x, scale = 2}
      assert.equal(list, outputs(kind, list, {y})[1])
      assert.equal(options, outputs(kind, options, y, y)[1])
    end
    local list = {x, y}
    assert.equal(list, outputs("forward_hook", list, y)[1])
  end)

  it("with always_call run after an error, too", function()
    local layer, calls = nn.Linear(2, 2), 0
    layer:register_forward_hook(function() calls = calls + 10 end)
    layer:register_forward_hook(function(module, inputs, output)
      assert(module == layer and #inputs == 1)
      calls = calls + (output and 2 or 1)
    end, {always_call = true})
    layer(lt.ones(1, 2))
    assert.equal(12, calls)
    fails("expected an input of shape", function() layer(lt.ones(1, 3)) end)
    assert.equal(13, calls)
  end)

  it("exist for all modules", function()
    local net, seen = nn.Sequential(nn.ReLU(), nn.Tanh()), {}
    local a = everywhere.register_module_forward_hook(function(module, _, output)
      seen[#seen + 1] = module:type_name()
      return output + 1
    end)
    local b = everywhere.register_module_forward_pre_hook(function(module)
      seen[#seen + 1] = "(" .. module:type_name()
    end)
    local y = net(lt.zeros(1)):item()
    a:remove()
    b:remove()
    assert.equal("(Sequential (ReLU ReLU (Tanh Tanh Sequential", table.concat(seen, " "))
    assert.is_true(math.abs((1 - math.exp(-2)) / (1 + math.exp(-2)) + 2 - y) < 1e-6)
    net(lt.zeros(1))
    assert.equal(6, #seen)
    fails("register_module_forward_hook: expected a function for argument 'hook', got 3",
      function() everywhere.register_module_forward_hook(3) end)
  end)

  it("see and replace what is registered", function()
    local seen = {}
    local handles = {
      everywhere.register_module_parameter_registration_hook(function(_, name, p)
        seen[#seen + 1] = name
        return p and nn.Parameter(p:detach() * 0)
      end),
      everywhere.register_module_module_registration_hook(function(_, name)
        seen[#seen + 1] = name
      end),
      everywhere.register_module_buffer_registration_hook(function(_, name)
        seen[#seen + 1] = name
      end),
    }
    local net = nn.Sequential(nn.Linear(1, 1, false))
    net:register_buffer("b", lt.ones(1))
    for _, handle in ipairs(handles) do handle:remove() end
    assert.equal("weight bias 1 b", table.concat(seen, " "))
    assert.equal(1, net:num_parameters())
  end)

  it("must replace a parameter, a buffer, and a module by one", function()
    for kind, act in pairs {
      parameter = function() nn.Linear(1, 1) end,
      buffer = function() nn.BatchNorm1d(1) end,
      module = function() nn.Sequential(nn.ReLU()) end,
    } do
      local expected = {parameter = "an nn.Parameter", buffer = "a tensor", module = "a module"}
      local handle = everywhere["register_module_" .. kind .. "_registration_hook"](function()
        return "text"
      end)
      fails(("expected %s or nil from a registration hook for the %s "):format(expected[kind],
        kind), act)
      handle:remove()
    end
  end)
end)

describe("full backward hooks", function()
  -- y = w x with w = 3, x = 2, and loss = 5 y: dL/dy = 5, dL/dx = 15, dL/dw = 10.
  local function layer_of_three()
    local layer = nn.Linear(1, 1, false)
    lt.no_grad(function() layer.weight:fill_(3) end)
    return layer
  end

  it("get the gradients of inputs and outputs and replace them", function()
    local layer, seen = layer_of_three(), {}
    local handle = layer:register_full_backward_hook(function(module, grad_input, grad_output)
      assert.equal(layer, module)
      seen = {grad_input[1]:item(), grad_output[1]:item(), grad_input.n, grad_output.n}
      return {grad_input[1] * 2}
    end)
    local x = lt.tensor({{2.0}}, {requires_grad = true});
    (layer(x) * 5):sum():backward()
    assert.same({15, 5, 1, 1}, seen)
    assert.equal(30, x.grad:item())
    assert.equal(10, layer.weight.grad:item())
    handle:remove()
    seen, x.grad = nil, nil;
    (layer(x) * 5):sum():backward()
    assert.is_nil(seen)
    assert.equal(15, x.grad:item())
  end)

  it("run without an input that requires grad, then with nil", function()
    local layer, seen = layer_of_three(), nil
    layer:register_full_backward_hook(function(_, grad_input, grad_output)
      seen = {grad_input.n, grad_input[1] == nil, grad_output[1]:item()}
    end);
    (layer(lt.tensor{{2.0}}) * 5):sum():backward()
    assert.same({1, true, 5}, seen)
    assert.equal(10, layer.weight.grad:item())
    layer:register_full_backward_hook(function() return {lt.ones(1)} end)
    fails("expected the hook to return nil", function()
      layer(lt.tensor{{2.0}}):sum():backward()
    end)
  end)

  it("before the gradients replace those of the results", function()
    local layer, order = layer_of_three(), {}
    layer:register_full_backward_pre_hook(function(_, grad_output)
      order[#order + 1] = "first"
      return grad_output[1] * 10
    end)
    layer:register_full_backward_pre_hook(function() order[#order + 1] = "zero" end,
      {prepend = true})
    layer:register_full_backward_hook(function(_, _, grad_output)
      order[#order + 1] = grad_output[1]:item()
    end)
    local x = lt.tensor({{2.0}}, {requires_grad = true})
    layer(x):sum():backward()
    assert.same({"zero", "first", 10}, order)
    assert.equal(30, x.grad:item())
    assert.equal(20, layer.weight.grad:item())
  end)

  it("pass values without gradients", function()
    local Pair = nn.Module:extend "Pair"
    function Pair.forward(_, a, n, b) return n, a * b, "text" end
    local pair, seen = Pair(), nil
    pair:register_full_backward_hook(function(_, gi, go)
      seen = {gi.n, gi[1]:item(), gi[2] == nil, gi[3] == nil, go.n, go[1] == nil, go[2]:item()}
    end)
    local a = lt.tensor(2.0, {requires_grad = true})
    local n, product, text = pair(a, 7, lt.tensor(4.0))
    assert.same({7, "text"}, {n, text})
    product:backward()
    assert.same({3, 4, true, true, 3, true, 1}, seen)
    assert.equal(7, (pair(lt.tensor(2.0), 7, lt.tensor(4.0))))
  end)

  it("exist for all modules, and refuse other results", function()
    local seen = {}
    local a = everywhere.register_module_full_backward_hook(function(module)
      seen[#seen + 1] = module:type_name()
    end)
    local b = everywhere.register_module_full_backward_pre_hook(function(module)
      seen[#seen + 1] = "(" .. module:type_name()
    end)
    local x = lt.ones(1, {requires_grad = true})
    nn.Sequential(nn.ReLU(), nn.Tanh())(x):backward()
    a:remove()
    b:remove()
    assert.equal("(Sequential (Tanh Tanh (ReLU ReLU Sequential", table.concat(seen, " "))
    local layer = nn.ReLU()
    layer:register_full_backward_hook(function() return 3 end)
    fails("register_full_backward_hook: expected the hook to return a tensor, a list or nil",
      function() layer(x):backward() end)
  end)
end)

describe("hooks of state dicts", function()
  it("see and change what is stored and loaded", function()
    local net, seen = nn.Sequential(nn.Linear(1, 1)), {}
    net[1]:register_state_dict_pre_hook(function(module, prefix, keep_vars)
      seen[#seen + 1] = ("%s %s %s"):format(module:type_name(), prefix, keep_vars)
    end)
    net[1]:register_state_dict_post_hook(function(_, state, prefix)
      state[prefix .. "more"] = lt.ones(1)
    end)
    local state = net:state_dict()
    assert.equal("Linear 1. false", seen[1])
    assert.is_truthy(state["1.more"])
    local handle = net[1]:register_load_state_dict_pre_hook(
      function(_, given, prefix, _, strict, missing, unexpected, errors)
        assert(strict and #missing + #unexpected + #errors == 0)
        given[prefix .. "more"] = nil
      end)
    local keys
    net:register_load_state_dict_post_hook(function(_, incompatible) keys = incompatible end)
    local result = net:load_state_dict(state)
    assert.equal(keys, result)
    assert.is_truthy(state["1.more"]) -- the hook changed a copy
    handle:remove()
    fails("unexpected: 1.more", function() net:load_state_dict(state) end)
    net[1]:register_load_state_dict_pre_hook(function(_, _, _, _, _, _, _, errors)
      errors[1] = "too old"
    end)
    fails("too old", function() net:load_state_dict(state, {strict = false}) end)
  end)

  it("store further state of a class", function()
    local Counter = nn.Module:extend "Counter"
    function Counter:init() self.count = 0 end
    function Counter:get_extra_state() return {count = self.count} end
    function Counter:set_extra_state(state) self.count = state.count end
    local net = nn.Sequential(Counter())
    net[1].count = 5
    local state = net:state_dict()
    assert.same({count = 5}, state["1._extra_state"])
    local other = nn.Sequential(Counter())
    other:load_state_dict(state)
    assert.equal(5, other[1].count)
    fails("missing: 1._extra_state", function() other:load_state_dict {} end)
  end)
end)

describe("clone", function()
  it("copies everything and keeps what is shared", function()
    local net = nn.Sequential(nn.Linear(2, 2, false), nn.Linear(2, 2, false), nn.BatchNorm1d(2))
    net[2].weight = net[1].weight
    net.table = {net[1], size = 3}
    net[1]:register_forward_hook(function(_, _, y) return y * 2 end)
    net(lt.ones(3, 2)):sum():backward()
    local copy = net:clone()
    assert.equal(copy[1].weight, copy[2].weight)
    assert.are_not.equal(net[1].weight, copy[1].weight)
    assert.equal(copy[1], copy.table[1])
    assert.is_true(lt.is_parameter(copy[1].weight))
    close(net[1].weight.grad, copy[1].weight.grad, 0)
    net:eval()
    copy:eval()
    local x = lt.randn(4, 2)
    close(net(x):detach(), copy(x), 0)
    lt.no_grad(function() copy[1].weight:zero_() end)
    assert.is_true(net[1].weight:abs():sum():item() > 0)
    assert.equal(tostring(net), tostring(copy))
    copy:append(nn.ReLU())
    assert.equal(3, #net)
    net.result = net(x)
    fails('clone: cannot copy "Sequential.result"', function() net:clone() end)
  end)
end)

describe("paths", function()
  local net = nn.Sequential {{"body", nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))}}

  it("lead to modules, parameters and buffers", function()
    assert.equal(net, net:get_submodule "")
    assert.equal(net.body[1], net:get_submodule "body.1")
    assert.equal(net.body[1].weight, net:get_parameter "body.1.weight")
    assert.equal(net.body[2].running_mean, net:get_buffer "body.2.running_mean")
    fails('get_submodule: expected the path of a module for argument \'target\', got "body.3": '
      .. '"body" has no child "3"', function() net:get_submodule "body.3" end)
    fails('did you mean "body"?', function() net:get_submodule "bdoy.1" end)
    fails('Linear has no parameter "waits"', function() net:get_parameter "body.1.waits" end)
    fails("get_buffer", function() net:get_buffer "body.1.weight" end)
  end)

  it("of set_submodule name the module to replace", function()
    local copy, act = net:clone(), nn.ReLU()
    copy:set_submodule("body.2", act)
    assert.equal(act, copy.body[2])
    copy:set_submodule("body.extra", nn.Tanh())
    assert.equal("Tanh", copy.body.extra:type_name())
    fails("set_submodule", function() copy:set_submodule("body.none", act, true) end)
    fails("set_submodule: expected a module for argument 'module', got 3",
      function() copy:set_submodule("body.2", 3) end)
    fails("set_submodule: expected a path", function() copy:set_submodule("", act) end)
  end)

  it("list shared values under each name on request", function()
    local two = nn.Sequential(nn.Linear(1, 1, false), nn.Linear(1, 1, false))
    two[2].weight = two[1].weight
    local names = {}
    for name in two:named_parameters("net", true, false) do names[#names + 1] = name end
    assert.equal("net.1.weight net.2.weight", table.concat(names, " "))
    local act = nn.ReLU()
    local three, count = nn.Sequential(act, act), 0
    for _ in three:named_modules{remove_duplicate = false} do count = count + 1 end
    assert.equal(3, count)
    local paths = {}
    for path in three:named_modules(nil, "net") do paths[#paths + 1] = path end
    assert.equal("net net.1", table.concat(paths, " "))
  end)
end)

describe("conversion", function()
  it("converts everything to a dtype, and zeros gradients", function()
    local net = nn.BatchNorm1d(2)
    assert.equal(net, net:type "float64")
    assert.equal("float64", net.num_batches_tracked.dtype)
    assert.equal(net, net:share_memory())
    net(lt.ones{3, 2, dtype = "float64"}):sum():backward()
    net:zero_grad{set_to_none = false}
    assert.equal(0, net.weight.grad:abs():sum():item())
    net:zero_grad()
    assert.is_nil(net.weight.grad)
  end)

  it("calls train of the children's classes", function()
    local Frozen = nn.BatchNorm1d:extend "Frozen"
    function Frozen:train() return nn.BatchNorm1d.train(self, false) end
    local net = nn.Sequential(Frozen(2), nn.ReLU()):train()
    assert.is_false(net[1].training)
    assert.is_true(net[2].training)
  end)
end)
