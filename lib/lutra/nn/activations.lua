--- Activations: layers without parameters, one row each.
--
-- Idea: an activation is an op with its options, so a row of the table below is the
-- whole of it: the class's name, its signature, and the op that computes it.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"
local numbers = require "lutra.internal.numbers"

local activations = {}

-- Defines one activation; `names` are its options, in order, for printing. Behind them the
-- signature may have `inplace`: the activation overwrites its input.
local function define(name, signature, names, compute)
  local class = Module:extend(name)
  local parse = signature and args.signature(name, signature)

  function class:init(...)
    if not parse then return Module.init(self, ...) end
    local values = {parse(...)}
    for i, option in ipairs(names) do self[option] = values[i] end
    self.inplace = values[#names + 1]
  end

  function class:forward(x) return compute(self, self:check_tensor(x)) end

  function class:extra_repr()
    local parts = {}
    for _, option in ipairs(names) do
      parts[#parts + 1] = ("%s=%s"):format(option, numbers.text(self[option]))
    end
    if self.inplace then parts[#parts + 1] = "inplace=true" end
    return table.concat(parts, ", ")
  end

  activations[name] = class
end

--- nn.Identity(): what comes in.
define("Identity", nil, {}, function(_, x) return x end)
--- nn.ReLU{inplace = false}: max(x, 0).
define("ReLU", "bool inplace = false", {}, function(self, x)
  return self.inplace and x:relu_() or lt.relu(x)
end)
--- nn.Tanh(): the hyperbolic tangent.
define("Tanh", nil, {}, function(_, x) return lt.tanh(x) end)
--- nn.Sigmoid(): 1 / (1 + e^-x).
define("Sigmoid", nil, {}, function(_, x) return lt.sigmoid(x) end)
--- nn.SiLU{inplace = false}: x * sigmoid(x), also called swish.
define("SiLU", "bool inplace = false", {}, function(self, x)
  return self.inplace and x:silu_() or lt.silu(x)
end)
--- nn.GELU{approximate = "none"}: x * Phi(x), Phi the normal distribution function; "tanh" is
-- faster.
define("GELU", "'none'|'tanh' approximate = 'none'", {"approximate"}, function(self, x)
  return lt.gelu(x, {approximate = self.approximate})
end)
--- nn.LeakyReLU{negative_slope = 0.01, inplace = false}: x, or x * negative_slope where x is
-- negative.
define("LeakyReLU", "float negative_slope = 0.01, bool inplace = false", {"negative_slope"},
  function(self, x)
    local slope = self.negative_slope
    return self.inplace and x:leaky_relu_(slope) or lt.leaky_relu(x, slope)
  end)
--- nn.Softmax{dim = -1}: e^x / sum(e^x) along dim.
define("Softmax", "dim dim = -1", {"dim"}, function(self, x) return lt.softmax(x, self.dim) end)
--- nn.LogSoftmax{dim = -1}: log(softmax(x)) along dim, without overflow.
define("LogSoftmax", "dim dim = -1", {"dim"}, function(self, x)
  return lt.log_softmax(x, self.dim)
end)

return activations
