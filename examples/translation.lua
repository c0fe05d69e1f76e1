-- Translates written dates with a Transformer: "3 May 2021" becomes "2021-05-03".
--
--   lutra examples/translation.lua [--steps 1500] [--device cpu]
--
-- The task is generated, so it needs no data: dates in several spellings are the source language,
-- ISO 8601 dates the target language, both read character by character. The network is that of
-- "Attention Is All You Need" (Vaswani et al. 2017), small. The same program translates any pairs
-- of lines.
--
-- test: --steps 20
-- test on cuda:1: --steps 1 --batch-size 4 --device cuda

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim = lt.nn, lt.F, lt.optim

local options = cli.parse(arg, {
  {"steps", 1000, "training steps", least = 1},
  {"batch-size", 64, "pairs per step", least = 1},
  {"width", 64, "numbers per character, a multiple of 4", least = 4},
  {"device", "cpu", "device to train on: cpu, cuda or mps"},
  {"seed", 1, "seed of the random numbers"},
})
if options.width % 4 ~= 0 then
  cli.fail(("--width: expected a multiple of 4, got %d"):format(options.width))
end
local device = cli.device(options.device)
lt.manual_seed(options.seed)

-- The task --------------------------------------------------------------------------------------

local MONTHS = {"January", "February", "March", "April", "May", "June", "July", "August",
  "September", "October", "November", "December"}

local function random(first, last) return lt.randint(first, last, {1}):item() end

-- Returns a date in words, and the same date in digits.
local function pair()
  local day, month, year = random(1, 28), random(1, 12), random(1950, 2049)
  local name = MONTHS[month]
  local spellings = {
    ("%d %s %d"):format(day, name, year),
    ("%s %d, %d"):format(name, day, year),
    ("%d %s %d"):format(day, name:sub(1, 3), year),
  }
  return spellings[random(1, #spellings)], ("%d-%02d-%02d"):format(year, month, day)
end

-- Characters are numbered by their bytes; ids 1 to 3 are padding, start and end.
local PAD, START, END, FIRST, VOCABULARY = 1, 2, 3, 4, 4 + 126 - 32

local function encode(text)
  local ids = {}
  for i = 1, #text do ids[i] = text:byte(i) - 32 + FIRST end
  return ids
end

local function decode(ids)
  local letters = {}
  for i, id in ipairs(ids) do letters[i] = string.char(id - FIRST + 32) end
  return table.concat(letters)
end

-- Returns lists of ids of different lengths as one tensor {count, longest}.
local function padded(lists)
  local longest = 0
  for _, ids in ipairs(lists) do longest = math.max(longest, #ids) end
  for _, ids in ipairs(lists) do
    for t = #ids + 1, longest do ids[t] = PAD end
  end
  return lt.tensor(lists):to(device)
end

-- Returns sources {count, time}, and targets with their start and end {count, time}.
local function batch(count)
  local sources, targets = {}, {}
  for i = 1, count do
    local source, target = pair()
    sources[i] = encode(source)
    targets[i] = encode(target)
    table.insert(targets[i], 1, START)
    table.insert(targets[i], END)
  end
  return padded(sources), padded(targets)
end

-- The model -------------------------------------------------------------------------------------

local Translator = nn.Module:extend "Translator"

function Translator:init(width)
  self.characters = nn.Embedding(VOCABULARY, width)
  self.places = nn.Embedding(64, width)
  self.transformer = nn.Transformer(width, 4, 2, 2, 4 * width, 0.1, {batch_first = true})
  self.head = nn.Linear(width, VOCABULARY)
end

function Translator:embed(ids)
  return self.characters(ids) + self.places(lt.arange(ids:size(2), {device = device}))
end

-- source: {batch, time}, target: {batch, written}. Returns scores {batch, written, VOCABULARY} of
-- the character after each character of the target.
function Translator:forward(source, target)
  local hidden = source:eq(PAD)
  local future = nn.Transformer.generate_square_subsequent_mask(target:size(2), {device = device})
  return self.head(self.transformer(self:embed(source), self:embed(target), {
    tgt_mask = future, tgt_is_causal = true,
    src_key_padding_mask = hidden, memory_key_padding_mask = hidden,
  }))
end

-- Returns the translation of each source, written character by character.
function Translator:translate(source)
  local target = lt.full({source:size(1), 1}, START, {dtype = "int64", device = device})
  for _ = 1, 11 do
    local scores = self(source, target)
    target = lt.cat({target, scores[{{}, -1}]:argmax(2):unsqueeze(2)}, 2)
  end
  local lines = {}
  for i, ids in ipairs(target:totable()) do
    local line = {}
    for t = 2, #ids do
      if ids[t] == END then break end
      line[#line + 1] = math.max(ids[t], FIRST)
    end
    lines[i] = decode(line)
  end
  return lines
end

-- Training --------------------------------------------------------------------------------------

local net = Translator(options.width):to(device)
local optimizer = optim.AdamW(net:parameters(), {lr = 2e-3})
local schedule = optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, options.steps)

local first, loss
local losses = {}
local bar = lt.progress{total = options.steps, desc = "training"}
for _ = 1, options.steps do
  local source, target = batch(options["batch-size"])
  local scores = net(source, target[{{}, {1, -2}}])
  loss = F.cross_entropy(scores:flatten(1, 2), target[{{}, {2, -1}}]:flatten(),
    {ignore_index = PAD})
  first = first or loss:item()
  optimizer:zero_grad()
  loss:backward()
  nn.utils.clip_grad_norm_(net:parameters(), 1)
  optimizer:step()
  schedule:step()
  losses[#losses + 1] = loss:detach()
  bar:update(1)
  bar:set_postfix {loss = loss}
end
bar:close()
print(lt.plot.line(lt.stack(losses):cpu(), {label = "loss"}))
print(("loss %.4f, at the start %.4f"):format(loss:item(), first))

net:eval()
local right, total = 0, 64
local sources, answers, texts = {}, {}, {}
for i = 1, total do
  texts[i], answers[i] = pair()
  sources[i] = encode(texts[i])
end
for i, line in ipairs(lt.no_grad(net.translate, net, padded(sources))) do
  if i <= 6 then print(("  %-20s %s"):format(texts[i], line)) end
  if line == answers[i] then right = right + 1 end
end
print(("%d of %d translations are right"):format(right, total))

-- Check the result.
if options.steps >= 1000 and right < 0.95 * total then
  cli.fail(("expected at least 95 %% of the translations to be right, got %d of %d"):format(right,
    total))
end
if options.steps >= 20 and (loss:ne(loss):item() or loss:item() > 0.8 * first) then
  cli.fail(("expected the loss to fall below %.2f, got %.2f"):format(0.8 * first, loss:item()))
end
