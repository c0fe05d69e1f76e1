--- What the specs of nn, optim and data share: golden values, closeness, caught errors.

local lt = require "lutra"
local assert = require "luassert"
local wide = require "wide_support"

local support = {}

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end
support.root = root

-- Optimizers that require a closure, or matrices.
local special = {LBFGS = true, Muon = true}

--- The names of the optimizers, sorted; those that cannot optimize any parameters without a closure
-- only if `all` is true.
function support.optimizers(all)
  local names = {}
  for name, class in next, lt.optim do
    if rawget(class, "options") and (all or not special[name]) then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

--- PyTorch's values (tools/golden/nn.py): "layers" or "optimizers".
support.golden = require "golden_support".file

--- A golden {shape, data} as a tensor; integers give int64 indices.
function support.tensor(golden, dtype)
  local kind = dtype or (math.type(golden.data[1]) == "integer" and "int64") or wide.dtype
  return lt.tensor(golden.data, {dtype = kind}):reshape(golden.shape)
end

local ROUGH = 2e-5

--- Fails unless `actual` has the shape and, within `tolerance`, the values of `expected`
-- (a golden tensor or a tensor). On a device without float64 the tolerance is at least ROUGH.
function support.close(expected, actual, tolerance, what)
  what, tolerance = what or "", wide.tolerance(tolerance, ROUGH)
  if not lt.is_tensor(expected) then expected = support.tensor(expected, wide.dtype) end
  assert.equal(tostring(expected.shape), tostring(actual.shape), what)
  local a, b = expected:reshape(-1):totable(), actual:detach():to(wide.dtype):reshape(-1):totable()
  assert.equal(#a, #b, what)
  for i = 1, #a do
    local bound = tolerance * math.max(1, math.abs(a[i]))
    local is_close = math.abs(a[i] - b[i]) <= bound -- false for NaN
    if not is_close then
      error(("%s: element %d is %.17g, it should be %.17g"):format(what, i, b[i], a[i]), 2)
    end
  end
end

--- The message of the error that fn(...) raises, without its position; the position is
-- the second result.
function support.message(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok, "no error was raised")
  message = tostring(message)
  local place, text = message:match "^([^\n:]+:%d+): (.*)$"
  return text or message, place
end

--- Fails unless fn(...) raises an error whose message holds every given text, at a line
-- of the file that calls.
function support.fails(texts, fn, ...)
  local message, place = support.message(fn, ...)
  for _, text in ipairs(type(texts) == "table" and texts or {texts}) do
    assert.is_truthy(message:find(text, 1, true), ("%q is not in: %s"):format(text, message))
  end
  local caller = debug.getinfo(2, "S").short_src
  assert.is_truthy(place and place:find(caller:match "[^/]*$", 1, true),
    ("the error is at %s, not in %s: %s"):format(tostring(place), caller, message))
  return message
end

--- A list of everything an iterator gives; of its `which` value of several.
function support.list(which, iterator, ...)
  local list = {}
  for a, b in iterator, ... do list[#list + 1] = which == 2 and b or a end
  return list
end

return support
