--- Lazy layers: they take the number of inputs from the first input.
--
-- Invariant: until the first call, the parameters are empty tensors of shape {0}, with the dtype
-- and device that m:to() gives them; the first call gives them values, and the layer becomes one of
-- the ordinary class. The parameters keep their identity, so that an optimizer may be made before.

local args = require "lutra.internal.args"
local batch_norm = require "lutra.nn.batch_norm"
local convolution = require "lutra.nn.convolution"
local instance_norm = require "lutra.nn.instance_norm"
local Linear = require "lutra.nn.linear"

local lazies = {}

-- Makes a module one of the class `class`.
local function become(self, class)
  local meta = getmetatable(self)
  meta.__name, meta.__state.class = class.__name, class
  setmetatable(meta.__state.fields, class.__fields)
end

-- Returns the first parameter or buffer of the float dtype of a module.
local function first_tensor(self) return self:parameters()() or self:buffers()() end

-- Defines the lazy form of the class `Base`. `field` is the name of its number of inputs;
-- dim_of(x) returns the dimension of an input that has it, nil for a wrong number of dimensions,
-- which must be `dims`. `signature` is that of the
-- options, if it is not that of Base.
local function define(name, Base, field, dims, dim_of, signature)
  local class = Base:extend(name)
  class._becomes, class.__chunk = Base, debug.getinfo(1, "S").source
  local parse = args.signature(name, signature or Base._options)
  local places = {}
  for i, parameter in ipairs((args.describe(parse))) do places[parameter.name] = i end

  function class:init(...)
    local options = table.pack(parse(...))
    self._given = options
    Base.init(self, 0, table.unpack(options, 1, options.n))
    for p in self:parameters() do p:set_data(p:detach():new_empty(0)) end
  end

  --- Returns whether parameters or buffers do not have their shapes yet.
  function class:has_uninitialized_params()
    for p in self:parameters() do
      if p.ndim == 1 and p:numel() == 0 then return true end
    end
    for b in self:buffers() do
      if b.ndim == 1 and b:numel() == 0 then return true end
    end
    return false
  end

  --- layer:initialize_parameters(x): gives the parameters the shapes for the input x, and their
  -- initial values, as the first call does. Raises an error for a wrong number of dimensions.
  function class:initialize_parameters(x)
    self:check_tensor(x)
    local dim = dim_of(x)
    if not dim then
      self:fail("expected an input of %s dimensions, got %s", dims, tostring(x.shape))
    end
    local count, given, current = x:size(dim), self._given, first_tensor(self)
    if current then given[places.device], given[places.dtype] = current.device, current.dtype end
    local made = Base(count, table.unpack(given, 1, given.n))
    for key, p in made:named_parameters() do
      if self[key]:numel() == 0 then self[key]:set_data(p:detach()) end
    end
    for key, b in made:named_buffers() do
      if self[key]:numel() == 0 then self[key] = b end
    end
    self[field], self._given = count, nil
    if getmetatable(self).__state.class == class then become(self, Base) end
  end

  function class:forward(x, ...)
    if self._given then self:initialize_parameters(x) end
    return Base.forward(self, x, ...)
  end

  lazies[name] = class
end

-- The dimension of the channels of an input with n dimensions behind them, and at most one before.
local function channels_before(n)
  return function(x)
    return (x.ndim == n + 1 or x.ndim == n + 2) and x.ndim - n or nil
  end
end

local function define_convolution(name, n)
  define(name, convolution[name:sub(5)], "in_channels", ("%d or %d"):format(n + 1, n + 2),
    channels_before(n))
end

local function define_batch_norm(name, least, most)
  define(name, batch_norm[name:sub(5)], "num_features",
    least == most and tostring(least) or ("%d or %d"):format(least, most),
    function(x) return x.ndim >= least and x.ndim <= most and 2 or nil end)
end

-- As in PyTorch, affine and track_running_stats are true by default, which they are not in the
-- ordinary class.
local function define_instance_norm(name, n)
  local Base = instance_norm[name:sub(5)]
  define(name, Base, "num_features", ("%d or %d"):format(n + 1, n + 2), channels_before(n),
    (Base._options:gsub("= false", "= true")))
end

--- nn.LazyLinear(out_features, {bias = true, device, dtype}): an nn.Linear whose in_features is the
-- last size of the first input.
define("LazyLinear", Linear, "in_features", "1 or more", function(x)
  return x.ndim > 0 and -1 or nil
end)

--- nn.LazyConv1d(out_channels, kernel_size, ...): an nn.Conv1d whose in_channels is that of the
-- first input.
define_convolution("LazyConv1d", 1)
--- nn.LazyConv2d(out_channels, kernel_size, ...): an nn.Conv2d whose in_channels is that of the
-- first input.
define_convolution("LazyConv2d", 2)
--- nn.LazyConv3d(out_channels, kernel_size, ...): an nn.Conv3d whose in_channels is that of the
-- first input.
define_convolution("LazyConv3d", 3)
--- nn.LazyConvTranspose1d(out_channels, kernel_size, ...): an nn.ConvTranspose1d whose in_channels
-- is that of the first input.
define_convolution("LazyConvTranspose1d", 1)
--- nn.LazyConvTranspose2d(out_channels, kernel_size, ...): an nn.ConvTranspose2d whose in_channels
-- is that of the first input.
define_convolution("LazyConvTranspose2d", 2)
--- nn.LazyConvTranspose3d(out_channels, kernel_size, ...): an nn.ConvTranspose3d whose in_channels
-- is that of the first input.
define_convolution("LazyConvTranspose3d", 3)

--- nn.LazyBatchNorm1d{eps = 1e-5, ...}: an nn.BatchNorm1d whose num_features is that of the first
-- input.
define_batch_norm("LazyBatchNorm1d", 2, 3)
--- nn.LazyBatchNorm2d{eps = 1e-5, ...}: an nn.BatchNorm2d whose num_features is that of the first
-- input.
define_batch_norm("LazyBatchNorm2d", 4, 4)
--- nn.LazyBatchNorm3d{eps = 1e-5, ...}: an nn.BatchNorm3d whose num_features is that of the first
-- input.
define_batch_norm("LazyBatchNorm3d", 5, 5)

--- nn.LazyInstanceNorm1d{eps = 1e-5, momentum = 0.1, affine = true, track_running_stats = true,
-- ...}: an nn.InstanceNorm1d whose num_features is that of the first input.
define_instance_norm("LazyInstanceNorm1d", 1)
--- nn.LazyInstanceNorm2d{eps = 1e-5, momentum = 0.1, affine = true, track_running_stats = true,
-- ...}: an nn.InstanceNorm2d whose num_features is that of the first input.
define_instance_norm("LazyInstanceNorm2d", 2)
--- nn.LazyInstanceNorm3d{eps = 1e-5, momentum = 0.1, affine = true, track_running_stats = true,
-- ...}: an nn.InstanceNorm3d whose num_features is that of the first input.
define_instance_norm("LazyInstanceNorm3d", 3)

return lazies
