--- Which copy brought to the host what is in its memory now, also by way of copies on the host:
-- x:cpu():pin_memory(), x:cpu():clone().
--
-- What was calculated with it in between shows in the bytes: who asks compares digests.

local Origin = {}
Origin.__index = Origin

--- Hears events with :copy and :op.
function Origin.new() return setmetatable({brought = {}}, Origin) end

--- Something was copied between devices.
function Origin:copy(e)
  if e.to == "cpu" and e.target then self.brought[e.target] = e end
end

--- An op ran on the host.
function Origin:op(e)
  local is_copy = e.copies or e.name == "pin_memory"
  local first = is_copy and e.target and self.brought[e.source]
  if first and first.bytes == e.bytes then self.brought[e.target] = first end
end

--- The copy that brought what an upload sends, or nil.
function Origin:of(e)
  local first = e.from == "cpu" and e.to ~= "cpu" and self.brought[e.source]
  return first and first.digest == e.digest and e.digest ~= 0 and first or nil
end

return Origin
