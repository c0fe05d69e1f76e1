--- Transforms composed of others.

local lt = require "lutra"
local Transform = require "lutra.distributions.transform"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"
local shapes = require "lutra.distributions.shapes"

local transforms = {}

local function is_transform(x)
  return type(x) == "table" and getmetatable(getmetatable(x)) ~= nil
    and x.log_abs_det_jacobian ~= nil and type(x.domain) == "table"
    and math.type(x.domain.event_dim) == "integer"
end

-- Raises an error unless `list` has transforms only.
local function check_list(title, name, list)
  for i, each in ipairs(list) do
    args.expect(is_transform(each), title, "a transform", ("%s[%d]"):format(name, i), each)
  end
end

-- Returns a constraint for events of `event_dim` dims.
local function raised(constraint, event_dim)
  local more = event_dim - constraint.event_dim
  return more > 0 and constraints.independent(constraint, more) or constraint
end

--- lt.distributions.transforms.ComposeTransform(parts): the transforms of a list, one after the
-- other.
local Compose = Transform:extend "ComposeTransform"
transforms.ComposeTransform = Compose
local parse_compose = args.signature("ComposeTransform", "list parts")

function Compose:init(...)
  self.parts = parse_compose(...)
  check_list("ComposeTransform", "parts", self.parts)
  self.parameters, self.bijective, self.sign = self.parts, true, 1
  local first, last = self.parts[1], self.parts[#self.parts]
  if not first then return end
  local inner, outer = last.codomain.event_dim, first.domain.event_dim
  for i = #self.parts, 1, -1 do
    local part = self.parts[i]
    inner = math.max(inner + part.domain.event_dim - part.codomain.event_dim,
      part.domain.event_dim)
  end
  for _, part in ipairs(self.parts) do
    outer = math.max(outer + part.codomain.event_dim - part.domain.event_dim,
      part.codomain.event_dim)
    self.bijective = self.bijective and part.bijective
    self.sign = self.sign and part.sign and self.sign * part.sign
  end
  self.domain, self.codomain = raised(first.domain, inner), raised(last.codomain, outer)
end

function Compose:forward(x)
  for _, part in ipairs(self.parts) do x = part(x) end
  return x
end
function Compose:inverse(y)
  for i = #self.parts, 1, -1 do y = self.parts[i]:inverse(y) end
  return y
end
function Compose:log_abs_det_jacobian(x)
  if #self.parts == 0 then return lt.zeros_like(x) end
  local sum, event_dim = 0, self.domain.event_dim
  for _, part in ipairs(self.parts) do
    local y = part(x)
    sum = sum + shapes.sum_last(part:log_abs_det_jacobian(x, y), event_dim - part.domain.event_dim)
    event_dim = event_dim + part.codomain.event_dim - part.domain.event_dim
    x = y
  end
  return sum
end
function Compose:forward_shape(shape)
  for _, part in ipairs(self.parts) do shape = part:forward_shape(shape) end
  return shape
end
function Compose:inverse_shape(shape)
  for i = #self.parts, 1, -1 do shape = self.parts[i]:inverse_shape(shape) end
  return shape
end
function Compose:equals(other)
  if type(other) ~= "table" or not is_transform(other) or other.forward ~= Compose.forward
      or #other.parts ~= #self.parts then
    return false
  end
  for i, part in ipairs(self.parts) do
    if not part:equals(other.parts[i]) then return false end
  end
  return true
end

-- lt.distributions.transforms.identity_transform: y = x, its own inverse.
local Identity = Compose:extend("ComposeTransform",
  {parts = {}, parameters = {}, bijective = true, sign = 1})
function Identity.init() end
Identity.inv = Identity()
transforms.identity_transform = Identity.inv

--- lt.distributions.transforms.IndependentTransform(base_transform, reinterpreted_batch_ndims): a
-- transform whose Jacobian is summed over the last dims, too.
local Independent = Transform:extend "IndependentTransform"
transforms.IndependentTransform = Independent
local parse_independent = args.signature("IndependentTransform",
  "any base_transform, int(>=0) reinterpreted_batch_ndims")

function Independent:init(...)
  local base, n = parse_independent(...)
  args.expect(is_transform(base), "IndependentTransform", "a transform", "base_transform", base)
  self.base_transform, self.reinterpreted_batch_ndims, self.parameters = base, n, {base}
  self.domain = raised(base.domain, base.domain.event_dim + n)
  self.codomain = raised(base.codomain, base.codomain.event_dim + n)
  self.bijective, self.sign = base.bijective, base.sign
end
function Independent:forward(x) return self.base_transform(x) end
function Independent:inverse(y) return self.base_transform:inverse(y) end
function Independent:log_abs_det_jacobian(x, y)
  return shapes.sum_last(self.base_transform:log_abs_det_jacobian(x, y),
    self.reinterpreted_batch_ndims)
end
function Independent:forward_shape(shape) return self.base_transform:forward_shape(shape) end
function Independent:inverse_shape(shape) return self.base_transform:inverse_shape(shape) end

--- lt.distributions.transforms.StackTransform(tseq, {dim = 1}): the i-th transform of a list for
-- the i-th slice along dim.
local Stack = Transform:extend "StackTransform"
transforms.StackTransform = Stack
local parse_stack = args.signature("StackTransform", "list tseq, dim dim = 1")

function Stack:init(...)
  self.transforms, self.dim = parse_stack(...)
  check_list("StackTransform", "tseq", self.transforms)
  self.parameters, self.bijective = self.transforms, true
  for _, each in ipairs(self.transforms) do self.bijective = self.bijective and each.bijective end
end

-- Returns the stack of fn(transform, slice...) for the slices of tensors.
local function by_slices(self, fn, x, y)
  args.check(x:size(self.dim) == #self.transforms,
    "StackTransform: expected size %d in dimension %d, got %s", #self.transforms, self.dim,
    x.shape)
  local list = {}
  for i, each in ipairs(self.transforms) do
    list[i] = fn(each, x:select(self.dim, i), y and y:select(self.dim, i))
  end
  return lt.stack(list, self.dim)
end
function Stack:forward(x) return by_slices(self, function(t, slice) return t(slice) end, x) end
function Stack:inverse(y)
  return by_slices(self, function(t, slice) return t:inverse(slice) end, y)
end
function Stack:log_abs_det_jacobian(x, y)
  return by_slices(self, function(t, a, b) return t:log_abs_det_jacobian(a, b) end, x, y)
end

--- lt.distributions.transforms.CatTransform(tseq, {dim = 1, lengths = nil}): the i-th transform of
-- a list for the next lengths[i] elements along dim, by default one each.
local Cat = Transform:extend "CatTransform"
transforms.CatTransform = Cat
local parse_cat = args.signature("CatTransform", "list tseq, dim dim = 1, ints? lengths = nil")

function Cat:init(...)
  local list, dim, lengths = parse_cat(...)
  check_list("CatTransform", "tseq", list)
  self.transforms, self.dim, self.length, self.event_dim = list, dim, 0, 0
  self.lengths = shapes.lengths("CatTransform", #list, lengths)
  self.parameters, self.bijective = list, true
  local domains, codomains = {}, {}
  for i, each in ipairs(list) do
    self.bijective = self.bijective and each.bijective
    self.length = self.length + self.lengths[i]
    self.event_dim = math.max(self.event_dim, each.domain.event_dim, each.codomain.event_dim)
    domains[i], codomains[i] = each.domain, each.codomain
  end
  self.domain = constraints.cat(domains, dim, self.lengths)
  self.codomain = constraints.cat(codomains, dim, self.lengths)
end

-- Returns the list of fn(transform, part...) for the parts of tensors.
local function by_parts(self, fn, x, y)
  args.check(x:size(self.dim) == self.length,
    "CatTransform: expected size %d in dimension %d, got %s", self.length, self.dim,
    x.shape)
  local list, first = {}, 1
  for i, each in ipairs(self.transforms) do
    local length = self.lengths[i]
    list[i] = fn(each, x:narrow(self.dim, first, length), y and y:narrow(self.dim, first, length))
    first = first + length
  end
  return list
end
function Cat:forward(x)
  return lt.cat(by_parts(self, function(t, part) return t(part) end, x), self.dim)
end
function Cat:inverse(y)
  return lt.cat(by_parts(self, function(t, part) return t:inverse(part) end, y), self.dim)
end
function Cat:log_abs_det_jacobian(x, y)
  local list = by_parts(self, function(t, a, b)
    return shapes.sum_last(t:log_abs_det_jacobian(a, b), self.event_dim
      - math.max(t.domain.event_dim, t.codomain.event_dim))
  end, x, y)
  local dim = self.dim > 0 and self.dim - x.ndim - 1 or self.dim
  dim = dim + self.event_dim
  if dim < 0 then return lt.cat(list, dim) end
  local sum = list[1]
  for i = 2, #list do sum = sum + list[i] end
  return sum
end

return transforms
