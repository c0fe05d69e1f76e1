--- lt.amp.custom_fwd, custom_bwd: autocast in the forward and backward of an autograd.Function.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local autocast = require "lutra.internal.autocast"
local tree = require "lutra.internal.tree"

local custom = {}

-- Returns the value with its floating-point tensors on a device type in a dtype.
local function cast(value, kind, dtype)
  return tree.map(value, function(t)
    local casts = t:is_floating_point() and t.dtype ~= "float64"
      and t.device:match "^%a+" == kind
    return casts and t:to{dtype = dtype} or t
  end)
end

local parse = args.signature("custom_fwd",
  "function fwd, string device_type = 'cuda', dtype? cast_inputs = nil")

--- custom_fwd(fwd, {device_type = "cuda", cast_inputs}): returns the function `forward` of an
-- autograd.Function for use under autocast: custom_bwd runs backward with the same settings. With
-- cast_inputs, floating-point tensors on this device type are cast to this dtype while autocast is
-- on, and forward runs without autocast.
function custom.custom_fwd(...)
  local fwd, kind, dtype = parse(...)
  return function(ctx, ...)
    local enabled, low, cache = core._autocast_of(kind)
    rawset(ctx, "_autocast_dtype", low)
    rawset(ctx, "_autocast_cache", cache)
    rawset(ctx, "_autocast_enabled", enabled and dtype == nil)
    if not dtype or not enabled then return fwd(ctx, ...) end
    local list = table.pack(...)
    for i = 1, list.n do list[i] = cast(list[i], kind, dtype) end
    return autocast.with(core._autocast_with(kind, false), fwd, ctx, table.unpack(list, 1, list.n))
  end
end

local parse_bwd = args.signature("custom_bwd", "function bwd, string device_type = 'cuda'")

--- custom_bwd(bwd, {device_type = "cuda"}): returns the function `backward` of an autograd.Function
-- whose forward is made by custom_fwd: it runs with the settings of autocast of forward.
function custom.custom_bwd(...)
  local bwd, kind = parse_bwd(...)
  return function(ctx, ...)
    local enabled = rawget(ctx, "_autocast_enabled")
    args.check(enabled ~= nil, "custom_bwd: expected a forward that custom_fwd has made\n"
      .. "hint: MyFunction.forward = lt.amp.custom_fwd(forward)")
    local settings = core._autocast_with(kind, enabled, rawget(ctx, "_autocast_dtype"),
      rawget(ctx, "_autocast_cache"))
    return autocast.with(settings, bwd, ctx, ...)
  end
end

return custom
