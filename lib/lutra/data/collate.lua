--- data.default_collate and data.default_convert: join samples to a batch.
--
-- Tensors are stacked, numbers and booleans become a tensor, strings become a list, and tables are
-- collated field by field.

local lt = require "lutra"
local args = require "lutra.internal.args"

local collating = {}

local collate

-- Returns the list of the fields `key` of all values. Raises an error when one lacks it.
local function column(values, key)
  local list = {}
  for i, value in ipairs(values) do
    local field = type(value) == "table" and value[key]
    if field == nil or type(value) ~= "table" then
      args.fail("default_collate: expected the field %s of sample 1 in sample %d, got nil",
        tostring(key), i)
    end
    list[i] = field
  end
  return list
end

-- Raises an error that names the sample which cannot be stacked with the first; `reason` otherwise.
local function explain_stack(tensors, reason)
  for i, x in ipairs(tensors) do
    args.check(lt.is_tensor(x), "default_collate: expected a tensor in sample %d, as in sample 1, "
      .. "got %s", i, args.show(x))
    args.check(tostring(x.shape) == tostring(tensors[1].shape),
      "default_collate: expected shape %s in sample %d, as in sample 1, got %s\n"
      .. "hint: data.DataLoader(dataset, {collate_fn = function(samples) ... end})",
      tensors[1].shape, i, x.shape)
  end
  error(reason, 0)
end

local function stack(tensors)
  local ok, result = pcall(lt.stack, tensors)
  return ok and result or explain_stack(tensors, result)
end

local function same_kind(values, kind)
  for i, value in ipairs(values) do
    args.check(type(value) == kind, "default_collate: expected a %s in sample %d, as in sample 1, "
      .. "got %s", kind, i, args.show(value))
  end
  return values
end

-- Raises an error unless all samples are lists of the same length.
local function same_length(values)
  for i, value in ipairs(values) do
    args.check(type(value) == "table" and #value == #values[1], "default_collate: expected a list "
      .. "of %d values in sample %d, as in sample 1, got %s", #values[1], i,
      type(value) == "table" and #value or args.show(value))
  end
end

-- Returns a tensor of the numbers: int64, or float64 when any is a float, as in PyTorch.
local function numbers(values)
  local dtype = "int64"
  for _, value in ipairs(same_kind(values, "number")) do
    if math.type(value) == "float" then dtype = "float64" end
  end
  return lt.tensor(values, {dtype = dtype})
end

-- Returns one value of the batch from the list of this value in every sample.
function collate(values)
  local first = values[1]
  if lt.is_tensor(first) then return stack(values) end
  if type(first) == "number" then return numbers(values) end
  if type(first) == "boolean" then return lt.tensor(same_kind(values, "boolean")) end
  if type(first) == "string" then return same_kind(values, "string") end
  if type(first) ~= "table" then return values end
  same_length(values)
  local batch = {}
  for key in pairs(first) do batch[key] = collate(column(values, key)) end
  return batch
end

-- Returns whether a sample is a list of the values of the sample, not a single value.
local function is_list(sample)
  return args.is_plain(sample) and (sample.n ~= nil or #sample > 0)
end

--- Returns the values of a batch from a list of samples, each a single value (a tensor, a number, a
-- string, a table of names), or a list {n = count, ...} of values. Raises an error when the samples
-- differ in structure, or their tensors in shape.
function collating.default_collate(samples)
  args.expect(type(samples) == "table", "default_collate", "a list of samples", "samples", samples)
  args.expect(samples[1] ~= nil, "default_collate", "at least one sample", "samples", samples)
  if not is_list(samples[1]) then return collate(samples) end
  for i, sample in ipairs(samples) do
    args.expect(type(sample) == "table", "default_collate", "a list of values",
      ("samples[%d]"):format(i), sample)
  end
  local batch, count = {}, samples[1].n or #samples[1]
  for k = 1, count do batch[k] = collate(column(samples, k)) end
  return table.unpack(batch, 1, count)
end

--- Returns the values of a sample unchanged: where PyTorch converts NumPy's arrays to tensors, a
-- sample in Lua has tensors already. It is the collate_fn of a loader with batch_size = false.
function collating.default_convert(...) return ... end

return collating
