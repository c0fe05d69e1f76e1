--- Writes a tokenizer as a tokenizer.json.

local args = require "lutra.internal.args"
local atomic_file = require "lutra.internal.atomic_file"
local json = require "lutra.internal.json"
local ordered_map = require "lutra.internal.ordered_map"

local ordered_meta = getmetatable(ordered_map.new())

-- Passes a decoded JSON value to `put` as text.
local function write(put, value)
  local kind = type(value)
  if value == json.null then
    put "null"
  elseif kind == "table" and getmetatable(value) == ordered_meta then
    local separator = "{"
    for key, item in pairs(value) do
      put(separator, json.quote(key), ":")
      write(put, item)
      separator = ",\n"
    end
    put(separator == "{" and "{}" or "}")
  elseif kind == "table" then
    put "["
    for i, item in ipairs(value) do
      if i > 1 then put "," end
      write(put, item)
    end
    put "]"
  elseif kind == "string" then
    put(json.quote(value))
  else
    put(kind == "number" and json.number(value) or tostring(value))
  end
end

-- Returns the tokens of the model as an object, in the order of their ids.
local function vocab_of(model)
  local list = {}
  for token, id in pairs(model.vocab) do list[#list + 1] = {token, id} end
  table.sort(list, function(a, b) return a[2] < b[2] end)
  return ordered_map.new(list)
end

-- Returns the contents of the file of a tokenizer that no file described.
local function image_of(tokenizer)
  local added, null = {}, json.null
  for i, token in ipairs(tokenizer.added) do
    added[i] = ordered_map.new{{"id", token.id}, {"content", token.content},
      {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", false},
      {"special", token.special == true}}
  end
  local step = ordered_map.new{{"type", "ByteLevel"}, {"add_prefix_space", false},
    {"trim_offsets", true}, {"use_regex", true}}
  return ordered_map.new{{"version", "1.0"}, {"truncation", null}, {"padding", null},
    {"added_tokens", added}, {"normalizer", null}, {"pre_tokenizer", step},
    {"post_processor", null}, {"decoder", step}, {"model", ordered_map.new{{"type", "BPE"},
      {"dropout", null}, {"unk_token", null}, {"continuing_subword_prefix", null},
      {"end_of_word_suffix", null}, {"fuse_unk", false}, {"byte_fallback", false},
      {"vocab", vocab_of(tokenizer.model)}, {"merges", tokenizer.model.merges}}}}
end

--- Writes the file at `path`, atomically.
return function(tokenizer, path)
  args.check(tokenizer.model.merges or tokenizer.image,
    "save: cannot save a tokenizer of characters: it has no merges\nhint: lt.save(alphabet, path)")
  local image = tokenizer.image or image_of(tokenizer)
  local ok, why = atomic_file.write(path, function(put) write(put, image) end)
  args.check(ok, "save: cannot write %s", why)
end
