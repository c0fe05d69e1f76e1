--- Which modules below one are wrapped, and which parameters belong to a wrapper.

local lt = require "lutra"
local args = require "lutra.internal.args"
local walking = require "lutra.nn.module.walking"

local own, state_of = walking.own, walking.state_of

local wrapping = {}

-- The parameters that a wrapper shards -> true.
local managed = setmetatable({}, {__mode = "k"})

--- Returns whether a module is a wrapper.
function wrapping.is_wrapped(module)
  return rawequal(state_of(module).class.is_sharded, true)
end

-- ---- policies -----------------------------------------------------------------------

local parse_size = args.signature("size_based_auto_wrap_policy",
  "any module, bool recurse, int nonwrapped_numel, int min_num_params = 100000000")

--- size_based_auto_wrap_policy(module, recurse, nonwrapped_numel, {min_num_params = 100000000}): a
-- policy that wraps modules with at least so many elements of parameters that are not wrapped yet.
-- With another number: function(m, recurse, n) return size_based_auto_wrap_policy(m, recurse, n,
-- 1000) end.
function wrapping.size_based_auto_wrap_policy(...)
  local _, _, numel, least = parse_size(...)
  return numel >= least
end

-- Returns whether a value is a module or a class of modules.
local function is_module_or_class(x)
  return type(x) == "table" and (lt.nn.is_module(x) or type(x.extend) == "function")
end

-- Returns a policy for a list of classes of modules, or of modules.
local function of_list(list)
  for i, x in ipairs(list) do
    args.check(is_module_or_class(x),
      "FullyShardedDataParallel: expected classes or modules for argument 'auto_wrap_policy', got "
        .. "%s at %d", args.show(x), i)
  end
  return function(module, recurse)
    if recurse then return true end
    for _, x in ipairs(list) do
      if rawequal(x, module) or not lt.nn.is_module(x) and module:isinstance(x) then return true end
    end
    return false
  end
end

--- Returns the policy for a value of auto_wrap_policy: a function, or a list of classes or modules.
function wrapping.policy(x)
  local single = is_module_or_class(x) -- it can be called, but is no policy
  if args.is_callable(x) and not single then return x end
  args.expect(args.is_plain(x) and not single, "FullyShardedDataParallel",
    "a function or a list of classes or modules", "auto_wrap_policy", x)
  return of_list(x)
end

-- Returns whether a module can be called, as a list of modules cannot.
local function is_callable(module) return module.forward ~= lt.nn.Module.forward end

-- Wraps the modules below `module` that the policy chooses, children first. Returns the number of
-- elements of the parameters that were wrapped. `made` maps a module to its wrapper, for one that
-- is at several places.
local function wrap_below(module, policy, ignored, wrap, made)
  local wrapped, children = 0, {}
  for name, child in own(module, "module") do children[#children + 1] = {name, child} end
  for _, entry in ipairs(children) do
    local name, child = entry[1], entry[2]
    if made[child] then
      module:set_submodule(name, made[child])
    elseif not ignored[child] and not wrapping.is_wrapped(child) then
      local all = child:num_parameters()
      if policy(child, true, all) then
        local below = wrap_below(child, policy, ignored, wrap, made)
        if all > below and is_callable(child) and policy(child, false, all - below) then
          made[child] = wrap(child)
          module:set_submodule(name, made[child])
          below = all
        end
        wrapped = wrapped + below
      end
    end
  end
  return wrapped
end
wrapping.wrap_below = wrap_below

-- ---- parameters ---------------------------------------------------------------------

--- Calls visit(module, prefix) for a module and those below that are neither ignored nor wrapped.
local function each_module(module, prefix, ignored, visit)
  if ignored[module] or wrapping.is_wrapped(module) then return end
  visit(module, prefix)
  for name, child in own(module, "module") do
    each_module(child, prefix .. name .. ".", ignored, visit)
  end
end
wrapping.each_module = each_module

-- Returns the parameters of a set of modules as a set.
local function parameters_of(modules)
  local set = {}
  for module in pairs(modules) do
    for _, p in own(module, "parameter") do set[p] = true end
  end
  return set
end

-- Raises an error for a parameter that cannot be sharded.
local function check_parameter(p, path)
  args.check(not managed[p], "FullyShardedDataParallel: cannot shard %q: another wrapped "
    .. "module has the same parameter\nhint: wrap the modules that share it as one", path)
  args.check(p.device ~= "meta", "FullyShardedDataParallel: cannot shard %q: it is on meta, "
    .. "without data\nhint: m:to_empty(device) first", path)
end

--- Returns the parameters of a module that neither an ignored module nor a wrapper below it has, in
-- order: a list of {p, owners}, where owners is a list of {module, name, path}. Raises an error for
-- a parameter that another wrapper shards.
function wrapping.parameters(module, ignored)
  local list, by_p, excluded = {}, {}, parameters_of(ignored)
  local function add(owner, name, p, path)
    check_parameter(p, path)
    if not by_p[p] then
      by_p[p] = {p = p, owners = {}}
      list[#list + 1] = by_p[p]
    end
    table.insert(by_p[p].owners, {module = owner, name = name, path = path})
  end
  each_module(module, "", ignored, function(owner, prefix)
    for name, p in own(owner, "parameter") do
      if not excluded[p] then add(owner, name, p, prefix .. name) end
    end
  end)
  for _, entry in ipairs(list) do managed[entry.p] = true end
  return list
end

--- Returns the names of the parameters and persistent buffers in the state dict of a module, in
-- order, without the names of wrappers.
function wrapping.names(module)
  local list = {}
  local function visit(x, prefix)
    local state = state_of(x)
    if wrapping.is_wrapped(x) then
      for _, name in ipairs(x._fsdp.names) do list[#list + 1] = prefix .. name end
      return
    end
    for _, name in ipairs(state.entries) do
      if state.kinds[name] ~= "module" and state.fields[name] ~= nil and not state.transient[name]
      then
        list[#list + 1] = prefix .. name
      end
    end
    for name, child in own(x, "module") do visit(child, prefix .. name .. ".") end
  end
  visit(module, "")
  return list
end

return wrapping
