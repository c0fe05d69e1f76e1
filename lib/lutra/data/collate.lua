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
      "collate: sample 1 has a field %s and sample %d has none", tostring(key), i)
    list[i] = value[key]
  end
  return list
end

local function same_shape(tensors)
  for i, x in ipairs(tensors) do
    args.check(lt.is_tensor(x), "collate: value 1 is a tensor and value %d is %s", i, args.show(x))
    args.check(tostring(x.shape) == tostring(tensors[1].shape),
      "collate: sample 1 is %s and sample %d is %s: give a collate_fn that makes them equal",
      tostring(tensors[1].shape), i, tostring(x.shape))
  end
  return tensors
end

local function same_kind(values, kind)
  for i, value in ipairs(values) do
    args.check(type(value) == kind, "collate: value 1 is a %s and value %d is %s", kind, i,
      args.show(value))
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

--- data.default_collate(samples): returns the values of a batch from a list of samples, each a list
-- {n = count, ...} of values. Raises an error when the samples differ in structure, or their
-- tensors in shape.
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
