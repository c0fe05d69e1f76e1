--- Writer of the Trace Event Format (Google's document of that name), which Perfetto and
-- chrome://tracing read: processes with threads, shown as lanes, that contain nested or disjoint
-- spans.

local quoted = require("lutra.profiler.json").quoted

local format = {}

--- Returns the event that names a process or one of its threads; `what` is "process_name" or
-- "thread_name".
function format.name(process, thread, what, name)
  return ('{"ph":"M","pid":%d,"tid":%d,"name":"%s","args":{"name":%s}}'):format(process, thread,
    what, quoted[name])
end

--- Returns a complete event; `begin` and `length` are in nanoseconds, `details` are the members of
-- its "args" object as JSON.
function format.span(category, title, process, thread, begin, length, details)
  return ('{"ph":"X","cat":"%s","name":%s,"pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{%s}}')
    :format(category, quoted[title], process, thread, begin / 1000, length / 1000, details)
end

--- Returns the two events of an arrow with the number `id`, from one point of a lane to another:
-- {process, thread, time (nanoseconds)}. Each point must be in a span.
function format.arrow(category, title, id, from, to)
  local event = '{"ph":"%s",%s"cat":"%s","name":%s,"id":%d,"pid":%d,"tid":%d,"ts":%.3f}'
  return event:format("s", "", category, quoted[title], id, from[1], from[2], from[3] / 1000),
    event:format("f", '"bp":"e",', category, quoted[title], id, to[1], to[2], to[3] / 1000)
end

--- Writes a file by write(text...): calls fill(put), which calls put(event) for each event.
function format.write(write, fill)
  local separator = "\n"
  write '{"displayTimeUnit":"ms","traceEvents":['
  fill(function(event)
    write(separator, event)
    separator = ",\n"
  end)
  write "\n]}\n"
end

return format
