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
