--- Dropouts: layers that zero elements or channels at random during training (Srivastava et al.
-- 2014). In evaluation mode they return their input unchanged.

local args = require "lutra.internal.args"
local layers = require "lutra.nn.layers"
local F = require "lutra.nn.functional"

local dropouts = {}

-- Defines the class `name`, which calls the function `f` of F in training mode.
local function define(name, f)
  dropouts[name] = layers.define(name, "float p = 0.5, bool inplace = false", function(self, x)
    if not self.training or self.p == 0 then return x end
    return F[f](x, self.p, true, self.inplace)
  end, {
    prepare = function(self)
      args.check(self.p >= 0 and self.p <= 1,
        "%s: expected a probability from 0 to 1 for argument 'p', got %g", name, self.p)
    end,
  })
end

--- nn.Dropout(p = 0.5, inplace = false): in training mode, sets each element to zero with
-- probability `p` and divides the others by 1 - p. With `inplace`, overwrites its input. In
-- evaluation mode, returns the input unchanged. Draws from the default generator of the tensor's
-- device. Raises an error unless 0 <= p <= 1.
define("Dropout", "dropout")
--- nn.Dropout1d(p = 0.5, inplace = false): zeroes whole channels of {N, C, L} or {C, L} with
-- probability `p` and divides the others by 1 - p. Options as for nn.Dropout.
define("Dropout1d", "dropout1d")
--- nn.Dropout2d(p = 0.5, inplace = false): zeroes whole channels of {N, C, H, W} with probability
-- `p` and divides the others by 1 - p. Options as for nn.Dropout.
define("Dropout2d", "dropout2d")
--- nn.Dropout3d(p = 0.5, inplace = false): zeroes whole channels of {N, C, D, H, W} with
-- probability `p` and divides the others by 1 - p. Options as for nn.Dropout.
define("Dropout3d", "dropout3d")
--- nn.AlphaDropout(p = 0.5, inplace = false): sets elements to SELU's limit for -inf with
-- probability `p`, and scales all so that mean and variance are kept (Klambauer et al. 2017).
define("AlphaDropout", "alpha_dropout")
--- nn.FeatureAlphaDropout(p = 0.5, inplace = false): nn.AlphaDropout of whole channels of {N, C,
-- ...}.
define("FeatureAlphaDropout", "feature_alpha_dropout")

return dropouts
