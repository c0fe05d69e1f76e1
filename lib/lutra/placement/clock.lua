--- The virtual clock: the time that a sequence of events takes on hardware with a given link.
--
-- The host and each stream of a device have a time. The host queues work on a stream and
-- continues; a blocking copy, a copy of pageable (not pinned) memory, and a synchronization
-- advance it to the end of the stream. A stream that waits for an event continues at the event's
-- time. A copy between two devices starts when both their streams are free and occupies both; if
-- they cannot access each other's memory, its bytes are transferred twice. A collective starts when
-- the stream of its call and the earlier calls of its group are done, as if all ranks made it at
-- that time, takes the time of a ring, and occupies a stream of its group. The numbers of the link
-- are those of src/tensor/links.def. The work of devices and of the host is estimated from the
-- bytes of the results, as a trace is about the copies.
--
-- Invariant: times depend only on the sequence of events, so they are the same on every run.

local core = require "lutra.core"

local clock = {}

-- Memory bandwidths of a device and of the host in bytes per microsecond, and the minimum times of
-- a kernel and of an op on the host in microseconds.
local device_memory, host_memory, kernel_least, host_least = 1e6, 1e4, 2, 1
-- The factor on the bandwidth of pageable memory, which the host copies to pinned memory first.
local pageable = 0.5

--- Returns the link selected with --emulate, a row of links.def with its name, or nil.
function clock.link()
  local name = (os.getenv "LUTRA_EMULATE" or ""):match "link=([%w_]+)"
  local link = name and core._trace.links()[name]
  if link then link.name = name end
  return link
end

local function is_host(device) return device == "cpu" end

-- The steps of a ring of p ranks, each of which takes the latency of the link. Kinds that are not
-- listed take p - 1.
local ring_steps = {
  all_reduce = function(p) return 2 * (p - 1) end, barrier = function(p) return 2 * (p - 1) end,
  send = function() return 1 end, recv = function() return 1 end,
}

-- Returns the microseconds that a collective or a message takes.
local function time_of_ring(link, e)
  local steps = ring_steps[e.name] and ring_steps[e.name](e.comm.size) or e.comm.size - 1
  if is_host(e.to) then return steps * host_least + e.comm.link_bytes / host_memory end
  return steps * link.latency + e.comm.link_bytes / link.peer
end

local function rate_of(link, e)
  if e.by_host then return link.host / 2 end
  if not is_host(e.from) and not is_host(e.to) then return link.peer end
  return link.host * (e.pinned and 1 or pageable)
end

--- Returns a function that sets the virtual times `begin` and `finish` of the events of one
-- sequence, which must be passed in order. Work on a device also gets `called` and `issued`, the
-- times at which the host started and finished queueing it. Without a link the events are not
-- changed.
function clock.new(link)
  if not link then return function() end end
  local host, streams, marks, works, copied = 0, {}, {}, {}, nil

  local function queue(device, stream)
    local key = device .. tostring(stream or "")
    streams[key] = streams[key] or {device = device, time = 0}
    return streams[key]
  end
  local function queue_of(e) return queue(is_host(e.to) and e.from or e.to, e.stream) end
  -- Queues work of `length` microseconds on the event's stream, not before the host's time.
  local function enqueue(e, length)
    local own = queue_of(e)
    local theirs = e.source_stream and queue(e.from, e.source_stream) or own
    e.begin = math.max(host, own.time, theirs.time)
    e.finish = e.begin + length
    own.time, theirs.time = e.finish, e.finish
  end
  -- Advances the host by the time that queueing a copy or a kernel takes.
  local function launch(e)
    e.called = host
    host = host + (is_host(e.to) and e.kind == "collective" and host_least or link.launch)
    e.issued = host
  end
  local function copy(e)
    launch(e)
    enqueue(e, link.latency + e.bytes / rate_of(link, e))
    local staged = not e.pinned and (is_host(e.from) or is_host(e.to))
    if e.blocking or staged then host = e.finish end
    copied = e.depth
  end
  local function op(e)
    if copied and copied > e.depth then -- the op only copied, which has been counted
      e.begin, e.finish = host, host
    elseif is_host(e.to) then
      e.begin = host
      host = host + host_least + e.bytes / host_memory
      e.finish = host
    elseif e.to ~= "meta" then
      launch(e)
      enqueue(e, kernel_least + 3 * e.bytes / device_memory)
    end
  end
  local function collective(e)
    launch(e)
    local own = queue(e.to, e.stream)
    local theirs = queue(e.to, "group " .. e.comm.group)
    e.begin, e.finish = e.called, e.issued
    e.arrived = math.max(host, own.time, theirs.time)
    e.done = e.arrived + time_of_ring(link, e)
    theirs.time = e.done
    local work = e.comm.work
    if work then works[work] = {own = own, done = math.max(e.done, e.comm.sequence and 0
      or works[work] and works[work].done or 0)} end
  end
  local function wait_for_work(e)
    local work = works[e.comm.work]
    e.begin = host
    if work and is_host(e.to) then
      host = math.max(host, work.done)
    elseif work then
      work.own.time = math.max(work.own.time, work.done)
    end
    works[e.comm.work or 0] = nil
    e.finish = host
  end
  local function wait(e)
    if e.comm then return wait_for_work(e) end
    local only = e.stream and queue_of(e)
    e.begin = host
    if e.mark then host = math.max(host, marks[e.mark] or 0) end
    for _, own in pairs(streams) do
      if not e.mark and own.device == e.to and (not only or own == only) then
        host = math.max(host, own.time)
      end
    end
    e.finish = host
  end

  return function(e)
    e.virtual = true
    if e.kind == "copy" then
      copy(e)
    elseif e.kind == "op" and e.kernel then
      op(e)
    elseif e.kind == "sync" then
      wait(e)
    elseif e.kind == "collective" then
      collective(e)
    elseif e.kind == "mark" then
      marks[e.mark] = math.max(host, queue_of(e).time)
      e.begin, e.finish = marks[e.mark], marks[e.mark]
    elseif e.kind == "after" then
      local own = queue_of(e)
      own.time = math.max(own.time, marks[e.mark] or 0)
      e.begin, e.finish = own.time, own.time
    else
      e.begin, e.finish = host, host
    end
    if e.depth == 0 then copied = nil end
  end
end

return clock
