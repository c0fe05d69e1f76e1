--- A reader of the core's events, which converts them to those of lt.placement.
--
-- Memory is identified by numbers, as the core's addresses are reused after a free. Memory that
-- was allocated before the reader was opened gets a number at its first copy, but has no recorded
-- origin.

local clock = require "lutra.placement.clock"
local collectives = require "lutra.placement.collectives"
local core = require "lutra.core"
local explain = require "lutra.internal.explain"

local EventReader = {}
EventReader.__index = EventReader

-- The open readers by the order in which they were opened: an error asks the newest where a tensor
-- was made. The references are weak, so that a reader in an abandoned coroutine is collected.
local open, opened = setmetatable({}, {__mode = "v"}), 0

--- Returns a reader, which records until it is closed (`<close>` or :close()). It keeps the first
-- `limit` events.
function EventReader.new(limit)
  local self = setmetatable({}, EventReader)
  self.recorder = core._trace.record{where = true, digest = true, order = true, limit = limit}
  self.link, self.by_host = clock.link(), {}
  opened = opened + 1
  self.number, open[opened] = opened, self
  return self
end

--- Stops recording and frees the events. May be called again.
function EventReader:close()
  self.recorder:release()
  open[self.number] = nil
end
EventReader.__close = EventReader.close

-- Returns the origin {where, how} of the memory that an event allocates; `how` is "made" or
-- "moved".
local function birth_of(e)
  return e.where and {where = e.where, how = e.transfers and "moved" or "made"}
end

-- Returns the memory that an address refers to at this event, or nil without an address.
local function memory_at(self, memory, address)
  if not address then return nil end
  if not memory[address] then
    self.memories = self.memories + 1
    memory[address] = {id = self.memories}
  end
  return memory[address]
end

local kinds = {wait = "sync"}

-- Returns whether an event is a copy between two devices that cannot access each other's memory,
-- which is staged through the host.
function EventReader:is_staged(e)
  if not e.source_stream then return false end
  local pair = e.device .. " " .. e.from
  if self.by_host[pair] == nil then
    self.by_host[pair] = not core._accelerator.can_access_peer(e.device, e.from)
  end
  return self.by_host[pair]
end

--- Iterates over the events so far: a new table for each. lutra.placement.trace documents the
-- fields; further ones are: source, target (the numbers of the memory), offset, digest, kernel,
-- direct, depth, backward_copy (true for the gradient of a copy), copies, computes (see the events
-- of core._trace.record). A collective's fields `done`, `arrived` and `waited` are set when the
-- iteration reaches the wait for it.
function EventReader:events()
  local recorder, memory, e, i = self.recorder, {}, {}, 0
  local times, pair = clock.new(self.link), collectives.new()
  local count = recorder:count()
  self.memories = 0
  return function()
    if i >= count then return nil end
    i = i + 1
    recorder:event(i, e)
    local source = memory_at(self, memory, e.storage)
    local made = source and source.birth
    if e.kind == "alloc" then
      self.memories = self.memories + 1
      source = {id = self.memories, birth = birth_of(e)}
      memory[e.storage], made = source, source.birth
    elseif e.kind == "free" then
      memory[e.storage] = nil
    end
    local target = memory_at(self, memory, e.target)
    local event = {
      kind = kinds[e.kind] or e.kind, op = e.call or e.name, name = e.name, from = e.from,
      to = e.device, device = e.device, bytes = e.bytes, blocking = e.blocking,
      source_stream = e.source_stream, mark = e.mark, by_host = self:is_staged(e),
      pinned = e.pinned, backward_copy = e.backward_copy, explicit = e.explicit, where = e.where,
      tensor = e.kind ~= "op" and made and made.where or nil,
      begin = e.first / 1000, finish = e.last / 1000, source = source and source.id,
      target = target and target.id, offset = e.offset, digest = e.digest, kernel = e.kernel,
      direct = e.direct, depth = e.depth, stream = e.stream,
      default_stream = e.default_stream, copies = e.copies, computes = e.computes,
      shape = e.shape, in_place = e.in_place, failed = e.failed, comm = e.comm,
    }
    times(event)
    pair(event)
    return event
  end
end

--- Returns whether there has been an event.
function EventReader:has_events() return self.recorder:count() > 0 end

--- Returns the number of events that were dropped because the limit was reached.
function EventReader:dropped() return (select(2, self.recorder:count())) end

-- Returns where the memory at an address was allocated, as a recorder knows it: " (made at
-- train.lua:12)", or nil.
local function describe_origin(recorder, address)
  local e = {}
  for i = recorder:count(), 1, -1 do
    recorder:event(i, e)
    if e.storage == address and e.kind == "free" then return nil end
    if e.storage == address and e.kind == "alloc" then
      local birth = birth_of(e)
      return birth and (" (%s at %s)"):format(birth.how, birth.where)
    end
  end
end

explain.add(function(a, b)
  local newest
  for _, event_reader in pairs(open) do
    if not newest or event_reader.number > newest.number then newest = event_reader end
  end
  if not newest then return nil end
  a.note = describe_origin(newest.recorder, a.memory)
  b.note = describe_origin(newest.recorder, b.memory)
end)

return EventReader
