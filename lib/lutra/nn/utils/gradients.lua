--- nn.utils: norms and limits of gradients, and parameters as one vector.

local lt = require "lutra"
local args = require "lutra.internal.args"
local core = require "lutra.core"
local Module = require "lutra.nn.module"
local walking = require "lutra.nn.module.walking"

local is_tensor, is_complex = core.is_tensor, core.is_complex

local gradients = {}

-- Returns a list of tensors from a tensor, a list, or an iterator such as m:parameters(). Raises
-- an error for any other value.
local function to_list(title, parameters)
  if lt.is_tensor(parameters) then return {parameters} end
  if Module.is_module(parameters) then
    args.fail("%s: expected tensors for argument 'parameters', got %s\nhint: net:parameters()",
      title, args.show(parameters))
  end
  walking.check_called(title, "parameters", parameters)
  local list = {}
  local function add(p)
    if not is_tensor(p) then
      args.fail("%s: expected a tensor for argument 'parameters[%d]', got %s", title, #list + 1,
        args.show(p))
    end
    list[#list + 1] = p
  end
  if args.is_callable(parameters) then
    for p in parameters do add(p) end
  else
    args.expect(type(parameters) == "table", title, "tensors", "parameters", parameters)
    for _, p in ipairs(parameters) do add(p) end
  end
  return list
end

-- Returns the arguments of a call f{x, y, option = z} whose only parameter in the list is a list:
-- {x, y}, {option = z}; those of any other call unchanged.
local function with_list(first, ...)
  local is_list = select("#", ...) == 0 and args.is_plain(first)
    and (next(first) == nil or lt.is_tensor(first[1]))
  if not is_list then return first, ... end
  local list, options = {}, {}
  for key, value in pairs(first) do
    if math.type(key) == "integer" then list[key] = value else options[key] = value end
  end
  return list, options
end

-- Returns the list of the gradients of `parameters`; those without one are left out.
local function gradients_of(title, parameters)
  local list, found = to_list(title, parameters), {}
  for i = 1, #list do found[#found + 1] = list[i].grad end
  return found
end

local function norm_of(x, norm_type)
  return core._ops._norm(is_complex(x) and x:abs() or x, nil, nil, norm_type)
end

-- Returns the norms of tensors, on the device of the first one: a model may be on several.
local function norms_of(list, norm_type)
  local norms, device = {}, list[1].device
  for i = 1, #list do
    local n = norm_of(list[i], norm_type)
    norms[i] = n.device == device and n or n:to(device)
  end
  return norms
end

-- `foreach` has no effect.
local parse_total = args.signature("get_total_norm",
  "any tensors, float norm_type = 2, bool error_if_nonfinite = false, bool? foreach = nil")
local parse_scale = args.signature("clip_grads_with_norm_",
  "any parameters, float max_norm, Tensor total_norm, bool? foreach = nil")
local parse_clip = args.signature("clip_grad_norm_", "any parameters, float max_norm, "
  .. "float norm_type = 2, bool error_if_nonfinite = false, bool? foreach = nil")

local function total_norm(title, list, norm_type, error_if_nonfinite)
  if #list == 0 then return lt.tensor(0.0) end
  return lt.no_grad(function()
    local total = norm_of(lt.stack(norms_of(list, norm_type)), norm_type)
    if error_if_nonfinite and not total:isfinite():item() then
      args.fail("%s: expected finite values, got a norm of order %g that is %s\n"
        .. "hint: error_if_nonfinite = false", title, norm_type, tostring(total:item()))
    end
    return total
  end)
end

local function scale_by(list, max_norm, total)
  lt.no_grad(function()
    -- Always multiply, by 1 at most: a branch would synchronize with the device.
    local scale, device = (max_norm / (total + 1e-6)):clamp{max = 1}, total.device
    for i = 1, #list do
      local g = list[i]
      if g.device ~= device then
        device = g.device
        scale = scale:to(device)
      end
      g:mul_(scale)
    end
  end)
end

--- Returns the norm of all tensors together, as if they were one vector: a tensor of 0 dimensions
-- on the first one's device. `tensors` is a tensor, a list or an iterator. With
-- error_if_nonfinite, a norm that is infinite or NaN raises an error, for which the host blocks.
function gradients.get_total_norm(...)
  local tensors, norm_type, error_if_nonfinite = parse_total(with_list(...))
  return total_norm("get_total_norm", to_list("get_total_norm", tensors), norm_type,
    error_if_nonfinite)
end

--- Multiplies the gradients of `parameters` in place by max_norm / total_norm, where that is less
-- than 1. Parameters without a gradient are skipped.
function gradients.clip_grads_with_norm_(...)
  local parameters, max_norm, total = parse_scale(...)
  scale_by(gradients_of("clip_grads_with_norm_", parameters), max_norm, total)
end

--- Scales the gradients of `parameters` (a tensor, a list, or an iterator such as m:parameters())
-- in place so that the norm of all of them together is at most max_norm. Returns the norm before
-- scaling, a tensor of 0 dimensions on the first gradient's device. Parameters without a gradient
-- are skipped. With error_if_nonfinite, a norm that is infinite or NaN raises an error, for which
-- the host blocks; the gradients are then unchanged. (Pascanu, Mikolov, Bengio 2013)
function gradients.clip_grad_norm_(...)
  local parameters, max_norm, norm_type, error_if_nonfinite = parse_clip(...)
  local list = gradients_of("clip_grad_norm_", parameters)
  local total = total_norm("clip_grad_norm_", list, norm_type, error_if_nonfinite)
  scale_by(list, max_norm, total)
  return total
end

local parse_value = args.signature("clip_grad_value_",
  "any parameters, float clip_value, bool? foreach = nil")

--- Clamps every element of the gradients of `parameters` in place to -clip_value..clip_value.
-- Parameters without a gradient are skipped.
function gradients.clip_grad_value_(...)
  local parameters, limit = parse_value(...)
  local list = gradients_of("clip_grad_value_", parameters)
  lt.no_grad(function()
    for i = 1, #list do list[i]:clamp_(-limit, limit) end
  end)
end

-- Returns the tensors of a list; raises an error unless all are on one device.
local function on_one_device(title, parameters)
  local list = to_list(title, parameters)
  args.check(#list > 0, "%s: expected at least one tensor for argument 'parameters', got none",
    title)
  for i, p in ipairs(list) do
    args.check(p.device == list[1].device, "%s: expected all parameters on one device, got "
      .. "parameter 1 on %s and parameter %d on %s", title, list[1].device, i, p.device)
  end
  return list
end

local parse_to_vector = args.signature("parameters_to_vector", "any parameters")
local parse_from_vector = args.signature("vector_to_parameters", "Tensor vec, any parameters")

--- Returns one vector with the elements of all parameters in order; gradients flow through it.
-- Raises an error for parameters on different devices.
function gradients.parameters_to_vector(...)
  local pieces = {}
  for i, p in ipairs(on_one_device("parameters_to_vector", (parse_to_vector(with_list(...))))) do
    pieces[i] = p:reshape(-1)
  end
  return lt.cat(pieces)
end

--- Makes the elements of the vector `vec`, in order, the values of the parameters, which then share
-- its memory. Raises an error for a vector that is too short, and for parameters on different
-- devices.
function gradients.vector_to_parameters(...)
  local vec, parameters = parse_from_vector(...)
  local list, count = on_one_device("vector_to_parameters", parameters), 0
  for _, p in ipairs(list) do count = count + p:numel() end
  args.check(vec.ndim == 1 and vec:numel() >= count, "vector_to_parameters: expected a vector of "
    .. "%d elements for argument 'vec', got shape %s", count, vec.shape)
  local first = 1
  for _, p in ipairs(list) do
    p:set_data(vec:detach():narrow(1, first, p:numel()):view(p.shape))
    first = first + p:numel()
  end
end

return gradients
