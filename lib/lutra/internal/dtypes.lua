--- Facts about dtypes: their ranges and precision.

local core = require "lutra.core"

local dtypes = {}

-- bits of the fraction and of the exponent
local floats = {float16 = {10, 5}, bfloat16 = {7, 8}, float32 = {23, 8}, float64 = {52, 11}}

local function check(name, dtype, category)
  dtype = dtype == nil and core.get_default_dtype() or dtype
  local facts = core._dtype(dtype)
  if facts.category ~= category then
    local fail = require("lutra.internal.args").fail
    fail('%s: argument "dtype" is %s, it wants %s dtype', name, dtype,
      category == "floating" and "a float" or "an integer")
  end
  return facts
end

--- Range and precision of a float dtype: {bits, eps, max, min, tiny, dtype}.
-- eps is the distance from 1 to the next number, tiny the smallest normal one.
function dtypes.finfo(dtype)
  local facts = check("finfo", dtype, "floating")
  local fraction, exponent = table.unpack(floats[facts.name])
  local bias = 2 ^ (exponent - 1) - 1
  local eps = 2.0 ^ -fraction
  local max = (2 - eps) * 2.0 ^ bias
  return {bits = 8 * facts.size, eps = eps, max = max, min = -max, tiny = 2.0 ^ (1 - bias),
    dtype = facts.name}
end

--- Range of an integer dtype: {bits, min, max, dtype}.
function dtypes.iinfo(dtype)
  local facts = check("iinfo", dtype, "integer")
  local bits = 8 * facts.size
  local unsigned = facts.name == "uint8"
  local max = unsigned and (1 << bits) - 1 or bits == 64 and math.maxinteger
    or (1 << (bits - 1)) - 1
  return {bits = bits, min = unsigned and 0 or -max - 1, max = max, dtype = facts.name}
end

return dtypes
