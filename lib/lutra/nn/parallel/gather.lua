--- nn.parallel.gather: joins the results of several devices on one device; the reverse of scatter.
--
-- Tensors are concatenated along one dimension in the order of the devices, tables value by value;
-- any other value must be equal on all devices.

local lt = require "lutra"
local args = require "lutra.internal.args"

local gather = {}

local function inside_of(path) return path == "" and "" or " in " .. path end

local function fail_different(title, path, what)
  args.fail("%s: cannot gather the results: the replicas give different %s%s\n"
    .. "hint: return tensors, or equal values from each", title,
    what, inside_of(path))
end

local function all_are(list, count, is)
  for i = 1, count do
    if not is(list[i]) then return false end
  end
  return true
end

local function has_no_dims(x) return x.ndim == 0 end

-- Concatenates tensors along `dim`; tensors of 0 dimensions become a vector with one element per
-- device.
local function join(title, tensors, count, device, dim, path)
  local moved = {}
  for i = 1, count do moved[i] = tensors[i]:to{device = device, non_blocking = true} end
  if all_are(moved, count, has_no_dims) then
    warn("nn.parallel.gather: scalars are gathered into a vector with one element for each device; "
      .. "use y:mean() or y:sum()")
    return lt.stack(moved)
  end
  local ndim = moved[1].ndim
  for i = 1, count do
    if has_no_dims(moved[i]) then fail_different(title, path, "numbers of dimensions") end
  end
  if dim > ndim or dim < -ndim then
    args.fail("%s: cannot concatenate results of shape %s%s along dimension %d: it does not exist\n"
      .. "hint: return x:unsqueeze(%d)", title, moved[1].shape, inside_of(path),
      dim, dim)
  end
  return lt.cat(moved, dim)
end

-- Raises an error unless all tables have the same keys.
local function check_keys(title, tables, count, path)
  for i = 2, count do
    for _, pair in ipairs {{tables[1], tables[i]}, {tables[i], tables[1]}} do
      for key in pairs(pair[1]) do
        if pair[2][key] == nil then
          fail_different(title, path, ("tables (%s is in some only)"):format(args.show(key)))
        end
      end
    end
  end
end

local function inside(path, key)
  return path .. (math.type(key) == "integer" and "[%d]" or ".%s"):format(key)
end

-- Joins values[1..count], some of which may be nil, to one value. `made` maps a table to its
-- result, for tables that occur more than once.
local function merge(title, values, count, device, dim, path, made)
  local first = values[1]
  if all_are(values, count, lt.is_tensor) then
    return join(title, values, count, device, dim, path)
  elseif all_are(values, count, args.is_plain) then
    if made[first] then return made[first] end
    check_keys(title, values, count, path)
    local result = {}
    made[first] = result
    for key in pairs(first) do
      local inner = {}
      for i = 1, count do inner[i] = values[i][key] end
      result[key] = merge(title, inner, count, device, dim, inside(path, key), made)
    end
    return result
  end
  for i = 2, count do
    if values[i] ~= first then fail_different(title, path, "values") end
  end
  return first
end

--- Joins values[1..count] to one value, with its tensors on `device` (a full name). Errors name the
-- value's path below `path`.
function gather.value(title, values, count, device, dim, path)
  return merge(title, values, count, device, dim, path, {})
end

local parse = args.signature("gather", "list outputs, device target_device, int dim = 1")

--- Joins a list of outputs, one per device, to one value on `target_device`: tensors are
-- concatenated along `dim`, scalars become a vector, tables are joined value by value. Gradients
-- flow back to `outputs`. Raises an error for an empty list, for outputs of different structure,
-- and for unequal values that are no tensors.
function gather.gather(...)
  local outputs, device, dim = parse(...)
  args.check(#outputs > 0, "gather: expected at least one output for argument 'outputs', got none")
  return gather.value("gather", outputs, #outputs, lt.device(device), dim, "")
end

return gather
