--- lt.amp.GradScaler: scales losses, so that gradients in float16 do not become 0, and skips the
-- steps whose gradients have inf or NaN.
--
-- The scale, the number of steps since its last change and the marks of inf are tensors on the
-- device of the loss: only `step` reads one (whether to step), and `get_scale`.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local scopes = require "lutra.internal.scopes"
local ops = core._ops

local GradScaler = {__name = "GradScaler"}
GradScaler.__index = GradScaler

local parse = args.signature("GradScaler", "string device = 'cuda', float init_scale = 65536, "
  .. "float growth_factor = 2, float backoff_factor = 0.5, int(>=1) growth_interval = 2000, "
  .. "bool enabled = true")

local READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"

--- lt.amp.GradScaler(device = "cuda", {init_scale = 65536, growth_factor = 2, backoff_factor = 0.5,
-- growth_interval = 2000, enabled = true}): a scaler for the losses of one training loop. With
-- enabled = false, and without such a device, scale returns its argument and step only calls
-- opt:step(). Raises an error for a
-- growth_factor up to 1 and a backoff_factor from 1.
function GradScaler:init(...)
  local device, init_scale, growth, backoff, interval, enabled = parse(...)
  core._autocast_of(device) -- an error for a device type without autocast
  if enabled and not pcall(core.device, device) then
    io.stderr:write(("warning: GradScaler: there is no device %q; the scaler is disabled\n")
      :format(device))
    enabled = false
  end
  args.check(growth > 1, "GradScaler: expected a number above 1 for argument 'growth_factor', got "
    .. "%s", args.show(growth))
  args.check(backoff < 1, "GradScaler: expected a number below 1 for argument 'backoff_factor', "
    .. "got %s", args.show(backoff))
  self._device, self._enabled, self._init_scale = device, enabled, init_scale
  self._growth_factor, self._backoff_factor, self._growth_interval = growth, backoff, interval
  self._init_growth_tracker, self._optimizers = 0, {}
end

-- Creates the tensors on the device of the loss.
local function start(self, device)
  self._scale = ops.full({}, self._init_scale, {dtype = "float32", device = device})
  self._growth_tracker = ops.full({}, self._init_growth_tracker, {dtype = "int32",
    device = device})
end

-- Returns the state of an optimizer in this iteration: {stage, found = list of tensors}.
local function state_of(self, optimizer)
  local state = self._optimizers[optimizer]
  if not state then
    state = {stage = READY, found = {}}
    self._optimizers[optimizer] = state
  end
  return state
end

local function check_started(self, name)
  args.check(self._scale, "%s: expected a call of scale before: the scale is not set\n"
    .. "hint: scaler:scale(loss):backward()", name)
end

-- Returns the scale on the device of a tensor.
local function on_device(t, device) return t.device == device and t or t:to(device) end

--- Returns the outputs, a tensor or a table of tensors, multiplied by the scale; with enabled =
-- false unchanged.
function GradScaler:scale(outputs)
  if not self._enabled then return outputs end
  if core.is_tensor(outputs) then
    if not self._scale then start(self, outputs.device) end
    return outputs * on_device(self._scale, outputs.device)
  end
  args.expect(args.is_plain(outputs), "scale", "a tensor or a table of tensors", "outputs", outputs)
  local result = {}
  for key, value in pairs(outputs) do result[key] = self:scale(value) end
  return result
end

-- Multiplies the gradients of an optimizer by the inverse scale. Returns a list with a tensor for
-- each device, 1 where a gradient has inf or NaN.
local function unscale(optimizer, scale)
  local inverse = scale:double():reciprocal():float()
  local found, by_device, inverses = {}, {}, {}
  scopes.no_grad(function()
    for _, group in ipairs(optimizer.param_groups) do
      for _, p in ipairs(group.params) do
        local g = p.grad
        if g then
          args.check(g.dtype ~= "float16", "unscale_: cannot unscale a gradient in float16\n"
            .. "hint: keep the parameters in float32 and use lt.autocast")
          local device = g.device
          if not by_device[device] then
            inverses[device] = on_device(inverse, device)
            by_device[device] = ops.zeros({}, {dtype = "bool", device = device})
          end
          by_device[device] = by_device[device]:logical_or(g:isfinite():all():logical_not())
          g:mul_(inverses[device])
        end
      end
    end
  end)
  for _, t in pairs(by_device) do found[#found + 1] = t:float() end
  return found
end

--- Divides the gradients of the optimizer's parameters by the scale, in place, before step: to clip
-- gradients, for example. For shards of a FullyShardedDataParallel all ranks call it, and inf on
-- one rank counts on all. Raises an error for a second call before update, and after step.
function GradScaler:unscale_(optimizer)
  if not self._enabled then return end
  check_started(self, "unscale_")
  local state = state_of(self, optimizer)
  args.check(state.stage ~= UNSCALED,
    "unscale_: cannot unscale twice: unscale_ was called for this optimizer since the last update")
  args.check(state.stage ~= STEPPED, "unscale_: cannot unscale the gradients: step was called "
    .. "since the last update\nhint: scaler:update()")
  state.found = unscale(optimizer, self._scale)
  local sharding = package.loaded["lutra.distributed.fsdp.optimizer_states"]
  if sharding then sharding.combine_marks(optimizer, state.found) end
  state.stage = UNSCALED
end

-- Returns whether a gradient had inf or NaN: the only synchronization.
local function is_found(state)
  for _, t in ipairs(state.found) do
    if t:item() ~= 0 then return true end
  end
  return false
end

--- Calls unscale_ if it was not called yet, and opt:step(...) unless a gradient has inf or NaN;
-- returns what step returns. Raises an error for a second call before update, for a closure, and
-- for an optimizer without gradients.
function GradScaler:step(optimizer, ...)
  if not self._enabled then return optimizer:step(...) end
  for i = 1, select("#", ...) do
    local value = select(i, ...)
    args.check(not args.is_callable(value)
      and not (args.is_plain(value) and value.closure),
      "step: cannot use a closure with GradScaler")
  end
  check_started(self, "step")
  local state = state_of(self, optimizer)
  args.check(state.stage ~= STEPPED, "step: cannot step twice: step was called since the last "
    .. "update\nhint: scaler:update()")
  if state.stage == READY then self:unscale_(optimizer) end
  args.check(#state.found > 0,
    "step: expected gradients of the optimizer's parameters, got none\n"
    .. "hint: scaler:scale(loss):backward()")
  state.stage = STEPPED
  if not is_found(state) then return optimizer:step(...) end
end

-- Computes the next scale on the device.
local function next_scale(self)
  local found
  for _, state in pairs(self._optimizers) do
    for _, t in ipairs(state.found) do
      local own = on_device(t, self._scale.device)
      found = found and found + own or own
    end
  end
  args.check(found, "update: expected a call of step or unscale_ before, got none since the last "
    .. "update")
  local bad = found:gt(0)
  local count = self._growth_tracker + 1
  local grows = count:eq(self._growth_interval)
  local larger = self._scale * self._growth_factor
  local grown = ops.where(larger:isfinite(), larger, self._scale)
  self._scale = ops.where(bad, self._scale * self._backoff_factor,
    ops.where(grows, grown, self._scale))
  self._growth_tracker = ops.where(bad:logical_or(grows), ops.zeros_like(count), count)
end

--- Sets the scale for the next iteration: times backoff_factor when a gradient had inf or NaN,
-- times growth_factor after growth_interval iterations without one. With new_scale, a number or a
-- tensor with one element, that is the scale. Call it once after all steps of an iteration.
function GradScaler:update(new_scale)
  if not self._enabled then return end
  check_started(self, "update")
  if new_scale == nil then
    scopes.no_grad(next_scale, self)
  else
    args.expect(type(new_scale) == "number" or core.is_tensor(new_scale), "update",
      "a number or a tensor with one element", "new_scale", new_scale)
    local device = self._scale.device
    self._scale = core.is_tensor(new_scale)
      and new_scale:detach():to{device, dtype = "float32"}:reshape{}:clone()
      or ops.full({}, new_scale, {dtype = "float32", device = device})
  end
  self._optimizers = {}
end

--- Returns the scale, a number; 1 with enabled = false. Synchronizes with the device.
function GradScaler:get_scale()
  if not self._enabled then return 1.0 end
  return self._scale and self._scale:item() or self._init_scale
end

--- Returns the factor by which the scale grows.
function GradScaler:get_growth_factor() return self._growth_factor end

--- Sets the factor by which the scale grows.
function GradScaler:set_growth_factor(new_factor) self._growth_factor = new_factor end

--- Returns the factor by which the scale shrinks after inf or NaN.
function GradScaler:get_backoff_factor() return self._backoff_factor end

--- Sets the factor by which the scale shrinks after inf or NaN.
function GradScaler:set_backoff_factor(new_factor) self._backoff_factor = new_factor end

--- Returns the number of iterations without inf or NaN after which the scale grows.
function GradScaler:get_growth_interval() return self._growth_interval end

--- Sets the number of iterations without inf or NaN after which the scale grows.
function GradScaler:set_growth_interval(new_interval) self._growth_interval = new_interval end

--- Returns whether the scaler is enabled.
function GradScaler:is_enabled() return self._enabled end

-- Returns the number of iterations since the scale changed.
local function tracker(self)
  return self._growth_tracker and self._growth_tracker:item() or self._init_growth_tracker
end

--- Returns the state as PyTorch's: scale, growth_factor, backoff_factor, growth_interval and
-- _growth_tracker, numbers; an empty table with enabled = false.
function GradScaler:state_dict()
  if not self._enabled then return {} end
  return {scale = self:get_scale(), growth_factor = self._growth_factor,
    backoff_factor = self._backoff_factor, growth_interval = self._growth_interval,
    _growth_tracker = tracker(self)}
end

--- Restores a state that state_dict returned. Raises an error for an empty state, which a scaler
-- with enabled = false has returned.
function GradScaler:load_state_dict(state)
  if not self._enabled then return end
  args.expect(args.is_plain(state) and state.scale ~= nil, "load_state_dict",
    "the state of an enabled GradScaler", "state_dict", state)
  self._init_scale, self._growth_factor = state.scale, state.growth_factor
  self._backoff_factor, self._growth_interval = state.backoff_factor, state.growth_interval
  self._init_growth_tracker = state._growth_tracker
  if self._scale then start(self, self._scale.device) end
end

return setmetatable(GradScaler, {
  __name = "class GradScaler",
  __call = function(class, ...)
    local self = setmetatable({}, class)
    self:init(...)
    return self
  end,
})
