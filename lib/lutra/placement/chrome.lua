--- Export of a placement trace to the Trace Event Format.
--
-- Each device is a process with one lane of ops and one of copies per stream, as streams run
-- concurrently; the host also has a lane of waits. A copy is drawn on the device's side. Times are
-- microseconds, rounded to nanoseconds, so that the spans of a lane are nested or disjoint, as the
-- format requires.

local format = require "lutra.profiler.trace_format"
local quoted = require("lutra.profiler.json").quoted

local lane_names = {op = "ops", region = "regions", copy = "copies", sync = "waits"}
local lane_order = {op = 1, region = 2, copy = 3, sync = 4}

local function device_of(e)
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

-- Converts microseconds to an integer number of nanoseconds.
local function nanoseconds(time) return math.floor(time * 1000 + 0.5) end

-- Returns a function that maps an event to the numbers of its process and thread. A lane's name is
-- written with put(line) on first use.
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
  -- Returns the number of an event's stream: 0 for the default stream and for none.
  local function stream_of(process, e)
    if not e.stream or e.default_stream or e.kind == "sync" then return 0 end
    if not process.streams[e.stream] then
      process.others = process.others + 1
      process.streams[e.stream] = process.others
    end
    return process.streams[e.stream]
  end
  return function(e)
    local process = process_of(device_of(e))
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

--- Writes the events of an iterator by write(text...), which is called repeatedly.
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
