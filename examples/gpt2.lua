-- Generates text with GPT-2, from the files that are published with it.
--
--   lutra examples/gpt2.lua --model DIR [--prompt TEXT] [--tokens 50] [--device cpu]
--
-- DIR holds model.safetensors and tokenizer.json of GPT-2 ("gpt2" on the Hugging Face hub has 124
-- million parameters, 548 MB). Without --model it makes a tiny GPT-2 with random weights, writes it
-- to a temporary file in the published format, loads it, and compares generation with a cache of
-- keys and values to generation without one.
--
-- test:

local lt = require "lutra"
local cli = require "lutra.cli"
local generation = require "common.generation"
local nn, F = lt.nn, lt.F

local options = cli.parse(arg, {
  {"model", "", "folder with model.safetensors and the tokenizer; a tiny random model by default"},
  {"prompt", "Lua is a language that", "text to continue"},
  {"tokens", 50, "number of tokens to write", least = 1},
  {"temperature", 0.8, "temperature of the sampling; 0 chooses the most likely token", least = 0},
  {"top-k", 40, "number of likely tokens to choose from", least = 1},
  {"device", "cpu", "device to run on: cpu, cuda or mps"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

-- The model, with the names of the published checkpoint --------------------------------------

-- GPT-2 stores the weights of its linear layers transposed: {in, out}.
local Conv1D = nn.Module:extend "Conv1D"

function Conv1D:init(n_in, n_out)
  self.weight = nn.Parameter(lt.randn(n_in, n_out) * 0.02)
  self.bias = nn.Parameter(lt.zeros(n_out))
end

function Conv1D:forward(x) return x:matmul(self.weight) + self.bias end

local Attention = nn.Module:extend "Attention"

function Attention:init(width, heads)
  self.heads = heads
  self.c_attn = Conv1D(width, 3 * width)
  self.c_proj = Conv1D(width, width)
end

-- x: {batch, time, width}. `cache` is nil or a table with the keys and values of the tokens before
-- x, to which those of x are added.
function Attention:forward(x, cache)
  local batch, time, width = table.unpack(x.shape)
  local function heads(t)
    return t:reshape(batch, time, self.heads, width // self.heads):transpose(2, 3)
  end
  local q, k, v = table.unpack(self.c_attn(x):split(width, 3))
  q, k, v = heads(q), heads(k), heads(v)
  local first = not (cache and cache.k)
  if cache then
    if not first then k, v = lt.cat({cache.k, k}, 3), lt.cat({cache.v, v}, 3) end
    cache.k, cache.v = k, v
  end
  -- With a cache, one token attends to all before it, so there is nothing to mask.
  local y = F.scaled_dot_product_attention(q, k, v, {is_causal = first and time > 1})
  return self.c_proj(y:transpose(2, 3):reshape(batch, time, width))
end

local MLP = nn.Module:extend "MLP"

function MLP:init(width)
  self.c_fc = Conv1D(width, 4 * width)
  self.c_proj = Conv1D(4 * width, width)
end

function MLP:forward(x) return self.c_proj(F.gelu(self.c_fc(x), {approximate = "tanh"})) end

local Block = nn.Module:extend "Block"

function Block:init(width, heads)
  self.ln_1 = nn.LayerNorm(width)
  self.attn = Attention(width, heads)
  self.ln_2 = nn.LayerNorm(width)
  self.mlp = MLP(width)
end

function Block:forward(x, cache)
  x = x + self.attn(self.ln_1(x), cache)
  return x + self.mlp(self.ln_2(x))
end

local GPT2 = nn.Module:extend "GPT2"

function GPT2:init(config)
  self.wte = nn.Embedding(config.vocabulary, config.width)
  self.wpe = nn.Embedding(config.context, config.width)
  self.h = nn.ModuleList()
  for _ = 1, config.layers do self.h:append(Block(config.width, config.heads)) end
  self.ln_f = nn.LayerNorm(config.width)
end

-- ids: {batch, time} from 1. Returns the scores of the next token, {batch, vocabulary}.
function GPT2:forward(ids, caches)
  local before = caches and caches[1] and caches[1].k and caches[1].k:size(3) or 0
  local places = lt.arange(before + 1, before + ids:size(2), {device = ids.device})
  local x = self.wte(ids) + self.wpe(places)
  for i, block in ipairs(self.h) do
    if caches then caches[i] = caches[i] or {} end
    x = block(x, caches and caches[i])
  end
  return self.ln_f(x)[{{}, -1}]:matmul(self.wte.weight:t())
end

-- Loading -------------------------------------------------------------------------------------

-- Returns a model with the tensors of a checkpoint; sizes follow from the shapes.
local function load(path)
  local tensors = {}
  for name, tensor in pairs((cli.try(lt.load_safetensors, path))) do
    -- The masks that some checkpoints contain are no parameters.
    name = name:gsub("^transformer%.", "")
    local mask = name:find "%.attn%.bias$" or name:find "masked_bias"
    if not mask and name ~= "lm_head.weight" then tensors[name] = tensor end
  end
  local layers = 0
  while tensors[("h.%d.ln_1.weight"):format(layers)] do layers = layers + 1 end
  local wte, wpe = tensors["wte.weight"], tensors["wpe.weight"]
  if not wte or not wpe then cli.fail(("--model: %s is no GPT-2"):format(path)) end
  local width = wte:size(2)
  local model = lt.with_device("meta", function()
    return GPT2{vocabulary = wte:size(1), context = wpe:size(1), width = width, layers = layers,
      heads = math.max(1, width // 64)}
  end)
  cli.try(model.load_state_dict, model, tensors, {base = 0, assign = true})
  return model:to(device):eval()
end

-- Generation ------------------------------------------------------------------------------------

local how = {device = device, temperature = options.temperature, top_k = options["top-k"]}

if options.model ~= "" then
  local model = load(options.model .. "/model.safetensors")
  local tokenizer = cli.try(lt.tokenizers.from_file, options.model .. "/tokenizer.json")
  how.context = model.wpe.weight:size(1)
  how.stop = {[tokenizer:token_to_id "<|endoftext|>" or 0] = true}
  generation.write(model, tokenizer, options.prompt, options.tokens, how)
  return
end

-- Without a model: a tiny one with random weights, in the published format.
local path = os.tmpname()
local tiny = GPT2{vocabulary = 96, context = 64, width = 64, layers = 2, heads = 1}
nn.init.normal_(tiny.wte.weight, 0, 0.1)
lt.save_safetensors(path, tiny:state_dict{base = 0})
local model = load(path)
os.remove(path)

-- Check the result: the cache changes the time, not the tokens.
generation.check_cache(model, how, options.seed)
