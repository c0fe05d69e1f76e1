-- Learns vectors for words, so that words that occur in similar places have similar vectors.
--
--   lutra examples/word_embeddings.lua [--text FILE] [--steps 3000] [--device cpu]
--
-- This is skip-gram with negative sampling (Mikolov et al. 2013). Without --text it trains on
-- sentences made by a small grammar about animals, food and places, in which the groups are known.
--
-- test: --steps 300
-- test on cuda:1: --steps 20 --device cuda

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim = lt.nn, lt.F, lt.optim

local options = cli.parse(arg, {
  {"text", "", "file to train on; sentences of a small grammar by default"},
  {"steps", 1000, "training steps", least = 1},
  {"width", 16, "numbers per word", least = 2},
  {"words", 2000, "size of the vocabulary: the most frequent words", least = 2},
  {"device", "cpu", "device to train on: cpu, cuda or mps"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

-- The text --------------------------------------------------------------------------------------

local groups = {
  animal = {"cat", "dog", "otter", "horse", "mouse"},
  food = {"bread", "rice", "fish", "cheese", "soup"},
  place = {"river", "house", "garden", "forest", "street"},
}
local sentences = {"the {animal} eats the {food}", "the {animal} sleeps in the {place}",
  "we cook {food} for dinner", "they walk to the {place} today",
  "a small {animal} runs away", "some {food} is on the plate"}

local function generated()
  local lines = {}
  for i = 1, 4000 do
    local sentence = sentences[lt.randint(1, #sentences, {1}):item()]
    lines[i] = sentence:gsub("{(%w+)}", function(group)
      return groups[group][lt.randint(1, 5, {1}):item()]
    end)
  end
  return table.concat(lines, "\n")
end

-- Returns the most frequent words, and their numbers in the text, line by line.
local function count_words(text)
  local counts, list = {}, {}
  for word in text:lower():gmatch "%a+" do
    if not counts[word] then list[#list + 1] = word end
    counts[word] = (counts[word] or 0) + 1
  end
  table.sort(list, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
  end)
  local ids, vocabulary = {}, {}
  for i = 1, math.min(#list, options.words) do vocabulary[i], ids[list[i]] = list[i], i end
  local lines = {}
  for line in text:lower():gmatch "[^\n]+" do
    local numbers = {}
    for word in line:gmatch "%a+" do numbers[#numbers + 1] = ids[word] end
    lines[#lines + 1] = numbers
  end
  return vocabulary, ids, lines, counts
end

local text = options.text == "" and generated() or cli.read_file("text", options.text)
local vocabulary, ids, lines, counts = count_words(text)

-- Pairs of a word and a word at most two places away.
local centers, contexts = {}, {}
for _, line in ipairs(lines) do
  for i, center in ipairs(line) do
    for j = math.max(1, i - 2), math.min(#line, i + 2) do
      if j ~= i then centers[#centers + 1], contexts[#contexts + 1] = center, line[j] end
    end
  end
end
if #centers == 0 then cli.fail(("--text: expected lines of words in %s"):format(options.text)) end
centers, contexts = lt.tensor(centers):to(device), lt.tensor(contexts):to(device)
print(("%d words, %d pairs"):format(#vocabulary, #centers))

-- Negative samples are drawn by frequency to the power 3/4, as in the paper.
local weights = {}
for i, word in ipairs(vocabulary) do weights[i] = counts[word] ^ 0.75 end
weights = lt.tensor(weights):to(device)

-- Training ------------------------------------------------------------------------------------

local BATCH, NEGATIVES = 512, 5
local word, context = nn.Embedding(#vocabulary, options.width):to(device),
  nn.Embedding(#vocabulary, options.width):to(device)
nn.init.uniform_(word.weight, -0.1, 0.1)
nn.init.zeros_(context.weight)
local optimizer = optim.Adam({word.weight, context.weight}, {lr = 0.01})

local bar = lt.progress{total = options.steps, desc = "training"}
for _ = 1, options.steps do
  local pick = lt.randint(1, #centers, {BATCH}):to(device)
  local w = word(centers[pick]):unsqueeze(3)                                 -- {batch, width, 1}
  local seen = context(contexts[pick]):unsqueeze(2)                          -- {batch, 1, width}
  local drawn = lt.multinomial(weights, BATCH * NEGATIVES, true):reshape(BATCH, NEGATIVES)
  local loss = -F.logsigmoid(seen:matmul(w)):mean()
    - F.logsigmoid(-context(drawn):matmul(w)):sum(2):mean()
  optimizer:zero_grad()
  loss:backward()
  optimizer:step()
  bar:update(1)
  bar:set_postfix {loss = loss}
end
bar:close()

-- The words with the most similar vectors.
local vectors = lt.no_grad(function() return F.normalize(word.weight, {dim = 2}):cpu() end)

local function neighbors(name, count)
  local similarity = vectors:matmul(vectors[ids[name]])
  local _, nearest = similarity:topk(count + 1)
  local list = {}
  for _, i in ipairs(nearest:totable()) do
    if vocabulary[i] ~= name and #list < count then list[#list + 1] = vocabulary[i] end
  end
  return list
end

-- A map: the words along the two directions in which the vectors differ most.
if options.text == "" then
  local centered = vectors - vectors:mean(1)
  local _, _, directions = lt.linalg.svd(centered, false)
  local map = centered:matmul(directions[{{1, 2}}]:t())
  local figure = lt.plot.figure()
  for _, group in ipairs {"animal", "food", "place"} do
    local places = {}
    for i, name in ipairs(groups[group]) do places[i] = ids[name] end
    local points = map[lt.tensor(places)]
    figure:scatter(points[{{}, 1}], points[{{}, 2}], {label = group})
  end
  print(figure)
end

local right, total = 0, 0
local shown = options.text == "" and {"cat", "otter", "rice", "soup", "river", "garden"}
  or {table.unpack(vocabulary, 1, 6)}
for _, name in ipairs(shown) do
  print(("  %-10s %s"):format(name, table.concat(neighbors(name, 4), ", ")))
end

-- Check the result: the four neighbors of a word of a group are the rest of the group.
if options.text == "" then
  for _, members in pairs(groups) do
    local member = {}
    for _, name in ipairs(members) do member[name] = true end
    for _, name in ipairs(members) do
      for _, near in ipairs(neighbors(name, 4)) do
        total, right = total + 1, right + (member[near] and 1 or 0)
      end
    end
  end
  print(("%d of %d neighbors are in the word's group"):format(right, total))
  if options.steps >= 300 and right < 0.9 * total then
    cli.fail(("expected at least 90 %% of the neighbors in the word's group, got %d of %d")
      :format(right, total))
  end
end
