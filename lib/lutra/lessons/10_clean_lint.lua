-- Lesson 10: a training loop of which the lint has nothing to say.

local EPOCHS, BATCHES = 5, 3

-- A fresh model on the device and the batches, on the CPU: which of four numbers is largest.
local function prepare(lt, seed)
  lt.manual_seed(seed)
  local model, batches = lt.nn.Linear(4, 4):to "cuda:0", {}
  for i = 1, BATCHES do
    local x = lt.randn(32, 4)
    batches[i] = {x, x:argmax(2)}
  end
  return model, batches
end

-- The mean loss of the loop as it stood, and the model that it trained.
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
  goal = "train(model, batches, epochs) gives the same mean loss, and the lint finds nothing.",
  devices = 1,
  text = [[
The lint watches a part of a program as it runs and says which copies and waits could be saved, at
which line, and how:

    lt.placement.lint(f, ...)    -- calls f(...), gives what it found

It knows nine patterns, called T1 to T9. For a whole script there is lutra --lint script.lua.

Below is a training loop as many are written. It is right, but it sends the same batches again and
again, and reads a number in each step. The model is on cuda:0; batches is a table of 3 pairs {x, y}
on the CPU. All you have learnt is of use here: what is needed often is sent once, and what is not
needed yet is not read. The mean loss is to be the same.]],
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
    ":check shows a finding with its fix. Mend it, and :check again for the next.",
    "Before the loops: make a second table of batches that are on cuda:0.",
    "total = total + loss:detach() adds up on the GPU; behind the loops, :item() once.",
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
      return false, ("the mean loss is %s, it was %.4f in the loop as it stood"):format(
        see.text(mean, "%.4f"),
        expected)
    end
    local on_cpu, lines = see.count(trace, see.product "cpu")
    if on_cpu > 0 or model:device() ~= "cuda:0" then
      return false, ("the mean loss is right, but the model was %s"):format(on_cpu > 0
        and "trained on the CPU, at " .. lines or "moved to " .. model:device())
    end
    for _, name in ipairs {"weight", "bias"} do
      if not see.near(model[name], trained[name], 1e-3) then
        return false, ("the mean loss is right, but the model's %s is not as the loop trained it"
          ):format(name)
      end
    end
    if #findings > 0 then
      return false, ("the lint has %s: %s"):format(#findings == 1 and "1 finding"
        or #findings .. " findings; the first", tostring(findings[1]))
    end
    return true, ("the mean loss is the same, %.4f, and the lint found nothing"):format(mean)
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
