--- data.DistributedSampler takes rank and number of processes from the process group.

local ranks = require "ranks_support"

describe("data.DistributedSampler", function()
  it("has the group's rank and size by default", function()
    if not ranks.available() then pending "needs mpirun" end
    ranks.check(3, [[
      local set = lt.zeros(7)
      local own = lt.data.DistributedSampler(set, {shuffle = false})
      assert(own.rank == rank and own.num_replicas == 3 and #own == 3)
      local lists = {}
      dist.all_gather_object(lists, own:order():totable())
      -- Every third index, from rank + 1 on; the first two are repeated to fill up.
      for r, expected in ipairs {{1, 4, 7}, {2, 5, 1}, {3, 6, 2}} do
        assert(table.concat(lists[r], " ") == table.concat(expected, " "))
      end
      local other = lt.data.DistributedSampler(set, {num_replicas = 2, rank = 1, shuffle = false})
      assert(other.rank == 1 and table.concat(other:order():totable(), " ") == "2 4 6 1")
      -- A loader on each rank; together they see each index.
      local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.arange(6)), {batch_size = 1,
        sampler = lt.data.DistributedSampler(lt.zeros(6))})
      local sum = 0
      for x in loader do sum = sum + x:item() end
      local total = lt.tensor(sum)
      dist.all_reduce(total)
      assert(total:item() == 21)]])
  end)
end)
