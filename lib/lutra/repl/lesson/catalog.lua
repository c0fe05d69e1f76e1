--- The catalog of lessons: one Lua file each, in the order of their names.
--
-- The lessons of Lutra are in lutra/lessons/; they are followed by a teacher's own, from the folder
-- LUTRA_LESSONS, else $XDG_CONFIG_HOME/lutra/lessons. Lutra's own are adapted to a machine whose
-- only GPU is "mps". Invariant: a file is run only when its lesson
-- is opened, with its own globals, so that an error or an endless loop in it affects no other
-- lesson. The error is then in the lesson's field `wrong`.

local files = require "lutra.repl.files"
local globals = require "lutra.repl.globals"
local nearest = require "lutra.internal.nearest"
local traceback = require "lutra.repl.traceback"

local catalog = {}

-- The fields of a lesson: name, type, and purpose, for the message about an invalid one.
local fields = {
  {"title", "string", "a short name"},
  {"goal", "string", "the goal, one sentence"},
  {"text", "string", "a page to read"},
  {"start", "string", "the code to fix"},
  {"hints", "table", "a list of strings"},
  {"check", "function", "check(env, lt, see) returns true or false, and a message"},
  {"solution", "string", "code that passes the check"},
  {"setup", "function", "called when the lesson is opened", optional = true},
  {"teardown", "function", "called when it is left", optional = true},
  {"devices", "number", "how many GPUs it needs", optional = true},
}

local function builtin_folder()
  return debug.getinfo(1, "S").source:match "^@(.*)repl/lesson/catalog%.lua$" .. "lessons"
end

local function own_folder()
  local given = os.getenv "LUTRA_LESSONS"
  if given and given ~= "" then return given, true end
  return files.user_path("config", "lessons")
end

-- ---- the contents of a file

-- Returns the environment of a lesson's file: its own globals, Lua's, and the names of the prompt.
local function environment()
  local lua = _ENV
  return setmetatable({}, {__index = function(_, name)
    local value = lua[name]
    if value == nil then return globals.get(name) end
    return value
  end})
end

local function kind(value) return value == nil and "nil" or "a " .. type(value) end

local function wrong_field(lesson)
  for _, field in ipairs(fields) do
    local name, expected, use = table.unpack(field)
    local value = rawget(lesson, name)
    if type(value) ~= expected and not (field.optional and value == nil) then
      return name, ('expected a %s for field "%s" (%s), got %s'):format(expected, name, use,
        kind(value))
    end
  end
end

local function unknown_field(lesson)
  local known = {}
  for i, field in ipairs(fields) do known[i] = field[1] end
  local names = table.concat(known, " ")
  for name in next, lesson do
    if type(name) ~= "string" or not (" " .. names .. " "):find(" " .. name .. " ", 1, true) then
      local near = type(name) == "string" and nearest.find(name, known)
      return tostring(name), ('unknown field "%s"; %s'):format(tostring(name),
        near and ("did you mean '%s'?"):format(near) or "the fields are " .. names)
    end
  end
end

local function wrong_hint(lesson)
  for i, hint in ipairs(lesson.hints) do
    if type(hint) ~= "string" then
      return "hints", ("expected a string for hint %d, got %s"):format(i, kind(hint))
    end
  end
end

local function wrong_code(lesson)
  for _, name in ipairs {"start", "solution"} do
    local compiled, why = load(lesson[name], "=" .. name, "t")
    if not compiled then return name, ('cannot compile field "%s": %s'):format(name, why) end
  end
end

local function wrong_number(lesson)
  if lesson.devices and (math.tointeger(lesson.devices) or -1) < 0 then
    return "devices", ('expected an integer for field "devices", got %s'):format(
      lesson.devices)
  end
end

-- Returns the first invalid field and the reason, or nil.
local function wrong_of(lesson)
  if type(lesson) ~= "table" then
    return "return", ("expected the file to return a table, return {title = ...}, got %s"):format(
      lesson == nil and "nil" or "a " .. type(lesson))
  end
  for _, look in ipairs {wrong_field, unknown_field, wrong_hint, wrong_code, wrong_number} do
    local name, why = look(lesson)
    if name then return name, why end
  end
end

-- Returns "PATH:12: reason" with the line that begins with the field; "PATH: reason" without one.
local function placed(path, field, why)
  local number = 0
  for line in ((files.read(path) or "") .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local word, behind = line:match "^%s*([%a_][%w_]*)%s*(.?)"
    if word == field and (behind == "=" or field == "return") then
      return ("%s:%d: %s"):format(path, number, why)
    end
  end
  return ("%s: %s"):format(path, why)
end

--- Returns whether an error message has a line of the file that defines the function f. (Lua
-- truncates a long path at its beginning.)
function catalog.is_from(message, f)
  local start = debug.getinfo(f, "S").short_src .. ":"
  return message:sub(1, #start) == start
end

-- Returns the text of a lesson of Lutra, which is written for "cuda:0", for a machine whose only
-- GPU is "mps".
local function adapt(text)
  local lt = require "lutra"
  if lt.cuda.is_available() or not lt.mps.is_available() then return text end
  return (text:gsub("cuda:0", "mps"):gsub("lt%.cuda%.", "lt.accelerator."))
end

-- Runs a file. Returns its table, or nil and the reason.
local function run(path)
  local own = path:sub(1, #builtin_folder()) == builtin_folder()
  local text = own and files.read(path)
  local f, why
  if text then
    f, why = load(adapt(text), "@" .. path, "t", environment())
  else
    f, why = loadfile(path, "t", environment())
  end
  if not f then return nil, why end
  local ok, lesson = pcall(f)
  if not ok then
    local message = traceback.message(lesson)
    return nil, catalog.is_from(message, f) and message or ("%s: %s"):format(path, message)
  end
  local field, reason = wrong_of(lesson)
  if field then return nil, placed(path, field, reason) end
  return lesson
end

--- Returns the lesson of an entry of the list, read from its file: {name, path, ...the fields}; or
-- {name, path, title, wrong = "PATH:LINE: reason"}.
function catalog.read(entry)
  local copy = {name = entry.name, path = entry.path}
  local lesson, why = nil, entry.wrong
  if not why then lesson, why = run(entry.path) end
  if not lesson then
    copy.title, copy.wrong = entry.name, why
    return copy
  end
  for _, field in ipairs(fields) do copy[field[1]] = lesson[field[1]] end
  return copy
end

-- ---- which files there are

-- Returns why the name of a file, which identifies its progress, is invalid, or nil; `taken` has
-- the names before it.
local function wrong_name(name, path, taken)
  if not name:match "^[%w_.-]+$" then
    return path .. ": expected letters, digits, _, . and - in its name"
  end
  if taken[name] then
    return ("%s: a lesson %s exists in %s; rename this one"):format(path,
      name, taken[name])
  end
end

local function add_folder(list, taken, folder)
  local names = {}
  for _, file in ipairs(files.list(folder) or {}) do
    names[#names + 1] = file:match "^([^.].*)%.lua$"
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local path = folder .. "/" .. name .. ".lua"
    list[#list + 1] = {name = name, path = path, wrong = wrong_name(name, path, taken)}
    taken[name] = taken[name] or path
  end
end

--- Returns the list of lessons, entries {name, path, wrong = reason or nil}, and a note for the
-- user or nil. No file is read.
function catalog.list()
  local list, taken = {}, {}
  add_folder(list, taken, builtin_folder())
  local folder, given = own_folder()
  if not folder then return list end
  if given and not files.list(folder) then
    return list, ("LUTRA_LESSONS: cannot read the folder %s"):format(folder)
  end
  add_folder(list, taken, folder)
  return list
end

return catalog
