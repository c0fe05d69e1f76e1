--- The debugger: evaluates inputs with the variables of a selected frame.
--
-- The frames are those of a failed cell (copies), or of code that stopped at lt.breakpoint() and
-- continues later (live). Inputs are compiled by lutra.repl.frame_code.
--
-- While session.debugger is set, session:execute passes inputs to debugger:execute.

local brief = require "lutra.repl.brief"
local frame_code = require "lutra.repl.frame_code"
local host = require "lutra.repl.host"
local source_lines = require "lutra.repl.source_lines"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local find = frame_code.find

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

-- Returns the variables of the selected frame and the session.
local function variables(self) return frame_code.variables(self.session, self:frame()) end

--- Returns whether the frame or the session has a variable of that name, and its value; an
-- interface like that of the session's locals, for completion.
function debugger:get(name) return variables(self):get(name) end

--- Iterates over names and values of these variables, in no order.
function debugger:pairs() return variables(self):pairs() end

-- Evaluates an input in the selected frame and shows its value.
local function evaluate(self, text)
  local session, frame = self.session, self:frame()
  host.sources.debug = text
  local f, made = frame_code.compile(session, frame, text, "debug")
  if not f then return made and session:print_error(made) end
  local ok, results = session:guard(f)
  if not ok or results.n == 0 or made.quiet then return end
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

--- Returns the variables of the selected frame, one per line.
function debugger:variables()
  local lines, width = {}, style.width()
  for _, variable in ipairs(self:frame().list()) do
    local name = variable.name
    local note = variable.kind == "upvalue" and "  (outer)" or ""
    lines[#lines + 1] = ("  %s = %s%s"):format(name,
      brief.text(variable.value, width - texts.width(name) - #note - 5), note)
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
