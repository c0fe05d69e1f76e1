--- Nested values with tensors as a safetensors file: the format of lt.save.
--
-- The tensors are the file's tensors. The metadata has the key "lutra", a JSON object
--
--   {"version": 1, "value": V, "tables": [[KIND, KEY, V, KEY, V...]...], "tensors": [X...]}
--
-- where a V is a number, a string, a boolean, ["t", N] or ["x", N] for entry N of `tables` or
-- `tensors`, ["s", HEX] for a string that is not UTF-8, ["f", "nan" | "inf" | "-inf"] or
-- ["c", V, V] for a complex number. A KIND is "plain", "ordered" or "shape". An X is
--
--   {"name": NAME, "device": D, "role": R, "view": [SHAPE, STRIDES, OFFSET], "complex": true}
--
-- `view` is missing for a tensor that is all of its entry, R is "parameter", "frozen", "grad" or
-- missing, and `complex` marks a complex128 tensor, which safetensors stores as pairs of floats.
-- Tensors that share memory are views of one entry.
--
-- Invariant: nothing of a file is compiled or called. Every index of its views is checked.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local json = require "lutra.internal.json"
local ordered_map = require "lutra.internal.ordered_map"
local retitle = require "lutra.internal.retitle"

local saved_values = {}

local VERSION = 1
local ordered_meta = getmetatable(ordered_map.new())
local shape_meta = getmetatable(core.empty({0}).shape)
local complex_meta = debug.getmetatable(core.zeros({1}, {dtype = "complex64"}):item())
local MAX_DIMS = require("lutra.internal.dims").MOST

-- ---- collecting the values

-- Returns the path to a value for messages, "state.layers[1]".
local function path_text(place)
  local keys = {}
  while place and place.key ~= nil do
    table.insert(keys, 1, type(place.key) == "string" and place.key:find "^[%a_][%w_]*$"
      and "." .. place.key or ("[%s]"):format(args.show(place.key):gsub("^the string ", "")))
    place = place.within
  end
  local text = table.concat(keys):gsub("^%.", "")
  return text == "" and "the value" or text
end

-- Returns a name for the file: the keys joined by points, once.
local function name_of(state, place)
  local keys = {}
  while place and place.key ~= nil do
    table.insert(keys, 1, (tostring(place.key):gsub("%z", "")))
    place = place.within
  end
  local name = table.concat(keys, ".")
  if name == "" or not utf8.len(name) or name == "__metadata__" then name = "tensor" end
  local base, n = name, 1
  while state.names[name] do
    n = n + 1
    name = ("%s#%d"):format(base, n)
  end
  state.names[name] = true
  return name
end

local function refuse(place, what)
  args.fail("save: cannot save %s: it is %s\nhint: save tensors, numbers, strings, booleans and "
    .. "tables of them; of a module or an optimizer its state_dict()", path_text(place), what)
end

-- Returns the JSON text of a value. Tables and tensors are numbered, and their contents are added
-- later, so that deep nesting needs no stack.
local text_of
function text_of(state, value, place)
  local kind = type(value)
  if kind == "boolean" then return tostring(value) end
  if kind == "string" then
    if utf8.len(value) then return json.quote(value) end
    return '["s","' .. value:gsub(".", function(c) return ("%02x"):format(c:byte()) end) .. '"]'
  end
  if kind == "number" then
    if value ~= value then return '["f","nan"]' end
    if value == math.huge or value == -math.huge then
      return value > 0 and '["f","inf"]' or '["f","-inf"]'
    end
    return json.number(value)
  end
  local known = state.known[value]
  if known then return known end
  if kind == "userdata" and debug.getmetatable(value) == complex_meta then
    return ('["c",%s,%s]'):format(text_of(state, value.re), text_of(state, value.im))
  end
  if core._is_freed(value) then refuse(place, "a tensor that was freed") end
  local list, letter
  if core.is_tensor(value) then
    if value.device == "meta" then refuse(place, "a tensor on meta, which has no data") end
    list, letter = state.tensors, "x"
  elseif kind == "table" then
    local meta = getmetatable(value)
    if meta ~= nil and meta ~= ordered_meta and meta ~= shape_meta then
      refuse(place, args.show(value))
    end
    list, letter = state.tables, "t"
  else
    refuse(place, args.show(value))
  end
  list[#list + 1] = {value = value, place = place}
  known = ('["%s",%d]'):format(letter, #list)
  state.known[value] = known
  return known
end

-- Returns the keys of a table: in its order, of a plain table its list first, then the others
-- sorted, so that equal tables give equal files.
local function keys_of(t, place)
  if getmetatable(t) == ordered_meta then return ordered_map.keys(t) end
  local keys = {}
  for key in next, t do
    local kind = type(key)
    if kind ~= "string" and kind ~= "number" and kind ~= "boolean" then
      refuse(place, ("a table with %s as a key"):format(args.show(key)))
    end
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) < type(b) end
    if type(a) == "boolean" then return a and not b end
    return a < b
  end)
  return keys
end

-- Returns the JSON texts of the tables, among them those found in tables.
local function table_texts(state)
  local texts, at = {}, 1
  while state.tables[at] do
    local t, place = state.tables[at].value, state.tables[at].place
    local meta = getmetatable(t)
    local parts = {meta == nil and '"plain"' or meta == ordered_meta and '"ordered"' or '"shape"'}
    for _, key in ipairs(keys_of(t, place)) do
      local inside = {key = key, within = place}
      parts[#parts + 1] = text_of(state, key, inside)
      parts[#parts + 1] = text_of(state, rawget(t, key), inside)
    end
    texts[at] = "[" .. table.concat(parts, ",") .. "]"
    at = at + 1
  end
  return texts
end

-- ---- tensors

-- Returns the first and the last element of a tensor in its storage.
local function extent(t)
  local first = t:storage_offset()
  local last, strides = first, t:stride()
  for i, size in ipairs(t.shape) do last = last + (size - 1) * strides[i] end
  return first, last
end

local function role_of(t)
  if core.is_parameter(t) then return t.requires_grad and "parameter" or "frozen" end
  return t.requires_grad and "grad" or nil
end

-- Groups the tensors by storage and dtype; empty tensors are alone.
local function groups_of(tensors)
  local groups, by_key = {}, {}
  for _, entry in ipairs(tensors) do
    local t = entry.value
    local storage = core._memory(t)
    local key = storage and t:numel() > 0 and tostring(storage) .. t.dtype
    local group = key and by_key[key]
    if not group then
      group = {}
      groups[#groups + 1] = group
      if key then by_key[key] = group end
    end
    group[#group + 1] = entry
  end
  return groups
end

local function list_text(list)
  local parts = {}
  for i, n in ipairs(list) do parts[i] = ("%d"):format(n) end
  return "[" .. table.concat(parts, ",") .. "]"
end

-- Adds the entry of a group to the file. Tensors that share memory, and one whose elements are in
-- another order, become views of the part of the storage that they cover.
local function add_group(state, group)
  local lead = group[1].value
  local first, last = math.maxinteger, math.mininteger
  for _, entry in ipairs(group) do
    local a, b = extent(entry.value)
    first, last = math.min(first, a), math.max(last, b)
  end
  local covered = last - first + 1
  local alone = #group == 1 and (lead:is_contiguous() or covered > lead:numel())
  local whole = lead:detach()
  if not alone then whole = whole:as_strided({covered}, {1}, first) end
  local is_wide = lead.dtype == "complex128"
  local name = name_of(state, group[1].place)
  state.names_list[#state.names_list + 1] = name
  state.values[#state.values + 1] = is_wide and core.view_as_real(whole:resolve_conj()) or whole
  for _, entry in ipairs(group) do
    local t = entry.value
    local parts = {('"name":%s,"device":%s'):format(json.quote(name),
      json.quote(tostring(t.device)))}
    local role = role_of(t)
    if role then parts[#parts + 1] = '"role":' .. json.quote(role) end
    if is_wide then parts[#parts + 1] = '"complex":true' end
    if not alone then
      parts[#parts + 1] = ('"view":[%s,%s,%d]'):format(list_text(t.shape), list_text(t:stride()),
        t:storage_offset() - first)
    end
    entry.text = "{" .. table.concat(parts, ",") .. "}"
  end
end

--- Writes `value` to the file at `path`, atomically. Raises an error for a value that cannot be
-- saved; then the file is unchanged.
function saved_values.save(value, path)
  local state = {tables = {}, tensors = {}, known = {}, names = {}, names_list = {}, values = {}}
  if value == nil then refuse(nil, "nil") end
  local top = text_of(state, value, nil)
  local tables = table_texts(state)
  for _, group in ipairs(groups_of(state.tensors)) do add_group(state, group) end
  local tensors = {}
  for i, entry in ipairs(state.tensors) do tensors[i] = entry.text end
  local text = ('{"version":%d,"value":%s,"tables":[%s],"tensors":[%s]}'):format(VERSION, top,
    table.concat(tables, ",\n"), table.concat(tensors, ",\n"))
  retitle("save_safetensors", "save", core._save_safetensors, path, state.names_list, state.values,
    {"lutra"}, {text})
end

-- ---- reading

local function is_size(n) return math.type(n) == "integer" and n >= 0 end

-- Returns whether `list` is a list of at most MAX_DIMS sizes.
local function is_sizes(list)
  if type(list) ~= "table" or getmetatable(list) ~= nil or #list > MAX_DIMS then return false end
  for _, n in ipairs(list) do
    if not is_size(n) then return false end
  end
  return true
end

-- Returns the view that a file describes, or nil when it is not inside of `base`.
local function view_of(base, view)
  local shape, strides, offset = view[1], view[2], view[3]
  if not is_sizes(shape) or not is_sizes(strides) or #shape ~= #strides or not is_size(offset) then
    return nil
  end
  local last, count = offset + 0.0, 1.0
  for i, n in ipairs(shape) do
    count, last = count * n, last + (n - 1.0) * strides[i]
  end
  if count > 2 ^ 53 or count < 1 or last >= base:numel() then return nil end
  return core.as_strided(base:reshape{-1}, shape, strides, offset)
end

local special = {nan = math.abs(0 / 0), inf = math.huge, ["-inf"] = -math.huge}
local roles = {parameter = true, frozen = true, grad = true}

local function with_role(t, role)
  if role == "grad" then return t:requires_grad_(true) end
  if role then return require("lutra.nn").Parameter(t, role == "parameter") end
  return t
end

-- Returns the tensors of the description, moved to their devices; those of one entry share memory.
local function make_tensors(list, values, move, fail)
  local tensors, moved = {}, {}
  for i, saved in ipairs(list) do
    local name, device = saved.name, saved.device
    local base = type(name) == "string" and values[name]
    if not base or type(device) ~= "string" or saved.role ~= nil and not roles[saved.role] then
      fail "its description does not match its tensors"
    end
    local key = device .. " " .. name
    if not moved[key] then
      if saved.complex == true then
        if base.dtype ~= "float64" or base.ndim == 0 or base:size(-1) ~= 2 then
          fail "its description does not match its tensors"
        end
        base = core.view_as_complex(base)
      end
      moved[key] = move(base, device)
    end
    local t = moved[key]
    if saved.view ~= nil then
      t = type(saved.view) == "table" and view_of(t, saved.view)
        or fail "its description has a view that is not inside its tensor"
    end
    tensors[i] = with_role(t:detach(), saved.role)
  end
  return tensors
end

local kinds = {plain = function() return {} end, ordered = function() return ordered_map.new() end,
  shape = function() return setmetatable({}, shape_meta) end}

-- Returns a complex number of two parts, which are numbers or special ones; nil for others.
local function complex_of(re, im)
  re = type(re) == "table" and special[re[2]] or re
  im = type(im) == "table" and special[im[2]] or im
  if type(re) == "number" and type(im) == "number" then return core.complex(re, im) end
end

--- Returns the value that the text of the key "lutra" and the file's tensors describe. move(t,
-- device) moves a tensor to its device; fail(why) raises the error of a file that is not valid.
function saved_values.load(text, values, move, fail)
  local image, why = json.decode(text)
  if not image then fail("its description is damaged: " .. why) end
  if type(image) ~= "table" or getmetatable(image) ~= ordered_meta then
    fail "its description is damaged"
  end
  if image.version ~= VERSION then
    fail(("its description has version %s, expected %d"):format(tostring(image.version), VERSION))
  end
  if type(image.tables) ~= "table" or type(image.tensors) ~= "table" then
    fail "its description is damaged"
  end
  for _, saved in ipairs(image.tensors) do
    if type(saved) ~= "table" then fail "its description is damaged" end
  end
  local tensors, tables = make_tensors(image.tensors, values, move, fail), {}
  for i, saved in ipairs(image.tables) do
    local make = type(saved) == "table" and kinds[saved[1]]
    if not make or #saved % 2 ~= 1 then fail "its description is damaged" end
    tables[i] = make()
  end
  local function value_of(saved)
    local kind = type(saved)
    if kind == "number" or kind == "string" or kind == "boolean" then return saved end
    local letter, id, im = table.unpack(kind == "table" and getmetatable(saved) == nil and saved
      or {})
    local value
    if letter == "t" then value = tables[id] end
    if letter == "x" then value = tensors[id] end
    if letter == "f" then value = special[id] end
    if letter == "s" and type(id) == "string" and id:find "^%x*$" and #id % 2 == 0 then
      value = id:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end)
    end
    if letter == "c" then value = complex_of(id, im) end
    if value == nil then fail "its description refers to a missing entry" end
    return value
  end
  for i, saved in ipairs(image.tables) do
    for k = 2, #saved, 2 do
      local key = value_of(saved[k])
      if type(key) == "table" or type(key) == "userdata" or key ~= key then
        fail "its description is damaged"
      end
      tables[i][key] = value_of(saved[k + 1])
    end
  end
  return value_of(image.value)
end

return saved_values
