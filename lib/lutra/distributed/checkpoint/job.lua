--- The ranks that write or read a checkpoint together: those of a process group, or this process
-- alone when there is none.

local lt = require "lutra"
local args = require "lutra.internal.args"
local groups = require "lutra.distributed.groups"

local job = {}

--- Returns the rank of this process in `group`, the argument process_group of `title`. Raises an
-- error outside of the group.
function job.rank(group, title)
  if not lt.distributed.is_initialized() then return 0 end
  return (groups._place(group, title))
end

--- Returns the list of the values of all ranks of `group`; all of them call it.
function job.gather(group, value)
  local dist = lt.distributed
  if not dist.is_initialized() then return {value} end
  local list = {}
  dist.all_gather_object(list, value, group)
  return list
end

--- Calls f(...) on this rank, then compares the outcome with the other ranks: returns the result of
-- f, a value, when no rank failed. Otherwise calls undo() and raises an error on all ranks, that
-- of this rank or of the first one that failed. `title` is the function.
function job.together(group, title, undo, f, ...)
  local ok, result = pcall(f, ...)
  if not ok then args.pass_on_interrupt(result) end
  local all = job.gather(group, {failed = not ok, message = not ok and tostring(result) or nil})
  for i, outcome in ipairs(all) do
    if outcome.failed then
      if undo then undo() end
      local message = ok and outcome.message or tostring(result)
      message = message:gsub("^[^\n]-:%d+: ", "", 1):gsub("^" .. title .. ": ", "", 1)
      if #all == 1 then args.fail("%s: %s", title, message) end
      args.fail("%s: rank %d: %s", title, ok and i - 1 or job.rank(group, title), message)
    end
  end
  return result
end

return job
