-- nn.utils: norms and limits of gradients, parameters as one vector.

local lt = require "lutra"
local support = require "nn_support"

local nn, utils = lt.nn, lt.nn.utils
local fails, close = support.fails, support.close

-- Parameters with the gradients {3, 4} and {{12}}: their norm is 13.
local function parameters()
  local a, b = nn.Parameter(lt.zeros(2)), nn.Parameter(lt.zeros(1, 1))
  a.grad, b.grad = lt.tensor{3.0, 4.0}, lt.tensor{{12.0}}
  return {a, b, nn.Parameter(lt.zeros(5))}
end

describe("norms of gradients", function()
  it("are those of one vector", function()
    local list = {lt.tensor{3.0, -4.0}, lt.tensor{{12.0}}}
    assert.equal(13, utils.get_total_norm(list):item())
    assert.equal(13, utils.get_total_norm{list[1], list[2]}:item())
    assert.equal(19, utils.get_total_norm(list, 1):item())
    assert.equal(12, utils.get_total_norm{list[1], list[2], norm_type = lt.inf}:item())
    assert.equal(0, utils.get_total_norm({}):item())
    assert.equal(5, utils.get_total_norm(list[1]):item())
    local bad = lt.tensor{lt.nan, 1}
    assert.is_true(utils.get_total_norm(bad):isnan():item())
    fails("get_total_norm: expected finite values, got a norm of order 2 that is nan",
      function() utils.get_total_norm(bad, {error_if_nonfinite = true}) end)
  end)

  it("are limited by clip_grad_norm_", function()
    local list = parameters()
    assert.equal(13, utils.clip_grad_norm_(list, 6.5):item())
    close(lt.tensor{1.5, 2}, list[1].grad, 1e-6)
    close(lt.tensor{{6.0}}, list[2].grad, 1e-6)
    utils.clip_grad_norm_(list, 100)
    close(lt.tensor{1.5, 2}, list[1].grad, 1e-6)
    list[1].grad:fill_(lt.inf)
    fails("clip_grad_norm_: expected finite values",
      function() utils.clip_grad_norm_(list, 1, {error_if_nonfinite = true}) end)
    close(lt.tensor{{6.0}}, list[2].grad, 1e-6)
    fails("clip_grad_norm_: expected tensors for argument 'parameters', got 3",
      function() utils.clip_grad_norm_(3, 1) end)
    for _, method in ipairs{"parameters", "named_parameters"} do
      fails("clip_grad_norm_: expected tensors for argument 'parameters', got the method itself\n"
        .. "hint: net:parameters()",
        function() utils.clip_grad_norm_(nn.Linear(2, 1)[method], 1) end)
    end
  end)

  it("given elsewhere scale by clip_grads_with_norm_", function()
    local list = parameters()
    assert.is_nil(utils.clip_grads_with_norm_(list, 1, lt.tensor(4.0)))
    close(lt.tensor{0.75, 1}, list[1].grad, 1e-6)
    utils.clip_grads_with_norm_(list, 1, lt.tensor(0.5))
    close(lt.tensor{0.75, 1}, list[1].grad, 1e-6)
    fails("'total_norm'", function() utils.clip_grads_with_norm_(list, 1, "x") end)
  end)

  it("do not limit values of clip_grad_value_", function()
    local list = parameters()
    utils.clip_grad_value_(list, 3.5, {foreach = false})
    close(lt.tensor{3, 3.5}, list[1].grad, 0)
    close(lt.tensor{{3.5}}, list[2].grad, 0)
  end)
end)

describe("parameters as a vector", function()
  it("go there and back", function()
    local net = nn.Linear(2, 1)
    local vector = utils.parameters_to_vector(net:parameters())
    assert.equal("{3}", tostring(vector.shape))
    vector:sum():backward()
    assert.equal(1, net.bias.grad:item())
    utils.vector_to_parameters(lt.tensor{1.0, 2, 3}, net:parameters())
    close(lt.tensor{{1.0, 2}}, net.weight, 0)
    close(lt.tensor{3.0}, net.bias, 0)
    close(lt.tensor{1.0, 2, 3}, utils.parameters_to_vector{net.weight, net.bias}, 0)
  end)

  it("must fit", function()
    local net = nn.Linear(2, 1)
    fails("vector_to_parameters: expected a vector of 3 elements for argument 'vec', got shape {2}",
      function() utils.vector_to_parameters(lt.ones(2), net:parameters()) end)
    fails("parameters_to_vector: expected at least one tensor",
      function() utils.parameters_to_vector({}) end)
    fails("parameters_to_vector: expected all parameters on one device", function()
      utils.parameters_to_vector({lt.ones(1), lt.ones(1, {device = "meta"})})
    end)
  end)
end)
