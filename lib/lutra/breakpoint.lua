--- lt.breakpoint([condition]): opens the debugger at the line of the call.
--
-- At the prompt, and in a script that was started from a terminal, it shows the source location
-- and reads inputs, which are evaluated with the local variables of the running function;
-- assignments change them. :continue (:c) resumes, :next and :step run to the next line, :quit
-- ends the program with an error.
--
-- Invariant: without a terminal to read from (a script whose stdin is redirected) nothing is read:
-- it prints one warning, and the program continues.

local warned = false

local function warn(why)
  if warned then return end
  warned = true
  io.stdout:flush()
  io.stderr:write("warning: lt.breakpoint: cannot stop: ", why, "; the program continues\n")
end

-- Returns the session to read inputs with: that of the prompt, or a new one; nil and a reason
-- without a terminal.
local function find_session()
  local ok, host = pcall(require, "lutra.repl.host")
  if not ok then return nil, "it needs the program `lutra`, not a plain Lua" end
  local repl = package.loaded["lutra.repl"]
  local session = type(repl) == "table" and repl.session
  if session then return session end
  if not host.isatty(0) then return nil, "stdin is not a terminal" end
  session = require("lutra.repl.session").new()
  session:mark_builtin()
  host.editor()
  return session
end

local script_session -- made at a script's first breakpoint

local function get_session()
  if script_session then return script_session end
  local session, why = find_session()
  local repl = package.loaded["lutra.repl"]
  if session and not (repl and repl.session == session) then script_session = session end
  return session, why
end

local stop_at

-- Sets a hook in coroutine `co` that stops at the next line of user code: for :next no deeper in
-- the stack than `height`, for :step (height nil) at any depth.
local function go_to_line(co, height)
  local args = require "lutra.internal.args"
  local last_level = require("lutra.repl.call_frames").last_level
  debug.sethook(co, function()
    local info = debug.getinfo(2, "S")
    if args.is_library(info) then return end
    -- The levels in last_level: getinfo, itself, this hook, the function.
    if height and last_level(co) - 3 > height then return end
    debug.sethook(co)
    stop_at(co)
  end, "l")
end

-- Reads and runs inputs until the user resumes or quits. Meanwhile Ctrl-C interrupts an input, not
-- the program.
local function run_debugger(session, d)
  local host = require "lutra.repl.host"
  local kept = host.keep(true)
  local _ <close> = setmetatable({}, {__close = function()
    d:leave(d.verdict or "quit")
    host.keep(kept)
  end})
  d:enter()
  session:guard(function() io.stdout:write("stopped at ", d:report(), "\n") end)
  while not d.verdict do session:turn() end
  host.clear_interrupts()
end

-- Opens the debugger on the code of coroutine `co`, which calls this.
function stop_at(co)
  local notebook = package.loaded["lutra.repl.kernel.debug"]
  if notebook and notebook.breakpoint(co) then return end
  local session, why = get_session()
  if not session then return warn(why) end
  local list = require("lutra.repl.call_frames").live(co, session.mains)
  if #list == 0 then return end
  local d = require("lutra.repl.debugger").new(list,
    {session = session, prompt = "debug> ", live = true})
  run_debugger(session, d)
  if d.verdict == "quit" then error("stopped in the debugger", 0) end
  if d.verdict == "step" then go_to_line(co) end
  if d.verdict == "next" then go_to_line(co, d:frame().height) end
end

--- lt.breakpoint([condition]): opens the debugger when the condition is true or missing.
return function(...)
  if select("#", ...) > 0 and not ... then return end
  stop_at((coroutine.running()))
end
