--- The frames of a stopped program as DAP stack frames and scopes.

local json = require "lutra.internal.json"

local frames = {}

--- Returns the frames to show: the user's, and the innermost one when the program stopped in it.
function frames.shown(list, keep_first)
  local shown = {}
  for i, frame in ipairs(list) do
    if not frame.is_library or keep_first and i == 1 then shown[#shown + 1] = frame end
  end
  return shown
end

-- Returns the DAP source of a frame's chunk.
local function source_of(sources, frame)
  local name = frame.chunk:match "^[@=](.*)$" or "code"
  local path = sources:path(frame.chunk)
  if not path then return {name = name, presentationHint = "deemphasize"} end
  return {name = name:match "[^/]*$", path = path}
end

--- Returns the body of the reply to `stackTrace`; the id of a frame is its position.
function frames.trace(sources, list, arguments)
  local first = math.tointeger(arguments.startFrame) or 0
  local levels = math.tointeger(arguments.levels) or 0
  local last = levels > 0 and math.min(#list, first + levels) or #list
  local trace = json.array {}
  for i = first + 1, last do
    local frame = list[i]
    trace[#trace + 1] = {id = i, name = frame.label, line = frame.line, column = 1,
      source = source_of(sources, frame),
      presentationHint = frame.is_library and "subtle" or "normal"}
  end
  return {stackFrames = trace, totalFrames = #list}
end

-- Returns the variables of a frame: its locals and its ... , then its upvalues. Inner ones take the
-- place of the outer ones that they hide.
local function visible(frame)
  local named, at, dots = {}, {}, 0
  local function add(variable, name)
    local place = at[name] or #named + 1
    at[name] = place
    named[place] = {name = name, value = variable.value, variable = variable,
      expression = variable.kind ~= "vararg" and name or nil}
  end
  for _, variable in ipairs(frame.list()) do
    if variable.kind == "local" then add(variable, variable.name) end
    if variable.kind == "vararg" then
      dots = dots + 1
      add(variable, ("...[%d]"):format(dots))
    end
  end
  for _, variable in ipairs(frame.list()) do
    if variable.kind == "upvalue" and not at[variable.name] then add(variable, variable.name) end
  end
  return named
end

-- Returns the scope of the frame's variables.
local function frame_scope(references, frame)
  local function list() return 0, visible(frame) end
  local function set(wanted, value)
    for _, item in ipairs(visible(frame)) do
      if item.name == wanted then return frame.set(item.variable, value) end
    end
    error("no variable of this name", 0)
  end
  return {name = "Locals", presentationHint = "locals", expensive = false,
    variablesReference = references:add(list, set)}
end

--- Returns the scope of the session's variables.
function frames.session_scope(references, session)
  local function list()
    local named = {}
    for name, value in session:variables() do
      named[#named + 1] = {name = name, value = value, expression = name}
    end
    return 0, named
  end
  local function set(name, value)
    if not session.locals:assign(name, value) then rawset(_G, name, value) end
  end
  return {name = "Globals", expensive = false, variablesReference = references:add(list, set)}
end

--- Returns the list of scopes of a frame.
function frames.scopes(references, frame, session)
  return json.array {frame_scope(references, frame), frames.session_scope(references, session)}
end

return frames
