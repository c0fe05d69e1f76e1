--- lt.func.grad, grad_and_value, value_and_grad, vjp, jvp, linearize: derivatives of functions.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local levels = require "lutra.func.levels"
local tree = require "lutra.internal.tree"

local gradients = {}

local parse = {}
for _, name in ipairs{"grad", "grad_and_value", "value_and_grad"} do
  parse[name] = args.signature(name,
    "function func, any? argnums = nil, bool has_aux = false")
end

-- Returns the arguments' numbers as a list, and whether it was one number.
function gradients.numbers(title, argnums)
  if argnums == nil then return {1}, true end
  local list = type(argnums) == "number" and {argnums} or argnums
  args.expect(args.is_plain(list) and #list > 0, title, "an int or a list of ints", "argnums",
    argnums)
  for i, n in ipairs(list) do
    args.expect(math.tointeger(n) and n ~= 0, title, "ints from 1 (negative: from the end)",
      "argnums", argnums)
    list[i] = math.tointeger(n)
  end
  return list, type(argnums) == "number"
end

-- Replaces the arguments that `numbers` selects by inputs of a transform. Returns the new
-- arguments, the list of inputs and the selected arguments.
function gradients.replace(title, numbers, arguments)
  local new, list, selected = table.move(arguments, 1, arguments.n, 1, {n = arguments.n}), {}, {}
  for i, n in ipairs(numbers) do
    local at = n < 0 and arguments.n + 1 + n or n
    args.check(at >= 1 and at <= arguments.n,
      "%s: expected numbers of arguments up to %d for argument 'argnums', got %d", title,
      arguments.n, n)
    local copy, inputs = levels.inputs(title, arguments[at])
    args.check(#inputs > 0, "%s: expected a tensor or a table of tensors for argument %d, got %s",
      title, at, args.show(arguments[at]))
    new[at], selected[i] = copy, copy
    table.move(inputs, 1, #inputs, #list + 1, list)
  end
  return new, list, selected
end

-- Returns the function's value, the gradients as one tree, and aux.
local function run(title, func, numbers, one, has_aux, ...)
  local new, inputs, selected = gradients.replace(title, numbers, table.pack(...))
  local value, aux = levels.call(func, table.unpack(new, 1, new.n))
  levels.check_scalar(title, value)
  local free = not levels.reaches_others({value}, inputs)
  local list = levels.call(levels.gradients, {value}, inputs, nil, not free)
  local result = tree.fill(one and selected[1] or selected, list)
  return levels.finish(value, free), levels.finish(result, free),
    has_aux and levels.finish(aux, free) or nil
end

-- Returns a function that calls `run` and passes its results to `order`.
local function transform(title, order)
  return function(...)
    local func, argnums, has_aux = parse[title](...)
    local numbers, one = gradients.numbers(title, argnums)
    return function(...)
      return order(has_aux, run(title, func, numbers, one, has_aux, ...))
    end
  end
end

local transforms = {}

transforms.grad = transform("grad", function(has_aux, _, grads, aux)
  if has_aux then return grads, aux end
  return grads
end)

transforms.grad_and_value = transform("grad_and_value", function(has_aux, value, grads, aux)
  if has_aux then return grads, {value, aux} end
  return grads, value
end)

transforms.value_and_grad = transform("value_and_grad", function(has_aux, value, grads, aux)
  if has_aux then return {value, aux}, grads end
  return value, grads
end)

--- grad(func, {argnums = 1, has_aux = false}): returns a function that returns the gradient of
-- func(...), a 0-d tensor, with respect to its argument number `argnums`: a tensor for a tensor, a
-- table for a table of tensors, a list for a list of argnums. With has_aux, func returns (value,
-- aux), and the function returns (gradient, aux). Transforms can be nested. Raises an error where
-- the value is no 0-d tensor or an argument has no floating-point tensor.
function gradients.grad(...) return transforms.grad(...) end

--- grad_and_value(func, {argnums = 1, has_aux = false}): as grad, but the function returns
-- (gradient, value); with has_aux (gradient, {value, aux}).
function gradients.grad_and_value(...) return transforms.grad_and_value(...) end

--- value_and_grad(func, {argnums = 1, has_aux = false}): as grad_and_value, with the results in the
-- other order, (value, gradient), as in JAX; with has_aux ({value, aux}, gradient).
function gradients.value_and_grad(...) return transforms.value_and_grad(...) end

--- vjp(func, ...[, {has_aux = true}]): calls func with the primals and returns (output, vjp_fn[,
-- aux]). vjp_fn(cotangents), a tree like the output, returns the vector-Jacobian product for each
-- primal, one result for each. Several results of func are a list.
function gradients.vjp(func, ...)
  args.expect(args.is_callable(func), "vjp", "a function", "func", func)
  local options, primals = levels.options({has_aux = true}, ...)
  local numbers = {}
  for i = 1, primals.n do numbers[i] = i end
  args.check(primals.n > 0, "vjp: expected at least one primal, got none")
  local new, inputs, selected = gradients.replace("vjp", numbers, primals)
  local results = table.pack(levels.call(func, table.unpack(new, 1, new.n)))
  local aux
  if options.has_aux then
    aux, results.n = results[results.n], results.n - 1
  end
  local output = levels.packed(table.unpack(results, 1, results.n))
  local outputs = tree.leaves(output)
  local free = not levels.reaches_others(outputs, inputs)
  local function vjp_fn(cotangents, ...)
    if select("#", ...) > 0 then cotangents = {cotangents, ...} end
    local given = tree.leaves(cotangents)
    args.check(#given == #outputs,
      "vjp: expected %d tensors for argument 'cotangents', as the function returned, got %d",
      #outputs, #given)
    local create = not free
    for _, t in ipairs(given) do create = create or t.requires_grad end
    local list = levels.call(levels.gradients, outputs, inputs, given, create, true)
    return table.unpack(levels.finish(tree.fill(selected, list), not create))
  end
  output = levels.finish(output, free)
  if options.has_aux then return output, vjp_fn, levels.finish(aux, free) end
  return output, vjp_fn
end

-- Returns, for outputs and inputs, a function from tangents to the products of the Jacobian with
-- them: the derivative of the vector-Jacobian product with respect to its vector, in which it is
-- linear.
function gradients.pushforward(outputs, inputs)
  local vectors = {}
  for i, t in ipairs(outputs) do vectors[i] = core._ops.zeros_like(t):detach():requires_grad_() end
  local products = levels.call(levels.gradients, outputs, inputs, vectors, true)
  return function(tangents, create)
    local list = levels.call(levels.gradients, products, vectors, tangents, create, true)
    for i, t in ipairs(list) do
      if not create then list[i] = t:detach() end
    end
    return list
  end
end

-- Returns one value of the primals, a list or a single tensor, as a packed list.
local function primal_list(title, name, value)
  if core.is_tensor(value) then return {value, n = 1} end
  args.expect(args.is_plain(value) and #value > 0, title, "a list with a value for each argument",
    name, value)
  return table.pack(table.unpack(value))
end

-- Calls func with inputs of a transform. Returns the output, its leaves, aux, the inputs, and
-- whether the results depend on them only.
local function evaluate(title, func, primals, has_aux)
  local numbers = {}
  for i = 1, primals.n do numbers[i] = i end
  local new, inputs = gradients.replace(title, numbers, primals)
  local results = table.pack(levels.call(func, table.unpack(new, 1, new.n)))
  local aux
  if has_aux then
    aux, results.n = results[results.n], results.n - 1
  end
  local output = levels.packed(table.unpack(results, 1, results.n))
  local outputs = tree.leaves(output)
  return output, outputs, aux, inputs, not levels.reaches_others(outputs, inputs)
end

-- Raises an error unless the tangents have the shapes of the inputs.
local function check_tangents(title, tangents, inputs)
  args.check(#tangents == #inputs, "%s: expected %d tensors for argument 'tangents', got %d", title,
    #inputs, #tangents)
  for i, t in ipairs(tangents) do
    args.check(t.shape == inputs[i].shape,
      "%s: expected a tangent of shape %s for argument 'tangents', got %s", title,
      inputs[i].shape, t.shape)
  end
end

local parse_jvp = args.signature("jvp",
  "function func, any primals, any tangents, bool strict = false, bool has_aux = false")

--- jvp(func, primals, tangents, {strict = false, has_aux = false}): returns (output, jvp[, aux]):
-- func's output, and the product of its Jacobian with the tangents, of the output's structure.
-- primals and tangents are lists with a value for each argument of func. It is computed by two
-- reverse passes, so the ops of func need second derivatives.
function gradients.jvp(...)
  local func, primals, tangents, _, has_aux = parse_jvp(...)
  local output, outputs, aux, inputs, free = evaluate("jvp", func,
    primal_list("jvp", "primals", primals), has_aux)
  tangents = tree.leaves(primal_list("jvp", "tangents", tangents))
  check_tangents("jvp", tangents, inputs)
  local create = not free
  for _, t in ipairs(tangents) do create = create or t.requires_grad end
  local product = tree.fill(output, gradients.pushforward(outputs, inputs)(tangents, create))
  output, product = levels.finish(output, free), levels.finish(product, not create)
  if has_aux then return output, product, levels.finish(aux, free) end
  return output, product
end

--- linearize(func, ...): returns (output, jvp_fn): func's output, and a function that returns the
-- product of its Jacobian at these primals with its arguments, one tangent for each primal. func is
-- called once.
function gradients.linearize(func, ...)
  args.expect(args.is_callable(func), "linearize", "a function", "func", func)
  local output, outputs, _, inputs, free = evaluate("linearize", func, table.pack(...))
  local push = gradients.pushforward(outputs, inputs)
  return levels.finish(output, free), function(...)
    local tangents = tree.leaves{...}
    check_tangents("linearize", tangents, inputs)
    return levels.finish(tree.fill(output, push(tangents, not free)), free)
  end
end

return gradients
