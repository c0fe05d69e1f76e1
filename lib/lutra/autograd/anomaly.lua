--- lt.autograd.detect_anomaly, set_detect_anomaly: find the op whose gradient is NaN or fails.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local scope_guard = require "lutra.internal.scope_guard"

local anomaly = {}

-- Calls f(...) with the settings, and restores the former ones.
local function with(on, check_nan, f, ...)
  local _ <close> = scope_guard(core._set_anomaly, core._set_anomaly(on, check_nan))
  return f(...)
end

--- detect_anomaly([{check_nan = true},] f, ...): calls f(...) with anomaly detection: each op notes
-- the line of its call, and an error of a backward pass states the line of the op whose gradient
-- failed. With check_nan a gradient with NaN is such an error. It makes programs slower, as each
-- gradient is read. Forward and backward must both run in f. Returns what f returns.
function anomaly.detect_anomaly(options, ...)
  if not args.is_plain(options) then return anomaly.detect_anomaly({}, options, ...) end
  for name in pairs(options) do
    args.check(name == "check_nan", "detect_anomaly: expected the option check_nan, got '%s'",
      tostring(name))
  end
  args.expect(args.is_callable((...)), "detect_anomaly", "a function", "f", (...))
  return with(true, options.check_nan ~= false, ...)
end

--- set_detect_anomaly(mode, {check_nan = true}): switches anomaly detection on or off; with a
-- function after the options only while it runs: set_detect_anomaly(mode, {}, f, ...).
function anomaly.set_detect_anomaly(mode, options, f, ...)
  args.expect(type(mode) == "boolean", "set_detect_anomaly", "a boolean", "mode", mode)
  local check_nan = not args.is_plain(options) or options.check_nan ~= false
  if f then return with(mode, check_nan, f, ...) end
  core._set_anomaly(mode, check_nan)
end

--- Returns whether anomaly detection is on.
function anomaly.is_anomaly_enabled() return (core._set_anomaly()) end

--- Returns whether anomaly detection checks gradients for NaN.
function anomaly.is_anomaly_check_nan_enabled() return (select(2, core._set_anomaly())) end

return anomaly
