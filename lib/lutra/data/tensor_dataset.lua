--- data.TensorDataset: a dataset of the rows of tensors.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Dataset = require "lutra.data.dataset"

local TensorDataset = Dataset:extend "TensorDataset"

--- data.TensorDataset(X, Y, ...): the dataset whose sample i is X[i], Y[i], ... Raises an error
-- unless all arguments are tensors of the same first size, with at least one dimension.
function TensorDataset:init(...)
  local tensors = table.pack(...)
  if tensors.n == 1 and args.is_plain(tensors[1]) then
    tensors = table.move(tensors[1], 1, #tensors[1], 1, {n = #tensors[1]})
  end
  args.check(tensors.n > 0, "TensorDataset: expected at least one tensor, got none")
  for i = 1, tensors.n do
    local x = tensors[i]
    args.check(lt.is_tensor(x), "TensorDataset: expected a tensor for argument %d, got %s", i,
      args.show(x))
    args.check(x.ndim > 0, "TensorDataset: expected at least 1 dimension for argument %d, got a "
      .. "tensor of shape {}", i)
    args.check(x:size(1) == tensors[1]:size(1),
      "TensorDataset: expected %d rows for argument %d, as in argument 1, got %d",
      tensors[1]:size(1), i, x:size(1))
  end
  self.tensors = tensors
end

function TensorDataset:__len() return self.tensors[1]:size(1) end

--- Returns row i of each tensor, as views.
function TensorDataset:get(i)
  i = self:check_position(i)
  local row = {}
  for k = 1, self.tensors.n do row[k] = self.tensors[k][i] end
  return table.unpack(row, 1, self.tensors.n)
end

--- Returns, for each tensor, its rows at `positions`, an integer tensor, as a new tensor (one
-- gather per tensor). The indices are copied to each device once.
function TensorDataset:get_batch(positions)
  args.expect(lt.is_tensor(positions), "get_batch", "an integer tensor", "positions", positions)
  local columns, positions_on = {}, {}
  for k = 1, self.tensors.n do
    local x = self.tensors[k]
    local there = positions_on[x.device] or positions:to{device = x.device}
    positions_on[x.device] = there
    columns[k] = x:index_select(1, there)
  end
  return table.unpack(columns, 1, self.tensors.n)
end

return TensorDataset
