-- Measures Lutra on a GPU. Prints one line per measurement,
-- `name <tab> seconds <tab> work <tab> unit`; work is bytes moved ("B"), floating point
-- operations ("F"), or 0 where the time itself is the result. bench/device_peers.py measures the
-- same in PyTorch, bench/cublas.cu the matrix products in cuBLAS alone; bench/run-cuda and
-- bench/run-mps print one table.
--
--   lutra bench/device.lua [device [scale]]      scale < 1 reduces all sizes, for tests
local lt = require "lutra"
local core = require "lutra.core"
local nn, F, optim = lt.nn, lt.F, lt.optim

local device = lt.device(arg and arg[1] or "cuda")
local scale = tonumber(arg and arg[2]) or 1
lt.set_default_device(device)
lt.manual_seed(1)

local function scaled(n) return math.max(1, math.floor(n * scale)) end

-- A measurement that fails (missing library, out of memory) is reported on stderr and left out.
local function try(name, f)
  local ok, message = pcall(f)
  if not ok then
    io.stderr:write(("left out %s: %s\n"):format(name, tostring(message):match "^[^\n]*"))
  end
end

-- Measures `f`, which does n pieces of work, with synchronization: the minimum of several runs.
local function measure(name, n, work, unit, f)
  try(name, function()
    f()
    lt.synchronize(device)
    local best = math.huge
    for _ = 1, 7 do
      local start = core.clock()
      f()
      lt.synchronize(device)
      best = math.min(best, core.clock() - start)
    end
    io.write(("%s\t%.9g\t%d\t%s\n"):format(name, best / n, work, unit))
    io.flush()
  end)
end

-- Measures the time to queue one op, without synchronization inside the loop.
local a, b = lt.randn(1), lt.randn(1)
local submits = scaled(2000)
local best = math.huge
for _ = 1, 7 do
  lt.synchronize(device)
  local start = core.clock()
  for _ = 1, submits do local _ = a + b end
  best = math.min(best, core.clock() - start)
end
lt.synchronize(device)
io.write(("submit a + b\t%.9g\t0\t-\n"):format(best / submits))
measure("read a + b", scaled(100), 0, "-", function()
  for _ = 1, scaled(100) do local _ = (a + b):item() end
end)

-- Copies: 256 MiB of bytes.
try("copies", function()
  local n = scaled(1 << 26)
  local there = lt.empty(n)
  local pageable = lt.zeros(n, {device = "cpu"})
  local pinned = pageable:pin_memory()
  measure("host to device, pageable", 1, 4 * n, "B", function() there:copy_(pageable) end)
  measure("host to device, pinned", 1, 4 * n, "B", function() there:copy_(pinned, true) end)
  measure("device to host, pageable", 1, 4 * n, "B", function() pageable:copy_(there) end)
  measure("device to host, pinned", 1, 4 * n, "B", function() pinned:copy_(there, true) end)
end)

-- Memory-bound work: the minimum number of bytes read and written.
try("work bound by memory", function()
  local n = scaled(1 << 27)
  local x, y, z = lt.randn(n), lt.randn(n), lt.empty(n)
  measure("copy on the device", 1, 8 * n, "B", function() z:copy_(x) end)
  measure("add", 1, 12 * n, "B", function() return x + y end)
  measure("gelu", 1, 8 * n, "B", function() return F.gelu(x) end)
  measure("sum", 1, 4 * n, "B", function() return x:sum() end)
  x, y, z = nil, nil, nil -- luacheck: ignore
  local h = lt.randn{n, dtype = "bfloat16"}
  measure("add bfloat16", 1, 4 * n, "B", function() return h + h end) -- read once
  h = nil -- luacheck: ignore
  for _, columns in ipairs {1024, 4096, 32768} do
    local rows = math.max(1, scaled(1 << 26) // columns)
    local m = lt.randn(rows, columns)
    local bytes = 8 * rows * columns
    measure(("softmax of %d"):format(columns), 1, bytes, "B", function() return m:softmax(-1) end)
    if columns <= 4096 then
      local w, c = lt.ones(columns), lt.zeros(columns)
      measure(("layer_norm of %d"):format(columns), 1, bytes, "B",
        function() return lt.layer_norm(m, {columns}, w, c) end)
      measure(("transposed copy of %d"):format(columns), 1, bytes, "B",
        function() return m:t():contiguous() end)
    end
    local target = lt.randint(1, columns, {rows})
    measure(("cross_entropy of %d"):format(columns), 1, bytes, "B",
      function() return F.cross_entropy(m, target) end)
  end
  local p = nn.Parameter(lt.randn(n // 4))
  p.grad = lt.randn(n // 4)
  local opt = optim.AdamW({p}, {lr = 1e-3})
  measure("AdamW step", 1, 28 * (n // 4), "B", function() opt:step() end)
end)

-- Matrix products.
local cuda = device.type == "cuda"
local kinds = {"float32", cuda and "tf32" or "float16", "bfloat16"}
for _, kind in ipairs(kinds) do try("matmul " .. kind, function()
  local n = scaled(8192)
  local dtype = kind == "tf32" and "float32" or kind
  if cuda then lt.backends.cuda.matmul.allow_tf32 = kind == "tf32" end
  local p, q = lt.randn(n, n):to(dtype), lt.randn(n, n):to(dtype)
  measure("matmul " .. kind, 4, 2 * n ^ 3 // 1, "F", function()
    for _ = 1, 4 do local _ = p:mm(q) end
  end)
end) end
if cuda then lt.backends.cuda.matmul.allow_tf32 = false end

-- A training step of a character GPT: 4 layers of 128, 4 heads, 12 sequences of 64 tokens.
try("character GPT step", function()
  local width, heads, length, batch, vocabulary = 128, 4, 64, scaled(12), 65
  local function block()
    return {
      norm1 = nn.LayerNorm(width), qkv = nn.Linear(width, 3 * width), out = nn.Linear(width, width),
      norm2 = nn.LayerNorm(width), up = nn.Linear(width, 4 * width),
      down = nn.Linear(4 * width, width),
    }
  end
  local token, place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
  local head, last = nn.Linear(width, vocabulary), nn.LayerNorm(width)
  local blocks, parameters = {}, {}
  local function take(module)
    for p in module:parameters() do parameters[#parameters + 1] = p end
  end
  for i = 1, 4 do
    blocks[i] = block()
    for _, name in ipairs {"norm1", "qkv", "out", "norm2", "up", "down"} do
      take(blocks[i][name])
    end
  end
  take(token)
  take(place)
  take(head)
  take(last)
  local opt = optim.AdamW(parameters, {lr = 1e-3})
  local ids = lt.randint(1, vocabulary, {batch, length})
  local targets = lt.randint(1, vocabulary, {batch * length})
  local positions = lt.arange(length, nil, 1, {dtype = "int64"})
  local function step()
    local x = token(ids) + place(positions)
    for _, k in ipairs(blocks) do
      local parts = k.qkv(k.norm1(x)):split(width, -1)
      for i = 1, 3 do
        parts[i] = parts[i]:view(batch, length, heads, width // heads):transpose(2, 3)
      end
      local seen = F.scaled_dot_product_attention(parts[1], parts[2], parts[3], {is_causal = true})
      x = x + k.out(seen:transpose(2, 3):reshape(batch, length, width))
      x = x + k.down(F.gelu(k.up(k.norm2(x))))
    end
    local loss = F.cross_entropy(head(last(x)):view(-1, vocabulary), targets)
    opt:zero_grad()
    loss:backward()
    opt:step()
  end
  measure("character GPT step", scaled(10), 0, "-", function()
    for _ = 1, scaled(10) do step() end
  end)
end)
