--- A trace: the copies, waits, ops and allocations of a piece of a program, in their order.

local args = require "lutra.internal.args"
local texts = require "lutra.internal.text"

local Trace = {__name = "trace"}
Trace.__index = Trace

-- The events that a reader of trace.events sees.
local function is_shown(e)
  return e.kind ~= "op" or e.kernel
end

--- The trace of what an open listener has heard. Fields: events, a list of {kind ("copy", "sync",
-- "op", "alloc", "free", "region"; "mark": an event was recorded in a stream, "after": a stream was
-- told to wait for one), op (what the line called), from, to (devices), stream, mark (what tells
-- streams and events apart, or nil), bytes, blocking, pinned, explicit (was the copy asked for?),
-- by_host (do devices that cannot reach each other's memory copy by way of the host?), begin,
-- finish (microseconds), virtual (true where those are of a link's clock), where (the line), tensor
-- (where what is copied was made, or nil)}; link, its name or nil; dropped, how many events there
-- was no room for.
function Trace.new(listener)
  local self = setmetatable({events = {}, dropped = listener:dropped()}, Trace)
  self.link = listener.link and listener.link.name
  for e in listener:events() do
    if is_shown(e) then self.events[#self.events + 1] = e end
  end
  return self
end

local function way(e)
  return e.kind == "copy" and e.from .. " -> " .. e.to or "wait for " .. e.to
end

-- What is to be known of a copy beside its numbers.
local function remarks(e)
  local list = {}
  if e.kind == "copy" then
    list[1] = e.blocking and "the host waits" or e.pinned and "pinned"
      or e.by_host and "by way of the host" or nil
    if not e.explicit then list[#list + 1] = "not asked for" end
  end
  return table.concat(list, ", ")
end

--- Copies and waits added up: {copies, bytes, blocking, implicit, syncs, time (seconds of both)}.
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

-- Copies and waits that are alike, at one line, as one row.
local function rows_of(self)
  local rows, by_key = {}, {}
  for _, e in ipairs(self.events) do
    if e.kind == "copy" or e.kind == "sync" then
      local key = table.concat({e.where or "", e.op, way(e), remarks(e)}, "\0")
      local row = by_key[key]
      if not row then
        row = {where = e.where or "", op = e.op, way = way(e), remarks = remarks(e), count = 0,
          bytes = 0, time = 0}
        by_key[key], rows[#rows + 1] = row, row
      end
      row.count, row.bytes = row.count + 1, row.bytes + e.bytes
      row.time = row.time + (e.finish - e.begin) * 1e-6
    end
  end
  return rows
end

-- What is not in the table, for its end.
local function missing(self)
  if self.dropped == 0 then return "" end
  return ("; only the beginning: for %s after it there was no room"):format(
    texts.plural(self.dropped, "event"))
end

local function summary(self)
  local sum = self:totals()
  return ("%s, %s, %s waited for; %s; %s in sum%s%s"):format(
    sum.copies == 1 and "1 copy" or texts.count(sum.copies) .. " copies", texts.bytes(sum.bytes),
    texts.count(sum.blocking), texts.plural(sum.syncs, "other wait"), texts.seconds(sum.time),
    self.link and (" on %s (virtual)"):format(self.link) or "", missing(self))
end

-- "dir/train.lua:12" -> "train.lua:12"
local function no_folder(where) return where:match "[^/]*$" end

-- "cpu -> cuda:0" -> "cpu->cuda:0", "cuda:0 -> cuda:1" -> "cuda:0->1", "wait for mps" -> "wait mps"
local function closer(text)
  text = text:gsub("^(%a+)(:%d+) %-> %1:(%d+)$", "%1%2->%3"):gsub(" %-> ", "->")
  return (text:gsub("^wait for ", "wait "))
end

local columns = {
  {key = "where", title = "line", rank = 1, least = 9, short = no_folder},
  {key = "op", title = "call", rank = 3, least = 4},
  {key = "way", title = "way", rank = 1, least = 11, short = closer},
  {key = "count", title = "count", rank = 1, least = 5, right = true},
  {key = "bytes", title = "bytes", rank = 2, least = 9, right = true},
  {key = "time", title = "time", rank = 1, least = 7, right = true},
  {key = "remarks", title = "", rank = 4, least = 8},
}

--- The copies and waits as text of at most `width` (100) columns, those that are alike at one line
-- in one row.
function Trace:table(width)
  args.check(width == nil or type(width) == "number",
    'trace:table: argument "width" is %s, it wants a number of columns', args.show(width))
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

--- Writes the events as JSON of the Trace Event Format, which Perfetto and chrome://tracing read:
-- a lane of the host, one of each device and one of each way of copying.
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
