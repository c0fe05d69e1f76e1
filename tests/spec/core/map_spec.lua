-- Maps: elementwise ops over lists of tensors that write some of them in place. What a row of the
-- kind promises is asked of the optimizers' steps: all is checked before anything is written.

local lt = require "lutra"
local core = require "lutra.core"
local devices = require "device_support"
local programs = require "program_support"
local support = require "nn_support"

local nn, optim = lt.nn, lt.optim

-- A step of SGD with momentum 0.5 over the lists; `options` replaces settings.
local function sgd(params, grads, buffers, options)
  local o = options or {}
  return core._ops._sgd_step(params, grads, buffers, o.lr or 0.1, o.momentum or 0.5,
    o.dampening or 0, o.weight_decay or 0, o.nesterov or false, o.maximize or false,
    o.first or false)
end

-- Fails unless f raises an error that holds the text and leaves all tensors as they are.
local function refuses(text, tensors, f, ...)
  local before = {}
  for i, t in ipairs(tensors) do before[i] = t:clone() end
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "no error was raised")
  assert.matches(text, message, 1, true)
  for i, t in ipairs(tensors) do
    assert.is_true(lt.equal(before[i], t:detach()), "tensor " .. i .. " changed")
  end
end

describe("a map", function()
  local p, g, v, q, h, w
  before_each(function()
    p, g, v = lt.tensor{1.0, 2}, lt.tensor{3.0, 4}, lt.tensor{5.0, 6}
    q, h, w = lt.ones(3), lt.ones(3), lt.ones(3)
  end)

  it("takes 0-d tensors that are computed in another dtype", function()
    local x, dx, m = lt.tensor(1.0):bfloat16(), lt.tensor(3.0):bfloat16(), lt.tensor(5.0):bfloat16()
    sgd({x}, {dx}, {m})
    assert.equal(5.5, m:item()) -- 0.5 * 5 + 3
    assert.equal(0.44921875, x:item()) -- 1 - 0.1 * 5.5, rounded to 8 bits
  end)

  it("writes each list and gives nothing", function()
    assert.equal(0, select("#", sgd({p, q}, {g, h}, {v, w})))
    assert.same({5.5, 7}, v:totable())
    support.close(lt.tensor{0.45, 1.3}, p, 1e-6)
    support.close(lt.full({3}, 0.85), q, 1e-6)
    assert.same({3, 4}, g:totable())
  end)

  it("takes lists of any length, and none for an optional one", function()
    sgd({}, {}, {})
    sgd({p}, {g}, nil, {momentum = 0})
    support.close(lt.tensor{0.7, 1.6}, p, 1e-6)
    local params, grads = {}, {}
    for i = 1, 1000 do params[i], grads[i] = lt.full({i % 7, 2}, i + 0.0), lt.ones(i % 7, 2) end
    sgd(params, grads, nil, {momentum = 0, lr = 1})
    for i, t in ipairs(params) do assert.is_true(lt.equal(t, lt.full({i % 7, 2}, i - 1.0))) end
  end)

  it("takes another shape and dtype at each place", function()
    local wide, half = lt.ones(2, 3, {dtype = "float64"}), lt.ones{{}, dtype = "bfloat16"}
    sgd({p, wide, half}, {g, lt.ones_like(wide), lt.ones_like(half)}, nil, {momentum = 0, lr = 0.5})
    assert.is_true(lt.equal(lt.full({2, 3}, 0.5, {dtype = "float64"}), wide))
    assert.equal(0.5, half:item())
  end)

  it("refuses lists that do not fit, and changes nothing", function()
    local all = {p, g, v, q, h, w}
    refuses("expected 2 tensors for argument 'grads', as many as in 'params', got 1", all, sgd,
      {p, q}, {g}, {v, w})
    refuses("expected the shape {3} for argument 'grads[2]', the one of 'params[2]', got {2}", all,
      sgd, {p, q}, {h:narrow(1, 1, 2), g}, {v, w})
    refuses("expected the shape {3} for argument 'grads[2]'", all, sgd, {p, q}, {g, v}, {v, w})
    refuses("expected dtype \"float32\" for argument 'momentum_buffers[2]', the one of "
      .. "'params[2]', got \"float64\"", all, sgd, {p, q}, {g, h}, {v, w:double()})
    refuses("expected a float dtype for argument 'params[1]', got \"int64\"", all, sgd,
      {p:long()}, {g:long()}, {v:long()})
    refuses("was freed", all, sgd, {p, q}, {g, (function()
      local t = lt.ones(3)
      t:free()
      return t
    end)()}, {v, w})
    refuses("params", all, sgd, nil, {g}, {v})
    -- Lua with assertions ends here where the stack has no room left for the message.
    refuses("expected 1 tensor", {p, g, v, h}, lt._ops._adam_step, {{p}, grads = {g, g},
      exp_avgs = {v}, exp_avg_sqs = {h}, step = 1, lr = 1, beta1 = 0.5, beta2 = 0.5, eps = 1,
      weight_decay = 1, decoupled = true, maximize = false})
    refuses("grads", all, sgd, {p}, {3}, {v})
  end)

  it("refuses memory in common where some of it is written", function()
    local all = {p, g, v, q, h, w}
    refuses("'params[1]' and 'params[2]': they may share memory", all, sgd, {p, p}, {g, g}, {v,
      v:clone()})
    refuses("cannot write to one of 'params[1]' and 'momentum_buffers[1]': they may share memory",
      all, sgd, {p}, {g}, {p})
    refuses("cannot write to one of 'params[1]' and 'grads[1]': they may share memory", all, sgd,
      {q:narrow(1, 1, 2)},
      {q:narrow(1, 2, 2)}, nil, {momentum = 0})
    refuses("cannot change 'params[1]' in place: its elements share memory", all, sgd,
      {lt.ones(1):expand(2)}, {g}, {v})
    sgd({p, q}, {g, h}, nil, {momentum = 0}) -- a list that is only read may hold a tensor twice
    sgd({p, v}, {g, g}, nil, {momentum = 0})
    local flat = lt.zeros(6)
    sgd({flat:narrow(1, 1, 3), flat:narrow(1, 4, 3)}, {h, h}, nil, {momentum = 0, lr = 1})
    assert.same({-1, -1, -1, -1, -1, -1}, flat:totable())
    local matrix = lt.zeros(3, 5)
    refuses("share memory", {matrix}, sgd, {matrix:narrow(2, 1, 3), matrix:narrow(2, 3, 3)},
      {lt.ones(3, 3), lt.ones(3, 3)}, nil, {momentum = 0})
    sgd({matrix:narrow(2, 1, 3), matrix:narrow(2, 4, 2)}, {lt.ones(3, 3), lt.full({3, 2}, 2.0)},
      nil, {momentum = 0, lr = 1})
    for i = 1, 3 do assert.same({-1, -1, -1, -2, -2}, matrix[i]:totable()) end
    sgd({q}, {q}, nil, {momentum = 0, lr = 0.5}) -- the same elements
    support.close(lt.full({3}, 0.45), q, 1e-6)
  end)

  it("refuses what autograd would have to record", function()
    local leaf = lt.ones{2, requires_grad = true}
    refuses("cannot change 'params[1]' in place: it requires grad", {leaf}, sgd, {leaf}, {g}, {v})
    refuses("cannot change 'momentum_buffers[1]' in place: it requires grad, and autograd does "
      .. "not record this op", {leaf}, sgd, {p}, {g}, {leaf * 1})
    refuses("cannot change 'params[1]' in place: it requires grad, and autograd does not "
      .. "record this op", {leaf}, sgd, {lt.no_grad(leaf.view, leaf, 2)}, {g}, {v})
    local made = lt.inference_mode(function() return lt.ones(2) end)
    refuses("cannot change 'params[1]' in place: it was created in inference mode", {made}, sgd,
      {made}, {g}, {v})
    lt.no_grad(sgd, {leaf}, {g}, {v})
    assert.is_true(leaf.requires_grad and leaf.is_leaf)
    sgd({p}, {leaf}, {v}) -- what is only read may
  end)

  it("counts what it wrote as changed", function()
    local x = lt.ones{2, requires_grad = true}
    for _, pair in ipairs {{p, true}, {v, true}, {g, false}} do
      local loss = (x * pair[1]):sum()
      sgd({p}, {g}, {v})
      local ok, message = pcall(loss.backward, loss)
      assert.equal(not pair[2], ok)
      if not ok then assert.matches("was changed in place by sgd_step", message, 1, true) end
    end
  end)

  it("runs on meta tensors", function()
    local meta = {device = "meta"}
    sgd({lt.ones(2, meta)}, {lt.ones(2, meta)}, {lt.ones(2, meta)})
    refuses("expected the shape {2}", {}, sgd, {lt.ones(2, meta)}, {lt.ones(3, meta)}, nil)
    refuses("device", {p}, sgd, {p}, {lt.ones(2, meta)}, nil)
  end)

  it("gives the same bits whatever the number of threads", function()
    local function steps(threads)
      lt.manual_seed(4)
      local before = lt.get_num_threads()
      lt.set_num_threads(threads)
      local params, grads, buffers = {}, {}, {}
      for i, n in ipairs {3, 70001, 1, 40000, 17} do
        params[i], grads[i], buffers[i] = lt.randn(n), lt.randn(n), lt.randn(n)
      end
      params[2] = lt.randn(2, 70001):t():select(2, 1)
      sgd(params, grads, buffers)
      lt.set_num_threads(before)
      return params
    end
    local one, four = steps(1), steps(4)
    for i, t in ipairs(one) do assert.is_true(lt.equal(t, four[i])) end
  end)
end)

describe("a map over rows of wider tensors", function()
  it("gives the bits of contiguous ones", function()
    lt.manual_seed(5)
    for _, shape in ipairs {{9, 64}, {300, 201}, {3, 5, 70}, {2, 3, 4, 65}, {40, 63}} do
      local wide = {table.unpack(shape)}
      wide[#wide] = wide[#wide] + 7
      local lists, dense = {}, {}
      for k = 1, 3 do
        local x = lt.randn(wide):narrow(-1, k, shape[#shape])
        lists[k], dense[k] = {x}, {x:contiguous()}
      end
      dense[2] = lists[2] -- some rows are dense, others not
      sgd(lists[1], lists[2], lists[3])
      sgd(dense[1], dense[2], dense[3])
      for k = 1, 3 do assert.is_true(lt.equal(lists[k][1], dense[k][1])) end
    end
  end)
end)

describe("an optimizer", function()
  -- Names of the ops that a function runs, with their number.
  local function ops_of(f)
    local counts = {}
    for _, row in ipairs(lt.profiler.profile(f):key_averages()) do counts[row.key] = row.count end
    return counts
  end

  it("makes one call for a group", function()
    for _, class in ipairs(support.optimizers()) do
      local params = {}
      for i = 1, 100 do
        params[i] = nn.Parameter(lt.ones(i))
        params[i].grad = lt.ones(i)
      end
      local optimizer = optim[class](params, {lr = 0.1})
      optimizer:step()
      local calls, count = ops_of(function() optimizer:step() end), 0
      for name, n in pairs(calls) do
        if name:find "step$" then count = count + n end
      end
      assert.equal(optim[class].apply and 1 or 0, count, class)
    end
  end)

  it("makes a call for each number of steps taken", function()
    local a, b = nn.Parameter(lt.ones(2)), nn.Parameter(lt.ones(2))
    local optimizer = optim.Adam({a, b}, {lr = 0.1})
    a.grad = lt.ones(2)
    optimizer:step()
    b.grad = lt.ones(2)
    optimizer:step()
    assert.equal(2, optimizer.state[a].step)
    assert.equal(1, optimizer.state[b].step)
    support.close(lt.full({2}, 0.9), b, 1e-6) -- the first step of Adam has the size lr
    support.close(lt.full({2}, 0.8), a, 1e-6)
  end)

  it("leaves its state as it was when a step fails", function()
    local a, b = nn.Parameter(lt.ones(2)), nn.Parameter(lt.ones(3))
    for _, class in ipairs {"Adam", "SGD"} do
      local optimizer = optim[class]({a, b}, {lr = 0.1})
      if class == "SGD" then optimizer.param_groups[1].momentum = 0.9 end
      a.grad, b.grad = lt.ones(2), lt.ones(3)
      optimizer:step()
      local saved = optimizer.state[a].step
      local name = class == "SGD" and "momentum_buffer" or "exp_avg"
      local before, good = a:detach():clone(), optimizer.state[b][name]
      optimizer.state[b][name] = lt.ones(7)
      local ok = pcall(optimizer.step, optimizer)
      assert.is_false(ok)
      assert.is_true(lt.equal(before, a:detach()))
      assert.equal(saved, optimizer.state[a].step)
      optimizer.state[b][name] = good
      optimizer:step()
    end
  end)

  it("reads gradients and the device of a list at once", function()
    local a, b = nn.Parameter(lt.ones(2)), nn.Parameter(lt.ones(2))
    b.grad = lt.ones(2)
    local grads, device = core._gradients({a, b}, "not read", {})
    assert.is_false(grads[1])
    assert.equal(b.grad, grads[2])
    assert.equal("cpu", device)
    assert.is_nil(select(2, core._gradients {a, lt.ones(2, {device = "meta"})}))
    local ok, message = pcall(core._gradients, {a, 0.5})
    assert.is_false(ok)
    assert.matches("expected a tensor for argument 'list', got 0.5", message, 1, true)
  end)

  it("keeps no gradient and no parameter after its step", function()
    local kept = setmetatable({}, {__mode = "k"})
    do
      local params = {}
      for i = 1, 5 do
        params[i] = nn.Parameter(lt.ones(i))
        params[i].grad = lt.ones(i)
        kept[params[i]], kept[params[i].grad] = true, true
      end
      local optimizer = optim.Adam(params, {lr = 0.1})
      optimizer:step()
      for _, state in pairs(optimizer.state) do kept[state.exp_avg] = true end
      params[2].grad = nil
      optimizer:step()
    end
    collectgarbage()
    collectgarbage()
    assert.is_nil(next(kept))
  end)

  it("gets the buffers that it needs from now on", function()
    local p, q = nn.Parameter(lt.ones(2)), nn.Parameter(lt.ones(3))
    local optimizer = optim.RMSprop({p, q}, {lr = 0.1, momentum = 0.5})
    local group = optimizer.param_groups[1]
    local function step()
      p.grad, q.grad = lt.ones(2), lt.ones(3)
      optimizer:step()
    end
    step()
    group.centered = true
    local square = optimizer.state[q].square_avg
    step()
    for _, name in ipairs {"square_avg", "grad_avg", "momentum_buffer"} do
      assert.is_true(lt.is_tensor(optimizer.state[p][name]), name)
    end
    assert.equal(square, optimizer.state[q].square_avg)
    support.close(lt.full({3}, 0.01), optimizer.state[q].grad_avg, 1e-6)
    step()
    support.close(lt.full({3}, 0.0199), optimizer.state[q].grad_avg, 1e-6)
  end)

  it("may still be written for one parameter at a time", function()
    local Plain = optim.Optimizer:extend("Plain", "float lr = 0.5")
    function Plain.update(_, p, grad, state, group)
      state.calls = (state.calls or 0) + 1
      p:add_(grad, {alpha = -group.lr})
    end
    local Other = optim.Adam:extend("Other", "float lr = 0.25")
    Other.update, Other.check_group = Plain.update, function() end
    for _, class in ipairs {Plain, Other} do
      local p = nn.Parameter(lt.ones(2))
      local optimizer = class {p}
      p.grad = lt.ones(2)
      optimizer:step()
      assert.equal(1 - optimizer.param_groups[1].lr, p:detach():max():item())
      assert.equal(1, optimizer.state[p].calls)
    end
  end)
end)

if devices.elsewhere("core/map", _ENV, {reverse = true}) then return end

describe("a map on CUDA", function()
  -- A program that makes a step of SGD over `count` tensors, of which some are empty and some 0-d.
  -- They are copied to the device, which launches nothing.
  local program = [[
    local lt = require "lutra"
    local count, wide = %d, %s
    local function lists(value)
      local here, there = {}, {}
      for i = 1, count do
        local shape = i %% 3 == 0 and {} or {i * 37 %% 700, i %% 2 + 1}
        local dtype = wide and i %% 4 == 0 and "float64" or "float32"
        here[i] = lt.full(shape, value + i, {dtype = dtype})
        there[i] = here[i]:to "cuda"
      end
      return here, there
    end
    local params, params2 = lists(1000)
    local grads, grads2 = lists(1)
    local step = require("lutra.core")._ops._sgd_step
    local numbers = {0.5, 0, 0, 0, false, false, true}
    step(params, grads, nil, table.unpack(numbers))
    step(params2, grads2, nil, table.unpack(numbers))
    for i = 1, count do
      assert(lt.equal(params[i], params2[i]:cpu()), i)
    end]]

  local function run(count, wide, failing)
    return programs.shell(("env -u LUTRA_EMULATE_FAULT LUTRA_EMULATE=cuda:2 %s %s -e %s"):format(
      failing and "LUTRA_EMULATE_FAULT=launch@" .. failing or "", programs.quote(programs.program),
      programs.quote(program:format(count, wide))))
  end

  if not os.getenv "LUTRA_TEST_GPU" then
    it("is one launch for any number of tensors, two where some of them are float64", function()
      for _, count in ipairs {1, 50, 51, 120, 1000} do
        for _, wide in ipairs {false, true} do
          local launches = wide and count >= 4 and 2 or 1
          local title = ("%d tensors%s"):format(count, wide and " of two dtypes" or "")
          local result = run(count, wide, launches + 1)
          assert.equal(0, result.status, title .. "\n" .. result.err)
          assert.matches("launch kernel", run(count, wide, launches).err, 1, true)
        end
      end
    end)
  end

  it("gives the CPU's bits for every case of the golden table", function()
    local cases = support.golden("optimizers").optimizers
    local layouts = {
      function(t) return t end, function(t) return t:t():contiguous():t() end,
      function(t) return lt.stack({t, lt.zeros_like(t)}, 3):select(3, 1) end}
    for number = 2, #cases do -- the first says where they start
      local case = cases[number]
      for _, dtype in ipairs {"float64", "float32", "float16", "bfloat16"} do
        local results = {}
        for which, device in ipairs {"cpu", "cuda:0"} do
          local params = {}
          for i = 1, 60 do -- more than a kernel's arguments have room for
            local t = (lt.arange(2 * (i * 5 % 33), {dtype = "float64"}) + i):cos():reshape(-1, 2)
            params[i] = nn.Parameter(layouts[i % 3 + 1](t:to {dtype = dtype, device = device}))
          end
          local optimizer = optim[case.name](params, case.options)
          for step = 1, 2 do
            for i, p in ipairs(params) do
              local g = (lt.arange(p:numel(), {dtype = "float64"}) * step + i):sin()
              p.grad = g:reshape(-1, 2):to {dtype = dtype, device = device}
            end
            optimizer:step()
          end
          results[which] = params
        end
        for i, p in ipairs(results[1]) do
          assert.is_true(lt.equal(p:detach(), results[2][i]:detach():cpu()),
            ("%s, case %d, %s, parameter %d"):format(case.name, number, dtype, i))
        end
      end
    end
  end)

  it("writes the columns of one matrix that are several parameters", function()
    local matrix = lt.arange(0, 23, 1, {dtype = "float32", device = "cuda:0"}):view(4, 6)
    local a, b = nn.Parameter(matrix:narrow(2, 1, 2)), nn.Parameter(matrix:narrow(2, 3, 4):t())
    a.grad, b.grad = lt.ones_like(a), lt.full_like(b, 2.0)
    optim.SGD({a, b}, {lr = 1}):step()
    for i = 1, 4 do
      local first = 6 * (i - 1)
      assert.same({first - 1, first, first, first + 1, first + 2, first + 3},
        matrix[i]:cpu():totable())
    end
  end)

  it("is a call for each device of a group", function()
    local params = {}
    for i = 1, 6 do
      params[i] = nn.Parameter(lt.ones{i, device = i % 3 == 1 and "cuda:0" or "cpu"})
      params[i].grad = i ~= 5 and lt.full_like(params[i], i + 0.0) or nil
    end
    local optimizer = optim.SGD(params, {lr = 1, momentum = 0.5})
    optimizer:step()
    optimizer:step()
    for i, p in ipairs(params) do
      assert.same(i ~= 5 and 1 - 2.5 * i or 1, p:detach():cpu():max():item())
    end
  end)

  it("refuses tensors of another device", function()
    local function there(...) return lt.ones{..., device = "cuda:0"} end
    for _, lists in ipairs {{{there(2)}, {lt.ones(2)}}, {{lt.ones(2)}, {there(2)}},
      {{there(2), lt.ones(2)}, {there(2), lt.ones(2)}},
      {{there(2), lt.tensor(1.0)}, {there(2), lt.tensor(1.0)}},
      {{lt.tensor(1.0), there(2)}, {lt.tensor(1.0), there(2)}}} do
      refuses("cuda:0", {}, sgd, lists[1], lists[2], nil)
    end
  end)
end)
