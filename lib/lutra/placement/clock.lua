--- The virtual clock: what a sequence of events would take on hardware with a given link.
--
-- The host and each device's streams have a time of their own. The host puts work into a stream's
-- queue and goes on; a blocking copy, one from memory that is not pinned, and a wait take it to the
-- end of the stream. A stream that is told to wait for an event goes on at the time of that; a copy
-- between two devices comes after what is on both their streams, and holds up both; where they
-- cannot reach each other's memory, its bytes travel twice. The numbers of the link are those of
-- src/tensor/links.def; the device's and the host's own work is counted roughly, by the bytes of
-- results, since a trace is about the copies.
--
-- Invariant: times follow from the sequence of events alone, so they are the same on every run.

local core = require "lutra.core"

local clock = {}

-- Bytes a microsecond of a device's memory and of the host's, and what a kernel and an op of the
-- host take at least.
local device_memory, host_memory, kernel_least, host_least = 1e6, 1e4, 2, 1
-- Memory that is not pinned is copied twice: once by the host.
local pageable = 0.5

--- The link that was asked for with --emulate, or nil: a row of links.def, with its name.
function clock.link()
  local name = (os.getenv "LUTRA_EMULATE" or ""):match "link=([%w_]+)"
  local link = name and core._trace.links()[name]
  if link then link.name = name end
  return link
end

local function is_host(device) return device == "cpu" end

local function rate_of(link, e)
  if e.by_host then return link.host / 2 end
  if not is_host(e.from) and not is_host(e.to) then return link.peer end
  return link.host * (e.pinned and 1 or pageable)
end

--- A function that gives the events of one sequence, in their order, their virtual times; to what
-- runs on a device also when the host began and ended to put it into its queue (called, issued).
-- Without a link it leaves them as they are.
function clock.new(link)
  if not link then return function() end end
  local host, streams, marks, copied = 0, {}, {}, nil

  local function queue(device, stream)
    local key = device .. tostring(stream or "")
    streams[key] = streams[key] or {device = device, time = 0}
    return streams[key]
  end
  local function queue_of(e) return queue(is_host(e.to) and e.from or e.to, e.stream) end
  -- Work of that length in the stream, after `host`.
  local function enqueue(e, length)
    local own = queue_of(e)
    local theirs = e.theirs and queue(e.from, e.theirs) or own
    e.begin = math.max(host, own.time, theirs.time)
    e.finish = e.begin + length
    own.time, theirs.time = e.finish, e.finish
  end
  -- The host's part of a copy or a kernel.
  local function launch(e)
    e.called = host
    host = host + link.launch
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
    if copied and copied > e.depth then -- its work was the copy
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
  local function wait(e)
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
