-- Measures training steps with data parallelism on CPU tensors, for bench/distributed.lua.
--
--   mpirun -np 2 lutra bench/distributed/steps.lua MODEL SAMPLES
--
-- MODEL: mnist (784-256-10, as examples/mnist.lua) or chargpt (4 layers of width 128, as
-- examples/chargpt.lua); SAMPLES: the batch of one rank. Rank 0 prints `MODEL <tab> RANKS <tab>
-- SAMPLES <tab> SECONDS`: the least time of a step in several rounds. With one rank the model is
-- not wrapped.
local lt = require "lutra"
local nn, F, optim, dist = lt.nn, lt.F, lt.optim, lt.distributed

dist.init_process_group()
local rank, size = dist.get_rank(), dist.get_world_size()

local Block = nn.Module:extend "Block"

function Block:init()
  self.norm1, self.norm2 = nn.LayerNorm(128), nn.LayerNorm(128)
  self.qkv, self.proj = nn.Linear(128, 384), nn.Linear(128, 128)
  self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)
end

function Block:forward(x)
  local batch, time = x:size(1), x:size(2)
  local parts = self.qkv(self.norm1(x)):split(128, 3)
  for i = 1, 3 do parts[i] = parts[i]:view(batch, time, 4, 32):transpose(2, 3) end
  local y = F.scaled_dot_product_attention(parts[1], parts[2], parts[3], {is_causal = true})
  x = x + self.proj(y:transpose(2, 3):reshape(batch, time, 128))
  return x + self.down(F.gelu(self.up(self.norm2(x))))
end

local GPT = nn.Module:extend "GPT"

function GPT:init()
  self.tokens, self.places = nn.Embedding(65, 128), nn.Embedding(64, 128)
  self.body = nn.Sequential(Block(), Block(), Block(), Block(), nn.LayerNorm(128),
    nn.Linear(128, 65))
end

function GPT:forward(text)
  return self.body(self.tokens(text) + self.places(lt.arange(64))):flatten(1, 2)
end

local models = {}

function models.mnist(samples)
  local net = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
  return net, lt.rand(samples, 28, 28), lt.randint(1, 10, {samples})
end

function models.chargpt(samples)
  return GPT(), lt.randint(1, 65, {samples, 64}), lt.randint(1, 65, {samples, 64}):flatten()
end

-- Returns the least seconds of a step over several rounds of about a quarter of a second.
local function measure(step)
  local function round(steps)
    dist.barrier()
    local start = lt.clock()
    for _ = 1, steps do step() end
    dist.barrier()
    return (lt.clock() - start) / steps
  end
  local steps = lt.tensor({0.25 / round(5)}, {dtype = "float64"})
  dist.broadcast(steps, 0)
  local count, least = math.max(3, math.floor(steps:item())), math.huge
  for _ = 1, 5 do least = math.min(least, round(count)) end
  return least
end

local samples = math.tointeger(tonumber(arg[2]))
lt.manual_seed(1 + rank)
local model, x, y = assert(models[arg[1]], "usage: steps.lua MODEL SAMPLES")(samples)
if size > 1 then model = nn.parallel.DistributedDataParallel(model) end
local optimizer = optim.AdamW(model:parameters(), {lr = 1e-3})
local seconds = measure(function()
  optimizer:zero_grad()
  F.cross_entropy(model(x), y):backward()
  optimizer:step()
end)
if rank == 0 then print(("%s\t%d\t%d\t%.9g"):format(arg[1], size, samples, seconds)) end
dist.destroy_process_group()
