--- The steps of a tokenizer.json that are no model: normalizers, pre-tokenizers, decoders and
-- templates, by their type. A step that is not supported is refused by its name.

local byte_level = require "lutra.tokenizers.byte_level"
local json = require "lutra.internal.json"
local split = require "lutra.tokenizers.split"

local steps = {}

local META = "\u{2581}" -- the character that SentencePiece writes for a blank

local function escape(text) return (text:gsub("%W", "%%%0")) end

local function replace(text, pattern, content)
  return (text:gsub(escape(pattern), (content:gsub("%%", "%%%%"))))
end

-- Returns the steps of an optional field: a list, also of a Sequence.
local function list_of(row, field)
  if row == nil or row == json.null then return {} end
  if row.type ~= "Sequence" then return {row} end
  local list = {}
  for _, inner in ipairs(row[field]) do
    table.move(list_of(inner, field), 1, #list_of(inner, field), #list + 1, list)
  end
  return list
end

-- Returns the functions of the steps, made by `makers[type](row)`.
local function build(rows, makers, what, fail)
  local list = {}
  for i, row in ipairs(rows) do
    local maker = makers[row.type]
    local step, why
    if maker then step, why = maker(row) end
    list[i] = step or fail(("its %s %q is not supported%s"):format(what, tostring(row.type),
      why and ": " .. why or ""))
  end
  return list
end

-- ---- normalizers: text, whether it is the first piece -> text

local normalizers = {}

function normalizers.Prepend(row)
  return function(text) return text == "" and "" or row.prepend .. text end
end
function normalizers.Replace(row)
  local pattern = row.pattern and row.pattern.String
  if not pattern then return nil, "a regular expression" end
  return function(text) return replace(text, pattern, row.content) end
end
function normalizers.Strip(row)
  return function(text)
    if row.strip_left then text = text:gsub("^%s+", "") end
    if row.strip_right then text = text:gsub("%s+$", "") end
    return text
  end
end
function normalizers.Lowercase() -- of ASCII, Latin-1, Greek and Cyrillic
  return function(text)
    text = text:lower()
    return (text:gsub("[\xc3\xce\xcf\xd0][\x80-\xbf]", function(c)
      local code = utf8.codepoint(c)
      local lower = code
      if code >= 0xC0 and code <= 0xDE and code ~= 0xD7 then lower = code + 32 end
      if code >= 0x391 and code <= 0x3A9 then lower = code + 32 end
      if code >= 0x410 and code <= 0x42F then lower = code + 32 end
      if code >= 0x400 and code <= 0x40F then lower = code + 80 end
      return utf8.char(lower)
    end))
  end
end
-- Text is expected in Unicode's normal form C, as nearly all text is: it is not composed here.
function normalizers.NFC() return function(text) return text end end

-- ---- pre-tokenizers: list of words -> list of words

local pre_tokenizers = {}

local function each(words, f)
  local list = {}
  for _, word in ipairs(words) do
    local part = f(word)
    table.move(part, 1, #part, #list + 1, list)
  end
  return list
end

function pre_tokenizers.ByteLevel(row)
  local use_regex, prefix = row.use_regex ~= false, row.add_prefix_space == true
  return function(words)
    return each(words, function(word)
      if prefix and word:sub(1, 1) ~= " " then word = " " .. word end
      local parts = use_regex and split.words(word, "gpt2") or {word}
      for i, part in ipairs(parts) do parts[i] = byte_level.encode(part) end
      return parts
    end)
  end
end

function pre_tokenizers.Split(row)
  local pattern = row.pattern and (row.pattern.Regex or row.pattern.String)
  local scanner = pattern and split.scanner_of(pattern)
  if not scanner then return nil, ("the regular expression %s"):format(tostring(pattern)) end
  if row.behavior ~= "Isolated" or row.invert == true then return nil, "its behavior" end
  return function(words)
    return each(words, function(word) return split.words(word, scanner) end)
  end
end

function pre_tokenizers.Metaspace(row)
  local mark, scheme = row.replacement or META, row.prepend_scheme
  if scheme == nil or scheme == json.null then
    scheme = row.add_prefix_space == false and "never" or "always"
  end
  return function(words, first)
    return each(words, function(word)
      word = replace(word, " ", mark)
      if (scheme == "always" or scheme == "first" and first) and word:sub(1, #mark) ~= mark then
        word = mark .. word
      end
      if row.split == false then return {word} end
      local parts, at = {}, 1
      while at <= #word do
        local skipped = word:sub(at, at + #mark - 1) == mark and #mark or 0
        local next_mark = word:find(mark, at + skipped, true)
        parts[#parts + 1] = word:sub(at, (next_mark or 0) - 1)
        at = next_mark or #word + 1
      end
      return parts
    end)
  end
end

function pre_tokenizers.WhitespaceSplit()
  return function(words) return each(words, split.parts) end
end

-- ---- decoders: list of tokens -> list of tokens

local decoders = {}

function decoders.ByteLevel()
  return function(tokens) return {byte_level.decode(table.concat(tokens))} end
end
function decoders.Fuse() return function(tokens) return {table.concat(tokens)} end end
function decoders.Replace(row)
  local pattern = row.pattern and row.pattern.String
  if not pattern then return nil, "a regular expression" end
  return function(tokens)
    for i, token in ipairs(tokens) do tokens[i] = replace(token, pattern, row.content) end
    return tokens
  end
end
function decoders.ByteFallback()
  return function(tokens)
    for i, token in ipairs(tokens) do
      local digits = token:match "^<0x(%x%x)>$"
      if digits then tokens[i] = string.char(tonumber(digits, 16)) end
    end
    return tokens
  end
end
function decoders.Strip(row)
  return function(tokens, first)
    if not first then return tokens end
    for i, token in ipairs(tokens) do
      for _ = 1, row.start or 0 do
        if token:sub(1, #row.content) == row.content then token = token:sub(#row.content + 1) end
      end
      for _ = 1, row.stop or 0 do
        if token:sub(-#row.content) == row.content then token = token:sub(1, -#row.content - 1) end
      end
      tokens[i] = token
    end
    return tokens
  end
end
function decoders.Metaspace(row)
  local mark = row.replacement or META
  local strips = row.prepend_scheme ~= "never" and row.add_prefix_space ~= false
  return function(tokens, first)
    for i, token in ipairs(tokens) do
      token = replace(token, mark, " ")
      tokens[i] = i == 1 and first and strips and token:gsub("^ ", "") or token
    end
    return tokens
  end
end
function decoders.BPEDecoder(row)
  return function(tokens)
    for i, token in ipairs(tokens) do
      tokens[i] = replace(token, row.suffix, i < #tokens and " " or "")
    end
    return tokens
  end
end

-- ---- all of them

--- Returns the function `normalize` of a tokenizer; nil when there is none.
function steps.normalizer(row, fail)
  local list = build(list_of(row, "normalizers"), normalizers, "normalizer", fail)
  if #list == 0 then return nil end
  return function(text)
    for _, step in ipairs(list) do text = step(text) end
    return text
  end
end

--- Returns the function `words` of a tokenizer.
function steps.pre_tokenizer(row, fail)
  local list = build(list_of(row, "pretokenizers"), pre_tokenizers, "pre-tokenizer", fail)
  return function(text, first)
    local words = {text}
    for _, step in ipairs(list) do words = step(words, first) end
    return words
  end
end

--- Returns the function `join` of a tokenizer; nil when there is none.
function steps.decoder(row, fail)
  local rows = list_of(row, "decoders")
  local list = build(rows, decoders, "decoder", fail)
  if #rows == 0 then return nil end
  return function(tokens, first)
    for _, step in ipairs(list) do tokens = step(tokens, first) end
    return table.concat(tokens)
  end
end

--- Returns the template of a tokenizer: the ids before and after one text; nil when there is none.
function steps.template(row, fail)
  for _, inner in ipairs(list_of(row, "processors")) do
    if inner.type == "TemplateProcessing" then
      local before, after, seen = {}, {}, false
      for _, piece in ipairs(inner.single) do
        if piece.Sequence then seen = true end
        local special = piece.SpecialToken and inner.special_tokens[piece.SpecialToken.id]
        for _, id in ipairs(special and special.ids or {}) do
          table.insert(seen and after or before, id)
        end
      end
      return {before, after}
    elseif inner.type ~= "ByteLevel" then
      fail(("its post-processor %q is not supported"):format(tostring(inner.type)))
    end
  end
end

return steps
