--- "did you mean": advice about an error from its message and the frame it arose in.
--
-- A name that is not there is compared with those that are there, where it was looked for: the
-- variables of the frame, the fields of the table before the dot. What people write who know
-- another language is in habits.lua. Invariant: nothing of the user's runs, nothing is raised, and
-- where nothing is near nothing is said.

local globals = require "lutra.repl.globals"
local habits = require "lutra.repl.habits"
local lexer = require "lutra.repl.lexer"
local nearest = require "lutra.nearest"
local source = require "lutra.repl.source"

local suggest = {}

local function did_you_mean(...) return "did you mean " .. table.concat({...}, " or ") .. "?" end
local function quote(name) return "'" .. name .. "'" end

-- ---- the frame

-- The level of `co` that the message is about, else the innermost in Lua; and what is known of it.
local function find_frame(message, co)
  local first, known
  for level = 0, 100 do
    local info = debug.getinfo(co, level, "Slf")
    if not info then break end
    if info.currentline > 0 then
      if not first then first, known = level, info end
      local place = ("%s:%d:"):format(info.short_src, info.currentline)
      if message:find(place, 1, true) then return level, info end
    end
  end
  return first, known
end

-- The variables that are seen at a level: a table of names and {value}.
local function frame_variables(co, level, info)
  local variables = {}
  for i = 1, 255 do
    local name, value = debug.getupvalue(info.func, i)
    if not name then break end
    variables[name] = {value}
  end
  for i = 1, 255 do
    local name, value = debug.getlocal(co, level, i)
    if not name then break end
    if name:match "^[%a_]" then variables[name] = {value} end
  end
  return variables
end

-- ---- names that are not global

local ours = {"lt", "nn", "F", "optim", "data"}
local standard = {"math", "string", "table", "os", "io", "utf8", "coroutine"}

-- The table that code which sees `variables` knows as `library`, and what it writes for it; nil
-- when it sees none. Where only lt is seen, nn is lt.nn.
local function library_of(library, variables)
  local seen = variables[library] and variables[library][1] or rawget(_G, library)
  if seen == nil and globals.installed then seen = globals.get(library) end
  if type(seen) == "table" then return seen, library end
  local lt = variables.lt and variables.lt[1]
  if lt ~= nil and lt == package.loaded["lutra"] then return lt[library], "lt." .. library end
end

-- The field `name` of the first of the libraries that has it, in quotes.
local function in_tables(name, libraries, variables)
  for _, library in ipairs(libraries) do
    local t, written = library_of(library, variables)
    if type(t) == "table" and rawget(t, name) ~= nil then return quote(written .. "." .. name) end
  end
end

-- The names of all variables that are seen: of the frame, the session, all code.
local function all_names(variables, session)
  local names = globals.installed and globals.names() or {}
  for name in pairs(variables) do names[#names + 1] = name end
  for _, name in ipairs(nearest.names(_G)) do names[#names + 1] = name end
  if session then
    for name in session.locals:pairs() do names[#names + 1] = name end
  end
  return names
end

local function about_global(name, variables, session)
  if habits.globals[name] then return habits.globals[name] end
  local first = in_tables(name, ours, variables)
  local second = in_tables(name, standard, variables)
  if first or second then return did_you_mean(first or second, first and second) end
  if session and require("lutra.repl.commands").find(name) then
    return did_you_mean(quote(":" .. name))
  end
  local near = nearest.find(name, all_names(variables, session))
  return near and did_you_mean(quote(near)) or nil
end

-- ---- fields and methods

-- Where in the tokens the name stands behind a dot or a colon: a list of places.
local function find_field(list, name)
  local found = {}
  for i = 3, #list do
    local before = list[i - 1][2]
    if list[i][1] == "name" and list[i][2] == name and (before == "." or before == ":") then
      found[#found + 1] = i
    end
  end
  return found
end

-- A session as completion wants it, whose variables are those of a frame.
local function as_session(variables, session)
  return {locals = {get = function(_, name)
    if variables[name] then return true, variables[name][1] end
    if session then return session.locals:get(name) end
    return false
  end}}
end

-- The field of `thing` nearest to `name`, or nil.
local function near_field(thing, name)
  local names, there = {}, false
  require("lutra.repl.complete.things").members(thing, function(field)
    if field == name then there = true end
    if type(field) == "string" and field:match "^[^_]" then names[#names + 1] = field end
  end)
  return not there and nearest.find(name, names) or nil
end

-- Advice about the field `name` that was nil in that line of code.
local function about_field(name, line, session)
  local tokens = require "lutra.repl.complete.tokens"
  local expression = require "lutra.repl.complete.expression"
  local read = tokens.read(line .. " ")
  for _, i in ipairs(find_field(read.list, name)) do
    local first = expression.start(read, i - 2)
    local place = {read = read, session = session, variables = {}, assigned = {}, depth = 0}
    local thing = first and expression.resolve(place, first, i - 2)
    local near = thing and near_field(thing, name)
    if near then
      local chain = line:sub(read.list[first][3], read.list[i][3] - 1)
      return did_you_mean(quote(#chain <= 30 and chain .. near or near))
    end
  end
end

-- ---- syntax

-- A line without what stands in its strings and comments.
local function bare(line)
  local parts = {}
  for kind, text in lexer.tokens(line) do
    parts[#parts + 1] = kind == "comment" and "" or kind == "string" and '""' or text
  end
  return table.concat(parts)
end

local function about_line(line)
  local code = bare(line)
  for _, row in ipairs(habits.lines) do
    if code:find(row[1]) then return row[2] end
  end
end

-- The text of the chunk that a message names, and the line.
local function place_of(message)
  local name, number = message:match "^(%[string \".-\"%]):(%d+): "
  if not name then name, number = message:match "([^\n:]+):(%d+): " end
  if not name then return nil end
  return source.text("=" .. name) or source.text("@" .. name), tonumber(number)
end

-- Advice about what Lua says itself.
local function about_message(message)
  for _, row in ipairs(habits.messages) do
    if message:find(row[1]) then return row[2] end
  end
end

local function about_syntax(message)
  if not message:find " near " then return nil end
  local text, number = place_of(message)
  for n = number or 0, math.max(1, (number or 0) - 3), -1 do
    local line = text and source.line(text, n)
    local advice = line and about_line(line)
    if advice then return advice end
  end
end

-- ---- together

local function session_here()
  local repl = package.loaded["lutra.repl"]
  return type(repl) == "table" and repl.session or nil
end

local function about_nil(kind, name, message, co)
  local session = session_here()
  local level, info
  if co then level, info = find_frame(message, co) end
  local variables = level and frame_variables(co, level, info) or {}
  if kind == "global" then return about_global(name, variables, session) end
  if kind ~= "field" and kind ~= "method" then return nil end
  local text, number
  if info then
    text, number = source.text(info.source), info.currentline
  else
    text, number = place_of(message)
  end
  local line = text and source.line(text, number)
  local near = line and about_field(name, line, as_session(variables, session))
  return near or habits.methods[name]
end

local function advise(message, co)
  if type(message) ~= "string" or message:find("did you mean", 1, true) then return nil end
  local kind, name = message:match "a nil value %((%a+) '(.-)'%)"
  if kind then return about_nil(kind, name, message, co) end
  return about_syntax(message) or about_message(message)
end

--- Advice about an error: `message` as Lua raised it, in coroutine `co` (nil: a chunk that did not
-- load, or a coroutine that is gone). A text of one line, or nil. Never raises.
function suggest.hint(message, co)
  local ok, text = pcall(advise, message, co)
  return ok and text or nil
end

--- The same about the name of a global that is not defined.
function suggest.global(name)
  local ok, text = pcall(about_global, name, {}, session_here())
  return ok and text or nil
end

--- About a cell that is nothing but a name: what to say when it is not defined and something else
-- may have been meant, else nil.
function suggest.undefined(text, session)
  local list = lexer.significant(text)
  local name = list[1] and list[1][1] == "name" and list[1][2]
  if not name or #list > 1 then return nil end
  if session.locals:get(name) or rawget(_G, name) ~= nil or globals.get(name) ~= nil then
    return nil
  end
  local advice = suggest.global(name)
  return advice and ("(%s is not defined; %s)"):format(name, advice) or nil
end

return suggest
