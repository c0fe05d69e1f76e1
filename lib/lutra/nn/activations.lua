--- Activations: functions of F as layers, nearly all elementwise and without parameters.
--
-- Each call of define() below gives the class's name, the signature of its options, and the
-- function. The input is a tensor of any shape and a floating-point dtype; the output has its
-- dtype and device, and, except for GLU, its shape. With `inplace`, a layer overwrites its input
-- and returns it.

local lt = require "lutra"
local args = require "lutra.internal.args"
local initializers = require "lutra.nn.initializers"
local layers = require "lutra.nn.layers"
local Module = require "lutra.nn.module"
local F = require "lutra.nn.functional"

local activations = {}

local INPLACE = "bool inplace = false"

-- Defines the class `name`, which calls the function `f` of F with its options. `row` is that of
-- layers.define.
local function define(name, signature, f, row)
  activations[name] = layers.define_function(name, signature, f, row)
end

--- nn.Identity(...): returns its input unchanged. Arguments are accepted and unused.
local Identity = Module:extend "Identity"
activations.Identity = Identity

--- Accepts any arguments.
function Identity.init() end

--- Returns its input, a tensor.
function Identity:forward(x) return self:check_tensor(x) end

--- nn.ReLU{inplace = false}: max(x, 0), elementwise. With `inplace`, overwrites its input.
define("ReLU", INPLACE, "relu")
--- nn.ReLU6{inplace = false}: x, limited to the range from 0 to 6.
define("ReLU6", INPLACE, "relu6")
--- nn.Tanh(): the hyperbolic tangent, elementwise.
define("Tanh", "", "tanh")
--- nn.Sigmoid(): 1 / (1 + exp(-x)), elementwise.
define("Sigmoid", "", "sigmoid")
--- nn.SiLU{inplace = false}: x * sigmoid(x), elementwise, also called swish. With `inplace`,
-- overwrites its input.
define("SiLU", INPLACE, "silu")
--- nn.Mish{inplace = false}: x * tanh(softplus(x)), elementwise (Misra 2019).
define("Mish", INPLACE, "mish")
--- nn.GELU{approximate = "none"}: x * Phi(x), elementwise, where Phi is the cumulative distribution
-- function of the standard normal distribution (Hendrycks and Gimpel 2016). "tanh" selects the
-- faster tanh approximation.
define("GELU", "'none'|'tanh' approximate = 'none'", "gelu")
--- nn.ELU{alpha = 1, inplace = false}: x where x > 0, alpha * (exp(x) - 1) elsewhere (Clevert et
-- al. 2016).
define("ELU", "float alpha = 1, " .. INPLACE, "elu")
--- nn.SELU{inplace = false}: 1.0507... * (x where x > 0, 1.6733... * (exp(x) - 1) elsewhere)
-- (Klambauer et al. 2017).
define("SELU", INPLACE, "selu")
--- nn.CELU{alpha = 1, inplace = false}: x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere
-- (Barron 2017).
define("CELU", "float alpha = 1, " .. INPLACE, "celu")
--- nn.LeakyReLU{negative_slope = 0.01, inplace = false}: x where x >= 0, negative_slope * x
-- elsewhere. With `inplace`, overwrites its input.
define("LeakyReLU", "float negative_slope = 0.01, " .. INPLACE, "leaky_relu")
--- nn.Hardtanh{min_val = -1, max_val = 1, inplace = false}: x, limited to the range from min_val
-- to max_val. The older options min_value and max_value take precedence. Raises an error unless
-- min_val < max_val.
define("Hardtanh", "float min_val = -1, float max_val = 1, " .. INPLACE
  .. ", float? min_value = nil, float? max_value = nil", "hardtanh", {
    printed = {"min_val", "max_val", "inplace"},
    prepare = function(self)
      self.min_val, self.max_val = self.min_value or self.min_val, self.max_value or self.max_val
      self.min_value, self.max_value = nil, nil
      args.check(self.min_val < self.max_val,
        "Hardtanh: expected a number above min_val = %s for argument 'max_val', got %s",
        self.min_val, self.max_val)
    end,
  })
--- nn.Hardsigmoid{inplace = false}: x / 6 + 1 / 2, limited to the range from 0 to 1.
define("Hardsigmoid", INPLACE, "hardsigmoid")
--- nn.Hardswish{inplace = false}: x * hardsigmoid(x) (Howard et al. 2019).
define("Hardswish", INPLACE, "hardswish")
--- nn.Hardshrink{lambd = 0.5}: x, or 0 where |x| <= lambd.
define("Hardshrink", "float lambd = 0.5", "hardshrink")
--- nn.Softshrink{lambd = 0.5}: x moved towards 0 by lambd, or 0 where |x| <= lambd.
define("Softshrink", "float(>=0) lambd = 0.5", "softshrink")
--- nn.Tanhshrink(): x - tanh(x), elementwise.
define("Tanhshrink", "", "tanhshrink")
--- nn.Softsign(): x / (1 + |x|), elementwise.
define("Softsign", "", "softsign")
--- nn.Softplus{beta = 1, threshold = 20}: log(1 + exp(beta * x)) / beta; x where beta * x is above
-- the threshold.
define("Softplus", "float beta = 1, float threshold = 20", "softplus")
--- nn.LogSigmoid(): log(sigmoid(x)), computed without overflow.
define("LogSigmoid", "", "logsigmoid")
--- nn.Threshold(threshold, value, {inplace = false}): x where it is above the threshold, `value`
-- elsewhere.
define("Threshold", "float threshold, float value, " .. INPLACE, "threshold")
--- nn.GLU{dim = -1}: a * sigmoid(b) of the halves a and b of the input along dimension `dim`, whose
-- size must be even (Dauphin et al. 2016).
define("GLU", "dim dim = -1", "glu")

--- nn.RReLU{lower = 1 / 8, upper = 1 / 3, inplace = false}: x where x >= 0, a * x elsewhere; in
-- training mode a is drawn for each element from lower to upper, in evaluation mode it is their
-- mean (Xu et al. 2015).
activations.RReLU = layers.define("RReLU", "float lower = 0.125, "
  .. "float upper = 0.3333333333333333, " .. INPLACE, function(self, x)
    return F.rrelu(x, self.lower, self.upper, self.training, self.inplace)
  end)

-- The dimension without an argument `dim`: PyTorch's choice, which is deprecated there.
local function softmax_of(f)
  return function(self, x) return F[f](x, self.dim) end
end

--- nn.Softmax(dim): exp(x) / sum(exp(x)) along dimension `dim`; each slice sums to 1. Without dim,
-- as F.softmax.
activations.Softmax = layers.define("Softmax", "dim? dim = nil", softmax_of "softmax")
--- nn.LogSoftmax(dim): log(softmax(x)) along dimension `dim`, computed without overflow. Without
-- dim, as F.softmax.
activations.LogSoftmax = layers.define("LogSoftmax", "dim? dim = nil", softmax_of "log_softmax")
--- nn.Softmin(dim): softmax(-x) along dimension `dim`. Without dim, as F.softmax.
activations.Softmin = layers.define("Softmin", "dim? dim = nil", softmax_of "softmin")
--- nn.Softmax2d(): softmax over the channels of {N, C, H, W} or {C, H, W}. Raises an error for
-- another number of dimensions.
activations.Softmax2d = layers.define("Softmax2d", "", function(self, x)
  if x.ndim ~= 3 and x.ndim ~= 4 then
    self:fail("expected an input of 3 or 4 dimensions, got %s", tostring(x.shape))
  end
  return F.softmax(x, -3)
end)

local PReLU = Module:extend "PReLU"
activations.PReLU = PReLU

local parse_prelu = args.signature("PReLU", "int(>=1) num_parameters = 1, float init = 0.25, "
  .. "device? device = nil, dtype? dtype = nil")

--- nn.PReLU{num_parameters = 1, init = 0.25, device, dtype}: x where x >= 0, weight * x elsewhere,
-- with one weight, or one for each channel (dimension 2). weight {num_parameters} starts at `init`
-- (He et al. 2015).
function PReLU:init(...)
  local count, start, device, dtype = parse_prelu(...)
  self.num_parameters, self.start = count, start
  self.weight = lt.nn.Parameter(lt.empty({count}, {device = device, dtype = dtype}))
  self:reset_parameters()
end

--- Sets weight to its initial value.
function PReLU:reset_parameters() initializers.constant_(self.weight, self.start) end

--- Maps {*}, or {N, num_parameters, *}, to the same shape.
function PReLU:forward(x) return F.prelu(self:check_tensor(x), self.weight) end

function PReLU:extra_repr() return ("num_parameters=%d"):format(self.num_parameters) end

return activations
