-- Optimizers with an algorithm of their own: Adafactor, Muon, LBFGS.

local lt = require "lutra"
local support = require "nn_support"
local wide = require "wide_support"

local nn, optim = lt.nn, lt.optim
local fails, close = support.fails, support.close
local golden = support.golden "optimizers"

local function parameters_of(list)
  local params = {}
  for i, t in ipairs(list) do params[i] = nn.Parameter(support.tensor(t)) end
  return params
end

describe("trajectories of PyTorch " .. golden.version, function()
  -- Muon computes in bfloat16, where the order of sums matters.
  local tolerances = {Adafactor = 1e-10, Muon = 5e-3}
  for number, case in ipairs(golden.matrices) do
    it(("%s, case %d"):format(case.name, number), function()
      local params = parameters_of(case.start)
      local optimizer = optim[case.name](params, case.options)
      for i, grads in ipairs(case.grads) do
        for k, p in ipairs(params) do p.grad = support.tensor(grads[k]) end
        optimizer:step()
        for k, p in ipairs(params) do
          close(case.steps[i][k], p, tolerances[case.name], ("step %d, %d"):format(i, k))
        end
      end
      local other = optim[case.name](params, {lr = 7})
      other:load_state_dict(optimizer:state_dict())
      assert.same(tostring(optimizer), tostring(other))
    end)
  end

  if wide.dtype == "float64" then
    for number, case in ipairs(golden.closures) do
      it(("%s, case %d"):format(case.name, number), function()
        local p = nn.Parameter(lt.tensor({-1.5}, {dtype = "float64"}))
        local q = nn.Parameter(lt.tensor({{2.0}}, {dtype = "float64"}))
        local optimizer = optim.LBFGS({p, q}, case.options)
        local function closure()
          optimizer:zero_grad()
          local loss = ((1 - p) ^ 2 + 100 * (q - p ^ 2) ^ 2):sum()
          loss = case.options.maximize and -loss or loss
          loss:backward()
          return loss
        end
        for i, expected in ipairs(case.steps) do
          -- From a state dict, it continues in the same way.
          if i == 3 then
            local saved = optimizer:state_dict{base = 0}
            optimizer = optim.LBFGS({p, q}, {lr = 3})
            optimizer:load_state_dict(saved)
          end
          local loss, state = optimizer:step(closure), optimizer.state[p]
          local error = math.abs(loss:item() - expected.loss)
          assert.is_true(error <= 1e-7 * (1 + math.abs(expected.loss)))
          close(expected.p, p, 1e-7, "p " .. i)
          close(expected.q, q, 1e-7, "q " .. i)
          assert.equal(expected.func_evals, state.func_evals)
          assert.equal(expected.n_iter, state.n_iter)
        end
      end)
    end
  end
end)

describe("an optimizer", function()
  it("refuses a setting as a field, which would have no effect", function()
    local p = nn.Parameter(lt.ones(2))
    local opt = optim.SGD({p}, {lr = 0.5})
    fails({"SGD: cannot set 'lr': each group of parameters has its own",
      "hint: for _, group in ipairs(opt.param_groups) do group.lr = 0.1 end"},
      function() opt.lr = 0.1 end)
    fails("AdamW: cannot set 'betas'", function() optim.AdamW({p}).betas = {0.5, 0.5} end)
    assert.is_nil(opt.lr)
    assert.equal(0.5, opt.param_groups[1].lr)
    opt.note = "field"
    assert.equal("field", opt.note)
  end)

  it("may have such a field when its class sets it before there are groups", function()
    local Slow = optim.SGD:extend "Slow"
    function Slow:init(params, lr)
      self.lr = lr
      optim.SGD.init(self, params, {lr = lr / 2})
    end
    local opt = Slow({nn.Parameter(lt.ones(2))}, 0.5)
    opt.lr = 0.25
    assert.same({0.25, 0.25}, {opt.lr, opt.param_groups[1].lr})
  end)

  it("of a class without a signature may have such a field", function()
    local Plain = optim.Optimizer:extend "Plain"
    function Plain:init(params, lr)
      self.lr = lr
      optim.Optimizer.init(self, params, {lr = lr})
      self.lr = 2 * lr
    end
    assert.equal(1, Plain({nn.Parameter(lt.ones(2))}, 0.5).lr)
  end)
end)

describe("Muon", function()
  it("accepts only matrices", function()
    fails("Muon: expected matrices in argument 'params', got a tensor of shape {3}",
      function() local _ = optim.Muon({nn.Parameter(lt.ones(3))}) end)
    local p = nn.Parameter(lt.ones(2, 2))
    fails({"Muon", "three numbers for argument 'ns_coefficients', got 2"},
      function() local _ = optim.Muon({p}, {ns_coefficients = {1, 2}}) end)
    fails({"Muon", "fewer than 100 for argument 'ns_steps'"},
      function() local _ = optim.Muon({p}, {ns_steps = 100}) end)
    fails({"Muon", "adjust_lr_fn"}, function() local _ = optim.Muon({p}, {adjust_lr_fn = "x"}) end)
  end)
end)

describe("Adafactor", function()
  it("keeps a row and a column for a matrix, and moves in float32 and bfloat16", function()
    for _, dtype in ipairs {"float32", "bfloat16"} do
      local p = nn.Parameter(lt.ones(4, 3, {dtype = dtype}))
      local optimizer = optim.Adafactor{p, lr = 0.5}
      p.grad = lt.ones(4, 3, {dtype = dtype})
      optimizer:step()
      assert.equal("{4, 1}", tostring(optimizer.state[p].row_var.shape))
      assert.equal("{1, 3}", tostring(optimizer.state[p].col_var.shape))
      assert.equal(dtype, p.dtype)
      close(lt.full({4, 3}, 0.5), p, 2 ^ -7)
    end
  end)

  it("checks its settings", function()
    local p = nn.Parameter(lt.ones(2, 2))
    fails({"Adafactor", "{a number or false, a number} for argument 'eps'"},
      function() local _ = optim.Adafactor({p}, {eps = {1}}) end)
    fails({"Adafactor", "at least 1 for argument 'd'"},
      function() local _ = optim.Adafactor({p}, {d = 0.5}) end)
    fails({"Adafactor", "at most 0 for argument 'beta2_decay'"},
      function() local _ = optim.Adafactor({p}, {beta2_decay = 1}) end)
  end)

  it("refuses a state of other shapes", function()
    local p = nn.Parameter(lt.ones(4, 3))
    local optimizer = optim.Adafactor{p}
    local saved = optimizer:state_dict()
    saved.state[1] = {step = 1, row_var = lt.ones(4, 3), col_var = lt.ones(1, 3)}
    fails("expected shape {4, 1} for row_var of parameter 1, got {4, 3}",
      function() optimizer:load_state_dict(saved) end)
  end)
end)

describe("LBFGS", function()
  it("requires a closure that returns a loss, and one group", function()
    local p, q = nn.Parameter(lt.ones(2)), nn.Parameter(lt.ones(2))
    local optimizer = optim.LBFGS {p}
    fails("LBFGS: expected a function that returns the loss for argument 'closure', got nil",
      function() optimizer:step() end)
    fails({"LBFGS", "expected a loss from the function", "got nil"},
      function() optimizer:step(function() end) end)
    fails("LBFGS: expected one group of parameters, got a second one",
      function() local _ = optim.LBFGS {{params = p}, {params = q}} end)
    fails({"LBFGS", "line_search_fn"},
      function() local _ = optim.LBFGS({p}, {line_search_fn = "x"}) end)
  end)

  it("ends where gradients are below the tolerance, and skips parameters without one", function()
    local p, q = nn.Parameter(lt.zeros(2)), nn.Parameter(lt.ones(3))
    local optimizer = optim.LBFGS {p, q}
    local loss = optimizer:step(function()
      optimizer:zero_grad()
      local l = (p * p):sum()
      l:backward()
      return l
    end)
    assert.equal(0, loss:item())
    assert.equal(1, optimizer.state[p].func_evals)
    assert.is_true(lt.equal(lt.ones(3), q:detach()))
  end)
end)

describe("a class that extends optim.Optimizer", function()
  it("takes its defaults from init, as in PyTorch", function()
    local Plain = optim.Optimizer:extend "Plain"
    function Plain:init(params, lr) optim.Optimizer.init(self, params, {lr = lr, decay = 0}) end
    function Plain:step()
      lt.no_grad(function()
        for _, group in ipairs(self.param_groups) do
          for _, p in ipairs(group.params) do
            self.state[p].steps = (self.state[p].steps or 0) + 1
            p:sub_(group.lr * p.grad)
          end
        end
      end)
    end
    local p = nn.Parameter(lt.ones(2))
    local opt = Plain({{params = {p}}}, 0.5)
    p:sum():backward()
    opt:step()
    assert.same({0.5, 0.5}, p:tolist())
    assert.equal(1, opt.state[p].steps)
    assert.equal(0.5, opt.param_groups[1].lr)
    assert.truthy(tostring(opt):find("decay=0, lr=0.5", 1, true))
    assert.has_error(function() optim.Optimizer.init(Plain({p}, 1), {p}, 3) end)
  end)
end)
