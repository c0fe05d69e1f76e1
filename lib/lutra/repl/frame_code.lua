--- Code that is evaluated with the variables of a frame (lutra.repl.call_frames).
--
-- The code is compiled with its own _ENV, in which names are, in this order, the frame's locals,
-- its upvalues, the session's locals and its globals, so that variables are read and assigned with
-- Lua's syntax.

local cell = require "lutra.repl.cell"
local traceback = require "lutra.repl.traceback"

local frame_code = {}

--- Returns the variable `name` of the frame, the inner one of several, or nil.
function frame_code.find(frame, name)
  local list = frame.list()
  for i = #list, 1, -1 do
    if list[i].name == name and list[i].kind ~= "vararg" then return list[i] end
  end
end

--- Returns the variables of the frame and the session, with the interface of the session's locals
-- that completion uses: get(self, name) and pairs(self), in which those of the frame hide others.
function frame_code.variables(session, frame)
  local variables = {}
  function variables.get(_, name)
    local variable = frame_code.find(frame, name)
    if variable then return true, variable.value end
    return session.locals:get(name)
  end
  function variables.pairs()
    local values, name = {}, nil
    for key, value in session.locals:pairs() do values[key] = {value} end
    for _, variable in ipairs(frame.list()) do
      if variable.kind ~= "vararg" then values[variable.name] = {variable.value} end
    end
    return function()
      name = next(values, name)
      if name then return name, values[name][1] end
    end
  end
  return variables
end

-- Returns the globals of code that is evaluated in the frame.
local function environment(session, frame)
  local meta = {}
  function meta.__index(_, name)
    local variable = frame_code.find(frame, name)
    if variable then return variable.value end
    local found, value = session.locals:get(name)
    if found then return value end
    return frame.globals[name]
  end
  function meta.__newindex(_, name, value)
    local variable = frame_code.find(frame, name)
    if variable then return frame.set(variable, value) end
    if session.locals:assign(name, value) then return end
    frame.globals[name] = value
  end
  return setmetatable({}, meta)
end

local function varargs(frame)
  local values = {n = 0}
  for _, variable in ipairs(frame.list()) do
    if variable.kind == "vararg" then
      values.n = values.n + 1
      values[values.n] = variable.value
    end
  end
  return values
end

--- Compiles an expression or statements; `name` is the chunk's name in messages. Returns a function
-- and {quiet}, or nil for text without code, or nil and the message.
function frame_code.compile(session, frame, text, name)
  local status, code = cell.read(text, "=" .. name)
  if status ~= "complete" then return nil, traceback.format(code) end
  if not code.body then return nil end
  local f = load(code.body, "=" .. name, "t", environment(session, frame))
  local values = varargs(frame)
  return function() return f(table.unpack(values, 1, values.n)) end, {quiet = code.quiet}
end

return frame_code
