--- Settings of optimizers that are given as tensors of one element, as PyTorch has it for learning
-- rates: an optimizer keeps numbers.

local lt = require "lutra"
local args = require "lutra.internal.args"

local settings = {}

--- Returns a tensor of one element as a number, as an integer if it is one; any other value as it
-- is.
function settings.number_of(value)
  if not (lt.is_tensor(value) and value:numel() == 1 and value.device ~= "meta") then
    return value
  end
  local x = value:item()
  return type(x) == "number" and math.tointeger(x) or x
end

local function with_numbers(t)
  local new = {}
  for key, value in pairs(t) do
    new[key] = type(key) == "string" and key ~= "params" and settings.number_of(value) or value
  end
  return new
end

--- Returns the arguments of an optimizer's constructor with numbers in place of such tensors, also
-- in tables by name; the first argument, the parameters, is not a setting.
function settings.arguments(...)
  local given = table.pack(...)
  for i = 1, given.n do
    if args.is_plain(given[i]) then
      given[i] = with_numbers(given[i])
    elseif i > 1 then
      given[i] = settings.number_of(given[i])
    end
  end
  return table.unpack(given, 1, given.n)
end

return settings
