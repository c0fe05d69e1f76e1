--- A trace: the copies, synchronizations, ops and allocations of a function call, in order.

local args = require "lutra.internal.args"
local texts = require "lutra.internal.text"

local Trace = {__name = "trace"}
Trace.__index = Trace

-- Returns whether an event is listed in trace.events.
local function is_shown(e)
  return e.kind ~= "op" or e.kernel
end

--- Returns the trace of the events that an open reader (event_reader.lua) has recorded. Fields:
-- events, a list of {kind ("copy", "sync", "op", "alloc", "free", "region"; "mark": an event was
-- recorded in a stream, "after": a stream waits for an event), op (the name of the call at the
-- line), from, to (devices), stream, mark (identify streams and events, or nil), bytes, blocking,
-- pinned, explicit (false for an implicit copy), by_host (true for a copy between devices that
-- cannot access each other's memory, which is staged through the host), begin, finish
-- (microseconds), virtual (true when these are times of the virtual clock), where (the line),
-- tensor (the line where the copied tensor was made, or nil)}; link, its name or nil; dropped, the
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
  return e.kind == "copy" and e.from .. " -> " .. e.to or "wait for " .. e.to
end

-- Returns the remarks on a copy, such as "pinned", separated by commas.
local function remarks(e)
  local list = {}
  if e.kind == "copy" then
    list[1] = e.blocking and "blocking" or e.pinned and "pinned"
      or e.by_host and "through the host" or nil
    if not e.explicit then list[#list + 1] = "implicit" end
  end
  return table.concat(list, ", ")
end

--- Returns the totals of copies and synchronizations: {copies, bytes, blocking, implicit, syncs,
-- time (seconds, of both)}.
function Trace:totals()
  local sum = {copies = 0, bytes = 0, blocking = 0, implicit = 0, syncs = 0, time = 0}
  for _, e in ipairs(self.events) do
    if e.kind == "copy" then
      sum.copies, sum.bytes = sum.copies + 1, sum.bytes + e.bytes
      if e.blocking then sum.blocking = sum.blocking + 1 end
      if not e.explicit then sum.implicit = sum.implicit + 1 end
    elseif e.kind == "sync" then
      sum.syncs = sum.syncs + 1
    end
    if e.kind == "copy" or e.kind == "sync" then
      sum.time = sum.time + (e.finish - e.begin) * 1e-6
    end
  end
  return sum
end

-- Groups equal copies and synchronizations of one line to rows.
local function rows_of(self)
  local rows, by_key = {}, {}
  for _, e in ipairs(self.events) do
    if e.kind == "copy" or e.kind == "sync" then
      local key = table.concat({e.where or "", e.op, direction(e), remarks(e)}, "\0")
      local row = by_key[key]
      if not row then
        row = {where = e.where or "", op = e.op, way = direction(e), remarks = remarks(e),
          count = 0, bytes = 0, time = 0}
        by_key[key], rows[#rows + 1] = row, row
      end
      row.count, row.bytes = row.count + 1, row.bytes + e.bytes
      row.time = row.time + (e.finish - e.begin) * 1e-6
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
  return ("%s, %s, %s blocking; %s; %s in total%s%s"):format(
    sum.copies == 1 and "1 copy" or texts.count(sum.copies) .. " copies", texts.bytes(sum.bytes),
    texts.count(sum.blocking), texts.plural(sum.syncs, "other wait"), texts.seconds(sum.time),
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

--- trace:table(width = 100): returns the copies and synchronizations as a table of at most `width`
-- columns; equal ones at one line share a row.
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
