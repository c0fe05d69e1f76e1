--- Hooks of modules: functions that run before and after forward, in backward, and when a state
-- dict is made or loaded.
--
-- Invariant: `hooked` of a holder is true while it has a hook that a call of a module must
-- run; a call without hooks reads only that.

local args = require "lutra.internal.args"
local hook_lists = require "lutra.internal.hook_lists"

local hooks = {}

-- The kinds of hooks that a call of a module runs.
local of_calls = {forward_pre = true, forward = true, full_backward_pre = true,
  full_backward = true}

-- The state of hooks for all modules, as fields of a module's state: {hooks, hooked}; refreshed,
-- set by lutra.nn.module, is called with `hooked` when hooks are added or removed.
local everywhere = {hooked = false}
hooks.everywhere = everywhere

local list_of = hook_lists.of

local function refresh(holder)
  holder.hooked = false
  for kind in pairs(of_calls) do
    if #list_of(holder, kind) > 0 then holder.hooked = true end
  end
  if holder == everywhere then everywhere.refreshed(holder.hooked) end
end

--- Adds the function `fn` to the hooks of a kind of `holder`, the state of a module or
-- hooks.everywhere; returns a handle with :remove(). With `prepend` it runs first; with `always` it
-- runs when forward raises an error, too. `tag` is for hooks.tagged.
function hooks.add(holder, kind, fn, prepend, always, tag)
  return hook_lists.add(holder, kind, {fn = fn, always = always or false, tag = tag}, prepend,
    refresh)
end

local function state_of(module) return getmetatable(module).__state end

--- Returns whether a module has hooks of a kind.
function hooks.has(module, kind) return #list_of(state_of(module), kind) > 0 end

--- Calls the hooks of a kind of a module with the module and the other arguments.
function hooks.run(module, kind, ...)
  for _, hook in ipairs(list_of(state_of(module), kind)) do hook.fn(module, ...) end
end

--- Returns the names of fields that the tagged hooks before forward compute from others.
function hooks.computed(state)
  local names = {}
  for _, hook in ipairs(list_of(state, "forward_pre")) do
    if hook.tag then names[#names + 1] = hook.tag.name end
  end
  return names
end

--- Returns the first hook of a kind of a module for whose tag is_it(tag) is true, and a function
-- that removes it; nil when there is none.
function hooks.tagged(module, kind, is_it)
  local state = state_of(module)
  for _, hook in ipairs(list_of(state, kind)) do
    if hook.tag and is_it(hook.tag) then
      local handle = hook_lists.handle(state, kind, hook, refresh)
      return hook.tag, function() handle:remove() end
    end
  end
end

--- Calls the hooks for all modules of a kind, registrations: fn(module, name, value). A non-nil
-- result replaces the value, which is returned.
function hooks.replaced(kind, module, name, value)
  for _, hook in ipairs(list_of(everywhere, kind)) do
    local changed = hook.fn(module, name, value)
    if changed ~= nil then value = changed end
  end
  return value
end

-- ---- calls --------------------------------------------------------------------------

-- Returns the hooks of a kind for a call: those for all modules first.
local function both(state, kind)
  local first, second = list_of(everywhere, kind), list_of(state, kind)
  if #first == 0 then return second end
  return table.move(second, 1, #second, #first + 1, table.move(first, 1, #first, 1, {}))
end

-- Returns whether a value is a plain list, as a result of table.pack, that is not empty.
local function is_list(value)
  if not args.is_plain(value) or value[1] == nil then return false end
  for key in next, value do
    if math.type(key) ~= "integer" and key ~= "n" then return false end
  end
  return true
end

-- Returns the values of a call changed by what a hook returned: nothing (or nil) keeps them, a
-- plain list in the place of several values, or of inputs (`unpacks`), is the list of them unless
-- the first of them was a plain table itself.
local function changed_by(values, unpacks, ...)
  local first = ...
  if first == nil or rawequal(first, values) then return values end
  local lists = unpacks or values.n > 1
  if lists and select("#", ...) == 1 and is_list(first) and not args.is_plain(values[1]) then
    return table.pack(table.unpack(first, 1, first.n or #first))
  end
  return table.pack(...)
end

-- A to-be-closed value that calls the hooks with always_call when forward, or a hook before them,
-- raises an error. Errors of these hooks are ignored, so that the first one is raised.
local Always = {}
function Always:__close(failure)
  if failure == nil then return end
  for _, hook in ipairs(self.list) do
    if hook.always and not self.done[hook] then pcall(hook.fn, self.module, self.inputs) end
  end
end

-- Calls forward and the hooks after it; returns the packed outputs.
local function forward(self, list, inputs)
  local always = setmetatable({list = list, module = self, inputs = inputs, done = {}}, Always)
  local _ <close> = always
  local outputs = table.pack(self:forward(table.unpack(inputs, 1, inputs.n)))
  for _, hook in ipairs(list) do
    always.done[hook] = true
    outputs = changed_by(outputs, false,
      hook.fn(self, inputs, table.unpack(outputs, 1, outputs.n)))
  end
  return outputs
end

--- Calls a module with its hooks; returns the outputs. `state` is the module's state.
function hooks.call(self, state, ...)
  local inputs = table.pack(...)
  for _, hook in ipairs(both(state, "forward_pre")) do
    inputs = changed_by(inputs, true, hook.fn(self, inputs))
  end
  local before, after = both(state, "full_backward_pre"), both(state, "full_backward")
  if #before + #after == 0 then
    local outputs = forward(self, both(state, "forward"), inputs)
    return table.unpack(outputs, 1, outputs.n)
  end
  local pass = require("lutra.nn.module.backward_hooks").new(self, before, after)
  local outputs = forward(self, both(state, "forward"), pass:inputs(inputs))
  outputs = pass:outputs(outputs)
  return table.unpack(outputs, 1, outputs.n)
end

-- ---- registration -------------------------------------------------------------------

-- The methods of nn.Module that are defined here.
local Module = {}
hooks.methods = Module

local function check(title, fn)
  args.expect(args.is_callable(fn), title, "a function", "hook", fn)
end
hooks.check = check

local parse_forward = args.signature("register_forward_hook",
  "any hook, bool prepend = false, bool with_kwargs = false, bool always_call = false")
local parse_pre = args.signature("register_forward_pre_hook",
  "any hook, bool prepend = false, bool with_kwargs = false")

--- Calls hook(module, inputs, output...) after each forward; non-nil results replace the outputs.
-- In the place of several outputs, a plain list {a, b} is the list of them, unless the first
-- output is a plain table itself. `inputs` is a packed list of the arguments, options in a
-- trailing table included (with_kwargs has no effect). With `prepend` it runs before the hooks
-- that exist; with `always_call` also when forward raises an error, then without an output.
-- Returns a handle with :remove().
function Module:register_forward_hook(...)
  local fn, prepend, _, always = parse_forward(...)
  check("register_forward_hook", fn)
  return hooks.add(state_of(self), "forward", fn, prepend, always)
end

--- Calls hook(module, inputs) before each forward; non-nil results replace the inputs: return a, b,
-- or a plain list {a, b}, unless the first input is a plain table itself. With `prepend` it runs
-- before the hooks that exist; with_kwargs has no effect. Returns a handle with :remove().
function Module:register_forward_pre_hook(...)
  local fn, prepend = parse_pre(...)
  check("register_forward_pre_hook", fn)
  return hooks.add(state_of(self), "forward_pre", fn, prepend)
end

local parse_backward = args.signature("register_full_backward_hook",
  "any hook, bool prepend = false")
local parse_backward_pre = args.signature("register_full_backward_pre_hook",
  "any hook, bool prepend = false")

--- Calls hook(module, grad_input, grad_output) in backward, when the gradients of the module's
-- inputs are known. Both are packed lists, of the arguments and of the results, with nil for values
-- without a gradient. A list that the hook returns, or a tensor for the only input, replaces the
-- gradients of the inputs. Returns a handle with :remove().
function Module:register_full_backward_hook(...)
  local fn, prepend = parse_backward(...)
  check("register_full_backward_hook", fn)
  return hooks.add(state_of(self), "full_backward", fn, prepend)
end

--- Calls hook(module, grad_output) in backward, before the gradients of the module are computed. A
-- list that the hook returns, or a tensor for the only result, replaces grad_output. Returns a
-- handle with :remove().
function Module:register_full_backward_pre_hook(...)
  local fn, prepend = parse_backward_pre(...)
  check("register_full_backward_pre_hook", fn)
  return hooks.add(state_of(self), "full_backward_pre", fn, prepend)
end

--- Calls hook(module, prefix, keep_vars) before m:state_dict reads this module. Returns a handle
-- with :remove().
function Module:register_state_dict_pre_hook(hook)
  check("register_state_dict_pre_hook", hook)
  return hooks.add(state_of(self), "state_dict_pre", hook)
end

--- Calls hook(module, state_dict, prefix, local_metadata) after m:state_dict has stored this module
-- and those below it; the hook may change the state dict. Returns a handle with :remove().
function Module:register_state_dict_post_hook(hook)
  check("register_state_dict_post_hook", hook)
  return hooks.add(state_of(self), "state_dict_post", hook)
end

--- Calls hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
-- error_msgs) before m:load_state_dict compares names. The hook may change the state dict, a copy
-- of the given one, and add to the lists. Returns a handle with :remove().
function Module:register_load_state_dict_pre_hook(hook)
  check("register_load_state_dict_pre_hook", hook)
  return hooks.add(state_of(self), "load_state_dict_pre", hook)
end

--- Calls hook(module, incompatible_keys) after m:load_state_dict has loaded the values, with the
-- table that it returns. Returns a handle with :remove().
function Module:register_load_state_dict_post_hook(hook)
  check("register_load_state_dict_post_hook", hook)
  return hooks.add(state_of(self), "load_state_dict_post", hook)
end

return hooks
