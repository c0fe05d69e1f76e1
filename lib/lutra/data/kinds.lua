--- The kinds of values that the library accepts as a dataset: objects with get(i), streams with
-- iter(), lists and tensors.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Dataset = require "lutra.data.dataset"

local kinds = {}

-- Returns whether the object defines get(i), other than the one of Dataset, which raises an error.
local function has_get(x)
  local get = x.get
  return args.is_callable(get) and (get ~= Dataset.get or args.is_callable(x.__getitem__))
end

--- Returns whether x is a stream of samples, such as a data.IterableDataset: an object with iter()
-- and without get(i).
function kinds.is_iterable(x)
  if type(x) ~= "table" or getmetatable(x) == nil or has_get(x) then return false end
  return args.is_callable(x.iter)
end

--- Returns whether x has samples by index: an object with get(i), a list, or a tensor of at least
-- one dimension.
function kinds.is_map(x)
  if lt.is_tensor(x) then return x.ndim > 0 end
  if type(x) ~= "table" then return false end
  return args.is_plain(x) or has_get(x) or x.get == Dataset.get
end

--- Returns x when it has samples by index; else raises an error of the function `title`.
function kinds.check_map(title, name, x)
  args.expect(kinds.is_map(x), title, "a dataset", name, x)
  return x
end

--- Returns whether `#x` counts the elements of a table: Lua counts an object without __len as a
-- list, which mostly has none.
function kinds.has_length(x)
  local meta = debug.getmetatable(x)
  return meta == nil or rawget(meta, "__len") ~= nil or #x > 0
end

--- Returns the number of samples of x; raises an error of the function `title` unless it is an
-- integer of at least 0.
function kinds.length(title, name, x)
  if lt.is_tensor(x) then return x:size(1) end
  args.check(kinds.has_length(x), "%s: cannot count the samples of argument '%s': it has no method "
    .. "__len", title, name)
  local n = #x
  args.check(math.type(n) == "integer" and n >= 0,
    "%s: expected a dataset with a length for argument '%s', got one of length %s", title, name,
    args.show(n))
  return n
end

--- Returns the values of sample i. A sample of a list that is a list itself gives several values.
function kinds.sample(x, i)
  if lt.is_tensor(x) then return x[i] end
  if not args.is_plain(x) then return x:get(i) end
  local value = x[i]
  args.check(value ~= nil, "DataLoader: expected an index of the list of %d samples, got %s", #x,
    args.show(i))
  if args.is_plain(value) and #value > 0 then return table.unpack(value) end
  return value
end

return kinds
