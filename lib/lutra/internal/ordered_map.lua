--- A table that iterates in insertion order.
--
-- The values are ordinary fields, so that `t.name`, `t["1.weight"]` and C code see a plain table;
-- only the order of the keys is stored separately. Invariant: pairs(t) visits exactly the fields
-- that are not nil, oldest first; a field set to nil and assigned again counts as new.

local ordered_map = {}

-- table -> {names = list of keys (false for one that was assigned again), at = key -> index}
local orders = setmetatable({}, {__mode = "k"})
local Ordered = {__name = "ordered table"}

function Ordered.__newindex(self, key, value)
  if value == nil then return end
  local order = orders[self]
  local old = order.at[key]
  if old then order.names[old] = false end
  local place = #order.names + 1
  order.names[place], order.at[key] = key, place
  rawset(self, key, value)
end

function Ordered.__pairs(self)
  local names, place = orders[self].names, 0
  return function()
    while place < #names do
      place = place + 1
      local value = names[place] and rawget(self, names[place])
      if value ~= nil and names[place] then return names[place], value end
    end
  end
end

--- Returns an ordered table with the fields of `pairs_list`, a list of {key, value}.
function ordered_map.new(pairs_list)
  local self = setmetatable({}, Ordered)
  orders[self] = {names = {}, at = {}}
  for _, entry in ipairs(pairs_list or {}) do self[entry[1]] = entry[2] end
  return self
end

--- Returns whether `t`, any value, is an ordered table.
function ordered_map.is(t) return type(t) == "table" and getmetatable(t) == Ordered end

--- Returns the keys of an ordered table in order; of any other table, sorted, without its own
--- __pairs.
function ordered_map.keys(t)
  local keys = {}
  if ordered_map.is(t) then
    for key in pairs(t) do keys[#keys + 1] = key end
  else
    for key in next, t do keys[#keys + 1] = key end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  end
  return keys
end

return ordered_map
