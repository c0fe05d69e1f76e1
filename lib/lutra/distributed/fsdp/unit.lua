--- What a wrapper does in forward and backward.
--
-- Forward gathers the parameters of a wrapped module, calls it and frees them; the gradient of the
-- results arrives in an identity function behind them, which gathers them again; when the
-- gradients of all its parameters are known, they are freed and their gradients reduced
-- (lutra.distributed.fsdp.flat).
--
-- The first wrapper that is called outside another one is the root of those below it. The units of
-- a root are called in an order that is recorded, so that the parameters of the next one are
-- gathered while the present one computes.
--
-- Invariant: all ranks start the same collectives in the same order, which depends only on the
-- program and on this order.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local saved = require "lutra.distributed.fsdp.saved"
local wrapping = require "lutra.distributed.fsdp.wrapping"

local Unit = {}
Unit.__index = Unit

--- Returns the state of a wrapper: {module, flats, names, strategy, backward_prefetch,
-- forward_prefetch, inputs_dtype, sync}.
function Unit.new(fields)
  fields.sync = true
  return setmetatable(fields, Unit)
end

--- Returns whether backward reduces the gradients.
function Unit:synchronizes() return (self.root or self).sync end

-- Makes this unit the root of itself and of all wrappers below, unless it has a root.
local function find_root(self, wrapper)
  if self.root then return end
  self.root, self.units, self.order, self.reductions = self, {}, {}, {}
  for module in wrapper:modules() do
    if wrapping.is_wrapped(module) then
      local unit = module._fsdp
      if unit ~= self then unit.units, unit.order = nil, nil end
      unit.root = self
      table.insert(self.units, unit)
    end
  end
end
Unit.find_root = find_root

--- Frees the gathered parameters.
function Unit:free(kept)
  for _, flat in ipairs(self.flats) do flat:free(kept) end
end

-- Starts to gather the parameters.
local function gather(self)
  for _, flat in ipairs(self.flats) do flat:gather() end
end

-- Returns the unit that is called `step` calls after this one in a list, if it has one.
local function neighbor(order, self, step)
  for i = 1, #order do
    if order[i] == self then return order[i + step] end
  end
end

-- ---- backward -----------------------------------------------------------------------

local Before = lt.autograd.Function:extend "BeforeBackward"

-- Returns aliases of tensors.
function Before.forward(ctx, run, ...)
  ctx.run = run
  ctx:set_materialize_grads(false)
  local aliases = table.pack(...)
  for i = 1, aliases.n do aliases[i] = aliases[i]:detach() end
  return table.unpack(aliases, 1, aliases.n)
end

-- Calls `run`, and passes the gradients on.
function Before.backward(ctx, ...)
  ctx.run()
  return nil, ...
end

-- Appends the tensors in a value, also inside plain tables, to `list`.
local function collect(value, list, seen)
  if lt.is_tensor(value) then
    list[#list + 1] = value
  elseif args.is_plain(value) and not seen[value] then
    seen[value] = true
    for _, inner in pairs(value) do collect(inner, list, seen) end
  end
  return list
end

-- Returns a value in which other tensors take the place of those that are keys of `new`.
local function replaced(value, new, made)
  if lt.is_tensor(value) then return new[value] or value end
  if not args.is_plain(value) then return value end
  if made[value] then return made[value] end
  local copy = {}
  made[value] = copy
  for key, inner in pairs(value) do copy[key] = replaced(inner, new, made) end
  return copy
end

-- Returns packed results, for which backward first calls run().
local function behind(results, run)
  local tensors, seen = {}, {}
  for _, x in ipairs(collect({table.unpack(results, 1, results.n)}, {}, {})) do
    if x.requires_grad and not seen[x] then
      seen[x] = true
      tensors[#tensors + 1] = x
    end
  end
  if #tensors == 0 or not lt.is_grad_enabled() then return results end
  local aliases, new = {Before(run, table.unpack(tensors))}, {}
  for i, x in ipairs(tensors) do new[x] = aliases[i] end
  local made, list = {}, {n = results.n}
  for i = 1, results.n do list[i] = replaced(results[i], new, made) end
  return list
end

-- Ends the reductions and frees all gathered parameters of a root. Nothing is left after a backward
-- pass.
local function finish(root, drop)
  root.pass = nil
  lt.no_grad(root.finish_reductions, root, drop)
  for _, unit in ipairs(root.units) do unit:free() end
end

--- Returns whether a backward pass runs that sets gradients; at the end of it the root finishes.
function Unit:is_in_pass()
  local root, pass = self.root, core._backward_pass()
  if pass and root.pass ~= pass then
    root.pass = pass
    core._after_backward(function() finish(root) end)
  end
  return pass ~= nil
end

--- Frees what a backward pass that failed has left, if there was one.
function Unit:settle()
  local root = self.root
  if root and root.pass and not core._backward_pass() then finish(root, true) end
end

--- Adds a flat parameter to those whose reduction runs.
function Unit:add_reduction(flat) table.insert(self.root.reductions, flat) end

--- Ends all reductions that run; see Flat:finish_reduction.
function Unit:finish_reductions(drop)
  local root = self.root
  local list = root.reductions
  root.reductions = {}
  for _, flat in ipairs(list) do flat:finish_reduction(drop) end
end

-- Gathers the parameters for backward, and those of the unit that comes next.
local function before_backward(self)
  self:is_in_pass()
  gather(self)
  for _, flat in ipairs(self.flats) do
    flat.pending = flat.shard.requires_grad or nil
    flat:ready()
    flat:set_for_backward()
  end
  if self.backward_prefetch == "BACKWARD_PRE" then
    local next_one = neighbor(self.root.order, self, -1)
    if next_one then gather(next_one) end
  end
end

-- Frees the parameters of a frozen module, which have no gradients, when those of its inputs are
-- known.
local function free_frozen(self)
  for _, flat in ipairs(self.flats) do
    if not flat.shard.requires_grad then flat:free() end
  end
end

-- Returns whether gradients of a unit's parameters are expected.
local function is_pending(self)
  for _, flat in ipairs(self.flats) do
    if flat.pending then return true end
  end
  return false
end

--- Frees a flat parameter whose gradients are known, and gathers the next ones when they were not
-- gathered before (BACKWARD_POST).
function Unit:after_backward(flat)
  flat.pending = nil
  flat:free()
  if not is_pending(self) then free_frozen(self) end
  if self.backward_prefetch == "BACKWARD_POST" and flat == self.flats[1] then
    local next_one = neighbor(self.root.order, self, -1)
    if next_one then gather(next_one) end
  end
end

-- ---- forward ------------------------------------------------------------------------

-- Returns a value whose floating-point tensors have a dtype.
local function cast(value, dtype)
  local new = {}
  for _, x in ipairs(collect(value, {}, {})) do
    if x:is_floating_point() and x.dtype ~= dtype then new[x] = x:to{dtype = dtype} end
  end
  return replaced(value, new, {})
end

-- Prepares a forward pass of all units: frees what was gathered before, as the parameters may have
-- changed since, and drops the gradients of a backward pass that failed.
local function begin(self, inputs)
  self.last_order, self.order = self.order, {}
  if not core._backward_pass() then finish(self, true) end
  if not self.inputs_dtype then return inputs end
  local list = {n = inputs.n}
  for i = 1, inputs.n do list[i] = cast(inputs[i], self.inputs_dtype) end
  return list
end

-- Returns packed inputs behind which the parameters of a frozen module are freed in backward.
local function with_frozen(self, inputs)
  for _, flat in ipairs(self.flats) do
    if not flat.shard.requires_grad then
      return behind(inputs, function() free_frozen(self) end)
    end
  end
  return inputs
end

-- Returns whether the gathered parameters stay until backward.
local function keeps(self)
  if not lt.is_grad_enabled() then return false end
  return self.root == self or self.strategy ~= "FULL_SHARD"
end

-- A to-be-closed value that frees the parameters after an error.
local Guard = {}
function Guard:__close(failure)
  if failure ~= nil then self.unit:free() end
end

-- Calls the module with its parameters gathered; returns its packed results.
local function call(self, inputs)
  local _ <close> = setmetatable({unit = self}, Guard)
  for _, flat in ipairs(self.flats) do
    flat:clear()
    flat:use(self)
  end
  if self.forward_prefetch and self.root.last_order then
    local next_one = neighbor(self.root.last_order, self, 1)
    if next_one then gather(next_one) end
  end
  return table.pack(saved.without_parameters(self.module, table.unpack(inputs, 1, inputs.n)))
end

--- Calls the wrapped module; returns its results.
function Unit:forward(wrapper, ...)
  find_root(self, wrapper)
  local root, inputs = self.root, table.pack(...)
  local outermost = root == self and not root.is_running
  if outermost then inputs = begin(self, inputs) end
  if root.is_running or outermost then table.insert(root.order, self) end
  local results
  do
    local was_running = root.is_running
    root.is_running = true
    local _ <close> = setmetatable({}, {__close = function() root.is_running = was_running end})
    gather(self)
    results = call(self, with_frozen(self, inputs))
  end
  local kept = {}
  for _, x in ipairs(collect({table.unpack(results, 1, results.n)}, {}, {})) do kept[x] = true end
  for _, flat in ipairs(self.flats) do
    if keeps(self) then flat:clear(kept) else flat:free(kept) end
  end
  results = behind(results, function() before_backward(self) end)
  return table.unpack(results, 1, results.n)
end

return Unit
