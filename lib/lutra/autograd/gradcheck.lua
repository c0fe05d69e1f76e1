--- lt.autograd.gradcheck, gradgradcheck: compare gradients with finite differences.
--
-- For each input, the numerical Jacobian has the central differences (f(x + eps) - f(x - eps)) /
-- (2 eps) of each element, the analytical one a backward pass for each element of the output. A
-- complex number counts as its real and imaginary part.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local scopes = require "lutra.internal.scopes"

local checks = {}

-- Returns the inputs as a packed list.
local function input_list(title, inputs)
  if core.is_tensor(inputs) then return {inputs, n = 1} end
  args.expect(args.is_plain(inputs), title, "a tensor or a list of inputs", "inputs", inputs)
  return table.pack(table.unpack(inputs))
end

-- Returns the differentiable results of func(...), as a list.
local function outputs_of(title, func, inputs)
  local results = table.pack(func(table.unpack(inputs, 1, inputs.n)))
  if results.n == 1 and args.is_plain(results[1]) then
    results = table.pack(table.unpack(results[1]))
  end
  local list = {}
  for i = 1, results.n do
    local t = results[i]
    args.check(core.is_tensor(t), "%s: expected the function to return tensors, got %s", title,
      args.show(t))
    if t:is_floating_point() or t:is_complex() then list[#list + 1] = t end
  end
  return list
end

-- Returns the elements of a tensor as a list of numbers, with parts of complex numbers.
local function numbers_of(t)
  if t:is_complex() then t = core._ops.view_as_real(t:detach():resolve_conj()) end
  return t:detach():to{dtype = "float64"}:reshape(-1):totable()
end

-- Returns a view of the elements of a tensor that can be changed.
local function elements(t)
  local flat = t:detach()
  if flat:is_complex() then flat = core._ops.view_as_real(flat) end
  return flat:view(-1)
end

-- Returns numerical[i][k], the derivatives of output i by element k of the input.
local function numerical(title, func, inputs, which, eps)
  local flat, matrix = elements(inputs[which]), {}
  local function evaluate(k, value)
    flat[k] = value
    local lists = {}
    for i, t in ipairs(outputs_of(title, func, inputs)) do lists[i] = numbers_of(t) end
    return lists
  end
  for k = 1, flat:numel() do
    local x = flat[k]:item()
    local above = evaluate(k, x + eps)
    local below = evaluate(k, x - eps)
    flat[k] = x
    for i, list in ipairs(above) do
      matrix[i] = matrix[i] or {}
      matrix[i][k] = {}
      for j, value in ipairs(list) do matrix[i][k][j] = (value - below[i][j]) / (2 * eps) end
    end
  end
  return matrix
end

-- Returns the gradients of element j of an output, the parts of complex numbers counted.
local function row(output, j, inputs)
  local unit = core._ops.zeros_like(output, {memory_format = "contiguous_format"}):detach()
  elements(unit)[j] = 1
  return core._grad({output}, inputs, {grad_outputs = {unit}, retain_graph = true,
    allow_unused = true})
end

-- Returns whether two numbers are close; NaN is close to nothing.
local function are_close(a, b, o) return math.abs(a - b) <= o.atol + o.rtol * math.abs(b) end

-- Returns a description of the first difference, or nil.
local function first_difference(title, func, inputs, o)
  local leaves, at = {}, {}
  for i = 1, inputs.n do
    local t = inputs[i]
    if core.is_tensor(t) and t.requires_grad then
      leaves[#leaves + 1], at[#at + 1] = t, i
      args.check(t:is_contiguous(), "%s: expected contiguous inputs, got input %d, which is not\n"
        .. "hint: x:contiguous()", title, i)
    end
  end
  args.check(#leaves > 0, "%s: expected an input that requires grad, got none\n"
    .. 'hint: lt.randn{3, dtype = "float64", requires_grad = true}', title)
  local outputs = scopes.enable_grad(outputs_of, title, func, inputs)
  local analytical = {}
  for i, output in ipairs(outputs) do
    analytical[i] = {}
    local n = output:numel() * (output:is_complex() and 2 or 1)
    for j = 1, n do
      local grads = output.requires_grad and row(output, j, leaves) or {}
      for l in ipairs(leaves) do
        analytical[i][l] = analytical[i][l] or {}
        analytical[i][l][j] = grads[l] and numbers_of(grads[l]) or false
      end
    end
  end
  for l, leaf in ipairs(leaves) do
    local matrix = scopes.no_grad(numerical, title, func, inputs, at[l], o.eps)
    for i in ipairs(outputs) do
      for k = 1, elements(leaf):numel() do
        for j, expected in ipairs(matrix[i] and matrix[i][k] or {}) do
          local list = analytical[i][l][j]
          local got = list and list[k] or 0
          if not are_close(got, expected, o) then
            return ("the gradient of element %d of output %d by element %d of input %d: numerical "
              .. "%.8g, analytical %.8g"):format(j, i, k, at[l], expected, got)
          end
        end
      end
    end
  end
end

-- Returns whether there is no difference; with `raise`, raises an error that describes it instead.
local function check(title, func, inputs, raise, options)
  local found = first_difference(title, func, inputs, options)
  if found and raise then
    local low = nil
    for i = 1, inputs.n do
      local x = inputs[i]
      if core.is_tensor(x) and x.requires_grad and x.dtype ~= "float64"
        and x.dtype ~= "complex128" then
        low = low or i
      end
    end
    args.fail("%s: expected equal gradients, got a difference in %s%s", title, found, low
      and ("\nhint: input %d is %s, of too low a precision: use float64"):format(low,
        inputs[low].dtype) or "")
  end
  return found == nil
end

local COMMON = "float atol = 1e-5, float rtol = 1e-3, %sbool raise_exception = true, "
local parse_check = args.signature("gradcheck", "function func, any inputs, float eps = 1e-6, "
  .. COMMON:format "" .. "float nondet_tol = 0, bool check_undefined_grad = true, "
  .. "bool check_grad_dtypes = false, bool check_batched_grad = false, "
  .. "bool check_batched_forward_grad = false, bool check_forward_ad = false, "
  .. "bool check_backward_ad = true, bool fast_mode = false, bool? masked = nil")

--- gradcheck(func, inputs, {eps = 1e-6, atol = 1e-5, rtol = 1e-3, raise_exception = true}):
-- compares the gradients of func(inputs...) with central differences, for each input that requires
-- grad; they should be float64. Returns true when all are close: |a - n| <= atol + rtol |n|.
-- Otherwise it raises an error that names the element, or returns false with raise_exception =
-- false. The other options of PyTorch are accepted without effect.
function checks.gradcheck(...)
  local func, inputs, eps, atol, rtol, raise = parse_check(...)
  return check("gradcheck", func, input_list("gradcheck", inputs), raise,
    {eps = eps, atol = atol, rtol = rtol})
end

local parse_second = args.signature("gradgradcheck", "function func, any inputs, "
  .. "any? grad_outputs = nil, float eps = 1e-6, "
  .. COMMON:format "bool gen_non_contig_grad_outputs = false, "
  .. "float nondet_tol = 0, bool check_undefined_grad = true, bool check_grad_dtypes = false, "
  .. "bool check_batched_grad = false, bool check_fwd_over_rev = false, "
  .. "bool check_rev_over_rev = true, bool fast_mode = false, bool masked = false")

--- gradgradcheck(func, inputs, {grad_outputs, eps = 1e-6, atol = 1e-5, rtol = 1e-3, raise_exception
-- = true}): compares second derivatives: gradcheck of the gradients of func with respect to its
-- inputs and to the gradients of its outputs, random ones unless grad_outputs has them.
function checks.gradgradcheck(...)
  local func, inputs, grad_outputs, eps, atol, rtol, _, raise = parse_second(...)
  inputs = input_list("gradgradcheck", inputs)
  local outputs = scopes.enable_grad(outputs_of, "gradgradcheck", func, inputs)
  local given = grad_outputs and input_list("gradgradcheck", grad_outputs) or {}
  local all = table.pack(table.unpack(inputs, 1, inputs.n))
  for i, output in ipairs(outputs) do
    local g = given[i] or core._ops.randn_like(output)
    all[inputs.n + i] = g:detach():contiguous():clone():requires_grad_()
  end
  all.n = inputs.n + #outputs
  local function first(...)
    local arguments = {...}
    local leaves, grads = {}, {}
    for i = 1, inputs.n do
      local t = arguments[i]
      if core.is_tensor(t) and t.requires_grad then leaves[#leaves + 1] = t end
    end
    for i = 1, #outputs do grads[i] = arguments[inputs.n + i] end
    return scopes.enable_grad(function()
      local results = outputs_of("gradgradcheck", func, table.pack(table.unpack(arguments, 1,
        inputs.n)))
      local list = core._grad(results, leaves, {grad_outputs = grads, create_graph = true,
        allow_unused = true})
      local present = {}
      for i = 1, #leaves do present[#present + 1] = list[i] end
      return table.unpack(present)
    end)
  end
  return check("gradgradcheck", first, all, raise, {eps = eps, atol = atol, rtol = rtol})
end

return checks
