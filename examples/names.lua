-- Learns from a list of names to invent new ones, with three models of growing strength.
--
--   lutra examples/names.lua --names FILE [--model mlp] [--device cpu] [--steps 2000]
--
-- FILE has one name a line. The models predict the next character from
--   bigram  the last character, with a table of 27 x 27 scores,
--   mlp     the last three characters, with an embedding and a hidden layer (Bengio et al. 2003),
--   lstm    all characters before it, with a recurrent layer.
-- They follow the lessons of "makemore".
--
-- test: --names $DATA/names.txt --model bigram --steps 300
-- test: --names $DATA/names.txt --model mlp --steps 300
-- test: --names $DATA/names.txt --model lstm --steps 150

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim = lt.nn, lt.F, lt.optim

-- The largest loss on held-out names, in nats per character, after so many steps.
local GOALS = {
  bigram = {[300] = 2.65, [2000] = 2.5},
  mlp = {[300] = 2.45, [2000] = 2.35},
  lstm = {[150] = 2.55, [2000] = 2.15},
}

local options = cli.parse(arg, {
  {"names", nil, "file with one name a line", required = true},
  {"model", "mlp", "bigram, mlp or lstm", choices = {"bigram", "mlp", "lstm"}},
  {"device", "cpu", "device to train on: cpu, cuda or mps"},
  {"steps", 2000, "training steps", least = 1},
  {"batch-size", 128, "names per step", least = 1},
  {"out", "", "SVG or PNG file for the plot"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

-- The data: a row per name, {count, longest + 1}. Id 1 is the end of a name; letters follow. Each
-- name starts from the end of the name before it; what follows its end is ignored (target 0).
local END, IGNORE = 1, 0
local rows, longest = {}, 0
for name in cli.read_file("names", options.names):gmatch "[^\r\n]+" do
  local ids = {}
  for letter in name:lower():gmatch "%l" do ids[#ids + 1] = letter:byte() - ("a"):byte() + 2 end
  if #ids > 0 then
    rows[#rows + 1] = ids
    longest = math.max(longest, #ids)
  end
end
if #rows < 10 then cli.fail(("--names: expected at least 10 names, got %d"):format(#rows)) end
local input_rows, target_rows = {}, {}
for i, ids in ipairs(rows) do
  local input, target = {END}, {}
  for t = 1, longest + 1 do
    target[t] = ids[t] or t == #ids + 1 and END or IGNORE
    input[t + 1] = t <= longest and (ids[t] or END) or nil
  end
  input_rows[i], target_rows[i] = input, target
end
local inputs, targets = lt.tensor(input_rows):to(device), lt.tensor(target_rows):to(device)
local order = lt.randperm(#rows)
local held_out = order[{{1, math.min(1000, #rows // 10)}}]:to(device)
local training = order[{{math.min(1000, #rows // 10) + 1, -1}}]:to(device)

-- The models: from ids {batch, time} to scores {batch, time, 27} of the next character --------

local models = {}

models.bigram = nn.Module:extend "Bigram"

function models.bigram:init() self.scores = nn.Embedding(27, 27) end

function models.bigram:forward(ids) return self.scores(ids) end

models.mlp = nn.Module:extend "MLP"

function models.mlp:init()
  self.letters = nn.Embedding(27, 16)
  self.layers = nn.Sequential(nn.Linear(3 * 16, 200), nn.Tanh(), nn.Linear(200, 27))
end

function models.mlp:forward(ids)
  local before = F.pad(ids, {2, 0}, {value = END})      -- two ends before the start
  local windows = before:unfold(2, 3, 1)                -- {batch, time, 3}
  return self.layers(self.letters(windows):flatten(3))
end

models.lstm = nn.Module:extend "LSTM"

function models.lstm:init()
  self.letters = nn.Embedding(27, 32)
  self.memory = nn.LSTM(32, 128, {batch_first = true})
  self.head = nn.Linear(128, 27)
end

function models.lstm:forward(ids) return self.head((self.memory(self.letters(ids)))) end

-- Training ------------------------------------------------------------------------------------

local model = models[options.model]():to(device)
print(model)
local optimizer = optim.AdamW(model:parameters(),
  {lr = options.model == "bigram" and 0.1 or 5e-3})
local schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)

-- Returns the loss per character of the names with these numbers.
local function loss_of(numbers)
  local scores = model(inputs[numbers])
  return F.cross_entropy(scores:flatten(1, 2), targets[numbers]:flatten(),
    {ignore_index = IGNORE})
end

local losses = {}
local bar = lt.progress{total = options.steps, desc = options.model}
for step = 1, options.steps do
  local loss = loss_of(training[lt.randint(1, #training, {options["batch-size"]}):to(device)])
  optimizer:zero_grad()
  loss:backward()
  optimizer:step()
  schedule:step()
  losses[step] = loss:detach()
  bar:update(1)
  bar:set_postfix {loss = loss}
end
bar:close()
local reached = lt.no_grad(loss_of, held_out):item()
local figure = lt.plot.line(lt.stack(losses):cpu(), {label = "loss"})
print(figure)
if options.out ~= "" then cli.try(figure.save, figure, options.out) end
print(("loss on held-out names: %.3f"):format(reached))

-- Invent names: draw the next character until the end.
local function invent()
  local ids = {END}
  repeat
    local scores = lt.no_grad(model, lt.tensor({ids}, {device = device}))
    ids[#ids + 1] = lt.multinomial(F.softmax(scores[{1, -1}], 1), 1):item()
  until ids[#ids] == END or #ids > longest
  local letters = {}
  for i = 2, #ids do
    if ids[i] ~= END then letters[#letters + 1] = string.char(ids[i] - 2 + ("a"):byte()) end
  end
  return table.concat(letters)
end
for _ = 1, 10 do print("  " .. invent()) end

-- Check the result.
local goal = GOALS[options.model][options.steps] or math.huge
if reached ~= reached or reached > goal then
  cli.fail(("expected a loss of at most %g, got %.3f"):format(goal, reached))
end
