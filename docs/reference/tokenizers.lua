-- Examples of lt.tokenizers.
local lt = require "lutra"

-- lt.tokenizers.characters: one token a character. Ids count from 1, as rows of an embedding
local characters = lt.tokenizers.characters "hello world"
print(characters)                                        --> Tokenizer of 8 tokens
print(table.concat(characters:encode "hello", " "))      --> 4 3 5 5 6
print(characters:decode{4, 3, 5, 5, 6})                  --> hello
print(table.concat(characters:encode("hello", {base = 0}), " "))  --> 3 2 4 4 5

-- lt.tokenizers.train_bpe: byte-pair encoding
local text = ("the cat and the dog and the bird. "):rep(10)
local bpe = lt.tokenizers.train_bpe(text, {vocab_size = 270, special_tokens = {"<|endoftext|>"}})
local tokens = bpe:tokenize "the dog<|endoftext|>"
print(tokens[#tokens])                                   --> <|endoftext|>
print(bpe:decode(bpe:encode "the cat<|endoftext|>"))     --> the cat
print(bpe:get_vocab_size(), bpe:token_to_id "<|endoftext|>")  --> 270	1
print(bpe:id_to_token(1))                                --> <|endoftext|>
print(bpe:get_vocab()["the"] == bpe:token_to_id "the")   --> true
local ids = lt.tensor(bpe:encode(text))
print(bpe:decode(ids) == text)                           --> true

-- lt.tokenizers.from_file: a tokenizer.json
local path = os.tmpname()
bpe:save(path)
print(lt.tokenizers.from_file(path))                        --> Tokenizer of 270 tokens

-- lt.tokenizers.from_gpt2: GPT-2's vocab.json and merges.txt
local vocab, merges = os.tmpname(), os.tmpname()
local file = assert(io.open(vocab, "w"))
file:write '{"a": 0, "b": 1, "ab": 2, "\\u0120": 3}'
file:close()
file = assert(io.open(merges, "w"))
file:write "#version: 0.2\na b\n"
file:close()
local gpt2 = lt.tokenizers.from_gpt2(vocab, merges)
print(table.concat(gpt2:encode "ab ba", " "))            --> 3 4 2 1

-- lt.tokenizers.Tokenizer: a tokenizer of parts
local words = lt.tokenizers.Tokenizer{
  model = {vocab = {yes = 0, no = 1}, encode = function(_, word)
    return {word == "no" and 1 or 0}
  end},
  words = function(line)
    local list = {}
    for word in line:gmatch "%a+" do list[#list + 1] = word end
    return list
  end,
}
print(words:decode(words:encode "yes no yes"))           --> yes no yes

-- A class of tokenizers: lt.tokenizers.Tokenizer.extend
local Loud = lt.tokenizers.Tokenizer:extend "Loud"
function Loud:encode(line)
  return lt.tokenizers.Tokenizer.encode(self, line:upper())
end
print(Loud)                                              --> class Loud
os.remove(path)
os.remove(vocab)
os.remove(merges)
