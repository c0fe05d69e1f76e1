--- lt.amp: automatic mixed precision: lt.amp.autocast runs ops in a lower precision where this is
-- safe, lt.amp.GradScaler scales losses so that gradients in float16 do not become 0.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local scopes = require "lutra.internal.scopes"

local amp = {}

amp.autocast = scopes.autocast
amp.GradScaler = require "lutra.amp.grad_scaler"

--- Returns whether there is autocast for a device type: "cpu", "cuda" or "mps".
function amp.is_autocast_available(device_type)
  args.expect(type(device_type) == "string", "is_autocast_available", "a string", "device_type",
    device_type)
  return (pcall(core._autocast_of, device_type))
end

local custom = require "lutra.amp.custom"
amp.custom_fwd, amp.custom_bwd = custom.custom_fwd, custom.custom_bwd

return require("lutra.internal.strict_table").strict(amp, "lt.amp")
