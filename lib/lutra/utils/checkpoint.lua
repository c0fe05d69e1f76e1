--- lt.utils.checkpoint: saves memory by computing activations again during backward.
--
-- The forward pass runs as usual, but the tensors that its ops save for backward are replaced by
-- their numbers, in order. When backward requires the first of them, the function is called again
-- with the state of the random generator and of autocast that it had, and what its ops save then,
-- in the same order, takes their place. So the graph is that of the plain function: gradients of
-- captured tensors, autograd.grad and second derivatives work.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local autocast = require "lutra.internal.autocast"
local scopes = require "lutra.internal.scopes"
local tree = require "lutra.internal.tree"

local checkpoint = {}

local early_stop = true

local NAMES = {use_reentrant = true, preserve_rng_state = true, context_fn = true,
  determinism_check = true, debug = true, early_stop = true}

-- Raised to leave a second forward as soon as its last saved tensor is there.
local STOP = setmetatable({}, {__tostring = function() return "checkpoint: stopped" end})

-- Calls f() with a pair of functions for saved tensors.
local function with_hooks(pack, unpack, f)
  return require("lutra.autograd.graph").saved_tensors_hooks(pack, unpack, f)
end

-- Returns the settings of autocast, as one value.
local function autocast_settings() return core._autocast_with "cpu" end

-- Calls frame.f again, and stores the tensors that its ops save in frame.values.
local function run_again(frame)
  local values, count = {}, 0
  local state = frame.rng and core.get_rng_state()
  if frame.rng then core.set_rng_state(frame.rng) end
  local ok, message = pcall(function()
    autocast.with(frame.autocast, function()
      scopes.enable_grad(with_hooks, function(t)
        count = count + 1
        values[count] = t
        if count == frame.count and frame.early_stop then error(STOP, 0) end
        return t
      end, function(t) return t end, function()
        frame.f(table.unpack(frame.arguments, 1, frame.arguments.n))
      end)
    end)
  end)
  if state then core.set_rng_state(state) end
  if not ok and message ~= STOP then error(message, 0) end
  args.check(count == frame.count,
    "checkpoint: expected the function to save the same number of tensors when it is called again, "
    .. "%d, got %d\nhint: the function must not depend on values that change", frame.count, count)
  frame.values = values
end

-- Returns the saved tensor of a number; calls the function again for the first one.
local function saved(frame, k)
  if not frame.values then run_again(frame) end
  local t, spec = frame.values[k], frame.specs[k]
  args.check(not frame.check or (tostring(t.shape) == spec[1] and t.dtype == spec[2]
    and t.device == spec[3]),
    "checkpoint: expected a tensor of shape %s, dtype %s on %s when the function is called again, "
    .. "got %s, %s on %s", spec[1], spec[2], spec[3], t.shape, t.dtype, t.device)
  frame.values[k] = nil
  frame.left = frame.left - 1
  if frame.left == 0 then -- a second backward calls the function again
    frame.values, frame.left = nil, frame.count
  end
  return t
end

-- Returns the arguments with detached aliases in place of tensors that are results, so that the
-- frame does not refer to the graph, and does not change with them.
local function kept(arguments)
  local list = {n = arguments.n}
  for i = 1, arguments.n do
    list[i] = tree.map(arguments[i], function(t)
      if t.is_leaf then return t end
      return t:detach():requires_grad_(t.requires_grad)
    end)
  end
  return list
end

local function run(options, f, arguments)
  if not core.is_grad_enabled() then return f(table.unpack(arguments, 1, arguments.n)) end
  local frame = {f = f, arguments = kept(arguments), specs = {}, count = 0,
    autocast = autocast_settings(), early_stop = early_stop and options.early_stop ~= false,
    rng = options.preserve_rng_state ~= false and core.get_rng_state() or nil,
    check = options.determinism_check ~= "none"}
  local results = table.pack(with_hooks(function(t)
    frame.count = frame.count + 1
    frame.specs[frame.count] = {tostring(t.shape), t.dtype, t.device}
    return frame.count
  end, function(k) return saved(frame, k) end, function()
    return f(table.unpack(arguments, 1, arguments.n))
  end))
  frame.left = frame.count
  return table.unpack(results, 1, results.n)
end

--- checkpoint(f, ...[, {use_reentrant, preserve_rng_state = true, determinism_check = "default",
-- early_stop = true}]): returns f(...), and does not store the tensors that its ops save for
-- backward: backward calls f(...) again. The random generator has the same state then, unless
-- preserve_rng_state is false, and autocast the same settings. The last argument is options when it
-- is a table of these names. use_reentrant is accepted without effect; context_fn and debug are not
-- used. Raises an error in backward when f saves other tensors then, which determinism_check =
-- "none" does not check.
function checkpoint.checkpoint(f, ...)
  args.expect(args.is_callable(f), "checkpoint", "a function", "function", f)
  local options, arguments = require("lutra.func.levels").options(NAMES, ...)
  return run(options, f, arguments)
end

--- checkpoint_sequential(functions, segments, input[, {use_reentrant, preserve_rng_state = true}]):
-- runs an nn.Sequential, or a list of functions of one value, in `segments` parts of equal length;
-- all but the last are checkpoints. Raises an error for more segments than functions.
function checkpoint.checkpoint_sequential(functions, segments, input, options)
  local list = {}
  args.expect(type(functions) == "table", "checkpoint_sequential",
    "an nn.Sequential or a list of functions", "functions", functions)
  if args.is_plain(functions) then
    list = functions
  else
    for child in functions:children() do list[#list + 1] = child end
  end
  args.expect(math.tointeger(segments) and segments >= 1 and segments <= #list,
    "checkpoint_sequential", ("an int from 1 to %d"):format(#list), "segments", segments)
  local length = #list // segments
  local function part(first, last)
    return function(x)
      for i = first, last do x = list[i](x) end
      return x
    end
  end
  local first = 1
  for _ = 1, segments - 1 do
    input = run(options or {}, part(first, first + length - 1), table.pack(input))
    first = first + length
  end
  return part(first, #list)(input)
end

--- set_checkpoint_early_stop(enable, f, ...): calls f(...), in which checkpoints leave the second
-- call of their function at its last saved tensor (the default), or, with false, let it end.
function checkpoint.set_checkpoint_early_stop(enable, f, ...)
  args.expect(type(enable) == "boolean", "set_checkpoint_early_stop", "a boolean", "enable", enable)
  local old = early_stop
  early_stop = enable
  local _ <close> = require("lutra.internal.scope_guard")(function() early_stop = old end)
  return f(...)
end

return setmetatable(checkpoint, {
  __name = "lt.utils.checkpoint",
  __call = function(_, ...) return checkpoint.checkpoint(...) end,
  __index = function(self, key)
    return require("lutra.internal.strict_table").fail(self, "lt.utils.checkpoint", key)
  end,
})
