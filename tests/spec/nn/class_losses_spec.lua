-- Losses over classes of scores {N, C, ...} agree with those of the same scores as rows {N, C}.

local lt = require "lutra"
local F = lt.nn.functional

local SHAPES = {{2, 3, 4, 5}, {1, 5, 700}, {3, 21, 40, 30}, {2, 1, 3}, {2, 1100, 3, 3}, {2, 4, 1},
  {0, 4, 3}, {2, 4, 0}}
local BOUNDS = {float32 = 2e-6, float64 = 1e-13, bfloat16 = 1e-2}

-- Random scores, labels of which one is ignored, and the order of dims with the classes last.
local function sample(shape, dtype)
  local places, order = {shape[1]}, {1}
  for d = 3, #shape do places[d - 1], order[d - 1] = shape[d], d end
  order[#shape] = 2
  local labels = lt.randint(1, shape[2], places)
  if labels:numel() > 3 then labels:view(-1)[2] = -100 end
  return lt.randn(shape):to(dtype), labels, order
end

-- Compares the loss and its gradient.
local function check(loss, shape, dtype, options)
  local x, labels, order = sample(shape, dtype)
  local planes, rows = x:clone():requires_grad_(), x:clone():requires_grad_()
  local found = loss(planes, labels, options)
  local expected = loss(rows:permute(order):reshape(-1, shape[2]), labels:reshape(-1), options)
  local gradient = lt.rand(found.shape):to(dtype)
  found:backward(gradient)
  expected:backward(gradient:reshape(expected.shape))
  local function same(a, b)
    return lt.allclose(a:double(), b:double(), BOUNDS[dtype], BOUNDS[dtype], true)
  end
  local what = ("%s, {%s}, %s"):format(dtype, table.concat(shape, ", "), options.reduction)
  assert.is_true(same(found:reshape(expected.shape), expected), what)
  assert.is_true(same(planes.grad, rows.grad), what)
end

describe("the losses over classes", function()
  for _, name in ipairs{"cross_entropy", "nll_loss"} do
    it("are the same for planes as for rows: " .. name, function()
      lt.manual_seed(3)
      for dtype in pairs(BOUNDS) do
        for _, shape in ipairs(SHAPES) do
          for _, reduction in ipairs{"none", "mean", "sum"} do
            check(F[name], shape, dtype, {reduction = reduction})
            local weight = (lt.rand(shape[2]) + 0.1):to(dtype)
            check(F[name], shape, dtype, {reduction = reduction, weight = weight})
          end
        end
      end
    end)
  end

  it("name the label of a place that is out of range", function()
    local labels = lt.ones({2, 3, 2}, {dtype = "int64"})
    labels[2][3][1] = 5
    for _, name in ipairs{"cross_entropy", "nll_loss"} do
      local ok, message = pcall(F[name], lt.zeros(2, 4, 3, 2), labels)
      assert.is_false(ok)
      assert.matches("5", message, 1, true)
    end
  end)

  it("are the same, to the last bit, in equal places and for any number of threads", function()
    local threads = lt.get_num_threads()
    for dtype in pairs(BOUNDS) do
      local scores = lt.randn(1, 50, 1):to(dtype)
      for _, places in ipairs{3, 15, 17, 31, 33} do
        local x = scores:expand(1, 50, places):contiguous():requires_grad_()
        local loss = F.cross_entropy(x, lt.ones({1, places}, {dtype = "int64"}),
          {reduction = "none"})
        loss:sum():backward()
        assert.is_true(loss:eq(loss[1][1]):all():item())
        assert.is_true(x.grad:eq(x.grad:narrow(3, 1, 1)):all():item())
      end
      local rows, g = lt.randn(9001, 100):to(dtype), lt.randn(9001, 100):to(dtype)
      local function gradient(count)
        lt.set_num_threads(count)
        local x = rows:clone():requires_grad_()
        F.log_softmax(x, 2):backward(g)
        return x.grad
      end
      local one = gradient(1)
      for _, count in ipairs{2, 3} do assert.is_true(lt.equal(one, gradient(count))) end
    end
    lt.set_num_threads(threads)
  end)

  it("ignore the least integer", function()
    local labels = lt.tensor{{math.mininteger, 2}}
    local loss = F.nll_loss(lt.full({1, 3, 2}, -2.), labels, {ignore_index = math.mininteger})
    assert.equal(2, loss:item())
  end)

  it("name a class out of range by its index in the target", function()
    local target = lt.ones({2, 3, 4}, {dtype = "int64"})
    for value, text in pairs{[6] = "got 6 at index {2, 1, 3}", [0] = "got 0 at index {2, 1, 3}"} do
      target[2][1][3] = value
      for _, name in ipairs{"cross_entropy", "nll_loss"} do
        for _, smoothing in ipairs{0, name == "cross_entropy" and 0.1 or nil} do
          local options = smoothing > 0 and {label_smoothing = smoothing} or {}
          local ok, found = pcall(F[name], lt.randn(2, 5, 3, 4), target, options)
          assert.is_false(ok)
          assert.is_truthy(found:find(text, 1, true), found)
        end
      end
    end
    local _, found = pcall(F.cross_entropy, lt.randn(1, 3, 4), lt.tensor{{1, 2, 5, 1}})
    assert.is_truthy(found:find("got 5 at index {1, 3}", 1, true), found)
    _, found = pcall(F.cross_entropy, lt.randn(3), lt.tensor(4))
    assert.is_truthy(found:find("for argument 'target', got 4$"), found)
  end)

  it("name a hinge loss's target, with and without gradients", function()
    local cases = {
      multi_margin_loss = {lt.tensor{1, 7}, "got 7 at index {2}"},
      multilabel_margin_loss = {lt.tensor{{1, 2, 0}, {1, 7, 9}}, "got 7 at index {2, 2}"},
    }
    for name, case in pairs(cases) do
      for _, requires_grad in ipairs{false, true} do
        local x = lt.randn(2, 3):requires_grad_(requires_grad)
        local ok, found = pcall(F[name], x, case[1])
        assert.is_false(ok)
        assert.matches(name .. ": expected an index from 1 to 3 for argument 'target', " .. case[2],
          found, 1, true)
      end
    end
    for _, requires_grad in ipairs{false, true} do
      local x = lt.randn(2, 3):requires_grad_(requires_grad)
      for _, dtype in ipairs{"float32", "bool"} do
        local bad = lt.ones({2}, {dtype = dtype})
        assert.matches("multi_margin_loss: expected an integer dtype for argument 'target', an "
          .. "index tensor, got \"" .. dtype, select(2, pcall(F.multi_margin_loss, x, bad)), 1,
          true)
        assert.matches("multilabel_margin_loss: expected an integer dtype for argument 'target'",
          select(2, pcall(F.multilabel_margin_loss, x, lt.ones({2, 3}, {dtype = dtype}))), 1, true)
      end
      for _, shape in ipairs{{4}, {2}, {3, 1}, {}} do
        assert.matches("multi_margin_loss: expected shape {3} for argument 'weight', got "
          .. tostring(lt.ones(shape).shape),
          select(2, pcall(F.multi_margin_loss, x, lt.tensor{1, 2}, 1, 1, lt.ones(shape))), 1, true)
      end
    end
    assert.matches("^[^ ]+ gather: .*'index'", select(2, pcall(lt.gather, lt.ones(2), 1,
      lt.tensor{3})))
  end)

  it("name one_hot's class out of range", function()
    local ok, found = pcall(F.one_hot, lt.tensor{{1, 2}, {7, 1}}, 3)
    assert.is_false(ok)
    assert.is_truthy(found:find("one_hot: expected an index from 1 to 3 for argument 'self', "
      .. "got 7 at index {2, 1}", 1, true), found)
    ok, found = pcall(F.one_hot, lt.tensor{1, 0}, 3)
    assert.is_false(ok)
    assert.is_truthy(found:find("for argument 'self', got 0 at index {2}", 1, true), found)
    ok, found = pcall(F.one_hot, lt.tensor(4), 3)
    assert.is_false(ok)
    assert.is_truthy(found:find("for argument 'self', got 4$"), found)
  end)
end)

describe("the hinge losses over classes", function()
  local function hinge(v) return v > 0 and v or 0 end

  it("agree with loops: multi_margin_loss", function()
    for _, sizes in ipairs{{1, 1}, {7, 5}, {300, 40}} do
      local n, c = sizes[1], sizes[2]
      for _, dtype in ipairs{"float32", "float64", "bfloat16"} do
        local x, y = lt.randn(n, c):to(dtype), lt.randint(1, c, {n})
        local weight, near = lt.rand(c):to(dtype), BOUNDS[dtype]
        for p = 1, 2 do
          for _, w in ipairs{false, weight} do
            local options = {p = p, margin = 0.75, weight = w or nil, reduction = "none"}
            local found = F.multi_margin_loss(x, y, options):double()
            local scores, labels = x:tolist(), y:tolist()
            for i = 1, n do
              local sum, t = 0, labels[i]
              for j = 1, c do
                if j ~= t then sum = sum + hinge(0.75 - scores[i][t] + scores[i][j]) ^ p end
              end
              sum = sum * (w and w[t]:item() or 1) / c
              assert.near(sum, found[i]:item(), 2 * near * (1 + sum))
            end
            local gradient = F.multi_margin_loss(x:clone():requires_grad_(), y, options)
            assert.is_true(gradient:detach():double():allclose(found, 8 * near, 8 * near))
          end
        end
      end
    end
  end)

  it("agree with loops: multilabel_margin_loss", function()
    for _, sizes in ipairs{{1, 1}, {7, 5}, {60, 40}} do
      local n, c = sizes[1], sizes[2]
      for _, dtype in ipairs{"float32", "float64", "bfloat16"} do
        local x, y = lt.randn(n, c):to(dtype), lt.randint(0, c, {n, c})
        if c > 1 then y[1], y[2] = 0, lt.randperm(c) end
        local found = F.multilabel_margin_loss(x, y, {reduction = "none"}):double()
        local scores, labels, near = x:tolist(), y:tolist(), BOUNDS[dtype]
        for i = 1, n do
          local sum, listed = 0, {}
          for k = 1, c do
            if labels[i][k] < 1 then break end
            listed[labels[i][k]] = true
          end
          for k = 1, c do
            local t = labels[i][k]
            if t < 1 then break end
            for j = 1, c do
              if not listed[j] then sum = sum + hinge(1 - scores[i][t] + scores[i][j]) end
            end
          end
          assert.near(sum / c, found[i]:item(), 4 * near * (1 + sum / c))
        end
        local gradient = F.multilabel_margin_loss(x:clone():requires_grad_(), y,
          {reduction = "none"})
        assert.is_true(gradient:detach():double():allclose(found, 8 * near, 8 * near))
      end
    end
  end)

  it("of infinite scores is the same with a gradient", function()
    local x = lt.tensor{{1., math.huge, 2.}}
    local again = x:clone():requires_grad_()
    assert.equal(0, F.multi_margin_loss(x, lt.tensor{2}):item())
    assert.equal(0, F.multi_margin_loss(again, lt.tensor{2}):item())
    local list = lt.tensor({{2, 0, 0}}, {dtype = "int8"})
    assert.equal(0, F.multilabel_margin_loss(x, list):item())
    assert.equal(0, F.multilabel_margin_loss(again, list):item())
  end)

  it("refuse classes out of range", function()
    local x = lt.randn(2, 3)
    local function fails(text, ...)
      local ok, found = pcall(...)
      assert.is_false(ok)
      assert.is_truthy(found:find(text, 1, true), found)
    end
    fails("for argument 'target', got 4 at index {2}", F.multi_margin_loss, x, lt.tensor{1, 4})
    fails("for argument 'target', got 0 at index {1}", F.multi_margin_loss, x, lt.tensor{0, 1})
    fails("for argument 'target', got 4 at index {2, 2}", F.multilabel_margin_loss, x,
      lt.tensor{{1, 0, 9}, {1, 4, 0}})
    local rest = lt.tensor{{1, 0, 9}, {0, 4, 0}} -- numbers after the list are not read
    assert.near(F.multilabel_margin_loss(x, rest):item(),
      F.multilabel_margin_loss(x:clone():requires_grad_(), rest):item(), 1e-6)
    assert.equal(0, F.multi_margin_loss(lt.ones(0, 3), lt.ones(0, {dtype = "int64"}),
      {reduction = "sum"}):item())
  end)
end)
