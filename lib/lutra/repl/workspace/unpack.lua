--- Restores variables from an image (lutra.repl.workspace.format) and the tensors of its file.
--
-- All values are created, moved to their devices and checked before the first variable is set.
-- Invariant: an error leaves the session's variables and objects unchanged. The file is data: none
-- of its text is compiled, and text from it in messages cannot control the terminal.

local core = require "lutra.core"
local lt = require "lutra"
local ordered_map = require "lutra.internal.ordered_map"
local format_value = require "lutra.repl.format_value"

local unpack = {}

-- ---- tensors

-- Returns whether a device is available.
local function is_here(device)
  local kind, index = device:match "^(%a+):?(%d*)$"
  if kind == "cpu" or not kind then return kind ~= nil end
  local ok, count = pcall(core._device_count, kind)
  return ok and count > (tonumber(index) or 0)
end

local function with_role(t, role)
  if role == "parameter" or role == "frozen" then return lt.nn.Parameter(t, role == "parameter") end
  if role == "grad" then return t:requires_grad_(true) end
  return t
end

-- Returns the tensors of the image by number.
local function make_tensors(image, values, notes)
  local made = {}
  for id, saved in ipairs(image.tensors) do
    local t
    if saved.base then
      t = lt.as_strided(made[saved.base]:detach(), saved.shape, saved.strides,
        made[saved.base]:storage_offset() + saved.offset)
    else
      t = values[saved.name]
      if not t then
        error(("the tensor \"%s\" is missing in the file"):format(
          format_value.escape(saved.name)), 0)
      end
      if is_here(saved.device) then
        t = t:to{device = saved.device}
      else
        table.insert(notes, ("%s was on %s, which is not available: it is on the cpu"):format(
          format_value.escape(saved.name), saved.device))
      end
      t = with_role(t, saved.role)
    end
    made[id] = t
  end
  return made
end

-- ---- objects

local function is_object(x)
  local ok, found = pcall(function()
    return type(x) == "table" and debug.getmetatable(x) ~= nil
      and type(x.load_state_dict) == "function" and type(x.state_dict) == "function"
  end)
  return ok and found
end

-- Returns the value of a list of keys in the session, or nil.
local function find(session, keys)
  local known, value = session.locals:get(keys[1])
  if not known then value = rawget(_G, keys[1]) end
  for i = 2, #keys do
    if type(value) ~= "table" then return nil end
    value = rawget(value, keys[i])
  end
  return is_object(value) and value or nil
end

-- Returns why the state does not match the module, or nil: its own check, without loading.
local function mismatch(module, state)
  local mine, wrong = module:state_dict(), {}
  for name, value in pairs(mine) do
    local given = state[name]
    if not lt.is_tensor(given) then
      wrong[#wrong + 1] = name .. " is not in the file"
    elseif tostring(given.shape) ~= tostring(value.shape) then
      wrong[#wrong + 1] = ("%s has shape %s in the file, %s in the session"):format(name,
        tostring(given.shape), tostring(value.shape))
    end
  end
  for name in pairs(state) do
    if mine[name] == nil then
      wrong[#wrong + 1] = format_value.escape(tostring(name)) .. " is not in the module"
    end
  end
  return wrong[1] and table.concat(wrong, "; ")
end

local function path_text(keys)
  local texts = {}
  for i, key in ipairs(keys) do texts[i] = format_value.escape(tostring(key)) end
  return table.concat(texts, ".")
end

-- Returns the objects by number: {object, state, whether it is a module} of those in the session,
-- else only the state.
local function find_objects(session, image, value, notes)
  local list = {}
  for id, saved in ipairs(image.objects) do
    local object, state = find(session, saved.path), value(saved.state)
    local name, class = path_text(saved.path), format_value.escape(saved.class)
    local is_module = object ~= nil and lt.nn.is_module(object)
    if is_module then
      local reason = mismatch(object, state)
      if reason then
        error(("load: cannot load %s into the %s of the session: %s; nothing was loaded")
          :format(name, class, reason), 0)
      end
    end
    if not object then
      table.insert(notes, ("%s holds the state of a %s: the session has no such object; "
        .. "make it, then :load again"):format(name, class))
    end
    list[id] = {object = object, state = state, is_module = is_module}
  end
  return list
end

-- Loads the states into the objects. Objects that are no modules check their state when loading,
-- so they come first; when one fails, the old states of it and of those before are restored.
local function load_objects(list)
  local undo = {}
  local function load_one(entry)
    if not entry.is_module then undo[#undo + 1] = {entry.object, entry.object:state_dict()} end
    entry.object:load_state_dict(entry.state)
  end
  for _, modules in ipairs {false, true} do
    for _, entry in ipairs(list) do
      if entry.object and entry.is_module == modules then
        local ok, message = pcall(load_one, entry)
        if not ok then
          for i = #undo, 1, -1 do pcall(undo[i][1].load_state_dict, undo[i][1], undo[i][2]) end
          message = tostring(message):gsub("^[^\n]-:%d+: ", "", 1)
          error(("load: cannot restore the session: %s; nothing was loaded"):format(message), 0)
        end
      end
    end
  end
end

-- ---- values

local function make_tables(image)
  local tables = {}
  for id, saved in ipairs(image.tables) do
    tables[id] = saved.kind == "ordered" and ordered_map.new() or {}
  end
  return tables
end

-- Sets the variables; a global that is not the user's, such as print, is not changed.
local function set_variables(session, image, value, notes)
  for _, saved in ipairs(image.variables) do
    if saved.scope == "local" then
      session.locals:set(saved.name, value(saved.value), saved.attribute == "const")
    elseif session.builtin[saved.name] then
      table.insert(notes, ("%s is not loaded: the name belongs to Lua or Lutra"):format(
        saved.name))
    else
      session.locals:forget(saved.name)
      rawset(_G, saved.name, value(saved.value))
    end
  end
end

--- Sets the session's variables to those of the image. `values` are the file's tensors. Returns a
-- list of notes for the user. Raises an error, and changes nothing, when the image does not match.
function unpack.session(session, image, values)
  local notes = {}
  local tensors, tables = make_tensors(image, values, notes), make_tables(image)
  local objects = {}
  local function value(saved)
    if type(saved) ~= "table" then return saved end
    if saved.kind == "x" then return tensors[saved.id] end
    if saved.kind == "t" then return tables[saved.id] end
    local entry = objects[saved.id]
    return entry and (entry.object or entry.state)
  end
  -- A state contains no objects, but the tables around an object do: they are filled afterwards.
  local function fill(with_objects)
    for id, saved in ipairs(image.tables) do
      for _, item in ipairs(saved.items) do
        local holds_object = type(item[2]) == "table" and item[2].kind == "o"
        if holds_object == with_objects then tables[id][item[1]] = value(item[2]) end
      end
    end
  end
  fill(false)
  objects = find_objects(session, image, value, notes)
  fill(true)
  load_objects(objects)
  set_variables(session, image, value, notes)
  return notes
end

return unpack
