--- lt.distributions.constraints: sets of values, for the arguments and samples of distributions.
--
-- A constraint has check(x), which returns a bool tensor: whether each value, or each event of the
-- last `event_dim` dims, is in the set; `is_discrete`; and a description for messages, tostring(c).

local lt = require "lutra"
local args = require "lutra.internal.args"

local constraints = {}

-- Returns the constraint of the values for which test(x) is true. Its fields are in its metatable.
-- `kind` is the name in lt.distributions.constraints.
local function new(kind, text, test, more)
  local fields = {kind = kind, event_dim = 0, is_discrete = false}
  for key, value in pairs(more or {}) do fields[key] = value end
  function fields.check(_, x) return test(x) end
  return setmetatable({}, {__name = "Constraint", __index = fields, __names = fields,
    __tostring = function() return text end})
end

local function show(bound)
  if lt.is_tensor(bound) then
    return bound:numel() == 1 and ("%g"):format(bound:item()) or "the given bounds"
  end
  return ("%g"):format(bound)
end

-- The parsers of constraints with bounds.
local parse = {}
for _, row in ipairs{{"greater_than", "lower_bound"}, {"greater_than_eq", "lower_bound"},
  {"less_than", "upper_bound"}, {"multinomial", "upper_bound"}} do
  parse[row[1]] = args.signature(row[1], "Tensor|float " .. row[2])
end
for _, name in ipairs{"interval", "half_open_interval", "integer_interval"} do
  parse[name] = args.signature(name, "Tensor|float lower_bound, Tensor|float upper_bound")
end
parse.independent = args.signature("independent",
  "any base_constraint, int(>=0) reinterpreted_batch_ndims")

parse.cat = args.signature("cat", "list cseq, dim dim = 1, ints? lengths = nil")
parse.stack = args.signature("stack", "list cseq, dim dim = 1")

-- Raises an error unless x is a constraint.
local function check_constraint(title, name, x)
  local meta = getmetatable(x)
  args.expect(type(meta) == "table" and meta.__name == "Constraint", title, "a constraint", name, x)
end

local discrete = {is_discrete = true}
local function is_integer(x)
  if not x:is_floating_point() then return lt.ones_like(x, {dtype = "bool"}) end
  return x:floor():eq(x)
end

constraints.real = new("real", "numbers other than nan", function(x) return x:eq(x) end)
constraints.boolean = new("boolean", "0 or 1", function(x) return x:eq(0) | x:eq(1) end, discrete)
constraints.positive = new("positive", "numbers above 0", function(x) return x:gt(0) end)
constraints.nonnegative = new("nonnegative", "numbers of at least 0",
  function(x) return x:ge(0) end)
constraints.unit_interval = new("unit_interval", "numbers from 0 to 1",
  function(x) return x:ge(0) & x:le(1) end, {lower_bound = 0, upper_bound = 1})
constraints.nonnegative_integer = new("nonnegative_integer", "integers of at least 0",
  function(x) return is_integer(x) & x:ge(0) end, discrete)
constraints.positive_integer = new("positive_integer", "integers above 0",
  function(x) return is_integer(x) & x:gt(0) end, discrete)

--- Returns the constraint of numbers above `lower_bound`, a number or a tensor.
function constraints.greater_than(...)
  local lower_bound = parse.greater_than(...)
  return new("greater_than", "numbers above " .. show(lower_bound),
    function(x) return x:gt(lower_bound) end, {lower_bound = lower_bound})
end

--- Returns the constraint of numbers of at least `lower_bound`, a number or a tensor.
function constraints.greater_than_eq(...)
  local lower_bound = parse.greater_than_eq(...)
  return new("greater_than_eq", "numbers of at least " .. show(lower_bound),
    function(x) return x:ge(lower_bound) end, {lower_bound = lower_bound})
end

--- Returns the constraint of numbers below `upper_bound`, a number or a tensor.
function constraints.less_than(...)
  local upper_bound = parse.less_than(...)
  return new("less_than", "numbers below " .. show(upper_bound),
    function(x) return x:lt(upper_bound) end, {upper_bound = upper_bound})
end

--- Returns the constraint of numbers from one bound to the other, numbers or tensors.
function constraints.interval(...)
  local lower_bound, upper_bound = parse.interval(...)
  return new("interval",
    ("numbers from %s to %s"):format(show(lower_bound), show(upper_bound)),
    function(x) return x:ge(lower_bound) & x:le(upper_bound) end,
    {lower_bound = lower_bound, upper_bound = upper_bound})
end

--- Returns the constraint of numbers from the first bound to below the second, numbers or tensors.
function constraints.half_open_interval(...)
  local lower_bound, upper_bound = parse.half_open_interval(...)
  return new("half_open_interval",
    ("numbers from %s to below %s"):format(show(lower_bound), show(upper_bound)),
    function(x) return x:ge(lower_bound) & x:lt(upper_bound) end,
    {lower_bound = lower_bound, upper_bound = upper_bound})
end

--- Returns the constraint of integers from one bound to the other, numbers or tensors.
function constraints.integer_interval(...)
  local lower_bound, upper_bound = parse.integer_interval(...)
  return new("integer_interval",
    ("integers from %s to %s"):format(show(lower_bound), show(upper_bound)),
    function(x) return is_integer(x) & x:ge(lower_bound) & x:le(upper_bound) end, discrete)
end

--- Returns the constraint `base_constraint` of events of one dim more for each of
-- `reinterpreted_batch_ndims`: all their values must meet it.
function constraints.independent(...)
  local base_constraint, n = parse.independent(...)
  check_constraint("independent", "base_constraint", base_constraint)
  return new("independent", tostring(base_constraint), function(x)
    local valid = base_constraint:check(x)
    for _ = 1, n do valid = valid:all(-1) end
    return valid
  end, {event_dim = base_constraint.event_dim + n, is_discrete = base_constraint.is_discrete,
    base_constraint = base_constraint, reinterpreted_batch_ndims = n})
end

constraints.real_vector = constraints.independent(constraints.real, 1)

local function tolerance(x) return x.dtype == "float64" and 1e-6 or 1e-4 end

constraints.simplex = new("simplex",
  "numbers of at least 0 with sum 1 along the last dim", function(x)
    return x:ge(0):all(-1) & (x:sum(-1) - 1):abs():lt(tolerance(x))
  end, {event_dim = 1})
constraints.one_hot = new("one_hot", "one 1 and otherwise 0 along the last dim", function(x)
  return (x:eq(0) | x:eq(1)):all(-1) & x:sum(-1):eq(1)
end, {event_dim = 1, is_discrete = true})

--- Returns the constraint of counts, integers of at least 0, with a sum of at most `upper_bound`
-- along the last dim.
function constraints.multinomial(...)
  local upper_bound = parse.multinomial(...)
  return new("multinomial", "counts with sum " .. show(upper_bound) .. " along the last dim",
    function(x) return x:ge(0):all(-1) & x:sum(-1):le(upper_bound) end,
    {event_dim = 1, is_discrete = true})
end

local matrices = {event_dim = 2}
local function all_of(x) return x:all(-1):all(-1) end

constraints.lower_triangular = new("lower_triangular", "lower triangular matrices",
  function(x) return all_of(x:tril():eq(x)) end, matrices)
local function is_lower_cholesky(x)
  return all_of(x:tril():eq(x)) & x:diagonal(0, -2, -1):gt(0):all(-1)
end
constraints.lower_cholesky = new("lower_cholesky",
  "lower triangular matrices with a positive diagonal", is_lower_cholesky, matrices)
constraints.corr_cholesky = new("corr_cholesky",
  "lower triangular matrices with a positive diagonal and rows of length 1", function(x)
    local off = ((x * x):sum(-1):sqrt() - 1):abs()
    return is_lower_cholesky(x) & off:le(lt.finfo(x.dtype).eps * x:size(-1) * 10):all(-1)
  end, matrices)
constraints.square = new("square", "square matrices", function(x)
  return lt.full({}, x:size(-1) == x:size(-2), {dtype = "bool", device = x.device})
end, matrices)
local function is_symmetric(x)
  local bound = tolerance(x) * (1 + x:abs())
  return all_of((x - x:transpose(-2, -1)):abs():le(bound))
end
constraints.symmetric = new("symmetric", "symmetric matrices", is_symmetric, matrices)
constraints.positive_definite = new("positive_definite", "positive definite matrices", function(x)
  local _, info = lt.linalg.cholesky_ex(x)
  return is_symmetric(x) & info:eq(0)
end, matrices)
constraints.positive_semidefinite = new("positive_semidefinite",
  "positive semidefinite matrices", function(x)
    return is_symmetric(x) & lt.linalg.eigvalsh(x):ge(-tolerance(x)):all(-1)
  end, matrices)

-- Returns the fields that the constraint of several parts has from its parts.
local function from_parts(title, cseq, more)
  local event_dim, is_discrete = 0, false
  for i, part in ipairs(cseq) do
    check_constraint(title, ("cseq[%d]"):format(i), part)
    event_dim = math.max(event_dim, part.event_dim)
    is_discrete = is_discrete or part.is_discrete
  end
  more.cseq, more.event_dim, more.is_discrete = cseq, more.event_dim or event_dim, is_discrete
  return more
end

--- Returns the constraint of tensors whose parts along `dim`, of the sizes `lengths` (by default 1
-- each), meet the constraints of a list, as lt.cat puts them together. Raises an error when the
-- lists have different lengths.
function constraints.cat(...)
  local cseq, dim, lengths = parse.cat(...)
  lengths = require("lutra.distributions.shapes").lengths("cat", #cseq, lengths)
  return new("cat", "parts, each in its own set", function(x)
    local valid, first = {}, 1
    for i, part in ipairs(cseq) do
      valid[i] = part:check(x:narrow(dim, first, lengths[i]))
      first = first + lengths[i]
    end
    return lt.cat(valid, dim)
  end, from_parts("cat", cseq, {dim = dim, lengths = lengths}))
end

--- Returns the constraint of tensors whose slices along `dim` meet the constraints of a list, as
-- lt.stack puts them together.
function constraints.stack(...)
  local cseq, dim = parse.stack(...)
  return new("stack", "slices, each in its own set", function(x)
    local valid = {}
    for i, part in ipairs(cseq) do valid[i] = part:check(x:select(dim, i)) end
    return lt.stack(valid, dim)
  end, from_parts("stack", cseq, {dim = dim}))
end

constraints.dependent = new("dependent", "values that depend on other ones", function()
  args.fail("dependent: cannot check values: the set depends on other values")
end)

return require("lutra.internal.strict_table").strict(constraints, "lt.distributions.constraints")
