--- A profile as JSON of the Trace Event Format (the document of that name by Google).
--
-- A device is a process, its ops, copies and waits are threads of it: so they are lanes one above
-- the other. An event is a complete one ("X"), times are microseconds. Since events are nested or
-- apart, those of a lane are too, as the format wants it. The bytes that live on a device are a
-- counter ("C").

local escapes = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r"}

-- A string of JSON; what is no UTF-8 is read as Latin-1.
local function text(s)
  if not utf8.len(s) then
    s = s:gsub("[\x80-\xff]", function(c) return utf8.char(c:byte()) end)
  end
  return '"' .. s:gsub('[%c"\\]', function(c)
    return escapes[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function value(v)
  if math.type(v) == "float" then return ("%.3f"):format(v) end
  if type(v) == "number" or type(v) == "boolean" then return tostring(v) end
  return text(v)
end

-- An object with its keys in this order: {"name", "mul", "ts", 1.5}; a nil value is left out.
local function object(n, ...)
  local parts = {}
  for i = 1, n, 2 do
    local key, v = select(i, ...)
    if v ~= nil then
      parts[#parts + 1] = text(key) .. ":" .. (type(v) == "table" and v[1] or value(v))
    end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local lanes = {op = 1, region = 2, copy = 3, wait = 4}
local lane_names = {"ops", "regions", "copies", "waits"}

local function metadata(process, name, thread, what)
  return object(10, "ph", "M", "pid", process, "tid", thread, "name", what,
    "args", {object(2, "name", name)})
end

local function title(e)
  if e.kind == "copy" then return e.from .. " -> " .. e.device end
  return e.name ~= "" and e.name or e.kind
end

local function flag(x) return x or nil end

local function span(e, process)
  local details = object(18, "bytes", e.bytes > 0 and e.bytes or nil, "dtype", e.dtype,
    "shape", e.shape, "line", e.where, "from", e.from, "pinned", flag(e.pinned),
    "blocking", flag(e.blocking), "failed", flag(e.failed), "self_us", e.own / 1000)
  return object(16, "ph", "X", "cat", e.kind, "name", title(e), "pid", process,
    "tid", lanes[e.kind], "ts", e.first / 1000, "dur", (e.last - e.first) / 1000,
    "args", {details})
end

--- Writes the profile's events to an open file.
return function(profile, file)
  local separator = "\n"
  local function put(line)
    file:write(separator, line)
    separator = ",\n"
  end
  local processes, live, count = {}, {}, 0
  local function process_of(device)
    if not processes[device] then
      count = count + 1
      processes[device] = count
      put(metadata(count, device, 0, "process_name"))
      for thread, name in ipairs(lane_names) do
        put(metadata(count, name, thread, "thread_name"))
      end
    end
    return processes[device]
  end

  file:write '{"displayTimeUnit":"ms","traceEvents":['
  for e in profile:events() do
    local process = process_of(e.device)
    if lanes[e.kind] then
      put(span(e, process))
    else
      live[e.device] = (live[e.device] or 0) + (e.kind == "alloc" and e.bytes or -e.bytes)
      put(object(12, "ph", "C", "name", "bytes since the start", "pid", process, "tid", 0,
        "ts", e.first / 1000, "args", {object(2, "bytes", live[e.device])}))
    end
  end
  file:write "\n]}\n"
end
