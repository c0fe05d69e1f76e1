--- nn.Module: the base class of every layer and network.
--
-- A module is a proxy over a table of its fields. Reading a field is a plain table lookup that
-- continues in the class. Assigning a parameter, a module, or a new value of a registered buffer
-- registers it under its name, in order. A field that was never set is nil, as in any Lua table.
-- One statement with several fields, self.a, self.b = f(), g(), assigns, and registers, b first.
--
-- Invariant: `entries` of a module's state lists the registered names once each, in order of
-- registration, and `kinds` maps each to "parameter", "buffer" or "module"; the values themselves
-- are in `fields`.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local calls = require "lutra.nn.calls"
local instances = require "lutra.internal.instances"
local hooks = require "lutra.nn.module.hooks"
local walking = require "lutra.nn.module.walking"

local fail = args.fail
local state_of, is_module, collect = walking.state_of, walking.is_module, walking.collect
local unregister = walking.unregister

local Module = {__name = "Module"}

for _, part in ipairs {"walking", "conversion", "state_dict", "hooks", "copies"} do
  local methods = require("lutra.nn.module." .. part).methods
  for name, method in pairs(methods) do Module[name] = method end
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

local function check_no_cycle(self, name, child)
  for module in child:modules() do
    if module == self then
      fail('%s: cannot register "%s": it contains this module\n'
        .. "hint: refer to it from a table: self.parent = {module}", self:type_name(), name)
    end
  end
end

-- What the fields of each kind hold, apart from nil.
local accepted = {
  parameter = {is = lt.is_parameter, expected = "an nn.Parameter"},
  buffer = {is = lt.is_tensor, expected = "a tensor"},
  module = {is = is_module, expected = "a module"},
}

local function register(self, name, value, kind)
  local state = state_of(self)
  if not state then
    fail("%s: expected a module for argument 'self', got %s\n"
      .. "hint: call the init of a parent class with a dot: Parent.init(self, ...)", name,
      args.show(self))
  end
  check_name(self, name, kind)
  if hooks.everywhere.hooks then
    value = hooks.replaced(kind .. "_registration", self, name, value)
    if value ~= nil and not accepted[kind].is(value) then
      fail('%s: expected %s or nil from a registration hook for the %s "%s", got %s',
        self:type_name(), accepted[kind].expected, kind, name, args.show(value))
    end
  end
  if kind == "module" then check_no_cycle(self, name, value) end
  if state.kinds[name] ~= kind then
    unregister(state, name)
    state.kinds[name] = kind
    state.entries[#state.entries + 1] = name
  end
  state.fields[name] = value
end

-- The tensors made by nn.Buffer -> whether they are persistent.
local buffers = setmetatable({}, {__mode = "k"})

-- Makes an assignment of the tensor `x` to a field register it as a buffer; returns x.
function Module._as_buffer(x, persistent)
  buffers[x] = persistent
  return x
end

-- Sets a field, and registers a parameter or a module. A class may convert the value first
-- (__set_field) and implement integer names (__set_item).
local function set_field(self, name, value)
  local state = state_of(self)
  local kind = state.kinds[name]
  if state.assigned and state.assigned(self, name, value) then return end
  if math.type(name) == "integer" and state.class.__set_item then
    return state.class.__set_item(self, name, value)
  end
  if state.class.__set_field then value = state.class.__set_field(name, value) end
  if lt.is_parameter(value) then
    register(self, name, value, "parameter")
  elseif is_module(value) then
    register(self, name, value, "module")
  elseif buffers[value] ~= nil then
    register(self, name, value, "buffer")
    state.transient[name] = not buffers[value] or nil
  elseif kind == nil then
    state.fields[name] = value
  elseif value == nil then
    -- A parameter or buffer stays registered without a value; a module is unregistered.
    if kind == "module" then unregister(state, name) end
    state.fields[name] = nil
  elseif kind == "buffer" and lt.is_tensor(value) then
    state.fields[name] = value
  else
    fail('%s: expected %s or nil for the %s "%s", got %s%s', self:type_name(),
      accepted[kind].expected, kind, name, args.show(value), kind == "parameter"
        and ("\nhint: m.%s = nn.Parameter(x), or lt.no_grad(function() m.%s:copy_(x) end)")
          :format(name, name) or "")
  end
end

-- Lets a container update its order.
local function changed(self)
  local update = state_of(self).class.__changed
  if update then update(self) end
end

-- Implements `self.name = value` (__newindex).
local function assign(self, name, value)
  set_field(self, name, value)
  changed(self)
end

-- Removes a name, of a container's element; does nothing for a name that is not registered.
function Module:_unregister(name)
  local state = state_of(self)
  unregister(state, name)
  state.fields[name] = nil
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
  changed(self)
end
Module.add_module = Module.register_module

-- Calling --------------------------------------------------------------------

-- Whether there are hooks for all modules; a local variable, as each call reads it.
local hooked_everywhere = false
function hooks.everywhere.refreshed(hooked) hooked_everywhere = hooked end

local function pass(...) return ... end

-- Implements m(...): calls forward and the hooks. This must not be a tail call: errors read the
-- module's path from the frame that has `self` (lutra.nn.calls).
local function call(self, ...)
  local state = getmetatable(self).__state
  if not state.hooked and not hooked_everywhere then return pass(self:forward(...)) end
  return pass(hooks.call(self, state, ...))
end

--- Computes the module's output; every class defines its own. Call m(...) instead, which also runs
-- the hooks. Raises an error in a class without one.
function Module:forward()
  local nearest = require "lutra.internal.nearest"
  local near = nearest.find("forward", nearest.names(state_of(self).class))
  fail("%s: cannot call the module: its class has no method forward%s", self:type_name(),
    near and ("\nhint: rename its method %s to forward"):format(near)
      or self[1] and "\nhint: call its elements, or make it an nn.Sequential" or "")
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

-- Errors raised in a nested module begin with its path.
core._error_path(calls.error_path)

--- Raises an error about a call of this module at the user's line. `message` is a format of
-- string.format; the module's path in the network being called and its class are put in front of
-- it. For use in forward.
function Module:fail(message, ...)
  args.expect(type(message) == "string", "fail", "a string", "message", message)
  fail("%s: " .. message, self:type_name(), ...)
end

--- Returns `x`; raises an error unless it is a tensor. For use in forward.
function Module:check_tensor(x)
  if not lt.is_tensor(x) then self:fail("expected a tensor as input, got %s", args.show(x)) end
  return x
end

-- Printing -------------------------------------------------------------------

--- Returns the class's name.
function Module:type_name() return getmetatable(self).__name end

--- m:isinstance(class): returns whether the module is an instance of the class, or of one of a list
-- of classes: lt.isinstance(m, class).
function Module:isinstance(class) return instances.isinstance(self, class) end

--- Returns the text between the brackets when the module is printed, "" by default; a class may
-- define its own.
function Module.extra_repr() return "" end

local function indented(text) return (text:gsub("\n", "\n  ")) end

local function repr(self)
  local lines, extra = self._lines and self:_lines() or {}, self:extra_repr()
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
-- fields, and ranges such as {{1, 2}}. __names is the class, for completion and help, which call no
-- functions.
local function metatable_of_fields(class, get_item)
  if not get_item then return {__index = class} end
  return {__names = class, __index = function(fields, key)
    if math.type(key) == "integer" or args.is_plain(key) then
      return get_item(class, fields, key)
    end
    return class[key]
  end}
end

local function fields_pairs(self) return next, state_of(self).fields, nil end

-- Names of constructors in Python and in other class libraries.
local OTHER_INITS = {"__init", "__init__"}

local function construct(class, ...)
  local fields = setmetatable({training = true}, class.__fields)
  local state = {class = class, fields = fields, entries = {}, kinds = {}, transient = {},
    hooked = false}
  local self = setmetatable({}, {
    __name = class.__name, __state = state, __index = fields, __newindex = assign,
    __call = call, __tostring = repr, __pairs = class.__pairs or fields_pairs,
    __len = class.__len,
  })
  local init = self.init
  for _, name in ipairs(OTHER_INITS) do
    if class[name] ~= nil then
      fail("%s: expected a method init, got %s\nhint: function %s:init(...)", class.__name, name,
        class.__name)
    end
  end
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

local MOST_INITS = 10 -- an init that calls those of its parents, and functions that set fields

-- Raises an error when an init that is running was called with the class itself as self, as
-- nn.Linear:init(3, 4) is.
local function check_no_init(class)
  for level = 3, 2 + MOST_INITS do
    local info = debug.getinfo(level, "f")
    if not info then return end
    local _, first = debug.getlocal(level, 1)
    if rawequal(first, class) and info.func == class.init then
      fail("init: expected a module for argument 'self', got %s\nhint: %s(...) makes a module; in "
        .. "the init of a subclass write Parent.init(self, ...), with a dot", args.show(class),
        class.__name)
    end
  end
end

-- Implements the first assignment of a method or a field of a class.
local function assign_to_class(class, name, value)
  if type(value) ~= "function" then check_no_init(class) end
  rawset(class, name, value)
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
    __index = self, __newindex = assign_to_class, __call = construct, __name = "class " .. name,
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
