--- Deep copies of modules: m:clone().

local lt = require "lutra"
local args = require "lutra.internal.args"
local hooks = require "lutra.nn.module.hooks"
local ordered_map = require "lutra.internal.ordered_map"
local shallow_copy = require "lutra.internal.shallow_copy"
local walking = require "lutra.nn.module.walking"

-- The methods of nn.Module that are defined here.
local Module = {}

-- Returns a copy of a tensor, of its gradient too: a parameter stays one. `path` is for errors.
local function copy_tensor(x, path)
  args.check(x.is_leaf, 'clone: cannot copy "%s": it is the result of an op in the autograd graph\n'
    .. "hint: keep x:detach() in the module", path)
  local copy = x:detach():clone()
  if lt.is_parameter(x) then
    copy = lt._parameter(copy, x.requires_grad)
  elseif x.requires_grad then
    copy:requires_grad_(true)
  end
  if x.grad then copy.grad = x.grad:detach():clone() end
  return copy
end

-- A copy in progress: {tensor, hooks, done}. tensor(x, path) returns the copy of a tensor; `hooks`:
-- whether copies have the hooks of their modules; `done` maps what was copied to its copy.
local Copy = {}
Copy.__index = Copy

-- Copies the fields of a table into `new`.
function Copy:fields(t, new, path)
  for key, value in next, t do
    local name = path .. "." .. tostring(key)
    rawset(new, self:value(key, name), self:value(value, name))
  end
  return new
end

function Copy:module(module, path)
  local old = getmetatable(module)
  local meta, state = shallow_copy(old), shallow_copy(old.__state)
  local new = setmetatable({}, meta)
  self.done[module] = new
  state.entries, state.kinds = shallow_copy(state.entries), shallow_copy(state.kinds)
  state.transient = shallow_copy(state.transient)
  if not self.hooks then state.hooks, state.hooked = nil, false end
  state.fields = setmetatable({}, getmetatable(state.fields))
  meta.__state, meta.__index = state, state.fields
  for _, name in ipairs(hooks.computed(old.__state)) do
    local value = rawget(old.__state.fields, name)
    if lt.is_tensor(value) then self.done[value] = self.tensor(value:detach(), path) end
  end
  self:fields(old.__state.fields, state.fields, path)
  return new
end

-- Copies modules, tensors and tables; other values are shared.
function Copy:value(value, path)
  local done = self.done
  if done[value] ~= nil then return done[value] end
  if lt.is_tensor(value) then
    done[value] = self.tensor(value, path)
    return done[value]
  elseif walking.is_module(value) then
    return self:module(value, path)
  elseif type(value) ~= "table" or rawget(value, "__index") ~= nil then
    return value -- a class is shared, too
  end
  local ordered = ordered_map.is(value)
  local new = ordered and ordered_map.new() or setmetatable({}, getmetatable(value))
  done[value] = new
  if not ordered then return self:fields(value, new, path) end
  for key, entry in pairs(value) do new[key] = self:value(entry, path .. "." .. key) end
  return new
end

--- Returns a deep copy: modules, parameters with their gradients, buffers, and the other tensors
-- and tables in fields are copied; what is shared inside the module is shared inside the copy.
-- Functions, hooks included, are the same. Raises an error for a tensor that is no leaf of the
-- autograd graph.
function Module:clone()
  return setmetatable({tensor = copy_tensor, hooks = true, done = {}}, Copy):value(self,
    self:type_name())
end

local copies = {methods = Module}

--- Returns a deep copy of a module, without hooks, or of a table, in which convert(x) takes the
-- place of each tensor x.
function copies.converted(value, convert)
  return setmetatable({tensor = convert, hooks = false, done = {}}, Copy):value(value, "")
end

return copies
