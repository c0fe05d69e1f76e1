--- Scopes: settings that hold while a function runs.
--
-- Idea: each sets a value, calls the function and puts the old value back through a
-- to-be-closed variable, so that it is put back on errors too, and a traceback still
-- shows where the error arose.
--
-- A setting belongs to the coroutine that makes it, and to those that it resumes: when it
-- yields, the others have theirs. The old value is nil in a coroutine that had none of its own.

local core = require "lutra.core"
local scope_guard = require "lutra.internal.scope_guard"

local scopes = {}

-- The restorers of a flag are made once: a scope makes no garbage.
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

-- A module that is made already is called by mistake where it has no input.
local function check_not_made(f)
  local nn = package.loaded["lutra.nn"]
  if not nn or not nn.Module.is_module(f) then return end
  local args = require "lutra.internal.args"
  args.fail("with_device: expected a function for argument 'f', got a module that exists: %s\n"
    .. 'hint: lt.with_device("meta", nn.Linear, 3, 2)', f:type_name())
end

--- Calls f(...) with nothing recorded for gradients; returns what f returns.
function scopes.no_grad(f, ...)
  return with_grad(false, check_function("no_grad", f), ...)
end

--- Calls f(...) with recording on, for use inside no_grad.
function scopes.enable_grad(f, ...)
  return with_grad(true, check_function("enable_grad", f), ...)
end

--- Calls f(...) with recording off for good: its results can never require grad.
function scopes.inference_mode(f, ...)
  return with_inference(true, check_function("inference_mode", f), ...)
end

--- Calls f(...) with `device` as the device of new tensors.
-- `lt.with_device("meta", BigModel)` builds a model without memory.
function scopes.with_device(device, f, ...)
  check_function("with_device", f)
  if select("#", ...) == 0 then check_not_made(f) end
  local old = core._scope_device(require("lutra.internal.args").device("with_device", device))
  local _ <close> = scope_guard(core._scope_device, old)
  return f(...)
end

--- Calls f(...) with the stream as the current one of its device, and its device as the
-- current one; afterwards both are again what they were. A nil stream changes nothing.
function scopes.with_stream(stream, f, ...)
  check_function("with_stream", f)
  if stream == nil then return f(...) end
  local old_stream, old_device = core._accelerator.set_stream(stream, "with_stream")
  local _ <close> = scope_guard(core._accelerator.restore_stream, old_stream, old_device)
  return f(...)
end

return scopes
