-- Writes text with a Llama-style model, as llama2.c does, from safetensors.
--
--   lutra examples/llama.lua --model DIR [--prompt TEXT] [--tokens 100] [--device cpu]
--
-- DIR holds config.json, model.safetensors (or its index and shards) and tokenizer.json of a model
-- of the Llama family on the Hugging Face hub. Without --model it makes a tiny model with random
-- weights in that format, loads it, and compares generation with a cache of keys and values to
-- generation without one. The layers: RMSNorm (Zhang and Sennrich 2019), rotary positions (Su et
-- al. 2021), grouped queries (Ainslie et al. 2023), SwiGLU (Shazeer 2020).
--
-- test:
-- test on cuda:1: --device cuda

local lt = require "lutra"
local cli = require "lutra.cli"
local generation = require "common.generation"
local nn, F = lt.nn, lt.F

local options = cli.parse(arg, {
  {"model", "", "folder with the model's files; a tiny random model by default"},
  {"prompt", "Once upon a time", "text to continue"},
  {"tokens", 100, "number of tokens to write", least = 1},
  {"temperature", 0.8, "temperature of the sampling; 0 chooses the most likely token", least = 0},
  {"top-p", 0.9, "probability of the likely tokens to choose from (nucleus sampling)", least = 0},
  {"device", "cpu", "device to run on: cpu, cuda or mps"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

-- The model, with the names of the published checkpoints -------------------------------------

-- Returns the cosines and sines of the rotations at places first to last, {time, width / 2}.
local function rotations(first, last, width, base)
  local frequencies = base ^ (lt.arange(0, width - 2, 2, {device = device}) / -width)
  local places = lt.arange(first - 1, last - 1, {device = device, dtype = "float32"})
  local angles = places:outer(frequencies)
  return angles:cos(), angles:sin()
end

-- Rotates pairs of numbers, entry i with entry i + width / 2. x: {batch, heads, time, width}.
local function rotate(x, cos, sin)
  local a, b = table.unpack(x:chunk(2, 4))
  return lt.cat({a * cos - b * sin, b * cos + a * sin}, 4)
end

local Attention = nn.Module:extend "Attention"

function Attention:init(config)
  local width = config.head_dim
  self.config = config
  self.q_proj = nn.Linear(config.hidden_size, config.num_attention_heads * width, {bias = false})
  self.k_proj = nn.Linear(config.hidden_size, config.num_key_value_heads * width, {bias = false})
  self.v_proj = nn.Linear(config.hidden_size, config.num_key_value_heads * width, {bias = false})
  self.o_proj = nn.Linear(config.num_attention_heads * width, config.hidden_size, {bias = false})
end

-- x: {batch, time, hidden_size}. `cache` is nil or a table with earlier keys and values.
function Attention:forward(x, cos, sin, cache)
  local batch, time = x:size(1), x:size(2)
  local heads, shared = self.config.num_attention_heads, self.config.num_key_value_heads
  local function split(t, count) return t:reshape(batch, time, count, -1):transpose(2, 3) end
  local q = rotate(split(self.q_proj(x), heads), cos, sin)
  local k = rotate(split(self.k_proj(x), shared), cos, sin)
  local v = split(self.v_proj(x), shared)
  local first = not (cache and cache.k)
  if cache then
    if not first then k, v = lt.cat({cache.k, k}, 3), lt.cat({cache.v, v}, 3) end
    cache.k, cache.v = k, v
  end
  -- Several queries share a key.
  k = k:repeat_interleave(heads // shared, 2)
  v = v:repeat_interleave(heads // shared, 2)
  local y = F.scaled_dot_product_attention(q, k, v, {is_causal = first and time > 1})
  return self.o_proj(y:transpose(2, 3):reshape(batch, time, -1))
end

local MLP = nn.Module:extend "MLP"

function MLP:init(config)
  self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, {bias = false})
  self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, {bias = false})
  self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, {bias = false})
end

function MLP:forward(x) return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x)) end

local RMSNorm = nn.Module:extend "RMSNorm"

function RMSNorm:init(config)
  self.eps = config.rms_norm_eps
  self.weight = nn.Parameter(lt.ones(config.hidden_size))
end

function RMSNorm:forward(x) return F.rms_norm(x, self.weight.shape, self.weight, self.eps) end

local Layer = nn.Module:extend "Layer"

function Layer:init(config)
  self.self_attn = Attention(config)
  self.mlp = MLP(config)
  self.input_layernorm = RMSNorm(config)
  self.post_attention_layernorm = RMSNorm(config)
end

function Layer:forward(x, cos, sin, cache)
  x = x + self.self_attn(self.input_layernorm(x), cos, sin, cache)
  return x + self.mlp(self.post_attention_layernorm(x))
end

local Llama = nn.Module:extend "Llama"

function Llama:init(config)
  self.config = config
  self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
  self.layers = nn.ModuleList()
  for _ = 1, config.num_hidden_layers do self.layers:append(Layer(config)) end
  self.norm = RMSNorm(config)
  self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, {bias = false})
end

-- ids: {batch, time} from 1. Returns the scores of the next token, {batch, vocab_size}.
function Llama:forward(ids, caches)
  local before = caches and caches[1] and caches[1].k and caches[1].k:size(3) or 0
  local cos, sin = rotations(before + 1, before + ids:size(2), self.config.head_dim,
    self.config.rope_theta)
  local x = self.embed_tokens(ids)
  for i, layer in ipairs(self.layers) do
    if caches then caches[i] = caches[i] or {} end
    x = layer(x, cos, sin, caches and caches[i])
  end
  return self.lm_head(self.norm(x)[{{}, -1}])
end

-- Loading -------------------------------------------------------------------------------------

-- Returns the numbers of a config.json, which is flat as far as this example reads it, and the set
-- `stop` of the ids that end the generation.
local function read_config(path)
  local text = cli.read_file("model", path)
  local config = {stop = {}}
  for name, value in text:gmatch '"([%w_]+)"%s*:%s*([%d.eE+-]+)' do
    config[name] = math.tointeger(tonumber(value)) or tonumber(value)
  end
  if text:find '"rope_scaling"%s*:%s*{' then
    cli.fail(("--model: expected plain rotary positions, got rope_scaling in %s"):format(path))
  end
  -- The ids that end the generation: a number or a list, from 0 on.
  for id in (text:match '"eos_token_id"%s*:%s*([%d%s,[]+)' or ""):gmatch "%d+" do
    config.stop[math.tointeger(tonumber(id)) + 1] = true
  end
  config.num_key_value_heads = config.num_key_value_heads or config.num_attention_heads
  config.head_dim = config.head_dim or config.hidden_size // config.num_attention_heads
  config.rope_theta = config.rope_theta or 10000
  return config
end

-- Returns a model with the tensors of a checkpoint.
local function load(config, path)
  local tensors = {}
  for name, tensor in pairs((cli.try(lt.load_safetensors, path))) do
    tensors[name:gsub("^model%.", "")] = tensor
  end
  -- Small models share the weights of the first and the last layer.
  tensors["lm_head.weight"] = tensors["lm_head.weight"] or tensors["embed_tokens.weight"]
  local model = lt.with_device("meta", Llama, config)
  cli.try(model.load_state_dict, model, tensors, {base = 0, assign = true})
  return model:to(device):eval()
end

-- Generation ------------------------------------------------------------------------------------

local how = {device = device, temperature = options.temperature, top_p = options["top-p"]}

if options.model ~= "" then
  local config = read_config(options.model .. "/config.json")
  local path = options.model .. "/model.safetensors"
  local file = io.open(path)
  if file then file:close() else path = path .. ".index.json" end -- a model in several files
  local model = load(config, path)
  local tokenizer = cli.try(lt.tokenizers.from_file, options.model .. "/tokenizer.json")
  how.context, how.stop = config.max_position_embeddings, config.stop
  generation.write(model, tokenizer, options.prompt, options.tokens, how)
  return
end

-- Without a model: a tiny one with random weights, in the published format.
local config = {vocab_size = 96, hidden_size = 64, intermediate_size = 160, num_hidden_layers = 2,
  num_attention_heads = 4, num_key_value_heads = 2, head_dim = 16, rms_norm_eps = 1e-5,
  rope_theta = 10000}
local path = os.tmpname()
lt.save_safetensors(path, Llama(config):to(device):state_dict{base = 0})
local model = load(config, path)
os.remove(path)

-- Check the result: the cache changes the time, not the tokens.
generation.check_cache(model, how, options.seed)
