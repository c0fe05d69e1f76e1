--- DistributedDataParallel with parameters that take no part in the loss.

local check = require("ddp_support").check

describe("DistributedDataParallel with unused parameters", function()
  local branches = [[
    local Branches = nn.Module:extend "Branches"
    function Branches:init()
      for i, name in ipairs {"a", "b", "c"} do self[name] = exact(nn.Linear(4, 3, D), i) end
    end
    function Branches:forward(x, names)
      local sum = 0
      for name in names:gmatch "%a" do sum = sum + self[name](x) end
      return sum
    end
    local function step(model, names, k)
      local x = rows(integers(k, 2, {8, 4}))
      local l = model(x, names):sum() / 4
      l:backward()
    end
    -- The average over two ranks of the gradients that each rank computes alone.
    local function expected(names0, names1, k, net)
      net = net or Branches()
      for r, names in ipairs {names0, names1} do
        local x = integers(k, 2, {8, 4}):narrow(1, (r - 1) * 4 + 1, 4)
        local l = net(x, names):sum() / 4 / 2
        l:backward()
      end
      return net
    end
  ]]

  it("finds them: used by any rank counts, and grads of the others stay nil", function()
    check(2, branches .. [[
      for _, view in ipairs {false, true} do
        local part = Branches()
        local model = DDP(part, {find_unused_parameters = true, gradient_as_bucket_view = view,
          bucket_cap_mb = 1e-4})
        step(model, rank == 0 and "a" or "b", 1)
        check_equal(expected("a", "b", 1), part, "a on rank 0, b on rank 1")
        assert(part.c.weight.grad == nil)
        model:zero_grad()
        step(model, "c", 2)
        check_equal(expected("c", "c", 2), part, "c")
        assert(part.a.weight.grad == nil)
        -- Without zero_grad, grads of unused parameters keep their values.
        local kept = part.c.weight.grad:clone()
        step(model, rank == 0 and "ab" or "a", 3)
        assert(lt.equal(kept, part.c.weight.grad), "kept")
        local net = expected("c", "c", 2)
        check_equal(expected("ab", "a", 3, net), part, "added")
        -- Used only in no_sync: exchanged by the next backward.
        model:zero_grad()
        model:no_sync(function() step(model, rank == 0 and "a" or "b", 4) end)
        step(model, "c", 5)
        net = expected("a", "b", 4)
        check_equal(expected("c", "c", 5, net), part, "in no_sync")
      end]])
  end)

  it("finds results that take no part in the loss", function()
    check(2, branches .. [[
      local Two = nn.Module:extend "Two"
      function Two:init() self.inner = Branches() end
      function Two:forward(x) return {first = self.inner(x, "a"), second = {self.inner(x, "b")}} end
      local part = Two()
      local model = DDP(part, {find_unused_parameters = true})
      for k = 1, 2 do
        local out = model(rows(integers(k, 2, {8, 4})));
        (out.second[1]:sum() / 4):backward()
      end
      assert(part.inner.a.weight.grad == nil)
      check_equal(expected("b", "b", 2, expected("b", "b", 1)), part.inner, "second")]])
  end)

  it("raises an error that names them without the option", function()
    check(2, branches .. [[
      local part = Branches()
      local model = DDP(part)
      step(model, "ab", 1)
      local message = fails("expected to have finished reduction in the prior iteration", step,
        model, "abc", 2)
      local words = '2 parameters on rank ' .. rank .. ': "c.weight", "c.bias"'
      assert(message:find(words, 1, true), message)
      assert(message:find("hint: find_unused_parameters = true", 1, true))
      -- The next iteration starts anew.
      model:zero_grad()
      step(model, "abc", 2)
      check_equal(expected("abc", "abc", 2), part, "after the error")]])
  end)

  it("learns them once with static_graph", function()
    check(2, branches .. [[
      for _, view in ipairs {false, true} do
        local part, net = Branches(), Branches()
        local model = DDP(part, {static_graph = true, gradient_as_bucket_view = view,
          bucket_cap_mb = 1e-4})
        for k = 1, 4 do
          step(model, rank == 0 and "a" or "b", k)
          check_equal(expected("a", "b", k, net), part, "static " .. k)
        end
        assert(part.c.weight.grad == nil)
      end
      local model = DDP(Branches(), {static_graph = true})
      step(model, "a", 1)
      fails("expected the same graph in each iteration with static_graph = true", step, model,
        "abc", 2)]])
  end)

  it("raises an error for a gradient that does not come from forward", function()
    check(2, branches .. [[
      local part = Branches()
      local model = DDP(part, {find_unused_parameters = true})
      local x = rows(integers(1, 2, {8, 4}))
      local message = fails("expected one gradient of each parameter", function()
        local l = model(x, "a"):sum() + part.c.weight:sum()
        l:backward()
      end)
      assert(message:find('"c.weight"', 1, true))]])
  end)
end)
