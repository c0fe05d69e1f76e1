--- nn.parallel.gather: what several devices computed, on one of them.
--
-- Idea: the reverse of scatter. Tensors are put together along one dimension, in the order of the
-- devices; tables value by value; what is no tensor must be the same from each device.

local lt = require "lutra"
local args = require "lutra.internal.args"

local gather = {}

local function inside_of(path) return path == "" and "" or " in " .. path end

local function fail_different(title, path, what)
  args.fail("%s: the replicas give different %s%s: return tensors, or the same from each", title,
    what, inside_of(path))
end

local function all_are(list, count, is)
  for i = 1, count do
    if not is(list[i]) then return false end
  end
  return true
end

local function has_no_dims(x) return x.ndim == 0 end

-- Tensors of 0 dimensions become a vector, one element for each device.
local function join(title, tensors, count, device, dim, path)
  local moved = {}
  for i = 1, count do moved[i] = tensors[i]:to{device = device, non_blocking = true} end
  if all_are(moved, count, has_no_dims) then
    warn("nn.parallel.gather: scalars are gathered into a vector, one element for each device; "
      .. "take their mean or sum")
    return lt.stack(moved)
  end
  local ndim = moved[1].ndim
  for i = 1, count do
    if has_no_dims(moved[i]) then fail_different(title, path, "numbers of dimensions") end
  end
  if dim > ndim or dim < -ndim then
    args.fail("%s: results of shape %s%s cannot be put together along dimension %d: return them "
      .. "with that dimension, x:unsqueeze(%d)", title, tostring(moved[1].shape), inside_of(path),
      dim, dim)
  end
  return lt.cat(moved, dim)
end

-- Every key that a table of the list has must be in all of them.
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

-- values[1..count] as one value; some may be nil.
local function put_together(title, values, count, device, dim, path, made)
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
      result[key] = put_together(title, inner, count, device, dim, inside(path, key), made)
    end
    return result
  end
  for i = 2, count do
    if values[i] ~= first then fail_different(title, path, "values") end
  end
  return first
end

--- One value of values[1..count], with its tensors on a device whose full name is given. An error
-- says where it is below `path`.
function gather.value(title, values, count, device, dim, path)
  return put_together(title, values, count, device, dim, path, {})
end

local parse = args.signature("gather", "list outputs, device target_device, int dim = 1")

--- nn.parallel.gather(outputs, target_device, dim = 1): one value of a list of them, one from each
-- device: tensors put together along `dim`, scalars as a vector, tables value by value. Gradients
-- flow back to `outputs`.
function gather.gather(...)
  local outputs, device, dim = parse(...)
  args.check(#outputs > 0, "gather: there are no outputs")
  return gather.value("gather", outputs, #outputs, lt.device(device), dim, "")
end

return gather
