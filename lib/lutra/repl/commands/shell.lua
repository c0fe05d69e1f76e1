--- `!cmd`: a line for the shell.

local host = require "lutra.repl.host"

local shell = {}

-- What a status of os.execute means, or nil when all is well.
local function meaning(how, code)
  if how == "exit" then return code ~= 0 and ("exit status %d"):format(code) or nil end
  return ("ended by signal %d"):format(code)
end

--- Runs `line` by sh on the terminal; without one (a pipe) its stdin is empty, since what follows
-- there are cells. Returns true, or false and what its status means. Ctrl-C is the child's alone
-- while it runs (POSIX, system()).
function shell.run(line)
  io.stdout:flush()
  if not host.isatty(0) then line = "exec </dev/null; " .. line end
  local _, how, code = host.execute(line)
  local failed = meaning(how, code)
  return not failed, failed
end

--- `!ls -l` runs a line of the shell on the terminal; Ctrl-C ends it, not the session. A status
-- that is not 0 is told.
function shell.shell(_, line)
  if line:match "^%s*$" then error("!: expected a command, got none\nhint: !ls", 0) end
  if line:find("\0", 1, true) then error("!: expected a command without NUL bytes", 0) end
  local _, failed = shell.run(line)
  if failed then
    io.stdout:write(require("lutra.repl.style").paint("faint", failed), "\n")
  end
end

return shell
