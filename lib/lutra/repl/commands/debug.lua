--- The command :debug, and the commands of the debugger.

local front = require "lutra.repl.front"
local debugger = require "lutra.repl.debugger"
local style = require "lutra.repl.style"
local traceback = require "lutra.repl.traceback"

local commands = {}

local function print_lines(...) io.stdout:write(table.concat({...}, "\n"), "\n") end

-- Returns the active debugger; raises an error without one.
local function current(session, command)
  if session.debugger then return session.debugger end
  error(("%s: cannot debug: no debugger is open\nhint: :debug inspects the error of the last cell, "
    .. "lt.breakpoint() stops running code%s"):format(command,
      command == "next" and ", :lesson opens a lesson" or ""), 0)
end

local function no_argument(command, text)
  if text ~= "" then error(("%s: expected no argument, got \"%s\""):format(command, text), 0) end
end

local note = "The next cells run in the marked frame; :continue leaves the debugger."

--- `:debug` opens the debugger on the frames of the last cell that failed.
function commands.debug(session, text)
  no_argument("debug", text)
  local d = session.debugger
  local opens = not d
  if opens then
    local failure = session.failure
    if not failure then error("debug: cannot inspect an error: the last cell did not fail", 0) end
    local number = failure.number and ("[%d]"):format(failure.number) or ""
    d = debugger.new(failure.frames, {session = session, prompt = ("debug%s> "):format(number)})
    d:enter()
    print_lines((traceback.message(failure.value):gsub("\n.*", "")))
  end
  print_lines(d:backtrace(), d:report())
  if opens and front.notebook then print_lines(style.paint("faint", note)) end -- it has no prompt
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
  print_lines(d:report())
end

--- `:up [N]` selects the caller's frame, or the frame N calls further out.
function commands.up(session, text) move(session, "up", text, 1) end

--- `:down [N]` selects the frame of the called function, or the frame N calls further in.
function commands.down(session, text) move(session, "down", text, -1) end

--- `:frame N` selects frame N of :bt; `:frame` shows the selected frame.
function commands.frame(session, text)
  local d = current(session, "frame")
  local n = text == "" and d.selected or math.tointeger(tonumber(text))
  if not n or not d.frames[n] then
    error(("frame: expected a frame from 1 to %d, got \"%s\"\nhint: :bt lists the frames"):format(
      #d.frames, text), 0)
  end
  d.selected = n
  print_lines(d:report())
end

--- `:locals` lists the variables of the selected frame.
function commands.locals(session, text)
  no_argument("locals", text)
  print_lines(current(session, "locals"):variables())
end

--- `:bt` lists the frames.
function commands.bt(session, text)
  no_argument("bt", text)
  print_lines(current(session, "bt"):backtrace())
end

local function leave(session, command, text, verdict)
  no_argument(command, text)
  local d = current(session, command)
  if verdict ~= "continue" and not d.live then
    error(command .. ": cannot continue: the code failed\nhint: :continue leaves the debugger", 0)
  end
  d:leave(verdict)
end

--- `:continue` resumes code that stopped at a breakpoint; after an error it closes the debugger.
function commands.continue(session, text) leave(session, "continue", text, "continue") end

--- `:next` runs to the next line of this function, or of its caller.
function commands.next(session, text) leave(session, "next", text, "next") end

--- `:step` runs to the next line, also of a called function.
function commands.step(session, text) leave(session, "step", text, "step") end

return commands
