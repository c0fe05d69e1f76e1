--- nn.modules.module: hooks for all modules.

local args = require "lutra.internal.args"
local hooks = require "lutra.nn.module.hooks"
local strict_table = require "lutra.internal.strict_table"

local module = {}

local function register(title, kind, hook, always)
  hooks.check(title, hook)
  return hooks.add(hooks.everywhere, kind, hook, false, always)
end

--- Calls hook(module, inputs) before the forward of every module, before its own hooks; see
-- m:register_forward_pre_hook. Returns a handle with :remove().
function module.register_module_forward_pre_hook(hook)
  return register("register_module_forward_pre_hook", "forward_pre", hook)
end

local parse_forward = args.signature("register_module_forward_hook",
  "any hook, bool with_kwargs = false, bool always_call = false")

--- Calls hook(module, inputs, output...) after the forward of every module, before its own hooks;
-- see m:register_forward_hook. Returns a handle with :remove().
function module.register_module_forward_hook(...)
  local hook, _, always = parse_forward(...)
  return register("register_module_forward_hook", "forward", hook, always)
end

--- Calls hook(module, grad_output) in the backward of every module; see
-- m:register_full_backward_pre_hook. Returns a handle with :remove().
function module.register_module_full_backward_pre_hook(hook)
  return register("register_module_full_backward_pre_hook", "full_backward_pre", hook)
end

--- Calls hook(module, grad_input, grad_output) in the backward of every module; see
-- m:register_full_backward_hook. Returns a handle with :remove().
function module.register_module_full_backward_hook(hook)
  return register("register_module_full_backward_hook", "full_backward", hook)
end

--- Calls hook(module, name, buffer) when a buffer is registered; a non-nil result is registered in
-- its place. Returns a handle with :remove().
function module.register_module_buffer_registration_hook(hook)
  return register("register_module_buffer_registration_hook", "buffer_registration", hook)
end

--- Calls hook(module, name, child) when a child is registered; a non-nil result is registered in
-- its place. Returns a handle with :remove().
function module.register_module_module_registration_hook(hook)
  return register("register_module_module_registration_hook", "module_registration", hook)
end

--- Calls hook(module, name, parameter) when a parameter is registered; a non-nil result is
-- registered in its place. Returns a handle with :remove().
function module.register_module_parameter_registration_hook(hook)
  return register("register_module_parameter_registration_hook", "parameter_registration", hook)
end

return strict_table.strict({module = strict_table.strict(module, "nn.modules.module")},
  "nn.modules")
