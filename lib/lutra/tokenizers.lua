--- tokenizers: text to token ids and back: characters, and byte-pair encoding from the files of
-- models or trained on a string. Ids count from 1, as the rows of nn.Embedding; `base = 0` gives
-- those of Python.

local args = require "lutra.internal.args"
local Tokenizer = require "lutra.tokenizers.tokenizer"
local json_file = require "lutra.tokenizers.json_file"

local tokenizers = {Tokenizer = Tokenizer, from_file = json_file.from_file,
  from_gpt2 = json_file.from_gpt2}

--- tokenizers.train_bpe(texts, {vocab_size, min_frequency, special_tokens}): returns a byte-level
-- byte-pair tokenizer trained on a string or a list of strings. It has the special tokens, the 256
-- bytes, and then merges of the most frequent pairs, until it has `vocab_size` tokens or no pair
-- occurs `min_frequency` times. Raises an error when `vocab_size` has no room for the bytes.
function tokenizers.train_bpe(...) return require "lutra.tokenizers.train"(...) end

--- tokenizers.characters(text): returns the tokenizer whose tokens are the different characters of
-- a string, sorted by code point, or those of a list of characters in its order. A character that
-- it does not have is an error in encode.
function tokenizers.characters(text)
  local split = require "lutra.tokenizers.split"
  local list, vocab = {}, {}
  args.expect(type(text) == "string" or type(text) == "table", "characters",
    "a string or a list of characters", "text", text)
  for i, character in ipairs(type(text) == "string" and split.characters(text) or text) do
    args.expect(type(character) == "string" and character ~= "", "characters", "a string",
      ("text[%d]"):format(i), character)
    if not vocab[character] then
      list[#list + 1], vocab[character] = character, 0
    end
  end
  if type(text) == "string" then table.sort(list) end -- bytes of UTF-8 sort as code points
  for i, character in ipairs(list) do vocab[character] = i - 1 end
  local model = {vocab = vocab, encode = function(_, character)
    return {vocab[character] or args.fail("encode: expected a character of the vocabulary in "
      .. "argument 'text', got %q", character)}
  end}
  local function join(tokens) return table.concat(tokens) end
  return Tokenizer{model = model, words = split.characters, join = join}
end

return require("lutra.internal.strict_table").strict(tokenizers, "lt.tokenizers")
