-- Every allocation of the core and of the bindings fails once: each step below is one call on small
-- operands, made again and again while its first, second, third... allocation fails, until it needs
-- no more. It runs in lutra-fuzz (program.c), best in the debug build:
--
--     lutra-fuzz tests/fuzz/every_allocation.lua [--only PATTERN] [--lua 1] [--seconds S]
--
-- A call either succeeds all the same or raises an error that names a function; then its operands
-- are unchanged, the same call works when memory is there again, and nothing is lost. With --lua 1
-- it is Lua's allocations that fail: then what the core has made must not be lost.
--
-- The ops, with their examples, come from the op table; modules and optimizers from the library's
-- tables. Ends with the line `N passed, N failed, N skipped`: a step is a test.

local fuzz = require "fuzz"
local root = arg[0]:match "^(.*)/tests/fuzz/[^/]*$" or "."
package.path = root .. "/lib/?.lua;" .. root .. "/lib/?/init.lua;" .. package.path

local options = {}
for i = 1, #arg, 2 do options[arg[i]:match "^%-%-(%w+)$"] = tonumber(arg[i + 1]) or arg[i + 1] end
local kind = options.lua and "lua+" or "core"

pcall(fuzz.emulate, "cuda:2,memory=64MiB")
local lt = require "lutra"
local core = require "lutra.core"
local examples = require "lutra.repl.help.examples"
local has_cuda = lt.cuda.is_available()
local X = core._methods

-- ---- operands -----------------------------------------------------------------------------------

-- The arguments with fn(x) for each tensor, also in lists.
local function map(values, fn)
  local out = {n = values.n}
  for key, value in pairs(values) do
    if core.is_tensor(value) then
      value = fn(value)
    elseif type(value) == "table" and getmetatable(value) == nil then
      value = map(value, fn)
    end
    out[key] = value
  end
  return out
end

local function content(x)
  if x.is_meta then return ("meta %s %s"):format(x.shape, x.dtype) end
  local values = x:detach():cpu():reshape(-1):totable()
  for i = 1, #values do values[i] = tostring(values[i]) end
  return ("%s %s %s %s: %s"):format(x.device, x.shape, x.dtype, x.requires_grad,
    table.concat(values, " "))
end

local function contents(values, out)
  out = out or {}
  for key, value in pairs(values) do
    if core.is_tensor(value) then
      out[#out + 1] = tostring(key) .. " " .. content(value)
    elseif type(value) == "table" and getmetatable(value) == nil then
      contents(value, out)
    end
  end
  table.sort(out)
  return table.concat(out, "\n")
end

local function strided(x)
  local last = x:dim() + 1
  return lt.stack({x, x}, last):select(last, 1)
end

local function leaf(x)
  if not x:is_floating_point() then return x end
  return x:detach():requires_grad_()
end

local function total_of(...)
  local total
  for i = 1, select("#", ...) do
    local y = select(i, ...)
    for _, t in ipairs(type(y) == "table" and y or {y}) do
      if core.is_tensor(t) and t.requires_grad then
        local s = (t * t):sum()
        total = total and total + s or s
      end
    end
  end
  return total
end

local function backward_of(f)
  return function(...)
    local total = total_of(f(...))
    if total then total:backward() end
  end
end

local function leaves_of(values, out)
  for _, value in pairs(values) do
    if core.is_tensor(value) then
      if value.requires_grad and value.is_leaf then out[#out + 1] = value end
    elseif type(value) == "table" and getmetatable(value) == nil then
      leaves_of(value, out)
    end
  end
  return out
end

local function twice_of(f)
  return function(...)
    local inputs, total = leaves_of({...}, {}), total_of(f(...))
    if not total then return end
    local grads = lt.autograd.grad(total, inputs, {create_graph = true, allow_unused = true})
    local again = total_of(table.unpack(grads, 1, #inputs))
    if again then again:backward() end
  end
end

-- ---- steps --------------------------------------------------------------------------------------

-- {name, make, most}: make() returns a function and its arguments (packed); `most` of Lua's
-- allocations fail, where that is another number than for the others.
local steps = {}

local function step(name, make, most)
  steps[#steps + 1] = {name = name, make = make, most = most}
end
local function simple(name, f) step(name, function() return f, {n = 0} end) end

-- "lt.add(a, b)", "a:add(b)" -> a function that returns lt.add, a, b anew at each call
local function parse(text)
  local depth, open = 0, nil
  for i = #text, 1, -1 do
    local c = text:sub(i, i)
    depth = depth + (c == ")" and 1 or c == "(" and -1 or 0)
    if depth == 0 then
      open = i
      break
    end
  end
  local arguments = text:sub(open + 1, -2)
  local self, name = text:sub(1, open - 1):match "^(.*):([%w_]+)$"
  if arguments ~= "" then arguments = ", " .. arguments end
  local code = self and ("return X[%q], %s%s"):format(name, self, arguments)
    or ("return %s%s"):format(text:sub(1, open - 1), arguments)
  return assert(load(code, "=example", "t", {lt = lt, X = X}))
end

local function call_of(example)
  local packed = table.pack(example())
  return packed[1], table.move(packed, 2, packed.n, 1, {n = packed.n - 1})
end

-- The call of an example with other operands and as a part of another call; nil when it cannot be
-- made at all (an op without a kernel there).
local function variant(name, example, operands, around)
  local function make()
    local f, arguments = call_of(example)
    if operands then arguments = map(arguments, operands) end
    return around and around(f) or f, arguments
  end
  local ok, f, arguments = pcall(make)
  if ok and pcall(f, table.unpack(arguments, 1, arguments.n)) then step(name, make) end
end

local function op_steps(op)
  local text = examples.of(op)
  if not text then return end
  local example = parse(text)
  local name = "op " .. op.name
  variant(name, example)
  variant(name .. " on views", example, strided)
  if op.variants.in_place then
    local method = X[op.name .. "_"]
    variant(name .. "_", example, nil, function() return method end)
    variant(name .. "_ on views", example, strided, function() return method end)
    variant(name .. "_ on a result", example, function(x) return leaf(x) * 1 end,
      function() return method end)
    variant(name .. "_ and its gradient", example, leaf, function()
      return backward_of(function(x, ...) return method(x:clone(), ...) end)
    end)
  end
  if op.has_gradient or op.composite then
    variant(name .. " and its gradient", example, leaf, backward_of)
    variant(name .. " and its second gradient", example, leaf, twice_of)
  end
  variant(name .. " on meta", example, function(x) return x:to "meta" end)
  if has_cuda then variant(name .. " on cuda", example, function(x) return x:to "cuda:0" end) end
end

local function indexing_steps()
  local keys = {1, "2:3", "::2", "...", {1, "1:2"}, {"newaxis", 2}, lt.tensor{1, 2},
    lt.tensor{true, false, true}, {":", lt.tensor{1, 1}}, {lt.tensor{1, 2}, lt.tensor{2, 1}}}
  for i, key in ipairs(keys) do
    local function operands() return {lt.randn{3, 3, requires_grad = true}, key, n = 2} end
    step("index " .. i, function() return function(x, k) return x[k] end, operands() end)
    step("index " .. i .. " and its gradient", function()
      return backward_of(function(x, k) return x[k] end), operands()
    end)
    step("assignment to index " .. i, function()
      return function(x, k) x[k] = 7 end, {lt.randn(3, 3), key, n = 2}
    end)
    step("assignment of a tensor to index " .. i, function()
      local x = lt.randn(3, 3)
      return function(y, k, v) y[k] = v end, {x, key, lt.zeros_like(x[key]), n = 3}
    end)
  end
end

local function printing_steps()
  for _, dtype in ipairs{"float32", "int64", "bool", "bfloat16"} do
    step("print " .. dtype, function() return tostring, {lt.ones{2, 3, dtype = dtype}, n = 1} end)
    step("totable " .. dtype, function()
      return X.totable, {lt.ones{2, 3, dtype = dtype}, n = 1}
    end)
    step("tensor " .. dtype, function()
      return lt.tensor, {{{1, 0}, {1, 1}}, {dtype = dtype}, n = 2}
    end)
  end
  step("item", function() return X.item, {lt.ones(1), n = 1} end)
  step("summary", function() return X.summary, {lt.ones(3), n = 1} end)
end

local files = {} -- to be removed

local function file_steps()
  local function saved(save, ...)
    local path = os.tmpname()
    files[#files + 1] = path
    save(path, ...)
    return path
  end
  local function loading(name, load_file, save, ...)
    local values = table.pack(...)
    local path = saved(save, table.unpack(values, 1, values.n))
    step("load_" .. name, function() return load_file, {path, n = 1} end)
    step("save_" .. name, function()
      return save, {path, table.unpack(values, 1, values.n)}
    end)
  end
  loading("npy", lt.load_npy, lt.save_npy, lt.ones(2, 3))
  loading("safetensors", lt.load_safetensors, lt.save_safetensors,
    {a = lt.ones(2), b = lt.zeros{2, dtype = "int64"}}, {note = "text"})
  local idx = saved(function(path)
    local file = assert(io.open(path, "wb"))
    file:write "\0\0\8\1\0\0\0\3abc"
    file:close()
  end)
  step("load_idx", function() return lt.load_idx, {idx, n = 1} end)
end

local function autograd_steps()
  local function leaf_of(...) return lt.randn{..., requires_grad = true} end
  step("hook", function()
    return function(x)
      local y = x * 2
      y:register_hook(function(g) return g * 2 end)
      y:sum():backward()
    end, {leaf_of(3), n = 1}
  end)
  step("hooks on many tensors", function() -- the table that remembers their boxes must grow
    local leaves = {n = 60}
    for i = 1, leaves.n do leaves[i] = leaf_of(1) end
    return function(...)
      for i = 1, select("#", ...) do X.register_hook(select(i, ...), tostring) end
    end, leaves
  end, 700)
  step("grad with respect to two", function()
    local function gradients(x, y) return lt.autograd.grad((x * y):sum(), {x, y}) end
    return gradients, {leaf_of(3), leaf_of(3), n = 2}
  end)
  step("backward of two", function()
    return function(x) lt.autograd.backward({(x * 2):sum(), x:exp():sum()}) end, {leaf_of(3), n = 1}
  end)
  step("retain_grad", function()
    return function(x)
      local y = x * 2
      y:retain_grad()
      y:sum():backward()
      return y.grad
    end, {leaf_of(3), n = 1}
  end)
  local Double = lt.autograd.Function:extend "Double"
  function Double.forward(ctx, x)
    ctx:save_for_backward(x)
    return x * 2
  end
  function Double.backward(ctx, g)
    local x = ctx:saved()
    return g * 2 + x * 0
  end
  step("function in Lua", function() return backward_of(Double), {leaf_of(3), n = 1} end)
  step("function in Lua, second gradient", function()
    return twice_of(Double), {leaf_of(3), n = 1}
  end)
  local Cycle = lt.autograd.Function:extend "Cycle" -- its context holds its results
  function Cycle.forward(ctx, x)
    ctx.results = {x * 2, x + 1}
    return table.unpack(ctx.results)
  end
  function Cycle.backward(_, g, h) return g * 2 + h end
  step("function in Lua that keeps its results", function()
    return backward_of(Cycle), {leaf_of(3), n = 1}
  end, 300)
  step("write into a view", function()
    return function(x)
      local y = x * 2
      y[1]:mul_(3)
      y:sum():backward()
    end, {leaf_of(3), n = 1}
  end)
end

-- Arguments of a class whose signature asks for sizes and modules.
local function arguments_for(signature)
  local values = {}
  for i, p in ipairs(signature and signature.params or {}) do
    if not p.required then break end
    values[i] = (p.type:match "size" or p.type:match "count") and 3 or nil
    if p.type:match "table" or p.type:match "list" then values[i] = {lt.nn.Linear(3, 3)} end
  end
  return values
end

local function library_steps()
  local signatures = require "lutra.repl.complete.signatures"
  local names = {}
  for name, class in pairs(lt.nn) do
    if type(class) == "table" and getmetatable(class) and getmetatable(class).__call then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local class = lt.nn[name]
    local ok, values = pcall(function() return arguments_for(signatures.of(class, name)) end)
    values = ok and values or {}
    local function build() return class(table.unpack(values)) end
    local built, size = pcall(function()
      local module = build()
      if name:match "^Lazy" or not lt.nn.is_module(module) then return 0 end
      return module:num_parameters()
    end)
    if built and size < 1e5 then -- each step builds the module many times
      simple("nn." .. name, build)
      local function forward()
        local module = build()
        local inputs = {lt.randn{3, 3, requires_grad = true}}
        if name == "Embedding" then inputs[1] = lt.tensor{1, 2} end
        if name:match "Loss$" then inputs[2] = lt.tensor{1, 2, 3} end
        if name:match "MSE" or name:match "L1" then inputs[2] = lt.randn(3, 3) end
        inputs.n = #inputs
        return backward_of(function(...) return module(...) end), inputs
      end
      local made, f, inputs = pcall(forward)
      if made and pcall(f, table.unpack(inputs)) then
        step("nn." .. name .. " and its gradient", forward)
      end
    end
  end
  local optimizers = {}
  for name in pairs(lt.optim) do
    if name ~= "Optimizer" then optimizers[#optimizers + 1] = name end
  end
  table.sort(optimizers)
  for _, name in ipairs(optimizers) do
    step("optim." .. name, function()
      return function(p)
        local optimizer = lt.optim[name]({p}, {lr = 0.1})
        optimizer:step(function()
          optimizer:zero_grad()
          local loss = p:sum()
          loss:backward()
          return loss
        end)
        return optimizer:state_dict()
      end, {lt.randn{2, 3, requires_grad = true}, n = 1, changes = true}
    end)
  end
  simple("state_dict", function()
    local module = lt.nn.Linear(2, 2)
    module:load_state_dict(module:state_dict())
  end)
  simple("DataLoader", function()
    local set = lt.data.TensorDataset(lt.ones(4, 2), lt.arange(4))
    for _ in lt.data.DataLoader(set, {batch_size = 2, shuffle = true}):iter() do end
  end)
  simple("Generator", function() return lt.randn{2, generator = lt.Generator(1)} end)
  simple("no_grad", function() return lt.no_grad(function() return lt.ones(2) * 2 end) end)
  simple("profile", function() return lt.profiler.profile(function() return lt.ones(2) + 1 end) end)
  simple("trace", function() return lt.placement.trace(function() return lt.ones(2) + 1 end) end)
  simple("guard", function()
    return lt.placement.guard("disallow", function() return lt.ones(2) end)
  end)
  if not has_cuda then return end
  simple("to another device", function() return (lt.ones(3):to "cuda:0"):to "cuda:1":cpu() end)
  simple("stream", function()
    local stream, event = lt.cuda.Stream(), lt.cuda.Event()
    lt.accelerator.with_stream(stream, function() return lt.ones{3, device = "cuda:0"} * 2 end)
    event:record()
    event:synchronize()
  end)
  simple("pinned memory", function()
    return lt.ones(3):pin_memory():to("cuda:0", {non_blocking = true})
  end)
  simple("memory_summary", function() return lt.cuda.memory_summary() end)
  simple("memory_snapshot", function() return lt.cuda.memory_snapshot() end)
end

-- ---- running ------------------------------------------------------------------------------------

local problems -- of the step that runs

local function problem(text)
  if #problems < 3 then problems[#problems + 1] = text end
end

local function live()
  collectgarbage()
  return fuzz.live()
end
local alive -- after the last attempt

local function judge(message, name, k)
  if type(message) ~= "string" then
    return problem(("allocation %d: an error that is %s"):format(k, type(message)))
  end
  if message:find "not enough memory" then return end
  if not message:find "[%w_]: " or message:find "lib/lutra[%w_/]*%.lua:%d+: attempt to"
    or not (message:find "memory" or name:find "^load" or name:find "^save") then
    problem(("allocation %d: the error is %q"):format(k, message))
  end
end

-- Makes the call with allocation k failing; false when it has fewer.
local function attempt(s, k)
  lt.manual_seed(1)
  local f, arguments = s.make()
  local before = contents(arguments)
  fuzz.record(("allocation %d of %s"):format(k, s.name))
  fuzz.arm(kind, k)
  local results = table.pack(fuzz.call(f, table.unpack(arguments, 1, arguments.n)))
  local _, _, fired = fuzz.counts()
  if not results[1] then
    judge(results[2], s.name, k)
    local after = contents(arguments)
    if after ~= before and not arguments.changes then
      problem(("allocation %d: the call failed with %q and changed its operands from\n%s\nto\n%s")
        :format(k, tostring(results[2]), before, after))
    end
    local ok, message = pcall(f, table.unpack(arguments, 1, arguments.n))
    if not ok and fired then
      problem(("allocation %d: the next call fails: %s"):format(k, message))
    end
    if not fired then problem("the call fails without a fault: " .. tostring(results[2])) end
  end
  return fired
end

-- What stays allocated may be a cache; what grows with each repetition is lost.
local function attempt_without_loss(s, k)
  local before, fired = alive or live(), attempt(s, k)
  alive = live()
  local grown = alive - before
  if grown <= 0 or not fuzz.sanitized then return fired end
  local function without_caches()
    collectgarbage()
    if has_cuda then lt.cuda.empty_cache() end
    return live()
  end
  for _ = 1, 3 do
    before = without_caches()
    attempt(s, k)
    alive = without_caches()
    if alive <= before then return fired end
  end
  problem(("allocation %d: %d allocations are lost"):format(k, grown))
  return fired
end

local most = options.lua and 40 or 2000 -- Lua allocates much, and its places are few

local function run(s)
  problems = {}
  fuzz.case("-- " .. s.name)
  local k = 1
  while k <= (s.most or most) and attempt_without_loss(s, k) do
    k = k + 1
    if #problems >= 3 then break end
  end
  return k - 1
end

for _, op in ipairs(core.ops()) do op_steps(op) end
indexing_steps()
printing_steps()
file_steps()
autograd_steps()
library_steps()

local first, passed, failed, skipped, faults = fuzz.clock(), 0, 0, 0, 0
for _, s in ipairs(steps) do
  local asked = not options.only or s.name:find(options.only)
  if asked and options.seconds and fuzz.clock() - first > options.seconds then
    skipped = skipped + 1
  elseif asked then
    faults = faults + run(s)
    if #problems == 0 then
      passed = passed + 1
    else
      failed = failed + 1
      fuzz.report(("FAILED %s\n  %s\n"):format(s.name,
        (table.concat(problems, "\n"):gsub("\n", "\n  "))))
    end
  end
end
if fuzz.sanitized and fuzz.leaks() then failed = failed + 1 end
fuzz.report(("%d allocations failed in %d steps (%s), %.0f seconds\n"):format(faults,
  passed + failed, kind, fuzz.clock() - first))
fuzz.report(("%d passed, %d failed, %d skipped\n"):format(passed, failed, skipped))
for _, path in ipairs(files) do os.remove(path) end
os.exit(failed == 0, true)
