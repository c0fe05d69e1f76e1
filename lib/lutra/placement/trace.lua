--- A trace: the copies, synchronizations, collectives, ops and allocations of a function call, in
-- order.

local args = require "lutra.internal.args"
local collectives = require "lutra.placement.collectives"
local texts = require "lutra.internal.text"

local Trace = {__name = "trace"}
Trace.__index = Trace

-- Returns whether an event is listed in trace.events.
local function is_shown(e)
  return e.kind ~= "op" or e.kernel
end

--- Returns the trace of the events that an open reader (event_reader.lua) has recorded. Fields:
-- events, a list of {kind ("copy", "sync", "op", "alloc", "free", "region"; "mark": an event was
-- recorded in a stream, "after": a stream waits for an event; "collective": a collective or a
-- message of lt.distributed was submitted), op (the name of the call at the
-- line), from, to (devices), stream, mark (identify streams and events, or nil), bytes, blocking,
-- pinned, explicit (false for an implicit copy), by_host (true for a copy between devices that
-- cannot access each other's memory, which is staged through the host), begin, finish
-- (microseconds), virtual (true when these are times of the virtual clock), where (the line),
-- tensor (the line where the copied tensor was made, or nil), comm (of a collective and of the wait
-- for it: {size, rank, group, sequence, peer, tag, reduction, sent, received, link_bytes, now}),
-- done, arrived (of a collective: when its transfer ended, and when the last rank of its group had
-- called it; nil where that is not known)}; link, its name or nil; dropped, the
-- number of events beyond the limit.
function Trace.new(reader)
  local self = setmetatable({events = {}, dropped = reader:dropped()}, Trace)
  self.link = reader.link and reader.link.name
  for e in reader:events() do
    if is_shown(e) then self.events[#self.events + 1] = e end
  end
  return self
end

local function direction(e)
  if e.kind == "collective" then return collectives.between(e) end
  if e.calls and e.calls[1] then return "wait for " .. e.calls[1].name end
  return e.kind == "copy" and e.from .. " -> " .. e.to or "wait for " .. e.to
end

-- Returns the remarks on a copy, such as "pinned", separated by commas.
local function remarks(e)
  local list = {}
  if e.kind == "copy" then
    list[1] = e.blocking and "blocking" or e.pinned and "pinned"
      or e.by_host and "through the host" or nil
    if not e.explicit then list[#list + 1] = "implicit" end
  elseif e.kind == "collective" then
    list[1] = e.to
    if not e.comm.now then list[2] = "async" end
  end
  return table.concat(list, ", ")
end

-- Returns whether an event is in the table: a copy, a collective, or a wait that is no part of one.
local function is_listed(e)
  return e.kind == "copy" or e.kind == "collective"
    or e.kind == "sync" and not collectives.is_own_wait(e)
end

-- Returns the seconds of the host or the device that an event took.
local function time_of(e)
  if e.kind == "collective" then return collectives.host_time(e) end
  return (e.finish - e.begin) * 1e-6
end

-- Adds a copy to the totals.
local function add_copy(sum, e)
  sum.copies, sum.bytes = sum.copies + 1, sum.bytes + e.bytes
  if e.blocking then sum.blocking = sum.blocking + 1 end
  if not e.explicit then sum.implicit = sum.implicit + 1 end
end

-- Adds a collective to the totals.
local function add_collective(sum, e)
  sum.collectives = sum.collectives + 1
  sum.sent, sum.received = sum.sent + e.comm.sent, sum.received + e.comm.received
  sum.waiting = sum.waiting + collectives.waiting(e)
end

--- Returns the totals of copies, synchronizations and collectives: {copies, bytes, blocking,
-- implicit, syncs, time (seconds, of all), collectives (their number, with messages), sent,
-- received (bytes between ranks), waiting (seconds that this rank was blocked on others)}.
function Trace:totals()
  local sum = {copies = 0, bytes = 0, blocking = 0, implicit = 0, syncs = 0, time = 0,
    collectives = 0, sent = 0, received = 0, waiting = 0}
  for _, e in ipairs(self.events) do
    if is_listed(e) then
      if e.kind == "copy" then
        add_copy(sum, e)
      elseif e.kind == "collective" then
        add_collective(sum, e)
      else
        sum.syncs = sum.syncs + 1
      end
      sum.time = sum.time + time_of(e)
    end
  end
  return sum
end

--- Returns the sums of the collectives and messages of lt.distributed, a list of {name, group (0:
-- the world), size (ranks of the group), device, count, sent, received (bytes of this rank's
-- payload), link_bytes (that a ring moves over one link), time (seconds from the call until the
-- transfer was done), waiting (seconds for which this rank was blocked until the last rank made the
-- call), bandwidth (link_bytes per second of transfer: the bus bandwidth)}. time and bandwidth are
-- nil where they are not known, as on a device without the virtual clock.
function Trace:collectives() return collectives.sums(self.events) end

-- Groups equal copies, collectives and synchronizations of one line to rows.
local function rows_of(self)
  local rows, by_key = {}, {}
  for _, e in ipairs(self.events) do
    if is_listed(e) then
      local key = table.concat({e.where or "", e.op, direction(e), remarks(e)}, "\0")
      local row = by_key[key]
      if not row then
        row = {where = e.where or "", op = e.op, way = direction(e), remarks = remarks(e),
          count = 0, bytes = 0, time = 0}
        by_key[key], rows[#rows + 1] = row, row
      end
      local bytes = e.kind == "sync" and 0 or e.bytes
      row.count, row.bytes = row.count + 1, row.bytes + bytes
      row.time = row.time + time_of(e)
    end
  end
  return rows
end

-- Returns the note about dropped events, or "".
local function missing(self)
  if self.dropped == 0 then return "" end
  return ("; %s did not fit and are missing"):format(
    texts.plural(self.dropped, "event"))
end

local function summary(self)
  local sum = self:totals()
  local exchanged = sum.collectives == 0 and ""
    or ("%s, %s sent, %s received, %s for other ranks; "):format(
      texts.plural(sum.collectives, "collective"), texts.bytes(sum.sent),
      texts.bytes(sum.received), texts.seconds(sum.waiting))
  return ("%s, %s, %s blocking; %s; %s%s in total%s%s"):format(
    sum.copies == 1 and "1 copy" or texts.count(sum.copies) .. " copies", texts.bytes(sum.bytes),
    texts.count(sum.blocking), texts.plural(sum.syncs, "other wait"), exchanged,
    texts.seconds(sum.time),
    self.link and (" on %s (virtual)"):format(self.link) or "", missing(self))
end

-- Converts "dir/train.lua:12" to "train.lua:12".
local function no_folder(where) return where:match "[^/]*$" end

-- Shortens "cpu -> cuda:0" to "cpu->cuda:0", "cuda:0 -> cuda:1" to "cuda:0->1", and "wait for mps"
-- to "wait mps".
local function shorten(text)
  text = text:gsub("^(%a+)(:%d+) %-> %1:(%d+)$", "%1%2->%3"):gsub(" %-> ", "->")
  return (text:gsub("^wait for ", "wait "))
end

local columns = {
  {key = "where", title = "line", rank = 1, least = 9, short = no_folder},
  {key = "op", title = "call", rank = 3, least = 4},
  {key = "way", title = "direction", rank = 1, least = 11, short = shorten},
  {key = "count", title = "count", rank = 1, least = 5, right = true},
  {key = "bytes", title = "bytes", rank = 2, least = 9, right = true},
  {key = "time", title = "time", rank = 1, least = 7, right = true},
  {key = "remarks", title = "", rank = 4, least = 8},
}

--- trace:table(width = 100): returns the copies, collectives and synchronizations as a table of at
-- most `width` columns; equal ones at one line share a row. A second table has the sums of the
-- collectives by kind and group.
function Trace:table(width)
  args.check(width == nil or type(width) == "number",
    "trace:table: expected a number of columns for argument 'width', got %s", args.show(width))
  local rows = rows_of(self)
  if #rows == 0 then
    return texts.wrap_sentence("no copies between devices, no waits" .. missing(self), width or 100)
  end
  for _, row in ipairs(rows) do
    row.count, row.bytes = texts.count(row.count), texts.bytes(row.bytes)
    row.time = texts.seconds(row.time)
  end
  local lines = texts.table(columns, rows, width or 100)
  local sums = collectives.lines(self.events, width or 100)
  table.move(sums, 1, #sums, #lines + 1, lines)
  lines[#lines + 1] = texts.wrap_sentence(summary(self), width or 100)
  return table.concat(lines, "\n")
end

--- Writes the events as JSON in the Trace Event Format, which Perfetto and chrome://tracing read,
-- with lanes for the host and for the ops and copies of each device. Raises an error when the file
-- cannot be written.
function Trace:export(path)
  local json = require "lutra.profiler.json"
  local i = 0
  json.save("trace:export", path, require "lutra.placement.chrome", function()
    i = i + 1
    return self.events[i]
  end)
end

function Trace:__tostring() return self:table() end
Trace.__in_columns = Trace.table

return Trace
