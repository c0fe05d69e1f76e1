--- The command :reset: restores the initial state of the session.

local reset = {}

-- Releases the devices' cached memory, after tensors have been collected.
local function free_devices()
  collectgarbage()
  collectgarbage() -- frees what finalizers of the first run released
  local core = package.loaded["lutra.core"]
  if core then core._accelerator.memory_release "cpu" end
  local kind = core and core._accelerator.kind()
  if kind and core._accelerator.is_ready(kind) then
    require("lutra.accelerator").empty_cache()
  end
end

--- `:reset` removes locals, the globals that you created or changed, and the results in _; it
-- closes a lesson and releases cached memory of devices. Modules stay loaded, options stay set,
-- the numbers of cells continue.
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
