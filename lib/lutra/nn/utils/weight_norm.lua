--- nn.utils.weight_norm and spectral_norm: reparametrizations by a hook before forward. The newer
-- ones are in nn.utils.parametrizations.

local lt = require "lutra"
local args = require "lutra.internal.args"
local hooks = require "lutra.nn.module.hooks"
local norms = require "lutra.nn.utils.norms"
local walking = require "lutra.nn.module.walking"

local reparametrized = {}

-- Puts the parameter `new` in the place of the parameters and buffers `names`.
local function restore(module, name, names, new)
  local state = walking.state_of(module)
  for _, other in ipairs(names) do
    walking.unregister(state, other)
    state.fields[other] = nil
  end
  state.fields[name] = nil
  module:register_parameter(name, new)
end

-- Makes the field `name` an ordinary one.
local function take_out(module, name)
  local state = walking.state_of(module)
  walking.unregister(state, name)
  state.fields[name] = nil
end

-- Adds the hook update(module, tag), which runs before forward.
local function attach(title, module, tag, update)
  local other = hooks.tagged(module, "forward_pre", function(existing)
    return existing.title == title and existing.name == tag.name
  end)
  args.check(not other, '%s: cannot register two hooks on the same parameter "%s"', title, tag.name)
  tag.title = title
  hooks.add(walking.state_of(module), "forward_pre", function(m) update(m, tag) end, false, false,
    tag)
end

-- Removes such a hook; returns its tag.
local function detach(title, kind, module, name)
  args.expect(lt.nn.is_module(module), title, "a module", "module", module)
  local tag, remove = hooks.tagged(module, "forward_pre", function(tag)
    return tag.title == kind and tag.name == name
  end)
  args.check(tag, '%s: expected the name of a tensor with %s in %s for argument \'name\', got "%s"',
    title, kind, module:type_name(), name)
  remove()
  return tag
end

-- ---- weight_norm --------------------------------------------------------------------

local parse_weight = args.signature("weight_norm",
  "any module, string name = 'weight', any? dim = nil")
local parse_remove_weight = args.signature("remove_weight_norm",
  "any module, string name = 'weight'")

local function set_weight(module, tag)
  module[tag.name] = norms.weight(module[tag.name .. "_g"], module[tag.name .. "_v"], tag.dim)
end

--- Replaces the parameter `name` of a module by its length name_g and its direction name_v, from
-- which each call computes name = g v / |v|; returns the module. The length is that of each index
-- of dimension `dim`, or with dim = false of the whole tensor.
-- nn.utils.parametrizations.weight_norm is its successor. Raises an error when the parameter does
-- not exist or has weight_norm already (Salimans and Kingma 2016).
function reparametrized.weight_norm(...)
  local module, name, dim = parse_weight(...)
  local weight = norms.tensor_of("weight_norm", module, name)
  if dim == nil then dim = 1 end
  dim = norms.dim("weight_norm", dim, weight)
  local tag = {name = name, dim = dim}
  attach("weight_norm", module, tag, set_weight)
  take_out(module, name)
  weight = weight:detach()
  module:register_parameter(name .. "_g", lt.nn.Parameter(norms.except(weight, dim)))
  module:register_parameter(name .. "_v", lt.nn.Parameter(weight))
  set_weight(module, tag)
  return module
end

--- Removes nn.utils.weight_norm: the parameter `name` gets its current value; returns the module.
-- Raises an error when the parameter has none.
function reparametrized.remove_weight_norm(...)
  local module, name = parse_remove_weight(...)
  local tag = detach("remove_weight_norm", "weight_norm", module, name)
  local g, v = name .. "_g", name .. "_v"
  local value = norms.weight(module[g]:detach(), module[v]:detach(), tag.dim)
  restore(module, name, {g, v}, lt.nn.Parameter(value))
  return module
end

-- ---- spectral_norm ------------------------------------------------------------------

local parse_spectral = args.signature("spectral_norm", "any module, string name = 'weight', "
  .. "int(>=1) n_power_iterations = 1, float eps = 1e-12, int? dim = nil")
local parse_remove_spectral = args.signature("remove_spectral_norm",
  "any module, string name = 'weight'")

local function spectral_weight(module, tag, iterations)
  local weight = module[tag.name .. "_orig"]
  local u, v = module[tag.name .. "_u"], module[tag.name .. "_v"]
  local matrix = norms.matrix(weight, tag.dim)
  norms.iterate(matrix, u, v, iterations, tag.eps, true)
  return weight / norms.spectral(matrix, u, v)
end

local function set_spectral(module, tag)
  module[tag.name] = spectral_weight(module, tag, module.training and tag.iterations or 0)
end

--- Replaces the parameter `name` of a module by name_orig, from which each call computes name =
-- name_orig / s, with an estimate s of its largest singular value; returns the module. The weight
-- is seen as a matrix whose rows are the indices of `dim` (1, for transposed convolutions 2). Each
-- call in training mode does n_power_iterations of the power method on the buffers name_u and
-- name_v. nn.utils.parametrizations.spectral_norm is its successor. Raises an error when the
-- parameter does not exist or has spectral_norm already (Miyato et al. 2018).
function reparametrized.spectral_norm(...)
  local module, name, iterations, eps, dim = parse_spectral(...)
  local weight = norms.tensor_of("spectral_norm", module, name)
  dim = norms.dim("spectral_norm", dim or norms.default_dim(module), weight)
  local tag = {name = name, dim = dim, iterations = iterations, eps = eps}
  attach("spectral_norm", module, tag, set_spectral)
  take_out(module, name)
  local matrix = norms.matrix(weight:detach(), dim)
  module:register_parameter(name .. "_orig", weight)
  module[name] = weight:detach()
  module:register_buffer(name .. "_u", norms.random_vector(matrix, matrix:size(1), eps))
  module:register_buffer(name .. "_v", norms.random_vector(matrix, matrix:size(2), eps))
  return module
end

--- Removes nn.utils.spectral_norm: the parameter `name` gets its current value; returns the module.
-- Raises an error when the parameter has none.
function reparametrized.remove_spectral_norm(...)
  local module, name = parse_remove_spectral(...)
  local tag = detach("remove_spectral_norm", "spectral_norm", module, name)
  local value = lt.no_grad(function() return spectral_weight(module, tag, 0) end)
  restore(module, name, {name .. "_orig", name .. "_u", name .. "_v"}, lt.nn.Parameter(value))
  return module
end

return reparametrized
