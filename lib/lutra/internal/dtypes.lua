--- lt.finfo and lt.iinfo: ranges and precision of dtypes; PyTorch's other names of dtypes.

local core = require "lutra.core"

-- lt.long == "int64": the names from C that PyTorch has beside those with the number of bits.
local dtypes = {
  half = "float16", float = "float32", double = "float64",
  short = "int16", int = "int32", long = "int64",
  cfloat = "complex64", cdouble = "complex128",
}

-- The number of bits of the fraction and of the exponent.
local floats = {float16 = {10, 5}, bfloat16 = {7, 8}, float32 = {23, 8}, float64 = {52, 11}}

local signature = "(dtype? dtype = nil)"
local parsers = {} -- by the function's name, each made at its first use

local function check(name, category, ...)
  local parse = parsers[name] or core._signature(name, signature)
  parsers[name] = parse
  local facts = core._dtype(parse(...) or core.get_default_dtype())
  if facts.category ~= category then
    local fail = require("lutra.internal.args").fail
    fail("%s: expected %s dtype for argument 'dtype', got \"%s\"", name,
      category == "floating" and "a float" or "an integer", facts.name)
  end
  return facts
end

--- lt.finfo(dtype): returns the range and precision of a floating-point dtype, by default the
-- default dtype: {bits, eps, max, min, tiny, dtype}. eps is the distance from 1 to the next
-- number, tiny the smallest normal number. Raises an error for other dtypes.
function dtypes.finfo(...)
  local facts = check("finfo", "floating", ...)
  local fraction, exponent = table.unpack(floats[facts.name])
  local bias = 2 ^ (exponent - 1) - 1
  local eps = 2.0 ^ -fraction
  local max = (2 - eps) * 2.0 ^ bias
  return {bits = 8 * facts.size, eps = eps, max = max, min = -max, tiny = 2.0 ^ (1 - bias),
    dtype = facts.name}
end

--- lt.iinfo(dtype): returns the range of an integer dtype: {bits, min, max, dtype}. Raises an error
-- for other dtypes.
function dtypes.iinfo(...)
  local facts = check("iinfo", "integer", ...)
  local bits = 8 * facts.size
  local unsigned = facts.name == "uint8"
  local max = unsigned and (1 << bits) - 1 or bits == 64 and math.maxinteger
    or (1 << (bits - 1)) - 1
  return {bits = bits, min = unsigned and 0 or -max - 1, max = max, dtype = facts.name}
end

core._signatures[dtypes.finfo], core._signatures[dtypes.iinfo] = signature, signature

return dtypes
