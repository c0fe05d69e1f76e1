--- Training of byte-pair tokenizers: joins the most frequent pair of neighbours until the
-- vocabulary has the requested size (Sennrich, Haddow, Birch 2016), on the bytes of GPT-2's words.

local args = require "lutra.internal.args"
local byte_level = require "lutra.tokenizers.byte_level"
local json_file = require "lutra.tokenizers.json_file"
local split = require "lutra.tokenizers.split"

-- Returns the words of the texts as {ids, count}; the ids are those of the alphabet in `vocab`.
local function count_words(texts, vocab)
  local counts, order = {}, {}
  for _, text in ipairs(texts) do
    for _, word in ipairs(split.words(text, "gpt2")) do
      if not counts[word] then order[#order + 1] = word end
      counts[word] = (counts[word] or 0) + 1
    end
  end
  local words = {}
  for i, word in ipairs(order) do
    local ids = {}
    for character in byte_level.encode(word):gmatch(utf8.charpattern) do
      ids[#ids + 1] = vocab[character]
    end
    words[i] = {ids = ids, count = counts[word]}
  end
  return words
end

-- Adds `sign` times the pairs of a word to the counts, and notes that the word has them.
local function count_pairs(counts, places, words, w, sign)
  local word = words[w]
  for i = 1, #word.ids - 1 do
    local key = word.ids[i] << 32 | word.ids[i + 1]
    counts[key] = (counts[key] or 0) + sign * word.count
    if counts[key] == 0 then counts[key] = nil end
    if sign > 0 then
      places[key] = places[key] or {}
      places[key][w] = true
    end
  end
end

-- Returns the most frequent pair; of equal ones that with the least ids.
local function best_pair(counts)
  local best, most = nil, 0
  for key, count in pairs(counts) do
    if count > most or count == most and key < best then best, most = key, count end
  end
  return best, most
end

-- Joins a pair in a list of ids.
local function join(ids, left, right, id)
  local result, i = {}, 1
  while ids[i] do
    local both = ids[i] == left and ids[i + 1] == right
    result[#result + 1] = both and id or ids[i]
    i = i + (both and 2 or 1)
  end
  return result
end

local parse = args.signature("train_bpe",
  "any texts, int(>=1) vocab_size, int(>=1) min_frequency = 2, any? special_tokens = nil")

--- tokenizers.train_bpe(texts, {vocab_size, min_frequency, special_tokens}): returns a byte-level
-- byte-pair tokenizer trained on a string or a list of strings. It has the special tokens, the 256
-- bytes, and then merges of the most frequent pairs, until it has `vocab_size` tokens or no pair
-- occurs `min_frequency` times. Raises an error when `vocab_size` has no room for the bytes.
return function(...)
  local texts, size, least, special = parse(...)
  args.expect(special == nil or type(special) == "table", "train_bpe", "a list of strings",
    "special_tokens", special)
  special = special or {}
  if type(texts) == "string" then texts = {texts} end
  args.expect(type(texts) == "table", "train_bpe", "a string or a list of strings", "texts", texts)
  for i, text in ipairs(texts) do
    args.expect(type(text) == "string", "train_bpe", "a string", ("texts[%d]"):format(i), text)
  end
  local vocab, tokens, n = {}, {}, 0
  local function add(token)
    if vocab[token] then return end
    vocab[token], tokens[n] = n, token
    n = n + 1
  end
  for i, token in ipairs(special) do
    args.expect(type(token) == "string" and token ~= "", "train_bpe", "a string",
      ("special_tokens[%d]"):format(i), token)
    add(token)
  end
  for _, character in ipairs(byte_level.alphabet) do add(character) end
  args.check(size >= n, "train_bpe: expected at least %d, the special tokens and 256 bytes, for "
    .. "argument 'vocab_size', got %d", n, size)
  local words, counts, places, merges = count_words(texts, vocab), {}, {}, {}
  for w in ipairs(words) do count_pairs(counts, places, words, w, 1) end
  while n < size do
    local key, count = best_pair(counts)
    if not key or count < least then break end
    local left, right = key >> 32, key & 0xFFFFFFFF
    add(tokens[left] .. tokens[right])
    merges[#merges + 1] = {tokens[left], tokens[right]}
    local token_id = vocab[tokens[left] .. tokens[right]]
    for w in pairs(places[key]) do
      count_pairs(counts, places, words, w, -1)
      words[w].ids = join(words[w].ids, left, right, token_id)
      count_pairs(counts, places, words, w, 1)
    end
    counts[key] = nil
  end
  return json_file.byte_level(vocab, merges, special, error)
end
