--- Reads the parameters of an optimizer's group: a tensor, a list of tensors, an iterator such as
-- net:parameters(), or the same with names: net:named_parameters(), {{"weight", w}, {"bias", b}}.

local lt = require "lutra"
local args = require "lutra.internal.args"
local walking = require "lutra.nn.module.walking"

local fail, check = args.fail, args.check

local parameters = {}

-- Returns whether an entry of a list is a parameter with its name: {"weight", w}.
local function is_named(entry) return args.is_plain(entry) and type(entry[1]) == "string" end

--- Returns whether `params`, the first argument of an optimizer, is a list of groups.
function parameters.are_groups(params)
  return args.is_plain(params) and args.is_plain(params[1]) and not is_named(params[1])
end

local function add(list, names, p, name)
  list[#list + 1] = p
  names[#list] = name
end

local function read_list(title, given, list, names)
  for i, p in ipairs(given) do
    if is_named(p) then
      add(list, names, p[2], p[1])
    elseif i == 1 and #given == 1 and type(p) == "function" then
      parameters.read(title, p, list, names)
    else
      add(list, names, p)
    end
  end
end

--- Appends the parameters in `given` to `list`, and their names, if they have any, to `names` at
-- the same index. Raises an error of `title` for any other value.
function parameters.read(title, given, list, names)
  if lt.is_tensor(given) then return add(list, names, given) end
  walking.check_called(title, "params", given)
  if args.is_callable(given) and not lt.nn.is_module(given) then
    for first, second in given do
      if type(first) == "string" then
        add(list, names, second, first)
      else
        add(list, names, first)
      end
    end
  elseif args.is_plain(given) then
    read_list(title, given, list, names)
  else
    fail("%s: expected tensors for argument 'params', got %s\nhint: net:parameters(), a list of "
      .. "tensors, or a list of groups {params = ...}", title, args.show(given))
  end
end

local function check_parameter(title, p)
  check(lt.is_tensor(p), "%s: expected tensors in argument 'params', got %s%s", title, args.show(p),
    lt.nn.is_module(p) and "\nhint: net:parameters()" or "")
  check(p.is_leaf, "%s: cannot optimize the result of an op: it is not a leaf tensor\n"
    .. "hint: nn.Parameter(x:detach())", title)
end

-- Returns the names of a list as a list, or nil when it has none. Raises an error when some are
-- missing, or when groups of the optimizer are named and others are not.
local function check_names(title, list, names, groups)
  local named = next(names) ~= nil
  for i = 1, #list do
    check((names[i] ~= nil) == named, "%s: expected names for all parameters or for none, got "
      .. "parameter %d %s", title, i, named and "without a name" or "with a name")
  end
  for k, group in ipairs(groups) do
    check((group.param_names ~= nil) == named, "%s: expected names for all groups or for none, "
      .. "got group %d %s", title, k, named and "without names" or "with names")
  end
  return named and names or nil
end

--- Returns the list of the parameters in `given`, and that of their names or nil. Raises an error
-- for an empty list, a tensor that is no leaf, one that occurs twice or is in one of `groups`.
function parameters.list(title, given, groups)
  local list, names, seen = {}, {}, {}
  parameters.read(title, given, list, names)
  check(#list > 0, "%s: expected at least one tensor for argument 'params', got none%s", title,
    type(given) == "function"
      and "\nhint: an iterator ends after one pass: net:parameters() makes a new one; layers in a "
        .. "plain table are not registered: use nn.ModuleList" or "")
  for _, group in ipairs(groups) do
    for _, p in ipairs(group.params) do seen[p] = true end
  end
  for _, p in ipairs(list) do
    check_parameter(title, p)
    check(not seen[p], "%s: expected different tensors in argument 'params', got one twice", title)
    seen[p] = true
  end
  return list, check_names(title, list, names, groups)
end

return parameters
