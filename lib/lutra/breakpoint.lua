--- lt.breakpoint([condition]): stops here and asks what to do.
--
-- At the prompt, and in a script that was started from a terminal: shows the place, and reads
-- inputs that are evaluated with the variables of the running function; assignments change them.
-- :continue (:c) goes on, :next and :step to another line, :quit ends what runs with an error.
--
-- Invariant: where nobody can answer (a script whose stdin is no terminal), nothing is read: a
-- warning is said once, and the program goes on.

local warned = false

local function warn(why)
  if warned then return end
  warned = true
  io.stdout:flush()
  io.stderr:write("warning: lt.breakpoint: ", why, "; the program goes on\n")
end

-- The session to read inputs with: the prompt's, or a new one; nil and why not.
local function find_session()
  local ok, host = pcall(require, "lutra.repl.host")
  if not ok then return nil, "it works in the program `lutra`, not in a bare Lua" end
  local repl = package.loaded["lutra.repl"]
  local session = type(repl) == "table" and repl.session
  if session then return session end
  if not host.isatty(0) then return nil, "stdin is no terminal, so nobody can answer" end
  session = require("lutra.repl.session").new()
  session:mark_builtin()
  host.editor()
  return session
end

local own -- of a script: made at its first breakpoint

local function get_session()
  if own then return own end
  local session, why = find_session()
  local repl = package.loaded["lutra.repl"]
  if session and not (repl and repl.session == session) then own = session end
  return session, why
end

local stop_at

-- Sets the hook that ends a :next (no deeper than `height`) or a :step (height nil) in `co`.
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

-- Reads and runs inputs until the debugger is left. Ctrl-C is for them.
local function converse(session, d)
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

-- Stops the code of coroutine `co`, which calls this.
function stop_at(co)
  local session, why = get_session()
  if not session then return warn(why) end
  local list = require("lutra.repl.call_frames").live(co, session.mains)
  if #list == 0 then return end
  local d = require("lutra.repl.debugger").new(list,
    {session = session, prompt = "debug> ", live = true})
  converse(session, d)
  if d.verdict == "quit" then error("stopped in the debugger", 0) end
  if d.verdict == "step" then go_to_line(co) end
  if d.verdict == "next" then go_to_line(co, d:frame().height) end
end

--- Stops when the condition holds, or when there is none.
return function(...)
  if select("#", ...) > 0 and not ... then return end
  stop_at((coroutine.running()))
end
