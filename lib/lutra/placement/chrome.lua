--- A trace as JSON of the Trace Event Format (the document of that name by Google).
--
-- Each device is a process with a lane of ops and one of copies; the host has one of waits as well.
-- A copy is drawn where its work is: on the device's side. Times are microseconds.

local quoted = require("lutra.profiler.json").quoted

local lanes = {op = 1, region = 2, copy = 3, sync = 4}
local lane_names = {"ops", "regions", "copies", "waits"}

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

local function metadata(process, thread, what, name)
  return ('{"ph":"M","pid":%d,"tid":%d,"name":"%s","args":{"name":%s}}'):format(process, thread,
    what, quoted[name])
end

--- Writes the trace's events: write(text...) does it, as often as it is called.
return function(trace, write)
  local separator, processes, count = "\n", {}, 0
  local function put(line)
    write(separator, line)
    separator = ",\n"
  end
  local function process_of(device)
    if not processes[device] then
      count = count + 1
      processes[device] = count
      put(metadata(count, 0, "process_name", device == "cpu" and "host (cpu)" or device))
      for thread, name in ipairs(lane_names) do
        put(metadata(count, thread, "thread_name", name))
      end
    end
    return processes[device]
  end
  write '{"displayTimeUnit":"ms","traceEvents":['
  for _, e in ipairs(trace.events) do
    if lanes[e.kind] then
      put(('{"ph":"X","cat":"%s","name":%s,"pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{%s}}')
        :format(e.kind, quoted[title(e)], process_of(place_of(e)), lanes[e.kind], e.begin,
          e.finish - e.begin, details(e)))
    end
  end
  write "\n]}\n"
end
