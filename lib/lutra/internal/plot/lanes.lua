--- A timeline of the host and of the devices' streams, one lane each, from the events of
-- lt.placement.trace.
--
-- The host's lane contains its own work, including the queueing of work on devices, its waits, and
-- copies that it performs itself: those of pageable memory that do not block it. Work and copies
-- of a device are in the lane of their stream; a copy between two devices is in both lanes, as it
-- occupies both. Collectives and messages of lt.distributed are in a lane of their device and
-- group.
--
-- Without a link, times are those of the host's calls.

local bars = require "lutra.internal.plot.bars"
local texts = require "lutra.internal.text"

local lanes = {}

-- Kinds by priority in a column that they share evenly.
local kinds = {"work", "to_device", "to_host", "between", "ranks", "wait", "idle"}

local words = {
  work = "work", to_device = "to device", to_host = "to host", between = "between devices",
  ranks = "between ranks", wait = "host blocked", idle = "idle",
}

local function copy_kind(e)
  if e.from == "cpu" then return "to_device" end
  return e.to == "cpu" and "to_host" or "between"
end

-- The lanes being built: host, and by device those of its streams in order of appearance; others:
-- the streams that are not their device's default stream.
local Reader = {}
Reader.__index = Reader

-- Adds a span to a lane.
function Reader:put(lane, kind, e, begin, finish)
  begin, finish = begin or e.begin, finish or e.finish
  lane.spans[#lane.spans + 1] = {kind = kind, begin = begin, finish = finish, event = e}
  self.begin = math.min(self.begin, begin)
  self.finish = math.max(self.finish, finish)
end

-- Adds a collective, from the call until it was done, to the lane of its group: "cpu comm". A group
-- makes one call after the other.
function Reader:collective(e)
  self:launch(e)
  local key = "group " .. e.comm.group
  self.others[key] = true
  local lane = self:lane(e.to, key)
  lane.group = e.comm.group
  local last = lane.spans[#lane.spans]
  local begin = math.max(e.virtual and e.arrived or e.begin, last and last.finish or -math.huge)
  self:put(lane, "ranks", e, begin, math.max(begin, e.done or e.finish))
end

-- Returns the lane of a stream of a device, by default that of the default stream.
function Reader:lane(device, stream)
  local own = self.devices[device]
  if not own then
    own = {by_stream = {}}
    self.devices[device] = own
  end
  local key = self.others[stream] and stream or "default"
  local lane = own.by_stream[key]
  if not lane then
    lane = {device = device, default = key == "default", spans = {}}
    own.by_stream[key] = lane
    table.insert(own, lane.default and 1 or #own + 1, lane)
  end
  return lane
end

-- Adds the time that the host took to queue an event.
function Reader:launch(e)
  if e.virtual then
    if e.called then self:put(self.host, "work", e, e.called, e.issued) end
  elseif e.kind == "op" then
    self:put(self.host, "work", e)
  end
end

-- Adds a copy to the lanes of its streams, and to the host's lane when it blocks or occupies it.
function Reader:copy(e)
  local kind = copy_kind(e)
  self:launch(e)
  self:put(self:lane(kind == "to_host" and e.from or e.to, e.stream), kind, e)
  if e.source_stream then self:put(self:lane(e.from, e.source_stream), kind, e) end
  if e.blocking then
    self:put(self.host, "wait", e)
  elseif kind ~= "between" and not e.pinned then
    self:put(self.host, kind, e)
  end
  self.copied = e
end

-- Returns whether an op consists only of the copies in it; the virtual clock gives such an op no
-- length.
local function is_copy(e, copied)
  if e.virtual then return e.begin == e.finish end
  return copied and e.begin <= copied.begin and copied.finish <= e.finish
end

-- Adds an op to the lane of its stream, or to the host's.
function Reader:op(e)
  if e.to == "meta" or is_copy(e, self.copied) then return end
  if e.to == "cpu" then return self:put(self.host, "work", e) end
  self:launch(e)
  self:put(self:lane(e.to, e.stream), "work", e)
end

-- Names the lanes of a device: "cuda:0" for a single one, else "cuda:0 default" and, in order of
-- appearance, "cuda:0 s1".
local function name_lanes(device, own)
  local count = 0
  for _, lane in ipairs(own) do
    if not lane.default and not lane.group then count = count + 1 end
    lane.name = lane.group and device .. " comm" .. (lane.group > 0 and " " .. lane.group or "")
      or not lane.default and ("%s s%d"):format(device, count)
      or #own > 1 and device .. " default" or device
  end
end

--- Returns the time (microseconds) of a lane's spans for which is(kind) is true; nested and
-- overlapping spans count once.
function lanes.busy(lane, is)
  local spans = {}
  for _, span in ipairs(lane.spans) do
    if is(span.kind) then spans[#spans + 1] = span end
  end
  table.sort(spans, function(a, b) return a.begin < b.begin end)
  local sum, last = 0, -math.huge
  for _, span in ipairs(spans) do
    sum = sum + math.max(0, span.finish - math.max(last, span.begin))
    last = math.max(last, span.finish)
  end
  return sum
end

local function waiting(kind) return kind == "wait" end

local function at_work(kind) return kind ~= "wait" end

--- Returns the timeline of a list of events: {lanes = list of {name, device, spans = list of {kind,
-- begin, finish, event}, share (of the time that it was working)}, begin, finish (microseconds),
-- virtual}. Kinds: "work", "to_device", "to_host", "between", "ranks", "wait". The host's lane is
-- the first; without events the list is empty.
function lanes.read(events)
  local host = {name = "host", device = "cpu", spans = {}}
  local reader = setmetatable({host = host, devices = {}, others = {}, begin = math.huge,
    finish = -math.huge}, Reader)
  for _, e in ipairs(events) do
    if e.stream and e.default_stream == false then reader.others[e.stream] = true end
  end
  local virtual = false
  for _, e in ipairs(events) do
    virtual = virtual or e.virtual
    if e.kind == "copy" then
      reader:copy(e)
    elseif e.kind == "sync" then
      reader:put(host, "wait", e)
    elseif e.kind == "op" then
      reader:op(e)
    elseif e.kind == "collective" then
      reader:collective(e)
    end
  end
  if reader.begin > reader.finish then return {lanes = {}, begin = 0, finish = 0} end
  local list, order = {host}, {}
  for device in pairs(reader.devices) do order[#order + 1] = device end
  table.sort(order)
  for _, device in ipairs(order) do
    local own = reader.devices[device]
    name_lanes(device, own)
    table.move(own, 1, #own, #list + 1, list)
  end
  local length = reader.finish - reader.begin
  for _, lane in ipairs(list) do
    lane.share = length > 0 and lanes.busy(lane, at_work) / length or 0
  end
  return {lanes = list, begin = reader.begin, finish = reader.finish, virtual = virtual}
end

-- Returns the kind that each column of a lane shows: the one that takes most of its time. Each
-- span gets at least one column, however short.
local function columns_of(lane, picture, width)
  local length = math.max(picture.finish - picture.begin, 1e-9)
  local shares = {}
  for i = 1, width do shares[i] = {} end
  for _, span in ipairs(lane.spans) do
    local first = (span.begin - picture.begin) / length * width
    local last = (span.finish - picture.begin) / length * width
    local from = math.min(math.floor(first), width - 1)
    for i = from, math.max(from, math.min(math.ceil(last), width) - 1) do
      local part = math.max(math.min(last, i + 1) - math.max(first, i), 1e-6)
      local share = shares[i + 1]
      share[span.kind] = (share[span.kind] or 0) + part
    end
  end
  for i, share in ipairs(shares) do
    local best = "idle"
    for _, kind in ipairs(kinds) do
      if (share[kind] or 0) > (share[best] or 0) + 1e-9 then best = kind end
    end
    shares[i] = best
  end
  return shares
end

-- Returns the legend, in lines of at most `width` columns.
local function legend_lines(picture, text, width)
  local seen, list = {idle = true}, {}
  for _, lane in ipairs(picture.lanes) do
    for _, span in ipairs(lane.spans) do seen[span.kind] = true end
  end
  for _, kind in ipairs(kinds) do
    if seen[kind] then list[#list + 1] = text[kind] .. " " .. words[kind] end
  end
  return texts.items(list, width)
end

--- Returns the totals as text, such as "36 µs in total; host blocked 26 µs (72%); cuda:0 busy 22 µs
-- (61%)".
function lanes.totals(picture)
  local length = picture.finish - picture.begin
  local parts = {texts.seconds(length * 1e-6) .. " in total"}
  for i, lane in ipairs(picture.lanes) do
    local busy = lanes.busy(lane, i == 1 and waiting or at_work)
    parts[#parts + 1] = ("%s %s %s (%.0f%%)"):format(i == 1 and "host" or lane.name,
      i == 1 and "blocked" or "busy", texts.seconds(busy * 1e-6),
      length > 0 and busy / length * 100 or 0)
  end
  return table.concat(parts, "; ")
end

--- The note for times that are not those of a link.
lanes.note = "times are those of the host's calls; with a link (--emulate cuda:2,link=pcie4) they "
  .. "are those of the device's work"

--- Returns the timeline as lines of at most `width` columns. options: width, utf8, paint(style,
-- text).
function lanes.lines(picture, options)
  local paint, text = options.paint, bars.marks(options.utf8)
  if #picture.lanes == 0 then return {} end
  local label = 0
  for _, lane in ipairs(picture.lanes) do label = math.max(label, texts.width(lane.name)) end
  local width = math.max(8, options.width - label - 8) -- "  ", "[", "]", " 100%"
  local stop = texts.seconds((picture.finish - picture.begin) * 1e-6)
  local lines = {(" "):rep(label + 2) .. "0" .. texts.pad(stop, width - 1, true) .. "  busy"}
  for i, lane in ipairs(picture.lanes) do
    lines[i + 1] = ("%s %s%4.0f%%"):format(paint("heading", texts.pad(lane.name, label)),
      bars.line(columns_of(lane, picture, width), options.utf8, paint), lane.share * 100)
  end
  for _, line in ipairs(legend_lines(picture, text, options.width)) do
    lines[#lines + 1] = paint("faint", line)
  end
  return lines
end

return lanes
