--- lt.elementwise(expression, names): compiles an expression to an elementwise function of tensors.
--
--     local f = lt.elementwise "x * x + y"          -- arguments in order of appearance: x, y
--     local g = lt.elementwise("a * x + y", {"x", "y", "a"})
--     print(f(x, y), f:derivative "x")
--
-- Arguments are tensors and numbers; shapes broadcast and dtypes are promoted as in the ops. An
-- expression can call every elementwise op. The function and its gradients are computed in one pass
-- over memory: on the CPU in blocks by the kernels of the ops, on a CUDA device by a kernel that is
-- generated from the formulas of the ops. Small tensors on the CPU, and expressions that one pass
-- cannot compute, are computed by a sequence of ops.
--
-- Invariant: all of these give the same values up to rounding, the same shapes and dtypes, and
-- gradients of any order.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local nodes = require "lutra.elementwise.nodes"
local parse = require "lutra.elementwise.parse"
local evaluate = require "lutra.elementwise.evaluate"
local program = require "lutra.elementwise.program"
local fused = require "lutra.elementwise.fused"

local Expression = {__name = "function of lt.elementwise"}

-- The field `expression` is formatted on first use, as the expression of a derivative may be long.
function Expression:__index(key)
  if key ~= "expression" then return Expression[key] end
  self.expression = parse.write(self._root)
  return self.expression
end

-- Returns a function with the arguments `names`; those not in the expression are ignored.
local function make(arena, root, names)
  local self = setmetatable({_arena = arena, _root = root, names = names}, Expression)
  self._order = nodes.order(root)
  self._used = {}
  for _, node in ipairs(self._order) do
    if node.f == "name" then self._used[node.name] = true end
  end
  return self
end

-- Reverses broadcasting (by sums) and type promotion: returns a gradient of the shape and dtype of
-- `like`.
local function reduce_to(gradient, like)
  local from, to = gradient.shape, like.shape
  local dims = {}
  for i = 1, #from do
    local size = to[i - (#from - #to)]
    if i <= #from - #to or (size == 1 and from[i] ~= 1) then dims[#dims + 1] = i end
  end
  if #dims > 0 then gradient = gradient:sum(dims) end
  return gradient:reshape(to):to(like.dtype)
end

-- Returns the autograd.Function that computes the expression in one pass, made on first use.
local function recorded(self)
  if self._op then return self._op end
  local op = require("lutra.autograd").Function:extend "Elementwise"
  function op.forward(ctx, ...)
    local values, tensors = {...}, {}
    ctx.numbers = {}
    for i = 1, #self.names do
      if core.is_tensor(values[i]) then
        tensors[#tensors + 1] = values[i]
      else
        ctx.numbers[i] = values[i]
      end
    end
    ctx:save_for_backward(table.unpack(tensors))
    return fused.run(fused.prepare(self, values)) or evaluate.run(self, values)
  end
  function op.backward(ctx, g)
    local tensors, values, next_tensor = {ctx:saved()}, {}, 1
    for i = 1, #self.names do
      values[i] = ctx.numbers[i]
      if values[i] == nil then
        values[i] = tensors[next_tensor]
        next_tensor = next_tensor + 1
      end
    end
    local out = fused.gradients(self, values, ctx.needs_input_grad, g)
    for i, gradient in pairs(out) do out[i] = reduce_to(gradient, values[i]) end
    return table.unpack(out, 1, #self.names)
  end
  self._op = op
  return op
end

-- Returns a list that is true for each argument that requires grad; nil when none does.
local function required_gradients(values)
  local required, any = {}, false
  for i, x in ipairs(core.is_grad_enabled() and values or {}) do
    required[i] = core.is_tensor(x) and x.requires_grad
    any = any or required[i]
  end
  return any and required or nil
end

-- Raises the error for tensors on different devices with the names of the expression, as the ops
-- would name "self" and "other". A tensor of 0 dimensions on the CPU is accepted beside tensors on
-- any device.
local function check_devices(self, values)
  local first, device
  for i, name in ipairs(self.names) do
    local x = values[i]
    if self._used[name] and core.is_tensor(x) and x.ndim > 0 then
      first, device = first or name, device or x.device
      if x.device ~= device then
        local moved, stays = name, first
        if device == "cpu" then moved, stays = first, name end
        args.fail("elementwise: expected tensors on one device, got '%s' on \"%s\" and '%s' on "
          .. '"%s"\nhint: %s:to(%s.device)', first, device, name, x.device, moved, stays)
      end
    end
  end
end

local function run(self, values)
  local job = fused.prepare(self, values)
  local required = job and required_gradients(values)
  if required then
    local found, depends = pcall(fused.has_gradient, self, job, required)
    if found and depends then return (recorded(self)(table.unpack(values, 1, #self.names))) end
    job = found and job -- a gradient that cannot be recorded is computed by the ops
  end
  local result = job and fused.run(job)
  if result then return result end
  local ok, message = pcall(evaluate.run, self, values)
  if ok then return message end
  check_devices(self, values)
  return error(message, 0)
end

local function is_complex_number(x)
  return type(x) == "userdata" and getmetatable(x) == "complex number"
end

-- Evaluates an expression with complex numbers among `values`, which become tensors of 0
-- dimensions.
local function run_with_complex(self, values)
  local tensors, wide = false, false
  for _, x in ipairs(values) do
    if core.is_tensor(x) then
      tensors, wide = true, wide or x.dtype == "float64" or x.dtype == "complex128"
    end
  end
  local dtype = (wide or not tensors) and "complex128" or "complex64"
  for i, x in ipairs(values) do
    if is_complex_number(x) then values[i] = core.tensor(x, {dtype = dtype, device = "cpu"}) end
  end
  local result = run(self, values)
  return not tensors and core.is_tensor(result) and result:item() or result
end

-- Raises an error for a wrong number or type of arguments. Returns whether any is a complex
-- number.
local function check_arguments(self, count, values)
  if count ~= #self.names then
    args.fail('elementwise: expected %d argument%s (%s) for "%s", got %d', #self.names,
      #self.names == 1 and "" or "s", table.concat(self.names, ", "), self.expression, count)
  end
  local has_complex = false
  for i, name in ipairs(self.names) do
    local x = values[i]
    if type(x) ~= "number" and not core.is_tensor(x) then
      if not is_complex_number(x) then
        args.fail("elementwise: expected a tensor or a number for argument '%s', got %s", name,
          args.show(x))
      end
      has_complex = true
    end
  end
  return has_complex
end

function Expression:__call(...)
  local values = {...}
  if check_arguments(self, select("#", ...), values) then return run_with_complex(self, values) end
  return run(self, values)
end

function Expression:__tostring()
  return ("elementwise(%s) %s"):format(table.concat(self.names, ", "), self.expression)
end

--- Returns the derivative with respect to an argument, as a function of the same arguments. A
-- constant derivative is a function that returns that number. Raises an error when `name` is no
-- argument.
function Expression:derivative(name)
  local known = false
  for _, own in ipairs(self.names) do known = known or own == name end
  args.check(known, "derivative: expected one of %s for argument 'name', got %s",
    table.concat(self.names, ", "), args.show(name))
  local arena, kinds, required, inputs = self._arena, {}, {}, {}
  for i, own in ipairs(self.names) do
    kinds[i], required[i] = {dtype = "float64"}, own == name
    inputs[i] = arena:name(own)
  end
  inputs[#inputs + 1] = arena:number(1) -- the gradient of the value
  local made = program.gradients(self, kinds, required)
  return make(arena, made and program.nodes(arena, made, inputs)[1] or arena:number(0), self.names)
end

--- f:source(dtype = "float32"): returns the CUDA C++ source of the kernel for contiguous tensors of
-- a floating-point dtype.
function Expression:source(dtype)
  dtype = dtype or "float32"
  args.check(fused.is_dtype(dtype), "source: expected a float dtype for argument 'dtype', got %s",
    args.show(dtype))
  return fused.source(self, dtype)
end

local MOST_NAMES = 60 -- a kernel has about 100 parameters

local function check_names(names)
  local seen = {}
  args.check(#names <= MOST_NAMES, "elementwise: expected at most %d names, got %d",
    MOST_NAMES, #names)
  for _, name in ipairs(names) do
    args.check(type(name) == "string" and name:find "^[%a_][%w_]*$",
      "elementwise: expected names such as \"x\" in argument 'names', got %s", args.show(name))
    args.check(not seen[name], "elementwise: expected different names in argument 'names', got "
      .. '"%s" twice', name)
    seen[name] = true
  end
  return names
end

-- Raises an error when the expression calls a composite op that is not elementwise, which a
-- recording shows. When the expression does not accept arguments of one dtype, another dtype is
-- recorded.
local function check_ops(self)
  for _, dtype in ipairs {"float32", "int64", "bool"} do
    local kinds = {}
    for i = 1, #self.names do kinds[i] = {dtype = dtype} end
    local ok, message = pcall(program.of, self, kinds)
    if ok then return end
    local reason = type(message) == "string" and message:match "'.-' is not an elementwise op"
    args.check(not reason, "elementwise: cannot compile \"%s\": %s", self.expression, reason)
  end
end

local signature = args.signature("elementwise", "string expression, table? names = nil")

--- Returns a callable function. The expression has the operators + - * / // % ^ as in Lua;
-- comparisons; and, or, not of these, which return booleans; where(c, a, b) or c ? a : b; max,
-- min; and every elementwise op by name: exp(x), atan2(y, x), clamp(x, 0, 1), bitwise_and(i, 3)...
-- pi, inf and nan are numbers. `names` is the order of the arguments, by default that of their
-- first appearance. Raises an error with the position in the expression for a syntax error and for
-- an op that is not elementwise.
return function(...)
  local expression, names = signature(...)
  local arena = nodes.arena()
  local root, found = parse.read(arena, expression, names and check_names(names))
  local self = make(arena, root, check_names(found))
  check_ops(self)
  return self
end
