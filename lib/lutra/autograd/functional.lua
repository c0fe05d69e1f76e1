--- lt.autograd.functional: Jacobians, Hessians and their products with vectors, as
-- torch.autograd.functional.
--
-- `inputs` and `v` are a tensor for a function of one argument, or a list of tensors, one for each
-- argument; results have the same form. With strict = true an output that does not depend on an
-- input is an error instead of zeros. With create_graph = true results are differentiable.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local gradients = require "lutra.func.gradients"
local jacobians = require "lutra.func.jacobians"
local levels = require "lutra.func.levels"

local functional = {}

local fail = args.fail

-- Returns a tensor or a list of tensors as a list, and whether it was one tensor.
local function list_of(title, name, value)
  if core.is_tensor(value) then return {value}, true end
  args.expect(args.is_plain(value) and #value > 0, title, "a tensor or a list of tensors", name,
    value)
  for _, t in ipairs(value) do
    args.expect(core.is_tensor(t), title, "a tensor or a list of tensors", name, t)
  end
  return value, false
end

-- Raises an error when an output does not depend on an input.
local function check_strict(title, outputs, inputs)
  for i, output in ipairs(outputs) do
    if not output.requires_grad then
      fail("%s: output %d does not depend on the inputs, which strict = true does not allow", title,
        i)
    end
    local found = core._grad({output}, inputs, {grad_outputs = {core._ops.ones_like(output)},
      retain_graph = true, allow_unused = true})
    for j = 1, #inputs do
      if not found[j] then
        fail("%s: output %d does not depend on input %d, which strict = true does not allow",
          title, i, j)
      end
    end
  end
end

-- One call of a function: its outputs, inputs, and in which form they are returned.
local function call(title, func, inputs, create, strict)
  local list, one = list_of(title, "inputs", inputs)
  local aliases = {}
  for i, t in ipairs(list) do
    aliases[i] = create and levels.input(title, t) or levels.input(title, t:detach())
  end
  local results = table.pack(levels.call(func, table.unpack(aliases)))
  local outputs, single = results, results.n == 1
  if single and not core.is_tensor(results[1]) then
    outputs, single = list_of(title, "func's result", results[1])
  end
  for _, t in ipairs(outputs) do
    args.check(core.is_tensor(t), "%s: expected the function to return tensors, got %s", title,
      args.show(t))
  end
  if strict then levels.call(check_strict, title, outputs, aliases) end
  return {inputs = aliases, outputs = table.move(outputs, 1, #outputs, 1, {}), one = one,
    single = single, create = create}
end

-- Returns a list in the form that the caller uses: differentiable or not, a tensor or a list.
local function given_back(list, create, one)
  local result = {}
  for i, t in ipairs(list) do result[i] = create and t or t:detach() end
  if one then return result[1] end
  return result
end

-- Returns the vector `v` as a list, ones for nil, which is allowed for a single element.
local function vectors(title, v, tensors, what)
  if v == nil then
    args.check(#tensors == 1 and tensors[1]:numel() == 1,
      "%s: expected a value for argument 'v', as the %s has more than one element", title, what)
    return {core._ops.ones_like(tensors[1]):detach()}
  end
  local list = list_of(title, "v", v)
  args.check(#list == #tensors, "%s: expected %d tensors for argument 'v', got %d", title, #tensors,
    #list)
  for i, t in ipairs(list) do
    args.check(t.shape == tensors[i].shape, "%s: expected shape %s for argument 'v', got %s", title,
      tensors[i].shape, t.shape)
  end
  return list
end

-- Raises an error unless the call has one output with one element.
local function check_one(title, c)
  args.check(c.single and c.outputs[1]:numel() == 1,
    "%s: expected the function to return a tensor with one element", title)
end

local parse_jacobian = args.signature("jacobian", "function func, any inputs, "
  .. "bool create_graph = false, bool strict = false, bool vectorize = false, "
  .. "'reverse-mode'|'forward-mode' strategy = 'reverse-mode'")

--- jacobian(func, inputs, {create_graph = false, strict = false, vectorize = false, strategy =
-- "reverse-mode"}): returns the Jacobian of func, of shape {output.shape..., input.shape...}: for
-- several inputs a list of them, for several outputs a list of these. vectorize has no effect.
function functional.jacobian(...)
  local func, inputs, create, strict, _, strategy = parse_jacobian(...)
  local c = call("jacobian", func, inputs, create, strict)
  local matrix_of = strategy == "reverse-mode" and jacobians.by_rows or jacobians.by_columns
  local matrix = levels.call(matrix_of, c.outputs, c.inputs, create)
  for i, row in ipairs(matrix) do matrix[i] = given_back(row, create, c.one) end
  if c.single then return matrix[1] end
  return matrix
end

local parse_hessian = args.signature("hessian", "function func, any inputs, "
  .. "bool create_graph = false, bool strict = false, bool vectorize = false, "
  .. "'reverse-mode'|'forward-mode' outer_jacobian_strategy = 'reverse-mode'")

--- hessian(func, inputs, {create_graph = false, strict = false, vectorize = false,
-- outer_jacobian_strategy = "reverse-mode"}): returns the second derivatives of func, which returns
-- one element: a tensor for one input, a list of lists for several.
function functional.hessian(...)
  local func, inputs, create, strict, vectorize, strategy = parse_hessian(...)
  local function first(...)
    local result = func(...)
    args.check(core.is_tensor(result) and result:numel() == 1,
      "hessian: expected the function to return a tensor with one element, got %s",
      args.show(result))
    local list = {...}
    local grads = levels.gradients({result:reshape{}}, list, nil, true)
    if strict then levels.call(check_strict, "hessian", {result}, list) end
    return table.unpack(grads)
  end
  return functional.jacobian(first, inputs, {create_graph = create, strict = strict,
    vectorize = vectorize, strategy = strategy})
end

local PRODUCT = "function func, any inputs, any? v = nil, bool create_graph = false, "
  .. "bool strict = false"
local parse_vjp, parse_jvp = args.signature("vjp", PRODUCT), args.signature("jvp", PRODUCT)
local parse_vhp, parse_hvp = args.signature("vhp", PRODUCT), args.signature("hvp", PRODUCT)

--- vjp(func, inputs, v, {create_graph = false, strict = false}): returns func's outputs and the
-- product of v, of their shape, with the Jacobian.
function functional.vjp(...)
  local func, inputs, v, create, strict = parse_vjp(...)
  local c = call("vjp", func, inputs, create, strict)
  v = vectors("vjp", v, c.outputs, "output")
  local list = levels.call(levels.gradients, c.outputs, c.inputs, v, create, true)
  return given_back(c.outputs, create, c.single), given_back(list, create, c.one)
end

--- jvp(func, inputs, v, {create_graph = false, strict = false}): returns func's outputs and the
-- product of the Jacobian with v, of the inputs' shape.
function functional.jvp(...)
  local func, inputs, v, create, strict = parse_jvp(...)
  local c = call("jvp", func, inputs, create, strict)
  v = vectors("jvp", v, c.inputs, "input")
  local list = gradients.pushforward(c.outputs, c.inputs)(v, create)
  return given_back(c.outputs, create, c.single), given_back(list, create, c.single)
end

--- vhp(func, inputs, v, {create_graph = false, strict = false}): returns the output of func, one
-- element, and the product of v, of the inputs' shape, with its Hessian.
function functional.vhp(...)
  local func, inputs, v, create, strict = parse_vhp(...)
  local c = call("vhp", func, inputs, create, strict)
  check_one("vhp", c)
  v = vectors("vhp", v, c.inputs, "input")
  local first = levels.call(levels.gradients, c.outputs, c.inputs, nil, true)
  local list = levels.call(levels.gradients, first, c.inputs, v, create, true)
  return given_back(c.outputs, create, true), given_back(list, create, c.one)
end

--- hvp(func, inputs, v, {create_graph = false, strict = false}): returns the output of func, one
-- element, and the product of its Hessian with v, of the inputs' shape. vhp is faster, and equal
-- where the Hessian is symmetric.
function functional.hvp(...)
  local func, inputs, v, create, strict = parse_hvp(...)
  local c = call("hvp", func, inputs, create, strict)
  check_one("hvp", c)
  v = vectors("hvp", v, c.inputs, "input")
  local first = levels.call(levels.gradients, c.outputs, c.inputs, nil, true)
  local list = gradients.pushforward(first, c.inputs)(v, create)
  return given_back(c.outputs, create, true), given_back(list, create, c.one)
end

return require("lutra.internal.strict_table").strict(functional, "lt.autograd.functional")
