--- The lessons that there are: one Lua file each, in the order of their names.
--
-- Those that come with Lutra are in lutra/lessons/; behind them stand a teacher's own, from the
-- folder LUTRA_LESSONS, else $XDG_CONFIG_HOME/lutra/lessons. A file with an error is a lesson that
-- cannot be opened, with the reason in `wrong`; the others are not touched by it.

local files = require "lutra.repl.files"
local host = require "lutra.repl.host"

local catalog = {}

-- The fields of a lesson: name, type, and what it is for, for the message about one that is wrong.
local fields = {
  {"title", "string", "a short name"},
  {"goal", "string", "one sentence: what is to be reached"},
  {"text", "string", "a page to read"},
  {"start", "string", "the code to mend"},
  {"hints", "table", "a list of texts"},
  {"check", "function", "check(env, lt, see) returns true or false, and a message"},
  {"solution", "string", "code that passes"},
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
  return files.place("config", "lessons")
end

-- What is wrong with what a file gave, or nil.
local function wrong_field(lesson)
  if type(lesson) ~= "table" then
    return ("it returns a %s, it wants to return a table: return {title = ...}"):format(
      type(lesson))
  end
  for _, field in ipairs(fields) do
    local name, kind, use = table.unpack(field)
    local value = rawget(lesson, name)
    if type(value) ~= kind and not (field.optional and value == nil) then
      return ('its field "%s" is a %s, it wants a %s: %s'):format(name, type(value), kind, use)
    end
  end
  for i, hint in ipairs(lesson.hints) do
    if type(hint) ~= "string" then
      return ("hint %d is a %s, it wants a string"):format(i, type(hint))
    end
  end
  local compiled, why = load(lesson.start, "=start")
  return not compiled and ('its field "start" is no Lua: ' .. why) or nil
end

--- Reads one file: {name, path, ...the fields}, or {name, path, title, wrong = why}.
function catalog.read(path)
  local name = path:match "([^/]+)%.lua$" or path
  local f, why = loadfile(path, "t")
  local ok, lesson = f ~= nil, why
  if f then ok, lesson = pcall(f) end
  local wrong = not ok and tostring(lesson) or wrong_field(lesson)
  if wrong then return {name = name, path = path, title = name, wrong = wrong} end
  local copy = {name = name, path = path}
  for _, field in ipairs(fields) do copy[field[1]] = lesson[field[1]] end
  return copy
end

local function add_folder(list, folder)
  local names = {}
  for _, name in ipairs(host.list(folder) or {}) do
    if name:match "^[%w_.-]+%.lua$" and not name:match "^%." then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do list[#list + 1] = catalog.read(folder .. "/" .. name) end
end

--- The list of lessons, and a note for the user or nil.
function catalog.list()
  local list = {}
  add_folder(list, builtin_folder())
  local folder, given = own_folder()
  if not folder then return list end
  if given and not host.list(folder) then
    return list, ("LUTRA_LESSONS names %s, which is no folder that can be read"):format(folder)
  end
  add_folder(list, folder)
  return list
end

return catalog
