--- lt.compile(f[, options]): a function, or a module, that is recorded once for each kind of
-- arguments and then runs a plan.
--
--     local f = lt.compile(function(x, y) return (x * 2 + y):tanh():sum() end)
--     net = lt.compile(net)
--
-- At the first call with arguments of some shapes and dtypes, f runs on tensors without data, which
-- records its ops and those of its backward pass. The plan made of them runs chains of elementwise
-- ops, and reductions of rows among them, in one pass over memory, shares equal results, reuses the
-- memory of intermediate values, and is one node of the autograd graph.
--
-- Invariant: a call returns what f returns. Where a record cannot describe f, f itself is called,
-- and c:reason() states why.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local fused = require "lutra.elementwise.fused"
local places = require "lutra.compile.places"
local tree = require "lutra.internal.tree"

local MOST_PLANS = 16
local STORES = "it stores a tensor in a variable or a table"

local Compiled = {}

-- Recording --------------------------------------------------------------------------------

-- Returns the device of the first tensor among the arguments, or else the default device.
local function device_of(arguments)
  for i = 1, arguments.n do
    if core.is_tensor(arguments[i]) then return arguments[i].device end
  end
  return core.get_default_device()
end

-- Returns the list of tensors in the results of f, and a function that returns these results for
-- another list of tensors: nil when they are the list itself.
local function split_results(results)
  local n = results.n - 1
  local values, plain = table.move(results, 2, results.n, 1, {}), true
  for i = 1, n do plain = plain and core.is_tensor(values[i]) end
  if plain then return values, nil end
  return tree.leaves(values), function(...)
    return table.unpack(tree.fill(values, {...}), 1, n)
  end
end

-- Returns the function that compiles elementwise programs for a CUDA device; nil for other devices.
local function compiler_for(device)
  if not device:find "^cuda" then return nil end
  return function(program, rank)
    local kernel = fused.kernel(program, rank, "a part of a compiled function")
    if not kernel then return nil end
    return kernel._kernel:build(device) and kernel._kernel or nil
  end
end

-- Calls f with stand-ins of the arguments. Returns a packed table, as pcall does.
local function call_recorded(recorder, f, arguments)
  return table.pack(pcall(function()
    local given = {}
    for i = 1, arguments.n do
      local x = arguments[i]
      given[i] = core.is_tensor(x) and recorder:stand_in(x) or x
    end
    return f(table.unpack(given, 1, arguments.n))
  end))
end

-- Records f on stand-ins of the arguments. Returns the plan, its places and guards, and the
-- function that builds the results; nil and the reason when there is no plan.
local function record(f, reached, arguments, graphs)
  local search = places.search(reached)
  local kept = places.keep(search)
  local device = device_of(arguments)
  local recorder <close> = core._recorder(device)
  local results = call_recorded(recorder, f, arguments)
  local reason = recorder:reason()
  local stored = places.restore(kept)
  if not results[1] then
    local message = results[2]
    args.pass_on_interrupt(message)
    if type(message) ~= "string" then message = "it raises an error" end
    return nil, reason or stored and STORES or message
  end
  if reason or stored then return nil, reason or STORES end
  if places.changed(search) then return nil, "it changes a variable that it reads" end
  local list, build = split_results(results)
  local plan, message = recorder:plan(list, core.is_grad_enabled(), compiler_for(device), graphs)
  if not plan then return nil, message end
  local captured, made = plan:captured()
  local flat, guards = places.of(search, captured, made)
  if not flat then return nil, guards end
  return plan, flat, guards, made, build
end

-- Calls -------------------------------------------------------------------------------------

-- Returns the arguments as a string.
local function describe(arguments)
  local words = {}
  for i = 1, arguments.n do
    local x = arguments[i]
    words[i] = core.is_tensor(x) and ("%s %s"):format(x.dtype, tostring(x.shape)) or args.show(x)
  end
  return "(" .. table.concat(words, ", ") .. ")"
end

-- Adds the plan for these arguments, or the note that there is none, and returns the entry's
-- reason.
local function add_entry(self, arguments)
  if #self.entries >= MOST_PLANS then
    return ("there are %d plans already, for other arguments"):format(MOST_PLANS)
  end
  local plan, flat, guards, constants, build = record(self.f, self.reached, arguments,
    self.options.graphs)
  local reason = not plan and flat or nil
  local settings = {arguments = table.move(arguments, 1, arguments.n, 1, {n = arguments.n}),
    captured = plan and flat, guards = plan and guards or nil, constants = constants, build = build,
    plain = self.f}
  local entry = core._plan_entry(plan or nil, settings)
  return reason, function()
    table.insert(self.entries, 1, entry)
    table.insert(self.notes, 1,
      {plan = plan, reason = reason, arguments = describe(arguments)})
  end
end

local function has_node(arguments)
  for i = 1, arguments.n do
    if tree.is_node(arguments[i]) then return true end
  end
  return false
end

local make

-- Returns the arguments without tables: a string that describes the tables, then the tensors and
-- the other values in them.
local function flatten(arguments)
  local words, list = {}, {n = 1}
  local function add(value)
    if tree.is_node(value) then
      words[#words + 1] = "{"
      for _, key in ipairs(require("lutra.internal.ordered_map").keys(value)) do
        words[#words + 1] = ("%s:%q="):format(math.type(key) or type(key), tostring(key))
        add(value[key])
      end
      words[#words + 1] = "}"
    else
      list.n = list.n + 1
      list[list.n] = value
      words[#words + 1] = "."
    end
  end
  for i = 1, arguments.n do add(arguments[i]) end
  list[1] = table.concat(words)
  return list
end

-- Returns the arguments with the values of `list`, from the second on, in place of their own.
local function unflatten(arguments, list)
  local at = 1
  local function copy(value)
    if not tree.is_node(value) then
      at = at + 1
      return list[at]
    end
    local out = getmetatable(value) and require("lutra.internal.ordered_map").new() or {}
    for _, key in ipairs(require("lutra.internal.ordered_map").keys(value)) do
      out[key] = copy(value[key])
    end
    return out
  end
  local out = {n = arguments.n}
  for i = 1, arguments.n do out[i] = copy(arguments[i]) end
  return out
end

-- Calls a compiled function whose arguments contain tables, by a compiled function of the values in
-- them.
local function call_flat(self, arguments)
  if not self.flat then
    self.flat = make(function(...)
      local given = unflatten(self.pattern, {...})
      return self.f(table.unpack(given, 1, given.n))
    end, self.reached, self.options)
  end
  local list = flatten(arguments)
  self.pattern = arguments
  local results = table.pack(self.flat.call(nil, table.unpack(list, 1, list.n)))
  self.pattern = nil
  self.last = self.flat.last
  return table.unpack(results, 1, results.n)
end

-- Runs when no plan fits the arguments: makes one, or calls f.
local function miss(self, ...)
  if core._runs_plain() then return self.f(...) end
  local arguments = table.pack(...)
  if has_node(arguments) then return call_flat(self, arguments) end
  local reason, add
  if core._autocast_any() then
    reason = "autocast is on"
  else
    reason, add = add_entry(self, arguments)
  end
  self.last = reason
  if not reason then
    add()
    return self.call(nil, ...)
  end
  if self.options.fullgraph then
    args.fail("compile: cannot make a plan of the function: %s", reason)
  end
  local results = table.pack(self.f(...))
  if add then add() end
  return table.unpack(results, 1, results.n)
end

-- Objects -----------------------------------------------------------------------------------

-- Returns the state of a compiled function. `reached`: the function or module whose variables hold
-- the tensors that f uses.
function make(f, reached, options)
  local self = {f = f, reached = reached, options = options, entries = {}, notes = {}}
  self.call = core._compiled(self.entries, function(_, ...) return miss(self, ...) end)
  return self
end

local states = setmetatable({}, {__mode = "k"}) -- compiled function or module -> its state

-- Returns the state of a compiled function or module.
local function state_of(c, name)
  args.check(states[c], "%s: expected a compiled function for argument 'self', got %s", name,
    args.show(c))
  return states[c]
end

-- Returns the descriptions of the plans of a state.
local function plans_of(state)
  local list = {}
  for i, note in ipairs(state.notes) do
    local entry = note.plan and note.plan:counts() or {reason = note.reason}
    entry.arguments = note.arguments
    list[i] = entry
  end
  local flat = state.flat and plans_of(state.flat) or {}
  return table.move(flat, 1, #flat, #list + 1, list)
end

--- c:reason(): returns why the last new kind of arguments has no plan, so that the function itself
-- was called; nil when it has one.
function Compiled.reason(c) return state_of(c, "reason").last end

--- c:plans(): returns a list with a table for each kind of arguments, the last first: `arguments`,
-- a string; `reason`, why there is no plan; or the numbers of recorded `calls`, of `steps` that
-- run, of `groups` of several calls in one pass and of `fused` calls in them; bytes of `memory` for
-- intermediate values, and `saved` for the backward pass; `gradients`, whether there is one; and
-- with mode = "reduce-overhead" the number of CUDA `graphs`, or `graph_reason`, why there are none.
function Compiled.plans(c) return plans_of(state_of(c, "plans")) end

--- c:reset(): removes all plans; the next call records again.
function Compiled.reset(c)
  local state = state_of(c, "reset")
  for i = #state.entries, 1, -1 do state.entries[i] = nil end
  state.notes, state.flat, state.last = {}, nil, nil
end

local function text_of(state)
  local lines = {"compiled function"}
  for _, entry in ipairs(plans_of(state)) do
    lines[#lines + 1] = entry.reason and ("  %s: no plan: %s"):format(entry.arguments, entry.reason)
      or ("  %s: %d calls in %d steps, %d of them in %d groups"):format(entry.arguments,
        entry.calls, entry.steps, entry.fused, entry.groups)
    if entry.graph_reason then lines[#lines + 1] = "    no graph: " .. entry.graph_reason end
  end
  return table.concat(lines, "\n")
end

-- Returns the compiled function as an object.
local function function_object(state)
  local meta = {__name = "compiled function", __call = state.call,
    __tostring = function() return text_of(state) end}
  for name, method in pairs(Compiled) do meta[name] = method end
  meta.__index = meta
  local object = setmetatable({}, meta)
  states[object] = state
  return object
end

-- Returns a module with the fields of another, whose call runs plans.
local function module_object(state, module)
  local meta = {}
  for key, value in pairs(getmetatable(module)) do meta[key] = value end
  meta.__call = state.call
  local object = setmetatable({}, meta)
  for name, method in pairs(Compiled) do
    if module[name] == nil then rawset(object, name, method) end
  end
  states[object] = state
  return object
end

local signature = args.signature("compile",
  "any? model = nil, bool fullgraph = false, bool? dynamic = nil, any? backend = nil, "
  .. "'default'|'reduce-overhead'|'max-autotune'|'max-autotune-no-cudagraphs'? mode = nil, "
  .. "table? options = nil, bool disable = false")

--- compile(f, {fullgraph = false, mode = nil, disable = false}): returns a function with the
-- results of f, or a module with the parameters and fields of the module f, that records f once for
-- each kind of arguments (the shapes, dtypes, devices and requires_grad of tensors, other values,
-- whether gradients are enabled, modes of modules) and then runs a plan. Tables are searched for
-- tensors. What f does apart from ops, such as printing or counting, happens when it is recorded.
-- Where f cannot be recorded, because it reads the values of tensors or changes its arguments, for
-- example, f itself is called; with fullgraph = true that is an error. c:reason() states the
-- reason, c:plans() describes the plans, c:reset() removes them. With disable = true f is returned.
-- With mode = "reduce-overhead" plans on a CUDA device are captured as CUDA graphs at the second
-- call; where that is not possible their steps run. dynamic, backend, options and other modes are
-- accepted without effect. Raises an error unless f can be called.
return function(...)
  local f, fullgraph, _, _, mode, _, disable = signature(...)
  args.check(args.is_callable(f),
    "compile: expected a module or a function for argument 'model', got %s",
    f == nil and "no value" or args.show(f))
  if disable then return f end
  local options = {fullgraph = fullgraph, graphs = mode == "reduce-overhead"}
  local nn = package.loaded["lutra.nn"]
  if nn and nn.Module.is_module(f) then
    return module_object(make(function(...) return f(...) end, f, options), f)
  end
  return function_object(make(f, f, options))
end
