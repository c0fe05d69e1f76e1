--- Distribution: the base class of distributions.
--
-- A class is made by extend(name, {params = {{"loc", "real"}, {"scale", "positive"}}}): its
-- parameters in order, each with the name of its constraint and an optional default. The
-- constructor broadcasts them to one shape and stores them under their names. Fields that are
-- computed, as d.mean, are functions of the class's table `get`.
--
-- Invariant: each tensor in a field of a distribution has the batch shape first, so that expand
-- needs no code per class.

local lt = require "lutra"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"
local shapes = require "lutra.distributions.shapes"

local check = args.check

local Distribution = {__name = "Distribution", get = {}, params = {}, event_dim = 0}

-- Computed, so that a class may compute them from the distributions that it is made of.
function Distribution.get.has_rsample() return false end
function Distribution.get.has_enumerate_support() return false end

local validates = true

-- Returns the __index of instances: methods of the class, then computed fields.
local function index_by(class)
  return function(self, key)
    local value = class[key]
    if value ~= nil then return value end
    local get = class.get[key]
    if get then return get(self) end
  end
end

local function construct(class, ...)
  local self = setmetatable({}, class)
  self:init(...)
  return self
end

--- Returns a subclass: `local Mine = lt.distributions.Distribution:extend("Mine", {params =
-- {{"loc", "real"}}})`. `options` may also have `support`, the name of a constraint or a
-- constraint, `has_rsample`, `has_enumerate_support` and `event_dim`, the number of dims of an
-- event. Define Mine:rsample(shape) or Mine:sample(shape), Mine:log_prob(value), and fields such as
-- Mine.get.mean, a function of the instance. Raises an error unless `name` is a string.
function Distribution:extend(name, options)
  args.expect(type(name) == "string", "extend", "a string", "name", name)
  local class = {__name = name, __tostring = self.__tostring,
    get = setmetatable({}, {__index = self.get})}
  for key, value in pairs(options or {}) do class[key] = value end
  if type(class.support) == "string" then class.support = constraints[class.support] end
  class.__index = index_by(class)
  class.__names = class -- where __index looks, for completion
  if class.params then
    local list = {}
    for i, param in ipairs(class.params) do list[i] = "any? " .. param[1] .. " = nil, " end
    class.parse = args.signature(name, table.concat(list) .. "bool? validate_args = nil")
  end
  return setmetatable(class, {
    __index = self, __call = construct, __name = "class " .. name,
    __tostring = function() return "class lt.distributions." .. name end,
  })
end

--- Chooses whether distributions check their arguments and values when `validate_args` is nil; they
-- do at first. Raises an error unless `value` is a boolean.
function Distribution.set_default_validate_args(value)
  args.expect(type(value) == "boolean", "set_default_validate_args", "a boolean", "value", value)
  validates = value
end

-- Raises an error unless a value is a number or a tensor.
local function check_argument(self, name, value)
  args.expect(type(value) == "number" or lt.is_tensor(value), self.__name, "a number or a tensor",
    name, value)
end

--- Initializes an instance; the class calls it with the arguments of the constructor. Numbers and
-- tensors are broadcast to one shape.
function Distribution:init(...)
  local given, values = table.pack(self.parse(...)), {}
  for i, param in ipairs(self.params) do
    values[i] = given[i]
    if values[i] == nil then values[i] = param[3] end
    check_argument(self, param[1], values[i])
  end
  for i, tensor in ipairs(#values > 0 and shapes.broadcast(values) or {}) do
    self[self.params[i][1]] = tensor
  end
  local first = self.params[1] and self[self.params[1][1]]
  self:set_shapes(first and first.shape or {}, {}, given[#self.params + 1])
end

--- Reads the arguments of a class with either `probs` or `logits` (its first two parameters after
-- the `before` others) and stores the one that is given. Returns it, and the list of all arguments.
-- Raises an error unless exactly one is given.
function Distribution:read_probs(before, ...)
  local given = table.pack(self.parse(...))
  local probs, logits = given[before + 1], given[before + 2]
  check((probs == nil) ~= (logits == nil),
    "%s: expected one of the arguments 'probs' and 'logits', got %s", self.__name,
    probs == nil and "none" or "both")
  local name = probs ~= nil and "probs" or "logits"
  check_argument(self, name, probs or logits)
  self[name] = shapes.broadcast{probs or logits}[1]
  return self[name], given
end

-- Returns a description of the first value that is not valid.
local function first_wrong(value, valid)
  if tostring(value.shape) ~= tostring(valid.shape) then
    return ("a tensor of shape %s with other values"):format(tostring(value.shape))
  end
  return ("%.6g"):format(value:masked_select(valid:logical_not())[1]:item())
end

-- Raises an error unless a tensor meets a constraint.
local function check_values(title, name, value, constraint)
  local valid = constraint:check(value)
  if not valid:all():item() then
    args.fail("%s: expected %s for argument '%s', got %s", title, tostring(constraint), name,
      first_wrong(value, valid))
  end
end

--- Returns the constraint of a parameter; a class may define its own.
function Distribution.constraint_of(_, param) return param[2] and constraints[param[2]] end

--- Ends an init: stores the shapes, and checks the parameters against their constraints unless
-- `validate_args` is false.
function Distribution:set_shapes(batch_shape, event_shape, validate_args)
  self.batch_shape, self.event_shape = shapes.shape(batch_shape), shapes.shape(event_shape)
  if validate_args == nil then validate_args = validates end
  self.validate_args = validate_args
  if not validate_args then return end
  for _, param in ipairs(self.params) do
    local value, constraint = rawget(self, param[1]), self:constraint_of(param)
    if lt.is_tensor(value) and constraint then
      check_values(self.__name, param[1], value, constraint)
    end
  end
end

--- Returns a new distribution with the batch shape of these sizes, to which that of this one is
-- expanded. Tensors are views.
function Distribution:expand(...)
  local sizes = shapes.read("expand", ...)
  local new, batch = setmetatable({}, getmetatable(self)), #self.batch_shape
  for key, value in pairs(self) do
    if lt.is_tensor(value) then
      value = value:expand(shapes.join(sizes, shapes.part(value.shape, batch + 1, value.ndim)))
    elseif type(value) == "table" and value.batch_shape then
      value = value:expand(shapes.join(sizes, shapes.part(value.batch_shape, batch + 1,
        #value.batch_shape)))
    end
    new[key] = value
  end
  new.batch_shape = shapes.shape(sizes)
  return new
end

--- Returns the sizes of a sample: sample_shape, batch_shape and event_shape, as a list.
function Distribution:extended_shape(sample_shape)
  return shapes.join(sample_shape, self.batch_shape, self.event_shape)
end

--- Returns the sizes of a sample from the arguments of sample: numbers, or one list of sizes.
function Distribution:sample_sizes(...)
  return self:extended_shape(shapes.read(self.__name .. ": sample", ...))
end

-- Returns whether a value of this shape can be broadcast with a batch and its events.
local function fits(value, expected)
  for i = 1, math.min(value.ndim, #expected) do
    local a, b = value.shape[value.ndim + 1 - i], expected[#expected + 1 - i]
    if a ~= b and a ~= 1 and b ~= 1 then return false end
  end
  return true
end

--- Returns `value`, a tensor or a number, as a tensor. Raises an error of `title` when it cannot be
-- broadcast with the distribution or is not in its support.
function Distribution:check_value(title, value)
  local name = self.__name .. ": " .. title
  if type(value) == "number" then
    local like = self:a_tensor()
    value = lt.tensor(value, {dtype = like and like.dtype, device = like and like.device})
  end
  args.expect(lt.is_tensor(value), name, "a tensor or a number", "value", value)
  if not self.validate_args then return value end
  local expected, n = shapes.join(self.batch_shape, self.event_shape), #self.event_shape
  local event = shapes.part(value.shape, value.ndim - n + 1, value.ndim)
  check(value.ndim >= n and tostring(shapes.shape(event)) == tostring(self.event_shape)
    and fits(value, expected),
    "%s: expected a tensor that can be broadcast with %s for argument 'value', got shape %s", name,
    tostring(shapes.shape(expected)), tostring(value.shape))
  local support = self.support
  if support then check_values(name, "value", value, support) end
  return value
end

--- Returns a tensor of the parameters, whose dtype and device samples have, or nil.
function Distribution:a_tensor()
  for _, param in ipairs(self.params) do
    local value = rawget(self, param[1])
    if lt.is_tensor(value) then return value end
  end
end

--- Returns samples without gradients, of shape {sample_shape, batch_shape, event_shape}.
-- `sample_shape` are sizes, as numbers or as one list; none by default.
function Distribution:sample(...)
  return lt.no_grad(self.rsample, self, ...):detach()
end

local function missing(name, what)
  Distribution[name] = function(self)
    args.fail("%s: %s is not available for this distribution", self.__name, what)
  end
end

--- Returns samples through which gradients flow to the parameters. Raises an error for a
-- distribution whose field has_rsample is false.
function Distribution:rsample()
  args.fail("%s: cannot compute gradients of samples\nhint: d:sample()", self.__name)
end

missing("log_prob", "log_prob")
missing("cdf", "cdf")
missing("icdf", "icdf")
missing("entropy", "entropy")
missing("enumerate_support", "enumerate_support")

--- Returns the values of a support as enumerate_support does: along a new first dim, expanded to
-- the batch shape unless `expand` is false.
function Distribution:enumerated(values, expand)
  local ones = {}
  for i = 1, #self.batch_shape do ones[i] = 1 end
  values = values:reshape(shapes.join({values:numel()}, ones))
  if expand == false then return values end
  return values:expand(shapes.join({values:size(1)}, self.batch_shape))
end

--- Returns exp(entropy).
function Distribution:perplexity() return self:entropy():exp() end

--- Returns the standard deviation.
function Distribution.get:stddev() return self.variance:sqrt() end

--- Returns the class and its parameters, with values of one element and otherwise with shapes.
function Distribution:__tostring()
  local list = {}
  for _, param in ipairs(self.params) do
    local value = rawget(self, param[1])
    if lt.is_tensor(value) then
      value = value:numel() == 1 and ("%.6g"):format(value:item()) or tostring(value.shape)
    end
    if value ~= nil then list[#list + 1] = param[1] .. ": " .. tostring(value) end
  end
  return ("%s(%s)"):format(self.__name, table.concat(list, ", "))
end

setmetatable(Distribution, {
  __name = "class Distribution",
  __tostring = function() return "class lt.distributions.Distribution" end,
})

return Distribution
