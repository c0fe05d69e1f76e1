--- The base of the transforms of lt.vision.transforms: a class from a signature and a function.
--
-- A transform is a module without parameters: a callable object that prints its options, which can
-- also be part of nn.Sequential. transform(img, ...) returns the transformed image and its further
-- arguments unchanged (labels). Random transforms draw from the default generator of the CPU, which
-- lt.manual_seed seeds.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"

local transform = {}

-- Returns an option as text: a number, a string, a list, a boolean, a transform.
local function text_of(value)
  if type(value) == "string" then return ("%q"):format(value) end
  if type(value) == "function" then return "function" end
  if not args.is_plain(value) then return tostring(value) end
  local parts = {}
  for i, v in ipairs(value) do parts[i] = text_of(v) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local here = debug.getinfo(1, "S").source

-- Returns the chunk that calls this file: that of the class, for help.
local function calling_chunk()
  local level, source = 2, here
  while source == here or source == "=[C]" do
    level = level + 1
    source = debug.getinfo(level, "S").source
  end
  return source
end

--- Returns the class of a transform. `signature` declares its options, which become fields and are
-- printed in this order; apply(self, img) returns the result; check(self), optional, checks and
-- completes the options.
function transform.define(name, signature, apply, check)
  local class = Module:extend(name)
  class.__chunk = calling_chunk()
  local parse, options = args.signature(name, signature), {}
  for _, parameter in ipairs((args.describe(parse))) do options[#options + 1] = parameter.name end

  function class:init(...)
    local values = table.pack(parse(...))
    for i, option in ipairs(options) do self[option] = values[i] end
    if check then check(self) end
  end

  function class:forward(img, ...) return apply(self, img), ... end

  function class:extra_repr()
    local parts = {}
    for _, option in ipairs(options) do
      local value = self[option]
      if value ~= nil then parts[#parts + 1] = option .. "=" .. text_of(value) end
    end
    return table.concat(parts, ", ")
  end

  return class
end

--- Returns the class of a transform that calls apply(self, img) with probability self.p.
function transform.define_random(name, signature, apply, check)
  return transform.define(name, signature, function(self, img)
    if transform.uniform(0, 1) >= self.p then return img end
    return apply(self, img)
  end, function(self)
    args.check(self.p >= 0 and self.p <= 1,
      "%s: expected a probability from 0 to 1 for argument 'p', got %g", name, self.p)
    if check then check(self) end
  end)
end

--- Returns a random number from low to high.
function transform.uniform(low, high)
  return low + (high - low) * lt.rand(1, {device = "cpu"}):item()
end

--- Returns a random integer from 0 to last.
function transform.offset(last)
  return last > 0 and lt.randint(0, last, {1}, {device = "cpu"}):item() or 0
end

--- Returns the list of the integers from 1 to n in random order.
function transform.order(n) return lt.randperm(n, {device = "cpu"}):totable() end

--- Returns x rounded to an integer.
function transform.round(x) return math.tointeger((x + 0.5) // 1) end

--- Checks that self[option] is {low, high}; a number r becomes {center - r, center + r}.
function transform.check_range(self, option, center)
  local value, name = self[option], self:type_name()
  if value == nil then return end
  if type(value) == "number" then
    args.check(value >= 0, "%s: expected a number of at least 0 for argument '%s', got %g", name,
      option, value)
    value = {center - value, center + value}
    self[option] = value
  end
  args.check(#value == 2 and value[1] <= value[2],
    "%s: expected a number or {low, high} for argument '%s', got %s", name, option, text_of(value))
end

return transform
