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
local nn, F = lt.nn, lt.F

local options = cli.parse(arg, {
  {"model", "", "folder with model.safetensors and the tokenizer; a tiny random model by default"},
  {"prompt", "Lua is a language that", "text to continue"},
  {"tokens", 50, "number of tokens to write"},
  {"temperature", 0.8, "temperature of the sampling; 0 chooses the most likely token"},
  {"top-k", 40, "number of likely tokens to choose from"},
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

-- Returns the id of a token drawn from scores {vocabulary}.
local function choose(scores)
  if options.temperature == 0 then return scores:argmax():item() end
  local values, tokens = scores:topk(math.min(options["top-k"], #scores))
  return tokens[lt.multinomial(F.softmax(values / options.temperature, 1), 1)]:item()
end

-- Calls step(id) for each new token. Without a cache each token computes all before it again.
local function generate(model, ids, count, cached, step)
  ids = {table.unpack(ids)}
  local caches = cached and {} or nil
  local input = ids
  for _ = 1, count do
    local scores = lt.no_grad(model, lt.tensor({input}, {device = device}), caches)
    local id = choose(scores[1])
    ids[#ids + 1] = id
    input = cached and {id} or ids
    if step then step(id) end
  end
  return ids
end

if options.model ~= "" then
  local model = load(options.model .. "/model.safetensors")
  local tokenizer = cli.try(lt.tokenizers.from_file, options.model .. "/tokenizer.json")
  local ids = tokenizer:encode(options.prompt)
  io.write(options.prompt)
  local start = os.clock()
  generate(model, ids, options.tokens, true, function(id)
    io.write(tokenizer:decode{id})
    io.flush()
  end)
  print(("\n%.1f tokens per second of processor time"):format(
    options.tokens / (os.clock() - start)))
  return
end

-- Without a model: a tiny one with random weights, in the published format.
local path = os.tmpname()
local tiny = GPT2{vocabulary = 96, context = 64, width = 64, layers = 2, heads = 1}
nn.init.normal_(tiny.wte.weight, 0, 0.1)
lt.save_safetensors(path, tiny:state_dict{base = 0})
local model = load(path)
os.remove(path)
local prompt = {5, 17, 42}
lt.manual_seed(options.seed)
local with_cache = generate(model, prompt, 20, true)
lt.manual_seed(options.seed)
local without = generate(model, prompt, 20, false)
print("tokens: " .. table.concat(with_cache, " "))

-- Check the result: the cache changes the time, not the tokens.
for i, id in ipairs(without) do
  if with_cache[i] ~= id then
    cli.fail(("token %d: expected %d, as without the cache, got %d"):format(i, id, with_cache[i]))
  end
end
