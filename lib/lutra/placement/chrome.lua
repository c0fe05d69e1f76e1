--- Export of a placement trace to the Trace Event Format.
--
-- Each device is a process with one lane of ops and one of copies per stream, as streams run
-- concurrently; the host also has a lane of waits. A copy is drawn on the device's side. The
-- collectives and messages of a group have a lane of their own on their device; each is drawn from
-- the call until its transfer was done, and in it the time until the last rank arrived. Times are
-- microseconds, rounded to nanoseconds, so that the spans of a lane are nested or disjoint, as the
-- format requires.

local collectives = require "lutra.placement.collectives"
local format = require "lutra.profiler.trace_format"
local quoted = require("lutra.profiler.json").quoted

local lane_names = {op = "ops", region = "regions", copy = "copies", sync = "waits"}
local lane_order = {op = 1, region = 2, copy = 3, sync = 4}

-- The number of the lane of the first group; streams have lower ones.
local first_group = 10000

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
  if e.kind == "sync" then return "wait for " .. (e.comm and e.name or e.to) end
  return e.name
end

-- Converts microseconds to an integer number of nanoseconds.
local function nanoseconds(time) return math.floor(time * 1000 + 0.5) end

-- Returns the details of a collective, from which lutra.placement.merge reads which calls of
-- different ranks belong together.
local function details_of_collective(e)
  local list, comm = {details(e)}, e.comm
  for _, key in ipairs {"group", "size", "rank", "sequence", "peer", "tag", "sent", "received",
    "link_bytes"} do
    if comm[key] then list[#list + 1] = ('"%s":%d'):format(key, comm[key]) end
  end
  if comm.reduction then list[#list + 1] = ('"reduction":"%s"'):format(comm.reduction) end
  if not comm.now then
    list[#list + 1] = '"async":true'
    local from = collectives.blocked_from(e)
    if from then list[#list + 1] = ('"blocked_from":%d'):format(nanoseconds(from)) end
  end
  return table.concat(list, ",")
end

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
    local lane, name
    if e.kind == "collective" then
      lane = first_group + e.comm.group
      name = "communication"
        .. (e.comm.group > 0 and (" of group %d"):format(e.comm.group) or "")
    else
      local stream = stream_of(process, e)
      lane = stream * 4 + lane_order[e.kind]
      name = lane_names[e.kind] .. (stream > 0 and (" of stream %d"):format(stream) or "")
    end
    if not process.lanes[lane] then
      process.lanes[lane] = true
      put(format.name(process.number, lane, "thread_name", name))
    end
    return process.number, lane
  end
end

-- Writes collectives, whose ends are known only after all events were read. A group makes one call
-- after the other.
local function put_collectives(list, lane_of, put)
  local last = {}
  for _, e in ipairs(list) do
    local process, lane = lane_of(e)
    local key = process .. " " .. lane
    local called = nanoseconds(e.virtual and e.called or e.begin)
    local begin = math.max(called, last[key] or called)
    local finish = math.max(begin, nanoseconds(e.done or e.finish))
    last[key] = finish
    put(format.span("collective", e.name, process, lane, begin, finish - begin,
      details_of_collective(e)))
    local arrived = e.arrived and not e.virtual and math.min(finish, nanoseconds(e.arrived))
    if arrived and arrived > begin then
      put(format.span("waiting", "wait for other ranks", process, lane, begin, arrived - begin,
        ""))
    end
  end
end

--- Writes the events of an iterator by write(text...), which is called repeatedly.
return function(events, write)
  format.write(write, function(put)
    local lane_of, calls = new_lanes(put), {}
    for e in events do
      if e.kind == "collective" then
        calls[#calls + 1] = e
      elseif lane_order[e.kind] and (e.kind ~= "op" or e.kernel) then
        local process, lane = lane_of(e)
        local begin = nanoseconds(e.begin)
        put(format.span(e.kind, title(e), process, lane, begin, nanoseconds(e.finish) - begin,
          details(e)))
      end
    end
    put_collectives(calls, lane_of, put)
  end)
end
