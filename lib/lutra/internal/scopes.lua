--- Scopes: functions of lt that change a setting while a function runs.
--
-- Each sets a value, calls the function and restores the old value by a to-be-closed variable, so
-- that it is restored after errors too, and a traceback still shows where the error was raised.
--
-- A setting belongs to the coroutine that makes it and to those that it resumes; when it yields,
-- others keep their own. The old value is nil in a coroutine that had none.

local core = require "lutra.core"
local scope_guard = require "lutra.internal.scope_guard"

local scopes = {}

-- Returns the scope of a flag. Its guards are created once, so that a scope allocates nothing.
local function flag_scope(set)
  local back = {[true] = scope_guard(set, true), [false] = scope_guard(set, false)}
  local none = scope_guard(set, nil)
  return function(on, f, ...)
    local old = set(on)
    local _ <close> = old == nil and none or back[old]
    return f(...)
  end
end

local with_grad = flag_scope(core._scope_grad)
local with_inference = flag_scope(core._scope_inference)

local function check_function(name, f)
  if type(f) == "function" then return f end
  local meta = getmetatable(f)
  if type(meta) == "table" and meta.__call then return f end
  local args = require "lutra.internal.args"
  return args.fail("%s: expected a function for argument 'f', got %s", name, args.show(f))
end

-- Raises an error for an instance of a module, which would be called without input.
local function check_not_made(f)
  local nn = package.loaded["lutra.nn"]
  if not nn or not nn.Module.is_module(f) then return end
  local args = require "lutra.internal.args"
  args.fail("with_device: expected a function for argument 'f', got a module that exists: %s\n"
    .. 'hint: lt.with_device("meta", nn.Linear, 3, 2)', f:type_name())
end

--- Calls f(...) without recording for autograd; returns what f returns.
function scopes.no_grad(f, ...)
  return with_grad(false, check_function("no_grad", f), ...)
end

--- Calls f(...) with recording for autograd, for use inside no_grad; returns what f returns.
function scopes.enable_grad(f, ...)
  return with_grad(true, check_function("enable_grad", f), ...)
end

--- lt.set_grad_enabled(mode, f, ...): calls f(...) with recording for autograd on or off; returns
-- what f returns. Without f, turns recording on or off and returns the old value; prefer f, which
-- restores it.
function scopes.set_grad_enabled(mode, f, ...)
  if f == nil then return core.set_grad_enabled(mode) end
  if type(mode) ~= "boolean" then core.set_grad_enabled(mode) end -- raises the error
  return with_grad(mode, check_function("set_grad_enabled", f), ...)
end

--- Calls f(...) without recording; its results can never require grad. Returns what f returns.
function scopes.inference_mode(f, ...)
  return with_inference(true, check_function("inference_mode", f), ...)
end

--- Calls f(...) with `device` as the default device of new tensors; returns what f returns.
-- `lt.with_device("meta", BigModel)` builds a model without allocating memory.
function scopes.with_device(device, f, ...)
  check_function("with_device", f)
  if select("#", ...) == 0 then check_not_made(f) end
  local old = core._scope_device(require("lutra.internal.args").device("with_device", device))
  local _ <close> = scope_guard(core._scope_device, old)
  return f(...)
end

local autocast_options -- its parser

--- autocast(device_type, {dtype, enabled = true, cache_enabled = true}, f, ...), or
-- autocast(device_type, dtype, f, ...), or autocast({device_type = , dtype = }, f, ...): calls
-- f(...) with ops on this device type, "cpu", "cuda" or "mps", in mixed precision; returns what f
-- returns. Ops of PyTorch's list for it, such as linear and conv2d, run in `dtype` (bfloat16 on
-- the CPU, float16 on GPUs; "bfloat16" or "float16"), ops that need it in float32, others in the
-- dtypes that their tensors have. Casts are differentiable; those of weights are cached until the
-- outermost scope ends. With enabled = false ops run as they are, for a part of an outer scope.
-- The table of options may be omitted.
function scopes.autocast(device_type, options, f, ...)
  local args = require "lutra.internal.args"
  if args.is_plain(device_type) then
    local given = {}
    for name, value in pairs(device_type) do given[name] = value end
    given.device_type, given[1] = nil, nil
    return scopes.autocast(device_type.device_type or device_type[1], given, options, f, ...)
  end
  if args.is_callable(options) and not args.is_plain(options) then
    return scopes.autocast(device_type, {}, options, f, ...)
  end
  if type(options) == "string" then options = {dtype = options} end
  autocast_options = autocast_options or args.signature("autocast",
    "dtype? dtype = nil, bool enabled = true, bool? cache_enabled = nil")
  args.expect(type(device_type) == "string", "autocast", "a string", "device_type", device_type)
  args.expect(args.is_plain(options), "autocast", "a table of options, a dtype or a function",
    "options", options)
  local dtype, enabled, cache = autocast_options(options)
  check_function("autocast", f)
  local settings = core._autocast_with(device_type, enabled, dtype, cache)
  local old = core._scope_autocast(settings)
  local _ <close> = scope_guard(core._scope_autocast, old)
  return f(...)
end

-- Raises an error unless a device type is a string; the default is "cuda", as in PyTorch.
local function device_type_of(name, device_type)
  if device_type == nil then return "cuda" end
  local args = require "lutra.internal.args"
  args.expect(type(device_type) == "string", name, "a string", "device_type", device_type)
  return device_type
end

--- Returns whether autocast is on for a device type ("cuda" by default).
function scopes.is_autocast_enabled(device_type)
  return (core._autocast_of(device_type_of("is_autocast_enabled", device_type)))
end

--- Switches autocast on or off for a device type, without a scope.
function scopes.set_autocast_enabled(device_type, enabled)
  device_type = device_type_of("set_autocast_enabled", device_type)
  core._scope_autocast(core._autocast_with(device_type, enabled == true))
end

--- Returns the lower precision of autocast for a device type: its dtype.
function scopes.get_autocast_dtype(device_type)
  return (select(2, core._autocast_of(device_type_of("get_autocast_dtype", device_type))))
end

--- Sets the lower precision of autocast for a device type: "bfloat16" or "float16".
function scopes.set_autocast_dtype(device_type, dtype)
  device_type = device_type_of("set_autocast_dtype", device_type)
  core._scope_autocast(core._autocast_with(device_type, nil, dtype))
end

--- Returns whether casts of weights are cached under autocast.
function scopes.is_autocast_cache_enabled()
  return (select(3, core._autocast_of "cpu"))
end

--- Sets whether casts of weights are cached under autocast.
function scopes.set_autocast_cache_enabled(enabled)
  core._scope_autocast(core._autocast_with("cpu", nil, nil, enabled == true))
end

--- Frees the cached casts of weights.
function scopes.clear_autocast_cache() core._clear_autocast_cache() end

--- Calls f(...) with `stream` as the current stream of its device, and its device as the current
-- device, and restores both; returns what f returns. With a nil stream it only calls f.
function scopes.with_stream(stream, f, ...)
  check_function("with_stream", f)
  if stream == nil then return f(...) end
  local old_stream, old_device = core._accelerator.set_stream(stream, "with_stream")
  local _ <close> = scope_guard(core._accelerator.restore_stream, old_stream, old_device)
  return f(...)
end

return scopes
