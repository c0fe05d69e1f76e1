--- A trace in the Trace Event Format.
--
-- Each device is a process with a lane of ops and one of copies for each of its streams, which work
-- at the same time; the host has one of waits as well. A copy is drawn where its work is: on the
-- device's side. Times are microseconds, in whole nanoseconds, so that the spans of a lane are
-- nested or apart, as the format wants it.

local format = require "lutra.profiler.trace_format"
local quoted = require("lutra.profiler.json").quoted

local lane_names = {op = "ops", region = "regions", copy = "copies", sync = "waits"}
local lane_order = {op = 1, region = 2, copy = 3, sync = 4}

local function place_of(e)
  if e.kind == "copy" then return e.to == "cpu" and e.from or e.to end
  return e.kind == "sync" and "cpu" or e.to
end

local function details(e)
  local list = {('"bytes":%d'):format(e.bytes)}
  for _, key in ipairs {"where", "from", "to", "tensor", "shape"} do
    if e[key] then list[#list + 1] = ('"%s":%s'):format(key, quoted[e[key]]) end
  end
  for _, key in ipairs {"blocking", "pinned", "explicit", "virtual"} do
    if e[key] then list[#list + 1] = ('"%s":true'):format(key) end
  end
  return table.concat(list, ",")
end

local function title(e)
  if e.kind == "copy" then return e.from .. " -> " .. e.to end
  return e.kind == "sync" and "wait for " .. e.to or e.name
end

-- Microseconds as whole nanoseconds.
local function nanoseconds(time) return math.floor(time * 1000 + 0.5) end

-- The lanes of a trace, which are named by put(line) when they are first asked for.
local function new_lanes(put)
  local processes, count = {}, 0
  local function process_of(device)
    if not processes[device] then
      count = count + 1
      processes[device] = {number = count, streams = {}, others = 0, lanes = {}}
      put(format.name(count, 0, "process_name", device == "cpu" and "host (cpu)" or device))
    end
    return processes[device]
  end
  -- 0 for the device's own stream, and for none.
  local function stream_of(process, e)
    if not e.stream or e.default_stream or e.kind == "sync" then return 0 end
    if not process.streams[e.stream] then
      process.others = process.others + 1
      process.streams[e.stream] = process.others
    end
    return process.streams[e.stream]
  end
  -- The numbers of an event's process and thread.
  return function(e)
    local process = process_of(place_of(e))
    local stream = stream_of(process, e)
    local lane = stream * 4 + lane_order[e.kind]
    if not process.lanes[lane] then
      process.lanes[lane] = true
      put(format.name(process.number, lane, "thread_name", lane_names[e.kind]
        .. (stream > 0 and (" of stream %d"):format(stream) or "")))
    end
    return process.number, lane
  end
end

--- Writes the events that an iterator gives: write(text...) does it, as often as it is called.
return function(events, write)
  format.write(write, function(put)
    local lane_of = new_lanes(put)
    for e in events do
      if lane_order[e.kind] and (e.kind ~= "op" or e.kernel) then
        local process, lane = lane_of(e)
        local begin = nanoseconds(e.begin)
        put(format.span(e.kind, title(e), process, lane, begin, nanoseconds(e.finish) - begin,
          details(e)))
      end
    end
  end)
end
