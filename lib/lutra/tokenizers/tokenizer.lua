--- lt.tokenizers.Tokenizer: text to token ids and back.
--
-- A tokenizer is a pipeline, as in Hugging Face's tokenizers: special tokens are found in the text,
-- the pieces between them are normalized, split into words, and each word becomes ids by a model;
-- decoding joins the tokens and undoes the steps. The ids of files count from 0; the methods add
-- `base`, 1 by default, so that an id is the index of a row of an embedding.

local lt = require "lutra"
local args = require "lutra.internal.args"

local Tokenizer = require "lutra.internal.class"("Tokenizer", "lt.tokenizers.Tokenizer")

--- Initializes a tokenizer from its parts: `model` with encode(word) -> ids and vocab (token to id
-- from 0 on), `normalize(text, first)`, `words(text)`, `join(tokens)` (nil: with blanks), `added`
-- (a list of {id, content, special}), `template` (ids before and after a string). Use
-- lt.tokenizers.from_file, from_gpt2, characters or train_bpe. Raises an error unless `parts` is a
-- table.
function Tokenizer:init(parts)
  args.expect(type(parts) == "table" and type(parts.model) == "table", "Tokenizer",
    "a table with a model", "parts", parts)
  for name, value in pairs(parts) do self[name] = value end
  self.added = self.added or {}
  self.tokens, self.special, self.largest = {}, {}, -1
  for token, id in pairs(self.model.vocab) do
    self.tokens[id] = token
    self.largest = math.max(self.largest, id)
  end
  self.added_ids, self.starts = {}, {}
  for _, token in ipairs(self.added) do
    self.tokens[token.id], self.added_ids[token.content] = token.content, token.id
    self.special[token.id] = token.special or nil
    self.largest = math.max(self.largest, token.id)
    local start = token.content:sub(1, 1)
    self.starts[start] = self.starts[start] or {}
    table.insert(self.starts[start], token.content)
  end
  for _, list in pairs(self.starts) do
    table.sort(list, function(a, b) return #a > #b end) -- the longest first
  end
  local letters = {}
  for start in pairs(self.starts) do
    letters[#letters + 1] = start:gsub("%W", "%%%0"):gsub("%z", "%%z")
  end
  self.start_pattern = #letters > 0 and "[" .. table.concat(letters) .. "]" or nil
end

function Tokenizer:__tostring()
  return ("Tokenizer of %d tokens"):format(self:get_vocab_size())
end

-- Returns the value of the option `name` in `options`, or `default`; unknown names are errors.
local known = {encode = {"base", "add_special_tokens"}, tokenize = {"add_special_tokens"},
  decode = {"base", "skip_special_tokens"}, token_to_id = {"base"}, id_to_token = {"base"},
  get_vocab = {"base"}}

local function read_options(title, options)
  if math.type(options) == "integer" then options = {base = options} end
  local result = {base = 1, add_special_tokens = true, skip_special_tokens = true}
  if options == nil then return result end
  args.expect(type(options) == "table", title, "a table", "options", options)
  for name, value in pairs(options) do
    local valid = false
    for _, other in ipairs(known[title]) do valid = valid or name == other end
    args.check(valid, "%s: expected an argument name (%s), got %s", title,
      table.concat(known[title], ", "), args.show(name))
    if name == "base" then
      args.expect(value == 0 or value == 1, title, "0 or 1", "base", value)
    else
      args.expect(type(value) == "boolean", title, "a boolean", name, value)
    end
    result[name] = value
  end
  return result
end

-- Returns the next added token in `text` from `at` on: its place and content.
local function next_added(self, text, at)
  while self.start_pattern do
    at = text:find(self.start_pattern, at)
    if not at then return nil end
    for _, content in ipairs(self.starts[text:sub(at, at)]) do
      if text:sub(at, at + #content - 1) == content then return at, content end
    end
    at = at + 1
  end
end

local function encode_piece(self, ids, text, first)
  if text == "" then return end
  if self.normalize then text = self.normalize(text, first) end
  for _, word in ipairs(self.words(text, first)) do
    local part = self.model:encode(word)
    table.move(part, 1, #part, #ids + 1, ids)
  end
end

-- Returns the ids of a string, counted from 0.
local function ids_of(self, text, template)
  local ids, at = {}, 1
  if template then table.move(self.template[1], 1, #self.template[1], 1, ids) end
  while at <= #text do
    local place, content = next_added(self, text, at)
    encode_piece(self, ids, text:sub(at, (place or 0) - 1), at == 1)
    if not place then break end
    ids[#ids + 1] = self.added_ids[content]
    at = place + #content
  end
  if template then table.move(self.template[2], 1, #self.template[2], #ids + 1, ids) end
  return ids
end

--- tok:encode(text, {base, add_special_tokens}): returns the token ids of a string as a list. The
-- first id is 1, as the rows of an embedding, or 0 with `base = 0`, as in Python. Special tokens in
-- the text are recognized; `add_special_tokens` (true) adds those of the file's template, such as
-- the start of a sentence. Raises an error unless `text` is a string.
function Tokenizer:encode(text, options)
  args.expect(type(text) == "string", "encode", "a string", "text", text)
  local o = read_options("encode", options)
  local ids = ids_of(self, text, self.template and o.add_special_tokens)
  for i = 1, o.base == 1 and #ids or 0 do ids[i] = ids[i] + 1 end
  return ids
end

--- tok:tokenize(text, {add_special_tokens}): returns the tokens of a string as a list of strings,
-- as they are in the vocabulary. Raises an error unless `text` is a string.
function Tokenizer:tokenize(text, options)
  args.expect(type(text) == "string", "tokenize", "a string", "text", text)
  local o = read_options("tokenize", options)
  local tokens = ids_of(self, text, self.template and o.add_special_tokens)
  for i, id in ipairs(tokens) do tokens[i] = self.tokens[id] end
  return tokens
end

--- tok:decode(ids, {base, skip_special_tokens}): returns the text of a list or integer tensor of
-- token ids. Special tokens are left out unless `skip_special_tokens` is false. Raises an error for
-- an id that is not in the vocabulary.
function Tokenizer:decode(ids, options)
  local o = read_options("decode", options)
  if math.type(ids) == "integer" then ids = {ids} end
  if lt.is_tensor(ids) then ids = ids:reshape{-1}:totable() end
  args.expect(type(ids) == "table", "decode", "a list of token ids", "ids", ids)
  local parts, tokens = {}, {}
  local function flush()
    if #tokens > 0 then parts[#parts + 1] = self.join(tokens, #parts == 0) end
    tokens = {}
  end
  for i, id in ipairs(ids) do
    local token = math.type(id) == "integer" and self.tokens[id - o.base]
    args.check(token, "decode: expected a token id from %d to %d for argument 'ids[%d]', got %s",
      o.base, self.largest + o.base, i, args.show(id))
    if not self.join then
      parts[#parts + 1] = not (o.skip_special_tokens and self.special[id - o.base]) and token or nil
    elseif self.added_ids[token] == id - o.base then
      flush()
      if not (o.skip_special_tokens and self.special[id - o.base]) then
        parts[#parts + 1] = token
      end
    else
      tokens[#tokens + 1] = token
    end
  end
  flush()
  return table.concat(parts, self.join and "" or " ")
end

--- tok:token_to_id(token, {base}): returns the id of a token, nil when it is not in the vocabulary.
-- Raises an error unless `token` is a string.
function Tokenizer:token_to_id(token, options)
  args.expect(type(token) == "string", "token_to_id", "a string", "token", token)
  local id = self.added_ids[token] or self.model.vocab[token]
  return id and id + read_options("token_to_id", options).base
end

--- tok:id_to_token(id, {base}): returns the token of an id, nil when there is none. Raises an error
-- unless `id` is an integer.
function Tokenizer:id_to_token(id, options)
  args.expect(math.type(id) == "integer", "id_to_token", "an integer", "id", id)
  return self.tokens[id - read_options("id_to_token", options).base]
end

--- tok:get_vocab_size(): returns the number of tokens, with the special ones.
function Tokenizer:get_vocab_size()
  local n = 0
  for _ in pairs(self.tokens) do n = n + 1 end
  return n
end

--- tok:get_vocab({base}): returns a table from tokens to ids.
function Tokenizer:get_vocab(options)
  local base, vocab = read_options("get_vocab", options).base, {}
  for id, token in pairs(self.tokens) do vocab[token] = id + base end
  return vocab
end

--- tok:save(path): writes a tokenizer that from_file, from_gpt2 or train_bpe made as a
-- tokenizer.json, which Hugging Face's tokenizers reads, too; atomically. Raises an error for one
-- of characters and when the file cannot be written.
function Tokenizer:save(path)
  args.expect(type(path) == "string", "save", "a string", "path", path)
  require("lutra.tokenizers.json_writer")(self, args.path("save", "path", path))
end

return Tokenizer
