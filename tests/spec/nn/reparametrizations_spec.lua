-- nn.utils: weight_norm, spectral_norm, parametrize, parametrizations, prune and fusion, compared
-- with PyTorch (tools/golden/reparametrizations.py).

local lt = require "lutra"
local support = require "nn_support"
local wide = require "wide_support"

local nn = lt.nn
local utils = nn.utils
local parametrize, prune = utils.parametrize, utils.prune
local fails, close = support.fails, support.close
local golden = support.golden "reparametrizations"

local function tensor(x) return support.tensor(x, wide.dtype) end

local function layer(text, weight)
  local m = load("local nn = ... return " .. text)(nn):to(wide.dtype)
  m.weight = nn.Parameter(tensor(weight))
  return m
end

local function probe(x)
  return lt.arange(0, x:numel() - 1):to(wide.dtype):cos():reshape(x.shape)
end

local function set(x, value) lt.no_grad(function() x:copy_(value) end) end

-- Calls a layer with an input, only for its hooks before forward.
local function run(m) pcall(m, lt.ones(1)) end

describe("against PyTorch " .. golden.version, function()
  it("weight_norm has its values and gradients", function()
    for _, case in ipairs(golden.weight_norms) do
      local m = layer(case.layer, case.weight)
      assert.equal(m, utils.parametrizations.weight_norm(m, "weight", case.dim))
      local list = m.parametrizations.weight
      close(case.weight, m.weight, 1e-12)
      close(case.g, list.original0, 1e-12)
      lt.no_grad(function()
        list.original0:mul_(1.5)
        list.original1:add_(0.1)
      end)
      local weight = m.weight;
      (weight * probe(weight)):sum():backward()
      close(case.out, weight, 1e-12)
      close(case.grad_g, list.original0.grad, 1e-12)
      close(case.grad_v, list.original1.grad, 1e-12)

      local old = utils.weight_norm(layer(case.layer, case.weight), "weight", case.dim)
      close(case.g, old.weight_g, 1e-12)
      lt.no_grad(function()
        old.weight_g:mul_(1.5)
        old.weight_v:add_(0.1)
      end)
      run(old)
      close(case.out, old.weight, 1e-12);
      (old.weight * probe(old.weight)):sum():backward()
      close(case.grad_g, old.weight_g.grad, 1e-12)
      close(case.grad_v, old.weight_v.grad, 1e-12)
      utils.remove_weight_norm(old)
      close(case.out, old.weight, 1e-12)
      assert.is_true(lt.is_parameter(old.weight))
      assert.is_nil(old.weight_g)
    end
  end)

  it("spectral_norm has its values, gradients and vectors", function()
    for _, case in ipairs(golden.spectral_norms) do
      local m = layer(case.layer, case.weight)
      utils.parametrizations.spectral_norm(m, {n_power_iterations = case.n})
      local norm = m.parametrizations.weight[1]
      set(norm._u, tensor(case.u))
      set(norm._v, tensor(case.v))
      local weight = m.weight;
      (weight * probe(weight)):sum():backward()
      close(case.out, weight, 1e-12)
      close(case.grad, m.parametrizations.weight.original.grad, 1e-11)
      close(case.u_after, norm._u, 1e-12)
      close(case.v_after, norm._v, 1e-12)
      m:eval()
      close(case.eval, m.weight, 1e-12)
      close(case.u_after, norm._u, 1e-12)

      local old = utils.spectral_norm(layer(case.layer, case.weight),
        {n_power_iterations = case.n})
      set(old.weight_u, tensor(case.u))
      set(old.weight_v, tensor(case.v))
      old:eval()
      run(old) -- no iteration
      close(case.u, old.weight_u, 0)
      old:train()
      run(old)
      close(case.old, old.weight, 1e-12)
      close(case.old_u, old.weight_u, 1e-12)
      close(case.old_v, old.weight_v, 1e-12)
      utils.remove_spectral_norm(old)
      assert.is_true(lt.is_parameter(old.weight))
      assert.is_nil(old.weight_orig)
    end
  end)

  it("orthogonal has its values and gradients", function()
    for _, case in ipairs(golden.orthogonals) do
      local what = case.map .. tostring(case.trivial)
      local m = nn.Module()
      m.weight = nn.Parameter(tensor(case.weight))
      utils.parametrizations.orthogonal(m, "weight", case.map, case.trivial)
      local list = m.parametrizations.weight
      if case.first then close(case.first, m.weight, 1e-10, what) end
      set(list.original, tensor(case.original))
      if case.base then set(list[1].base, tensor(case.base)) end
      local weight = m.weight;
      (weight * probe(weight)):sum():backward()
      close(case.out, weight, 1e-10, what)
      close(case.grad, list.original.grad, 1e-9, what)
    end
  end)

  it("pruning has its masks", function()
    for _, case in ipairs(golden.prunings) do
      local m = layer("nn.Linear(4, 5)", case.weight)
      local scores = lt.arange(0, 19):to(wide.dtype):cos():reshape(5, 4)
      load("local prune, m, scores = ... " .. case.code)(prune, m, scores)
      close(case.mask, m.weight_mask, 0, case.code)
      close(case.out, m.weight, 0, case.code)
    end
    for _, case in ipairs(golden.globals) do
      local a, b = layer("nn.Linear(3, 2)", case.weights[1]), layer("nn.Linear(2, 4)",
        case.weights[2])
      local pairs_of = {{a, "weight"}, {b, "weight"}}
      prune.global_unstructured(pairs_of, prune.L1Unstructured, {amount = 5})
      close(case.first[1], a.weight_mask, 0)
      close(case.first[2], b.weight_mask, 0)
      prune.global_unstructured(pairs_of, prune.l1_unstructured, {amount = 0.5})
      close(case.second[1], a.weight_mask, 0)
      close(case.second[2], b.weight_mask, 0)
    end
  end)

  it("fusion has its weights", function()
    for _, case in ipairs(golden.fusions) do
      local given = {n = 7}
      for i, x in ipairs(case.args) do
        given[i] = type(x) == "table" and tensor(x) or x or nil
      end
      local w, b
      if case.kind == "linear" then
        w, b = utils.fusion.fuse_linear_bn_weights(table.unpack(given, 1, 7))
      else
        given[8] = case.kind == "transpose"
        w, b = utils.fusion.fuse_conv_bn_weights(table.unpack(given, 1, 8))
      end
      close(case.weight, w, 1e-12)
      close(case.bias, b, 1e-12)
    end
  end)
end)

describe("parametrize", function()
  local Symmetric = nn.Module:extend "Symmetric"
  function Symmetric.forward(_, x) return x:triu() + x:triu(1):t() end
  function Symmetric.right_inverse(_, x) return x:triu() end
  local Double = nn.Module:extend "Double"
  function Double.forward(_, x) return x * 2 end

  it("computes, assigns and removes a tensor", function()
    local m = nn.Linear(3, 3)
    local parameter = m.weight
    assert.is_false(parametrize.is_parametrized(m))
    assert.equal(m, parametrize.register_parametrization(m, "weight", Symmetric()))
    assert.is_true(parametrize.is_parametrized(m))
    assert.is_true(parametrize.is_parametrized(m, "weight"))
    assert.is_false(parametrize.is_parametrized(m, "bias"))
    assert.equal(nn.Linear, parametrize.type_before_parametrizations(m))
    assert.equal("ParametrizedLinear", m:type_name())
    assert.equal(parameter, m.parametrizations.weight.original)
    close(m.weight:t():detach(), m.weight, 0)
    local names = {}
    for name in pairs(m:state_dict()) do names[#names + 1] = name end
    assert.equal("bias parametrizations.weight.original", table.concat(names, " "))
    local value = lt.tensor{{1.0, 2, 3}, {2, 4, 5}, {3, 5, 6}}
    m.weight = value
    close(value, m.weight, 0)
    m(lt.ones(1, 3)):sum():backward()
    assert.is_truthy(parameter.grad)
    local copy = m:clone()
    lt.no_grad(function() copy.parametrizations.weight.original:zero_() end)
    close(value, m.weight, 0)
    assert.equal(0, copy.weight:abs():sum():item())
    assert.equal(m, parametrize.remove_parametrizations(m, "weight"))
    assert.equal(parameter, m.weight)
    close(value, m.weight, 0)
    assert.equal("Linear", m:type_name())
    assert.is_nil(m.parametrizations)
  end)

  it("applies several in order, and caches", function()
    local m, calls = nn.Linear(2, 2), 0
    local Counting = Double:extend "Counting"
    function Counting:forward(x)
      calls = calls + 1
      return Double.forward(self, x)
    end
    local before = m.weight:detach():clone()
    parametrize.register_parametrization(m, "weight", Symmetric())
    parametrize.register_parametrization(m, "weight", Counting())
    close((before:triu() + before:triu(1):t()) * 2, m.weight, 1e-6)
    calls = 0
    local sum = parametrize.cached(function(x) return (m(x) + m(x)):sum() end, lt.ones(1, 2))
    assert.equal(1, calls)
    assert.is_true(lt.is_tensor(sum))
    local _ = m.weight
    assert.equal(2, calls)
    fails("Counting: cannot assign to the parametrized tensor", function() m.weight = before end)
    parametrize.remove_parametrizations(m, "weight", false)
    close(before:triu(), m.weight, 0)
  end)

  it("is transferred with its parameters", function()
    local transfer = parametrize.transfer_parametrizations_and_params
    local from, to = nn.Linear(2, 2), nn.Linear(2, 2)
    assert.equal(to, transfer(from, to))
    assert.is_false(parametrize.is_parametrized(to))
    parametrize.register_parametrization(from, "weight", Symmetric())
    parametrize.register_parametrization(from, "weight", Double())
    utils.parametrizations.weight_norm(from, "bias", false)
    assert.equal(to, transfer(from, to, "weight"))
    close(from.weight:detach(), to.weight, 0)
    assert.equal(from.parametrizations.weight.original, to.parametrizations.weight.original)
    assert.is_false(parametrize.is_parametrized(to, "bias"))
    local empty = transfer(from, nn.Module())
    close(from.bias:detach(), empty.bias, 0)
    assert.equal(from.parametrizations.bias.original1, empty.parametrizations.bias.original1)
    fails({"transfer_parametrizations_and_params", "'tensor_name', got \"none\""},
      function() transfer(from, to, "none") end)
    fails("'to_module', got 3", function() transfer(from, 3) end)
  end)

  it("moves, trains and loads like the module", function()
    local m = utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    local other = utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    other:load_state_dict(m:state_dict())
    m:eval()
    other:eval()
    close(m.weight:detach(), other.weight, 0)
    assert.equal("float64", m:double().weight.dtype)
    assert.is_false(m.parametrizations.weight[1].training)
    local w = utils.parametrizations.weight_norm(nn.Linear(3, 2))
    parametrize.remove_parametrizations(w, "weight")
    assert.is_true(lt.is_parameter(w.weight))
    local v = utils.parametrizations.weight_norm(nn.Linear(3, 2))
    fails("remove_parametrizations: cannot leave a tensor unparametrized",
      function() parametrize.remove_parametrizations(v, "weight", false) end)
  end)

  it("makes matrices orthogonal, from a given value", function()
    local eye = lt.eye(3)
    for _, map in ipairs {"matrix_exp", "cayley", "householder"} do
      local m = utils.parametrizations.orthogonal(nn.Linear(3, 3), "weight", map)
      close(eye, m.weight:matmul(m.weight:t()):detach(), 1e-5)
      local value = nn.init.orthogonal_(lt.empty(3, 3))
      m.weight = value
      close(value, m.weight, 1e-5)
      local tall = utils.parametrizations.orthogonal(nn.Linear(2, 4), "weight", map)
      close(lt.eye(2), tall.weight:t():matmul(tall.weight):detach(), 1e-5)
    end
    local m = utils.parametrizations.orthogonal(nn.Linear(3, 3), {use_trivialization = false})
    fails("cannot assign", function() m.weight = eye end)
  end)

  it("refuses what does not fit", function()
    local Small = nn.Module:extend "Small"
    function Small.forward(_, x) return x:sum() end
    local register = parametrize.register_parametrization
    fails("register_parametrization: expected the parametrized tensor to have shape {2, 2}",
      function() register(nn.Linear(2, 2), "weight", Small()) end)
    register(nn.Linear(2, 2), "weight", Small(), {unsafe = true})
    fails('register_parametrization: expected the name of a parameter or buffer of Linear for '
      .. 'argument \'tensor_name\', got "wight"',
      function() register(nn.Linear(2, 2), "wight", Double()) end)
    fails("'parametrization', got 3", function() register(nn.Linear(2, 2), "weight", 3) end)
    fails("remove_parametrizations: expected the name of a parametrized tensor",
      function() parametrize.remove_parametrizations(nn.Linear(2, 2), "weight") end)
    fails("orthogonal: expected matrix_exp, cayley or householder", function()
      utils.parametrizations.orthogonal(nn.Linear(2, 2), "weight", "exp")
    end)
    fails("orthogonal: expected a tensor of at least 2 dimensions", function()
      utils.parametrizations.orthogonal(nn.Linear(2, 2), "bias")
    end)
    fails("weight_norm: expected the name of a parameter", function()
      utils.weight_norm(nn.Linear(2, 2), "none")
    end)
    fails("weight_norm: cannot register two hooks on the same parameter", function()
      local m = utils.weight_norm(nn.Linear(2, 2))
      m:register_parameter("weight", nn.Parameter(lt.ones(2, 2)))
      utils.weight_norm(m)
    end)
    fails("remove_spectral_norm: expected the name of a tensor with spectral_norm",
      function() utils.remove_spectral_norm(nn.Linear(2, 2)) end)
  end)
end)

describe("prune", function()
  it("keeps zeros while training, and ends", function()
    local m = nn.Linear(4, 4)
    local parameter = m.weight
    assert.is_false(prune.is_pruned(m))
    assert.equal(m, prune.random_unstructured(m, "weight", 0.5))
    assert.is_true(prune.is_pruned(nn.Sequential(m)))
    assert.equal(8, m.weight_mask:sum():item())
    assert.equal(parameter, m.weight_orig)
    m(lt.ones(2, 4)):sum():backward()
    close(m.weight_mask * 2, parameter.grad, 0)
    prune.random_unstructured(m, "weight", 0.25)
    assert.equal(6, m.weight_mask:sum():item())
    prune.remove(m, "weight")
    assert.equal(parameter, m.weight)
    assert.equal(10, m.weight:eq(0):sum():item())
    assert.is_false(prune.is_pruned(m))
    assert.is_nil(m.weight_mask)
    fails("remove: expected the name of a pruned parameter",
      function() prune.remove(m, "weight") end)
  end)

  it("removes channels, nothing, or by a mask", function()
    local m = prune.random_structured(nn.Linear(4, 6), "weight", 2, 1)
    assert.equal(2, m.weight_mask:sum(2):eq(0):sum():item())
    prune.random_structured(m, "weight", 0.5, 1)
    assert.equal(4, m.weight_mask:sum(2):eq(0):sum():item())
    assert.equal(8, prune.identity(nn.Linear(4, 2), "weight").weight_mask:sum():item())
    local masked = prune.custom_from_mask(nn.Linear(2, 2), "bias", lt.tensor{0, 1})
    assert.equal(0, masked.bias[1]:item())
    local copy = masked:clone()
    assert.is_true(prune.is_pruned(copy))
  end)

  it("applies classes, also those of the user", function()
    local Halved = prune.BasePruningMethod:extend "Halved"
    function Halved:init(first) self.first = first or 1 end
    function Halved:compute_mask(t, default_mask)
      assert.equal(tostring(t.shape), tostring(default_mask.shape))
      local mask = default_mask:clone()
      mask:view(-1)[self.first .. "::2"] = 0
      return mask
    end
    local m = nn.Linear(2, 2)
    m.weight = nn.Parameter(lt.tensor{{1., 2}, {3, 4}})
    assert.equal(1, Halved.apply(m, "weight").first)
    assert.same({{0, 2}, {0, 4}}, m.weight:totable())
    Halved:apply(m, "weight", 2) -- the second of the two that are left
    assert.same({{0, 2}, {0, 0}}, m.weight:totable())
    assert.same({0, 5}, Halved():prune(lt.tensor{4, 5}):totable())
    fails("Empty: cannot prune: the class has no method compute_mask",
      function() prune.BasePruningMethod:extend("Empty").apply(m, "bias") end)

    m = nn.Linear(2, 2)
    m.weight = nn.Parameter(lt.tensor{{1., 2}, {3, 4}})
    prune.L1Unstructured.apply(m, "weight", {amount = 1, importance_scores = -m.weight ^ -1})
    assert.same({{1, 2}, {3, 0}}, m.weight:totable())
    prune.LnStructured.apply(m, "weight", 1, 2, {dim = 1})
    assert.same({{0, 0}, {3, 0}}, m.weight:totable())
    assert.same({{0, 0}, {3, 4}},
      prune.CustomFromMask(lt.tensor{{0, 0}, {1, 1}}):prune(lt.tensor{{1, 2}, {3, 4}}):totable())
    prune.global_unstructured({{m, "weight"}, {m, "bias"}}, Halved)
    assert.same({{0, 0}, {0, 0}}, m.weight:totable())
    assert.same({1, 0}, m.bias_mask:totable())
  end)

  it("refuses amounts and shapes that do not fit", function()
    local m = nn.Linear(2, 2)
    fails("l1_unstructured: expected at most 4 elements to prune for argument 'amount', got 5",
      function() prune.l1_unstructured(m, "weight", 5) end)
    fails("l1_unstructured: expected a fraction from 0 to 1 for argument 'amount', got 1.5",
      function() prune.l1_unstructured(m, "weight", 1.5) end)
    fails("'dim', got 3", function() prune.ln_structured(m, "weight", 1, 2, 3) end)
    fails("ln_structured: expected a tensor of at least 2 dimensions",
      function() prune.ln_structured(m, "bias", 1, 2, 1) end)
    fails("custom_from_mask: expected a mask of the parameter's shape {2, 2}, got {2}",
      function() prune.custom_from_mask(m, "weight", lt.ones(2)) end)
    for _, method in ipairs {print, prune.LnStructured, prune.l1_unstructured(m, "weight", 1)} do
      fails("global_unstructured: expected prune.L1Unstructured",
        function() prune.global_unstructured({{m, "bias"}}, method, {amount = 1}) end)
    end
    prune.remove(m, "weight")
    fails("identity: expected the name of a parameter", function() prune.identity(m, "none") end)
    assert.is_false(prune.is_pruned(m))
  end)
end)

describe("fusion", function()
  it("is also in nn.utils", function()
    for name, f in pairs(utils.fusion) do assert.equal(f, utils[name]) end
    fails("fuse_conv_bn_eval: expected modules in evaluation mode",
      function() utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)) end)
  end)

  it("computes what both layers compute", function()
    for _, pair in ipairs {{nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), lt.randn(2, 2, 5, 5)},
      {nn.Linear(4, 3), nn.BatchNorm1d(3), lt.randn(6, 4)},
      {nn.Linear(4, 3, false), nn.BatchNorm1d(3, {affine = false}), lt.randn(6, 4)}} do
      local first, norm, x = table.unpack(pair)
      norm(first(x)) -- running statistics
      first:eval()
      norm:eval()
      local fuse = x.ndim == 4 and utils.fusion.fuse_conv_bn_eval
        or utils.fusion.fuse_linear_bn_eval
      local before = first.weight:detach():clone()
      close(norm(first(x)):detach(), fuse(first, norm)(x), 1e-4)
      close(before, first.weight, 0)
    end
    fails("fuse_conv_bn_eval: expected modules in evaluation mode", function()
      utils.fusion.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1))
    end)
    fails("fuse_linear_bn_eval: expected 3 features", function()
      utils.fusion.fuse_linear_bn_eval(nn.Linear(2, 3):eval(), nn.BatchNorm1d(2):eval())
    end)
  end)
end)
