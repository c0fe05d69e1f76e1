--- lt.profiler: the ops that a function runs, their times, copies and allocations.
--
--     local prof, loss = lt.profiler.profile(function() return step(x, y) end)
--     print(prof:table{sort_by = "bytes"})
--     prof:export_chrome_trace "step.json" -- for ui.perfetto.dev and chrome://tracing
--
-- The core reports ops, copies, synchronizations and allocations as events (src/tensor/trace.h). A
-- profile stores these events and aggregates them on request.
--
-- Invariant: unless `synchronize = false` is given, the profiler synchronizes after each op and
-- copy on an accelerator, so that a time is that of the work and not of queueing it. This makes
-- the program slower: use a profile to see where time is spent, :time and :timeit to measure how
-- much.

local args = require "lutra.internal.args"
local core = require "lutra.core"

local profiler = {}

local Profile = {__name = "profile"}
Profile.__index = Profile

local parse = args.signature("profiler.profile",
  "function fn, bool synchronize = true, bool lines = true, int(>=1) limit = 1000000")

--- Returns a list of the names of the accelerator devices that the program has used.
function profiler.devices() return core._trace.devices() end

--- Blocks until all work on these devices has completed; returns their names.
function profiler.synchronize()
  local names = core._trace.devices()
  for _, name in ipairs(names) do core.synchronize(name) end
  return names
end

--- Calls fn() and records its events. Returns the profile, then what fn returned; an error in fn is
-- passed on. `synchronize` blocks until each op and copy has completed; `lines` records the line
-- of the program that caused each event; `limit` is the maximum number of events, further ones are
-- dropped and counted (prof.dropped).
function profiler.profile(...)
  local fn, synchronize, lines, limit = parse(...)
  profiler.synchronize()
  local recorder <close> = core._trace.record{wait = synchronize, where = lines, limit = limit}
  local first = core._trace.now()
  local results = table.pack(fn())
  recorder:stop()
  local devices = profiler.synchronize()
  local self = setmetatable({
    recorder = recorder,
    seconds = (core._trace.now() - first) * 1e-9,
    devices = devices,
    synchronized = synchronize,
  }, Profile)
  self.event_count, self.dropped = recorder:count()
  return self, table.unpack(results, 1, results.n)
end

--- Calls fn(...) as a region that profiles show under `name`; returns what fn returns.
function profiler.record_function(name, fn, ...)
  args.expect(type(name) == "string", "record_function", "a string", "name", name)
  args.expect(args.is_callable(fn), "record_function", "a function", "fn", fn)
  local _ <close> = core._trace.region(name)
  return fn(...)
end

--- Iterates over the events as tables; each step reuses the same table. Fields: kind ("op",
-- "region", "copy", "wait", "alloc", "free", "collective"), name, device, from, bytes, in_place,
-- kernel, failed, blocking, pinned, dtype, shape, first and last (nanoseconds since the start), own
-- (nanoseconds not spent in nested events), depth, where. Nested events come before the event that
-- contains them.
function Profile:events()
  local recorder, i, n, event = self.recorder, 0, self.event_count, {}
  return function()
    i = i + 1
    if i <= n then return recorder:event(i, event) end
  end
end

--- prof:key_averages{group_by = "op"}: returns the events aggregated by op and device, or by line
-- (group_by = "line"): a list of rows {key, device, count, self_time, total_time (seconds), bytes,
-- copies, kind}, with a method `table`.
function Profile:key_averages(options)
  args.expect(options == nil or type(options) == "table", "key_averages", "a table", "options",
    options)
  return require("lutra.profiler.averages")(self, options)
end

--- prof:table{sort_by = "time", row_limit, group_by = "op", width = 80}: returns the aggregated
-- events as a printable table. sort_by: "time", "total", "calls", "bytes" or "name"; row_limit:
-- the number of rows, by default all; width: in columns.
function Profile:table(options)
  args.expect(options == nil or type(options) == "table", "table", "a table", "options", options)
  local by = options and options.group_by
  return self:key_averages{group_by = by}:table(options)
end

--- Writes the events as JSON in the Trace Event Format, which Perfetto and chrome://tracing read.
-- Raises an error when the file cannot be written.
function Profile:export_chrome_trace(path)
  local json = require "lutra.profiler.json"
  json.save("export_chrome_trace", path, require "lutra.profiler.chrome", self)
end

--- Frees the memory of the events, which the garbage collector does not account for; the profile is
-- empty afterwards.
function Profile:close()
  self.recorder:release()
  self.event_count = 0
end

function Profile:__tostring() return self:table() end

return require("lutra.internal.strict_table").strict(profiler, "lt.profiler")
