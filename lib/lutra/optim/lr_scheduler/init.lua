--- optim.lr_scheduler: schedules of learning rates.
--
--     local scheduler = optim.lr_scheduler.StepLR(optimizer, {step_size = 30, gamma = 0.1})
--     for epoch = 1, 100 do
--       train(optimizer)
--       scheduler:step()
--     end
--
-- A scheduler sets `lr` of the optimizer's groups when it is made and in each step. As in PyTorch,
-- `last_epoch` counts its steps: it is 0 after the constructor, and n after n steps.

local lr_scheduler = {}

for _, name in ipairs{"scheduler", "functions", "decay", "warmup", "cosine", "plateau", "cyclic",
  "one_cycle", "composed"} do
  local classes = require("lutra.optim.lr_scheduler." .. name)
  for _, class in ipairs(classes[1] and classes or {classes}) do
    lr_scheduler[class.__name] = class
  end
end

return require("lutra.internal.strict_table").strict(lr_scheduler, "optim.lr_scheduler")
