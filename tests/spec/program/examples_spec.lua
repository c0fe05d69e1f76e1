-- The examples as a user runs them: results, resuming, one clear line for wrong input.

local support = require "nn_support"

local root = support.root
local program = root .. (os.getenv "LUTRA_TEST_DEBUG" and "build-debug" or "build") .. "/lutra"
local mnist_data = os.getenv "LUTRA_TEST_DATA" and os.getenv "LUTRA_TEST_DATA" .. "/mnist"

local folder = os.tmpname()
os.remove(folder)

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- Runs an example; gives its exit status, stdout and stderr. Threads that wait give their
-- core away: the tests may share the machine with much else.
local function run(example, ...)
  local words = {}
  for i, word in ipairs {...} do words[i] = "'" .. word .. "'" end
  local command = ("OMP_WAIT_POLICY=passive %s %sexamples/%s.lua %s >%s/out 2>%s/err </dev/null")
    :format(program, root, example, table.concat(words, " "), folder, folder)
  local _, _, status = os.execute(command)
  return status, read(folder .. "/out"), read(folder .. "/err")
end

-- Fails unless the run ends with status 1 and one line on stderr that holds the texts.
local function complains(texts, ...)
  local status, _, err = run(...)
  assert.equal(1, status, err)
  assert.is_truthy(err:match "^[^\n]+\n$", "not one line: " .. err)
  for _, text in ipairs(texts) do
    assert.is_truthy(err:find(text, 1, true), ("%q is not in: %s"):format(text, err))
  end
end

setup(function() os.execute("mkdir '" .. folder .. "'") end)
teardown(function() os.execute("rm -r '" .. folder .. "'") end)

describe("examples/mnist.lua", function()
  it("shows the sizes on meta", function()
    local status, out, err = run("mnist", "--device", "meta")
    assert.equal(0, status, err)
    assert.equal("", err)
    -- 784 * 256 + 256 + 256 * 10 + 10
    assert.is_truthy(out:find("parameters: 203530", 1, true), out)
    assert.is_truthy(out:find("{64, 784} -> {64, 256}", 1, true), out)
    assert.is_truthy(out:find("MB", 1, true))
  end)

  it("gives one line for wrong options and paths", function()
    complains({"mnist.lua", "--data"}, "mnist")
    complains({"/no/such/folder"}, "mnist", "--data", "/no/such/folder")
    complains({"epoch"}, "mnist", "--epoch", "3")
    complains({"--epochs", "a number"}, "mnist", "--epochs", "many")
    complains({"nowhere", "cpu"}, "mnist", "--device", "nowhere")
    complains({"unexpected argument", "what"}, "mnist", "what")
  end)

  it("lists its options", function()
    local status, out = run("mnist", "--help")
    assert.equal(0, status)
    assert.is_truthy(out:find("--epochs", 1, true))
  end)

  -- Puts the real files in the folder, with one of them changed.
  local function spoil(which, change)
    for _, name in ipairs {"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"} do
      local bytes = read(mnist_data .. "/" .. name)
      write(folder .. "/" .. name, name:find(which, 1, true) and change(bytes) or bytes)
    end
  end

  it("gives one line for a truncated, an altered and an exchanged file", function()
    if not mnist_data then return pending "no LUTRA_TEST_DATA" end
    for _, which in ipairs {"images", "labels"} do
      spoil(which, function(bytes) return bytes:sub(1, #bytes // 2) end)
      complains({which}, "mnist", "--data", folder)
      spoil(which, function(bytes)
        local middle = #bytes // 2
        local changed = string.char(bytes:byte(middle) ~ 0x55)
        return bytes:sub(1, middle - 1) .. changed .. bytes:sub(middle + 1)
      end)
      complains({which}, "mnist", "--data", folder)
      spoil(which, function() return "" end)
      complains({which}, "mnist", "--data", folder)
    end
    spoil("labels", function() return read(mnist_data .. "/t10k-images-idx3-ubyte.gz") end)
    complains({"labels"}, "mnist", "--data", folder)
  end)
end)

describe("examples/chargpt.lua", function()
  local text = folder .. "/text"
  local function options(more)
    local list = {"chargpt", "--text", text, "--sample", "20", "--out"}
    return table.unpack(table.move(more, 1, #more, #list + 1, list))
  end

  setup(function()
    local words, seed = {}, 1
    for i = 1, 1200 do
      seed = seed * 16807 % 2147483647
      words[i] = ({"local", "end", "x =", "y\n", "until", "√2"})[seed % 6 + 1]
    end
    write(text, table.concat(words, " "))
  end)

  it("resumes exactly", function()
    local function path(name) return folder .. "/" .. name .. ".safetensors" end
    local status, _, err = run(options {path "whole", "--steps", "8"})
    assert.equal(0, status, err)
    status, _, err = run(options {path "half", "--steps", "8", "--stop", "4"})
    assert.equal(0, status, err)
    assert.are_not.equal(read(path "whole"), read(path "half"))
    local out
    status, out, err = run(options {path "rest", "--steps", "8", "--resume", path "half"})
    assert.equal(0, status, err)
    assert.is_truthy(out:find("at step 4", 1, true), out)
    assert.is_true(read(path "whole") == read(path "rest"), "the checkpoints differ")
    complains({"expected more than 8, the step of"},
      options {path "more", "--steps", "8", "--resume", path "whole"})
  end)

  it("gives one line for wrong input", function()
    complains({"/no/such"}, "chargpt", "--text", "/no/such")
    complains({"/no/such"}, options {folder .. "/x", "--resume", "/no/such"})
    complains({"text"}, options {folder .. "/x", "--resume", text})
    write(folder .. "/short", "too short")
    complains({"characters, got 9"}, "chargpt", "--text", folder .. "/short")
    complains({folder}, "chargpt", "--text", folder)
    complains({"meta"}, "chargpt", "--device", "meta")
  end)
end)

describe("examples/gpt2.lua and llama.lua", function()
  local lt = require "lutra"
  local words = {"▁once", "▁upon", "▁a", "▁time", "▁Müller", "▁cat", "▁sat", "▁on", "▁mat",
    "</s>", "▁the", "▁dog", "<0xC3>", "<0xBC>", "!"}

  -- Writes a tokenizer.json of whole words, which decodes as Llama's do.
  local function write_tokenizer()
    local rows = {}
    for i, word in ipairs(words) do rows[i] = ('"%s": %d'):format(word, i - 1) end
    write(folder .. "/tokenizer.json", ('{"added_tokens": [{"id": 9, "content": "</s>", '
      .. '"special": true}], "normalizer": null, "pre_tokenizer": {"type": "Metaspace", '
      .. '"replacement": "▁", "prepend_scheme": "always"}, "decoder": {"type": "Sequence", '
      .. '"decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, '
      .. '{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", '
      .. '"start": 1, "stop": 0}]}, "model": {"type": "WordLevel", "vocab": {%s}, '
      .. '"unk_token": "!"}}'):format(table.concat(rows, ", ")))
  end

  -- Writes a Llama whose most likely token after token i is `follows[i]`: with zero attention and
  -- MLP, the scores are the embedding of the last token times the output layer.
  local function write_llama(follows)
    local n = #words
    local head = lt.zeros(n, n)
    for i, next_id in ipairs(follows) do head[{next_id, i}] = 1 end
    local tensors = {["model.embed_tokens.weight"] = lt.eye(n), ["lm_head.weight"] = head,
      ["model.norm.weight"] = lt.ones(n)}
    local layer = "model.layers.0."
    for name, shape in pairs{["self_attn.q_proj"] = {16, n}, ["self_attn.k_proj"] = {16, n},
      ["self_attn.v_proj"] = {16, n}, ["self_attn.o_proj"] = {n, 16}, ["mlp.gate_proj"] = {8, n},
      ["mlp.up_proj"] = {8, n}, ["mlp.down_proj"] = {n, 8}} do
      tensors[layer .. name .. ".weight"] = lt.zeros(shape)
    end
    for _, name in ipairs{"input_layernorm", "post_attention_layernorm"} do
      tensors[layer .. name .. ".weight"] = lt.ones(n)
    end
    lt.save_safetensors(folder .. "/model.safetensors", tensors)
    write(folder .. "/config.json", ('{"vocab_size": %d, "hidden_size": %d, '
      .. '"intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, '
      .. '"head_dim": 16, "rms_norm_eps": 1e-5, "eos_token_id": 9, '
      .. '"max_position_embeddings": 12}'):format(n, n))
  end

  it("write the text with its spaces and whole characters, to the end token", function()
    write_tokenizer()
    --           once upon a time Müller cat sat on mat </s> the dog C3  BC  !
    write_llama{2, 3, 4, 6, 1, 7, 8, 11, 13, 1, 9, 1, 14, 10, 1}
    local status, out, err = run("llama", "--model", folder, "--prompt", "once upon a",
      "--temperature", "0")
    assert.equal(0, status, err)
    assert.is_truthy(out:find("^once upon a time cat sat on the matü\n8 tokens, [%d.]+ tokens per "
      .. "second\n$"), out)
  end)

  it("stop where the model has no positions left", function()
    write_llama{2, 3, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
    local status, out, err = run("llama", "--model", folder, "--prompt", "once", "--temperature",
      "0")
    assert.equal(0, status, err)
    assert.is_truthy(out:find("\n11 tokens", 1, true), out)
    complains({"--prompt", "fewer than 12 tokens"}, "llama", "--model", folder, "--prompt",
      ("once "):rep(20))
    complains({"--prompt", "expected some text"}, "llama", "--model", folder, "--prompt", "")
  end)

  it("give one line for wrong options and files", function()
    complains({"--model", "/nowhere/config.json"}, "llama", "--model", "/nowhere")
    complains({"/nowhere/model.safetensors"}, "gpt2", "--model", "/nowhere")
    complains({"--temperature", "at least 0"}, "gpt2", "--temperature", "-1")
    complains({"--top-k", "at least 1"}, "gpt2", "--top-k", "0")
    complains({"is no GPT-2"}, "gpt2", "--model", folder)
    write(folder .. "/config.json", '{"rope_scaling": {"factor": 8.0}}')
    complains({"rope_scaling"}, "llama", "--model", folder)
  end)
end)
