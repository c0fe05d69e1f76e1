-- Lesson 10: a training loop without lint findings.

local EPOCHS, BATCHES = 5, 3

-- Returns a new model on the device and the batches, on the CPU; the label is the index of the
-- largest of four numbers.
local function prepare(lt, seed)
  lt.manual_seed(seed)
  local model, batches = lt.nn.Linear(4, 4):to "cuda:0", {}
  for i = 1, BATCHES do
    local x = lt.randn(32, 4)
    batches[i] = {x, x:argmax(2)}
  end
  return model, batches
end

-- Returns the mean loss of the original loop, and the model that it trained.
local function reference(lt, seed)
  local model, batches = prepare(lt, seed)
  local optimizer, sum = lt.optim.AdamW(model:parameters(), {lr = 0.05}), 0
  for _ = 1, EPOCHS do
    for _, batch in ipairs(batches) do
      local loss = lt.F.cross_entropy(model(batch[1]:to "cuda:0"), batch[2]:to "cuda:0")
      optimizer:zero_grad()
      loss:backward()
      optimizer:step()
      sum = sum + loss:item()
    end
  end
  return sum / (EPOCHS * BATCHES), model
end

return {
  title = "A training loop with a clean lint",
  goal = "train(model, batches, epochs) returns the same mean loss, without lint findings.",
  devices = 1,
  text = [[
The lint traces running code and reports copies and synchronizations that can be avoided, with the
line and a fix:

    lt.placement.lint(f, ...)    -- calls f(...), returns the findings

Its rules about copies are T1 to T9. For a whole script, use lutra --lint script.lua.

Below is a common training loop. It is correct, but it copies the same batches to the device in each
epoch, and reads a number in each step. The model is on cuda:0; batches is a table of 3 pairs {x, y}
on the CPU. Use what you have learned: copy once what is needed often, and read a number only when
it is needed. The mean loss must stay the same.]],
  start = [[
function train(model, batches, epochs)
  local optimizer = optim.AdamW(model:parameters(), {lr = 0.05})
  local total = 0
  for _ = 1, epochs do
    for _, batch in ipairs(batches) do
      local x, y = batch[1]:to "cuda:0", batch[2]:to "cuda:0"
      local loss = F.cross_entropy(model(x), y)
      optimizer:zero_grad()
      loss:backward()
      optimizer:step()
      total = total + loss:item()
    end
  end
  return total / (epochs * #batches)
end
]],
  hints = {
    ":check shows a finding with its fix. Fix it, then :check again for the next.",
    "Before the loops, make a second table with the batches on cuda:0.",
    "total = total + loss:detach() accumulates on the GPU; after the loops, call :item() once.",
  },
  check = function(env, lt, see)
    local train = see.func(env, "train")
    local seed = lt.initial_seed()
    local expected, trained = reference(lt, seed)
    local model, batches = prepare(lt, seed)
    local mean, findings
    local trace = lt.placement.trace(function()
      findings = lt.placement.lint(function() mean = train(model, batches, EPOCHS) end)
    end)
    if findings.error then error(findings.error, 0) end
    see.number(mean, "train(model, batches, epochs)")
    if not see.near(mean, expected, 1e-3) then
      return false, ("expected the mean loss of the original loop, %.4f, got %s"):format(
        expected, see.text(mean, "%.4f"))
    end
    local on_cpu, lines = see.count(trace, see.product "cpu")
    if on_cpu > 0 or model:device() ~= "cuda:0" then
      return false, ("the mean loss is right, but the model was %s"):format(on_cpu > 0
        and "trained on the CPU, at " .. lines or "moved to " .. model:device())
    end
    for _, name in ipairs {"weight", "bias"} do
      if not see.near(model[name], trained[name], 1e-3) then
        return false, ("the mean loss is right, but the %s of the model is not that of the "
          .. "original loop"):format(name)
      end
    end
    if #findings > 0 then
      return false, ("the lint has %s: %s"):format(#findings == 1 and "1 finding"
        or #findings .. " findings; the first", tostring(findings[1]))
    end
    return true, ("the mean loss is the same, %.4f, and the lint has no findings"):format(mean)
  end,
  solution = [[
function train(model, batches, epochs)
  local optimizer = optim.AdamW(model:parameters(), {lr = 0.05})
  local there, total = {}, 0
  for i, batch in ipairs(batches) do
    there[i] = {batch[1]:to "cuda:0", batch[2]:to "cuda:0"}
  end
  for _ = 1, epochs do
    for _, batch in ipairs(there) do
      local loss = F.cross_entropy(model(batch[1]), batch[2])
      optimizer:zero_grad()
      loss:backward()
      optimizer:step()
      total = total + loss:detach()
    end
  end
  return total:item() / (epochs * #batches)
end
]],
}
