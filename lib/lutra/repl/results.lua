--- The last nine results, in the globals `_1` (the newest) to `_9`; `_` is `_1`.
--
-- Stored results on an accelerator occupy its memory. Invariant: the accelerator storages reachable
-- from these globals take at most options.results_bytes in total; results beyond that are dropped,
-- older ones first. Therefore a tensor is stored without its autograd graph once an accelerator is
-- in use, as the graph may reference any amount of memory.

local options = require "lutra.repl.options"

local results = {}
results.__index = results

local most = 9
local most_entries = 100000 -- the maximum number of table entries searched in one result

--- The globals that hold results.
results.names = {"_"}
for i = 1, most do results.names[i + 1] = "_" .. i end

-- ---- accelerator memory of a value

-- Returns the core when it is loaded and an accelerator has been used; otherwise no result can
-- occupy accelerator memory.
local function core_in_use()
  local core = package.loaded["lutra.core"]
  if not core then return nil end
  local kind = core._accelerator.kind()
  return kind and core._accelerator.is_ready(kind) and core or nil
end

local function add_tensor(core, held, t)
  if core._is_freed(t) then return end
  local device = t.device
  if device ~= "cpu" and device ~= "meta" then
    local memory, bytes = core._memory(t)
    if not held.storages[memory] then
      held.storages[memory] = bytes
      held.device = device
    end
  end
  if t.grad_fn then held.graph = true end
  if t.is_leaf and t.grad then add_tensor(core, held, t.grad) end
end

-- Visits the values reachable from `value`: entries of tables, at most `left`, and of their
-- metatables (which have a module's fields); upvalues of functions. Returns the new `left`.
local function each_inside(value, left, visit)
  if type(value) == "table" then
    for key, inside in next, value do
      if left == 0 then break end
      left = left - 1
      visit(key)
      visit(inside)
    end
  end
  if type(value) == "function" then
    for i = 1, 255 do
      local name, inside = debug.getupvalue(value, i)
      if not name then break end
      visit(inside)
    end
    return left
  end
  local meta = debug.getmetatable(value)
  if type(meta) == "table" then
    visit(rawget(meta, "__state"))
    visit(rawget(meta, "__index"))
  end
  return left
end

-- Returns {storages = bytes by storage, device = name of one, graph = whether there is an autograd
-- graph}.
local function holdings(core, value)
  local held = {storages = {}}
  -- The globals and the libraries are not counted.
  local seen = {[_G] = true, [package.loaded] = true}
  for _, module in next, package.loaded do seen[module] = true end
  local list, n = {value}, 1
  local function visit(x)
    local kind = type(x)
    if kind ~= "table" and kind ~= "userdata" and kind ~= "function" then return end
    if seen[x] then return end
    seen[x] = true
    n = n + 1
    list[n] = x
  end
  local at, left = 1, most_entries
  while at <= n do
    local x = list[at]
    if core.is_tensor(x) then
      add_tensor(core, held, x)
    elseif type(x) == "table" or type(x) == "function" then
      left = each_inside(x, left, visit)
    end
    at = at + 1
  end
  return held
end

local function size_text(bytes)
  for _, unit in ipairs {{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} do
    if bytes >= 1 << unit[1] then return ("%.1f %s"):format(bytes / (1 << unit[1]), unit[2]) end
  end
  return bytes .. " bytes"
end

-- ---- the ring

--- Returns an empty ring of results.
function results.new() return setmetatable({list = {}}, results) end

-- Drops results beyond the limit; newer ones have priority. Returns the reason why the first of
-- the `fresh` newest results was dropped, or nil.
local function enforce(self, core, fresh)
  local known, total, note = {}, 0, nil
  for i = 1, most do
    local value = self.list[i]
    local kind = type(value)
    if kind == "table" or kind == "userdata" or kind == "function" then
      local held, more = holdings(core, value), 0
      for storage, bytes in pairs(held.storages) do
        if not known[storage] then more = more + bytes end
      end
      local over = total + more > options.value.results_bytes
      if over or held.graph then
        self.list[i] = nil
        note = note or i <= fresh and (over
          and ("not kept in _%d: it holds %s on %s (see :set results_bytes)"):format(i,
            size_text(more), held.device)
          or ("not kept in _%d: it holds tensors with an autograd graph"):format(i))
      else
        total = total + more
        for storage, bytes in pairs(held.storages) do known[storage] = bytes end
      end
    end
  end
  return note or nil
end

--- Adds the results of a cell (a packed list) in front. Results that are all nil change nothing.
-- Returns a line for the user when one was not stored.
function results:add(packed)
  local fresh, all_nil = math.min(packed.n, most), true
  for i = 1, fresh do all_nil = all_nil and packed[i] == nil end
  if all_nil then return nil end
  local core, list = core_in_use(), {}
  for i = 1, fresh do
    local value = packed[i]
    if core and core.is_tensor(value) and not core._is_freed(value) and value.grad_fn then
      value = value:detach()
    end
    list[i] = value
  end
  table.move(self.list, 1, most - fresh, fresh + 1, list)
  self.list = list
  local note = core and enforce(self, core, fresh)
  self:publish()
  return note or nil
end

--- Sets the globals. This overwrites values that the user assigned to them, as `_` is Lua's name
-- for ignored values.
function results:publish()
  rawset(_G, "_", self.list[1])
  for i = 1, most do rawset(_G, "_" .. i, self.list[i]) end
end

--- Removes all results.
function results:forget()
  self.list = {}
  self:publish()
end

return results
