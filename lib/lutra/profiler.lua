--- lt.profiler: which ops a piece of code runs, how long they take, what they copy and allocate.
--
--     local prof, loss = lt.profiler.profile(function() return step(x, y) end)
--     print(prof:table{sort_by = "bytes"})
--     prof:export_chrome_trace "step.json" -- for ui.perfetto.dev and chrome://tracing
--
-- Idea: the core tells of ops, copies, waits and memory while they happen (src/tensor/trace.h); a
-- profile holds those events and counts them when it is asked.
--
-- Invariant: unless `synchronize = false` is given, each op and copy on an accelerator is waited
-- for, so that a time is that of the work and not of putting it into a queue. That makes a program
-- slower: a profile says where time goes, :time and :timeit how much there is.

local args = require "lutra.internal.args"
local core = require "lutra.core"

local profiler = {}

local Profile = {__name = "profile"}
Profile.__index = Profile

local parse = args.signature("profiler.profile",
  "function fn, bool synchronize = true, bool lines = true, int(>=1) limit = 1000000")

--- The accelerators' devices that the program has used, by name.
function profiler.devices() return core._trace.devices() end

--- Waits until the devices have done their work. Returns their names.
function profiler.synchronize()
  local names = core._trace.devices()
  for _, name in ipairs(names) do core.synchronize(name) end
  return names
end

--- Calls fn() and listens. Returns the profile, then what fn returned; an error of fn's goes on.
-- Options: synchronize (true) waits for each op and copy; lines (true) keeps the line of the
-- program that each is of; limit (1000000) is how many events are kept.
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

--- Calls fn(...) as a part of the program with a name of its own in profiles. Returns what it
-- returns.
function profiler.record_function(name, fn, ...)
  args.check(type(name) == "string", 'record_function: argument "name" is %s, it wants a string',
    args.show(name))
  args.check(args.is_callable(fn), 'record_function: argument "fn" is %s, it wants a function',
    args.show(fn))
  local _ <close> = core._trace.region(name)
  return fn(...)
end

--- Iterates over the events, as tables; the same table each time. Fields: kind ("op", "region",
-- "copy", "wait", "alloc", "free"), name, device, from, bytes, in_place, kernel, failed, blocking,
-- pinned, dtype, shape, first and last (nanoseconds since the start), own (nanoseconds that no
-- event inside took), depth, where. What is inside an event comes before it.
function Profile:events()
  local recorder, i, n, event = self.recorder, 0, self.event_count, {}
  return function()
    i = i + 1
    if i <= n then return recorder:event(i, event) end
  end
end

--- The events added up by op and device, or by line (group_by = "line"): a list of rows {key,
-- device, count, self_time, total_time (seconds), bytes, copies, kind}, with a method `table`.
function Profile:key_averages(options)
  args.expect(options == nil or type(options) == "table", "key_averages", "a table", "options",
    options)
  return require("lutra.profiler.averages")(self, options)
end

--- The text of a table of them. Options: sort_by ("time", "total", "calls", "bytes", "name"),
-- row_limit (all), group_by ("op", "line"), width (columns; 80).
function Profile:table(options)
  args.expect(options == nil or type(options) == "table", "table", "a table", "options", options)
  local by = options and options.group_by
  return self:key_averages{group_by = by}:table(options)
end

--- Writes the events as JSON of the Trace Event Format, which Perfetto and chrome://tracing read.
function Profile:export_chrome_trace(path)
  local json = require "lutra.profiler.json"
  json.save("export_chrome_trace", path, require "lutra.profiler.chrome", self)
end

--- Gives the memory of the events back at once, which the collector does not see; the profile is
-- empty then.
function Profile:close()
  self.recorder:release()
  self.event_count = 0
end

function Profile:__tostring() return self:table() end

return require("lutra.internal.strict_table").strict(profiler, "lt.profiler")
