--- The end of a program that has started communication: called by src/repl/job_end.c.

local core = require "lutra.core"
local groups = require "lutra.distributed.groups"

local ending = {}

--- Ends communication. After a failure nothing that waits for other ranks may be called: then it
-- does nothing and returns true, and the process must end at once, so that mpirun ends the job.
function ending.run(failed)
  if not core._communication.is_started() then return false end
  if failed then return true end
  groups._finalize()
  return false
end

return ending
