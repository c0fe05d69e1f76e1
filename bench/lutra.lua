-- Measures ops and training steps of Lutra on the CPU. Prints `name <tab> seconds` per line.
-- bench/peers.py measures the same work in PyTorch and NumPy; bench/compare prints one table.
--
--   lutra bench/lutra.lua [name ...]
local lt = require "lutra"
local core = require "lutra.core"
local nn, F, optim = lt.nn, lt.F, lt.optim

local wanted = {}
for _, name in ipairs(arg or {}) do wanted[name] = true end

-- Prints the time of one piece of work: the minimum of several runs of `f`, which does `n` pieces.
local function measure(name, n, f, runs)
  if next(wanted) and not wanted[name] then return end
  f()
  local best = math.huge
  for _ = 1, runs or 7 do
    local start = core.clock()
    f()
    best = math.min(best, core.clock() - start)
  end
  io.write(("%s\t%.9g\n"):format(name, best / n))
  io.flush()
end

lt.manual_seed(1)

local a, b = lt.randn(1), lt.randn(1)
measure("add one element", 100000, function()
  for _ = 1, 100000 do local _ = a + b end
end)

local g = lt.randn(1):requires_grad_()
measure("add one element, with grad", 100000, function()
  for _ = 1, 100000 do local _ = g + b end
end)

local x, y = lt.randn(10000000), lt.randn(10000000)
measure("add 10^7", 1, function() return x + y end)
measure("exp 10^7", 1, function() return x:exp() end)
measure("tanh 10^7", 1, function() return x:tanh() end)
measure("sum 10^7", 1, function() return x:sum() end)
local poly = lt.elementwise "x * x + 7 * y"
for _, n in ipairs {1, 1000000} do
  local u, v = lt.rand(n), lt.rand(n)
  local size, count = n == 1 and "one element" or "10^6", 20000000 // (n + 1000)
  measure("x * x + 7 * y, " .. size, count, function()
    for _ = 1, count do local _ = u * u + 7 * v end
  end)
  measure("lt.elementwise of it, " .. size, count, function()
    for _ = 1, count do local _ = poly(u, v) end
  end)
end
x, y = nil, nil -- luacheck: ignore

local m = lt.randn(4096, 1024)
measure("softmax 4096 x 1024", 1, function() return m:softmax(-1) end)
measure("sum of columns 4096 x 1024", 1, function() return m:sum(1) end)
local mt = m:t()
measure("transpose copy 1024 x 4096", 1, function() return mt:contiguous() end)
local w, c = lt.ones(1024), lt.zeros(1024)
measure("layer_norm 4096 x 1024", 1, function() return lt.layer_norm(m, {1024}, w, c) end)

for _, n in ipairs {128, 512, 2048} do
  local p, q = lt.randn(n, n), lt.randn(n, n)
  local times = (2048 // n) ^ 2 // 1
  measure(("sgemm %d"):format(n), times, function()
    for _ = 1, times do local _ = p:mm(q) end
  end)
end

-- One training step of an MLP on a batch of 64, as in the MNIST example.
local function mlp_step(hidden, make)
  local net = nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))
  local opt = make(net:parameters())
  local images, labels = lt.rand(64, 784), lt.randint(1, 10, {64})
  return function()
    for _ = 1, 50 do
      local loss = F.cross_entropy(net(images), labels)
      opt:zero_grad()
      loss:backward()
      opt:step()
    end
  end
end
local function sgd(p) return optim.SGD(p, {lr = 0.1, momentum = 0.9}) end
local function adamw(p) return optim.AdamW(p, {lr = 1e-3}) end
measure("MLP 784-256-10 step, SGD", 50, mlp_step(256, sgd))
measure("MLP 784-512-10 step, AdamW", 50, mlp_step(512, adamw))

-- A tiny network, whose time is overhead.
local function tiny_step()
  local net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
  local opt = optim.SGD(net:parameters(), {lr = 0.1})
  local points, values = lt.rand(4, 2), lt.rand(4, 1)
  return function()
    for _ = 1, 500 do
      local loss = F.mse_loss(net(points), values)
      opt:zero_grad()
      loss:backward()
      opt:step()
    end
  end
end
measure("MLP 2-16-1 step, SGD", 500, tiny_step())

-- The character GPT of examples/chargpt.lua: 4 layers, 4 heads, 128 wide, block 64, batch 12, of 65
-- characters.
local Block = nn.Module:extend "Block"
function Block:init()
  self.ln1, self.ln2 = nn.LayerNorm(128), nn.LayerNorm(128)
  self.qkv, self.proj = nn.Linear(128, 384), nn.Linear(128, 128)
  self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)
end
function Block:forward(h)
  local B, T = h:size(1), h:size(2)
  local parts = self.qkv(self.ln1(h)):split(128, 3)
  for i, part in ipairs(parts) do parts[i] = part:view(B, T, 4, 32):transpose(2, 3) end
  local q, k, v = table.unpack(parts)
  local mixed = F.scaled_dot_product_attention(q, k, v, {is_causal = true})
  h = h + self.proj(mixed:transpose(2, 3):reshape(B, T, 128))
  return h + self.down(F.gelu(self.up(self.ln2(h))))
end

local function gpt_step()
  local tokens, places = nn.Embedding(65, 128), nn.Embedding(64, 128)
  local body = nn.Sequential(Block(), Block(), Block(), Block(),
    nn.LayerNorm(128), nn.Linear(128, 65))
  local all = nn.ModuleList {tokens, places, body}
  local opt = optim.AdamW(all:parameters(), {lr = 1e-3})
  local text, target = lt.randint(1, 65, {12, 64}), lt.randint(1, 65, {12, 64})
  local at = lt.arange(64)
  return function()
    for _ = 1, 5 do
      local logits = body(tokens(text) + places(at))
      local loss = F.cross_entropy(logits:view(-1, 65), target:view(-1))
      opt:zero_grad()
      loss:backward()
      opt:step()
    end
  end
end
measure("character GPT step, AdamW", 5, gpt_step())
