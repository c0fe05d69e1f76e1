--- ZeroRedundancyOptimizer: an optimizer whose state is distributed over the ranks (ZeRO stage 1;
-- Rajbhandari, Rasley, Ruwase, He 2020).
--
-- Each parameter belongs to one rank, which updates it and has its state (momentum, second
-- moments); after a step, each rank broadcasts its parameters. Gradients must be equal on all
-- ranks, as after DistributedDataParallel.
--
-- An inner optimizer of the wrapped class has all groups with all parameters. During its step, the
-- groups list the parameters of this rank only, so that it creates state for these alone.
--
-- Invariant: outside step, param_groups and state are tables of the inner optimizer, and `state` of
-- the inner optimizer has entries of this rank's parameters only.

local lt = require "lutra"
local Optimizer = require "lutra.optim.optimizer"
local args = require "lutra.internal.args"
local copy = require "lutra.internal.shallow_copy"
local groups = require "lutra.distributed.groups"
local hooks = require "lutra.optim.base.hooks"
local parameter_broadcast = require "lutra.distributed.parameter_broadcast"
local state_dict = require "lutra.optim.base.state_dict"
local state_exchange = require "lutra.distributed.state_exchange"

local check = args.check

local Zero = Optimizer:extend "ZeroRedundancyOptimizer"

-- The options of this class; the others are settings of the wrapped optimizer.
local OWN = {optimizer_class = true, process_group = true, parameters_as_bucket_view = true,
  overlap_with_ddp = true, params = true}

-- Returns the index of the smallest number of a list, the first one of several.
local function smallest(sizes)
  local best = 1
  for i = 2, #sizes do
    if sizes[i] < sizes[best] then best = i end
  end
  return best
end

-- Returns a list sorted by decreasing numbers of elements; equal ones keep their order.
local function by_size(params)
  local order = {}
  for i, p in ipairs(params) do order[i] = {p, p:numel(), i} end
  table.sort(order, function(a, b)
    if a[2] ~= b[2] then return a[2] > b[2] end
    return a[3] < b[3]
  end)
  for i, entry in ipairs(order) do order[i] = entry[1] end
  return order
end

-- Assigns the parameters to ranks as PyTorch does: those of a group in decreasing size, each to the
-- rank with the fewest elements so far. Sets the parameters of each rank, the list `local_params`
-- of each group for this rank, and the plan of the broadcasts.
local function partition(self)
  local rank, world = groups._place(self.process_group, "ZeroRedundancyOptimizer")
  local sizes, parts, mine = {}, {}, {}
  for i = 1, world do sizes[i], parts[i] = 0, {} end
  self.partition, self.rank_of, self.world_size, self.rank = {}, {}, world, rank
  for i = 1, world do self.partition[i] = {} end
  for k, group in ipairs(self.param_groups) do
    mine[k] = {}
    for i = 1, world do self.partition[i][k] = {} end
    for _, p in ipairs(by_size(group.params)) do
      local owner = smallest(sizes)
      sizes[owner] = sizes[owner] + p:numel()
      self.rank_of[p] = owner - 1
    end
    for _, p in ipairs(group.params) do
      local owner = self.rank_of[p] + 1
      table.insert(self.partition[owner][k], p)
      table.insert(parts[owner], p)
      if owner == rank + 1 then table.insert(mine[k], p) end
    end
  end
  self.mine = mine
  self.plan = parameter_broadcast.plan(parts, self.parameters_as_bucket_view)
end

-- Returns the parameters and the table of options of the three forms of a call.
local function arguments(...)
  local params, options = ...
  if select("#", ...) == 1 and args.is_plain(params) and params.optimizer_class then
    options, params = params, params.params or params[1]
  end
  args.expect(args.is_plain(options), "ZeroRedundancyOptimizer", "a table of options", "options",
    options)
  return params, options
end

--- lt.distributed.optim.ZeroRedundancyOptimizer(params, {optimizer_class = optim.AdamW,
-- process_group, parameters_as_bucket_view = false, lr = ...}): an optimizer of the class
-- optimizer_class, with the other options as its settings, whose state is distributed over the
-- ranks of the process group: each parameter belongs to one rank, and step() updates it there and
-- broadcasts it. `params` is as for other optimizers; all ranks pass the same parameters. Gradients
-- must be equal on all ranks (DistributedDataParallel). With parameters_as_bucket_view, the
-- parameters of a rank become views of one buffer, which saves copies. Raises an error outside a
-- process group, for a class that is no optimizer, for optim.LBFGS, and as optimizer_class does.
function Zero:init(...)
  local params, options = arguments(...)
  local class = options.optimizer_class
  args.expect(type(class) == "table" and type(class.advance) == "function"
    and class.param_groups == nil, "ZeroRedundancyOptimizer", "a class of lt.optim",
    "optimizer_class", class)
  check(class.advance == Optimizer.advance, "ZeroRedundancyOptimizer: cannot distribute the state "
    .. "of %s: its step needs all parameters", class.__name)
  check(not options.overlap_with_ddp, "ZeroRedundancyOptimizer: overlap_with_ddp is not yet "
    .. "supported\nhint: leave it out; step() overlaps the broadcasts with each other")
  check(lt.distributed.is_initialized(), "ZeroRedundancyOptimizer: expected a process group, got "
    .. "none\nhint: lt.distributed.init_process_group()")
  local settings = {}
  for name, value in pairs(options) do
    if not OWN[name] then settings[name] = value end
  end
  rawset(self, "optim", class(params, settings))
  rawset(self, "process_group", options.process_group)
  rawset(self, "parameters_as_bucket_view", options.parameters_as_bucket_view == true)
  rawset(self, "defaults", self.optim.defaults)
  rawset(self, "param_groups", self.optim.param_groups)
  rawset(self, "state", self.optim.state)
  partition(self)
end

--- Adds a group of parameters, as opt:add_param_group of other optimizers does, and assigns them to
-- ranks; the parameters of earlier groups stay where they are.
function Zero:add_param_group(group)
  self.optim:add_param_group(group)
  self.full_state = nil
  partition(self)
end

-- Calls f while the groups list the parameters of this rank only.
local function with_local_groups(self, f)
  local list, all = self.optim.param_groups, {}
  for k, group in ipairs(list) do all[k], group.params = group.params, self.mine[k] end
  local ok, message = pcall(f)
  for k, group in ipairs(list) do group.params = all[k] end
  if not ok then error(message, 0) end
end

--- Performs a step: calls the closure, updates the parameters of this rank, and exchanges the
-- updated parameters. Returns the result of the closure.
function Zero:advance(closure)
  local loss
  if closure ~= nil then loss = lt.enable_grad(closure) end
  self.full_state = nil
  with_local_groups(self, function() self.optim:step() end)
  lt.no_grad(parameter_broadcast.run, self.plan, self.process_group)
  return loss
end

--- opt:consolidate_state_dict(to = 0): collects the state of all ranks on the rank `to` of the
-- process group, where state_dict() then returns it. All ranks call it. Raises an error for a rank
-- that does not exist.
function Zero:consolidate_state_dict(to)
  if args.is_plain(to) then to = to.to or to[1] end
  to = to or 0
  args.check(math.type(to) == "integer" and to >= 0 and to < self.world_size,
    "consolidate_state_dict: expected a rank from 0 to %d for argument 'to', got %s",
    self.world_size - 1, args.show(to))
  local own, parameters = self.optim:state_dict(), {}
  for p in pairs(self.rank_of) do parameters[#parameters + 1] = p end
  local parts = state_exchange.gather(own.state, to, self.process_group, parameters)
  if self.rank ~= to then return end
  local full = {}
  for _, part in ipairs(parts) do
    for i, state in pairs(part) do full[i] = state end
  end
  self.full_state = full
end

--- opt:state_dict{base = 1}: returns the state of all ranks, as other optimizers do, on the rank to
-- which consolidate_state_dict has collected it since the last step. Raises an error on other
-- ranks, and before it.
function Zero:state_dict(...)
  check(self.full_state, "state_dict: the state of the other ranks is not on rank %d\n"
    .. "hint: opt:consolidate_state_dict(%d) on all ranks, after the last step, then "
    .. "opt:state_dict() on rank %d", self.rank, self.rank, self.rank)
  local own = self.optim.state_dict(self, ...)
  local base = own.param_groups[1].params[1]
  own.state = {}
  for i, state in pairs(self.full_state) do own.state[i - 1 + base] = copy(state) end
  return own
end

-- Returns the state of this rank's parameters, for lt.distributed.checkpoint, which merges the
-- states of all ranks.
function Zero:_local_state_dict() return self.optim:state_dict() end

--- Loads the state dict of an optimizer of the wrapped class or of this one, the same on all ranks;
-- each rank keeps the state of its own parameters. All of it is checked first: an error leaves the
-- optimizer unchanged.
function Zero:load_state_dict(saved)
  saved = hooks.run(self, "load_pre", saved)
  state_dict.load(self.optim, saved, function(p) return self.rank_of[p] == self.rank end)
  self.state, self.full_state = self.optim.state, nil
  hooks.run(self, "load_post")
end

-- Refuses to set a field with the name of a setting, as other optimizers do.
function Zero:__newindex(name, value)
  for _, option in ipairs(rawget(self, "optim") and self.optim.options or {}) do
    if option.name == name then self.optim[name] = value end -- raises the error
  end
  rawset(self, name, value)
end

--- Returns the text of the wrapped optimizer behind this class.
function Zero:__tostring() return "ZeroRedundancyOptimizer of " .. tostring(self.optim) end

return Zero
