--- A queue of events: a binary heap that returns them by time, and events of the same time in the
-- order in which they were added, so that a simulation does not depend on anything else.

local Queue = {}
Queue.__index = Queue

local function is_before(a, b)
  return a.time < b.time or a.time == b.time and a.number < b.number
end

--- Returns an empty queue.
function Queue.new() return setmetatable({added = 0}, Queue) end

--- Adds an event, a table, whose field `time` is set.
function Queue:add(time, event)
  self.added = self.added + 1
  event.time, event.number = time, self.added
  local i = #self + 1
  while i > 1 and is_before(event, self[i // 2]) do
    self[i] = self[i // 2]
    i = i // 2
  end
  self[i] = event
end

--- Removes the first event and returns it; returns nil when there is none.
function Queue:take()
  local first, last = self[1], table.remove(self)
  local n = #self
  if n == 0 then return first end
  local i = 1
  while 2 * i <= n do
    local child = 2 * i
    if child < n and is_before(self[child + 1], self[child]) then child = child + 1 end
    if not is_before(self[child], last) then break end
    self[i] = self[child]
    i = child
  end
  self[i] = last
  return first
end

return Queue
