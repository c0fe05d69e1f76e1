--- Module: the base of every layer and network.
--
-- Idea: a module is a proxy over a table of its fields. Reading a field is a plain
-- table lookup that goes on to the class; writing one looks at the value, and a
-- parameter, a module or a new value of a registered buffer is registered under its
-- name, in order. A field that was never set is nil, as in any Lua table.
--
-- Invariant: `entries` of a module's state lists the registered names once each, in
-- order of registration, and `kinds` says of each whether it is a "parameter", a
-- "buffer" or a "module"; the values themselves live in `fields`.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local calls = require "lutra.nn.calls"
local ordered_map = require "lutra.internal.ordered_map"

local fail = args.fail

local Module = {__name = "Module"}

-- The state of a module: {class, fields, entries, kinds, transient, hooks, pre_hooks}.
local function state_of(module) return getmetatable(module).__state end

--- Is `x` a module?
local function is_module(x)
  if type(x) ~= "table" then return false end
  local meta = getmetatable(x)
  return type(meta) == "table" and meta.__state ~= nil
end

-- Registration ---------------------------------------------------------------

local function check_name(self, name, what)
  if type(name) ~= "string" or name == "" or name:find(".", 1, true) then
    fail("%s: the name of a %s must be a string without a dot, got %s", self:type_name(), what,
      args.show(name))
  end
  if type(state_of(self).class[name]) == "function" then
    fail('%s: a %s cannot be called "%s": modules have a method of this name', self:type_name(),
      what, name)
  end
end

local function forget(state, name)
  if not state.kinds[name] then return end
  state.kinds[name], state.transient[name] = nil, nil
  for i, entry in ipairs(state.entries) do
    if entry == name then table.remove(state.entries, i) break end
  end
end

local function check_no_cycle(self, name, child)
  for module in child:modules() do
    if module == self then
      fail('%s: "%s" cannot be a module that contains this one: keep a link back in a table',
        self:type_name(), name)
    end
  end
end

local function register(self, name, value, kind)
  local state = state_of(self)
  check_name(self, name, kind)
  if kind == "module" then check_no_cycle(self, name, value) end
  if state.kinds[name] ~= kind then
    forget(state, name)
    state.kinds[name] = kind
    state.entries[#state.entries + 1] = name
  end
  state.fields[name] = value
end

-- What `self.name = value` does.
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
    -- A parameter or buffer keeps its place, empty; a module leaves.
    if kind == "module" then forget(state, name) end
    state.fields[name] = nil
  elseif kind == "buffer" and lt.is_tensor(value) then
    state.fields[name] = value
  else
    fail('%s: cannot assign %s to the %s "%s"%s', self:type_name(), args.show(value), kind, name,
      kind == "parameter" and ": wrap it in nn.Parameter, or use p:copy_ under lt.no_grad" or "")
  end
end

--- Registers tensor `value` (or nil: a place without a parameter) under `name`.
function Module:register_parameter(name, value)
  if value ~= nil and not lt.is_parameter(value) then
    fail('register_parameter: "%s" is %s, it wants an nn.Parameter or nil', tostring(name),
      args.show(value))
  end
  register(self, name, value, "parameter")
end

local parse_buffer = args.signature("register_buffer",
  "string name, Tensor? tensor = nil, bool persistent = true")

--- Registers a tensor that is state but not trained. It moves with the module, and is
-- part of its state dict when `persistent`.
function Module:register_buffer(...)
  local name, tensor, persistent = parse_buffer(...)
  register(self, name, tensor, "buffer")
  state_of(self).transient[name] = not persistent or nil
end

--- Registers a child; the same as `self[name] = module`.
function Module:register_module(name, module)
  if not is_module(module) then
    fail('register_module: "%s" is %s, it wants a module', tostring(name), args.show(module))
  end
  register(self, name, module, "module")
end
Module.add_module = Module.register_module

-- Walking --------------------------------------------------------------------

-- Iterates over the registered values of one kind of this module alone.
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

-- How a child's name reads in a state dict; base = 0 counts as PyTorch does.
local function spelled(self, name, base)
  if base == 0 and state_of(self).class.__numbered and name:match("^%d+$") then
    return tostring(math.tointeger(name) - 1)
  end
  return name
end

-- Lists {path, module} of a module and everything below it, each module once.
local function walk(self, prefix, base, list, seen)
  if seen[self] then return list end
  seen[self] = true
  list[#list + 1] = {prefix, self}
  for name, child in own(self, "module") do
    walk(child, join(prefix, spelled(self, name, base)), base, list, seen)
  end
  return list
end

-- Lists {path, value, owner, name} of every registered value of one kind. A shared
-- value is listed once unless `every`; a shared module likewise.
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

-- An iterator over a list made now, so that the module may change meanwhile.
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

--- Iterates over the parameters, each once: `for p in m:parameters() do`. Calling the
-- iterator gives the first: `m:parameters()().device`.
function Module:parameters(...)
  return each(collect(self, "parameter", {recurse = parse_walk(...)}), 2)
end

--- Iterates over names and parameters: `for name, p in m:named_parameters() do`.
function Module:named_parameters(...)
  local prefix, recurse = parse_named(...)
  return each(collect(self, "parameter", {prefix = prefix, recurse = recurse}), 1, 2)
end

--- Iterates over the buffers, each once.
function Module:buffers(...)
  return each(collect(self, "buffer", {recurse = parse_walk(...)}), 2)
end

--- Iterates over names and buffers.
function Module:named_buffers(...)
  local prefix, recurse = parse_named(...)
  return each(collect(self, "buffer", {prefix = prefix, recurse = recurse}), 1, 2)
end

--- Iterates over the direct children in order.
function Module:children()
  local list = {}
  for _, child in own(self, "module") do list[#list + 1] = {child} end
  return each(list, 1)
end

--- Iterates over names and direct children in order.
function Module:named_children()
  local list = {}
  for name, child in own(self, "module") do list[#list + 1] = {name, child} end
  return each(list, 1, 2)
end

--- Iterates over this module and every one below it, each once, parents first.
function Module:modules() return each(walk(self, "", 1, {}, {}), 2) end

--- Iterates over paths ("" for this module, "layers.2" below) and modules.
function Module:named_modules() return each(walk(self, "", 1, {}, {}), 1, 2) end

local parse_count = args.signature("num_parameters", "bool trainable = false")

--- The number of elements of all parameters, shared ones counted once; with
-- `trainable`, of those that require a gradient.
function Module:num_parameters(...)
  local trainable, total = parse_count(...), 0
  for p in self:parameters() do
    if not trainable or p.requires_grad then total = total + p:numel() end
  end
  return total
end

--- The devices that hold parameters or buffers, each once, in order of appearance.
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

--- The device that all parameters and buffers are on; nil for a module that holds no
-- tensor. An error, which names two of them, when they are on different ones: see devices().
function Module:device()
  local first
  for _, kind in ipairs {"parameter", "buffer"} do
    for _, entry in ipairs(collect(self, kind, {})) do
      first = first or entry
      if entry[2].device ~= first[2].device then
        fail('device: %s is on several devices: "%s" is on %s, "%s" is on %s. Move it: '
          .. "m:to(device); or ask m:devices()", self:type_name(), first[1], first[2].device,
          entry[1], entry[2].device)
      end
    end
  end
  return first and first[2].device
end

-- Changing everything below --------------------------------------------------

--- Calls fn(module) on every module below, children first, then on this one.
function Module:apply(fn)
  args.expect(args.is_callable(fn), "apply", "a function", "fn", fn)
  for child in self:children() do child:apply(fn) end
  fn(self)
  return self
end

--- Sets training mode (dropout drops) here and below; returns the module.
function Module:train(mode)
  if mode == nil then mode = true end
  args.check(type(mode) == "boolean", "train: mode is %s, it wants true or false",
    args.show(mode))
  for module in self:modules() do state_of(module).fields.training = mode end
  return self
end

--- Sets evaluation mode here and below; returns the module.
function Module:eval() return self:train(false) end

--- Says whether the parameters below take part in autograd; returns the module.
function Module:requires_grad_(flag)
  if flag == nil then flag = true end
  for p in self:parameters() do p:requires_grad_(flag) end
  return self
end

--- Forgets the gradients of the parameters: each p.grad becomes nil.
function Module:zero_grad()
  for p in self:parameters() do p.grad = nil end
  return self
end

-- Converts every parameter, gradient and buffer by convert(tensor, path). All are converted
-- before the first is replaced, so that a failure leaves the module as it was.
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

--- Moves parameters and buffers to a device, and those of a floating dtype to a dtype.
-- The parameters keep their identity, so an optimizer made before goes on working.
-- m:to "cuda", m:to "float64", m:to{device = d, dtype = t}, m:to(tensor) all work.
function Module:to(...)
  local device, dtype, non_blocking = parse_to(...)
  if lt.is_tensor(device) then device, dtype = device.device, dtype or device.dtype end
  if dtypes[device] then device, dtype = nil, device end
  args.check(device or dtype, 'to: got %s, it wants a device, a dtype or a tensor, as in '
    .. 'm:to "cuda"', select("#", ...) == 0 and "no value" or "nil")
  if device then device = args.device("to", device) end
  args.check(dtype == nil or dtypes[dtype] == "float",
    "to: a module's dtype must be a floating one, got %s", tostring(dtype))
  return convert_all(self, function(t, path)
    if t.device == "meta" and device and device ~= "meta" then
      fail('to: cannot copy "%s" of %s out of meta: it has no data. Give it memory: '
        .. "m:to_empty(device); or load values: m:load_state_dict(values, {assign = true})",
        path, self:type_name())
    end
    local new_dtype = dtypes[t.dtype] == "float" and dtype or t.dtype
    return t:to{device = device or t.device, dtype = new_dtype, non_blocking = non_blocking}
  end)
end

--- Moves to the host; the same as m:to "cpu".
function Module:cpu() return self:to "cpu" end

local parse_cuda = args.signature("cuda", "device? device = nil")

--- Moves to a CUDA device, by number or name, or to the current one.
function Module:cuda(...)
  local device = parse_cuda(...)
  return self:to(core._accelerator.device("cuda", device, "cuda"))
end

--- Moves to Apple's GPU; the same as m:to "mps".
function Module:mps() return self:to "mps" end

--- Converts floating parameters and buffers to a dtype.
function Module:float() return self:to{dtype = "float32"} end
function Module:double() return self:to{dtype = "float64"} end
function Module:half() return self:to{dtype = "float16"} end
function Module:bfloat16() return self:to{dtype = "bfloat16"} end

local parse_to_empty = args.signature("to_empty", "device device, bool recurse = true")

--- Gives every parameter and buffer uninitialised memory on a device: the way from a
-- model built on meta to one that can be loaded. Returns the module.
function Module:to_empty(...)
  local device, recurse = parse_to_empty(...)
  device = args.device("to_empty", device)
  return convert_all(self, function(t) return lt.empty_like(t, {device = device}) end,
    {recurse = recurse})
end

-- State dicts ----------------------------------------------------------------

local parse_state_dict = args.signature("state_dict",
  "string prefix = '', bool keep_vars = false, int base = 1")

--- An ordered table from names to the parameters and persistent buffers. The tensors
-- share memory with the module and are detached, unless `keep_vars`. `base = 0` names
-- numbered children from 0, as PyTorch does.
function Module:state_dict(...)
  local prefix, keep_vars, base = parse_state_dict(...)
  args.check(base == 0 or base == 1, "state_dict: base is %d, it wants 0 or 1", base)
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

-- Why tensor `given` cannot become the value of `own_value`, or nil.
local function mismatch(own_value, given, assigning)
  if not lt.is_tensor(given) then return "is " .. args.show(given) end
  if tostring(own_value.shape) ~= tostring(given.shape) then
    return ("is %s, the module has %s"):format(tostring(given.shape), tostring(own_value.shape))
  end
  if own_value.device == "meta" and not assigning then
    return "cannot be copied into a meta tensor: use assign = true, or to_empty first"
  end
end

-- Has each name of `longer` one of `shorter` behind "module."?
local function are_wrapped(longer, shorter)
  local known = {}
  for _, name in ipairs(shorter) do known["module." .. name] = true end
  for _, name in ipairs(longer) do
    if not known[name] then return false end
  end
  return #longer > 0 and #longer == #shorter
end

-- The advice where names differ by what nn.DataParallel puts in front of them.
local function wrapping(missing, unexpected)
  if are_wrapped(missing, unexpected) then
    return '\n  the names lack "module.", which a DataParallel puts in front: load them into what '
      .. "it wraps, m.module:load_state_dict(state)"
  elseif are_wrapped(unexpected, missing) then
    return '\n  the names begin with "module.": they are of a DataParallel. Save those of what it '
      .. "wraps, model.module:state_dict(), or load them into nn.DataParallel(m)"
  end
  return ""
end

local parse_load = args.signature("load_state_dict",
  "table state_dict, bool strict = true, bool assign = false, int base = 1")

--- Loads values by name. Every name and shape is checked before the first value is
-- changed, so that an error leaves the module as it was. With strict = false, missing
-- and unexpected names are allowed. With assign = true, the module takes the given
-- tensors themselves, with their dtype and device, instead of copying their values.
-- Returns {missing_keys = {...}, unexpected_keys = {...}}.
function Module:load_state_dict(state, ...)
  local strict, assigning, base
  local one_table = select("#", ...) == 0 and args.is_plain(state) and type(state[1]) == "table"
  if one_table or select("#", ...) > 0 then
    state, strict, assigning, base = parse_load(state, ...)
  else -- a plain state dict is not a table of options
    state, strict, assigning, base = parse_load(state, {})
  end
  args.check(base == 0 or base == 1, "load_state_dict: base is %d, it wants 0 or 1", base)
  local mine = self:state_dict{base = base, keep_vars = true}
  local missing, unexpected, wrong = {}, {}, {}
  for name, value in pairs(mine) do
    if state[name] == nil then
      missing[#missing + 1] = name
    else
      local reason = mismatch(value, state[name], assigning)
      if reason then wrong[#wrong + 1] = name .. " " .. reason end
    end
  end
  for _, name in ipairs(ordered_map.keys(state)) do
    if mine[name] == nil then unexpected[#unexpected + 1] = tostring(name) end
  end
  local bad_names = strict and (#missing > 0 or #unexpected > 0)
  if bad_names or #wrong > 0 then
    fail("load_state_dict: the state dict does not fit %s, nothing was loaded:%s%s%s%s",
      self:type_name(), strict and list_names("missing", missing) or "",
      strict and list_names("unexpected", unexpected) or "",
      #wrong > 0 and "\n  mismatched: " .. table.concat(wrong, "; ") or "",
      strict and wrapping(missing, unexpected) or "")
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

-- Calls hook(module, inputs, output) for each hook; a result replaces the output.
local function run_hooks(self, inputs, ...)
  local output, count = table.pack(...), select("#", ...)
  for _, hook in ipairs(state_of(self).hooks) do
    local changed = table.pack(hook.fn(self, inputs, table.unpack(output, 1, count)))
    if changed.n > 0 and changed[1] ~= nil then output, count = changed, changed.n end
  end
  return table.unpack(output, 1, count)
end

-- m(...): forward with its hooks. No tail call: the frame with `self` in it is what
-- an error's module path is read from (lutra.nn.calls).
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
  args.check(args.is_callable(fn), "%s: the hook is %s, it wants a function", title,
    args.show(fn))
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

--- Calls fn(module, inputs, output...) after each forward; what it returns, if
-- anything, replaces the output. Returns a handle with :remove().
function Module:register_forward_hook(fn)
  return add_hook(self, "hooks", fn, "register_forward_hook")
end

--- Calls fn(module, inputs) before each forward; what it returns, if anything,
-- replaces the inputs. Returns a handle with :remove().
function Module:register_forward_pre_hook(fn)
  return add_hook(self, "pre_hooks", fn, "register_forward_pre_hook")
end

--- What a module computes; every class defines its own.
function Module:forward()
  local nearest = require "lutra.internal.nearest"
  local near = nearest.find("forward", nearest.names(state_of(self).class))
  fail("%s: this class has no forward method%s", self:type_name(),
    near and ("; it has '%s'"):format(near) or "")
end

-- What an error about tensors on different devices says more, inside a call of a module:
-- the paths of those of its parameters and buffers that it is about and does not name so, and that
-- the module is what to move.
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
          lines[#lines + 1] = ("\n  %s is on meta, without data. Give it memory: "
            .. "m:to_empty(device); or load values: m:load_state_dict(values, {assign = true})")
            :format(path)
        elseif tensor.name ~= path:gsub("%.(%d+)", "[%1]") then
          lines[#lines + 1] = ("\n  %s is on %s"):format(path, device)
        end
      end
    end
  end
  return table.concat(lines)
end)

-- Where `self` is among the modules being called: ' (module "mlp.1" of GPT)' or "".
local function where_called(self)
  local first = calls.chain()[1]
  local path = first and calls.path(first.module, self)
  if not path then return "" end
  return (' (module "%s" of %s)'):format(path, first.class)
end

--- Raises an error about a call of this module at the user's line; the message names
-- the class and the module's place in the network being called.
function Module:fail(message, ...)
  args.expect(type(message) == "string", "fail", "a string", "message", message)
  fail("%s%s: " .. message, self:type_name(), where_called(self), ...)
end

--- Raises an error unless `x` is a tensor.
function Module:check_tensor(x)
  if not lt.is_tensor(x) then self:fail("the input is %s, it wants a tensor", args.show(x)) end
  return x
end

-- Printing -------------------------------------------------------------------

--- The class's name.
function Module:type_name() return getmetatable(self).__name end

--- What stands between the brackets when the module prints; "" by default.
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

-- The metatable of an instance's fields. Those that it has not set are the class's; where
-- the class has a parent with a function __get_item(class, fields, i), an integer i is read
-- by that. __names is for completion and help, which do not call functions.
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

-- Is it Module, or made from it by extend?
local function is_class(class)
  for _ = 1, 100 do -- other tables may be their own metatable
    if type(class) ~= "table" then return false end
    if rawequal(class, Module) then return true end
    local meta = getmetatable(class)
    class = type(meta) == "table" and rawget(meta, "__index")
  end
  return false
end

--- Makes a subclass: `local Net = nn.Module:extend "Net"`. Define Net:init(...) and
-- Net:forward(...), then Net(...) makes an instance. A class that has an init of its
-- own over another layer's calls it by name: `nn.Linear.init(self, 3, 4)`.
function Module:extend(name)
  args.check(type(name) == "string", "extend: the class's name is %s, it wants a string",
    args.show(name))
  args.check(not is_module(self), "extend: this is a module, it wants a class")
  args.check(is_class(self), "extend: expected a class of nn for argument 'self', got %s",
    args.show(self))
  local class = {__name = name}
  class.__fields = metatable_of_fields(class, self.__get_item)
  return setmetatable(class, {
    __index = self, __call = construct, __name = "class " .. name,
    __tostring = function() return ("class nn.%s"):format(name) end,
  })
end

--- Called by the class with its arguments; a class without one takes none.
function Module:init(...)
  if select("#", ...) == 0 then return end
  local name = self:type_name()
  fail("%s: takes no arguments, as it has no function %s:init(...)", name, name)
end

Module.__fields = {__index = Module}
Module.is_module = is_module
setmetatable(Module, {
  __call = construct, __name = "class Module",
  __tostring = function() return "class nn.Module" end,
})

return Module
