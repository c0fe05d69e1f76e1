--- lt.func.functional_call, stack_module_state: modules as functions of their parameters.

local args = require "lutra.internal.args"
local core = require "lutra.core"
local ordered_map = require "lutra.internal.ordered_map"

local modules = {}

-- Returns the owner of a parameter or buffer and its name in the owner, or nil.
local function find(module, name)
  local owner, rest = module, name
  while true do
    local first, more = rest:match "^([^.]+)%.(.+)$"
    if not first then break end
    owner, rest = owner[first] or owner[math.tointeger(first)], more
    if type(owner) ~= "table" then return nil end
  end
  local meta = getmetatable(owner)
  local state = type(meta) == "table" and meta.__state
  if not state or (state.kinds[rest] ~= "parameter" and state.kinds[rest] ~= "buffer") then
    return nil
  end
  return state.fields, rest
end

-- Returns the values of a dict or of a list of dicts as one list of {name, value}.
local function entries(given)
  local list = {}
  local dicts = given
  if #given == 0 then dicts = {given} end
  for _, dict in ipairs(dicts) do
    args.expect(type(dict) == "table", "functional_call", "tables of tensors by name",
      "parameter_and_buffer_dicts", dict)
    for _, name in ipairs(ordered_map.keys(dict)) do
      args.check(type(name) == "string" and core.is_tensor(dict[name]),
        "functional_call: expected tensors by name for argument 'parameter_and_buffer_dicts', got "
        .. "%s for %s", args.show(dict[name]), args.show(name))
      list[#list + 1] = {name, dict[name]}
    end
  end
  return list
end

-- Returns the places {fields, name, tensor} of all parameters and buffers that are the same tensor
-- as one for which the list has another.
local function tied(module, list)
  local by_tensor = {}
  for _, child in module:named_modules() do
    local state = getmetatable(child).__state
    for name, kind in pairs(state.kinds) do
      local t = state.fields[name]
      if t and kind ~= "module" then
        by_tensor[t] = by_tensor[t] or {}
        table.insert(by_tensor[t], {state.fields, name})
      end
    end
  end
  local places = {}
  for _, entry in ipairs(list) do
    local fields, name = find(module, entry[1])
    for _, place in ipairs(fields and by_tensor[fields[name]] or {}) do
      places[#places + 1] = {place[1], place[2], entry[2]}
    end
  end
  return places
end

local parse_call = args.signature("functional_call",
  "any module, table parameter_and_buffer_dicts, any? args = nil, table? kwargs = nil, "
  .. "bool tie_weights = true, bool strict = false")

--- functional_call(module, parameter_and_buffer_dicts, args, kwargs, {tie_weights = true, strict =
-- false}): calls the module with tensors in place of its parameters and buffers; returns what it
-- returns. The dict, or each of a list of them, has tensors by name: "layer.weight". `args` is the
-- input or a list of the inputs, `kwargs` a table of names, passed last. tie_weights replaces every
-- parameter that is the same tensor as a named one; with strict = true all parameters and buffers
-- must be named. Raises an error for a name that the module does not have.
function modules.functional_call(...)
  local module, given, arguments, kwargs, tie, strict = parse_call(...)
  local nn = require "lutra.nn"
  args.expect(nn.Module.is_module(module), "functional_call", "a module", "module", module)
  local list, places, named = entries(given), {}, {}
  for _, entry in ipairs(list) do
    local fields, name = find(module, entry[1])
    args.check(fields, "functional_call: the module has no parameter or buffer %q", entry[1])
    places[#places + 1] = {fields, name, entry[2]}
    named[entry[1]] = true
  end
  if strict then
    for name in pairs(module:state_dict()) do
      args.check(named[name], "functional_call: expected the parameter or buffer %q for argument "
        .. "'parameter_and_buffer_dicts', as strict = true, got no value", name)
    end
  end
  if tie then
    for _, place in ipairs(tied(module, list)) do table.insert(places, 1, place) end
  end
  local old = {}
  for i, place in ipairs(places) do old[i] = place[1][place[2]] end
  local _ <close> = require "lutra.internal.scope_guard"(function()
    for i = #places, 1, -1 do places[i][1][places[i][2]] = old[i] end
  end)
  for _, place in ipairs(places) do place[1][place[2]] = place[3] end
  local inputs = args.is_plain(arguments) and table.pack(table.unpack(arguments))
    or {arguments, n = arguments == nil and 0 or 1}
  if kwargs then
    inputs.n = inputs.n + 1
    inputs[inputs.n] = kwargs
  end
  return module(table.unpack(inputs, 1, inputs.n))
end

--- stack_module_state(models): returns two tables by name, the stacked parameters and the stacked
-- buffers of modules of one class: each tensor has one dim more, in front, with an entry for each
-- module. The parameters are leaf tensors that require grad as those of the modules. Raises an
-- error for an empty list, and for modules of different classes or in different modes.
function modules.stack_module_state(models)
  args.expect(args.is_plain(models) and #models > 0, "stack_module_state", "a list of modules",
    "models", models)
  local nn = require "lutra.nn"
  local first = models[1]
  for _, m in ipairs(models) do
    args.expect(nn.Module.is_module(m), "stack_module_state", "a list of modules", "models", m)
    args.check(m:type_name() == first:type_name() and m.training == first.training,
      "stack_module_state: expected modules of one class in one mode, got a %s and a %s",
      first:type_name(), m:type_name())
  end
  local function stack(iterate, leaf)
    local result = ordered_map.new()
    local lists = {}
    for k, m in ipairs(models) do
      for name, t in m[iterate](m) do
        lists[name] = lists[name] or {}
        lists[name][k] = t
        if k == 1 then result[name] = t end
      end
    end
    for name, t in pairs(result) do
      local stacked = core._ops.stack(lists[name]):detach()
      result[name] = leaf and t.requires_grad and stacked:requires_grad_() or stacked
    end
    return result
  end
  return stack("named_parameters", true), stack("named_buffers", false)
end

--- Makes the layers of batch normalization in a module, itself included, compute without running
-- statistics, which functions of batches cannot update; returns the module. Raises an error for any
-- other value.
function modules.replace_all_batch_norm_modules_(root)
  local nn = require "lutra.nn"
  args.expect(nn.Module.is_module(root), "replace_all_batch_norm_modules_", "a module", "root",
    root)
  for module in root:modules() do
    if module._is_batch_norm and module.track_running_stats then
      module.running_mean, module.running_var, module.num_batches_tracked = nil, nil, nil
      module.track_running_stats = false
    end
  end
  return root
end

return modules
