--- Tokenizers from files: tokenizer.json of Hugging Face, and vocab.json with merges.txt of GPT-2.
-- The files are untrusted: what is not as expected is an error with the path.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local bpe = require "lutra.tokenizers.bpe"
local json = require "lutra.internal.json"
local ordered_map = require "lutra.internal.ordered_map"
local steps = require "lutra.tokenizers.steps"
local Tokenizer = require "lutra.tokenizers.tokenizer"

local json_file = {}

local LIMIT = 1 << 28 -- bytes of a file
local ordered_meta = getmetatable(ordered_map.new())

local function is_object(x) return type(x) == "table" and getmetatable(x) == ordered_meta end

-- Returns the text of a file.
local function read(title, path, fail)
  local source <close> = core._source(title, path, false)
  if source:size() > LIMIT then fail "it is larger than 256 MiB" end
  return source:bytes(0, source:size())
end

-- Returns the vocabulary of an object of tokens and ids, which must be different.
local function vocab_of(object, fail)
  if not is_object(object) then fail "it has no vocabulary" end
  local vocab, seen = {}, {}
  for token, id in pairs(object) do
    if math.type(id) ~= "integer" or id < 0 or id >= 1 << 31 or seen[id] then
      fail(("its token %q has the id %s, expected an integer that is used once"):format(token,
        tostring(id)))
    end
    vocab[token], seen[id] = id, true
  end
  return vocab
end

-- Returns the merges: strings "a b" or lists {"a", "b"}.
local function merges_of(list, fail)
  local merges = {}
  for i, merge in ipairs(type(list) == "table" and list or {}) do
    local left, right
    if type(merge) == "string" then
      left, right = merge:match "^([^ ]+) ([^ ]+)$"
    elseif type(merge) == "table" then
      left, right = merge[1], merge[2]
    end
    if type(left) ~= "string" or type(right) ~= "string" then
      fail(("its merge %d is not a pair of tokens"):format(i))
    end
    merges[i] = {left, right}
  end
  return merges
end

local function optional(x) if x ~= json.null then return x end end

local models = {}

function models.BPE(row, fail)
  local prefix = optional(row.continuing_subword_prefix)
  if prefix and prefix ~= "" then fail "its model has a prefix, which is not supported" end
  local vocab = vocab_of(row.vocab, fail)
  local unknown = optional(row.unk_token)
  local suffix = optional(row.end_of_word_suffix)
  local model, why = bpe.new(vocab, merges_of(row.merges, fail), {
    unknown = unknown and vocab[unknown], byte_fallback = row.byte_fallback == true,
    fuse_unknown = row.fuse_unk == true, ignore_merges = row.ignore_merges == true,
    suffix = suffix ~= "" and suffix or nil,
  })
  return model or fail(why)
end

function models.WordLevel(row, fail)
  local vocab = vocab_of(row.vocab, fail)
  local unknown = vocab[optional(row.unk_token) or false]
  return {vocab = vocab, encode = function(_, word) return {vocab[word] or unknown} end}
end

-- Returns the added tokens: a list of {id, content, special}.
local function added_of(list, fail)
  local added = {}
  for i, row in ipairs(list and list ~= json.null and list or {}) do
    if not is_object(row) or type(row.content) ~= "string" or row.content == ""
      or math.type(row.id) ~= "integer" or row.id < 0 then
      fail(("its added token %d is not valid"):format(i))
    end
    added[i] = {id = row.id, content = row.content, special = row.special == true}
  end
  return added
end

--- tokenizers.from_file(path): returns the tokenizer of a tokenizer.json: byte-pair encoding (of
-- GPT-2, GPT-4, Llama, Qwen) and models of whole words. Raises an error for a file that cannot be
-- read, and for other models (Unigram and WordPiece) and steps, by their names.
function json_file.from_file(path)
  args.expect(type(path) == "string", "from_file", "a string", "path", path)
  local function fail(why)
    args.fail('from_file: cannot read "%s": %s', path, args.reason(why))
  end
  local image, why = json.decode(read("from_file", path, fail))
  if not image then fail(why) end
  if not is_object(image) or not is_object(image.model) then fail "it has no model" end
  local kind = image.model.type or "BPE"
  local make = models[kind] or fail(("its model %q is not supported: expected BPE or WordLevel")
    :format(tostring(kind)))
  local ok, tokenizer = pcall(function()
    return Tokenizer{model = make(image.model, fail), image = image,
      added = added_of(image.added_tokens, fail),
      normalize = steps.normalizer(image.normalizer, fail),
      words = steps.pre_tokenizer(image.pre_tokenizer, fail),
      join = steps.decoder(image.decoder, fail), template = steps.template(image.post_processor,
        fail)}
  end)
  if ok then return tokenizer end
  local text = tostring(tokenizer)
  if text:find("from_file: ", 1, true) then error(tokenizer, 0) end
  fail "a field in it has another type than expected"
end

--- tokenizers.from_gpt2(vocab_path, merges_path): returns GPT-2's tokenizer from its files
-- vocab.json and merges.txt; "<|endoftext|>" is a special token. Raises an error for files that
-- cannot be read.
function json_file.from_gpt2(vocab_path, merges_path)
  args.expect(type(vocab_path) == "string", "from_gpt2", "a string", "vocab_path", vocab_path)
  args.expect(type(merges_path) == "string", "from_gpt2", "a string", "merges_path", merges_path)
  local path = vocab_path
  local function fail(why)
    args.fail('from_gpt2: cannot read "%s": %s', path, args.reason(why))
  end
  local image, why = json.decode(read("from_gpt2", path, fail))
  if not image then fail(why) end
  local vocab = vocab_of(image, fail)
  path = merges_path
  local list = {}
  for line in read("from_gpt2", path, fail):gmatch "[^\r\n]+" do
    if not line:find "^#version" then list[#list + 1] = line end
  end
  return json_file.byte_level(vocab, merges_of(list, fail), {"<|endoftext|>"}, fail)
end

--- Returns a tokenizer of GPT-2's kind; those of `special` that are in the vocabulary are special
-- tokens.
function json_file.byte_level(vocab, merges, special, fail)
  local model, why = bpe.new(vocab, merges)
  if not model then fail(why) end
  local added = {}
  for _, token in ipairs(special) do
    if vocab[token] then
      added[#added + 1] = {id = vocab[token], content = token, special = true}
    end
  end
  local step = ordered_map.new{{"type", "ByteLevel"}, {"add_prefix_space", false},
    {"trim_offsets", true}, {"use_regex", true}}
  return Tokenizer{model = model, added = added, words = steps.pre_tokenizer(step, fail),
    join = steps.decoder(step, fail)}
end

return json_file
