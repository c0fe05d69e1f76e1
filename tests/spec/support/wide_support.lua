--- The widest float that the device under test has (LUTRA_TEST_DEVICE): specs that compare values
-- take it in place of float64, and compare less exactly where it is float32.

local lt = require "lutra"

local wide = {}

--- Does the default device have no float64?
wide.is_narrow = not pcall(lt.empty, {1}, {dtype = "float64"})

--- "float64", or "float32" on a device without it.
wide.dtype = wide.is_narrow and "float32" or "float64"

--- A tolerance for float64, or one for float32 where that is the widest.
function wide.tolerance(exact, rough) return wide.is_narrow and math.max(exact, rough) or exact end

return wide
