--- nn.Conv1d, Conv2d, Conv3d and nn.ConvTranspose1d, ConvTranspose2d, ConvTranspose3d.

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"

-- Returns a list of n integers: one for each dimension.
local function each(class, name, value, n)
  if type(value) == "number" then value = {value} end
  args.check(#value == 1 or #value == n,
    "%s: expected an integer or %d of them for argument '%s', got %d", class, n, name, #value)
  local list = {}
  for i = 1, n do list[i] = math.tointeger(value[#value == 1 and 1 or i]) end
  return list
end

local function text(list)
  local first = list[1]
  for _, v in ipairs(list) do
    if v ~= first then return "{" .. table.concat(list, ", ") .. "}" end
  end
  return tostring(first)
end

-- The modes of F.pad; any other padding is with zeros.
local modes = {reflect = true, replicate = true, circular = true}

-- What the classes share: parameters, their initial values, the printed form.
local Convolution = Module:extend "Convolution"

--- Draws new values for weight and bias from their initial distributions: kaiming_uniform_ with a =
-- sqrt(5), and uniform between -b and b, b = 1 / sqrt(fan_in), as in PyTorch.
function Convolution:reset_parameters()
  if self.weight:numel() == 0 then return end
  init.kaiming_uniform_(self.weight, math.sqrt(5))
  if self.bias then
    local fan_in = self.weight:numel() // self.weight:size(1)
    local bound = 1 / math.sqrt(fan_in)
    init.uniform_(self.bias, -bound, bound)
  end
end

-- Creates the parameters of a layer whose numbers are set.
local function set_up(self, class, n, bias, options)
  local groups = self.groups
  args.check(groups >= 1 and self.in_channels % groups == 0 and self.out_channels % groups == 0,
    "%s: expected in_channels and out_channels that are multiples of groups, got %d, %d and %d",
    class, self.in_channels, self.out_channels, groups)
  local shape = self.transposed and {self.in_channels, self.out_channels // groups}
    or {self.out_channels, self.in_channels // groups}
  for i = 1, n do shape[2 + i] = self.kernel_size[i] end
  self.weight = lt.nn.Parameter(lt.empty(shape, options))
  self:register_parameter("bias",
    bias and lt.nn.Parameter(lt.empty({self.out_channels}, options)) or nil)
  self:reset_parameters()
end

function Convolution:extra_repr()
  local s = {("%d, %d, kernel_size=%s, stride=%s"):format(self.in_channels,
    self.out_channels, text(self.kernel_size), text(self.stride))}
  local function add(name, value, default)
    if value ~= default then s[#s + 1] = name .. "=" .. value end
  end
  local padding = self.padding
  add("padding", type(padding) == "string" and padding or text(padding), "0")
  add("dilation", text(self.dilation), "1")
  if self.transposed then add("output_padding", text(self.output_padding), "0") end
  add("groups", tostring(self.groups), "1")
  add("bias", tostring(self.bias ~= nil), "true")
  if modes[self.padding_mode] then s[#s + 1] = "padding_mode=" .. self.padding_mode end
  return table.concat(s, ", ")
end

-- Defines nn.Conv<n>d.
local function define(class, n)
  local Layer = Convolution:extend(class)
  local convolve = lt[("conv%dd"):format(n)]
  Layer._options = "int(>=0) out_channels, ints kernel_size, ints stride = 1, "
    .. "'same'|'valid'|ints padding = 0, ints dilation = 1, int groups = 1, bool bias = true, "
    .. "'zeros'|'reflect'|'replicate'|'circular' padding_mode = 'zeros', device? device = nil, "
    .. "dtype? dtype = nil"
  local parse = args.signature(class, "int(>=0) in_channels, " .. Layer._options)

  function Layer:init(...)
    local inputs, outputs, kernel, stride, padding, dilation, groups, bias, mode, device, dtype =
      parse(...)
    self.in_channels, self.out_channels, self.groups = inputs, outputs, groups
    self.kernel_size = each(class, "kernel_size", kernel, n)
    self.stride = each(class, "stride", stride, n)
    self.dilation = each(class, "dilation", dilation, n)
    self.padding = type(padding) == "string" and padding or each(class, "padding", padding, n)
    args.check(padding ~= "same" or math.max(table.unpack(self.stride)) == 1,
      "%s: expected stride 1 for padding = \"same\", got %s", class, text(self.stride))
    self.padding_mode, self.transposed = mode, false
    set_up(self, class, n, bias, {device = device, dtype = dtype})
  end

  -- The sizes to pad on both sides of each dimension, from the last one on.
  local function margins(self)
    local list = {}
    for i = n, 1, -1 do
      local total = self.dilation[i] * (self.kernel_size[i] - 1)
      local before = self.padding == "same" and total // 2 or self.padding == "valid" and 0
        or self.padding[i]
      list[#list + 1] = before
      list[#list + 1] = self.padding == "same" and total - before or before
    end
    return list
  end

  function Layer:forward(x)
    self:check_tensor(x)
    local padding = self.padding
    if modes[self.padding_mode] then
      x, padding = lt.F.pad(x, margins(self), self.padding_mode), 0
    end
    return convolve(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
  end

  return Layer
end

--- nn.Conv1d(in_channels, out_channels, kernel_size, {stride = 1, padding = 0, dilation = 1, groups
-- = 1, bias = true, padding_mode = "zeros", device, dtype}): convolution of {N, C, L} or {C, L};
-- `padding` may be "same" or "valid", padding_mode "reflect", "replicate" or "circular". weight
-- {out_channels, in_channels / groups, kernel_size}.
local Conv1d = define("Conv1d", 1)

--- nn.Conv2d(in_channels, out_channels, kernel_size, ...): of {N, C, H, W} or {C, H, W}.
local Conv2d = define("Conv2d", 2)

--- nn.Conv3d(in_channels, out_channels, kernel_size, ...): of {N, C, D, H, W} or {C, D, H, W}.
local Conv3d = define("Conv3d", 3)

-- Defines nn.ConvTranspose<n>d.
local function define_transpose(class, n)
  local Layer = Convolution:extend(class)
  local convolve = lt[("conv_transpose%dd"):format(n)]
  Layer._options = "int(>=0) out_channels, ints kernel_size, ints stride = 1, ints padding = 0, "
    .. "ints output_padding = 0, int groups = 1, bool bias = true, ints dilation = 1, "
    .. "'zeros' padding_mode = 'zeros', device? device = nil, dtype? dtype = nil"
  local parse = args.signature(class, "int(>=0) in_channels, " .. Layer._options)

  function Layer:init(...)
    local inputs, outputs, kernel, stride, padding, more, groups, bias, dilation, mode, device,
      dtype = parse(...)
    self.in_channels, self.out_channels, self.groups = inputs, outputs, groups
    self.kernel_size = each(class, "kernel_size", kernel, n)
    self.stride = each(class, "stride", stride, n)
    self.padding = each(class, "padding", padding, n)
    self.output_padding = each(class, "output_padding", more, n)
    self.dilation = each(class, "dilation", dilation, n)
    self.padding_mode, self.transposed = mode, true
    set_up(self, class, n, bias, {device = device, dtype = dtype})
  end

  -- The output_padding that gives the result these last sizes.
  local function padding_for(self, x, size)
    if not size then return self.output_padding end
    local list = {}
    for i = 1, n do
      local wanted = size[#size - n + i]
      local least = (x:size(x.ndim - n + i) - 1) * self.stride[i] - 2 * self.padding[i]
        + self.dilation[i] * (self.kernel_size[i] - 1) + 1
      args.check(wanted and wanted >= least and wanted < least + self.stride[i],
        "%s: expected sizes from %d to %d in dimension %d for argument 'output_size', got %s",
        class, least, least + self.stride[i] - 1, x.ndim - n + i, tostring(wanted))
      list[i] = wanted - least
    end
    return list
  end

  function Layer:forward(x, output_size)
    self:check_tensor(x)
    return convolve(x, self.weight, self.bias, self.stride, self.padding,
      padding_for(self, x, output_size), self.groups, self.dilation)
  end

  return Layer
end

--- nn.ConvTranspose1d(in_channels, out_channels, kernel_size, {stride = 1, padding = 0,
-- output_padding = 0, groups = 1, bias = true, dilation = 1, padding_mode = "zeros", device,
-- dtype}): transposed convolution of {N, C, L} or {C, L}; forward also takes the sizes of the
-- result. weight {in_channels, out_channels / groups, kernel_size}.
local ConvTranspose1d = define_transpose("ConvTranspose1d", 1)

--- nn.ConvTranspose2d(in_channels, out_channels, kernel_size, ...): of {N, C, H, W} or {C, H, W}.
local ConvTranspose2d = define_transpose("ConvTranspose2d", 2)

--- nn.ConvTranspose3d(in_channels, out_channels, kernel_size, ...): of {N, C, D, H, W}.
local ConvTranspose3d = define_transpose("ConvTranspose3d", 3)

return {
  Conv1d = Conv1d, Conv2d = Conv2d, Conv3d = Conv3d, ConvTranspose1d = ConvTranspose1d,
  ConvTranspose2d = ConvTranspose2d, ConvTranspose3d = ConvTranspose3d,
}
