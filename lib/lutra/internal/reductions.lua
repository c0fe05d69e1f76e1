--- The parameters by which losses are reduced to one number, and PyTorch's deprecated form of them:
-- size_average and reduce, which take precedence over reduction.

local reductions = {}

reductions.REDUCTION = "'mean'|'sum'|'none' reduction = 'mean'"
reductions.SIZE_AVERAGE = "bool? size_average = nil"
reductions.REDUCE = "bool? reduce = nil, " .. reductions.REDUCTION
reductions.LEGACY = reductions.SIZE_AVERAGE .. ", " .. reductions.REDUCE

--- Returns the reduction: that of the deprecated parameters if one of them is given.
function reductions.resolve(size_average, reduce, reduction)
  if size_average == nil and reduce == nil then return reduction end
  if reduce == false then return "none" end
  return size_average == false and "sum" or "mean"
end

return reductions
