--- `!cmd`: a shell command.

local front = require "lutra.repl.front"
local host = require "lutra.repl.host"

local shell = {}

-- Describes a status of os.execute; returns nil for success.
local function status_text(how, code)
  if how == "exit" then return code ~= 0 and ("exit status %d"):format(code) or nil end
  return ("ended by signal %d"):format(code)
end

--- Runs `line` with sh on the terminal; without a terminal its stdin is empty: the following input
-- is cells, and a notebook has none. Returns true, or false and a description of the status. Ctrl-C
-- interrupts only the child meanwhile (POSIX, system()).
function shell.run(line)
  io.stdout:flush()
  if front.notebook or not host.isatty(0) then line = "exec </dev/null; " .. line end
  local _, how, code = host.execute(line)
  local failed = status_text(how, code)
  return not failed, failed
end

--- `!ls -l` runs a shell command on the terminal; Ctrl-C ends it, not the session. A nonzero exit
-- status is reported.
function shell.shell(_, line)
  if line:match "^%s*$" then error("!: expected a command, got none\nhint: !ls", 0) end
  if line:find("\0", 1, true) then error("!: expected a command without NUL bytes", 0) end
  local _, failed = shell.run(line)
  if failed then
    io.stdout:write(require("lutra.repl.style").paint("faint", failed), "\n")
  end
end

return shell
