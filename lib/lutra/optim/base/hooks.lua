--- Lists of callbacks of an optimizer, which are invoked around step, state_dict and
-- load_state_dict.

local args = require "lutra.internal.args"
local hook_lists = require "lutra.internal.hook_lists"

local hooks = {}

--- Adds the function `fn` to the end of the list `name` of an object's callbacks, or with `prepend`
-- to its beginning; returns a handle with :remove(). Raises an error unless fn can be called.
-- `title` is the function that the user called.
function hooks.add(owner, name, title, fn, prepend)
  args.expect(args.is_callable(fn), title, "a function", "hook", fn)
  return hook_lists.add(owner, name, {fn = fn}, prepend)
end

--- Calls the callbacks of the list `name` with the object and `value`; a result that is not nil
-- replaces `value` for the next one. Returns the last value.
function hooks.run(owner, name, value)
  for _, hook in ipairs(hook_lists.of(owner, name)) do
    local changed = hook.fn(owner, value)
    if changed ~= nil then value = changed end
  end
  return value
end

return hooks
