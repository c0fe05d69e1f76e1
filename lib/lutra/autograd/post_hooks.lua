--- Hooks that run after the gradient of a leaf tensor was accumulated in its `.grad`.
--
-- Gradients are accumulated at the end of a backward pass. From the first hook on, backward
-- compares the `.grad` of the tensors with hooks before and after the pass.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local hook_lists = require "lutra.internal.hook_lists"

local post_hooks = {}

-- tensor -> {hooks}, for lutra.internal.hook_lists
local registered = setmetatable({}, {__mode = "k"})

-- Returns the present gradients and their versions: tensor -> {grad, version}.
local function snapshot()
  local state = {}
  for t in pairs(registered) do
    local g = not core._is_freed(t) and t.grad
    state[t] = {g or nil, g and g:_version()}
  end
  return state
end

local function run_changed(before)
  for t, holder in pairs(registered) do
    local old, g = before[t] or {}, not core._is_freed(t) and t.grad
    if g and (g ~= old[1] or g:_version() ~= old[2]) then
      for _, hook in ipairs(hook_lists.of(holder, "accumulated")) do hook.fn(t) end
    end
  end
end

-- Returns `backward`, followed by the hooks.
local function with_hooks(backward)
  return function(...)
    local before = snapshot()
    backward(...)
    run_changed(before)
  end
end

local installed = false

local function install()
  if installed then return end
  installed = true
  local autograd = require "lutra.autograd"
  local method, f = core._methods.backward, autograd.backward
  core._methods.backward = with_hooks(method)
  rawset(autograd, "backward", with_hooks(f))
  core._signatures[core._methods.backward] = core._signatures[method] -- for help
  core._signatures[autograd.backward] = core._signatures[f]
end

--- Registers hook(x), which is called after each backward that has accumulated a gradient in
-- x.grad; it may use the gradient and set x.grad = nil. Returns a handle; handle:remove() removes
-- the hook. Raises an error unless x is a leaf tensor that requires grad.
function post_hooks.register(x, hook)
  args.expect(core.is_tensor(x), "register_post_accumulate_grad_hook", "a tensor", "self", x)
  args.expect(args.is_callable(hook), "register_post_accumulate_grad_hook", "a function", "hook",
    hook)
  args.check(x.is_leaf and x.requires_grad, "register_post_accumulate_grad_hook: expected a leaf "
    .. "tensor that requires grad for argument 'self'\nhint: x:register_hook(hook)")
  install()
  registered[x] = registered[x] or {}
  return hook_lists.add(registered[x], "accumulated", {fn = hook})
end

return post_hooks
