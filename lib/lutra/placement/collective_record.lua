--- What the rules about collectives (collective_rules.lua) need to know of a run: the list of its
-- collectives, with what happened before and after each.

local CollectiveRecord = {}
CollectiveRecord.__index = CollectiveRecord

--- Returns an empty record; its field `list` has the collectives that were added.
function CollectiveRecord.new()
  return setmetatable({list = {}, ops = 0, backwards = 0, after_backward = 0, downloads = {},
    exchanged = {}}, CollectiveRecord)
end

-- Adds a collective. Its input is recognized as the result of a copy from a device by its bytes.
function CollectiveRecord:collective(e)
  e.ops, e.backwards, e.after_backward = self.ops, self.backwards, self.after_backward
  local first = e.to == "cpu" and e.digest and e.digest ~= 0 and self.downloads[e.digest]
  if first and first.bytes == e.bytes then
    e.first = first
    self.exchanged[first.from] = self.exchanged[first.from] or {}
    self.exchanged[first.from][e.bytes] = e
  end
  table.insert(self.list, e)
end

-- Adds a copy. One that sends the result of a collective back gets the field `exchanged`, by which
-- the rules about unchanged data ignore it: in a group of one rank nothing changes.
function CollectiveRecord:copy(e)
  if e.to == "cpu" then
    if e.digest and e.digest ~= 0 then self.downloads[e.digest] = e end
    return
  end
  local waiting = e.from == "cpu" and self.exchanged[e.to]
  if waiting and waiting[e.bytes] then
    waiting[e.bytes].back, waiting[e.bytes], e.exchanged = e, nil, true
  end
end

--- Processes the next event.
function CollectiveRecord:add(e)
  if e.kind == "collective" then
    self:collective(e)
  elseif e.kind == "copy" then
    self:copy(e)
  elseif e.kind == "op" and e.kernel then
    self.ops, self.after_backward = self.ops + 1, self.after_backward + 1
  elseif e.kind == "region" and e.name == "backward" then
    self.backwards, self.after_backward = self.backwards + 1, 0
  end
end

return CollectiveRecord
