--- Activations: elementwise layers without parameters.
--
-- An activation is an op and its options. Each call of define() below gives the class's name, its
-- signature, and the op that computes it. The input is a tensor of any shape and a floating-point
-- dtype; the output has its shape, dtype and device.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"
local numbers = require "lutra.internal.numbers"

local activations = {}

-- Defines the class `name`. `names` are its options in order, as they are printed. The signature
-- may declare one more option, `inplace`: the activation overwrites its input and returns it.
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

--- nn.Identity(): returns its input unchanged.
define("Identity", nil, {}, function(_, x) return x end)
--- nn.ReLU{inplace = false}: max(x, 0), elementwise. With `inplace`, overwrites its input.
define("ReLU", "bool inplace = false", {}, function(self, x)
  return self.inplace and x:relu_() or lt.relu(x)
end)
--- nn.Tanh(): the hyperbolic tangent, elementwise.
define("Tanh", nil, {}, function(_, x) return lt.tanh(x) end)
--- nn.Sigmoid(): 1 / (1 + exp(-x)), elementwise.
define("Sigmoid", nil, {}, function(_, x) return lt.sigmoid(x) end)
--- nn.SiLU{inplace = false}: x * sigmoid(x), elementwise, also called swish. With `inplace`,
-- overwrites its input.
define("SiLU", "bool inplace = false", {}, function(self, x)
  return self.inplace and x:silu_() or lt.silu(x)
end)
--- nn.GELU{approximate = "none"}: x * Phi(x), elementwise, where Phi is the cumulative distribution
-- function of the standard normal distribution (Hendrycks and Gimpel 2016). "tanh" selects the
-- faster tanh approximation.
define("GELU", "'none'|'tanh' approximate = 'none'", {"approximate"}, function(self, x)
  return lt.gelu(x, {approximate = self.approximate})
end)
--- nn.LeakyReLU{negative_slope = 0.01, inplace = false}: x where x >= 0, negative_slope * x
-- elsewhere. With `inplace`, overwrites its input.
define("LeakyReLU", "float negative_slope = 0.01, bool inplace = false", {"negative_slope"},
  function(self, x)
    local slope = self.negative_slope
    return self.inplace and x:leaky_relu_(slope) or lt.leaky_relu(x, slope)
  end)
--- nn.Softmax{dim = -1}: exp(x) / sum(exp(x)) along dimension `dim`; each slice sums to 1.
define("Softmax", "dim dim = -1", {"dim"}, function(self, x) return lt.softmax(x, self.dim) end)
--- nn.LogSoftmax{dim = -1}: log(softmax(x)) along dimension `dim`, computed without overflow.
define("LogSoftmax", "dim dim = -1", {"dim"}, function(self, x)
  return lt.log_softmax(x, self.dim)
end)

return activations
