--- Definition of layers that are a function and its options.
--
-- A class is its name, the signature of its options, and the function that computes it. Invariant:
-- each option is the field of its name; one that is a tensor is a buffer, the others are printed in
-- the order of the signature.

local lt = require "lutra"
local args = require "lutra.internal.args"
local numbers = require "lutra.internal.numbers"
local Module = require "lutra.nn.module"
local F = require "lutra.nn.functional"

local layers = {}

local here = debug.getinfo(1, "S").source

-- Returns the source of the nearest caller outside of this file.
local function calling_chunk()
  local level, source = 2, here
  while source == here do
    level = level + 1
    source = debug.getinfo(level, "S").source
  end
  return source
end

-- Returns the text of an option: a number, a list, a boolean or a string.
local function text_of(value)
  if type(value) ~= "table" then return numbers.text(value) end
  local parts = {}
  for i, v in ipairs(value) do parts[i] = tostring(v) end
  return #parts == 1 and parts[1] or "{" .. table.concat(parts, ", ") .. "}"
end

-- Returns the names of a parser's parameters in order.
local function names_of(parse)
  local list = {}
  for i, parameter in ipairs(args.describe(parse)) do list[i] = parameter.name end
  return list
end

-- Returns the options of a layer as they are printed: "p=0.5, inplace=true". `inplace` is printed
-- when it is true.
local function options_text(self, names)
  local parts = {}
  for _, name in ipairs(names) do
    local value = self[name]
    if value ~= nil and (name ~= "inplace" or value) and not lt.is_tensor(value) then
      parts[#parts + 1] = name .. "=" .. text_of(value)
    end
  end
  return table.concat(parts, ", ")
end

--- Raises an error when one of the arguments of a class's constructor is a tensor, and the option
-- at its place is none: nn.ReLU(x), nn.MSELoss(output, target). `parameters` is a list from
-- args.describe.
function layers.check_options(title, parameters, ...)
  for i = 1, select("#", ...) do
    local value = select(i, ...)
    if lt.is_tensor(value) and not (parameters[i] and parameters[i].type:find "Tensor") then
      args.fail("%s: expected options, got %s: it makes a layer, which is then called with "
        .. "tensors\nhint: local layer = nn.%s(); layer(...)", title, args.show(value), title)
    end
  end
end

--- Returns a class of layers. `signature` declares its options, "" for none; compute(self, x, ...)
-- is its forward, whose first input is a tensor. `row` may contain prepare(self), which checks the
-- options or creates parameters, and `printed`, the names of the options to print. The comment
-- above the caller's line with the name is the class's help. Returns the options' names, too.
function layers.define(name, signature, compute, row)
  row = row or {}
  local class = Module:extend(name)
  class.__chunk = calling_chunk()
  local parse = args.signature(name, signature)
  local names, parameters = names_of(parse), args.describe(parse)
  local printed, prepare = row.printed or names, row.prepare

  function class:init(...)
    layers.check_options(name, parameters, ...)
    local values = table.pack(parse(...))
    for i, option in ipairs(names) do
      if lt.is_tensor(values[i]) then
        self:register_buffer(option, values[i])
      else
        self[option] = values[i]
      end
    end
    if prepare then prepare(self) end
  end

  function class:forward(x, ...) return compute(self, self:check_tensor(x), ...) end

  function class:extra_repr() return options_text(self, printed) end

  return class, names
end

--- Returns a class of layers that call the function `f` of F with one tensor and the options by
-- name. `row` is as for layers.define.
function layers.define_function(name, signature, f, row)
  local class, names
  local spare -- the empty table of the last call, faster than a new one; nil during a call
  local function keep(named, ...)
    named[1] = nil
    for i = 1, #names do named[names[i]] = nil end
    spare = named
    return ...
  end
  class, names = layers.define(name, signature, function(self, x)
    -- Without options, a call without a table is faster.
    if names[1] == nil or names[2] == nil and self[names[1]] == false then return F[f](x) end
    local named = spare or {}
    spare = nil
    named[1] = x
    for i = 1, #names do
      local option = names[i]
      named[option] = self[option]
    end
    return keep(named, F[f](named))
  end, row)
  return class
end

return layers
