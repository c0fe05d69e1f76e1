--- Places of tensors: the upvalues, globals, tables and modules that a function reaches.
--
-- A plan reads a tensor that it has captured from the place in which the program found it, at each
-- call: when a variable gets another tensor, the next call uses that one. A place is a container
-- and a key: a table and a field, or a function and the number of an upvalue.

local core = require "lutra.core"

local places = {}

local MOST = 20000 -- containers that are searched
local LIBRARY = debug.getinfo(1, "S").source:match "^(.-)compile/places%.lua$"

local scalar = {number = true, boolean = true, string = true, ["nil"] = true}

-- Returns whether a function is part of the library.
local function is_own(f)
  local source = debug.getinfo(f, "S").source
  return source == "=[C]" or (LIBRARY and LIBRARY ~= "" and source:sub(1, #LIBRARY) == LIBRARY)
end

-- The state of a search: a queue of containers, and how each was found.
local function new_search()
  local libraries = {}
  for _, module in pairs(package.loaded) do
    if type(module) == "table" then libraries[module] = true end
  end
  return {queue = {}, from = {}, key = {}, near = {}, tensors = {}, guards = {}, skip = libraries}
end

-- Appends a value to the queue if it is a container that has not been found yet.
local function visit(search, container, key, value)
  local kind = type(value)
  if kind ~= "table" and kind ~= "function" then return end
  if search.from[value] ~= nil or search.skip[value] or #search.queue >= MOST then return end
  if kind == "function" and is_own(value) and container then return end
  search.from[value], search.key[value] = container or false, key
  search.queue[#search.queue + 1] = value
end

-- Notes the value of a place.
local function see(search, container, key, value)
  local id = core._tensor_id(value)
  if id then
    local list = search.tensors[id]
    if not list then
      list = {}
      search.tensors[id] = list
    end
    list[#list + 1] = {container, key, value}
  else
    visit(search, container, key, value)
  end
end

local function guard(search, container, key, value)
  local list = search.guards
  list[#list + 1], list[#list + 2], list[#list + 3] = container, key, value
end

-- Searches the upvalues of a function. Numbers, strings and booleans among them are guarded if the
-- function is the first one or an upvalue of such a function; of the globals only values that no
-- library defines are searched.
local function search_function(search, f)
  local from = search.from[f]
  local near = not from or search.near[from]
  search.near[f] = near
  for i = 1, math.huge do
    local name, value = debug.getupvalue(f, i)
    if not name then break end
    if name == "_ENV" and type(value) == "table" then
      for key, global in next, value do
        if type(global) ~= "table" or not search.skip[global] then
          see(search, value, key, global)
        end
      end
      search.from[value] = search.from[value] or f
      search.key[value] = search.key[value] or i
    elseif scalar[type(value)] then
      if name ~= "" and near then guard(search, f, i, value) end
    else
      see(search, f, i, value)
    end
  end
end

-- Returns the table of a module's fields, or nil.
local function fields_of(value)
  local meta = getmetatable(value)
  local state = type(meta) == "table" and rawget(meta, "__state")
  return state and state.fields
end

local function search_table(search, container)
  local fields = fields_of(container)
  if fields then
    -- The module itself is not read through: its fields are where its values are.
    search.from[fields], search.key[fields] = container, "__fields"
    guard(search, fields, "training", rawget(fields, "training"))
    for key, value in next, fields do see(search, fields, key, value) end
  end
  for key, value in next, container do see(search, container, key, value) end
end

--- Returns whether a guarded value has changed since the search.
function places.changed(search)
  local guards = search.guards
  for i = 1, #guards, 3 do
    local container, key, value = guards[i], guards[i + 1], guards[i + 2]
    local now
    if type(container) == "table" then
      now = rawget(container, key)
    else
      now = select(2, debug.getupvalue(container, key))
    end
    if not rawequal(now, value) and (now == now or value == value) then return true end -- NaN: same
  end
  return false
end

--- Searches what a function or a module reaches. Returns the search.
function places.search(f)
  local search = new_search()
  visit(search, nil, nil, f)
  local at = 1
  while at <= #search.queue do
    local container = search.queue[at]
    if type(container) == "function" then
      search_function(search, container)
    else
      search_table(search, container)
    end
    at = at + 1
  end
  return search
end

-- Guards the path to a container: each container on it must stay where it was found.
local function guard_path(search, done, guards, container)
  while container and not done[container] do
    done[container] = true
    local parent, key = search.from[container], search.key[container]
    if not parent then return end
    if key ~= "__fields" or not fields_of(parent) then
      guards[#guards + 1], guards[#guards + 2], guards[#guards + 3] = parent, key, container
    end
    container = parent
  end
end

--- Returns the places of captured tensors as a flat list {container, key, ...}, with false for a
-- tensor that the program created from a number, and the list of guards; nil and the reason when a
-- tensor has no place.
function places.of(search, captured, made)
  local flat, done = {}, {}
  local guards = table.move(search.guards, 1, #search.guards, 1, {})
  for i, tensor in ipairs(captured) do
    local list = search.tensors[tensor]
    if made[i] then
      flat[2 * i - 1], flat[2 * i] = false, false
    elseif not list then
      return nil, "it uses a tensor that is in no variable, table or module that it reaches"
    else
      flat[2 * i - 1], flat[2 * i] = list[1][1], list[1][2]
      guard_path(search, done, guards, list[1][1])
      for k = 2, #list do
        guards[#guards + 1], guards[#guards + 2], guards[#guards + 3] = list[k][1], list[k][2],
          list[k][3]
      end
    end
  end
  return flat, guards
end

--- Copies the fields of the tables and the upvalues of the functions that were found, so that
-- places.restore can undo assignments.
function places.keep(search)
  local kept = {}
  for container in pairs(search.from) do
    local copy = {}
    if type(container) == "table" then
      for key, value in next, container do copy[key] = value end
    else
      for i = 1, debug.getinfo(container, "u").nups do
        local _, value = debug.getupvalue(container, i)
        copy[i] = value
      end
    end
    kept[container] = copy
  end
  return kept
end

--- Restores each field that a recording has set to a tensor of the record; returns whether there
-- was one.
function places.restore(kept)
  local found = false
  for container, copy in pairs(kept) do
    local is_table, changed = type(container) == "table", {}
    if is_table then
      for key, value in next, container do
        if core._is_recorded(value) then changed[#changed + 1] = key end
      end
    else
      for i = 1, debug.getinfo(container, "u").nups do
        local _, value = debug.getupvalue(container, i)
        if core._is_recorded(value) then changed[#changed + 1] = i end
      end
    end
    for _, key in ipairs(changed) do
      found = true
      if is_table then
        rawset(container, key, copy[key])
      else
        debug.setupvalue(container, key, copy[key])
      end
    end
  end
  return found
end

return places
