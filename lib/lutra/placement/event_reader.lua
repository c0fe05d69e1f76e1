--- A recorder of the core's events, given out as lt.placement names them.
--
-- Memory is named by numbers here: the core's addresses come again after a free. What was there
-- before the listener has a number too, from its first copy on, but no birth.

local clock = require "lutra.placement.clock"
local core = require "lutra.core"
local explain = require "lutra.internal.explain"

local Listener = {}
Listener.__index = Listener

-- The listeners that are open, by when they were opened: an error asks the newest where a tensor
-- was made. One in a coroutine that was abandoned ends with it, so none is held here.
local open, opened = setmetatable({}, {__mode = "v"}), 0

--- A listener, which must be closed (`<close>`, or :close()). It keeps `limit` events.
function Listener.new(limit)
  local self = setmetatable({}, Listener)
  self.recorder = core._trace.record{where = true, digest = true, order = true, limit = limit}
  self.link, self.by_host = clock.link(), {}
  opened = opened + 1
  self.number, open[opened] = opened, self
  return self
end

function Listener:close()
  self.recorder:release()
  open[self.number] = nil
end
Listener.__close = Listener.close

-- "made" or "moved", by the op that allocated.
local function birth_of(e)
  return e.where and {where = e.where, how = e.transfers and "moved" or "made"}
end

-- The memory that an address stands for now.
local function known(self, memory, address)
  if not address then return nil end
  if not memory[address] then
    self.memories = self.memories + 1
    memory[address] = {id = self.memories}
  end
  return memory[address]
end

local kinds = {wait = "sync"}

-- Is an event a copy between two devices that cannot reach each other's memory?
function Listener:goes_by_host(e)
  if not e.theirs then return false end
  local way = e.device .. " " .. e.from
  if self.by_host[way] == nil then
    self.by_host[way] = not core._accelerator.can_access_peer(e.device, e.from)
  end
  return self.by_host[way]
end

--- Iterates over the events up to now: a new table for each. See placement.trace for the fields;
-- beside them: source, target (the memory's numbers), offset, digest, kernel, direct, depth,
-- way_back (is it the gradient of a copy?), copies, computes (see `_trace.record`'s events).
function Listener:events()
  local recorder, memory, e, i = self.recorder, {}, {}, 0
  local times = clock.new(self.link)
  local count = recorder:count()
  self.memories = 0
  return function()
    if i >= count then return nil end
    i = i + 1
    recorder:event(i, e)
    local source = known(self, memory, e.storage)
    local made = source and source.birth
    if e.kind == "alloc" then
      self.memories = self.memories + 1
      source = {id = self.memories, birth = birth_of(e)}
      memory[e.storage], made = source, source.birth
    elseif e.kind == "free" then
      memory[e.storage] = nil
    end
    local target = known(self, memory, e.target)
    local event = {
      kind = kinds[e.kind] or e.kind, op = e.call or e.name, name = e.name, from = e.from,
      to = e.device, device = e.device, bytes = e.bytes, blocking = e.blocking,
      theirs = e.theirs, mark = e.mark, by_host = self:goes_by_host(e),
      pinned = e.pinned, way_back = e.way_back, explicit = e.explicit, where = e.where,
      tensor = e.kind ~= "op" and made and made.where or nil,
      begin = e.first / 1000, finish = e.last / 1000, source = source and source.id,
      target = target and target.id, offset = e.offset, digest = e.digest, kernel = e.kernel,
      direct = e.direct, depth = e.depth, stream = e.stream,
      default_stream = e.default_stream, copies = e.copies, computes = e.computes,
      shape = e.shape, in_place = e.in_place, failed = e.failed,
    }
    times(event)
    return event
  end
end

--- Has there been an event?
function Listener:heard() return self.recorder:count() > 0 end

--- How many events there was no room for.
function Listener:dropped() return (select(2, self.recorder:count())) end

-- Where the memory at an address was made, as a recorder knows it: " (made at train.lua:12)", or
-- nil.
local function origin(recorder, address)
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
  a.note, b.note = origin(newest.recorder, a.memory), origin(newest.recorder, b.memory)
end)

return Listener
