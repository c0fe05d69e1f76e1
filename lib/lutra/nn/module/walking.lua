--- The parameters, buffers and modules below a module: iterators, and access by path.
--
-- Invariant: a walk visits values in order of registration, parents before children, and collects
-- all of them first, so that the module may change while an iterator runs.

local args = require "lutra.internal.args"

local fail = args.fail

local walking = {}

-- The state of a module: {class, fields, entries, kinds, transient, hooks, hooked, assigned}.
-- assigned(module, name, value), where there is one, may take over an assignment to a field: it
-- then returns true (lutra.nn.utils.parametrize).
local function state_of(module) return getmetatable(module).__state end
walking.state_of = state_of

--- Returns whether `x`, any value, is a module (an instance, not a class).
function walking.is_module(x)
  if type(x) ~= "table" then return false end
  local meta = getmetatable(x)
  return type(meta) == "table" and meta.__state ~= nil
end

--- Removes a name from those that are registered in the state of a module; the value stays a field.
function walking.unregister(state, name)
  if not state.kinds[name] then return end
  state.kinds[name], state.transient[name] = nil, nil
  for i, entry in ipairs(state.entries) do
    if entry == name then table.remove(state.entries, i) break end
  end
end

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

-- Appends {path, module} of a module and of all modules below it to `list`; with a table `seen`,
-- each module once.
local function walk(self, prefix, list, seen)
  if seen then
    if seen[self] then return list end
    seen[self] = true
  end
  list[#list + 1] = {prefix, self}
  for name, child in own(self, "module") do walk(child, join(prefix, name), list, seen) end
  return list
end

-- Returns a list of {path, value, owner, name} of every registered value of one kind. `options`
-- are prefix, recurse, base, and every: true lists a value again under each of its names.
local function collect(self, kind, options)
  local list, seen = {}, {}
  local every, recurse, base = options.every, options.recurse ~= false, options.base
  local function visit(module, prefix)
    local state = state_of(module)
    local entries, kinds, fields = state.entries, state.kinds, state.fields
    for i = 1, #entries do
      local name = entries[i]
      local value = kinds[name] == kind and fields[name]
      if value and (every or not seen[value]) then
        seen[value] = true
        list[#list + 1] = {join(prefix, name), value, module, name}
      end
    end
    for i = 1, recurse and #entries or 0 do
      local name = entries[i]
      local child = kinds[name] == "module" and fields[name]
      if child then visit(child, join(prefix, spelled(module, name, base))) end
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
walking.own, walking.spelled, walking.collect, walking.each = own, spelled, collect, each

local parse_walk = args.signature("parameters", "bool recurse = true")
local parse_named = args.signature("named_parameters",
  "string prefix = '', bool recurse = true, bool remove_duplicate = true")
local parse_named_buffers = args.signature("named_buffers",
  "string prefix = '', bool recurse = true, bool remove_duplicate = true")
local parse_named_modules = args.signature("named_modules",
  "any? memo = nil, string prefix = '', bool remove_duplicate = true")
local parse_target = {}
for _, title in ipairs {"get_submodule", "get_parameter", "get_buffer"} do
  parse_target[title] = args.signature(title, "string target")
end
local parse_set = args.signature("set_submodule",
  "string target, any module, bool strict = false")
local parse_count = args.signature("num_parameters", "bool trainable = false")

local function named(self, kind, prefix, recurse, remove_duplicate)
  local options = {prefix = prefix, recurse = recurse, every = not remove_duplicate}
  return each(collect(self, kind, options), 1, 2)
end

-- Returns the module at a path below `self`, such as "layers.2"; "" is `self`.
local function module_at(title, self, path)
  local module, before = self, ""
  for name in path:gmatch "[^.]+" do
    local state = state_of(module)
    local child = state.kinds[name] == "module" and state.fields[name]
    if not child then
      local near = require("lutra.internal.nearest").find(name, state.entries)
      fail('%s: expected the path of a module for argument \'target\', got "%s": %s has no child '
        .. '"%s"%s', title, path, before == "" and self:type_name() or '"' .. before .. '"', name,
        near and ('\nhint: did you mean "%s"?'):format(join(before, near)) or "")
    end
    module, before = child, join(before, name)
  end
  return module
end

-- Returns the registered value of one kind at a path.
local function value_at(title, self, kind, path)
  local above, name = path:match "^(.*)%.([^.]*)$"
  local owner = module_at(title, self, above or "")
  name = name or path
  local state = state_of(owner)
  local value = state.fields[name]
  args.check(value ~= nil and state.kinds[name] == kind,
    '%s: expected the path of a %s for argument \'target\', got "%s": %s has no %s "%s"', title,
    kind, path, owner:type_name(), kind, name)
  return value
end

-- The methods of nn.Module that are defined here.
local Module = {}
walking.methods = Module

--- Iterates over the parameters, each once, in order of registration: `for p in m:parameters() do`.
-- Without `recurse`, only those of this module itself. Calling the iterator gives the first:
-- `m:parameters()().device`.
function Module:parameters(...)
  return each(collect(self, "parameter", {recurse = parse_walk(...)}), 2)
end

--- Iterates over names and parameters, each parameter once: `for name, p in m:named_parameters()
-- do`. A name is a path such as "layers.1.weight" behind `prefix`. With remove_duplicate = false, a
-- shared parameter is listed under each of its names.
function Module:named_parameters(...)
  return named(self, "parameter", parse_named(...))
end

--- Raises an error of `title` if `value`, given for this argument, is a method that lists
-- parameters, in place of its result.
function walking.check_called(title, argument, value)
  args.check(value ~= Module.parameters and value ~= Module.named_parameters,
    "%s: expected tensors for argument '%s', got the method itself\nhint: net:parameters()", title,
    argument)
end

--- Iterates over the buffers, each once.
function Module:buffers(...)
  return each(collect(self, "buffer", {recurse = parse_walk(...)}), 2)
end

--- Iterates over names and buffers, each buffer once; the options are those of named_parameters.
function Module:named_buffers(...)
  return named(self, "buffer", parse_named_buffers(...))
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
function Module:modules() return each(walk(self, "", {}, {}), 2) end

--- Iterates over paths ("" for this module, "layers.2" for one below it) and modules, parents
-- first, each module once or, with remove_duplicate = false, under each of its paths. `prefix` is
-- put before the paths; modules that are keys of the table `memo` are left out.
function Module:named_modules(...)
  local memo, prefix, remove_duplicate = parse_named_modules(...)
  args.expect(memo == nil or type(memo) == "table", "named_modules", "a table or nil", "memo",
    memo)
  return each(walk(self, prefix, {}, remove_duplicate and (memo or {}) or nil), 1, 2)
end

--- Returns the module at a path below this one: m:get_submodule "layers.2"; "" is this module.
-- Raises an error when there is none.
function Module:get_submodule(...)
  return module_at("get_submodule", self, parse_target.get_submodule(...))
end

--- Returns the parameter at a path: m:get_parameter "layers.2.weight". Raises an error when there
-- is none.
function Module:get_parameter(...)
  return value_at("get_parameter", self, "parameter", parse_target.get_parameter(...))
end

--- Returns the buffer at a path: m:get_buffer "norm.running_mean". Raises an error when there is
-- none.
function Module:get_buffer(...)
  return value_at("get_buffer", self, "buffer", parse_target.get_buffer(...))
end

--- Puts `module` in the place of the one at a path, m:set_submodule("layers.2", nn.Identity());
-- adds it when its parent has no child of this name, which is an error with `strict`. Raises an
-- error for an empty path, a parent that does not exist, and a value that is no module.
function Module:set_submodule(...)
  local path, module, strict = parse_set(...)
  args.expect(walking.is_module(module), "set_submodule", "a module", "module", module)
  args.check(path ~= "", "set_submodule: expected a path for argument 'target', got \"\"")
  local above, name = path:match "^(.*)%.([^.]*)$"
  local owner = module_at("set_submodule", self, above or "")
  name = name or path
  if strict then module_at("set_submodule", self, path) end
  local index = state_of(owner).class.__numbered and math.tointeger(tonumber(name))
  if index then owner[index] = module else owner:register_module(name, module) end
end

--- Returns the number of elements of all parameters, shared ones counted once; with `trainable`, of
-- those that require grad.
function Module:num_parameters(...)
  local trainable, total = parse_count(...), 0
  for module in self:modules() do
    if module._becomes and module:has_uninitialized_params() then
      args.fail("num_parameters: cannot count the parameters: %s has none before its first call\n"
        .. "hint: call the network with an input first", module:type_name())
    end
  end
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

return walking
