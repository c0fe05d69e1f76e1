--- The debugger: evaluates inputs with the variables of a selected frame.
--
-- An input is compiled with its own _ENV, in which names are, in this order, the frame's locals,
-- its upvalues, the session's locals and its globals, so that variables are read and assigned with
-- Lua's syntax. The frames are those of a failed cell (copies), or of code that stopped at
-- lt.breakpoint() and continues later (live).
--
-- While session.debugger is set, session:execute passes inputs to debugger:execute.

local cell = require "lutra.repl.cell"
local host = require "lutra.repl.host"
local limits = require("lutra.repl.options").value
local format_value = require "lutra.repl.format_value"
local source_lines = require "lutra.repl.source_lines"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"
local traceback = require "lutra.repl.traceback"

local debugger = {}
debugger.__index = debugger

-- Returns the index of the innermost frame of user code.
local function first_own(frames)
  for i, frame in ipairs(frames) do
    if not frame.is_library then return i end
  end
  return 1
end

--- Returns a debugger for `frames`. `options`: session; prompt (a string); live: the code continues
-- when the debugger ends. Fields: selected (an index of frames), verdict (how it ended:
-- "continue", "quit", "next", "step"; nil while it is active).
function debugger.new(frames, options)
  return setmetatable({
    frames = frames,
    session = options.session,
    live = options.live,
    text = options.prompt,
    selected = first_own(frames),
  }, debugger)
end

--- Returns the prompt.
function debugger:prompt() return self.text end

--- Ends the debugger; live code continues, or is stopped ("quit").
function debugger:leave(verdict)
  self.verdict = verdict
  if self.session.debugger == self then self.session.debugger = self.outer end
end

--- Makes this the session's debugger, which gets its inputs.
function debugger:enter()
  self.outer = self.session.debugger
  self.session.debugger = self
end

--- Returns the selected frame.
function debugger:frame() return self.frames[self.selected] end

-- ---- names

-- Returns the variable `name` of the frame, or nil.
local function find(frame, name)
  local list = frame.list()
  for i = #list, 1, -1 do
    if list[i].name == name and list[i].kind ~= "vararg" then return list[i] end
  end
end

--- Returns whether the frame or the session has a variable of that name, and its value; an
-- interface like that of the session's locals, for completion.
function debugger:get(name)
  local variable = find(self:frame(), name)
  if variable then return true, variable.value end
  return self.session.locals:get(name)
end

--- Iterates over names and values of these variables, in no order.
function debugger:pairs()
  local values, name = {}, nil
  for key, value in self.session.locals:pairs() do values[key] = {value} end
  for _, variable in ipairs(self:frame().list()) do
    if variable.kind ~= "vararg" then values[variable.name] = {variable.value} end
  end
  return function()
    name = next(values, name)
    if name then return name, values[name][1] end
  end
end

-- Returns the globals of code that is evaluated in the frame.
local function environment(session, frame)
  local meta = {}
  function meta.__index(_, name)
    local variable = find(frame, name)
    if variable then return variable.value end
    local found, value = session.locals:get(name)
    if found then return value end
    return frame.globals[name]
  end
  function meta.__newindex(_, name, value)
    local variable = find(frame, name)
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

-- Evaluates an input in the selected frame and shows its value.
local function evaluate(self, text)
  local session, frame = self.session, self:frame()
  host.sources.debug = text
  local status, code = cell.read(text, "=debug")
  if status ~= "complete" then return session:print_error(traceback.format(code)) end
  if not code.body then return end
  local f = load(code.body, "=debug", "t", environment(session, frame))
  local values = varargs(frame)
  local ok, results = session:guard(f, nil, table.unpack(values, 1, values.n))
  if not ok or results.n == 0 or code.quiet then return end
  session:guard(function() session:show(results) end)
end

--- Runs one input. Commands with a colon are run by the session; other inputs are evaluated in the
-- frame.
function debugger:execute(text, run_command)
  local word = text:match "^%s*:%s*(%S*)" or text:match "^%s*(%a+)%s*$"
  local is_command = text:match "^%s*:" ~= nil
  local leaves = word == "quit" or word == "exit" or word == "q"
  if leaves and (is_command or not find(self:frame(), word)) then
    io.stdout:write(self.live and "stopped the code\n"
      or "left the debugger; :quit again ends the session\n")
    return self:leave "quit"
  end
  if self.session.kind(text) then return run_command(self.session, text) end
  evaluate(self, text)
end

-- ---- showing

local function place(frame)
  return (frame.chunk:match "^[@=](.*)$" or "code") .. ":" .. frame.line
end

--- Returns the list of frames as text, with the selected one marked.
function debugger:backtrace()
  local lines, width = {}, style.width()
  for i, frame in ipairs(self.frames) do
    local line = ("%s %d  %s: in %s"):format(i == self.selected and ">" or " ", i, place(frame),
      frame.label)
    line = texts.cut(line, width)
    if i == self.selected then
      line = style.paint("heading", line)
    elseif frame.is_library then
      line = style.paint("faint", line)
    end
    lines[#lines + 1] = line
    if frame.skipped then lines[#lines + 1] = ("  ... %d more ..."):format(frame.skipped) end
  end
  return table.concat(lines, "\n")
end

-- Formats a value with few items.
local function format_briefly(value)
  local depth, items = limits.depth, limits.items
  limits.depth, limits.items = 2, 8
  local ok, text = pcall(format_value.value, value)
  limits.depth, limits.items = depth, items
  return ok and text or ("(a %s that cannot be shown)"):format(type(value))
end

-- Formats a value in one line. Runs __tostring, which may fail.
local function brief(value, width)
  local core = package.loaded["lutra.core"]
  if core and core.is_tensor(value) and not core._is_freed(value) and value:numel() > 1 then
    return ("tensor %s %s on %s"):format(value.shape, value.dtype, value.device)
  end
  local text = format_briefly(value):gsub("%s*\n%s*", " ")
  return texts.cut(text, math.max(8, width))
end

--- Returns the variables of the selected frame, one per line.
function debugger:variables()
  local lines, width = {}, style.width()
  for _, variable in ipairs(self:frame().list()) do
    local name = variable.name
    local note = variable.kind == "upvalue" and "  (outer)" or ""
    lines[#lines + 1] = ("  %s = %s%s"):format(name,
      brief(variable.value, width - texts.width(name) - #note - 5), note)
  end
  return #lines > 0 and table.concat(lines, "\n") or "  no local variables"
end

--- Returns the lines of source around the line of the selected frame.
function debugger:source()
  local frame = self:frame()
  local text = source_lines.text(frame.chunk)
  return text and source_lines.block(text, frame.line, {}) or "  (no source)"
end

--- Returns the report on the selected frame: location, source and variables.
function debugger:report()
  local frame = self:frame()
  return ("%s: in %s\n%s\n%s"):format(place(frame), frame.label, self:source(), self:variables())
end

return debugger
