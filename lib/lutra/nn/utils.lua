--- nn.utils: gradient clipping, and construction without initialization.

local lt = require "lutra"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"

local utils = {}

-- Returns a list of tensors from a tensor, a list, or an iterator such as m:parameters(). Raises
-- an error for any other value.
local function to_list(title, parameters)
  if lt.is_tensor(parameters) then return {parameters} end
  local list = {}
  local function add(p)
    args.check(lt.is_tensor(p),
      "%s: expected a tensor for argument 'parameters[%d]', got %s",
      title, #list + 1, args.show(p))
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

local parse_clip = args.signature("clip_grad_norm_",
  "any parameters, float max_norm, float norm_type = 2")

--- Scales the gradients of `parameters` (a tensor, a list, or an iterator such as m:parameters())
-- in place so that the norm of all of them together is at most max_norm. Returns the norm before
-- scaling, a tensor of 0 dimensions on the first gradient's device. Parameters without a gradient
-- are skipped. (Pascanu, Mikolov, Bengio 2013)
function utils.clip_grad_norm_(...)
  local parameters, max_norm, norm_type = parse_clip(...)
  local gradients = {}
  for _, p in ipairs(to_list("clip_grad_norm_", parameters)) do
    if p.grad then gradients[#gradients + 1] = p.grad end
  end
  if #gradients == 0 then return lt.tensor(0.0) end
  return lt.no_grad(function()
    local norms = {}
    local first = gradients[1].device -- a model may be spread over several
    for i, g in ipairs(gradients) do norms[i] = g:norm(norm_type):to(first) end
    local total = lt.stack(norms):norm(norm_type)
    -- Always multiply, by 1 at most: a branch would synchronize with the device.
    local scale = (max_norm / (total + 1e-6)):clamp{max = 1}
    for _, g in ipairs(gradients) do g:mul_(scale:to(g.device)) end
    return total
  end)
end

local parse_value = args.signature("clip_grad_value_", "any parameters, float clip_value")

--- Clamps every element of the gradients of `parameters` in place to -clip_value..clip_value.
-- Parameters without a gradient are skipped.
function utils.clip_grad_value_(...)
  local parameters, limit = parse_value(...)
  for _, p in ipairs(to_list("clip_grad_value_", parameters)) do
    if p.grad then lt.no_grad(function() p.grad:clamp_(-limit, limit) end) end
  end
end

--- Makes a module of `class` without initializing its parameters: builds it on "meta" with the
-- other arguments, then gives it uninitialized memory on the device among them (or the default
-- one): `nn.skip_init(nn.Linear, 4096, 4096, {device = "cuda"})`. Raises an error when `class` is
-- no module class.
function utils.skip_init(class, ...)
  args.expect(type(class) == "table" and args.is_callable(class), "skip_init",
    "a class of modules", "class", class)
  local given, device = table.pack(...), nil
  local options = given[given.n]
  if args.is_plain(options) and options.device ~= nil then
    local rest = {}
    for key, value in pairs(options) do rest[key] = value end
    device, rest.device = options.device, nil
    given[given.n] = rest
  end
  device = lt.device(device or lt.get_default_device())
  local module = lt.with_device("meta", class, table.unpack(given, 1, given.n))
  args.check(lt.nn.is_module(module), "skip_init: expected a module from %s, got %s",
    args.show(class), args.show(module))
  return module:to_empty(device)
end

return strict_table.strict(utils, "nn.utils")
