--- Detection of loops that compute with single elements of a device's tensor.
--
-- x[i] of a tensor with one dimension is a view of one element. The next kernel with a result of
-- one element is its use; an in-place kernel reports itself what it writes. A loop over elements
-- computes nothing larger between two elements: a number stored in each step of a training, as in
-- losses[step] = loss, is no such loop. The run is therefore divided into parts at each larger
-- computation, and only elements of one part are counted together.

local ElementLoops = {}
ElementLoops.__index = ElementLoops

--- Returns an empty list of elements, to be passed events with :view, :kernel and :copy. An entry
-- is {where, memory, offset, part (a number), written (false when read), number (true when the
-- value written is a number of the host), kernel (the kernel that uses it: {to, begin, finish})}.
-- Entries hold these tables instead of events, as there may be many.
function ElementLoops.new() return setmetatable({part = 1, views = {}}, ElementLoops) end

local function is_element(e) return e.shape == "{}" and e.target end

--- Processes a view; of the views made at one line, the newest is kept.
function ElementLoops:view(e)
  if not is_element(e) then return end
  for i, view in ipairs(self.views) do
    if view.where == e.where then table.remove(self.views, i) end
  end
  table.insert(self.views, e)
end

local function add(self, e, kernel, written)
  if not e.where then return end
  table.insert(self, {where = e.where, memory = e.target, offset = e.offset, part = self.part,
    written = written, number = written and e.copies and not e.source, kernel = kernel})
end

-- Starts a new part: more than one number was computed or copied.
local function start_part(self)
  self.part, self.views = self.part + 1, {}
end

--- Processes a kernel that ran on a device.
function ElementLoops:kernel(e)
  if not (e.shape and e.shape:find "^{[1, ]*}$") then return start_part(self) end
  local kernel = {to = e.to, begin = e.begin, finish = e.finish}
  if e.in_place and is_element(e) then add(self, e, kernel, true) end
  for _, view in ipairs(self.views) do
    local is_written = e.in_place and view.target == e.target and view.offset == e.offset
    if not is_written then add(self, view, kernel, false) end
  end
  self.views = {}
end

--- Processes a copy, which may be the use of an element that the host reads.
function ElementLoops:copy(e)
  if e.bytes > 8 then return start_part(self) end
  for i = #self.views, 1, -1 do
    local view = self.views[i]
    if view.target == e.source and view.offset == e.offset then table.remove(self.views, i) end
  end
end

return ElementLoops
