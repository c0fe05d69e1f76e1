-- Trains a small GPT on text, character by character, and lets it write.
--
--   lutra examples/chargpt.lua [--text FILE] [--steps 2000] [--out FILE] [--resume FILE]
--
-- Without --text it trains on Lutra's own Lua sources and documents, and learns to write
-- something that looks like Lua. The model is nanoGPT's for a CPU: 4 layers with 4 heads, a
-- width of 128 and a context of 64 characters. On tinyshakespeare nanoGPT's validation loss
-- after 2,000 steps is 1.88; with twice the learning rate, as here, it is 1.82.
--
-- It writes a checkpoint, from which --resume continues with the same results as without a
-- stop.
--
-- test: --steps 60 --sample 50 --out $TMP/chargpt.safetensors
-- test: --steps 70 --sample 50 --out $TMP/chargpt.safetensors --resume $TMP/chargpt.safetensors
-- test: --steps 2 --sample 12 --out $TMP/on_device.safetensors --device cuda

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim = lt.nn, lt.F, lt.optim

local options = cli.parse(arg, {
  {"text", "", "file to train on; Lutra's own sources by default"},
  {"steps", 0, "last step: by default 2000, or when resuming the end of the plan"},
  {"out", "chargpt.safetensors", "file for the checkpoint"},
  {"resume", "", "checkpoint to continue from"},
  {"stop", 0, "step at which to stop early, as if interrupted (0: none)"},
  {"sample", 500, "number of characters to write at the end"},
  {"temperature", 0.8, "temperature of the sampling; 0 chooses the most likely character"},
  {"lr", 2e-3, "learning rate after the warmup"},
  {"seed", 1, "seed of the random numbers"},
  {"device", "cpu", "device to train on"},
})
local device = cli.device(options.device)

-- The model ---------------------------------------------------------------------------

-- Causal self-attention (Vaswani et al. 2017): a character attends to those before it.
local Attention = nn.Module:extend "Attention"

function Attention:init(width, heads)
  self.width, self.heads = width, heads
  self.qkv = nn.Linear(width, 3 * width, {bias = false})
  self.proj = nn.Linear(width, width, {bias = false})
end

-- x and the result: {batch, time, width}.
function Attention:forward(x)
  local batch, time = x:size(1), x:size(2)
  local function split_heads(t)
    return t:reshape(batch, time, self.heads, self.width // self.heads):transpose(2, 3)
  end
  local q, k, v = table.unpack(self.qkv(x):split(self.width, 3))
  local y = F.scaled_dot_product_attention(split_heads(q), split_heads(k), split_heads(v),
    {is_causal = true})
  return self.proj(y:transpose(2, 3):reshape(batch, time, self.width))
end

local Block = nn.Module:extend "Block"

function Block:init(width, heads)
  self.norm1 = nn.LayerNorm(width, {bias = false})
  self.attention = Attention(width, heads)
  self.norm2 = nn.LayerNorm(width, {bias = false})
  self.up = nn.Linear(width, 4 * width, {bias = false})
  self.proj = nn.Linear(4 * width, width, {bias = false})
end

function Block:forward(x)
  x = x + self.attention(self.norm1(x))
  return x + self.proj(F.gelu(self.up(self.norm2(x))))
end

local GPT = nn.Module:extend "GPT"

function GPT:init(config)
  self.block_size = config.block_size
  self.characters = nn.Embedding(config.vocabulary, config.width)
  self.positions = nn.Embedding(config.block_size, config.width)
  self.blocks = nn.ModuleList()
  for _ = 1, config.layers do self.blocks:append(Block(config.width, config.heads)) end
  self.norm = nn.LayerNorm(config.width, {bias = false})
  self.head = nn.Linear(config.width, config.vocabulary, {bias = false})

  -- Initialize as GPT-2: small weights, smaller in the projections of residual blocks.
  for name, p in self:named_parameters() do
    if name:find "proj" then
      nn.init.normal_(p, 0, 0.02 / math.sqrt(2 * config.layers))
    elseif p.ndim == 2 then
      nn.init.normal_(p, 0, 0.02)
    end
  end
  -- The embedding and the output layer share one weight (weight tying).
  self.head.weight = self.characters.weight
end

-- ids: {batch, time}. Returns logits {batch, time, vocabulary} of the next character.
function GPT:forward(ids)
  local time = ids:size(2)
  local x = self.characters(ids) + self.positions(lt.arange(time, {device = ids.device}))
  for _, block in ipairs(self.blocks) do x = block(x) end
  return self.head(self.norm(x))
end

-- The text ------------------------------------------------------------------------------

-- Returns Lutra's Lua sources and documents as one string.
local function own_sources()
  local root = arg[0]:match "^(.*)/[^/]*/[^/]*$" or (arg[0]:find "/" and "." or "..")
  local quoted = "'" .. root:gsub("'", [['\'']]) .. "'"
  local listing = io.popen(("cd %s && find lib examples docs README.md CONTRIBUTING.md "
    .. "'(' -name '*.lua' -o -name '*.md' ')' -type f 2>/dev/null | LC_ALL=C sort"):format(quoted))
  local texts = {}
  for path in listing:lines() do texts[#texts + 1] = cli.read_file("text", root .. "/" .. path) end
  listing:close()
  return table.concat(texts, "\n")
end

-- Iterates over the characters of a string: UTF-8 if it is valid, else bytes.
local function characters(text) return text:gmatch(utf8.len(text) and utf8.charpattern or ".") end

-- Returns the sorted list of the characters that occur.
local function make_vocabulary(text)
  local list, seen = {}, {}
  for c in characters(text) do
    if not seen[c] then seen[c], list[#list + 1] = true, c end
  end
  table.sort(list)
  return list
end

local function encode(text, vocabulary)
  local id_of, ids = {}, {}
  for id, c in ipairs(vocabulary) do id_of[c] = id end
  for c in characters(text) do
    ids[#ids + 1] = id_of[c]
      or error(("cannot encode the text: the checkpoint lacks the character %q"):format(c), 0)
  end
  return lt.tensor(ids, {dtype = "int64"})
end

-- A checkpoint stores characters as bytes in hexadecimal.
local function pack_vocabulary(vocabulary)
  local words = {}
  for i, c in ipairs(vocabulary) do
    words[i] = c:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end)
  end
  return table.concat(words, " ")
end

local function unpack_vocabulary(packed)
  local vocabulary = {}
  for word in packed:gmatch "%x+" do
    vocabulary[#vocabulary + 1] = word:gsub("%x%x", function(hex)
      return string.char(tonumber(hex, 16))
    end)
  end
  return vocabulary
end

-- Checkpoints -----------------------------------------------------------------------------

-- Saves everything that a run needs to continue: parameters, AdamW's moments, and in the
-- metadata its position. The write is atomic, so that a checkpoint is always complete.
local function save(run)
  local tensors = {}
  for name, p in run.model:named_parameters() do
    tensors["model." .. name] = p:detach()
    local state = run.optimizer.state[p] or {}
    for _, moment in ipairs {"exp_avg", "exp_avg_sq"} do
      if state[moment] then tensors[moment .. "." .. name] = state[moment] end
    end
  end
  local metadata = {format = "lutra chargpt 1", vocabulary = pack_vocabulary(run.vocabulary)}
  for _, field in ipairs {"step", "plan", "seed", "lr"} do
    metadata[field] = ("%.17g"):format(run[field])
  end
  lt.save_safetensors(options.out, tensors, metadata)
end

local function load_metadata(path)
  local tensors, metadata = lt.load_safetensors(path)
  local whole = metadata.format == "lutra chargpt 1" and metadata.vocabulary
  for _, field in ipairs {"step", "plan", "seed", "lr"} do
    whole = whole and tonumber(metadata[field])
  end
  if not whole then error(("cannot load %s: expected a checkpoint of chargpt"):format(path), 0) end
  return tensors, metadata
end

local function restore(run, tensors)
  local state = {}
  for name, p in run.model:named_parameters() do
    state[name] = tensors["model." .. name]
    local m, v = tensors["exp_avg." .. name], tensors["exp_avg_sq." .. name]
    if m and v then
      run.optimizer.state[p] = {step = run.step, exp_avg = m:to(device), exp_avg_sq = v:to(device)}
    end
  end
  state["head.weight"] = state["characters.weight"] -- the same tensor
  run.model:load_state_dict(state)
end

-- Setup -------------------------------------------------------------------------------------

local BATCH, WARMUP, PLAN = 12, 100, 2000

local text = options.text ~= "" and cli.read_file("text", options.text) or own_sources()
local tensors, metadata
if options.resume ~= "" then tensors, metadata = cli.try(load_metadata, options.resume) end

local run = {
  step = metadata and math.tointeger(tonumber(metadata.step)) or 0,
  plan = metadata and math.tointeger(tonumber(metadata.plan)) or 0,
  seed = metadata and math.tointeger(tonumber(metadata.seed)) or options.seed,
  lr = metadata and tonumber(metadata.lr) or options.lr,
  vocabulary = metadata and unpack_vocabulary(metadata.vocabulary) or make_vocabulary(text),
}
-- The plan is the step at which the learning rate reaches its minimum. A finished run that
-- is resumed keeps this rate.
if run.plan == 0 then run.plan = options.steps > 0 and options.steps or PLAN end
local last = options.steps
if last == 0 then last = run.step < run.plan and run.plan or run.step + 500 end
if last <= run.step then
  cli.fail(("--steps: expected more than %d, the step of %s"):format(run.step, options.resume))
end
local stop = options.stop > 0 and math.min(options.stop, last) or last

local config = {vocabulary = #run.vocabulary, block_size = 64, layers = 4, heads = 4, width = 128}
local ids = cli.try(encode, text, run.vocabulary)
if ids:numel() < 20 * config.block_size then
  cli.fail(("--text: expected at least %d characters, got %d"):format(20 * config.block_size,
    ids:numel()))
end
ids = ids:to(device)
local cut = ids:numel() * 9 // 10
local train, valid = ids[{{1, cut}}], ids[{{cut + 1, -1}}]

lt.manual_seed(run.seed)
run.model = GPT(config):to(device)

-- Weight decay applies to matrices, not to gains.
local matrices, gains = {}, {}
for p in run.model:parameters() do table.insert(p.ndim >= 2 and matrices or gains, p) end
run.optimizer = optim.AdamW({
  {params = matrices, weight_decay = 0.1},
  {params = gains, weight_decay = 0},
}, {lr = run.lr, betas = {0.9, 0.99}})

if tensors then
  cli.try(restore, run, tensors)
  print(("resumed %s at step %d"):format(options.resume, run.step))
end
print(("%d characters, %d different; a GPT of %d parameters; steps %d to %d"):format(ids:numel(),
  config.vocabulary, run.model:num_parameters(), run.step + 1, stop))

-- Training ----------------------------------------------------------------------------------

-- Random numbers depend only on the seed, their purpose and the step, so that a resumed run
-- draws the same numbers.
local generator = lt.Generator()
local function reseed(purpose, step)
  generator:manual_seed(run.seed * 1000003 + purpose * 100000007 + step)
end

-- Returns random sequences of the source, and the same shifted by one character as targets.
local within = lt.arange(0, config.block_size - 1, {device = device})
local function batch_of(source)
  local starts = lt.randint(1, source:numel() - config.block_size, {BATCH, 1},
    {generator = generator})
  local places = starts:to(device) + within
  return source[places], source[places + 1]
end

local function loss_of(x, y)
  local scores = run.model(x)
  return F.cross_entropy(scores:reshape(-1, config.vocabulary), y:reshape(-1))
end

local function validation_loss(batches)
  run.model:eval()
  reseed(2, 0)
  local total = lt.no_grad(function()
    local sum = 0
    for _ = 1, batches do sum = sum + loss_of(batch_of(valid)) end
    return sum
  end)
  run.model:train()
  return (total / batches):item()
end

-- Linear warmup, then cosine decay to a tenth.
local function learning_rate(step)
  if step <= WARMUP then return run.lr * step / WARMUP end
  local done = math.min((step - WARMUP) / math.max(run.plan - WARMUP, 1), 1)
  return run.lr * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done)))
end

local function train_step(step)
  for _, group in ipairs(run.optimizer.param_groups) do group.lr = learning_rate(step) end
  reseed(1, step)
  local loss = loss_of(batch_of(train))
  run.optimizer:zero_grad()
  loss:backward()
  nn.utils.clip_grad_norm_(run.model:parameters(), 1.0)
  run.optimizer:step()
  return loss:detach()
end

local first_loss = validation_loss(20)
print(("step %5d: validation loss %.4f"):format(run.step, first_loss))
local bar = lt.progress{total = stop - run.step, desc = "training", leave = false}
while run.step < stop do
  run.step = run.step + 1
  local loss = train_step(run.step)
  bar:update(1)
  if run.step % 10 == 0 then bar:set_postfix{loss = loss} end
  if run.step % 250 == 0 and run.step < stop then
    bar:write(("step %5d: loss %.4f, validation loss %.4f"):format(run.step, loss:item(),
      validation_loss(20)))
    save(run)
  end
end
bar:close()
save(run)
local final_loss = validation_loss(run.step >= 1000 and 100 or 20)
print(("step %5d: validation loss %.4f; saved %s"):format(run.step, final_loss, options.out))

-- Writing -------------------------------------------------------------------------------------

-- Prints `count` characters, starting at the beginning of a line.
local function write(count)
  local context = lt.full({1, 1}, encode("\n", run.vocabulary):item(), {dtype = "int64"})
  context = context:to(device)
  run.model:eval()
  reseed(3, run.step)
  for _ = 1, count do
    local seen = context[{{}, {math.max(context:size(2) - config.block_size + 1, 1), -1}}]
    local scores = run.model(seen)[{{}, -1}]
    local id
    if options.temperature > 0 then
      local chances = F.softmax(scores / options.temperature, -1)
      id = lt.multinomial(chances, 1, {generator = generator})
    else
      id = scores:argmax{dim = -1, keepdim = true}
    end
    context = lt.cat({context, id}, 2)
  end
  local written = context[1]:totable() -- one copy: each item() would block the host
  for i = 2, #written do io.write(run.vocabulary[written[i]]) end
  io.write "\n"
end

if options.sample > 0 then lt.no_grad(write, options.sample) end

-- Check the result: the loss must be far below that of guessing.
local guessing = math.log(config.vocabulary)
local bound = run.step >= 1000 and 0.55 * guessing or guessing
local has_learned = final_loss < bound and (metadata or final_loss < first_loss)
if not has_learned then
  cli.fail(("expected a loss below %.3f, got %.3f"):format(bound, final_loss))
end
