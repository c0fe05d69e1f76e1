--- nn.utils.parametrize: tensors of a module that a function computes from other ones.
--
-- A parametrized tensor is no field: reading it calls the parametrizations on the parameter
-- `original` of a ParametrizationList, m.parametrizations.weight. Invariant: the functions that
-- read and assign fields use only the module at hand, so that a copy of it uses its own
-- parametrizations.

local lt = require "lutra"
local args = require "lutra.internal.args"
local containers = require "lutra.nn.containers"
local strict_table = require "lutra.internal.strict_table"
local walking = require "lutra.nn.module.walking"
local Module = require "lutra.nn.module"

local parametrize = {}

-- A module whose children are the lists of parametrizations by the tensor's name.
local Parametrizations = Module:extend "ModuleDict"

-- list -> tensor, while parametrize.cached runs; nil otherwise
local cache

--- nn.utils.parametrize.ParametrizationList: the parametrizations of one tensor, applied in order,
-- with the parameter or buffer `original`, or several: original0, original1...
local ParametrizationList = containers.ModuleList:extend "ParametrizationList"

-- Returns the original tensors of a list: an array.
local function originals(list)
  if list.is_tensor then return {list.original} end
  local found = {}
  for i = 0, list.ntensors - 1 do found[i + 1] = list["original" .. i] end
  return found
end

local function compute(list)
  local x = list[1](table.unpack(originals(list)))
  for i = 2, #list do x = list[i](x) end
  return x
end

-- Raises an error unless `value` can take the place of `like`; `what` describes it.
local function check_like(value, like, what)
  args.check(lt.is_tensor(value),
    "register_parametrization: expected %s to be a tensor, got %s", what,
    args.show(value))
  local shape = tostring(value.shape)
  args.check(value.dtype == like.dtype and shape == tostring(like.shape),
    "register_parametrization: expected %s to have shape %s and dtype %s, got %s and %s\n"
    .. "hint: unsafe = true", what, like.shape, like.dtype, shape, value.dtype)
end

-- Registers a tensor as a parameter or a buffer.
local function register(module, name, value)
  if lt.is_parameter(value) then
    module:register_parameter(name, value)
  else
    module:register_buffer(name, value)
  end
end

-- Returns the packed values from which `value` is computed. A module without right_inverse is
-- taken for the identity.
local function inverse(list, value)
  local new = {n = 1, value}
  for i = #list, 1, -1 do
    if list[i].right_inverse then
      new = table.pack(list[i]:right_inverse(table.unpack(new, 1, new.n)))
    end
  end
  if new.n == 1 and args.is_plain(new[1]) then new = {n = #new[1], table.unpack(new[1])} end
  return new
end

--- nn.utils.parametrize.ParametrizationList(modules, original, {unsafe = false}): made by
-- register_parametrization.
function ParametrizationList:init(modules, original, unsafe)
  containers.ModuleList.init(self, modules)
  args.expect(#self > 0, "ParametrizationList", "a list of modules", "modules", modules)
  args.expect(lt.is_tensor(original), "ParametrizationList", "a tensor", "original", original)
  self.unsafe = unsafe or false
  local new = lt.no_grad(inverse, self, original)
  for i = 1, new.n do
    args.check(lt.is_tensor(new[i]), "register_parametrization: expected right_inverse to return "
      .. "tensors, got %s", args.show(new[i]))
  end
  self.is_tensor, self.ntensors = new.n == 1, new.n
  if new.n == 1 then
    args.check(new[1].dtype == original.dtype,
      "register_parametrization: expected right_inverse to "
      .. "return a tensor of dtype %s, got %s", original.dtype, new[1].dtype)
    if new[1] ~= original then original:set_data(new[1]:detach()) end
    register(self, "original", original)
  else
    for i = 1, new.n do
      local is_parameter = lt.is_parameter(original)
      register(self, "original" .. i - 1,
        is_parameter and lt._parameter(new[i]:detach(), original.requires_grad) or new[i])
    end
  end
  if not self.unsafe then check_like(compute(self), original, "the parametrized tensor") end
end

--- Computes the parametrized tensor.
function ParametrizationList:forward() return compute(self) end

--- Sets the original tensors so that the parametrized one is `value`. Raises an error when a
-- parametrization has no right_inverse.
function ParametrizationList:right_inverse(value)
  for _, parametrization in ipairs(self) do
    args.check(parametrization.right_inverse, "%s: cannot assign to the parametrized tensor: its "
      .. "class has no method right_inverse", parametrization:type_name())
  end
  lt.no_grad(function()
    local new, old = inverse(self, value), originals(self)
    args.check(new.n == #old, "right_inverse: expected %d tensors, got %d", #old, new.n)
    for i, x in ipairs(old) do x:set_data(new[i]:detach()) end
  end)
end

-- ---- fields -------------------------------------------------------------------------

-- Returns the list of parametrizations of a tensor, nil when it has none. `fields` are the fields
-- of the module.
local function list_of(fields, name)
  local lists = rawget(fields, "parametrizations")
  local state = lists and Module.is_module(lists) and walking.state_of(lists)
  return state and state.kinds[name] == "module" and state.fields[name] or nil
end

local function value_of(list)
  if not cache then return list() end
  if cache[list] == nil then cache[list] = list() end
  return cache[list]
end

-- Makes the fields of a module compute parametrized tensors.
local function install(module)
  local state, meta = walking.state_of(module), getmetatable(module)
  local before = getmetatable(state.fields).__index
  setmetatable(state.fields, {__names = state.class, before = getmetatable(state.fields),
    __index = function(fields, key)
      local list = list_of(fields, key)
      if list then return value_of(list) end
      if type(before) == "function" then return before(fields, key) end
      return before[key]
    end})
  function state.assigned(self, name, value)
    local list = list_of(walking.state_of(self).fields, name)
    if not list then return false end
    args.expect(lt.is_tensor(value), self:type_name(), "a tensor", name, value)
    list:right_inverse(value)
    return true
  end
  meta.__name = "Parametrized" .. meta.__name
  module.parametrizations = Parametrizations()
end

local function uninstall(module)
  local state, meta = walking.state_of(module), getmetatable(module)
  module.parametrizations = nil
  setmetatable(state.fields, getmetatable(state.fields).before)
  state.assigned = nil
  meta.__name = meta.__name:gsub("^Parametrized", "", 1)
end

-- ---- functions ----------------------------------------------------------------------

local parse_is = args.signature("is_parametrized", "any module, string? tensor_name = nil")

--- Returns whether a tensor of a module is parametrized; without `tensor_name`, whether any is.
function parametrize.is_parametrized(...)
  local module, name = parse_is(...)
  args.expect(Module.is_module(module), "is_parametrized", "a module", "module", module)
  local fields = walking.state_of(module).fields
  if name then return list_of(fields, name) ~= nil end
  local lists = rawget(fields, "parametrizations")
  return lists ~= nil and getmetatable(fields).before ~= nil
end

local parse_register = args.signature("register_parametrization",
  "any module, string tensor_name, any parametrization, bool unsafe = false")

-- Checks a parametrization that follows others.
local function check_next(module, name, parametrization)
  local y = module[name]
  local x = parametrization(y)
  check_like(x, y, "the parametrized tensor")
  if parametrization.right_inverse then
    check_like(parametrization:right_inverse(x), y, "the result of right_inverse")
  end
end

--- register_parametrization(module, tensor_name, parametrization, {unsafe = false}): makes a
-- parameter or buffer of `module` the result of a module, parametrization(original); returns
-- `module`. A second one is applied to the result of the first. The parameter itself becomes
-- module.parametrizations.NAME.original. A method right_inverse(value) of the parametrization gives
-- the original (or several) for a value: it computes the first one, and makes assignments
-- module.NAME = value possible. Raises an error when the tensor does not exist, and unless `unsafe`
-- when its shape or dtype would change.
function parametrize.register_parametrization(...)
  local module, name, parametrization, unsafe = parse_register(...)
  args.expect(Module.is_module(module), "register_parametrization", "a module", "module", module)
  args.expect(Module.is_module(parametrization), "register_parametrization", "a module",
    "parametrization", parametrization)
  parametrization:train(module.training)
  local state = walking.state_of(module)
  local list = list_of(state.fields, name)
  if list then
    if not unsafe then check_next(module, name, parametrization) end
    list:append(parametrization)
    list.unsafe = list.unsafe or unsafe
    return module
  end
  local kind, original = state.kinds[name], state.fields[name]
  args.check(original ~= nil and (kind == "parameter" or kind == "buffer"),
    'register_parametrization: expected the name of a parameter or buffer of %s for argument '
    .. '\'tensor_name\', got "%s"', module:type_name(), name)
  list = ParametrizationList({parametrization}, original, unsafe)
  if not parametrize.is_parametrized(module) then install(module) end
  walking.unregister(state, name)
  state.fields[name] = nil
  module.parametrizations:register_module(name, list)
  return module
end

local parse_remove = args.signature("remove_parametrizations",
  "any module, string tensor_name, bool leave_parametrized = true")

--- remove_parametrizations(module, tensor_name, {leave_parametrized = true}): makes a parametrized
-- tensor a parameter or buffer again, with its current value or, with leave_parametrized = false,
-- that of the original; returns the module. Raises an error when the tensor is not parametrized,
-- and for leave_parametrized = false with several originals.
function parametrize.remove_parametrizations(...)
  local module, name, leave = parse_remove(...)
  args.expect(Module.is_module(module), "remove_parametrizations", "a module", "module", module)
  local state = walking.state_of(module)
  local list = list_of(state.fields, name)
  args.check(list, 'remove_parametrizations: expected the name of a parametrized tensor of %s for '
    .. 'argument \'tensor_name\', got "%s"', module:type_name(), name)
  args.check(leave or list.is_tensor,
    "remove_parametrizations: cannot leave a tensor unparametrized "
    .. "that is computed from several ones\nhint: leave_parametrized = true")
  local original
  if list.is_tensor then
    original = list.original
    if leave then original:set_data(lt.no_grad(list):detach():clone()) end
  else
    local value = list()
    original = value.requires_grad and lt._parameter(value:detach(), true) or value
  end
  module.parametrizations[name] = nil
  if next(walking.state_of(module.parametrizations).kinds) == nil then uninstall(module) end
  register(module, name, original)
  return module
end

--- cached(f, ...): calls f(...) and returns its results; during the call, each parametrized tensor
-- is computed once, when it is first read. Use it around a forward that reads weights several
-- times.
function parametrize.cached(f, ...)
  args.expect(args.is_callable(f), "cached", "a function", "f", f)
  local before = cache
  cache = cache or {}
  local _ <close> = setmetatable({}, {__close = function() cache = before end})
  local results = table.pack(f(...))
  return table.unpack(results, 1, results.n)
end

--- Returns the class of a module without its parametrizations.
function parametrize.type_before_parametrizations(module)
  args.expect(Module.is_module(module), "type_before_parametrizations", "a module", "module",
    module)
  return walking.state_of(module).class
end

local parse_transfer = args.signature("transfer_parametrizations_and_params",
  "any from_module, any to_module, string? tensor_name = nil")

--- Registers the parametrizations of a module, those of `tensor_name` if given, with another one,
-- which then has the same original parameters; returns the second module, unchanged when the first
-- has no parametrizations. Raises an error for other values, and for a tensor that is not
-- parametrized.
function parametrize.transfer_parametrizations_and_params(...)
  local from, to, name = parse_transfer(...)
  local title = "transfer_parametrizations_and_params"
  args.expect(Module.is_module(from), title, "a module", "from_module", from)
  args.expect(Module.is_module(to), title, "a module", "to_module", to)
  if not parametrize.is_parametrized(from) then return to end
  args.check(name == nil or parametrize.is_parametrized(from, name), '%s: expected the name of a '
    .. 'parametrized tensor of %s for argument \'tensor_name\', got "%s"', title,
    from:type_name(), name)
  for each, list in from.parametrizations:named_children() do
    if name == nil or each == name then
      if to[each] == nil then to[each] = lt.nn.Parameter(from[each]) end
      for _, parametrization in ipairs(list) do
        parametrize.register_parametrization(to, each, parametrization, {unsafe = list.unsafe})
      end
      for original, value in list:named_parameters{recurse = false} do
        to.parametrizations[each][original] = value
      end
    end
  end
  return to
end

parametrize.ParametrizationList = ParametrizationList

return strict_table.strict(parametrize, "nn.utils.parametrize")
