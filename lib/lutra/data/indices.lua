--- Sources of indices: a list, an integer tensor, a sampler, or a function that returns an
-- iterator.

local lt = require "lutra"
local args = require "lutra.internal.args"
local kinds = require "lutra.data.kinds"

local indices = {}

-- Returns whether x is an object with a method iter or order.
local function is_sampler(x)
  return type(x) == "table" and not args.is_plain(x)
    and (args.is_callable(x.iter) or args.is_callable(x.order))
end

--- Raises an error of the function `title` unless x is a source of indices.
function indices.check(title, name, x)
  local ok = args.is_plain(x) or is_sampler(x) or args.is_callable(x)
    or (lt.is_tensor(x) and x.ndim == 1)
  args.expect(ok, title, "a sampler, a list or an integer tensor", name, x)
end

-- Returns an iterator over the elements of a list.
local function each(list)
  local i = 0
  return function()
    i = i + 1
    return list[i]
  end
end

-- Returns a function that returns the next index of an iterator triple.
local function stepper(step, state, control)
  return function()
    control = step(state, control)
    return control
  end
end

--- Returns the indices of a new pass of a source: an int64 tensor where all are known, else nil and
-- a function that returns the next one.
function indices.source(title, x)
  if lt.is_tensor(x) then return indices.tensor(title, "sampler", x) end
  if args.is_plain(x) then return nil, each(x) end
  if is_sampler(x) then
    local order = args.is_callable(x.order) and x:order()
    if order then return order end
    return nil, stepper(x:iter())
  end
  return nil, stepper(x())
end

--- Returns the number of indices of a pass. Raises an error for a function and for an object
-- without __len.
function indices.count(title, x)
  if lt.is_tensor(x) then return x:numel() end
  if type(x) == "function" then
    args.fail("%s: cannot count the batches: the sampler is a function", title)
  end
  args.check(kinds.has_length(x), "%s: cannot count the batches: the sampler has no method __len",
    title)
  return #x
end

--- Returns a list or a tensor of integers as an int64 tensor of one dimension; raises an error of
-- the function `title` for any other value.
function indices.tensor(title, name, x)
  if not lt.is_tensor(x) then
    for i, index in ipairs(x) do
      args.check(math.type(index) == "integer", "%s: expected an integer for argument '%s[%d]', "
        .. "got %s", title, name, i, args.show(index))
    end
    return lt.tensor(x, {dtype = "int64", device = "cpu"})
  end
  args.check(x.ndim == 1 and not x:is_floating_point() and x.dtype ~= "bool",
    "%s: expected an integer tensor of 1 dimension for argument '%s', got shape %s, \"%s\"", title,
    name, x.shape, x.dtype)
  return x:to{"cpu", dtype = "int64"}
end

return setmetatable(indices, {__call = function(_, ...) return indices.tensor(...) end})
