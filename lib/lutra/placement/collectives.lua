--- Collectives and messages of lt.distributed in a sequence of events: when they were done, how
-- long this rank was blocked on the others, and sums by kind and group.
--
-- A call is an event of kind "collective", when it was submitted, and usually a wait for its work,
-- an event of kind "sync" with the same comm.work. A batch of messages is one work of several
-- calls.

local texts = require "lutra.internal.text"

local collectives = {}

local function microseconds(nanoseconds) return nanoseconds and nanoseconds / 1000 end

-- Sets the times of a call from an event that knows them, unless the virtual clock has.
local function set_times(call, e)
  if call.virtual then return end
  call.arrived = microseconds(e.comm.arrived) or call.arrived
  call.done = microseconds(e.comm.finished) or call.done
end

--- Returns a function that must get the events of one sequence in order. It sets these fields: of a
-- collective, when they are known, `done` (microseconds: the transfer ended), `arrived` (all ranks
-- of the group had made the call), and `waited` (the event of the wait for it); of the wait,
-- `calls`, the list of the collectives of its work.
function collectives.new()
  local pending, previous = {}, nil
  return function(e)
    local work = e.comm and e.comm.work
    if not work then
      if e.kind ~= "op" then previous = nil end
    elseif e.kind == "collective" then
      -- The memory of a work without a wait was used again.
      local is_more = previous and previous.comm.work == work and not e.comm.sequence
      if not is_more then pending[work] = {} end
      table.insert(pending[work], e)
      set_times(e, e)
      previous = e
    elseif e.kind == "sync" then
      e.calls, pending[work] = pending[work] or {}, nil
      for _, call in ipairs(e.calls) do
        set_times(call, e)
        call.waited = e
        -- On a device the wait blocks a stream, not the host.
        if call.to == "cpu" then call.done = call.done or e.finish end
      end
      previous = nil
    end
  end
end

--- Returns when a call began to block this rank: a call with async_op does in its wait only; nil
-- where it has none.
function collectives.blocked_from(call)
  if call.comm.now then return call.begin end
  return call.waited and call.waited.begin
end

--- Returns the seconds that this rank was blocked on the last rank to make a call; 0 where that is
-- not known, in a group of one, and on the virtual clock, whose ranks make calls at the same time.
function collectives.waiting(call)
  local from = collectives.blocked_from(call)
  if not call.arrived or not from or call.virtual or call.comm.size == 1 then return 0 end
  return math.max(0, call.arrived - from) * 1e-6
end

--- Returns the seconds that the host spent in a call, including the wait of one without async_op.
function collectives.host_time(call)
  local wait = call.comm.now and call.waited
  return (call.finish - call.begin + (wait and wait.finish - wait.begin or 0)) * 1e-6
end

--- Returns whether an event is the wait of a collective that was called without async_op, which is
-- counted as a part of the call.
function collectives.is_own_wait(e)
  return e.kind == "sync" and e.calls and e.calls[1] and e.calls[1].comm.now or false
end

--- Returns what a call connects: "rank 0 -> rank 1", or "4 ranks of group 2" (the world is group
-- 0).
function collectives.between(call)
  local comm = call.comm
  local peer = comm.peer and "rank " .. comm.peer or "any rank"
  if call.name == "send" then return ("rank %d -> %s"):format(comm.rank, peer) end
  if call.name == "recv" then return ("%s -> rank %d"):format(peer, comm.rank) end
  return texts.plural(comm.size, "rank")
    .. (comm.group ~= 0 and " of group " .. comm.group or "")
end

-- Adds a call to a row of sums.
local function add(row, call)
  local comm = call.comm
  row.count = row.count + 1
  row.sent, row.received = row.sent + comm.sent, row.received + comm.received
  row.link_bytes = row.link_bytes + comm.link_bytes
  if not call.done then return end
  row.time = (row.time or 0) + math.max(0, call.done - call.begin) * 1e-6
  row.waiting = row.waiting + collectives.waiting(call)
  row.busy = row.busy + math.max(0, call.done - (call.arrived or call.begin)) * 1e-6
end

--- Returns the sums of the collectives in a list of events, a row for each kind, group and device:
-- {name, group (0: the world), size (ranks of the group), device, count, sent, received (bytes of
-- this rank's payload), link_bytes (that a ring moves over one link), time (seconds from the call
-- until the transfer was done), waiting (seconds for which this rank was blocked until the last
-- rank made the call), bandwidth (link_bytes per second of transfer: the bus bandwidth)}. time and
-- bandwidth are nil where they are not known, as on a device without the virtual clock.
function collectives.sums(events)
  local rows, by_key = {}, {}
  for _, e in ipairs(events) do
    if e.kind == "collective" then
      local key = ("%s %d %s"):format(e.name, e.comm.group, e.to)
      if not by_key[key] then
        by_key[key] = {name = e.name, group = e.comm.group, size = e.comm.size, device = e.to,
          count = 0, sent = 0, received = 0, link_bytes = 0, waiting = 0, busy = 0}
        rows[#rows + 1] = by_key[key]
      end
      add(by_key[key], e)
    end
  end
  for _, row in ipairs(rows) do
    row.bandwidth = row.busy > 0 and row.link_bytes > 0 and row.link_bytes / row.busy or nil
    row.busy = nil
  end
  return rows
end

local columns = {
  {key = "name", title = "collective", rank = 1, least = 9},
  {key = "group", title = "group", rank = 3, least = 5, right = true},
  {key = "size", title = "ranks", rank = 2, least = 5, right = true},
  {key = "device", title = "device", rank = 3, least = 4},
  {key = "count", title = "count", rank = 1, least = 5, right = true},
  {key = "sent", title = "sent", rank = 2, least = 8, right = true},
  {key = "received", title = "received", rank = 2, least = 8, right = true},
  {key = "time", title = "time", rank = 1, least = 7, right = true},
  {key = "waiting", title = "for others", rank = 1, least = 7, right = true},
  {key = "bandwidth", title = "bus", rank = 4, least = 8, right = true},
}

--- Returns the lines of a table of the sums, in at most `width` columns; none without collectives.
function collectives.lines(events, width)
  local rows = collectives.sums(events)
  if #rows == 0 then return {} end
  for _, row in ipairs(rows) do
    row.group, row.size = row.group == 0 and "world" or tostring(row.group), tostring(row.size)
    row.count = texts.count(row.count)
    row.sent, row.received = texts.bytes(row.sent), texts.bytes(row.received)
    row.time, row.waiting = row.time and texts.seconds(row.time) or "", texts.seconds(row.waiting)
    row.bandwidth = row.bandwidth and texts.bytes(math.floor(row.bandwidth)) .. "/s" or ""
  end
  return texts.table(columns, rows, width)
end

return collectives
