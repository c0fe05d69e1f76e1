--- Single elements of devices' tensors that a program calculates with, one at a time.
--
-- Idea: x[i] of a tensor with one dim is a view of one number, and the kernel after it that gives
-- one number is its use; a kernel in place says itself what it writes. Between two elements of one
-- loop nothing larger is calculated: a number that is kept in each step of a training, as in
-- losses[step] = loss, is no such loop. So the run is cut into parts by what is larger, and only
-- elements of one part count together.

local Elements = {}
Elements.__index = Elements

--- Hears events with :view, :kernel and :copy. Its list part is the elements: {where, memory,
-- offset, part (a number), written (or read), number (what is written is a number of the host's),
-- kernel (what used it: {to, begin, finish}; an event has more, and there may be many)}.
function Elements.new() return setmetatable({part = 1, views = {}}, Elements) end

local function is_element(e) return e.shape == "{}" and e.target end

--- A view was made: of those at one line, the newest is kept.
function Elements:view(e)
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

-- More than one number was calculated or copied.
local function cut(self)
  self.part, self.views = self.part + 1, {}
end

--- A kernel ran on a device.
function Elements:kernel(e)
  if not (e.shape and e.shape:find "^{[1, ]*}$") then return cut(self) end
  local kernel = {to = e.to, begin = e.begin, finish = e.finish}
  if e.in_place and is_element(e) then add(self, e, kernel, true) end
  for _, view in ipairs(self.views) do
    local is_written = e.in_place and view.target == e.target and view.offset == e.offset
    if not is_written then add(self, view, kernel, false) end
  end
  self.views = {}
end

--- Something was copied: an element that the host reads is used by that.
function Elements:copy(e)
  if e.bytes > 8 then return cut(self) end
  for i = #self.views, 1, -1 do
    local view = self.views[i]
    if view.target == e.source and view.offset == e.offset then table.remove(self.views, i) end
  end
end

return Elements
