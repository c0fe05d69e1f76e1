--- data.default_collate: joins samples to a batch.
--
-- Tensors are stacked, numbers and booleans become a tensor, strings become a list, and tables are
-- collated field by field.

local lt = require "lutra"
local args = require "lutra.internal.args"

local collate

-- Returns the list of the fields `key` of all values. Raises an error when one lacks it.
local function column(values, key)
  local list = {}
  for i, value in ipairs(values) do
    args.check(type(value) == "table" and value[key] ~= nil,
      "default_collate: expected the field %s of sample 1 in sample %d, got nil", tostring(key), i)
    list[i] = value[key]
  end
  return list
end

local function same_shape(tensors)
  for i, x in ipairs(tensors) do
    args.check(lt.is_tensor(x), "default_collate: expected a tensor in sample %d, as in sample 1, "
      .. "got %s", i, args.show(x))
    args.check(tostring(x.shape) == tostring(tensors[1].shape),
      "default_collate: expected shape %s in sample %d, as in sample 1, got %s\n"
      .. "hint: data.DataLoader(dataset, {collate_fn = function(samples) ... end})",
      tostring(tensors[1].shape), i, tostring(x.shape))
  end
  return tensors
end

local function same_kind(values, kind)
  for i, value in ipairs(values) do
    args.check(type(value) == kind, "default_collate: expected a %s in sample %d, as in sample 1, "
      .. "got %s", kind, i, args.show(value))
  end
  return values
end

-- Returns a tensor of the numbers: int64, or float64 when any is a float, as in PyTorch.
local function numbers(values)
  local dtype = "int64"
  for _, value in ipairs(same_kind(values, "number")) do
    if math.type(value) == "float" then dtype = "float64" end
  end
  return lt.tensor(values, {dtype = dtype})
end

--- Returns one value of the batch from the list of this value in every sample.
function collate(values)
  local first = values[1]
  if lt.is_tensor(first) then return lt.stack(same_shape(values)) end
  if type(first) == "number" then return numbers(values) end
  if type(first) == "boolean" then return lt.tensor(same_kind(values, "boolean")) end
  if type(first) ~= "table" then return values end
  local batch = {}
  for key in pairs(first) do batch[key] = collate(column(values, key)) end
  return batch
end

--- Returns the values of a batch from a list of samples, each a list {n = count, ...} of values.
-- Raises an error when the samples differ in structure, or their tensors in shape.
return function(samples)
  args.expect(type(samples) == "table", "default_collate", "a list of samples", "samples", samples)
  args.expect(samples[1] ~= nil, "default_collate", "at least one sample", "samples", samples)
  for i, sample in ipairs(samples) do
    args.expect(type(sample) == "table", "default_collate", "a list of values",
      ("samples[%d]"):format(i), sample)
  end
  local batch, count = {}, samples[1].n or #samples[1]
  for k = 1, count do batch[k] = collate(column(samples, k)) end
  return table.unpack(batch, 1, count)
end
