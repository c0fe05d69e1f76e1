--- A flat parameter: several parameters of one dtype as one vector, of which each rank has a shard.
--
-- The vector is padded with zeros to a multiple of the number of ranks; rank r has the elements
-- from r * length on. Between uses only the shard exists. `gather` makes the whole vector, of which
-- the original parameters are views, and `free` frees it.
--
-- Invariant: `full` is nil, or has the values that the shards of all ranks had when it was
-- gathered. Outside `set` and `clear`, the fields of the modules hold no views.

local lt = require "lutra"
local saved = require "lutra.distributed.fsdp.saved"
local walking = require "lutra.nn.module.walking"

local state_of = walking.state_of

local Flat = {}
Flat.__index = Flat

local flats = setmetatable({}, {__mode = "k"}) -- shard -> its flat parameter

--- Returns the flat parameter of a shard that is not all of it; nil for other tensors.
function Flat.of(p)
  local flat = flats[p]
  return flat and not flat.whole and flat or nil
end

--- Returns the elements that a shard, from element `first` of the vector on, and a slot have in
-- common: the index of the first one in the slot and in the shard, from 1, and their number.
local function overlap(slot, first, length)
  local from = math.max(slot.first, first)
  local to = math.min(slot.first + slot.numel, first + length)
  return from - slot.first + 1, from - first + 1, math.max(to - from, 0)
end

--- Calls visit(slot, at, place, count) for each slot: its elements from `at` on are those of this
-- rank's shard from `place` on; count may be 0.
function Flat:each_range(visit)
  for _, slot in ipairs(self.slots) do
    visit(slot, overlap(slot, self.rank * self.length, self.length))
  end
end

--- Returns a flat parameter. `entries` is a list of {p, owners}, where owners is a list of {module,
-- name, path} that have the parameter p; the fields are emptied. `options`: group, ranks, rank,
-- whole (no shards: each rank has all of it), param_dtype, reduce_dtype, in_place (the shard takes
-- the place of its only parameter in the modules).
function Flat.new(entries, options)
  local self = setmetatable({slots = {}, group = options.group, ranks = options.ranks,
    rank = options.whole and 0 or options.rank, whole = options.whole, in_place = options.in_place,
    param_dtype = options.param_dtype, reduce_dtype = options.reduce_dtype}, Flat)
  local first = 0
  for i, entry in ipairs(entries) do
    local p = entry.p
    self.slots[i] = {first = first, numel = p:numel(), shape = {table.unpack(p.shape)},
      owners = entry.owners}
    first = first + p:numel()
  end
  local p = entries[1].p
  self.length = self.whole and first or math.max(1, (first + self.ranks - 1) // self.ranks)
  self.padded = self.whole and first or self.length * self.ranks
  local own = lt.zeros({self.length}, {dtype = p.dtype, device = p.device})
  lt.no_grad(function()
    local i = 0
    self:each_range(function(_, at, place, count)
      i = i + 1
      if count == 0 then return end
      own:narrow(1, place, count):copy_(entries[i].p:detach():reshape(-1):narrow(1, at, count))
    end)
  end)
  self.shard = lt._parameter(own, p.requires_grad)
  flats[self.shard] = self
  for _, slot in ipairs(self.slots) do
    for _, owner in ipairs(slot.owners) do self:put(owner, nil) end
  end
  return self
end

-- Sets the field of an owner to a view, or with nil to what it is between uses.
function Flat:put(owner, view)
  state_of(owner.module).fields[owner.name] = view or self.in_place and self.shard or nil
end

--- Returns the dtype that the gathered parameters have in forward.
function Flat:dtype() return self.param_dtype or self.shard.dtype end

-- ---- gathering ----------------------------------------------------------------------

--- Starts to gather the parameters; does nothing when they are gathered. `dtype`: that of the
-- result, by default self:dtype().
function Flat:gather(dtype)
  if self.full then return end
  dtype = dtype or self:dtype()
  local own = self.shard:detach()
  if own.dtype ~= dtype then own = lt.no_grad(own.to, own, dtype) end
  if self.whole then
    self.full = own
    return
  end
  local full = lt.empty({self.padded}, {dtype = dtype, device = own.device})
  self.work = lt.distributed.all_gather_into_tensor(full, own, {group = self.group,
    async_op = true})
  self.full, self.sent = full, own -- `own` exists until the work is done
  saved.add(self)
end

--- Returns the gathered parameters, a vector; gathers them if need be.
function Flat:ready()
  self:gather()
  if self.work then
    local work = self.work
    self.work = nil
    work:wait()
  end
  self.sent = nil
  return self.full
end

--- Returns the original parameters as views of a vector.
function Flat:views(full)
  local list = {}
  for i, slot in ipairs(self.slots) do
    list[i] = full:narrow(1, slot.first + 1, slot.numel):view(slot.shape)
  end
  return list
end

--- Puts tensors, one per slot, into the fields of the modules.
function Flat:set(views)
  self.set_views = views
  for i, slot in ipairs(self.slots) do
    for _, owner in ipairs(slot.owners) do self:put(owner, views[i]) end
  end
end

--- Puts views that require grad, outside the graph, into the fields: for functions that backward
-- calls again (lt.utils.checkpoint).
function Flat:set_for_backward()
  local views = lt.no_grad(self.views, self, self:ready())
  for i, view in ipairs(views) do
    view = view:detach()
    if self.shard.requires_grad then view:requires_grad_(true) end
    views[i] = view
  end
  self:set(views)
end

--- Empties the fields, and frees the views, except those in the set `kept`.
function Flat:clear(kept)
  local views = self.set_views
  if not views then return end
  self.set_views = nil
  for i, slot in ipairs(self.slots) do
    for _, owner in ipairs(slot.owners) do self:put(owner, nil) end
    if not (kept and kept[views[i]]) then views[i]:free() end
  end
end

--- Empties the fields and frees the gathered parameters.
function Flat:free(kept)
  self:clear(kept)
  if not self.full then return end
  local full = self:ready()
  if not self.whole then saved.remove(self) end
  self.full = nil
  full:free()
end

-- ---- gradients ----------------------------------------------------------------------

-- Returns the gradients of the slots, some of which may be nil, as one vector.
local function joined(self, ...)
  local dtype = self.reduce_dtype or self:dtype()
  local whole = lt.zeros({self.padded}, {dtype = dtype, device = self.shard.device})
  for i, slot in ipairs(self.slots) do
    local grad = select(i, ...)
    if grad and slot.numel > 0 then
      whole:narrow(1, slot.first + 1, slot.numel):view(slot.shape):copy_(grad)
    end
  end
  return whole
end

-- Starts to compute the mean over all ranks of this rank's part of a vector; returns {work, own,
-- whole}, of which `own` is the result when the work is done.
local function reduce(self, whole)
  local dist = lt.distributed
  local options = {op = "avg", group = self.group, async_op = true}
  if self.whole then return {work = dist.all_reduce(whole, options), own = whole} end
  local own = lt.empty({self.length}, {dtype = whole.dtype, device = whole.device})
  return {work = dist.reduce_scatter_tensor(own, whole, options), own = own, whole = whole}
end

-- Returns the gradient of the shard from a reduction, for which it waits.
local function gradient_of(self, reduction)
  reduction.work:wait()
  if reduction.whole then reduction.whole:free() end
  return reduction.own:to(self.shard.dtype)
end

--- Waits for the reduction that runs, if any, and adds its result to the gradient of the shard;
-- with `drop`, does not add it.
function Flat:finish_reduction(drop)
  local reduction = self.reduction
  if not reduction then return end
  self.reduction = nil
  local grad, shard = gradient_of(self, reduction), self.shard
  if drop then return end
  if shard.grad then shard.grad:detach():add_(grad) else shard.grad = grad end
end

local Gather = lt.autograd.Function:extend "FullyShardedDataParallel"

-- Returns the original parameters, views of the gathered ones.
function Gather.forward(ctx, _, flat, unit)
  ctx.flat, ctx.unit = flat, unit
  ctx:set_materialize_grads(false)
  return table.unpack(flat:views(flat:ready()))
end

-- Frees the gathered parameters, and starts to reduce the gradients; the next reduction, or the end
-- of the backward pass, waits for it and sets the gradient of the shard. Without synchronization
-- (no_sync), keeps the whole gradients for a later backward. In autograd.grad, which sets no
-- gradients, waits and returns the gradient.
function Gather.backward(ctx, ...)
  local flat, unit = ctx.flat, ctx.unit
  local whole = joined(flat, ...)
  unit:after_backward(flat)
  if flat.kept then
    whole:add_(flat.kept)
    flat.kept = nil
  end
  if not unit:synchronizes() then
    flat.kept = whole
    return nil
  end
  if not unit:is_in_pass() then return gradient_of(flat, reduce(flat, whole)) end
  unit:finish_reductions()
  flat.reduction = reduce(flat, whole)
  unit:add_reduction(flat)
  return nil
end

--- Gathers the parameters for forward and puts them, recorded in the graph, into the fields.
function Flat:use(unit)
  self:gather()
  self:set {Gather(self.shard, self, unit)}
end

return Flat
