--- nn.Module: the base class of every layer and network.
--
-- A module is a proxy over a table of its fields. Reading a field is a plain table lookup that
-- continues in the class. Assigning a parameter, a module, or a new value of a registered buffer
-- registers it under its name, in order. A field that was never set is nil, as in any Lua table.
--
-- Invariant: `entries` of a module's state lists the registered names once each, in order of
-- registration, and `kinds` maps each to "parameter", "buffer" or "module"; the values themselves
-- are in `fields`.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local calls = require "lutra.nn.calls"
local ordered_map = require "lutra.internal.ordered_map"

local fail = args.fail

local Module = {__name = "Module"}

-- The state of a module: {class, fields, entries, kinds, transient, hooks, pre_hooks}.
local function state_of(module) return getmetatable(module).__state end

--- Returns whether `x`, any value, is a module (an instance, not a class).
local function is_module(x)
  if type(x) ~= "table" then return false end
  local meta = getmetatable(x)
  return type(meta) == "table" and meta.__state ~= nil
end

-- Registration ---------------------------------------------------------------

local function check_name(self, name, what)
  if type(name) ~= "string" or name == "" or name:find(".", 1, true) then
    fail("%s: expected a string without a dot for the name of a %s, got %s", self:type_name(), what,
      args.show(name))
  end
  if type(state_of(self).class[name]) == "function" then
    fail('%s: cannot name a %s "%s": modules have a method of this name', self:type_name(),
      what, name)
  end
end

local function unregister(state, name)
  if not state.kinds[name] then return end
  state.kinds[name], state.transient[name] = nil, nil
  for i, entry in ipairs(state.entries) do
    if entry == name then table.remove(state.entries, i) break end
  end
end

local function check_no_cycle(self, name, child)
  for module in child:modules() do
    if module == self then
      fail('%s: cannot register "%s": it contains this module\n'
        .. "hint: refer to it from a table: self.parent = {module}", self:type_name(), name)
    end
  end
end

local function register(self, name, value, kind)
  local state = state_of(self)
  check_name(self, name, kind)
  if kind == "module" then check_no_cycle(self, name, value) end
  if state.kinds[name] ~= kind then
    unregister(state, name)
    state.kinds[name] = kind
    state.entries[#state.entries + 1] = name
  end
  state.fields[name] = value
end

-- Implements `self.name = value` (__newindex).
local function assign(self, name, value)
  local state = state_of(self)
  local kind = state.kinds[name]
  if math.type(name) == "integer" and state.class.__set_item then
    return state.class.__set_item(self, name, value)
  end
  if lt.is_parameter(value) then
    register(self, name, value, "parameter")
  elseif is_module(value) then
    register(self, name, value, "module")
  elseif kind == nil then
    state.fields[name] = value
  elseif value == nil then
    -- A parameter or buffer stays registered without a value; a module is unregistered.
    if kind == "module" then unregister(state, name) end
    state.fields[name] = nil
  elseif kind == "buffer" and lt.is_tensor(value) then
    state.fields[name] = value
  else
    local wanted = kind == "parameter" and "an nn.Parameter" or kind == "buffer" and "a tensor"
      or "a module"
    fail('%s: expected %s or nil for the %s "%s", got %s%s', self:type_name(), wanted, kind, name,
      args.show(value), kind == "parameter" and ("\nhint: m.%s = nn.Parameter(x), or "
        .. "lt.no_grad(function() m.%s:copy_(x) end)"):format(name, name) or "")
  end
end

--- Registers the nn.Parameter `value` under `name`, which becomes a field; nil registers the name
-- without a parameter. Raises an error for another value, for a name with a dot, and for the name
-- of a method.
function Module:register_parameter(name, value)
  if value ~= nil and not lt.is_parameter(value) then
    fail("register_parameter: expected an nn.Parameter or nil for argument 'value', got %s",
      args.show(value))
  end
  register(self, name, value, "parameter")
end

local parse_buffer = args.signature("register_buffer",
  "string name, Tensor? tensor = nil, bool persistent = true")

--- Registers a tensor that belongs to the module's state and is not trained, such as a running
-- mean. It moves with the module, and is part of the state dict when `persistent`. nil registers
-- the name without a tensor. Raises an error for a name with a dot and for the name of a method.
function Module:register_buffer(...)
  local name, tensor, persistent = parse_buffer(...)
  register(self, name, tensor, "buffer")
  state_of(self).transient[name] = not persistent or nil
end

--- Registers a child, which becomes the field `name`; the same as `m[name] = module`. m:add_module
-- is another name. Raises an error for a value that is no module, for a module that contains this
-- one, for a name with a dot, and for the name of a method.
function Module:register_module(name, module)
  if not is_module(module) then
    fail("register_module: expected a module for argument 'module', got %s", args.show(module))
  end
  register(self, name, module, "module")
end
Module.add_module = Module.register_module

-- Walking --------------------------------------------------------------------

-- Iterates over name and value of the registered values of one kind, of this module alone.
local function own(self, kind)
  local state, i = state_of(self), 0
  return function()
    while true do
      i = i + 1
      local name = state.entries[i]
      if name == nil then return nil end
      if state.kinds[name] == kind and state.fields[name] ~= nil then
        return name, state.fields[name]
      end
    end
  end
end

local function join(prefix, name) return prefix == "" and name or prefix .. "." .. name end

-- Returns the name of a child in a state dict; with base = 0, numbered children count from 0, as
-- in PyTorch.
local function spelled(self, name, base)
  if base == 0 and state_of(self).class.__numbered and name:match("^%d+$") then
    return tostring(math.tointeger(name) - 1)
  end
  return name
end

-- Appends {path, module} of a module and of all modules below it to `list`, each module once.
local function walk(self, prefix, base, list, seen)
  if seen[self] then return list end
  seen[self] = true
  list[#list + 1] = {prefix, self}
  for name, child in own(self, "module") do
    walk(child, join(prefix, spelled(self, name, base)), base, list, seen)
  end
  return list
end

-- Returns a list of {path, value, owner, name} of every registered value of one kind. `options`
-- are prefix, recurse, base, and every: true lists a value again under each of its names.
local function collect(self, kind, options)
  local list, seen = {}, {}
  local function visit(module, prefix)
    for name, value in own(module, kind) do
      if options.every or not seen[value] then
        seen[value] = true
        list[#list + 1] = {join(prefix, name), value, module, name}
      end
    end
    if options.recurse == false then return end
    for name, child in own(module, "module") do
      visit(child, join(prefix, spelled(module, name, options.base)))
    end
  end
  visit(self, options.prefix or "")
  return list
end

-- Returns an iterator over one or two fields of the entries of a list; the module may change while
-- it runs.
local function each(list, first, second)
  local i = 0
  return function()
    i = i + 1
    local entry = list[i]
    if entry == nil then return nil end
    if second then return entry[first], entry[second] end
    return entry[first]
  end
end

local parse_walk = args.signature("parameters", "bool recurse = true")
local parse_named = args.signature("named_parameters", "string prefix = '', bool recurse = true")

--- Iterates over the parameters, each once, in order of registration: `for p in m:parameters() do`.
-- Without `recurse`, only those of this module itself. Calling the iterator gives the first:
-- `m:parameters()().device`.
function Module:parameters(...)
  return each(collect(self, "parameter", {recurse = parse_walk(...)}), 2)
end

--- Iterates over names and parameters, each parameter once: `for name, p in m:named_parameters()
-- do`. A name is a path such as "layers.1.weight".
function Module:named_parameters(...)
  local prefix, recurse = parse_named(...)
  return each(collect(self, "parameter", {prefix = prefix, recurse = recurse}), 1, 2)
end

--- Iterates over the buffers, each once.
function Module:buffers(...)
  return each(collect(self, "buffer", {recurse = parse_walk(...)}), 2)
end

--- Iterates over names and buffers, each buffer once.
function Module:named_buffers(...)
  local prefix, recurse = parse_named(...)
  return each(collect(self, "buffer", {prefix = prefix, recurse = recurse}), 1, 2)
end

--- Iterates over the direct children in order of registration.
function Module:children()
  local list = {}
  for _, child in own(self, "module") do list[#list + 1] = {child} end
  return each(list, 1)
end

--- Iterates over names and direct children in order of registration.
function Module:named_children()
  local list = {}
  for name, child in own(self, "module") do list[#list + 1] = {name, child} end
  return each(list, 1, 2)
end

--- Iterates over this module and all modules below it, each once, parents first.
function Module:modules() return each(walk(self, "", 1, {}, {}), 2) end

--- Iterates over paths ("" for this module, "layers.2" for one below it) and modules, each module
-- once, parents first.
function Module:named_modules() return each(walk(self, "", 1, {}, {}), 1, 2) end

local parse_count = args.signature("num_parameters", "bool trainable = false")

--- Returns the number of elements of all parameters, shared ones counted once; with `trainable`, of
-- those that require grad.
function Module:num_parameters(...)
  local trainable, total = parse_count(...), 0
  for p in self:parameters() do
    if not trainable or p.requires_grad then total = total + p:numel() end
  end
  return total
end

--- Returns a list of the devices of all parameters and buffers, each once, in order of appearance.
function Module:devices()
  local list, seen = {}, {}
  for _, kind in ipairs {"parameter", "buffer"} do
    for _, entry in ipairs(collect(self, kind, {})) do
      local device = entry[2].device
      if not seen[device] then seen[device], list[#list + 1] = true, device end
    end
  end
  return list
end

--- Returns the device of all parameters and buffers, nil for a module without any. Raises an error
-- that names two tensors when they are on different devices: see m:devices().
function Module:device()
  local first
  for _, kind in ipairs {"parameter", "buffer"} do
    for _, entry in ipairs(collect(self, kind, {})) do
      first = first or entry
      if entry[2].device ~= first[2].device then
        fail('device: cannot name one device of %s: "%s" is on "%s", "%s" is on "%s"\n'
          .. "hint: m:to(device), or m:devices()", self:type_name(), first[1], first[2].device,
          entry[1], entry[2].device)
      end
    end
  end
  return first and first[2].device
end

-- Changing all modules below ------------------------------------------------

--- Calls fn(module) on every module below, children first, then on this one; returns the module.
function Module:apply(fn)
  args.expect(args.is_callable(fn), "apply", "a function", "fn", fn)
  for child in self:children() do child:apply(fn) end
  fn(self)
  return self
end

--- m:train(mode = true): sets training mode, which Dropout reads, here and below; returns the
-- module.
function Module:train(mode)
  if mode == nil then mode = true end
  args.expect(type(mode) == "boolean", "train", "a boolean", "mode", mode)
  for module in self:modules() do state_of(module).fields.training = mode end
  return self
end

--- Sets evaluation mode here and below; returns the module.
function Module:eval() return self:train(false) end

--- m:requires_grad_(flag = true): sets whether the parameters here and below require grad; returns
-- the module.
function Module:requires_grad_(flag)
  if flag == nil then flag = true end
  for p in self:parameters() do p:requires_grad_(flag) end
  return self
end

--- Sets p.grad of every parameter to nil, which frees the gradients; returns the module.
function Module:zero_grad()
  for p in self:parameters() do p.grad = nil end
  return self
end

-- Replaces every parameter, gradient and buffer by convert(tensor, path); returns the module. All
-- are converted before the first is replaced, so that a failure leaves the module unchanged.
local function convert_all(self, convert, options)
  local changes, done = {}, {}
  lt.no_grad(function()
    for _, entry in ipairs(collect(self, "parameter", options or {})) do
      local path, p = entry[1], entry[2]
      changes[#changes + 1] =
        {p, convert(p:detach(), path), p.grad and convert(p.grad:detach(), path)}
    end
    for _, entry in ipairs(collect(self, "buffer",
      {every = true, recurse = (options or {}).recurse})) do
      done[entry[2]] = done[entry[2]] or convert(entry[2], entry[1])
    end
  end)
  for _, change in ipairs(changes) do
    local p, data, grad = table.unpack(change, 1, 3)
    p.grad = nil
    p:set_data(data)
    if grad then p.grad = grad end
  end
  for module in self:modules() do
    local fields = state_of(module).fields
    for name, buffer in own(module, "buffer") do fields[name] = done[buffer] or buffer end
  end
  return self
end

local dtypes = {
  float64 = "float", float32 = "float", float16 = "float", bfloat16 = "float",
  int64 = "integer", int32 = "integer", int16 = "integer", int8 = "integer",
  uint8 = "integer", bool = "bool",
}

local parse_to = args.signature("to",
  "device? device = nil, dtype? dtype = nil, bool non_blocking = false")

--- Moves parameters and buffers to a device, and converts those of a floating-point dtype to
-- `dtype`, a floating-point one; returns the module. m:to "cuda", m:to "float64", m:to{device = d,
-- dtype = t} and m:to(tensor), which gives both, are accepted. The parameters keep their identity,
-- so an optimizer made before remains valid. Raises an error for tensors without data (meta), and
-- then leaves the module unchanged.
function Module:to(...)
  local device, dtype, non_blocking = parse_to(...)
  if lt.is_tensor(device) then device, dtype = device.device, dtype or device.dtype end
  if dtypes[device] then device, dtype = nil, device end
  args.check(device or dtype, 'to: expected a device, a dtype or a tensor, got %s\n'
    .. 'hint: m:to "cuda"', select("#", ...) == 0 and "no value" or "nil")
  if device then device = args.device("to", device) end
  args.check(dtype == nil or dtypes[dtype] == "float",
    "to: expected a float dtype for argument 'dtype', got \"%s\"", tostring(dtype))
  return convert_all(self, function(t, path)
    if t.device == "meta" and device and device ~= "meta" then
      fail('to: cannot copy "%s" of %s from "meta": it has no data\n'
        .. "hint: m:to_empty(device), or m:load_state_dict(values, {assign = true})",
        path, self:type_name())
    end
    local new_dtype = dtypes[t.dtype] == "float" and dtype or t.dtype
    return t:to{device = device or t.device, dtype = new_dtype, non_blocking = non_blocking}
  end)
end

--- Moves parameters and buffers to the host; the same as m:to "cpu".
function Module:cpu() return self:to "cpu" end

local parse_cuda = args.signature("cuda", "device? device = nil")

--- Moves parameters and buffers to a CUDA device, given by number (from 0) or name, by default the
-- current one; returns the module.
function Module:cuda(...)
  local device = parse_cuda(...)
  return self:to(core._accelerator.device("cuda", device, "cuda"))
end

--- Moves parameters and buffers to Apple's GPU; the same as m:to "mps".
function Module:mps() return self:to "mps" end

--- Converts floating-point parameters and buffers to "float32"; returns the module.
function Module:float() return self:to{dtype = "float32"} end
--- Converts floating-point parameters and buffers to "float64"; returns the module.
function Module:double() return self:to{dtype = "float64"} end
--- Converts floating-point parameters and buffers to "float16"; returns the module.
function Module:half() return self:to{dtype = "float16"} end
--- Converts floating-point parameters and buffers to "bfloat16"; returns the module.
function Module:bfloat16() return self:to{dtype = "bfloat16"} end

local parse_to_empty = args.signature("to_empty", "device device, bool recurse = true")

--- Replaces the memory of every parameter and buffer by uninitialized memory on `device`, for a
-- module that was built on "meta"; load or initialize its values afterwards. Returns the module.
function Module:to_empty(...)
  local device, recurse = parse_to_empty(...)
  device = args.device("to_empty", device)
  return convert_all(self, function(t) return lt.empty_like(t, {device = device}) end,
    {recurse = recurse})
end

-- State dicts ----------------------------------------------------------------

local parse_state_dict = args.signature("state_dict",
  "string prefix = '', bool keep_vars = false, int base = 1")

--- Returns an ordered table from names to the parameters and persistent buffers. The tensors share
-- memory with the module and are detached, unless `keep_vars`. With base = 0, numbered children
-- count from 0, as in PyTorch.
function Module:state_dict(...)
  local prefix, keep_vars, base = parse_state_dict(...)
  args.check(base == 0 or base == 1, "state_dict: expected 0 or 1 for argument 'base', got %d",
    base)
  local state = ordered_map.new()
  local function visit(module, path)
    local inner = state_of(module)
    for _, name in ipairs(inner.entries) do
      local value, kind = inner.fields[name], inner.kinds[name]
      if value ~= nil and kind ~= "module" and not inner.transient[name] then
        state[path .. name] = keep_vars and value or value:detach()
      end
    end
    for name, child in own(module, "module") do
      visit(child, path .. spelled(module, name, base) .. ".")
    end
  end
  visit(self, prefix)
  return state
end

local function list_names(what, names)
  if #names == 0 then return "" end
  return ("\n  %s: %s"):format(what, table.concat(names, ", "))
end

-- Returns why `given` cannot become the value of `own_value`, or nil when it can.
local function mismatch(own_value, given, assigning)
  if not lt.is_tensor(given) then return "expected a tensor, got " .. args.show(given) end
  if tostring(own_value.shape) ~= tostring(given.shape) then
    return ("expected shape %s, got %s"):format(tostring(own_value.shape), tostring(given.shape))
  end
  if own_value.device == "meta" and not assigning then
    return "the module has no memory for it; use assign = true, or m:to_empty(device) first"
  end
end

-- Returns whether the names of `longer` are those of `shorter` with the prefix "module.".
local function are_wrapped(longer, shorter)
  local known = {}
  for _, name in ipairs(shorter) do known["module." .. name] = true end
  for _, name in ipairs(longer) do
    if not known[name] then return false end
  end
  return #longer > 0 and #longer == #shorter
end

-- Returns a hint when the names differ by the prefix "module." of nn.DataParallel, else "".
local function prefix_hint(missing, unexpected)
  if are_wrapped(missing, unexpected) then
    return '\nhint: the names lack the "module." of a DataParallel; load them into the module that '
      .. "it wraps: m.module:load_state_dict(state)"
  elseif are_wrapped(unexpected, missing) then
    return '\nhint: the names begin with "module.", as those of a DataParallel; save '
      .. "model.module:state_dict(), or load them into nn.DataParallel(m)"
  end
  return ""
end

local parse_load = args.signature("load_state_dict",
  "table state_dict, bool strict = true, bool assign = false, int base = 1")

--- m:load_state_dict(state_dict, {strict = true, assign = false, base = 1}): copies the values of a
-- state dict into the parameters and buffers of the same names. With strict = false, missing and
-- unexpected names are allowed. With assign = true, the module takes the given tensors themselves,
-- with their dtype and device. With base = 0, numbered children count from 0, as in PyTorch. Every
-- name and shape is checked first: an error lists all differences and leaves the module unchanged.
-- Returns {missing_keys = {...}, unexpected_keys = {...}}.
function Module:load_state_dict(state, ...)
  local strict, assigning, base
  local one_table = select("#", ...) == 0 and args.is_plain(state) and type(state[1]) == "table"
  if one_table or select("#", ...) > 0 then
    state, strict, assigning, base = parse_load(state, ...)
  else -- a plain state dict is not a table of options
    state, strict, assigning, base = parse_load(state, {})
  end
  args.check(base == 0 or base == 1, "load_state_dict: expected 0 or 1 for argument 'base', got %d",
    base)
  local mine = self:state_dict{base = base, keep_vars = true}
  local missing, unexpected, wrong = {}, {}, {}
  for name, value in pairs(mine) do
    if state[name] == nil then
      missing[#missing + 1] = name
    else
      local reason = mismatch(value, state[name], assigning)
      if reason then wrong[#wrong + 1] = name .. ": " .. reason end
    end
  end
  for _, name in ipairs(ordered_map.keys(state)) do
    if mine[name] == nil then unexpected[#unexpected + 1] = tostring(name) end
  end
  local bad_names = strict and (#missing > 0 or #unexpected > 0)
  if bad_names or #wrong > 0 then
    fail("load_state_dict: cannot load the state dict into %s, nothing was loaded:%s%s%s%s",
      self:type_name(), strict and list_names("missing", missing) or "",
      strict and list_names("unexpected", unexpected) or "",
      #wrong > 0 and "\n  mismatched: " .. table.concat(wrong, "; ") or "",
      strict and prefix_hint(missing, unexpected) or "")
  end
  lt.no_grad(function()
    for name, value in pairs(mine) do
      local given = state[name]
      if given ~= nil and assigning then
        if value.device ~= given.device then value.grad = nil end
        value:set_data(given:detach())
      elseif given ~= nil then value:copy_(given) end
    end
  end)
  return {missing_keys = missing, unexpected_keys = unexpected}
end

-- Calling --------------------------------------------------------------------

local function pass(...) return ... end

-- Calls hook(module, inputs, output...) for each hook; a non-nil result replaces the output.
local function run_hooks(self, inputs, ...)
  local output, count = table.pack(...), select("#", ...)
  for _, hook in ipairs(state_of(self).hooks) do
    local changed = table.pack(hook.fn(self, inputs, table.unpack(output, 1, count)))
    if changed.n > 0 and changed[1] ~= nil then output, count = changed, changed.n end
  end
  return table.unpack(output, 1, count)
end

-- Implements m(...): calls forward and the hooks. This must not be a tail call: errors read the
-- module's path from the frame that has `self` (lutra.nn.calls).
local function call(self, ...)
  local state = getmetatable(self).__state
  if not state.hooked then return pass(self:forward(...)) end
  local inputs = table.pack(...)
  for _, hook in ipairs(state.pre_hooks) do
    local changed = table.pack(hook.fn(self, inputs))
    if changed.n > 0 and changed[1] ~= nil then inputs = changed end
  end
  return pass(run_hooks(self, inputs, self:forward(table.unpack(inputs, 1, inputs.n))))
end

local function add_hook(self, list, fn, title)
  args.expect(args.is_callable(fn), title, "a function", "fn", fn)
  local state, hook = state_of(self), {fn = fn}
  -- A new list each time, so that a hook may remove itself while hooks run.
  state[list] = table.move(state[list], 1, #state[list], 1, {})
  table.insert(state[list], hook)
  state.hooked = true
  return {remove = function()
    local rest = {}
    for _, other in ipairs(state[list]) do
      if other ~= hook then rest[#rest + 1] = other end
    end
    state[list] = rest
    state.hooked = #state.hooks + #state.pre_hooks > 0
  end}
end

--- Calls fn(module, inputs, output...) after each forward; a non-nil result replaces the output.
-- `inputs` is a packed list of the arguments. Returns a handle with :remove().
function Module:register_forward_hook(fn)
  return add_hook(self, "hooks", fn, "register_forward_hook")
end

--- Calls fn(module, inputs) before each forward; non-nil results replace the inputs. Returns a
-- handle with :remove().
function Module:register_forward_pre_hook(fn)
  return add_hook(self, "pre_hooks", fn, "register_forward_pre_hook")
end

--- Computes the module's output; every class defines its own. Call m(...) instead, which also runs
-- the hooks. Raises an error in a class without one.
function Module:forward()
  local nearest = require "lutra.internal.nearest"
  local near = nearest.find("forward", nearest.names(state_of(self).class))
  fail("%s: cannot call the module: its class has no method forward%s", self:type_name(),
    near and ("\nhint: rename its method %s to forward"):format(near) or "")
end

-- Adds to an error about tensors on different devices, raised inside the call of a module: the
-- paths of the module's parameters and buffers that it is about, unless it names them already, and
-- the fix (move the module).
require("lutra.internal.explain").add(function(a, b)
  local first = calls.chain()[1]
  if not first then return nil end
  local lines, seen = {}, {}
  for _, kind in ipairs {"parameter", "buffer"} do
    for _, entry in ipairs(collect(first.module, kind, {})) do
      local memory, device = core._memory(entry[2]), entry[2].device
      local tensor = memory == a.memory and a or memory == b.memory and b
      if tensor and not seen[memory] then
        seen[memory] = true
        local path = (first.name or first.class) .. "." .. entry[1]
        tensor.move = first.name
        if device == "meta" then
          lines[#lines + 1] = ("\n  %s is on meta, without data; use m:to_empty(device), or "
            .. "m:load_state_dict(values, {assign = true})")
            :format(path)
        elseif tensor.name ~= path:gsub("%.(%d+)", "[%1]") then
          lines[#lines + 1] = ("\n  %s is on %s"):format(path, device)
        end
      end
    end
  end
  return table.concat(lines)
end)

-- Returns the path of `self` among the modules being called, as ' (module "mlp.1" of GPT)', or "".
local function where_called(self)
  local first = calls.chain()[1]
  local path = first and calls.path(first.module, self)
  if not path then return "" end
  return (' (module "%s" of %s)'):format(path, first.class)
end

--- Raises an error about a call of this module at the user's line. `message` is a format of
-- string.format; the class and the module's path in the network being called are put in front of
-- it. For use in forward.
function Module:fail(message, ...)
  args.expect(type(message) == "string", "fail", "a string", "message", message)
  fail("%s%s: " .. message, self:type_name(), where_called(self), ...)
end

--- Returns `x`; raises an error unless it is a tensor. For use in forward.
function Module:check_tensor(x)
  if not lt.is_tensor(x) then self:fail("expected a tensor as input, got %s", args.show(x)) end
  return x
end

-- Printing -------------------------------------------------------------------

--- Returns the class's name.
function Module:type_name() return getmetatable(self).__name end

--- Returns the text between the brackets when the module is printed, "" by default; a class may
-- define its own.
function Module.extra_repr() return "" end

local function indented(text) return (text:gsub("\n", "\n  ")) end

local function repr(self)
  local lines, extra = {}, self:extra_repr()
  for name, child in self:named_children() do
    lines[#lines + 1] = ("  (%s): %s"):format(name, indented(tostring(child)))
  end
  if #lines == 0 then return ("%s(%s)"):format(self:type_name(), extra) end
  if extra ~= "" then table.insert(lines, 1, "  " .. extra) end
  return ("%s(\n%s\n)"):format(self:type_name(), table.concat(lines, "\n"))
end

-- Classes --------------------------------------------------------------------

-- Returns the metatable of an instance's fields. A field that is not set is looked up in the
-- class; where a parent class has a function __get_item(class, fields, i), that reads integer
-- fields. __names is the class, for completion and help, which call no functions.
local function metatable_of_fields(class, get_item)
  if not get_item then return {__index = class} end
  return {__names = class, __index = function(fields, key)
    if math.type(key) == "integer" then return get_item(class, fields, key) end
    return class[key]
  end}
end

local function fields_pairs(self) return next, state_of(self).fields, nil end

local function construct(class, ...)
  local fields = setmetatable({training = true}, class.__fields)
  local state = {class = class, fields = fields, entries = {}, kinds = {}, transient = {},
    hooks = {}, pre_hooks = {}, hooked = false}
  local self = setmetatable({}, {
    __name = class.__name, __state = state, __index = fields, __newindex = assign,
    __call = call, __tostring = repr, __pairs = fields_pairs, __len = class.__len,
  })
  local init = self.init
  args.check(args.is_callable(init), "%s: expected a function for the class's field 'init', got %s",
    class.__name, args.show(init))
  self:init(...)
  return self
end

-- Returns whether a value is Module or a class made from it by extend.
local function is_class(class)
  for _ = 1, 100 do -- other tables may be their own metatable
    if type(class) ~= "table" then return false end
    if rawequal(class, Module) then return true end
    local meta = getmetatable(class)
    class = type(meta) == "table" and rawget(meta, "__index")
  end
  return false
end

--- Returns a subclass: `local Net = nn.Module:extend "Net"`. Define Net:init(...) and
-- Net:forward(...); Net(...) then makes an instance. An init that overrides that of another layer
-- calls it by name: `nn.Linear.init(self, 3, 4)`. Raises an error unless `name` is a string.
function Module:extend(name)
  args.expect(type(name) == "string", "extend", "a string", "name", name)
  args.check(not is_module(self),
    "extend: expected a class of nn for argument 'self', got a module")
  args.check(is_class(self), "extend: expected a class of nn for argument 'self', got %s",
    args.show(self))
  local class = {__name = name}
  class.__fields = metatable_of_fields(class, self.__get_item)
  return setmetatable(class, {
    __index = self, __call = construct, __name = "class " .. name,
    __tostring = function() return ("class nn.%s"):format(name) end,
  })
end

--- m:init(...): initializes an instance; the class calls it with the arguments of the constructor.
-- This default accepts no arguments.
function Module:init(...)
  if select("#", ...) == 0 then return end
  local name = self:type_name()
  fail("%s: expected no arguments: it has no function %s:init(...)", name, name)
end

Module.__fields = {__index = Module}
Module.is_module = is_module
setmetatable(Module, {
  __call = construct, __name = "class Module",
  __tostring = function() return "class nn.Module" end,
})

return Module
