--- :reset, a session as it was when it began.

local reset = {}

-- What the collector freed goes back from the pools of the devices, too.
local function free_devices()
  collectgarbage()
  collectgarbage() -- what finalizers of the first let go
  local core = package.loaded["lutra.core"]
  local kind = core and core._accelerator.kind()
  if kind and core._accelerator.is_ready(kind) then
    require("lutra.accelerator").empty_cache()
  end
end

--- `:reset` forgets locals, the globals that you made or changed, and the results in _; a lesson is
-- left; memory of devices is given back. Modules stay loaded, options stay set, the numbers of
-- cells go on.
function reset.reset(session, text)
  if text ~= "" then error("reset: expected no argument: it removes all variables", 0) end
  if session.lesson then require("lutra.repl.lesson").leave(session) end
  local count = 0
  for _ in session:variables() do count = count + 1 end
  session.locals:forget()
  session.kept:forget()
  session.failure = nil
  session:restore_globals()
  free_devices()
  io.stdout:write(("removed %d variable%s\n"):format(count, count == 1 and "" or "s"))
end

return reset
