-- Calls of any op of the table with arguments that fit the types of its parameters.

local lt = require "lutra"

local calls = {}

-- Returns the function of an op: in lt, in its namespace, or the method. nil where it has none.
function calls.function_of(op)
  if op.variants["function"] then return lt[op.name] end
  local space, name = next(op.namespaces)
  local found = lt
  for part in (space or ""):gmatch "[^.]+" do found = found[part] end
  return space and found[name] or require("lutra.core")._methods[op.name]
end

local function argument(type, number, tensor)
  if type:find "%[%]" then return {tensor, tensor} end
  if type:find "Tensor" or type == "Index" or type == "Operand" then return tensor end
  if type:find "ints" or type:find "dims" or type:find "sizes" then return {number} end
  return type:match "'([^']*)'" or type:find "bool" and true or number
end

-- Returns the arguments before the optional ones: `number` for numbers, sizes and dims, and
-- pick(k, type) for a tensor as argument k.
function calls.arguments(op, number, pick)
  local given = {}
  for k, param in ipairs(op.params) do
    if param.optional then break end
    given[k] = argument(param.type, number, pick(k, param.type))
  end
  return given
end

return calls
