--- nn.ParameterList and nn.ParameterDict: containers of parameters that a module registers.

local lt = require "lutra"
local args = require "lutra.internal.args"
local List = require "lutra.nn.list"
local Mapping = require "lutra.nn.mapping"

-- Returns a parameter from a tensor; raises an error of `title` for any other value.
local function to_parameter(value, title, place)
  if lt.is_parameter(value) then return value end
  args.check(lt.is_tensor(value), "%s: expected a tensor for %s, got %s", title, place,
    args.show(value))
  return lt.nn.Parameter(value)
end

-- Returns a parameter as it is printed: "Parameter containing: [float32 of size 2x3]".
local function text(p)
  local device = p.device == "cpu" and "" or (" (%s)"):format(p.device)
  return ("Parameter containing: [%s of size %s%s]"):format(p.dtype, table.concat(p.shape, "x"),
    device)
end

local function repr(self)
  local lines = {}
  for name, p in self:named_parameters() do
    lines[#lines + 1] = ("  (%s): %s"):format(name, text(p))
  end
  return lines
end

--- nn.ParameterList: a list of parameters that are registered with their parent.
local ParameterList = List:extend "ParameterList"
ParameterList._kind = "parameter"
ParameterList._accept = to_parameter
ParameterList._lines = repr

function ParameterList:_enter(name, value) self:register_parameter(name, value) end

--- nn.ParameterList{a, b, c}, nn.ParameterList(a, b, c) or nn.ParameterList(). A tensor becomes an
-- nn.Parameter. list[i], #list and ipairs(list) work as on a Lua list. Raises an error for an
-- argument that is no tensor.
function ParameterList:init(...)
  for _, entry in ipairs(self:_elements("ParameterList", false, ...)) do
    self:_add(nil, entry[2])
  end
end

--- nn.ParameterDict: parameters by name, in order.
local ParameterDict = Mapping:extend "ParameterDict"
ParameterDict._kind = "parameter"
ParameterDict._lines = repr

function ParameterDict._accept(_, name, value)
  return to_parameter(value, "ParameterDict", ('"%s"'):format(tostring(name)))
end

-- dict.name = value: a tensor becomes a parameter.
function ParameterDict.__set_field(_, value)
  return lt.is_tensor(value) and to_parameter(value) or value
end

--- nn.ParameterDict{{"left", a}, {"right", b}}, a list of names and tensors, or
-- nn.ParameterDict{left = a, right = b}, whose names are sorted, or nn.ParameterDict(). A tensor
-- becomes an nn.Parameter. dict.left and dict["left"] read a parameter, dict.left = x
-- sets one, #dict is their number. Raises an error for a value that is no tensor.
function ParameterDict:init(values)
  if values ~= nil then self:update(values) end
end

--- dict:get(name, default): the parameter of this name, or `default` when there is none.
function ParameterDict:get(name, default)
  if self:contains(name) then return self[name] end
  return default
end

--- dict:setdefault(name, default): the parameter of this name; sets it to `default`, a tensor, when
-- there is none.
function ParameterDict:setdefault(name, default)
  if not self:contains(name) then self[name] = self:_accept(name, default) end
  return self[name]
end

--- Removes the last parameter; returns its name and the parameter. Raises an error for a container
-- without parameters.
function ParameterDict:popitem()
  local last
  for name in self:keys() do last = name end
  args.check(last ~= nil, "ParameterDict: cannot remove a parameter: the container is empty")
  return last, self:pop(last)
end

--- Returns a new nn.ParameterDict with the same parameters.
function ParameterDict:copy() return ParameterDict(self) end

--- dict:fromkeys(names, default): a new nn.ParameterDict with these names, whose values are all
-- `default`, a tensor.
function ParameterDict.fromkeys(_, names, default)
  args.expect(type(names) == "table", "fromkeys", "a list of names", "names", names)
  local list = {}
  for i, name in ipairs(names) do list[i] = {name, default} end
  return ParameterDict(list)
end

return {ParameterList = ParameterList, ParameterDict = ParameterDict}
