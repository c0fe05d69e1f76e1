-- Schedules of learning rates, and averages of weights: values of PyTorch, state dicts, errors.

local lt = require "lutra"
local support = require "nn_support"
local wide = require "wide_support"

local nn, optim = lt.nn, lt.optim
local schedulers, swa = optim.lr_scheduler, optim.swa_utils
local fails, close = support.fails, support.close
local golden = support.golden "schedulers"

local function optimizer_of(kind, groups)
  local settings = {}
  for i, group in ipairs(groups) do
    settings[i] = {params = nn.Parameter(lt.zeros(1))}
    for key, value in pairs(group) do settings[i][key] = value end
  end
  return optim[kind](settings, kind == "SGD" and {momentum = 0.5} or {})
end

local function two_groups(kind) return optimizer_of(kind or "SGD", {{lr = 0.1}, {lr = 0.02}}) end

local function rates(optimizer)
  local list = {}
  for i, group in ipairs(optimizer.param_groups) do list[i] = group.lr end
  return list
end

local function row(optimizer)
  local list = rates(optimizer)
  for _, group in ipairs(optimizer.param_groups) do
    list[#list + 1] = group.momentum or group.betas[1]
  end
  return list
end

local function same(expected, actual, what)
  assert.equal(#expected, #actual, what)
  for i, value in ipairs(expected) do
    local bound = 1e-10 * math.max(1, math.abs(value))
    if math.abs(value - actual[i]) > bound then
      error(("%s: number %d is %.17g, expected %.17g"):format(what, i, actual[i], value), 2)
    end
  end
end

local function make(case, optimizer)
  local class = case.name == "SWALR" and swa or schedulers
  local given = table.pack(optimizer, table.unpack(case.given))
  given[given.n + 1] = case.options
  return class[case.name](table.unpack(given, 1, given.n + 1))
end

-- Makes step i of a case.
local function step(case, scheduler, i)
  scheduler:step(case.metrics[i] or case.at[i])
end

local function finished(state, scheduler, optimizer, other)
  other:load_state_dict(optimizer:state_dict())
  return scheduler:load_state_dict(state)
end

describe("schedules of PyTorch " .. golden.version, function()
  for number, case in ipairs(golden.schedules) do
    it(("%s, case %d"):format(case.name, number), function()
      local optimizer = two_groups(case.kind)
      local scheduler = make(case, optimizer)
      same(case.rows[1], row(optimizer), "start")
      for i = 1, 14 do
        step(case, scheduler, i)
        same(case.rows[i + 1], row(optimizer), "step " .. i)
        assert.same(rates(optimizer), scheduler:get_last_lr())
      end
    end)

    it(("%s, case %d, continues from a state dict"):format(case.name, number), function()
      local optimizer = two_groups(case.kind)
      local scheduler = make(case, optimizer)
      for i = 1, 6 do step(case, scheduler, i) end
      local other = two_groups(case.kind)
      local continued = make(case, other)
      finished(scheduler:state_dict(), continued, optimizer, other)
      assert.equal(tostring(scheduler), tostring(continued))
      for i = 7, 14 do
        step(case, continued, i)
        same(case.rows[i + 1], row(other), "step " .. i)
      end
    end)
  end

  local composed = {
    lambda = function(o)
      return schedulers.LambdaLR(o, {function(t) return 0.9 ^ t end,
        function(t) return 1 / (1 + t) end})
    end,
    multiplicative = function(o)
      return schedulers.MultiplicativeLR(o, function(t) return t % 2 == 1 and 0.9 or 0.5 end)
    end,
    scale_fn = function(o)
      return schedulers.CyclicLR(o, 0.01, 0.1, {step_size_up = 2,
        scale_fn = function(x) return 1 / x end})
    end,
    ["scale_fn of steps"] = function(o)
      return schedulers.CyclicLR(o, 0.01, 0.1, {step_size_up = 2, scale_mode = "iterations",
        scale_fn = function(x) return 0.9 ^ x end})
    end,
    sequential = function(o)
      return schedulers.SequentialLR(o, {
        schedulers.ConstantLR(o, {factor = 0.1, total_iters = 2}),
        schedulers.ExponentialLR(o, {gamma = 0.9}), schedulers.StepLR(o, 2, 0.5),
      }, {milestones = {3, 7}})
    end,
    ["warmup and cosine"] = function(o)
      return schedulers.SequentialLR(o, {
        schedulers.LinearLR(o, {start_factor = 0.01, total_iters = 4}),
        schedulers.CosineAnnealingLR(o, {T_max = 8}),
      }, {4})
    end,
    ["warmup and restarts"] = function(o)
      return schedulers.SequentialLR(o, {schedulers.LinearLR(o),
        schedulers.CosineAnnealingWarmRestarts(o, {T_0 = 3})}, {5})
    end,
    chained = function(o)
      return schedulers.ChainedScheduler {
        schedulers.ConstantLR(o, {factor = 0.1, total_iters = 5}),
        schedulers.ExponentialLR(o, {gamma = 0.9}),
      }
    end,
    ["chained cosine"] = function(o)
      return schedulers.ChainedScheduler({schedulers.LinearLR(o, {total_iters = 3}),
        schedulers.CosineAnnealingLR(o, {T_max = 5, eta_min = 0.001})}, {optimizer = o})
    end,
  }
  for _, case in ipairs(golden.composed) do
    it(case.name, function()
      local optimizer = two_groups()
      local scheduler = composed[case.name](optimizer)
      same(case.rows[1], rates(optimizer), "start")
      for i = 1, 14 do
        if i == 7 then -- continue in a copy
          local other = two_groups()
          local continued = composed[case.name](other)
          finished(scheduler:state_dict(), continued, optimizer, other)
          optimizer, scheduler = other, continued
        end
        scheduler:step()
        same(case.rows[i + 1], rates(optimizer), "step " .. i)
      end
      same(case.last, scheduler:get_last_lr(), "get_last_lr")
    end)
  end

  for _, case in ipairs(golden.resumed) do
    it(case.name .. " resumes after an epoch", function()
      local optimizer = optimizer_of("SGD", {{lr = 0.03}})
      local given = table.pack(optimizer, table.unpack(case.given))
      given[given.n + 1] = {last_epoch = 4}
      fails({case.name .. ": expected the field 'initial_lr' of group 1 for last_epoch = 4",
        "hint"},
        function() schedulers[case.name](table.unpack(given, 1, given.n + 1)) end)
      optimizer.param_groups[1].initial_lr = 0.1
      local scheduler = schedulers[case.name](table.unpack(given, 1, given.n + 1))
      same({case.rows[1]}, rates(optimizer), "start")
      for i = 2, 5 do
        scheduler:step()
        same({case.rows[i]}, rates(optimizer), "step " .. i)
      end
    end)
  end
end)

describe("a scheduler", function()
  it("counts epochs as PyTorch does, and shows them", function()
    local optimizer = two_groups()
    local scheduler = schedulers.StepLR {optimizer, step_size = 2}
    assert.equal(0, scheduler.last_epoch)
    assert.equal("StepLR (last_epoch=0, lr={0.1, 0.02})", tostring(scheduler))
    scheduler:step()
    assert.equal(1, scheduler.last_epoch)
    assert.equal(0.1, optimizer.param_groups[1].initial_lr)
    assert.equal("class optim.lr_scheduler.StepLR", tostring(schedulers.StepLR))
  end)

  it("of your own is a subclass", function()
    local Halve = schedulers.LRScheduler:extend "Halve"
    function Halve:get_lr()
      return self:from_base(function(lr) return lr * 0.5 ^ self.last_epoch end)
    end
    local optimizer = two_groups()
    local scheduler = Halve(optimizer)
    scheduler:step()
    scheduler:step()
    same({0.025, 0.005}, rates(optimizer), "halves")
    local Wrong = schedulers.LRScheduler:extend "Wrong"
    fails("Wrong: cannot compute learning rates: the class has no method get_lr",
      function() local _ = Wrong(optimizer) end)
    function Wrong.get_lr() return {1} end
    fails("Wrong: expected a list of 2 learning rates from get_lr, got 1",
      function() local _ = Wrong(optimizer) end)
    fails("extend: expected a string", function() schedulers.LRScheduler:extend(3) end)
  end)

  it("saves the fields of an object that computes the factor", function()
    local function factor(base)
      return setmetatable({base = base}, {__call = function(self, t) return self.base ^ t end})
    end
    local one, two = factor(0.5), factor(0.1)
    local state = schedulers.LambdaLR(two_groups(), {one, function() return 1 end}):state_dict()
    assert.same({{base = 0.5}, false}, state.lr_lambdas)
    local other = schedulers.LambdaLR(two_groups(), {two, function() return 1 end})
    other:load_state_dict(state)
    assert.equal(0.5, two.base)
    fails("load_state_dict: expected a table for argument 'state_dict', got 3",
      function() other:load_state_dict(3) end)
  end)

  it("takes a metric as a tensor, and reduces to the bound of a new group", function()
    local optimizer = two_groups()
    local scheduler = schedulers.ReduceLROnPlateau(optimizer, {patience = 0, min_lr = 0.05})
    optimizer:add_param_group {params = nn.Parameter(lt.zeros(1)), lr = 1.0}
    scheduler:step(lt.tensor(1.0))
    scheduler:step(lt.tensor{2.0})
    same({0.05, 0.02, 0.1}, rates(optimizer), "reduced")
    assert.is_false(scheduler:in_cooldown())
    local strict = schedulers.ReduceLROnPlateau(two_groups(), {patience = 0, min_lr = {0, 0}})
    strict.optimizer:add_param_group {params = nn.Parameter(lt.zeros(1))}
    strict:step(1)
    fails("ReduceLROnPlateau: expected 3 numbers in the field 'min_lrs', one for each group, got 2",
      function() strict:step(2) end)
    fails({"ReduceLROnPlateau: step", "argument 'metrics', got nil"},
      function() scheduler:step() end)
  end)

  it("checks its arguments", function()
    local o = two_groups()
    local function refuses(texts, name, ...)
      local given = table.pack(...)
      fails(texts, function() schedulers[name](table.unpack(given, 1, given.n)) end)
    end
    refuses("StepLR: expected an optimizer for argument 'optimizer', got 3", "StepLR", 3, 3)
    refuses({"StepLR", "step_size", "got 0"}, "StepLR", o, 0)
    refuses({"StepLR", "step_size"}, "StepLR", o)
    refuses("ConstantLR: expected a number from 0 to 1 for argument 'factor', got 2", "ConstantLR",
      o, 2)
    refuses({"LinearLR", "argument 'start_factor', got 0"}, "LinearLR", o, 0)
    refuses({"LinearLR", "argument 'end_factor', got 2"}, "LinearLR", o, 1, 2)
    refuses({"LambdaLR: expected a function or a list of 2 functions", "'lr_lambda', got 3"},
      "LambdaLR", o, 3)
    refuses({"MultiplicativeLR", "expected a function for argument 'lr_lambda[2]', got 3"},
      "MultiplicativeLR", o, {print, 3})
    refuses({"ReduceLROnPlateau", "below 1 for argument 'factor', got 1"}, "ReduceLROnPlateau", o,
      {factor = 1})
    refuses({"ReduceLROnPlateau", "mode"}, "ReduceLROnPlateau", o, "least")
    refuses("ReduceLROnPlateau: expected a number or a list of 2 numbers, one for each group, for "
      .. "argument 'min_lr', got a table", "ReduceLROnPlateau", o, {min_lr = {1}})
    refuses({"CyclicLR: expected an optimizer with momentum or betas", "hint: {cycle_momentum"},
      "CyclicLR", optim.Adagrad {nn.Parameter(lt.ones(1))}, 0.1, 0.2)
    refuses({"CyclicLR", "expected a number for 'max_lr[2]', got the string"}, "CyclicLR", o, 0.1,
      {0.1, "x"})
    refuses({"OneCycleLR", "argument 'total_steps', got nil", "hint: {total_steps = n}"},
      "OneCycleLR", o, 0.1)
    refuses({"OneCycleLR", "at least one step for argument 'total_steps', got 0"}, "OneCycleLR", o,
      0.1, 0)
    refuses({"OneCycleLR", "argument 'pct_start', got 2"}, "OneCycleLR", o, 0.1, 9, {pct_start = 2})
    local one = schedulers.OneCycleLR(o, 0.1, {total_steps = 2})
    one:step()
    one:step()
    fails("OneCycleLR: expected at most 2 steps, got step 3", function() one:step() end)
    local restarts = schedulers.CosineAnnealingWarmRestarts(o, 3)
    fails("expected a number of at least 0 for argument 'epoch', got -1",
      function() restarts:step(-1) end)
  end)

  it("of others requires one optimizer, and no metric", function()
    local o, other = two_groups(), two_groups()
    local a, b = schedulers.StepLR(o, 3), schedulers.StepLR(other, 3)
    fails("SequentialLR: expected at least one scheduler for argument 'schedulers', got none",
      function() schedulers.SequentialLR(o, {}, {}) end)
    fails("SequentialLR: expected 1 numbers for argument 'milestones', one less than schedulers, "
      .. "got 0", function() schedulers.SequentialLR(o, {a, a}, {}) end)
    fails("SequentialLR: expected schedulers of one optimizer, got another one for 'schedulers[2]'",
      function() schedulers.SequentialLR(o, {a, b}, {3}) end)
    fails("ChainedScheduler: expected a scheduler for argument 'schedulers[2]', got 3",
      function() schedulers.ChainedScheduler {a, 3} end)
    fails("ChainedScheduler: expected a scheduler that needs no metric for argument "
      .. "'schedulers[1]', got a ReduceLROnPlateau",
      function() schedulers.ChainedScheduler {schedulers.ReduceLROnPlateau(o)} end)
  end)
end)

describe("averages of weights of PyTorch " .. golden.version, function()
  local options = {
    mean = {}, swa_avg_fn = {avg_fn = swa.get_swa_avg_fn()},
    swa_multi_avg_fn = {multi_avg_fn = swa.get_swa_multi_avg_fn()},
    ema_avg_fn = {avg_fn = swa.get_ema_avg_fn(0.9)},
    ema_multi_avg_fn = {multi_avg_fn = swa.get_ema_multi_avg_fn(0.9)},
    buffers = {use_buffers = true},
    ["ema of buffers"] = {use_buffers = true,
      multi_avg_fn = swa.get_ema_multi_avg_fn {decay = 0.75}},
  }
  for _, case in ipairs(golden.averages) do
    it(case.name, function()
      local model = nn.BatchNorm1d(2, {dtype = wide.dtype})
      local averaged = swa.AveragedModel(model, options[case.name])
      for i, given in ipairs(case.given) do
        lt.no_grad(function()
          for k, name in ipairs {"weight", "bias", "running_mean", "running_var"} do
            model[name]:copy_(support.tensor(given[k]))
          end
          model.num_batches_tracked:fill_(10 * (i - 1) * (i - 1))
        end)
        averaged:update_parameters(model)
        for k, name in ipairs {"weight", "bias", "running_mean", "running_var"} do
          close(case.rows[i][k], averaged.module[name], 1e-10, name .. " " .. i)
        end
        assert.equal(case.rows[i][5].data[1], averaged.module.num_batches_tracked:item())
      end
      assert.equal(case.n, averaged.n_averaged:item())
    end)
  end

  it("update_bn takes the statistics of one pass", function()
    local case = golden.batch_norm[1]
    local batches = {}
    for i, x in ipairs(case.batches) do batches[i] = support.tensor(x) end
    local index = 0
    local loaders = {batches, {{batches[1], 5}, {batches[2]}, {batches[3]}}, function()
      index = index + 1
      return batches[index]
    end}
    for _, loader in ipairs(loaders) do
      local model = nn.Sequential(nn.BatchNorm1d(3, {dtype = wide.dtype}),
        nn.BatchNorm1d(3, {momentum = 0.5, dtype = wide.dtype}))
      model:eval()
      swa.update_bn(loader, model, {device = batches[1].device})
      for i = 1, 2 do
        close(case.mean[i], model[i].running_mean, 1e-10)
        close(case.var[i], model[i].running_var, 1e-10)
      end
      assert.equal(0.5, model[2].momentum)
      assert.is_false(model.training)
    end
    local data = lt.data.DataLoader(lt.data.TensorDataset(batches[1], batches[1]), {batch_size = 4})
    local model = nn.Sequential(nn.BatchNorm1d(3, {dtype = wide.dtype}))
    swa.update_bn(data, model)
    close(batches[1]:mean(1), model[1].running_mean, 1e-10)
    swa.update_bn(data, nn.Linear(1, 1)) -- nothing to do
  end)
end)

describe("AveragedModel", function()
  it("is a copy that computes what the model does", function()
    local net = nn.Linear(2, 1)
    local averaged = swa.AveragedModel(net, {device = net.weight.device})
    local x = lt.ones(1, 2)
    assert.is_true(lt.equal(net(x), averaged(x)))
    averaged:update_parameters(net)
    lt.no_grad(function() net.weight:fill_(0) end)
    assert.is_false(lt.equal(net(x), averaged(x)))
    local names = {}
    for name in pairs(averaged:state_dict()) do names[#names + 1] = name end
    assert.same({"n_averaged", "module.weight", "module.bias"}, names)
  end)

  it("checks its arguments", function()
    local net = nn.Linear(2, 1)
    fails("AveragedModel: expected a module for argument 'model', got 3",
      function() swa.AveragedModel(3) end)
    fails("AveragedModel: expected one of the arguments 'avg_fn' and 'multi_avg_fn', got both",
      function() swa.AveragedModel(net, {avg_fn = print, multi_avg_fn = print}) end)
    fails("update_parameters: expected a model of 2 tensors for argument 'model', got 1", function()
      swa.AveragedModel(net):update_parameters(nn.Linear(2, 1, {bias = false}))
    end)
    for _, name in ipairs {"get_ema_avg_fn", "get_ema_multi_avg_fn"} do
      fails(name .. ": expected a number from 0 to 1 for argument 'decay', got 2",
        function() swa[name](2) end)
    end
    fails("update_bn: expected a module for argument 'model', got 3",
      function() swa.update_bn({}, 3) end)
    fails("update_bn: expected a loader, an iterator or a list for argument 'loader', got 3",
      function() swa.update_bn(3, net) end)
    local model = nn.Sequential(nn.BatchNorm1d(3))
    fails("BatchNorm1d", function() swa.update_bn({lt.ones(1)}, model) end)
    assert.equal(0.1, model[1].momentum)
  end)
end)
