--- The last nine results, in the globals `_1` (the newest) to `_9`; `_` is `_1`.
--
-- A result on an accelerator would keep scarce memory from being used again for as long as it is
-- here. Invariant: the storages of accelerators that these globals reach take together at most
-- options.results_bytes; what would go beyond is not kept, the older first. For that a tensor is
-- kept without its graph once an accelerator is in use, since the graph may hold any memory.

local options = require "lutra.repl.options"

local results = {}
results.__index = results

local most = 9
local most_entries = 100000 -- of tables, that are looked at within one result

--- The globals that hold results.
results.names = {"_"}
for i = 1, most do results.names[i + 1] = "_" .. i end

-- ---- what a value holds on accelerators

-- The core, when it is loaded and an accelerator was used; else nothing can be held there.
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

-- The values that `value` leads to: of tables those inside, at most `left`, and what the metatable
-- adds (a module's fields are there); of functions their upvalues. Returns the new `left`.
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

-- {storages = bytes by storage, device = name of one, graph = an autograd graph is in it}
local function holdings(core, value)
  local held = {storages = {}}
  -- What everybody holds: the globals and the libraries.
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

--- An empty ring.
function results.new() return setmetatable({list = {}}, results) end

-- Drops the results that are too much, the newest first in line. Returns why the one of the `fresh`
-- newest that was dropped first was, or nil.
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

--- Adds what one cell gave (a packed list) in front. Results that are all nil change nothing.
-- Returns a line for the user when one was not kept.
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

--- Writes the globals. A value that the user gave one of them is gone with that: `_` is Lua's name
-- for what nobody wants.
function results:publish()
  rawset(_G, "_", self.list[1])
  for i = 1, most do rawset(_G, "_" .. i, self.list[i]) end
end

--- Forgets them all.
function results:forget()
  self.list = {}
  self:publish()
end

return results
