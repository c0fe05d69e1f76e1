--- The methods of nn.Module that change all parameters and buffers below: conversion to devices and
-- dtypes, training mode, gradients.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local walking = require "lutra.nn.module.walking"

local fail = args.fail
local state_of, own, collect = walking.state_of, walking.own, walking.collect

-- The methods of nn.Module that are defined here.
local Module = {}

--- Calls fn(module) on every module below, children first, then on this one; returns the module.
function Module:apply(fn)
  args.expect(args.is_callable(fn), "apply", "a function", "fn", fn)
  for child in self:children() do child:apply(fn) end
  fn(self)
  return self
end

--- m:train(mode = true): sets training mode, which Dropout reads, here and, by the children's own
-- train, below; returns the module.
function Module:train(mode)
  if mode == nil then mode = true end
  args.expect(type(mode) == "boolean", "train", "a boolean", "mode", mode)
  state_of(self).fields.training = mode
  for child in self:children() do child:train(mode) end
  return self
end

--- Sets evaluation mode here and below; returns the module.
function Module:eval() return self:train(false) end

--- m:requires_grad_(flag = true): sets whether the parameters here and below require grad; returns
-- the module.
function Module:requires_grad_(flag)
  if flag == nil then flag = true end
  for p in self:parameters() do p:requires_grad_(flag) end
  return self
end

local parse_zero = args.signature("zero_grad", "bool set_to_none = true")

--- Sets p.grad of every parameter to nil, which frees the gradients, or with set_to_none = false
-- fills them with zeros; returns the module.
function Module:zero_grad(...)
  local remove = parse_zero(...)
  for p in self:parameters() do
    if remove then
      p.grad = nil
    elseif p.grad then
      p.grad = p.grad:detach():zero_()
    end
  end
  return self
end

-- Replaces every parameter, gradient and buffer by convert(tensor, path); returns the module. All
-- are converted before the first is replaced, so that a failure leaves the module unchanged.
local function convert_all(self, convert, options)
  local changes, done = {}, {}
  lt.no_grad(function()
    for _, entry in ipairs(collect(self, "parameter", options or {})) do
      local path, p = entry[1], entry[2]
      changes[#changes + 1] =
        {p, convert(p:detach(), path), p.grad and convert(p.grad:detach(), path)}
    end
    for _, entry in ipairs(collect(self, "buffer",
      {every = true, recurse = (options or {}).recurse})) do
      done[entry[2]] = done[entry[2]] or convert(entry[2], entry[1])
    end
  end)
  for _, change in ipairs(changes) do
    local p, data, grad = table.unpack(change, 1, 3)
    p.grad = nil
    p:set_data(data)
    if grad then p.grad = grad end
  end
  for module in self:modules() do
    local fields = state_of(module).fields
    for name, buffer in own(module, "buffer") do fields[name] = done[buffer] or buffer end
  end
  return self
end

local dtypes = {
  float64 = "float", float32 = "float", float16 = "float", bfloat16 = "float",
  int64 = "integer", int32 = "integer", int16 = "integer", int8 = "integer",
  uint8 = "integer", bool = "bool",
}

local parse_to = args.signature("to",
  "device? device = nil, dtype? dtype = nil, bool non_blocking = false")

--- Moves parameters and buffers to a device, and converts those of a floating-point dtype to
-- `dtype`, a floating-point one; returns the module. m:to "cuda", m:to "float64", m:to{device = d,
-- dtype = t} and m:to(tensor), which gives both, are accepted. The parameters keep their identity,
-- so an optimizer made before remains valid. Raises an error for tensors without data (meta), and
-- then leaves the module unchanged.
function Module:to(...)
  local device, dtype, non_blocking = parse_to(...)
  if lt.is_tensor(device) then device, dtype = device.device, dtype or device.dtype end
  if type(device) == "string" and core._names_dtype(device) then device, dtype = nil, device end
  args.check(device or dtype, 'to: expected a device, a dtype or a tensor, got %s\n'
    .. 'hint: m:to "cuda"', select("#", ...) == 0 and "no value" or "nil")
  if device then device = args.device("to", device) end
  args.check(dtype == nil or dtypes[dtype] == "float",
    "to: expected a float dtype for argument 'dtype', got \"%s\"", tostring(dtype))
  return convert_all(self, function(t, path)
    if t.device == "meta" and device and device ~= "meta" then
      fail('to: cannot copy "%s" of %s from "meta": it has no data\n'
        .. "hint: m:to_empty(device), or m:load_state_dict(values, {assign = true})",
        path, self:type_name())
    end
    local new_dtype = dtypes[t.dtype] == "float" and dtype or t.dtype
    return t:to{device = device or t.device, dtype = new_dtype, non_blocking = non_blocking}
  end)
end

--- Moves parameters and buffers to the host; the same as m:to "cpu".
function Module:cpu() return self:to "cpu" end

local parse_cuda = args.signature("cuda", "device? device = nil")

--- Moves parameters and buffers to a CUDA device, given by number (from 0) or name, by default the
-- current one; returns the module.
function Module:cuda(...)
  local device = parse_cuda(...)
  return self:to(core._accelerator.device("cuda", device, "cuda"))
end

--- Moves parameters and buffers to Apple's GPU; the same as m:to "mps".
function Module:mps() return self:to "mps" end

--- Converts floating-point parameters and buffers to "float32"; returns the module.
function Module:float() return self:to{dtype = "float32"} end
--- Converts floating-point parameters and buffers to "float64"; returns the module.
function Module:double() return self:to{dtype = "float64"} end
--- Converts floating-point parameters and buffers to "float16"; returns the module.
function Module:half() return self:to{dtype = "float16"} end
--- Converts floating-point parameters and buffers to "bfloat16"; returns the module.
function Module:bfloat16() return self:to{dtype = "bfloat16"} end

local parse_type = args.signature("type", "dtype dst_type")

--- Converts all parameters and buffers, those of integers too, to a dtype; returns the module.
function Module:type(...)
  local dtype = parse_type(...)
  return convert_all(self, function(t) return t:to{dtype = dtype} end)
end

--- Returns the module; its memory is shared between threads in any case. For programs that call it
-- before they start workers.
function Module:share_memory() return self end

local parse_to_empty = args.signature("to_empty", "device device, bool recurse = true")

--- Replaces the memory of every parameter and buffer by uninitialized memory on `device`, for a
-- module that was built on "meta"; load or initialize its values afterwards. Returns the module.
function Module:to_empty(...)
  local device, recurse = parse_to_empty(...)
  device = args.device("to_empty", device)
  return convert_all(self, function(t) return lt.empty_like(t, {device = device}) end,
    {recurse = recurse})
end

return {methods = Module}
