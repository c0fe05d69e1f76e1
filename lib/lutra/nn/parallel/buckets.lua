--- Buckets: parameters whose gradients are exchanged together.
--
-- The gradients of a bucket are views of one flat tensor, its buffer.

local lt = require "lutra"
local class = require "lutra.internal.class"

local buckets = {}

--- A bucket of gradients, as a communication hook gets it.
local Bucket = class("GradBucket", "lt.distributed.GradBucket")

--- Makes bucket number `index` for those of `parameters` whose numbers are in the list `members`,
-- all of one dtype and device.
function Bucket:init(index, members, parameters)
  local first, total = parameters[members[1]], 0
  self._index, self.members, self._parameters, self.views = index, members, {}, {}
  for k, i in ipairs(members) do
    self._parameters[k] = parameters[i]
    total = total + parameters[i]:numel()
  end
  self.storage = lt.zeros({total}, {dtype = first.dtype, device = first.device})
  self._buffer = self.storage
  self.views = self:gradients()
  self.pending = #members
end

--- Returns the flat tensor with the gradients of the bucket.
function Bucket:buffer() return self._buffer end

--- Replaces the flat tensor, for a hook that is called by another one.
function Bucket:set_buffer(t) self._buffer = t end

--- Returns the list of the gradients, views of the buffer.
function Bucket:gradients()
  local list, start = {}, 1
  for k, p in ipairs(self._parameters) do
    list[k] = self._buffer:narrow(1, start, p:numel()):view(p.shape)
    start = start + p:numel()
  end
  return list
end

--- Returns the list of the parameters.
function Bucket:parameters() return table.move(self._parameters, 1, #self._parameters, 1, {}) end

--- Returns the number of the bucket, from 1 on in the order in which buckets are exchanged.
function Bucket:index() return self._index end

--- Returns whether this is the last bucket that is exchanged.
function Bucket:is_last() return self._is_last end

function Bucket:__tostring()
  return ("GradBucket(index=%d, parameters=%d, elements=%d)"):format(self._index, #self.members,
    self.storage:numel())
end

-- Returns lists of the numbers of parameters: in the order of the list `order`, each list of one
-- dtype and device, and closed when it has `first` bytes (the first list of a dtype and device) or
-- `cap` bytes.
local function assign(parameters, order, first, cap)
  local lists, open, keys = {}, {}, {}
  for _, i in ipairs(order) do
    local p = parameters[i]
    local key = p.dtype .. " " .. p.device
    if not open[key] then
      keys[#keys + 1] = key
      open[key] = {bytes = 0, limit = first}
    end
    local list = open[key]
    list[#list + 1], list.bytes = i, list.bytes + p:numel() * p:element_size()
    if list.bytes >= list.limit then
      lists[#lists + 1] = table.move(list, 1, #list, 1, {})
      open[key] = {bytes = 0, limit = cap}
    end
  end
  for _, key in ipairs(keys) do
    local list = open[key]
    if #list > 0 then lists[#lists + 1] = table.move(list, 1, #list, 1, {}) end
  end
  return lists
end

--- Returns the list of buckets for `parameters`, filled in the order of the list `order` of their
-- numbers. A bucket is closed when it has `first` bytes (the first of a dtype and device) or `cap`
-- bytes.
function buckets.make(parameters, order, first, cap)
  local list = {}
  for index, members in ipairs(assign(parameters, order, first, cap)) do
    list[index] = Bucket(index, members, parameters)
    list[index]._is_last = false
  end
  if #list > 0 then list[#list]._is_last = true end
  return list
end

return buckets
