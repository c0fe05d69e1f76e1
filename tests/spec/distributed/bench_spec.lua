-- bench/distributed: the programs measure the same, on two ranks.

local program = require "program_support"
local ranks = require "ranks_support"

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or ""

-- Asserts that the output has a line with a positive time for each size.
local function check(text, kind, sizes)
  for _, bytes in ipairs(sizes) do
    local seconds = text:match(("%s\t%d\t(%%S+)"):format(kind, bytes))
    assert.is_true((tonumber(seconds) or 0) > 0, text)
  end
end

describe("bench/distributed", function()
  local kinds = {"all_reduce", "broadcast", "all_gather", "reduce_scatter"}

  it("measures every collective with Lutra", function()
    if not ranks.available() then return pending "needs mpirun" end
    local lines = {}
    for _, kind in ipairs(kinds) do
      lines[#lines + 1] = ("arg = {%q, '16', '4096'} dofile %q"):format(kind,
        root .. "bench/distributed/collectives.lua")
    end
    -- The process group of a job ends once: let only the last program end it.
    local text = ranks.check(2, "", {setup = [[
      local init, destroy = dist.init_process_group, dist.destroy_process_group
      init()
      dist.init_process_group, dist.destroy_process_group = function() end, function() end
    ]] .. table.concat(lines, "\n") .. "\ndestroy() do os.exit(true, true) end"})
    for _, kind in ipairs(kinds) do check(text, kind, {16, 4096}) end
  end)

  it("measures the same with plain MPI calls", function()
    local found = "mpicc -E -x c -include mpi.h /dev/null >/dev/null 2>&1"
    if not ranks.available() or not os.execute(found) then
      return pending "needs mpirun, mpicc and mpi.h"
    end
    local binary = os.tmpname()
    assert(os.execute(("mpicc -std=c11 -O2 -Wall -Wextra -Werror %sbench/distributed/collectives.c "
      .. "-o %s"):format(root, program.quote(binary))))
    local result = program.shell(("env %s %s all_reduce 16 4096"):format(ranks.launch(2, 60),
      program.quote(binary)))
    os.remove(binary)
    assert.equal(0, result.status, result.out .. result.err)
    check(result.out, "all_reduce", {16, 4096})
  end)
end)
