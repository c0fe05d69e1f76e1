--- Batches: the parameters of a group that one op updates in one call.
--
-- The parameters of a batch agree in their number of steps, in the numbers of their state, in
-- whether their state is new, and in their device. Most of the cost of a step of a small model is
-- the allocation of these tables, so they are reused.
--
-- Invariant: the state of a parameter changes only after the op has succeeded.

local lt = require "lutra"
local core = require "lutra.core"

local batches = {}

--- Returns the state of a parameter, which is created if it has none.
function batches.state_of(self, p)
  local state = self.state[p]
  if not state then
    state = {}
    self.state[p] = state
  end
  return state
end
local state_of = batches.state_of

-- The list of unused batches, linked by `next`.
local unused = nil

-- Returns an empty batch, linked in front of `next`.
local function new_batch(names, step, fresh, device, next)
  local batch = unused or
    {count = 0, params = {}, grads = {}, states = {}, lists = {}, buffers = {}, values = {}}
  unused = batch.next
  batch.step, batch.fresh, batch.device, batch.next = step, fresh, device, next
  for k = 1, #names do
    local list = batch.lists[k] or {}
    batch.lists[k], batch.buffers[names[k]] = list, list
  end
  return batch
end

-- Clears a batch and adds it to the unused ones.
local function free_batch(batch, names)
  local params, grads, states, lists = batch.params, batch.grads, batch.states, batch.lists
  for i = 1, batch.count do params[i], grads[i], states[i] = nil, nil, nil end
  for k = 1, #names do
    local list = lists[k]
    batch.buffers[names[k]] = nil
    for i = 1, batch.count do list[i] = nil end
  end
  for name in pairs(batch.values) do batch.values[name] = nil end
  batch.count, batch.made, batch.next, unused = 0, false, unused, batch
end

-- Returns whether the numbers in a state are those of a batch; one that the state lacks is the
-- number that the class starts with.
local function same_values(self, group, batch, state)
  for _, name in ipairs(self.values) do
    if batch.values[name] ~= (state[name] or self:initial(name, group)) then return false end
  end
  return true
end

-- Returns the batch with these properties, searched from `batch` on, or nil.
local function find_batch(self, group, batch, step, fresh, device, state)
  while batch do
    if batch.step == step and batch.fresh == fresh and batch.device == device
      and (not self.values or same_values(self, group, batch, state)) then
      return batch
    end
    batch = batch.next
  end
end

-- Returns a new tensor of a parameter's state.
local function new_buffer(self, name, p, group)
  local value = self.initial and self:initial(name, group) or 0
  if value == 0 then return lt.zeros_like(p) end
  return lt.full_like(p, value)
end

-- Returns the parameters of a group that have a gradient as batches, one per call of apply, linked
-- by `next`; nil without any. This loop dominates a step of a small model.
local function batches_of(self, group, names)
  local first, last = nil, nil
  local counts, count, states, values = self.counts, #names, self.state, self.values
  local grads, common = core._gradients(group.params)
  for i, p in ipairs(group.params) do
    local grad = grads[i]
    if grad then
      local state, step, device = states[p] or state_of(self, p), nil, common or p.device
      if counts then step = (state.step or 0) + 1 end
      local fresh = count > 0 and not state[names[1]]
      if not last or values or last.step ~= step or last.fresh ~= fresh
        or last.device ~= device then
        last = find_batch(self, group, first, step, fresh, device, state)
        if not last then
          last = new_batch(names, step, fresh, device, first)
          first = last
          for k = 1, values and #values or 0 do
            last.values[values[k]] = state[values[k]] or self:initial(values[k], group)
          end
        end
      end
      local n, lists = last.count + 1, last.lists
      last.count, last.params[n], last.grads[n], last.states[n] = n, p, grad, state
      for k = 1, count do
        local buffer = state[names[k]]
        if not buffer then buffer, last.made = new_buffer(self, names[k], p, group), true end
        lists[k][n] = buffer
      end
    end
  end
  return first
end

-- Updates the parameters of a batch.
local function apply(self, batch, group)
  local states, step = batch.states, batch.step
  self:apply(batch.params, batch.grads, batch.buffers, group, step, batch.fresh, batch.values)
  if step then
    for i = 1, batch.count do states[i].step = step end
  end
  for name, value in pairs(batch.values) do
    for i = 1, batch.count do states[i][name] = value end
  end
  if not batch.made then return end
  for name, list in pairs(batch.buffers) do
    for i = 1, batch.count do states[i][name] = list[i] end
  end
end

--- Updates the parameters of a group that have a gradient, by the method `apply` of the optimizer
-- (lutra.optim.optimizer).
function batches.apply(self, group)
  local names = self:buffers(group)
  local batch = batches_of(self, group, names)
  while batch do
    local next = batch.next
    apply(self, batch, group)
    free_batch(batch, names)
    batch = next
  end
end

return batches
