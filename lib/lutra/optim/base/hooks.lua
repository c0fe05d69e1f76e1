--- Lists of callbacks of an optimizer, which are invoked around step, state_dict and
-- load_state_dict.

local args = require "lutra.internal.args"

local hooks = {}

--- Adds the function `fn` to the end of the list `name` of an object's callbacks, or with `prepend`
-- to its beginning; returns a handle with :remove(). Raises an error unless fn can be called.
-- `title` is the function that the user called.
function hooks.add(owner, name, title, fn, prepend)
  args.expect(args.is_callable(fn), title, "a function", "hook", fn)
  local all = rawget(owner, "hooks") or {}
  owner.hooks = all
  local hook = {fn = fn}
  -- A new list each time, so that a hook may remove itself while hooks run.
  all[name] = table.move(all[name] or {}, 1, #(all[name] or {}), 1, {})
  table.insert(all[name], prepend and 1 or #all[name] + 1, hook)
  return {remove = function()
    local rest = {}
    for _, other in ipairs(all[name]) do
      if other ~= hook then rest[#rest + 1] = other end
    end
    all[name] = rest
  end}
end

--- Calls the callbacks of the list `name` with the object and `value`; a result that is not nil
-- replaces `value` for the next one. Returns the last value.
function hooks.run(owner, name, value)
  local all = rawget(owner, "hooks")
  if not all or not all[name] then return value end
  for _, hook in ipairs(all[name]) do
    local changed = hook.fn(owner, value)
    if changed ~= nil then value = changed end
  end
  return value
end

return hooks
