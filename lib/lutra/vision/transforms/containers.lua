--- Transforms that call other transforms: in order, at random, one of them.

local args = require "lutra.internal.args"
local transform = require "lutra.vision.transforms.transform"

local containers = {}

-- Checks the list of transforms: functions and callable objects.
local function check_list(self)
  for i, t in ipairs(self.transforms) do
    args.check(args.is_callable(t), "%s: expected a transform or a function in entry %d of "
      .. "argument 'transforms', got %s", self:type_name(), i, args.show(t))
  end
end

-- Prints each transform on a line of its own; `option` is the field printed after them.
local function print_list(class, option)
  function class:extra_repr()
    local lines = {}
    for i, t in ipairs(self.transforms) do
      local text = type(t) == "function" and "function" or tostring(t)
      lines[i] = "    " .. text:gsub("\n", "\n    ")
    end
    if option and self[option] then
      lines[#lines + 1] = ("    %s=%s"):format(option, tostring(self[option]))
    end
    return "\n" .. table.concat(lines, "\n") .. "\n"
  end
  return class
end

--- transforms.Compose{a, b, ...}: calls transforms and functions one after the other. A call with
-- further arguments, compose(img, label), passes them to each; what it returns replaces them.
containers.Compose = print_list(transform.define("Compose", "list transforms", nil, check_list))

function containers.Compose:forward(...)
  local values = table.pack(...)
  for _, t in ipairs(self.transforms) do
    local results = table.pack(t(table.unpack(values, 1, values.n)))
    table.move(results, 1, results.n, 1, values)
    values.n = math.max(values.n, results.n)
  end
  return table.unpack(values, 1, values.n)
end

--- transforms.RandomApply({a, b, ...}, p = 0.5): calls all transforms, in order, with probability
-- p.
containers.RandomApply = print_list(transform.define_random("RandomApply",
  "list transforms, float p = 0.5", function(self, img)
    for _, t in ipairs(self.transforms) do img = t(img) end
    return img
  end, check_list), "p")

--- transforms.RandomChoice({a, b, ...}, p = nil): calls one of the transforms, with probabilities
-- in proportion to the numbers of the list p, equal ones by default.
containers.RandomChoice = print_list(transform.define("RandomChoice",
  "list transforms, floats? p = nil", function(self, img)
    local weights = self.p or {}
    local total = 0
    for i = 1, #self.transforms do total = total + (weights[i] or 1) end
    local rest = transform.uniform(0, total)
    for i, t in ipairs(self.transforms) do
      rest = rest - (weights[i] or 1)
      if rest < 0 or i == #self.transforms then return (t(img)) end
    end
    return img
  end, function(self)
    check_list(self)
    args.check(not self.p or #self.p == #self.transforms,
      "RandomChoice: expected %d numbers for argument 'p', got %d", #self.transforms,
      self.p and #self.p or 0)
  end))

--- transforms.RandomOrder{a, b, ...}: calls all transforms in random order.
containers.RandomOrder = print_list(transform.define("RandomOrder", "list transforms",
  function(self, img)
    for _, k in ipairs(transform.order(#self.transforms)) do
      img = self.transforms[k](img)
    end
    return img
  end, check_list))

return containers
