--- Lists of callbacks of an object, by kind: its field `hooks`.
--
-- Invariant: neither a list nor the table of lists is ever changed, both are replaced, so that a
-- hook may add or remove hooks while a list runs, and copies of an object may share its hooks.

local hook_lists = {}

local none = {}

--- Returns the list of the hooks of a kind, empty when there are none.
function hook_lists.of(holder, kind)
  local lists = rawget(holder, "hooks")
  return lists and lists[kind] or none
end
local of = hook_lists.of

local Handle = {__name = "hook handle"}
Handle.__index = Handle

local function set(holder, kind, list, changed)
  local lists = {}
  for other, value in pairs(rawget(holder, "hooks") or none) do lists[other] = value end
  lists[kind] = list
  holder.hooks = lists
  if changed then changed(holder) end
end

--- Removes the hook; a second call does nothing.
function Handle:remove()
  local rest = {}
  for _, other in ipairs(of(self.holder, self.kind)) do
    if other ~= self.hook then rest[#rest + 1] = other end
  end
  set(self.holder, self.kind, rest, self.changed)
end

--- Returns an object with :remove() for a hook of the list of a kind. changed(holder), if given, is
-- called after the removal.
function hook_lists.handle(holder, kind, hook, changed)
  return setmetatable({holder = holder, kind = kind, hook = hook, changed = changed}, Handle)
end

--- Adds `hook`, a table that is not in the list yet, to the end of the list of a kind, or with
-- `prepend` to its beginning; returns its handle. changed(holder), if given, is called after the
-- list was changed, here and by the handle.
function hook_lists.add(holder, kind, hook, prepend, changed)
  local old = of(holder, kind)
  local list = table.move(old, 1, #old, 1, {})
  table.insert(list, prepend and 1 or #list + 1, hook)
  set(holder, kind, list, changed)
  return hook_lists.handle(holder, kind, hook, changed)
end

return hook_lists
