--- State dicts of modules: m:state_dict and m:load_state_dict, with their hooks.
--
-- Invariant: load_state_dict checks every name and shape before it changes the first tensor.

local lt = require "lutra"
local args = require "lutra.internal.args"
local hooks = require "lutra.nn.module.hooks"
local ordered_map = require "lutra.internal.ordered_map"
local walking = require "lutra.nn.module.walking"

local fail = args.fail
local state_of, own, spelled = walking.state_of, walking.own, walking.spelled

-- The methods of nn.Module that are defined here.
local Module = {}

-- The name in state dicts of what a module's get_extra_state returns.
local EXTRA = "_extra_state"

local parse_state_dict = args.signature("state_dict",
  "string prefix = '', bool keep_vars = false, int base = 1")

-- Calls visit(module, prefix) for a module and those below it, parents first.
local function visit_all(self, prefix, base, visit)
  visit(self, prefix)
  for name, child in own(self, "module") do
    visit_all(child, prefix .. spelled(self, name, base) .. ".", base, visit)
  end
end

-- Iterates over names and values of a module's own parameters and persistent buffers.
local function own_tensors(module)
  local state, i = state_of(module), 0
  return function()
    while true do
      i = i + 1
      local name = state.entries[i]
      if name == nil then return nil end
      local value = state.fields[name]
      if value ~= nil and state.kinds[name] ~= "module" and not state.transient[name] then
        return name, value
      end
    end
  end
end

--- Returns an ordered table from names to the parameters and persistent buffers. The tensors share
-- memory with the module and are detached, unless `keep_vars`. With base = 0, numbered children
-- count from 0, as in PyTorch. Where a class has a method get_extra_state, its result is included
-- under the module's path and "_extra_state".
function Module:state_dict(...)
  local prefix, keep_vars, base = parse_state_dict(...)
  args.check(base == 0 or base == 1, "state_dict: expected 0 or 1 for argument 'base', got %d",
    base)
  local state = ordered_map.new()
  local function visit(module, path)
    hooks.run(module, "state_dict_pre", path, keep_vars)
    for name, value in own_tensors(module) do
      state[path .. spelled(module, name, base)] = keep_vars and value or value:detach()
    end
    if module.get_extra_state then state[path .. EXTRA] = module:get_extra_state() end
    for name, child in own(module, "module") do
      visit(child, path .. spelled(module, name, base) .. ".")
    end
    hooks.run(module, "state_dict_post", state, path, {})
  end
  visit(self, prefix)
  return state
end

local function list_names(what, names)
  if #names == 0 then return "" end
  return ("\n  %s: %s"):format(what, table.concat(names, ", "))
end

-- The metatable of what load_state_dict returns: it prints PyTorch's sentence, or the names.
local keys_meta = {__tostring = function(keys)
  local text = list_names("missing", keys.missing_keys)
    .. list_names("unexpected", keys.unexpected_keys)
  return text == "" and "<All keys matched successfully>" or "keys that did not match:" .. text
end}

-- Returns why `given` cannot become the value of `own_value`, or nil when it can. The parameters
-- that a lazy module does not have yet, `lazy`, take any shape.
local function mismatch(own_value, given, assigning, lazy)
  if lazy and lt.is_tensor(given) then return nil end
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

-- Returns the state dict that the hooks of modules below may change, and the missing names,
-- unexpected names and errors that they report.
local function after_hooks(self, given, strict, base)
  local state, missing, unexpected, errors = given, {}, {}, {}
  visit_all(self, "", base, function(module, prefix)
    if not hooks.has(module, "load_state_dict_pre") then return end
    if state == given then
      state = ordered_map.new()
      for _, name in ipairs(ordered_map.keys(given)) do state[name] = given[name] end
    end
    hooks.run(module, "load_state_dict_pre", state, prefix, {}, strict, missing, unexpected,
      errors)
  end)
  return state, missing, unexpected, errors
end

-- Returns the tensors of a module and those below it by name, in order, the modules that have a
-- method set_extra_state by the name of that state, and the set of the tensors that lazy modules do
-- not have yet.
local function loadable(self, base)
  local tensors, extra, lazy = ordered_map.new(), ordered_map.new(), {}
  visit_all(self, "", base, function(module, prefix)
    local is_lazy = module._becomes and module:has_uninitialized_params()
    for name, value in own_tensors(module) do
      tensors[prefix .. spelled(module, name, base)] = value
      if is_lazy and value:numel() == 0 then lazy[value] = true end
    end
    if module.set_extra_state then extra[prefix .. EXTRA] = module end
  end)
  return tensors, extra, lazy
end

-- Copies the values of a state dict into `tensors`, or assigns them; calls set_extra_state. Those
-- in the set `lazy` get the value's shape.
local function store(tensors, extra, lazy, state, assigning)
  lt.no_grad(function()
    for name, value in pairs(tensors) do
      local given = state[name]
      if given ~= nil and assigning then
        if value.device ~= given.device then value.grad = nil end
        value:set_data(given:detach())
      elseif given ~= nil then
        if lazy[value] then value:set_data(value:new_empty(given.shape)) end
        value:copy_(given)
      end
    end
  end)
  for name, module in pairs(extra) do
    if state[name] ~= nil then module:set_extra_state(state[name]) end
  end
end

local parse_load = args.signature("load_state_dict",
  "table state_dict, bool strict = true, bool assign = false, int base = 1")

--- m:load_state_dict(state_dict, {strict = true, assign = false, base = 1}): copies the values of a
-- state dict into the parameters and buffers of the same names. With strict = false, missing and
-- unexpected names are allowed. With assign = true, the module takes the given tensors themselves,
-- with their dtype and device. With base = 0, numbered children count from 0, as in PyTorch. Every
-- name and shape is checked first: an error lists all differences and leaves the module unchanged.
-- Returns {missing_keys = {...}, unexpected_keys = {...}}.
function Module:load_state_dict(given, ...)
  args.check(type(given) ~= "string", "load_state_dict: expected a table for argument "
    .. "'state_dict', got %s\nhint: m:load_state_dict(lt.load(%q))", args.show(given), given)
  local strict, assigning, base
  if ordered_map.is((...)) then -- the metadata in m:load_state_dict(lt.load_safetensors(path))
    return self:load_state_dict(given, select(2, ...))
  end
  local one_table = select("#", ...) == 0 and args.is_plain(given) and type(given[1]) == "table"
  if one_table or select("#", ...) > 0 then
    given, strict, assigning, base = parse_load(given, ...)
  else -- a plain state dict is not a table of options
    given, strict, assigning, base = parse_load(given, {})
  end
  args.check(base == 0 or base == 1, "load_state_dict: expected 0 or 1 for argument 'base', got %d",
    base)
  local state, missing, unexpected, wrong = after_hooks(self, given, strict, base)
  local tensors, extra, lazy = loadable(self, base)
  for name, value in pairs(tensors) do
    if state[name] == nil then
      missing[#missing + 1] = name
    else
      local reason = mismatch(value, state[name], assigning, lazy[value])
      if reason then wrong[#wrong + 1] = name .. ": " .. reason end
    end
  end
  for name in pairs(extra) do
    if state[name] == nil then missing[#missing + 1] = name end
  end
  for _, name in ipairs(ordered_map.keys(state)) do
    if tensors[name] == nil and extra[name] == nil then
      unexpected[#unexpected + 1] = tostring(name)
    end
  end
  local bad_names = strict and (#missing > 0 or #unexpected > 0)
  if bad_names or #wrong > 0 then
    fail("load_state_dict: cannot load the state dict into %s, nothing was loaded:%s%s%s%s",
      self:type_name(), strict and list_names("missing", missing) or "",
      strict and list_names("unexpected", unexpected) or "",
      #wrong > 0 and "\n  mismatched: " .. table.concat(wrong, "; ") or "",
      strict and prefix_hint(missing, unexpected) or "")
  end
  store(tensors, extra, lazy, state, assigning)
  local keys = setmetatable({missing_keys = missing, unexpected_keys = unexpected}, keys_meta)
  for module in self:modules() do hooks.run(module, "load_state_dict_post", keys) end
  return keys
end

return {methods = Module}
