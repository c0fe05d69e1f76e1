--- The command that starts the ranks of a job on this machine: mpirun of Open MPI or of MPICH.

local mpirun = {}

-- Returns what `mpirun --version` prints; nil and the reason when it fails.
local function version()
  local pipe <close> = assert(io.popen "mpirun --version 2>&1 </dev/null")
  local text = pipe:read "a"
  if pipe:close() then return text end
  local line = text:match "[^\n]*"
  if line:find "not found$" then return nil, "cannot find the program mpirun" end
  return nil, "cannot run mpirun: " .. line
end

-- Runs a rank with its output in the named pipes of the folder $0, and reports its process and its
-- exit status. The shell's own messages, such as "Killed", are mpirun's, which are not shown.
local rank_script = [[
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
echo "start $rank $$" >"$0/ranks"
(exec "$@" >"$0/$rank.out" 2>"$0/$rank.err")
status=$?
echo "end $rank $status" >"$0/ranks"
exit $status]]

--- Returns the words of a command that runs `words` on `count` ranks, and the environment variables
-- it needs; nil and the reason when there is no mpirun. More ranks than processors are allowed, and
-- no rank is bound to a processor, for its threads would share it. `folder` holds the named pipes.
function mpirun.command(count, words, folder)
  local text, why = version()
  if not text then return nil, why end
  local open_mpi = text:find("Open MPI", 1, true) or text:find("OpenRTE", 1, true)
  local command = open_mpi
    and {"mpirun", "--oversubscribe", "--bind-to", "none", "-np", tostring(count)}
    or {"mpirun", "-bind-to", "none", "-n", tostring(count)}
  table.move({"sh", "-c", rank_script, folder}, 1, 4, #command + 1, command)
  table.move(words, 1, #words, #command + 1, command)
  return command, {OMPI_ALLOW_RUN_AS_ROOT = "1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = "1"}
end

return mpirun
