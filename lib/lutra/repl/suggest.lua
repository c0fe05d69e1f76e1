--- "did you mean": suggestions for an error from its message and its frame.
--
-- A missing name is compared with the names available where it was looked up: the variables of the
-- frame, the fields of the table before the dot. Constructs of other languages are in
-- other_languages.lua. Invariant: no user code runs, no error is raised, and without a near name
-- there is no suggestion.

local args = require "lutra.internal.args"
local code = require "lutra.repl.suggest.code"
local globals = require "lutra.repl.globals"
local other_languages = require "lutra.repl.other_languages"
local lexer = require "lutra.repl.lexer"
local nearest = require "lutra.internal.nearest"
local source_location = require "lutra.repl.source_location"
local source_lines = require "lutra.repl.source_lines"
local call_frames = require "lutra.repl.call_frames"
local static_values = require "lutra.repl.complete.static_values"
local syntax = require "lutra.repl.suggest.syntax"

local suggest = {}

local function did_you_mean(...) return "did you mean " .. table.concat({...}, " or ") .. "?" end
local function quote(name) return "'" .. name .. "'" end

-- ---- the frame

-- Returns the variables that the function `info.func` at a level can access: a table of names and
-- {value}.
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

-- ---- undefined globals

local ours = {"lt", "nn", "F", "optim", "data"}
local standard = {"math", "string", "table", "os", "io", "utf8", "coroutine"}

-- Returns the table of `library` in code with these `variables`, and its name there; nil when it
-- has none. When only lt is defined, nn is lt.nn.
local function library_of(library, variables)
  local seen = variables[library] and variables[library][1] or rawget(_G, library)
  if seen == nil and globals.installed then seen = globals.get(library) end
  if type(seen) == "table" then return seen, library end
  local lt = variables.lt and variables.lt[1]
  if lt ~= nil and lt == package.loaded["lutra"] then return lt[library], "lt." .. library end
end

-- Returns the field `name` of the first of the libraries that has it, quoted. A single letter is
-- not searched.
local function in_tables(name, libraries, variables)
  if #name < 2 then return nil end
  for _, library in ipairs(libraries) do
    local t, written = library_of(library, variables)
    if type(t) == "table" and rawget(t, name) ~= nil then return quote(written .. "." .. name) end
  end
end

-- Returns the names of all accessible variables: of the frame, the session, and globals.
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
  if other_languages.globals[name] then return other_languages.globals[name] end
  local declaration = not globals.installed and globals.declaration(name)
  if declaration then return "a script must declare it: " .. declaration end
  local first = in_tables(name, ours, variables)
  local second = in_tables(name, standard, variables)
  if first or second then return did_you_mean(first or second, first and second) end
  local command = session and require("lutra.repl.commands").find(name)
  if command and command.name == name then return did_you_mean(quote(":" .. name)) end
  local near = nearest.find(name, all_names(variables, session))
  return near and did_you_mean(quote(near)) or nil
end

-- ---- together

local function session_here()
  local repl = package.loaded["lutra.repl"]
  return type(repl) == "table" and repl.session or nil
end

-- Returns the context of the frame at a level: {variables, session, view}.
local function frame_at(co, level, info)
  local variables, session = frame_variables(co, level, info), session_here()
  local text = source_lines.text(info.source)
  local nested = info.what ~= "main" and info.linedefined == info.currentline
  return {
    variables = variables, session = session, text = text, line = info.currentline,
    view = text and code.view(text, info.currentline, variables, session, nested),
  }
end

-- Returns the context of a location whose frame is gone.
local function frame_of_place(place)
  local text = place and source_lines.text(source_location.chunk(place))
  return {variables = {}, view = text and code.view(text, place.number, {})}
end

local function about_nil(kind, name, frame)
  if kind == "global" then
    local before_string = other_languages.prefixes[name] and frame.view
      and frame.view.text:find("%f[%w_]" .. name .. "[\"']")
    if before_string then return other_languages.prefixes[name] end
    return about_global(name, frame.variables, frame.session)
  end
  if kind ~= "field" and kind ~= "method" then return nil end
  local near, missing, absent
  if frame.view then near, missing, absent = code.field(frame.view, name) end
  if absent then return absent end
  if near then return did_you_mean(quote(near)) end
  if missing and kind == "field" and code.has_variable(frame.view, name) then
    return ("the variable %s exists, but %s was never set"):format(name, missing)
  end
  return other_languages.methods[name]
end

local MOST_CALLERS = 30

-- Returns advice about the calls that led to the error: the one in its line, and the innermost one
-- of user code outside of it.
local function about_calls(co, level, frame, message)
  local title = message:match "^([%a_][%w_]*): "
  local advice = title and frame.view and code.call(frame.view, title)
  if advice then return advice end
  local looked_at = 0
  for at = level, level + MOST_CALLERS do
    local info = debug.getinfo(co, at, "Slf")
    if not info or looked_at == 2 then return nil end
    local users = info.currentline > 0 and call_frames.is_shown(info)
      and not call_frames.is_library(info.source)
    local callee = users and at > 0 and debug.getinfo(co, at - 1, "n").name
    local view = callee and frame_at(co, at, info).view
    advice = view and code.call(view, callee)
    if advice then return advice end
    looked_at = looked_at + (users and 1 or 0)
  end
end

-- Returns advice about a method of a module's class that was defined with a dot and without self,
-- so that its first parameter is the module: function Net.forward(x).
local function about_definition(co, level, func)
  local first, module = debug.getlocal(co, level, 1)
  local state = first and first ~= "self" and debug.getinfo(func, "u").nparams > 0
    and static_values.module_state(module)
  for name, method in next, state and state.class or {} do
    if rawequal(method, func) then
      return ("define the method with a colon: function %s:%s(...)"):format(state.class.__name,
        name)
    end
  end
end

-- Returns advice about a message that names no variable.
local function about_message(message)
  local missing = message:match '^a tensor has no field or method "(.-)"'
  if missing then return other_languages.tensor_methods[missing] end
  for _, row in ipairs(other_languages.messages) do
    if message:find(row[1]) then return row[2] end
  end
end

local function advise(message, co)
  if type(message) ~= "string" then return nil end
  local place, rest = source_location.of(message)
  local level, info
  if co then
    level, info = call_frames.level_of(co, place, source_location.blames_library(message))
  end
  local frame = level and frame_at(co, level, info) or frame_of_place(place)
  local advice = level and (about_definition(co, level, info.func)
    or about_calls(co, level, frame, rest))
  if message:find("call it as", 1, true) then return nil end
  if advice or message:find("did you mean", 1, true) then return advice or about_message(rest) end
  if frame.text and rest:find "^attempt to call a"
      and code.goes_on(frame.text, frame.line, rest:match "%(%a+ '(.-)'%)$") then
    return other_languages.goes_on
  end
  local kind, name = rest:match "a nil value %((%a+) '(.-)'%)"
  if kind and name ~= "?" and name ~= "integer index" then return about_nil(kind, name, frame) end
  advice = syntax.hint(message) or about_message(rest)
  local speaks_of_nil = rest:find "%f[%w]nil%f[^%w]" or rest:find " is missing"
    or rest:find "got no value"
  if advice or not speaks_of_nil or not level or not frame.view then return advice end
  return code.nil_names(frame.view, function(undefined)
    return about_global(undefined, frame.variables, frame.session)
  end)
end

-- Returns what a method of the class of `value` expects as self: "a module", "an Adam".
local function kind_of(value)
  return static_values.module_state(value) and "a module" or args.show(value)
end

local function without_self(co)
  for level = 1, MOST_CALLERS do
    local info = debug.getinfo(co, level, "Slf")
    if not info then return nil end
    local users = info.currentline > 0 and call_frames.is_shown(info)
      and not call_frames.is_library(info.source)
    local first, value = debug.getlocal(co, level - 1, 1)
    local callee = users and first == "self" and type(value) ~= "table"
      and debug.getinfo(co, level - 1, "n").name
    local view = callee and frame_at(co, level, info).view
    local advice, owner
    if view then advice, owner = code.call(view, callee) end
    if advice then
      return ("%s:%d: %s: expected %s for argument 'self', got %s\nhint: %s"):format(
        info.short_src, info.currentline, callee, kind_of(owner), args.show(value), advice)
    end
  end
end

--- Returns a replacement for an error's message when a method of a module was called with a dot,
-- took its argument as self, and failed for a field that it lacks; nil for other errors. Never
-- raises an error.
function suggest.without_self(co)
  local ok, text = pcall(without_self, co)
  return ok and text or nil
end

--- Returns advice about an error as one line, or nil: `message` as Lua raised it, in coroutine `co`
-- (nil: a chunk that cannot be compiled, or a coroutine that is gone). Never raises an error.
function suggest.hint(message, co)
  local ok, text = pcall(advise, message, co)
  return ok and text or nil
end

--- Returns the variables that the code at a level of the running stack, counted from the caller,
-- can access; for suggest.global.
function suggest.variables(level)
  local info = debug.getinfo(level + 1, "f")
  local variables = frame_variables(coroutine.running(), level + 2, info)
  return variables
end

--- Returns advice about an undefined global, or nil. `variables`: those of the code that read it,
-- from suggest.variables.
function suggest.global(name, variables)
  local ok, text = pcall(about_global, name, variables or {}, session_here())
  return ok and text or nil
end

--- Returns a message about a cell that is only an undefined name, when another name may be meant;
-- else nil.
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
