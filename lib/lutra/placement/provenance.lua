--- Provenance of host memory: the copy from a device that transferred its contents, also through
-- copies on the host (x:cpu():pin_memory(), x:cpu():clone()).
--
-- Contents that were changed in between have another digest, which :of compares.

local Provenance = {}
Provenance.__index = Provenance

--- Returns an empty map, to be passed events with :copy and :op.
function Provenance.new() return setmetatable({downloads = {}}, Provenance) end

--- Processes a copy between devices.
function Provenance:copy(e)
  if e.to == "cpu" and e.target then self.downloads[e.target] = e end
end

--- Processes an op that ran on the host.
function Provenance:op(e)
  local is_copy = e.copies or e.name == "pin_memory"
  local first = is_copy and e.target and self.downloads[e.source]
  if first and first.bytes == e.bytes then self.downloads[e.target] = first end
end

--- Returns the copy from a device whose unchanged bytes an upload sends, or nil.
function Provenance:of(e)
  local first = e.from == "cpu" and e.to ~= "cpu" and self.downloads[e.source]
  return first and first.digest == e.digest and e.digest ~= 0 and first or nil
end

return Provenance
