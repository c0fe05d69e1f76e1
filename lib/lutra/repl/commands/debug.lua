--- :debug, and the commands of a debugger.

local debugger = require "lutra.repl.debugger"
local traceback = require "lutra.repl.traceback"

local commands = {}

local function say(...) io.stdout:write(table.concat({...}, "\n"), "\n") end

-- The debugger that is at work; an error when there is none.
local function current(session, command)
  if session.debugger then return session.debugger end
  error(("%s: cannot debug: no debugger is open\nhint: :debug inspects the error of the last cell, "
    .. "lt.breakpoint() stops running code%s"):format(command,
      command == "next" and ", :lesson opens a lesson" or ""), 0)
end

local function no_argument(command, text)
  if text ~= "" then error(("%s: expected no argument, got \"%s\""):format(command, text), 0) end
end

--- `:debug`: looks into the frames of the cell that failed last.
function commands.debug(session, text)
  no_argument("debug", text)
  local d = session.debugger
  if not d then
    local failure = session.failure
    if not failure then error("debug: cannot inspect an error: the last cell did not fail", 0) end
    local number = failure.number and ("[%d]"):format(failure.number) or ""
    d = debugger.new(failure.frames, {session = session, prompt = ("debug%s> "):format(number)})
    d:enter()
    say((traceback.message(failure.value):gsub("\n.*", "")))
  end
  say(d:backtrace(), d:report())
end

local function move(session, command, text, step)
  local d = current(session, command)
  local n = text == "" and 1 or math.tointeger(tonumber(text))
  if not n or n < 1 then
    error(("%s: expected a number of frames, got \"%s\"\nhint: :%s or :%s 2"):format(command, text,
      command, command), 0)
  end
  local to = d.selected + step * n
  if to < 1 then error(command .. ": cannot go further: this is the innermost frame", 0) end
  if to > #d.frames then error(command .. ": cannot go further: this is the outermost frame", 0) end
  d.selected = to
  say(d:report())
end

--- `:up [N]`: to the frame that called this one.
function commands.up(session, text) move(session, "up", text, 1) end

--- `:down [N]`: to the frame that this one called.
function commands.down(session, text) move(session, "down", text, -1) end

--- `:frame [N]`: to frame N of :bt; without N shows the selected one.
function commands.frame(session, text)
  local d = current(session, "frame")
  local n = text == "" and d.selected or math.tointeger(tonumber(text))
  if not n or not d.frames[n] then
    error(("frame: expected a frame from 1 to %d, got \"%s\"\nhint: :bt lists the frames"):format(
      #d.frames, text), 0)
  end
  d.selected = n
  say(d:report())
end

--- `:locals`: the variables of the selected frame.
function commands.locals(session, text)
  no_argument("locals", text)
  say(current(session, "locals"):variables())
end

--- `:bt`: the frames.
function commands.bt(session, text)
  no_argument("bt", text)
  say(current(session, "bt"):backtrace())
end

local function leave(session, command, text, verdict)
  no_argument(command, text)
  local d = current(session, command)
  if verdict ~= "continue" and not d.live then
    error(command .. ": cannot continue: the code failed\nhint: :continue leaves the debugger", 0)
  end
  d:leave(verdict)
end

--- `:continue`: what stopped at a breakpoint goes on; after an error, leaves the debugger.
function commands.continue(session, text) leave(session, "continue", text, "continue") end

--- `:next`: goes on to the next line of this function, or of its caller.
function commands.next(session, text) leave(session, "next", text, "next") end

--- `:step`: goes on to the next line, also of a function that is called.
function commands.step(session, text) leave(session, "step", text, "step") end

return commands
