--- F.ctc_loss against the sum over all paths, and its gradient against that of the sum.

local lt = require "lutra"
local F = lt.nn.functional

-- Returns whether a path of classes is the target once repetitions and blanks (1) are removed.
local function collapses(path, target)
  local labels = {}
  for t, class in ipairs(path) do
    if class ~= 1 and class ~= path[t - 1] then labels[#labels + 1] = class end
  end
  return table.concat(labels, " ") == table.concat(target, " ")
end

-- Returns the probability of the target, a tensor, under log probabilities {T, C}.
local function probability(logp, target, times)
  local classes, total, path = logp:size(2), lt.zeros({}, {dtype = logp.dtype}), {}
  local function walk(t, sum)
    if t > times then
      if collapses(path, target) then total = total + sum:exp() end
      return
    end
    for class = 1, classes do
      path[t] = class
      walk(t + 1, sum + logp[{t, class}])
    end
    path[t] = nil
  end
  walk(1, lt.zeros({}, {dtype = logp.dtype}))
  return total
end

describe("ctc_loss", function()
  local targets = {{2, 3}, {2, 2}, {3}, {}}
  local lengths, times = {2, 2, 1, 0}, {5, 4, 3, 2}
  local labels = lt.tensor{{2, 3}, {2, 2}, {3, 1}, {1, 1}}

  for _, dtype in ipairs{"float32", "float64"} do
    it("is the negative logarithm of the sum over all paths, in " .. dtype, function()
      local scores = lt.randn(5, 4, 3):to(dtype)
      local x, y = scores:clone():requires_grad_(), scores:clone():requires_grad_()
      local got = F.ctc_loss(x:log_softmax(3), labels, times, lengths, {reduction = "none"})
      local logp, want = y:log_softmax(3), {}
      for i, target in ipairs(targets) do
        want[i] = -probability(logp:select(2, i), target, times[i]):log()
      end
      want = lt.stack(want)
      assert.is_true(got:allclose(want, 1e-5, 1e-5))
      local g = lt.tensor({1., -2, 3, 0.5}, {dtype = dtype})
      got:backward(g)
      want:backward(g)
      assert.is_true(x.grad:allclose(y.grad, 1e-4, 1e-5))
    end)
  end

  it("is the same without a gradient, with labels of probability 0 and with NaN", function()
    local scores = lt.randn(5, 4, 3)
    scores:select(3, 3):select(2, 1):fill_(-math.huge)
    scores:select(2, 2):fill_(0 / 0)
    for _, dtype in ipairs{"float32", "float64"} do
      local x = scores:to(dtype):log_softmax(3)
      local loss = F.ctc_loss(x, labels, times, lengths, {reduction = "none"})
      local recorded = F.ctc_loss(x:clone():requires_grad_(), labels, times, lengths,
        {reduction = "none"})
      assert.equal(math.huge, loss[1]:item()) -- its target has the label 3
      assert.is_true(loss[2]:isnan():item())
      for i = 3, 4 do
        local want = -probability(x:select(2, i), targets[i], times[i]):log()
        assert.is_true(loss[i]:allclose(want, 1e-5, 1e-5))
      end
      assert.is_true(loss:allclose(recorded, 0, 0, true))
    end
  end)

  it("has the same bits for any number of threads, and for each instance alone", function()
    local logp = lt.randn(60, 8, 12):log_softmax(3)
    local long = lt.randint(2, 12, {8, 25})
    local input, target = {}, {}
    for i = 1, 8 do input[i], target[i] = 60 - i, 25 - i end
    local function run()
      local x = logp:clone():requires_grad_()
      local loss = F.ctc_loss(x, long, input, target, {reduction = "none"})
      loss:sum():backward()
      return loss:detach(), x.grad
    end
    local loss, grad = run()
    local threads = lt.get_num_threads()
    lt.set_num_threads(1)
    local loss1, grad1 = run()
    lt.set_num_threads(threads)
    assert.is_true(loss:equal(loss1) and grad:equal(grad1))
    local alone = F.ctc_loss(logp:narrow(2, 3, 1), long:narrow(1, 3, 1), {input[3]}, {target[3]},
      {reduction = "none"})
    assert.is_true(alone:equal(loss:narrow(1, 3, 1)))
  end)

  it("is infinite without a path, with a gradient of 0 for zero_infinity", function()
    local x = lt.randn(2, 1, 3):requires_grad_()
    local function loss(zero)
      return F.ctc_loss(x:log_softmax(3), lt.tensor{{2, 2}}, {2}, {2},
        {reduction = "sum", zero_infinity = zero})
    end
    assert.equal(math.huge, loss(false):item())
    local zero = loss(true)
    zero:backward()
    assert.equal(0, zero:item())
    assert.equal(0, x.grad:abs():sum():item())
  end)

  it("has the gradient of the labels at the time of the call", function()
    local x, changed = lt.randn(4, 1, 3):requires_grad_(), lt.tensor{{1, 3}}
    local function gradient(change)
      x.grad = nil
      local loss = F.ctc_loss(x:log_softmax(3), changed, {4}, {2}, {blank = 2})
      if change then changed:fill_(1) end
      loss:backward()
      return x.grad:clone()
    end
    local expected = gradient(false)
    assert.is_true(gradient(true):equal(expected))
  end)

  it("checks labels", function()
    local ok, message = pcall(F.ctc_loss, lt.zeros(4, 1, 3), lt.tensor{{2, 4}}, {4}, {2})
    assert.is_false(ok)
    assert.truthy(tostring(message):find("expected labels from 1 to 3", 1, true))
  end)

  it("has the same value for lengths in any form", function()
    lt.manual_seed(2)
    local x, t = lt.randn(9, 3, 6):log_softmax(-1), lt.randint(2, 6, {3, 4})
    local expected = F.ctc_loss(x, t, {9, 8, 7}, {4, 1, 3})
    local inputs, counts = lt.tensor{9, 8, 7}, lt.tensor{4, 1, 3}
    assert.equal("int64", inputs.dtype)
    local every_second = lt.tensor{9, 0, 8, 0, 7, 0}:slice(1, 1, 6, 2)
    for _, form in ipairs{inputs, every_second, inputs:int(), inputs:reshape(3, 1)} do
      assert.is_true(lt.equal(F.ctc_loss(x, t, form, counts), expected))
    end
    -- Lengths that change before the backward pass do not matter.
    local y, z = x:clone():requires_grad_(), x:clone():requires_grad_()
    F.ctc_loss(y, t, {9, 8, 7}, {4, 1, 3}):backward()
    local loss = F.ctc_loss(z, t, inputs, counts)
    inputs:fill_(1)
    counts:fill_(1)
    loss:backward()
    assert.is_true(lt.equal(y.grad, z.grad))
  end)
end)
