--- Parameters given by position stand where PyTorch has them: every signature of the library
-- against tests/golden/parameter_orders.lua (tools/gen_parameter_orders.py). What PyTorch takes by
-- name only may stand behind; what it has at the end may be missing.

local lt = require "lutra"
local signatures = require "lutra.repl.complete.signatures"
local golden = require "tests.golden.parameter_orders"

-- Lutra's name of a parameter, by PyTorch's: what Lua cannot say, and what api.md calls otherwise.
local alias = {input = "self", ["end"] = "stop"}

-- Functions whose order is another one, with the reason.
local exceptions = {
  ["F.one_hot"] = "the name of the tensor alone: self",
  ["op.binary_cross_entropy_with_logits"] = "the order is that of F",
  ["op.dropout"] = "the order is that of F",
  ["op.embedding"] = "the name of the indices alone; users call F.embedding",
  ["op.copy_"] = "the name of the source alone",
  ["op.dot"] = "the name of the second tensor alone",
  ["op.normal"] = "the op behind x:normal_",
}

local function words(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = alias[word] or word end
  return list
end

-- How many of `own` are in the overload, and whether those that it has stand where it has them.
local function compare(own, overload)
  local known, shared, fits = {}, 0, true
  for i, name in ipairs(overload) do known[name] = i end
  for i, name in ipairs(own) do
    if known[name] then
      shared = shared + 1
      fits = fits and known[name] == i
    elseif i <= #overload then
      fits = false
    end
  end
  return shared, fits
end

-- nil, or what is different.
local function difference(name, params)
  local own, most, fits = {}, -1, false
  for i, p in ipairs(params) do own[i] = alias[p.name] or p.name end
  for _, text in ipairs(golden[name]) do
    local shared, same = compare(own, words(text))
    if shared > most then most, fits = shared, same
    elseif shared == most then fits = fits or same end
  end
  if fits then return nil end
  return ("%s: %s; PyTorch: %s"):format(name, table.concat(own, " "),
    table.concat(golden[name], " | "))
end

-- Calls visit(name, params) for every signature of the library.
local function each_signature(visit)
  for _, op in ipairs(lt.ops()) do
    if op.name:sub(1, 1) ~= "_" and not op.call then visit("op." .. op.name, op.params) end
    for space, name in pairs(op.namespaces) do
      if space == "F" and op.inplace then
        local params = table.move(op.params, 1, #op.params, 1, {})
        params[#params + 1] = {name = "inplace"}
        visit("F." .. name, params)
      elseif space == "F" then
        visit("F." .. name, op.params)
      end
    end
  end
  for kind, t in pairs {nn = lt.nn, optim = lt.optim, ["nn.init"] = lt.nn.init,
    ["nn.utils"] = lt.nn.utils} do
    for name, value in next, t do
      local signature = name:match "^%a" and signatures.of(value, name)
      if signature then visit(kind .. "." .. name, signature.params) end
    end
  end
end

describe("the order of parameters", function()
  it("is PyTorch's", function()
    local found, seen, used = {}, 0, {}
    each_signature(function(name, params)
      if not golden[name] then return end
      seen = seen + 1
      local text = difference(name, params)
      if exceptions[name] then
        used[name] = text ~= nil
      elseif text then
        found[#found + 1] = text
      end
    end)
    table.sort(found)
    assert.equal("", table.concat(found, "\n"))
    assert.is_true(seen > 200)
    for name in pairs(exceptions) do assert.is_true(used[name], name .. " is no exception") end
  end)

  it("is compared as the test says", function()
    assert.is_nil(difference("op.sum", {{name = "self"}, {name = "dim"}, {name = "keepdim"}}))
    assert.truthy(difference("op.sum", {{name = "self"}, {name = "keepdim"}, {name = "dim"}}))
    assert.truthy(difference("op.add", {{name = "self"}, {name = "out"}, {name = "other"}}))
  end)
end)

describe("options that PyTorch has by position", function()
  local F, nn = lt.F, lt.nn
  local x, y = lt.tensor{1.0, 2.0}, lt.tensor{4.0, 6.0} -- differences 3 and 4

  it("say how a loss is reduced, by their older names", function()
    assert.equal(12.5, F.mse_loss(x, y):item())
    assert.equal(25, F.mse_loss(x, y, false):item())
    assert.equal(12.5, F.mse_loss(x, y, true, true, "none"):item())
    assert.equal(12.5, F.mse_loss(x, y, {reduce = true, reduction = "sum"}):item())
    assert.same({9, 16}, F.mse_loss(x, y, nil, false):totable())
    assert.same({3, 4}, F.l1_loss(x, y, nil, nil, "none"):totable())
    assert.equal(25, nn.MSELoss(false)(x, y):item())
    assert.same({3, 4}, nn.L1Loss{reduce = false}(x, y):totable())
    assert.equal(7, nn.L1Loss(nil, nil, "sum")(x, y):item())
  end)

  it("stand in the losses of classes where PyTorch has them", function()
    local scores, labels = lt.zeros(3, 2), lt.tensor{1, 2, 1}
    local weight, ln2 = lt.tensor{2.0, 5.0}, math.log(2)
    local function is(expected, loss) assert.is_true(math.abs(loss:item() - expected) < 1e-6) end
    is(9 * ln2, F.cross_entropy(scores, labels, weight, false))
    is(4 * ln2, F.cross_entropy(scores, labels, weight, nil, 2, nil, "sum", 0))
    is(9 * ln2, nn.CrossEntropyLoss(weight, false)(scores, labels))
    is(5.5 * ln2, nn.CrossEntropyLoss(weight, nil, 2, nil, "sum", 0.5)(scores, labels))
    is(4 * ln2, nn.NLLLoss(weight, nil, 2, nil, "sum")(scores:log_softmax(2), labels))
    is(9 * ln2, F.nll_loss(scores:log_softmax(2), labels, weight, false))
    local logits, target = lt.zeros(2), lt.tensor{1.0, 0.0}
    is(4 * ln2, F.binary_cross_entropy_with_logits(logits, target, nil, nil, nil, "sum",
      lt.tensor(3.0)))
  end)

  it("make activations and dropout work in place", function()
    local seen = {}
    for _, op in ipairs(lt.ops()) do
      local f = op.inplace and F[op.name]
      if f then
        seen[#seen + 1] = op.name
        local count = #op.params
        local more = op.name == "threshold" and {0.5, 7.0} or {} -- required behind the input
        local function with(input, named) -- all arguments, the last ones by name
          local list = {input, table.unpack(more)}
          list[#list + 1] = named
          return table.unpack(list)
        end
        local function given(input, ...) -- PyTorch's position: behind the others
          local list = {with(input)}
          list[count + 1] = true
          if op.name == "dropout" then list[2], list[3] = ... end
          return table.unpack(list, 1, count + 1)
        end
        local expected = op.name == "dropout" and lt.zeros(3) or f(with(lt.tensor{-1.5, 0.0, 2.0}))
        for _, call in ipairs {function(v) return f(given(v, 1.0, true)) end,
          op.name ~= "dropout" and function(v) return f(with(v, {inplace = true})) end or nil,
          op.name ~= "dropout" and function(v)
            return f{inplace = true, with(v)}
          end or nil} do
          local v = lt.tensor{-1.5, 0.0, 2.0}
          assert.equal(v, call(v))
          assert.is_true(lt.equal(expected, v), op.name)
        end
        local v = lt.tensor{-1.5, 0.0, 2.0}
        assert.not_equal(v, f(with(v, {inplace = false})))
        assert.same({-1.5, 0, 2}, v:totable())
        assert.is_false((pcall(f, with(v, {inplace = 1}))))
        assert.is_false((pcall(f, with(lt.ones{2, requires_grad = true}, {inplace = true}))))
      end
    end
    table.sort(seen)
    assert.same({"celu", "dropout", "elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
      "mish", "relu", "selu", "sigmoid", "silu", "tanh", "threshold"}, seen)
    assert.same({0, 2}, F.relu(lt.tensor{-1.0, 2.0}, true):totable())
  end)

  it("have gradients in place", function()
    for _, inplace in ipairs {false, true} do
      local v = lt.tensor({-1.0, 2.0, 3.0}, {requires_grad = true})
      F.leaky_relu(v * 1, {negative_slope = 0.25, inplace = inplace}):sum():backward()
      assert.same({0.25, 1, 1}, v.grad:totable())
    end
  end)

  it("are taken by optimizers, with or without an effect", function()
    for _, class in ipairs {lt.optim.SGD, lt.optim.Adam, lt.optim.AdamW, lt.optim.RMSprop} do
      local p = lt.tensor({1.0}, {requires_grad = true})
      p.grad = lt.tensor{1.0}
      class({p}, {maximize = true, differentiable = false, foreach = true}):step()
      assert.is_true(p:item() > 1)
      class({p}, {lr = 0.5, differentiable = false}):step()
      assert.is_true(p:item() < 1)
      local ok, message = pcall(class, {p}, {differentiable = true})
      assert.is_false(ok)
      assert.truthy(message:find("differentiable = true is not yet supported", 1, true))
    end
  end)

  it("stand in Embedding where PyTorch has them, with or without an effect", function()
    local vectors = lt.tensor{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}
    local layer = nn.Embedding(3, 2, nil, nil, 2, false, true, vectors, true)
    assert.same({{3, 4}}, layer(lt.tensor{2}):totable())
    assert.is_false(layer.weight.requires_grad)
    local ok, message = pcall(nn.Embedding, 3, 2, {_weight = lt.ones(2, 2)})
    assert.is_false(ok)
    assert.truthy(message:find("Embedding: ", 1, true) and message:find("_weight", 1, true))
  end)
end)
