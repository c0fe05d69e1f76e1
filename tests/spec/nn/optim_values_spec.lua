-- Optimizers: trajectories of PyTorch, groups, state dicts, wrong settings.

local lt = require "lutra"
local programs = require "program_support"
local support = require "nn_support"
local wide = require "wide_support"

local nn, optim = lt.nn, lt.optim
local fails, close = support.fails, support.close
local golden = support.golden "optimizers"

local setup = golden.optimizers[1]
local cases = {table.unpack(golden.optimizers, 2)}
local goal, goal2 = support.tensor(setup.goal[1]), support.tensor(setup.goal[2])

local function start()
  local p, q = support.tensor(setup.start[1]), support.tensor(setup.start[2])
  return nn.Parameter(p), nn.Parameter(q)
end

-- The function that tools/golden/nn.py minimises.
local function loss_of(p, q)
  return ((p - goal) ^ 4):sum() + (q:sin() * goal2):sum()
end

local function step(optimizer, p, q)
  optimizer:zero_grad()
  loss_of(p, q):backward()
  optimizer:step()
end

local function with(t, extra)
  local new = {}
  for key, value in pairs(t) do new[key] = value end
  for key, value in pairs(extra) do new[key] = value end
  return new
end

-- An optimizer of a case of the golden table, for the parameters p and q.
local function optimizer_of(case, p, q)
  return optim[case.name]({{params = {p}}, with(case.group, {params = {q}})}, case.options)
end

-- The tensors in the states of parameters, in a fixed order.
local function tensors_of(optimizer, params)
  local list = {}
  for _, p in ipairs(params) do
    list[#list + 1] = p:detach()
    local names = {}
    for name, value in pairs(optimizer.state[p]) do
      if lt.is_tensor(value) then names[#names + 1] = name end
    end
    table.sort(names)
    for _, name in ipairs(names) do list[#list + 1] = optimizer.state[p][name] end
  end
  return list
end

-- The gradient of p at each step, whatever p is.
local function draw(p, i)
  return (lt.arange(p:numel(), {dtype = wide.dtype}) * 0.7 + i):sin():reshape(p.shape):to {
    dtype = p.dtype, device = p.device}
end

-- Two parameters after some steps of a case; `lay` gives each parameter its dtype, layout and
-- device.
local function run(case, count, lay)
  local params = {}
  for i, n in ipairs {1500, 33} do
    params[i] = nn.Parameter(lay((lt.arange(2 * n, {dtype = wide.dtype}) + i):cos():reshape(n, 2)))
  end
  local optimizer = optimizer_of(case, params[1], params[2])
  for i = 1, count do
    for _, p in ipairs(params) do p.grad = lay(draw(p, i)) end
    optimizer:step()
  end
  return tensors_of(optimizer, params)
end

describe("trajectories of PyTorch " .. golden.version, function()
  for number, case in ipairs(cases) do
    local title = ("%s, case %d"):format(case.name, number)
    it(title, function()
      local p, q = start()
      local optimizer = optimizer_of(case, p, q)
      for i, expected in ipairs(case.steps) do
        step(optimizer, p, q)
        close(expected[1], p, 1e-10, "step " .. i .. ", p")
        close(expected[2], q, 1e-10, "step " .. i .. ", q")
      end
    end)

    it(title .. ", in every dtype", function()
      for dtype, epsilon in pairs {float32 = 2 ^ -22, float16 = 2 ^ -10, bfloat16 = 2 ^ -7} do
        local function narrow(t) return t:to(dtype) end
        local function widened(t) return t:to(dtype):to(wide.dtype) end
        local large, small = run(case, 1, widened), run(case, 1, narrow)
        assert.equal(#large, #small)
        for i, t in ipairs(small) do
          assert.equal(dtype, t.dtype)
          close(large[i], t, epsilon, dtype)
        end
      end
    end)

    it(title .. ", in every layout", function()
      for _, dtype in ipairs {wide.dtype, "float32", "bfloat16"} do
        local function dense(t) return t:detach():to(dtype) end
        local function odd(t) return t:detach():to(dtype):t():contiguous():t() end
        local function apart(t) return lt.stack({dense(t), dense(t) * 0}, 3):select(3, 1) end
        local expected = run(case, 2, dense)
        for _, lay in ipairs {odd, apart} do
          for i, t in ipairs(run(case, 2, lay)) do
            assert.is_true(lt.equal(expected[i], t), dtype .. " " .. i)
          end
        end
      end
    end)
  end

  it("are there for every optimizer", function()
    local has, missing = {}, {}
    for _, list in ipairs {cases, golden.matrices, golden.closures} do
      for _, case in ipairs(list) do has[case.name] = true end
    end
    for _, name in ipairs(support.optimizers(true)) do
      if not has[name] then missing[#missing + 1] = name end
    end
    assert.same({}, missing)
  end)

  it("float32 follows float64", function()
    for _, name in ipairs(support.optimizers()) do
      local p, q = start()
      local p32, q32 = nn.Parameter(p:detach():to "float32"), nn.Parameter(q:detach():to "float32")
      local large, small = optim[name]({p, q}, {lr = 0.01}), optim[name]({p32, q32}, {lr = 0.01})
      for _ = 1, 10 do
        step(large, p, q)
        small:zero_grad()
        local first = ((p32 - goal:to "float32") ^ 4):sum()
        local second = (q32:sin() * goal2:to "float32"):sum()
        local loss = first + second
        loss:backward()
        small:step()
      end
      close(p:detach(), p32, 1e-5, name)
      assert.equal("float32", p32.dtype)
    end
  end)
end)

describe("the table of optimizers", function()
  -- A copy of optim with another file, used with the rest of the library.
  local folder
  before_each(function()
    folder = programs.folder()
    local source = package.searchpath("lutra.optim", package.path):gsub("%.lua$", "")
    os.execute(("mkdir %s/lutra && cp -r %s %s.lua %s/lutra"):format(folder, source, source,
      folder))
    local file <close> = assert(io.open(folder .. "/lutra/optim/plain_step.lua", "w"))
    file:write [[
      local Plain = require("lutra.optim.optimizer"):extend("PlainStep", "float lr = 0.5")
      function Plain.update(_, p, grad, _, group) p:add_(grad, {alpha = -group.lr}) end
      return Plain]]
  end)
  after_each(function() programs.remove(folder) end)

  it("has the class of each file in its folder", function()
    local result = programs.run("-e " .. programs.quote(([[
      package.path = %q .. "/?.lua;" .. package.path
      local p = lt.ones{2, requires_grad = true}
      p.grad = lt.ones(2)
      lt.optim.PlainStep({p}):step()
      print(p:totable()[2])
      local names = {}
      for name in next, lt.optim do names[#names + 1] = name end
      table.sort(names)
      print(table.concat(names, " "))
      print(pcall(function() return lt.optim.PlainStpe end))]]):format(folder)))
    local names = support.optimizers(true)
    table.move({"Optimizer", "PlainStep"}, 1, 2, #names + 1, names)
    table.sort(names)
    programs.has(result.out .. result.err, "0.5\n" .. table.concat(names, " ") .. "\nfalse")
    programs.has(result.out,
      'optim has no field "PlainStpe"\nhint: did you mean \'optim.PlainStep\'?')
  end)

  it("has those that are modules of package.preload, too", function()
    local result = programs.run("-e " .. programs.quote(([[
      package.preload["lutra.optim.plain_step"] =
        assert(loadfile(%q .. "/lutra/optim/plain_step.lua"))
      print(lt.optim.PlainStep, lt.optim.Adam)]]):format(folder)))
    assert.equal("class optim.PlainStep\tclass optim.Adam\n", result.out, result.err)
  end)
end)

describe("an optimizer", function()
  it("takes parameters in every form", function()
    local net = nn.Linear(2, 1)
    for _, given in ipairs {
      optim.SGD(net:parameters(), {lr = 0.5}), optim.SGD({net.weight, net.bias}, {lr = 0.5}),
      optim.SGD(net:parameters(), 0.5), optim.SGD {net:parameters(), lr = 0.5},
      optim.SGD {net.weight, net.bias, lr = 0.5},
      optim.SGD {params = net:parameters(), lr = 0.5},
    } do
      assert.equal(1, #given.param_groups)
      assert.equal(2, #given.param_groups[1].params)
      assert.equal(net.weight, given.param_groups[1].params[1])
      assert.equal(0.5, given.param_groups[1].lr)
    end
  end)

  it("leaves parameters without a gradient alone", function()
    local a, b = nn.Parameter(lt.ones(2)), nn.Parameter(lt.ones(2))
    local optimizer = optim.AdamW({a, b}, {lr = 0.1})
    a:sum():backward()
    optimizer:step()
    assert.is_true(lt.equal(lt.ones(2), b:detach()))
    assert.is_false(lt.equal(lt.ones(2), a:detach()))
    assert.is_nil(optimizer.state[b])
  end)

  it("calls a closure with gradients on and returns its loss", function()
    local p = nn.Parameter(lt.ones(1))
    local optimizer = optim.SGD({p}, {lr = 0.25})
    local loss = lt.no_grad(function()
      return optimizer:step(function()
        optimizer:zero_grad()
        local l = (p * p):sum()
        l:backward()
        return l
      end)
    end)
    assert.equal(1, loss:item())
    assert.equal(0.5, p:item())
    fails("expected a function for argument 'closure', got 3", function() optimizer:step(3) end)
  end)

  it("keeps the graph out of its updates and the parameters leaves", function()
    local p = nn.Parameter(lt.ones(1))
    for _, name in ipairs(support.optimizers()) do
      local optimizer = optim[name]({p}, {lr = 0.1})
      p:sum():backward()
      optimizer:step()
      assert.is_true(p.is_leaf and p.requires_grad)
      optimizer:zero_grad()
      assert.is_nil(p.grad)
    end
  end)

  it("continues after the module moved to another dtype", function()
    local net = nn.Linear(2, 1)
    local optimizer = optim.SGD(net:parameters(), {lr = 0.1})
    net:to(wide.dtype)
    net(lt.ones(1, 2, {dtype = wide.dtype})):sum():backward()
    local before = net.bias:item()
    optimizer:step()
    assert.is_true(math.abs(before - 0.1 - net.bias:item()) < wide.tolerance(1e-12, 1e-6))
  end)

  it("continues exactly from a state dict", function()
    for _, case in ipairs {{"SGD", {lr = 0.05, momentum = 0.9}}, {"Adam", {lr = 0.1}},
      {"AdamW", {lr = 0.1, amsgrad = true}}} do
      local p, q = start()
      local whole = optim[case[1]]({p, q}, case[2])
      for _ = 1, 3 do step(whole, p, q) end
      local p2, q2 = nn.Parameter(p:detach():clone()), nn.Parameter(q:detach():clone())
      local other = optim[case[1]]({p2, q2}, {lr = 7})
      other:load_state_dict(whole:state_dict())
      assert.equal(case[2].lr, other.param_groups[1].lr)
      for _ = 1, 3 do
        step(whole, p, q)
        step(other, p2, q2)
      end
      close(p:detach(), p2, 0, case[1])
      close(q:detach(), q2, 0, case[1])
    end
  end)

  it("refuses a state dict that does not fit and stays as it was", function()
    local p, q = start()
    local one, two = optim.Adam({p}), optim.Adam({p, q})
    step(two, p, q)
    fails({"Adam", "expected 2 parameters in group 1, got 1"},
      function() two:load_state_dict(one:state_dict()) end)
    fails("Adam", function() two:load_state_dict({}) end)
    local saved = two:state_dict()
    saved.state[1].exp_avg = lt.ones(9)
    fails({"exp_avg", "parameter 1", "{9}"}, function() two:load_state_dict(saved) end)
    assert.equal(1, two.state[p].step)
    for piece, change in pairs {
      ["meta"] = function(s) s.state[2].exp_avg = s.state[2].exp_avg:to "meta" end, -- no data
      ["expected {params = ..., lr = ...} for group 1"] = function(s) s.param_groups[1] = 5 end,
      ["{params = ..., lr = ...} for group 1"] = function(s) s.param_groups[1].params = nil end,
      ["expected a table for the state of parameter 2"] = function(s) s.state[2] = 5 end,
      ["expected a number of at least 0 for lr of group 1, got the string \"x\""] = function(s)
        s.param_groups[1].lr = "x"
      end,
    } do
      saved = two:state_dict()
      saved.param_groups[1].eps, saved.state[1].step = 0.5, 7
      change(saved)
      fails({piece}, function() two:load_state_dict(saved) end)
      assert.equal(1, two.state[p].step)
      assert.equal(1e-8, two.param_groups[1].eps)
    end
  end)

  it("prints its groups", function()
    local text = tostring(optim.AdamW({nn.Parameter(lt.ones(2))}, {lr = 0.125}))
    assert.is_truthy(text:find("AdamW", 1, true))
    assert.is_truthy(text:find("lr=0.125, betas={0.9, 0.999}", 1, true))
  end)
end)

describe("an optimizer", function()
  local function two()
    local p, q = nn.Parameter(lt.ones(2)), nn.Parameter(lt.ones(3))
    p.grad, q.grad = lt.ones(2), lt.ones(3)
    return p, q
  end

  it("takes parameters with names", function()
    local net = nn.Linear(2, 1)
    for _, given in ipairs {optim.SGD(net:named_parameters(), {lr = 0.5}),
      optim.SGD({{"weight", net.weight}, {"bias", net.bias}}, {lr = 0.5}),
      optim.SGD({{params = net:named_parameters(), lr = 0.5}})} do
      assert.same({"weight", "bias"}, given.param_groups[1].param_names)
      assert.equal(net.bias, given.param_groups[1].params[2])
      assert.equal(0.5, given.param_groups[1].lr)
      assert.same({"weight", "bias"}, given:state_dict().param_groups[1].param_names)
    end
    local p, q = two()
    fails("SGD: expected names for all parameters or for none, got parameter 1 without a name",
      function() local _ = optim.SGD {p, {"q", q}} end)
    fails("SGD: expected names for all groups or for none, got group 1 with names", function()
      local _ = optim.SGD {{params = {{"p", p}}}, {params = {q}}}
    end)
    fails("SGD: expected tensors in argument 'params', got 3",
      function() local _ = optim.SGD {{"p", 3}} end)
  end)

  it("clears gradients, or fills them with zeros", function()
    local p, q = two()
    local optimizer = optim.SGD {p, q}
    q.grad = nil
    local grad = p.grad
    optimizer:zero_grad{set_to_none = false}
    assert.is_true(lt.equal(lt.zeros(2), p.grad))
    assert.is_true(lt.equal(lt.zeros(2), grad))
    assert.is_nil(q.grad)
    optimizer:zero_grad()
    assert.is_nil(p.grad)
    fails({"zero_grad", "set_to_none"}, function() optimizer:zero_grad(3) end)
  end)

  it("keeps settings that are given as tensors as numbers", function()
    local function group(...) return optim.SGD(...).param_groups[1] end
    local w = lt.ones(2, {requires_grad = true})
    assert.equal(0.5, group({w}, lt.tensor(0.5)).lr)
    assert.equal(0.5, group({w}, {lr = lt.tensor(0.5)}).lr)
    assert.equal(0.5, group{w, lr = lt.tensor{0.5}}.lr)
    assert.equal(0.5, group({{params = {w}, lr = lt.tensor(0.5)}}, {lr = 1}).lr)
    assert.equal(w, group({w}, {momentum = lt.tensor(0.5)}).params[1])
    fails("SGD: expected a number of at least 0 for argument 'lr', got a tensor of shape {2}",
      function() optim.SGD({w}, {lr = lt.ones(2)}) end)
  end)

  it("reads the lr of a group that was changed to a tensor", function()
    local w = lt.ones(1, {requires_grad = true})
    local optimizer = optim.SGD({w}, {lr = 1})
    w.grad = lt.ones(1)
    optimizer.param_groups[1].lr = lt.tensor(0.5)
    optimizer:step()
    assert.equal(0.5, w:item())
    optimizer.param_groups[1].lr = "0.5"
    fails('SGD: step: expected a number for lr of a group, got the string "0.5"',
      function() optimizer:step() end)
    assert.equal(0.5, w:item())
    local Shrink = optim.Optimizer:extend("Shrink", "float factor = 0.5")
    function Shrink.update(_, p, _, _, group) p:mul_(group.factor) end
    Shrink({w}):step() -- a class without lr
    assert.equal(0.25, w:item())
  end)

  it("calls hooks around a step", function()
    local p = two()
    local optimizer, seen = optim.SGD({p}, {lr = 1}), {}
    local function note(what) return function(o, inputs)
      assert.equal(optimizer, o)
      seen[#seen + 1] = what .. inputs.n .. p:detach()[1]:item()
    end end
    local before = optimizer:register_step_pre_hook(note "before ")
    local after = optimizer:register_step_post_hook(note "after ")
    optimizer:step()
    optimizer:step(function() end)
    assert.same({"before 01.0", "after 00.0", "before 10.0", "after 1-1.0"}, seen)
    before:remove()
    after:remove()
    local replace = optimizer:register_step_pre_hook(function()
      return {function() return "replaced" end, n = 1}
    end)
    assert.equal("replaced", optimizer:step())
    replace:remove()
    assert.is_nil((optimizer:step()))
    assert.equal(4, #seen)
    fails("register_step_pre_hook: expected a function for argument 'hook', got 3",
      function() optimizer:register_step_pre_hook(3) end)
  end)

  it("calls hooks around state_dict and load_state_dict", function()
    local p = two()
    local optimizer, seen = optim.SGD({p}, {lr = 1}), {}
    optimizer:register_state_dict_pre_hook(function() seen[#seen + 1] = "second" end)
    optimizer:register_state_dict_pre_hook(function() seen[#seen + 1] = "first" end, true)
    optimizer:register_state_dict_post_hook(function(_, saved) saved.extra = 5 end)
    assert.equal(5, optimizer:state_dict().extra)
    optimizer:register_load_state_dict_pre_hook(function(_, saved)
      return {state = saved.state, param_groups = {{params = {1}, lr = 3}}}
    end)
    optimizer:register_load_state_dict_post_hook(function(o)
      seen[#seen + 1] = "lr " .. o.param_groups[1].lr
    end)
    optimizer:load_state_dict(optimizer:state_dict())
    assert.same({"first", "second", "first", "second", "lr 3"}, seen)
  end)

  it("exchanges its state with PyTorch, which counts from 0", function()
    local p, q = two()
    local optimizer = optim.NAdam({{params = p}, {params = q, lr = 0.5}})
    optimizer:step()
    local saved = optimizer:state_dict {base = 0}
    assert.same({0}, saved.param_groups[1].params)
    assert.same({1}, saved.param_groups[2].params)
    assert.equal(optimizer.state[p].exp_avg, saved.state[0].exp_avg)
    assert.is_nil(saved.state[2])
    -- as PyTorch writes it: numbers are tensors
    for i = 0, 1 do
      for _, name in ipairs {"step", "mu_product"} do
        saved.state[i][name] = lt.tensor(saved.state[i][name], {dtype = wide.dtype})
      end
      saved.state[i].exp_avg = saved.state[i].exp_avg:to(wide.dtype)
    end
    saved.param_groups[1].lr = lt.tensor(0.25)
    local other = optim.NAdam({{params = p}, {params = q}})
    other:load_state_dict(saved, {base = 0})
    assert.equal("integer", math.type(other.state[p].step))
    assert.equal("float32", other.state[p].exp_avg.dtype)
    assert.equal(0.25, other.param_groups[1].lr)
    close(lt.tensor(optimizer.state[q].mu_product), lt.tensor(other.state[q].mu_product), 1e-6)
    local before = q:detach():clone()
    optimizer:step()
    local expected = q:detach():clone()
    lt.no_grad(function() q:copy_(before) end)
    other:step()
    close(expected, q:detach(), 1e-6)
  end)

  it("counts the steps of each parameter, and its numbers", function()
    for _, name in ipairs {"NAdam", "ASGD"} do
      local p, q = two()
      local optimizer = optim[name]({p, q}, {lr = 0.1})
      q.grad = nil
      optimizer:step()
      q.grad = lt.ones(3)
      optimizer:step()
      assert.equal(2, optimizer.state[p].step)
      assert.equal(1, optimizer.state[q].step)
      local r = nn.Parameter(lt.ones(3))
      r.grad = lt.ones(3)
      local alone = optim[name]({r}, {lr = 0.1})
      alone:step()
      assert.is_true(lt.equal(r:detach(), q:detach()), name)
    end
  end)

  it("does not record a step for gradients", function()
    fails({"Adam", "differentiable = true is not yet supported"},
      function() local _ = optim.Adam({(two())}, {differentiable = true}) end)
  end)
end)

describe("wrong settings", function()
  local p = nn.Parameter(lt.ones(2))

  it("of parameters", function()
    fails({"SGD", "at least one tensor"}, function() local _ = optim.SGD({}, {lr = 1}) end)
    local iterator = nn.Linear(1, 1):parameters()
    for _ in iterator do end
    fails({"SGD", "at least one tensor", "after one pass"},
      function() local _ = optim.SGD(iterator, {lr = 1}) end)
    fails({"SGD", "params"}, function() local _ = optim.SGD() end)
    fails({"SGD", "net:parameters()"},
      function() local _ = optim.SGD(nn.Linear(1, 1), {lr = 1}) end)
    fails("SGD: expected tensors in argument 'params', got 3",
      function() local _ = optim.SGD({3}, {lr = 1}) end)
    fails("leaf", function() local _ = optim.SGD({p * 2}, {lr = 1}) end)
    fails("twice", function() local _ = optim.SGD({p, p}, {lr = 1}) end)
    fails("twice", function() local _ = optim.SGD({{params = {p}}, {params = p}}, {lr = 1}) end)
    fails("params", function() local _ = optim.SGD({{p}}, {lr = 1}) end)
  end)

  it("of numbers", function()
    fails({"SGD", "lr", "-1"}, function() local _ = optim.SGD({p}, {lr = -1}) end)
    fails({"SGD", "lr", "the string"}, function() local _ = optim.SGD({p}, {lr = "1"}) end)
    fails({"SGD", "lr"}, function() local _ = optim.SGD({p}, {lr = 0 / 0}) end)
    fails({"SGD", "mometum", "lr, momentum"},
      function() local _ = optim.SGD({p}, {mometum = 1}) end)
    fails({"SGD", "nesterov"}, function() local _ = optim.SGD({p}, {lr = 1, nesterov = true}) end)
    fails({"Adam", "betas"}, function() local _ = optim.Adam({p}, {betas = {0.9, 1}}) end)
    fails({"AdamW", "weight_decay"}, function() local _ = optim.AdamW({p}, {weight_decay = -1}) end)
    fails("Adadelta: expected a number from 0 to 1 for argument 'rho', got 2",
      function() local _ = optim.Adadelta({p}, {rho = 2}) end)
    fails({"Rprop", "for argument 'etas'"},
      function() local _ = optim.Rprop({p}, {etas = {2, 3}}) end)
    fails({"Rprop", "two numbers for argument 'step_sizes', got 1"},
      function() local _ = optim.Rprop({p}, {step_sizes = {2}}) end)
    for _, name in ipairs {"NAdam", "RAdam", "Adamax", "Lion"} do
      fails({name, "betas"}, function() local _ = optim[name]({p}, {betas = {0.9, 1}}) end)
    end
    fails({"AdamW", "lr"}, function() local _ = optim.AdamW({{params = {p}, lr = -1}}) end)
  end)
end)

describe("Settings that choose between implementations of PyTorch", function()
  it("are taken, and change nothing", function()
    local function after(class, settings)
      local p = lt.tensor({1.0, -2, 3}, {requires_grad = true})
      p.grad = lt.tensor{0.5, -1, 2}
      optim[class]({p}, settings):step()
      return p:detach()
    end
    for class, settings in pairs {SGD = {foreach = true, fused = false},
      Adam = {foreach = false, capturable = true, fused = true},
      AdamW = {foreach = true, capturable = true, fused = true},
      RMSprop = {capturable = true, foreach = true}, NAdam = {capturable = true, foreach = true},
      RAdam = {capturable = true, foreach = true}, Adamax = {foreach = true, capturable = true},
      Adagrad = {foreach = true, fused = true}, Adadelta = {foreach = true, capturable = true},
      Rprop = {foreach = true, capturable = true}, ASGD = {foreach = true, capturable = true},
      Adafactor = {foreach = true}} do
      assert.is_true(lt.equal(after(class, {}), after(class, settings)), class)
      assert.is_nil(tostring(optim[class]{lt.ones{1, requires_grad = true}}):find
        "nil")
    end
    fails({"SGD", "foreach"}, function()
      local _ = optim.SGD({lt.ones{1, requires_grad = true}}, {foreach = "yes"})
    end)
  end)
end)
