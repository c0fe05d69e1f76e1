--- Converts the variables of a session to an image (lutra.repl.workspace.format) and its tensors.
--
-- Tensors, plain tables, numbers, strings and booleans are saved, and of objects that have
-- state_dict and load_state_dict (modules, optimizers) their state. Shared and cyclic tables,
-- several names of one tensor, and views are preserved. Invariant: values that cannot be saved are
-- listed in `left` with the reason.

local core = require "lutra.core"
local lexer = require "lutra.repl.lexer"
local lt = require "lutra"
local ordered_map = require "lutra.internal.ordered_map"

local pack = {}

local ordered_meta = getmetatable(ordered_map.new())

-- ---- places: where a value is, {key, within = the place around it}

local function keys_to(place)
  local keys = {}
  while place do
    table.insert(keys, place.key)
    place = place.within
  end
  for i = 1, #keys // 2 do keys[i], keys[#keys + 1 - i] = keys[#keys + 1 - i], keys[i] end
  return keys
end

-- "t.layers.1"
local function path(place)
  local keys = keys_to(place)
  for i, key in ipairs(keys) do keys[i] = tostring(key) end
  return table.concat(keys, ".")
end

local function leave(state, place, why)
  table.insert(state.left, ("%s (%s)"):format(path(place), why))
end

-- ---- tensors

local function role_of(t)
  if lt.is_parameter(t) then return t.requires_grad and "parameter" or "frozen" end
  return t.is_leaf and t.requires_grad and "grad" or "plain"
end

-- Returns the name in the file: the path, made unique.
local function file_name(state, place)
  local whole = path(place)
  local name, n = whole, 1
  while state.values[name] do
    n = n + 1
    name = whole .. "#" .. n
  end
  return name
end

-- Returns the first and the last element of a tensor in its storage.
local function extent(t)
  local first, last = t:storage_offset(), t:storage_offset()
  local strides = t:stride()
  for i, size in ipairs(t.shape) do last = last + (size - 1) * strides[i] end
  return first, last
end

-- Returns whether `t` can be saved as a view of `base`: without autograd state, and within base's
-- elements.
local function is_view(t, base)
  if t.dtype ~= base.dtype or role_of(t) ~= "plain" or t:numel() == 0 then return false end
  if not base:is_contiguous() or not t:shares_storage(base) then return false end
  local first, last = extent(t)
  local base_first, base_last = extent(base)
  return first >= base_first and last <= base_last
end

local function plain_list(shape)
  local list = {}
  for i, n in ipairs(shape) do list[i] = n end
  return list
end

-- Sorts possible bases first: many elements, contiguous, with a role.
local function before(a, b)
  if a.numel ~= b.numel then return a.numel > b.numel end
  if a.contiguous ~= b.contiguous then return a.contiguous end
  if (a.role == "plain") ~= (b.role == "plain") then return b.role == "plain" end
  return a.at < b.at
end

local function base_among(bases, t)
  for _, other in ipairs(bases) do
    if is_view(t, other.tensor) then return other end
  end
end

-- Adds the tensors that were found to the image, and the values of those that are no views.
local function add_tensors(state)
  for at, entry in ipairs(state.found) do
    local t = entry.tensor
    entry.at, entry.numel, entry.contiguous = at, t:numel(), t:is_contiguous()
    entry.role = role_of(t)
  end
  table.sort(state.found, before)
  local by_storage = {}
  for id, entry in ipairs(state.found) do
    local t, storage = entry.tensor, core._memory(entry.tensor)
    local bases = by_storage[storage] or {}
    by_storage[storage] = bases
    entry.value.id = id
    local base = base_among(bases, t)
    if base then
      state.image.tensors[id] = {base = base.value.id, shape = plain_list(t.shape),
        strides = plain_list(t:stride()),
        offset = t:storage_offset() - base.tensor:storage_offset()}
    else
      if bases[1] and entry.numel > 0 then
        table.insert(state.apart, path(entry.place) .. " and " .. path(bases[1].place))
      end
      local name = file_name(state, entry.place)
      state.values[name] = t:detach()
      state.image.tensors[id] = {name = name, device = tostring(t.device), role = entry.role}
      table.insert(bases, entry)
    end
  end
end

-- ---- values

local value_of

local function reference(state, kind, value)
  local made = {kind = kind, id = 0}
  state.known[value] = made
  return made
end

-- Returns the state of an object that has state_dict and load_state_dict, else nil. Classes also
-- have the methods, but fail when called.
local function state_of(object)
  local ok, state = pcall(function()
    return type(object.load_state_dict) == "function" and type(object.state_dict) == "function"
      and object:state_dict()
  end)
  local meta = ok and type(state) == "table" and debug.getmetatable(state)
  return (meta == nil or meta == ordered_meta) and state or nil
end

local function class_of(object)
  local meta = debug.getmetatable(object)
  local name = type(meta) == "table" and rawget(meta, "__name")
  return type(name) == "string" and name or "object"
end

local function add_object(state, object, saved_state, place)
  local made = reference(state, "o", object)
  table.insert(state.image.objects, {class = class_of(object), path = keys_to(place)})
  made.id = #state.image.objects
  local saved = state.image.objects[made.id]
  saved.state = value_of(state, saved_state, place)
  return made
end

-- Numbers a table; its contents are added later, so that deep nesting needs no stack.
local function add_table(state, t, place)
  local made = reference(state, "t", t)
  local kind = debug.getmetatable(t) == ordered_meta and "ordered" or "plain"
  table.insert(state.image.tables, {kind = kind, items = {}})
  made.id = #state.image.tables
  table.insert(state.waiting, {t = t, items = state.image.tables[made.id].items, place = place})
  return made
end

local function add_tensor(state, t, place)
  if core._is_freed(t) then return nil, "a tensor that was freed" end
  if t.device == "meta" then return nil, "on meta, without data" end
  local made = reference(state, "x", t)
  table.insert(state.found, {tensor = t, place = place, value = made})
  return made
end

-- Returns the value in the image for `value`, or nil and the reason.
function value_of(state, value, place)
  local kind = type(value)
  if kind == "number" or kind == "string" or kind == "boolean" then return value end
  if state.known[value] then return state.known[value] end
  if lt.is_tensor(value) then return add_tensor(state, value, place) end
  if kind == "table" then
    local meta = debug.getmetatable(value)
    if meta == nil or meta == ordered_meta or meta.__name == "Shape" then
      return add_table(state, value, place)
    end
    local saved = state_of(value)
    if saved then return add_object(state, value, saved, place) end
    return nil, class_of(value)
  end
  return nil, kind == "userdata" and class_of(value) or kind
end

local simple = {string = true, number = true, boolean = true}

-- Returns the keys of a table that can be saved: in its order, or for a plain table sorted.
local function keys_of(state, t, place)
  local keys = {}
  local function add(key)
    if simple[type(key)] then
      keys[#keys + 1] = key
    else
      leave(state, place, "a " .. type(key) .. " as a key")
    end
  end
  if debug.getmetatable(t) == ordered_meta then
    for _, key in ipairs(ordered_map.keys(t)) do add(key) end
    return keys
  end
  for key in next, t do add(key) end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) < type(b) end
    if type(a) == "boolean" then return a and not b end
    return a < b
  end)
  return keys
end

-- Adds the contents of the pending tables, and of tables in them.
local function add_items(state)
  local at = 1
  while state.waiting[at] do
    local wait = state.waiting[at]
    for _, key in ipairs(keys_of(state, wait.t, wait.place)) do
      local inside = {key = key, within = wait.place}
      local taken, why = value_of(state, rawget(wait.t, key), inside)
      if taken ~= nil then
        table.insert(wait.items, {key, taken})
      else
        leave(state, inside, why)
      end
    end
    at = at + 1
  end
end

--- Returns the image of a session's variables:
--   {image, values = tensors by their names in the file, left = names that are not in it, with the
--    reason, apart = pairs of names that shared memory and will not, tensors, others = counts of
--    variables}
function pack.session(session)
  local state = {
    image = {tensors = {}, tables = {}, objects = {}, variables = {}},
    values = {}, left = {}, apart = {}, known = {}, found = {}, waiting = {},
  }
  for name, value, scope in session:variables() do
    local taken, why
    if lexer.is_name(name) then
      taken, why = value_of(state, value, {key = name})
    else
      why = "not a valid variable name"
    end
    if taken == nil then
      leave(state, {key = name}, why)
    else
      local attribute = scope == "local" and session.locals:is_constant(name) and "const" or ""
      table.insert(state.image.variables,
        {scope = scope, name = name, attribute = attribute, value = taken})
    end
  end
  add_items(state)
  add_tensors(state)
  return state
end

return pack
