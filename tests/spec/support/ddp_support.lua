--- What the specs of DistributedDataParallel share: nets and batches whose sums are exact, so that
-- several ranks compute what one process computes bit for bit.
--
-- Parameters are multiples of 1/4, inputs small integers, learning rate and divisors powers of two,
-- all in float64. A step at most doubles the number of bits of a parameter, plus those of the
-- inputs: after four steps from 3 bits they have fewer than 53, so all sums are exact in any order.

local ranks = require "ranks_support"

local support = {}

-- The text before each program.
local prelude = [[
local DDP = nn.parallel.DistributedDataParallel
local D = {dtype = "float64"}
local function integers(seed, most, shape)
  local g = lt.Generator(seed)
  return lt.randint(2 * most + 1, shape, {generator = g}):to("float64") - most
end
-- A net whose parameters are multiples of 1/4, the same on all ranks.
local function exact(net, seed)
  lt.no_grad(function()
    for p in net:parameters() do
      seed = seed + 1
      p:copy_(integers(seed, 3, p.shape) / 4)
    end
  end)
  return net
end
local function mlp(seed)
  return exact(nn.Sequential(nn.Linear(4, 6, D), nn.ReLU(), nn.Linear(6, 3, D)), seed or 1)
end
-- The part of this rank of n rows, or all rows.
local function rows(t, all)
  local n = t:size(1) // size
  return all and t or t:narrow(1, rank * n + 1, n)
end
local function loss(model, seed, all, n)
  n = n or 8
  local x, w = rows(integers(seed, 2, {n, 4}), all), rows(integers(seed + 1, 2, {n, 3}), all)
  return (model(x) * w):sum() / x:size(1)
end
local function check_equal(a, b, what)
  for name, p in a:named_parameters() do
    local q = b:get_parameter(name)
    assert(lt.equal(p, q), what .. ": " .. name .. " differs on rank " .. rank)
    assert((p.grad == nil) == (q.grad == nil), what .. ": a grad of " .. name)
    if p.grad then
      assert(lt.equal(p.grad, q.grad), what .. ": the grad of " .. name .. " on rank " .. rank
        .. ": " .. tostring(p.grad) .. tostring(q.grad))
    end
  end
end
local function fails(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "expected an error with " .. words)
  assert(tostring(message):find(words, 1, true), tostring(message) .. " has no " .. words)
  return message
end
local function with(module, options)
  local t = {module}
  for k, v in pairs(options or {}) do t[k] = v end
  return DDP(t)
end
]]

--- Runs the text `body` on `count` ranks.
function support.check(count, body, options)
  if not ranks.available() then return require("busted").pending "needs mpirun" end
  return ranks.check(count, prelude .. body, options)
end

return support
