-- lt.tokenizers. Expected ids are those of Hugging Face's tokenizers (tools/golden/
-- tokenizers_files.py).

local lt = require "lutra"
local json = require "lutra.internal.json"
local split = require "lutra.tokenizers.split"

local folder = debug.getinfo(1, "S").source:match "^@(.*)spec/files/" .. "golden/files/"

local function read(name)
  local file <close> = assert(io.open(name, "rb"))
  return file:read "a"
end

local golden = assert(json.decode(read(folder .. "tokenizers.json")))
local tk = lt.tokenizers

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local path
before_each(function() path = os.tmpname() end)
after_each(function() os.remove(path) end)

local function write(text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

-- Writes a decoded JSON value to the file by the writer of tokenizers.
local function write_image(image)
  require "lutra.tokenizers.json_writer"({image = image, model = {}}, path)
end

for _, case in ipairs(golden.tokenizers) do
  describe("the tokenizer " .. case.name, function()
    local tokenizer
    before_each(function()
      write_image(case.file)
      tokenizer = tk.from_file(path)
    end)

    it("gives the reference's ids", function()
      for i, text in ipairs(golden.texts) do
        assert.same(case.ids[i], tokenizer:encode(text, {base = 0}), text)
        local ids = tokenizer:encode(text)
        for k, id in ipairs(ids) do assert.equal(case.ids[i][k] + 1, id) end
      end
    end)

    it("decodes to the reference's text", function()
      for i, text in ipairs(golden.texts) do
        local ids = case.ids[i]
        assert.equal(case.decoded[i], tokenizer:decode(ids, {base = 0}), text)
        assert.equal(case.whole[i],
          tokenizer:decode(ids, {base = 0, skip_special_tokens = false}), text)
      end
    end)

    it("is saved and read again", function()
      tokenizer:save(path)
      local again = tk.from_file(path)
      for _, text in ipairs(golden.texts) do
        assert.same(tokenizer:encode(text), again:encode(text))
      end
    end)
  end)
end

describe("byte-level tokenizers", function()
  it("give every text back, also one that is not UTF-8", function()
    local t = tk.train_bpe("abc abc abc", {vocab_size = 260})
    for _, text in ipairs{"", "\0\1\255\254", "é\xc3", ("x"):rep(10000), "a\r\n\t b"} do
      assert.equal(text, t:decode(t:encode(text)))
    end
    local ids = lt.tensor(t:encode "abc abc")
    assert.equal("abc abc", t:decode(ids))
    assert.is_true(ids:min():item() >= 1 and ids:max():item() <= t:get_vocab_size())
  end)

  it("are trained as the reference trains them", function()
    local texts = {}
    for i, text in ipairs(golden.corpus) do texts[i] = text end
    local t = tk.train_bpe(texts, {vocab_size = 330, min_frequency = 0 + 1,
      special_tokens = {"<s>", "</s>"}})
    local reference = golden.tokenizers[1]
    for token, id in pairs(reference.file.model.vocab) do
      if id < 258 then assert.equal(id, t:token_to_id(token, {base = 0})) end
    end
    assert.equal(330, t:get_vocab_size())
    -- the first merges join the most frequent pairs; ties may differ
    assert.is_number(t:token_to_id "the")
    assert.equal("<s>", t:tokenize("a<s>b")[2])
    assert.equal("ab", t:decode(t:encode "a<s>b"))
  end)

  it("are read from GPT-2's files", function()
    local reference = golden.tokenizers[1]
    local vocab, merges = path .. ".json", {"#version: 0.2"}
    for _, merge in ipairs(reference.file.model.merges) do
      merges[#merges + 1] = table.concat(merge, " ")
    end
    write(table.concat(merges, "\n") .. "\n")
    local parts = {}
    for token, id in pairs(reference.file.model.vocab) do
      parts[#parts + 1] = ("%s:%d"):format(json.quote(token), id)
    end
    local file = assert(io.open(vocab, "wb"))
    file:write("{", table.concat(parts, ","), "}")
    file:close()
    local t = tk.from_gpt2(vocab, path)
    os.remove(vocab)
    for i, text in ipairs(golden.texts) do
      if not text:find "<s>" then
        assert.same(reference.ids[i], t:encode(text, {base = 0}))
      end
    end
  end)

  it("split as the regular expressions do", function()
    assert.same({"Hello", " world", "'s", "  ", " x", "\n", "12345", "!!"},
      split.words("Hello world's   x\n12345!!", "gpt2"))
    assert.same({"Hello", " world", "'s", "  ", " x", "\n", "123", "45", "!!\n\n"},
      split.words("Hello world's   x\n12345!!\n\n", "gpt4"))
  end)
end)

describe("a tokenizer of characters", function()
  it("counts from 1, in the order of the code points", function()
    local t = tk.characters "hello wörld"
    assert.equal(9, t:get_vocab_size())
    assert.same({1}, t:encode " ")
    assert.same({0}, t:encode(" ", {base = 0}))
    assert.equal("wörld", t:decode(t:encode "wörld"))
    assert.same({"w", "ö"}, t:tokenize "wö")
    assert.same({2, 1}, tk.characters{"b", "a"}:encode "ab")
    assert.equal("Tokenizer of 9 tokens", tostring(t))
    assert.matches('expected a character of the vocabulary in argument \'text\', got "z"',
      fails(t.encode, t, "z"), 1, true)
    assert.matches("cannot save a tokenizer of characters", fails(t.save, t, path), 1, true)
  end)

  it("has a vocabulary", function()
    local t = tk.characters "ab"
    assert.same({a = 1, b = 2}, t:get_vocab())
    assert.same({a = 0, b = 1}, t:get_vocab{base = 0})
    assert.equal("a", t:id_to_token(1))
    assert.is_nil(t:id_to_token(3))
    assert.equal(2, t:token_to_id "b")
    assert.is_nil(t:token_to_id "c")
  end)
end)

describe("tokenizers", function()
  it("refuse arguments that are not valid", function()
    local t = tk.characters "ab"
    for text, call in pairs{
      ["encode: expected a string for argument 'text', got 3"] = {t.encode, t, 3},
      ["encode: expected 0 or 1 for argument 'base', got 2"] = {t.encode, t, "a", {base = 2}},
      ["encode: expected an argument name (base, add_special_tokens)"] =
        {t.encode, t, "a", {x = 1}},
      ["decode: expected a token id from 1 to 2 for argument 'ids[2]', got 0"] =
        {t.decode, t, {1, 0}},
      ["decode: expected a list of token ids for argument 'ids'"] = {t.decode, t, "a"},
      ["id_to_token: expected an integer"] = {t.id_to_token, t, "a"},
      ["token_to_id: expected a string"] = {t.token_to_id, t, 1},
      ["tokenize: expected a string"] = {t.tokenize, t},
      ["characters: expected a string or a list of characters"] = {tk.characters, 3},
      ["train_bpe: expected at least 256"] = {tk.train_bpe, "a", {vocab_size = 10}},
      ["train_bpe: expected a string or a list of strings"] = {tk.train_bpe, 3, 300},
      ["from_file: expected a string for argument 'path'"] = {tk.from_file},
      ["from_gpt2: expected a string for argument 'merges_path'"] = {tk.from_gpt2, "x"},
      ["save: expected a string for argument 'path'"] = {t.save, t},
      ["Tokenizer: expected a table with a model"] = {tk.Tokenizer, 1},
    } do
      assert.matches(text, fails(table.unpack(call)), 1, true)
    end
  end)

  it("refuse files that are not valid, with the path", function()
    local model = '"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}'
    for text, piece in pairs{
      ["{"] = "a name in quotes", ["[]"] = "no model", ["{}"] = "no model",
      ['{"model":{"type":"Unigram"}}'] = 'model "Unigram" is not supported',
      ['{"model":{"type":"WordPiece"}}'] = 'model "WordPiece" is not supported',
      ['{"model":{"type":"BPE"}}'] = "no vocabulary",
      ['{"model":{"type":"BPE","vocab":{"a":-1}}}'] = "the id -1",
      ['{"model":{"type":"BPE","vocab":{"a":0,"b":0}}}'] = "used once",
      ['{"model":{"type":"BPE","vocab":{"a":"x"}}}'] = "the id x",
      ['{"model":{"vocab":{"a":0},"merges":["a b"]}}'] = "merge 1",
      ['{"model":{"vocab":{"a":0},"merges":["a"]}}'] = "not a pair",
      ['{"model":{"vocab":{"a":0},"merges":[[1,2]]}}'] = "not a pair",
      ["{" .. model .. ',"added_tokens":[{"id":1}]}'] = "added token 1 is not valid",
      ["{" .. model .. ',"normalizer":{"type":"Precompiled"}}'] = '"Precompiled" is not supported',
      ["{" .. model .. ',"pre_tokenizer":{"type":"Split","pattern":{"Regex":"x+"}}}'] =
        "the regular expression x+",
      ["{" .. model .. ',"pre_tokenizer":3}'] = "another type than expected",
      ["{" .. model .. ',"decoder":{"type":"WordPiece"}}'] = 'decoder "WordPiece"',
      ["{" .. model .. ',"post_processor":{"type":"TemplateProcessing"}}'] = "another type",
    } do
      write(text)
      local message = fails(tk.from_file, path)
      assert.matches(piece, message, 1, true)
      assert.matches('from_file: cannot read "' .. path, message, 1, true)
    end
    assert.matches("cannot open", fails(tk.from_file, path .. ".none"), 1, true)
  end)
end)
