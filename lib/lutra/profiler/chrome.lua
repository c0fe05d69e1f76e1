--- Export of a profile to the Trace Event Format.
--
-- Each device is a process; its ops, regions, copies, waits and communication are threads of it,
-- shown as lanes. Events are complete events ("X") with times in microseconds; they are nested or
-- disjoint, as the format requires of a lane. The memory allocated on a device is a counter ("C").

local format = require "lutra.profiler.trace_format"
local quoted = require("lutra.profiler.json").quoted

local lanes = {op = 1, region = 2, copy = 3, wait = 4, collective = 5}
local lane_names = {"ops", "regions", "copies", "waits", "communication"}

local function title(e)
  if e.kind == "copy" then return e.from .. " -> " .. e.device end
  return e.name ~= "" and e.name or e.kind
end

-- Returns the details that a viewer shows for a selected event.
local function details(e)
  local list = {('"self_us":%.3f'):format(e.own / 1000)}
  local function add(key, value) list[#list + 1] = ('"%s":%s'):format(key, value) end
  if e.bytes > 0 then add("bytes", e.bytes) end
  for _, key in ipairs {"dtype", "shape", "from"} do
    if e[key] then add(key, quoted[e[key]]) end
  end
  if e.where then add("line", quoted[e.where]) end
  for _, key in ipairs {"pinned", "blocking", "failed"} do
    if e[key] then add(key, "true") end
  end
  return table.concat(list, ",")
end

local function span(e, process)
  return format.span(e.kind, title(e), process, lanes[e.kind], e.first, e.last - e.first,
    details(e))
end

local function counter(e, process, bytes)
  return ('{"ph":"C","name":"memory since the start","pid":%d,"tid":0,"ts":%.3f,'
    .. '"args":{"bytes":%d}}'):format(process, e.first / 1000, bytes)
end

-- Returns a function that maps a device to the number of its process, whose names are written by
-- put(event) on first use.
local function new_processes(put)
  local processes, count = {}, 0
  return function(device)
    if not processes[device] then
      count = count + 1
      processes[device] = count
      put(format.name(count, 0, "process_name", device))
      for thread, name in ipairs(lane_names) do
        put(format.name(count, thread, "thread_name", name))
      end
    end
    return processes[device]
  end
end

--- Writes the events of a profile by write(text...), which is called repeatedly.
return function(profile, write)
  format.write(write, function(put)
    local process_of, live = new_processes(put), {}
    for e in profile:events() do
      local process = process_of(e.device)
      if lanes[e.kind] then
        put(span(e, process))
      elseif e.kind == "alloc" or e.kind == "free" then
        live[e.device] = (live[e.device] or 0) + (e.kind == "alloc" and e.bytes or -e.bytes)
        put(counter(e, process, live[e.device]))
      end
    end
  end)
end
