--- Kullback-Leibler divergences: the dispatch by classes. The formulas are in kl_same.lua (of one
-- class) and kl_mixed.lua (of two).

local args = require "lutra.internal.args"

local kl = {}

local registered = {} -- class of p -> class of q -> function

-- Returns the names of the ancestors of a class and the classes, the nearest first.
local function ancestors(class)
  local list = {}
  while type(class) == "table" and rawget(class, "__name") do
    list[#list + 1] = class
    local meta = getmetatable(class)
    class = type(meta) == "table" and rawget(meta, "__index")
  end
  return list
end

-- Returns the function for two classes: the one registered for the nearest class of p, then of q,
-- else a formula of the library, which are listed by name.
local function find(type_p, type_q)
  for _, p in ipairs(ancestors(type_p)) do
    for _, q in ipairs(ancestors(type_q)) do
      local fn = registered[p] and registered[p][q]
        or require("lutra.distributions.kl_same")[p.__name .. " " .. q.__name]
        or require("lutra.distributions.kl_mixed")[p.__name .. " " .. q.__name]
      if fn then return fn end
    end
  end
end

local function is_distribution(x) return type(x) == "table" and x.batch_shape ~= nil end

--- Returns the divergence of two distributions; see lt.distributions.
function kl.kl_divergence(p, q)
  args.expect(is_distribution(p), "kl_divergence", "a distribution", "p", p)
  args.expect(is_distribution(q), "kl_divergence", "a distribution", "q", q)
  local fn = find(getmetatable(p), getmetatable(q))
  args.check(fn, "kl_divergence: cannot compute the divergence of %s from %s\n"
    .. "hint: lt.distributions.register_kl(P, Q, function(p, q) ... end)", p.__name, q.__name)
  return fn(p, q)
end

local function is_class(x)
  return type(x) == "table" and type(rawget(x, "__name")) == "string" and x.extend ~= nil
end

--- Registers a function for two classes; see lt.distributions.
function kl.register_kl(type_p, type_q, fn)
  args.expect(is_class(type_p), "register_kl", "a class of distributions", "type_p", type_p)
  args.expect(is_class(type_q), "register_kl", "a class of distributions", "type_q", type_q)
  args.expect(args.is_callable(fn), "register_kl", "a function", "fn", fn)
  registered[type_p] = registered[type_p] or {}
  registered[type_p][type_q] = fn
end

return kl
