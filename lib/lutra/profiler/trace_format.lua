--- The Trace Event Format (the document of that name by Google), which Perfetto and
-- chrome://tracing read: processes with lanes, which are threads, and in them spans, which are
-- nested or apart.

local quoted = require("lutra.profiler.json").quoted

local format = {}

--- Names a process or one of its threads. `what`: "process_name" or "thread_name".
function format.name(process, thread, what, name)
  return ('{"ph":"M","pid":%d,"tid":%d,"name":"%s","args":{"name":%s}}'):format(process, thread,
    what, quoted[name])
end

--- A complete event: `begin` and `length` in nanoseconds, `details` the inside of an object.
function format.span(category, title, process, thread, begin, length, details)
  return ('{"ph":"X","cat":"%s","name":%s,"pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{%s}}')
    :format(category, quoted[title], process, thread, begin / 1000, length / 1000, details)
end

--- Writes a file by write(text...): fill(put) calls put(event) for each event.
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
