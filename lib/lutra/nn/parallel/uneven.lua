--- DistributedDataParallel:join: training on ranks with different numbers of batches.
--
-- Each forward pass starts with a round: an all_reduce of one number from each rank, which tells
-- all ranks who still trains. A rank without batches left stays in rounds and takes part in the
-- collectives of the others, with gradients of zero, until no rank trains.

local lt = require "lutra"
local args = require "lutra.internal.args"
local collectives = require "lutra.nn.parallel.collectives"

local uneven = {}

local JOINED, TRAINS, EXCHANGES = 0, 1, 2 -- what a rank tells in a round

-- Exchanges the numbers of all ranks, and returns {[rank + 1] = number, active = count, from = the
-- highest rank that trains, exchanges = whether gradients will be exchanged}.
local function round(self, state, number)
  local size = state.size
  local t = lt.zeros({size}, {dtype = "int32", device = state.device})
  t[state.rank + 1] = number
  lt.distributed.all_reduce(t, "sum", self._group)
  local result = t:totable()
  result.active, result.exchanges = 0, false
  for i, value in ipairs(result) do
    if value ~= JOINED then result.active, result.from = result.active + 1, i - 1 end
    result.exchanges = result.exchanges or value == EXCHANGES
  end
  if state.throw and result.active > 0 and result.active < size then
    for i, value in ipairs(result) do
      args.check(value ~= JOINED, "join: expected as many batches on all ranks, got fewer on rank "
        .. "%d\nhint: throw_on_early_termination = false", i - 1)
    end
  end
  if result.active > 0 then state.last = result end
  if not state.by_initial_size and result.active > 0 then self._reducer.size = result.active end
  return result
end

--- Starts a forward pass of a rank that trains, in a call of join; returns the rank whose buffers
-- all ranks get.
function uneven.forward(self, exchanges)
  return round(self, self._joining, exchanges and EXCHANGES or TRAINS).from
end

-- Takes part in the collectives of the others until no rank trains.
local function shadow(self, state)
  while true do
    local result = round(self, state, JOINED)
    if result.active == 0 then return end
    if result.exchanges then self._reducer:prepare() end
    self:_broadcast_buffers(result.from)
    self._sync_buffers_next = result.exchanges
    if result.exchanges then self._reducer:shadow() end
  end
end

-- Returns the results of f, after all ranks have trained and have the state of the last one.
local function finish(self, state, ...)
  shadow(self, state)
  local list = {}
  for p in self.module:parameters() do list[#list + 1] = p end
  for b in self.module:buffers() do list[#list + 1] = b end
  collectives.broadcast(list, self._group, state.last and state.last.from or 0)
  return ...
end

--- Calls f(), in which ranks may have different numbers of batches; see
-- DistributedDataParallel:join.
function uneven.join(self, f, by_initial_size, throw)
  local dist, reducer = lt.distributed, self._reducer
  local state = {size = dist.get_world_size(self._group), rank = dist.get_rank(self._group),
    device = reducer.parameters[1].device, by_initial_size = by_initial_size, throw = throw}
  local size = reducer.size
  local _ <close> = require("lutra.internal.scope_guard")(function()
    self._joining, reducer.size = nil, size
  end)
  self._joining = state
  return finish(self, state, f())
end

return uneven
