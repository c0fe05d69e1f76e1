--- Statistics of the values of a tensor, computed on its device: only the results are copied.

local statistics = {}

-- Adds range and moments of a real tensor whose values are all finite.
local function add_moments(found, t)
  if t:numel() == 0 then return end
  found.min, found.max = t:amin():item(), t:amax():item()
  if found.min == found.max then return end
  local float = require("lutra.internal.plot.data").float(t)
  found.mean, found.std = float:mean():item(), float:std():item()
end

--- Returns the statistics of a detached tensor: {min, max, mean, std} of its finite values, without
-- mean and std where all are equal, without any where none is finite; `nan` and `inf`, the numbers
-- of such values, for floats and complex numbers; `values`, the tensor of the finite values, for
-- complex numbers their absolute values. For a bool tensor: {yes, no}, the numbers of true and
-- false. Nothing for a tensor on meta or without elements.
function statistics.of(t)
  if t.device == "meta" or t:numel() == 0 then return nil end
  if t.dtype == "bool" then
    local yes = t:count_nonzero():item()
    return {yes = yes, no = t:numel() - yes}
  end
  local found = {}
  if t:is_complex() then
    t, found.absolute = t:abs(), true
  end
  if t:is_floating_point() then
    found.nan, found.inf = t:isnan():count_nonzero():item(), t:isinf():count_nonzero():item()
    if found.nan + found.inf > 0 then t = t:masked_select(t:isfinite()) end
  end
  found.values = t
  add_moments(found, t)
  return found
end

return statistics
