-- Every gradient (of composites too) against finite differences in float64: the first derivative,
-- the second, the in-place variant, the in-place variant written into a view, and inputs whose
-- memory is not in order. The inputs are in support/gradient_samples_support.lua; a test holds that
-- table complete against the op table.
local lt = require "lutra"
local ops = require("lutra.core")._ops
local wide = require "wide_support"

local STEP, RELATIVE, ABSOLUTE = 1e-5, wide.tolerance(2e-6, 1e-4), wide.tolerance(2e-7, 2e-5)
local EXACT = wide.tolerance(1e-12, 1e-6)

local support = require "gradient_samples_support"
local samples, is_differentiable = support.samples, support.is_differentiable
local numbers, R, I, V = support.numbers, support.R, support.I, support.V

for _, op in ipairs(lt.ops()) do
  if is_differentiable(op) and not samples[op.name] then
    samples[op.name] = support.samples_of(op)
  end
end

-- ---- checking

-- The tensors among arguments (and their lists) that are differentiated.
local function variables(args)
  local list = {}
  for i = 1, args.n do
    local a = args[i]
    if lt.is_tensor(a) and a.requires_grad then
      list[#list + 1] = a
    elseif type(a) == "table" then
      for _, b in ipairs(a) do
        if lt.is_tensor(b) and b.requires_grad then list[#list + 1] = b end
      end
    end
  end
  return list
end

-- The same arguments with tensors replaced by replace(tensor).
local function mapped(args, replace)
  local copy = {n = args.n}
  for i = 1, args.n do
    local a = args[i]
    if lt.is_tensor(a) and a.requires_grad then
      copy[i] = replace(a)
    elseif type(a) == "table" and lt.is_tensor(a[1]) then
      copy[i] = {}
      for k, b in ipairs(a) do copy[i][k] = b.requires_grad and replace(b) or b end
    else
      copy[i] = a
    end
  end
  return copy
end

-- Ops of several results of which the first is differentiable.
local FIRST_ONLY = {
  _max = true, _min = true, sort = true, topk = true, _layer_norm = true, _nll_loss = true,
  _cross_entropy = true,
  _batch_norm = true, _group_norm = true, _attention = true,
}

-- Of ops that read one triangle of their input: the input that their gradients assume.
local function hermitian(x) return (x + x:transpose(-2, -1)) * 0.5 end
local function lower(x) return x:tril() end
local PREPARED = {
  _linalg_cholesky = hermitian, cholesky = hermitian, cholesky_ex = hermitian,
  _linalg_eigh = hermitian, eigh = hermitian, eigvalsh = hermitian, matrix_sqrth = hermitian,
  cholesky_inverse = lower,
}

-- Runs an op from the same seed; its differentiable results.
local function run(name, args)
  lt.manual_seed(1)
  if PREPARED[name] then
    args = table.move(args, 1, args.n, 1, {n = args.n})
    args[1] = PREPARED[name](args[1])
  end
  local results, list = {ops[name](table.unpack(args, 1, args.n))}, {}
  if type(results[1]) == "table" then results = results[1] end
  for i, r in ipairs(results) do
    if r.dtype:find "complex" then results[i] = lt.view_as_real(r) end
  end
  for _, r in ipairs(results) do
    if r.requires_grad or r.dtype == "float64" or r.dtype == wide.dtype then list[#list + 1] = r end
  end
  if FIRST_ONLY[name] then list = {list[1]} end
  return list
end

local function weights_of(results)
  local list = {}
  support.seed(100)
  for i, r in ipairs(results) do
    list[i] = r.ndim > 0 and numbers(0.5, 1.5, table.unpack(r.shape)) or numbers(0.5, 1.5)
  end
  return list
end

local function weighted(results, weights)
  local total = 0
  for i, r in ipairs(results) do total = total + (r * weights[i]):sum() end
  return total
end

-- Gradients with zeros where an input was not used; nothing to differentiate gives zeros.
local function gradients(y, inputs, create)
  if not y.requires_grad then
    local zeros = {}
    for i, x in ipairs(inputs) do zeros[i] = lt.zeros_like(x) end
    return zeros
  end
  local g = lt.autograd.grad(y, inputs,
  {create_graph = create or false, retain_graph = true, allow_unused = true})
  for i, x in ipairs(inputs) do g[i] = g[i] or lt.zeros_like(x) end
  return g
end

-- d f() / d x by central differences.
local function numerical(f, x)
  local flat, out = x:detach():view(-1), {}
  for k = 1, flat:numel() do
    local was = flat[k]:item()
    flat[k] = was + STEP
    local up = f():item()
    flat[k] = was - STEP
    local down = f():item()
    flat[k] = was
    out[k] = (up - down) / (2 * STEP)
  end
  return out
end

local function agree(got, want, what)
  local values = got:detach():contiguous():view(-1)
  for k = 1, values:numel() do
    local g, w = values[k]:item(),
    lt.is_tensor(want) and want:contiguous():view(-1)[k]:item() or want[k]
    local close = math.abs(g - w) <= ABSOLUTE + RELATIVE * math.max(math.abs(w), math.abs(g))
    if not close then -- NaN is not
      error(("%s: element %d is %.9g, expected %.9g"):format(what, k, g, w), 2)
    end
  end
end

-- A tensor or a list of tensors on the CPU in float64; any other value itself.
local function on_cpu(a)
  if type(a) == "table" and (lt.is_tensor(a[1]) or lt.is_tensor(a[2])) then
    local list = {}
    for i, b in ipairs(a) do list[i] = on_cpu(b) end
    return list
  end
  if a == lt.get_default_device() then return "cpu" end
  if a == wide.dtype then return "float64" end
  if not lt.is_tensor(a) then return a end
  local dtype = a.dtype == wide.dtype and "float64" or a.dtype
  return a:detach():to{device = "cpu", dtype = dtype}:requires_grad_(a.requires_grad)
end

-- The gradients of compute(args, weights, probes) by another way: finite differences or, on a
-- device without float64, the gradients that the CPU has in float64, which agree with them.
local function expected_gradients(compute, inputs, args, ...)
  local list, rest = {}, table.pack(...)
  if wide.is_narrow then
    local there = {n = args.n}
    for i = 1, args.n do there[i] = on_cpu(args[i]) end
    for i = 1, rest.n do rest[i] = on_cpu(rest[i]) end
    return lt.with_device("cpu", function()
      local y, from = compute(there, table.unpack(rest, 1, rest.n))
      return gradients(y, from)
    end)
  end
  local function value() return (compute(args, table.unpack(rest, 1, rest.n))) end
  for i, x in ipairs(inputs) do list[i] = numerical(value, x) end
  return list
end

local function first_derivative(name, args)
  local function compute(arguments, weights)
    return weighted(run(name, arguments), weights), variables(arguments)
  end
  local weights = weights_of(run(name, args))
  local y, inputs = compute(args, weights)
  local found = gradients(y, inputs)
  local expected = expected_gradients(compute, inputs, args, weights)
  for i, g in ipairs(found) do
    assert.are.same(inputs[i].shape, g.shape)
    agree(g, expected[i], ("%s, gradient %d"):format(name, i))
  end
end

local function second_derivative(name, args)
  local weights, probes = weights_of(run(name, args)), {}
  for _, w in ipairs(weights) do w:requires_grad_() end
  support.seed(200)
  for i, x in ipairs(variables(args)) do
    local shape = x.shape
    probes[i] = numbers(0.5, 1.5, table.unpack(shape))
  end
  local function compute(arguments, weight, probe)
    local inputs = variables(arguments)
    local g = gradients(weighted(run(name, arguments), weight), inputs, true)
    return weighted(g, probe), table.move(weight, 1, #weight, #inputs + 1, inputs)
  end
  local y, inputs = compute(args, weights, probes)
  local found = gradients(y, inputs)
  local expected = expected_gradients(compute, inputs, args, weights, probes)
  for i, g in ipairs(found) do
    agree(g, expected[i], ("%s, gradient %d of the gradient"):format(name, i))
  end
end

-- Ops whose variant in place changes the geometry of self, not its values; copy_ is another op.
local OF_GEOMETRY = {copy = true}
for name in ("t transpose swapdims swapaxes squeeze unsqueeze as_strided"):gmatch "%S+" do
  OF_GEOMETRY[name] = true
end

-- The variant that writes into self, and the same into a row of a larger tensor, have the
-- gradients of the plain one.
local function in_place(name, args)
  local self = args[1]
  if OF_GEOMETRY[name] then return end
  if not ops[name .. "_"] or not lt.is_tensor(self) then return end
  local inputs, plain = variables(args), run(name, args)
  if plain[1].shape ~= self.shape then return end
  local weights = weights_of(plain)
  local want = gradients(weighted(plain, weights), inputs)
  local function written(y)
    local copy = table.move(args, 1, args.n, 1, {n = args.n})
    copy[1] = y
    return run(name .. "_", copy)
  end
  for i, g in ipairs(gradients(weighted(written(self * 1), weights), inputs)) do
    agree(g, want[i], ("%s_, gradient %d"):format(name, i))
  end
  local base = lt.stack{self * 2, self * 1, self * 3}
  written(base:select(1, 2))
  local y = weighted({base:select(1, 2)}, weights) + base:select(1, 3):sum()
  for i, g in ipairs(gradients(y, inputs)) do
    local more = rawequal(inputs[i], self) and 3 or 0
    agree(g, want[i] + more, ("%s_ of a view, gradient %d"):format(name, i))
  end
end

-- The same numbers in memory of another order.
local function reordered(x)
  local order = {}
  for d = x.ndim, 1, -1 do order[#order + 1] = d end
  if x.ndim < 2 then return lt.stack({x:detach(), x:detach()}, -1):select(-1,
  1):requires_grad_() end
  return x:detach():permute(order):contiguous():permute(order):requires_grad_()
end

local function any_layout(name, args)
  if name:find "^as_strided" or name:find "^view" then return end -- they speak of memory
  local plain = run(name, args)
  local weights = weights_of(plain)
  local want = gradients(weighted(plain, weights), variables(args))
  local other = mapped(args, reordered)
  for i, g in ipairs(gradients(weighted(run(name, other), weights), variables(other))) do
    agree(g, want[i], ("%s of reordered memory, gradient %d"):format(name, i))
  end
end

-- Shapes of results or gradients that depend on values.
local NEEDS_DATA = {masked_select = true, masked_scatter = true, combinations = true}

-- On meta the gradients have the inputs' shapes and dtypes, and nothing is computed.
local function on_meta(name, args)
  if NEEDS_DATA[name] or name == "to" or name == "_to_copy" then return end
  local function moved(a)
    if not lt.is_tensor(a) then return a end
    return a:detach():to("meta"):requires_grad_(a.requires_grad)
  end
  local there = {n = args.n}
  for i = 1, args.n do
    local a = args[i]
    there[i] = moved(a)
    if type(a) == "table" then
      there[i] = {}
      for k, b in ipairs(a) do there[i][k] = moved(b) end
    end
  end
  local inputs, total = variables(there), 0
  for _, r in ipairs(run(name, there)) do total = total + r:sum() end
  for i, g in ipairs(gradients(total, inputs)) do
    assert.are.equal("meta", g.device)
    assert.is_true(g.shape == inputs[i].shape and g.dtype == wide.dtype)
  end
end

-- A reduction over any dims has these unless it has its own.
local reduction = {
  function() return R(2, 3) end, function() return R(2, 3, 2), {1, 3} end,
  function() return R(2, 3), 2, true end, function() return R() end,
}
for _, op in ipairs(lt.ops()) do
  if op.kind == "reduce" and op.has_gradient and not samples[op.name] then
    samples[op.name] = reduction
  end
end

-- Ops that composites choose only on devices that have a kernel for them.
local CHOSEN = {_cross_entropy = true}

-- Returns whether the default device lacks such an op.
local function is_lacking(name)
  local device = lt.get_default_device():match "^%a+"
  for _, op in ipairs(CHOSEN[name] and lt.ops() or {}) do
    if op.name == name then return not op.support[device] end
  end
  return false
end

describe("gradients", function()
  local names = {}
  for name in pairs(samples) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    it("of " .. name .. " agree with finite differences", function()
      if is_lacking(name) then return pending "the device has no kernel" end
      for number, sample in ipairs(samples[name]) do
        support.seed(number)
        local args = table.pack(sample())
        assert.is_true(#variables(args) > 0)
        local ok, reason = pcall(function()
          first_derivative(name, args)
          any_layout(name, args)
          on_meta(name, args)
          in_place(name, args)
          second_derivative(name, args)
        end)
        if not ok then error(("sample %d: %s"):format(number, tostring(reason)), 0) end
      end
    end)
  end

  -- Where there is no derivative (ties, kinks, zeros): one is chosen. The values are PyTorch's, but
  -- for logsumexp of nothing but -inf, where it has NaN. kink_values_spec.lua has many more.
  local inf, nan = math.huge, 0 / 0
  local kinks = {
    {"maximum", {{1, 2, 3}, {1, 5, 2}}, {{.5, 0, 1}, {.5, 1, 0}}},
    {"minimum", {{1, 2, 3}, {1, 5, 2}}, {{.5, 1, 0}, {.5, 0, 1}}},
    {"fmax", {{1, 2, nan}, {1, 5, 2}}, {{.5, 0, 0}, {.5, 1, 1}}},
    {"fmin", {{1, 2, nan}, {1, 5, 2}}, {{.5, 1, 0}, {.5, 0, 1}}},
    {"amax", {{1, 3, 3, 3}}, {{0, 1 / 3, 1 / 3, 1 / 3}}},
    {"max", {{1, 3, 3, 3}}, {{0, 1 / 3, 1 / 3, 1 / 3}}},
    {"_max", {{1, 3, 3, 3}}, {{0, 1, 0, 0}}, 1},
    {"relu", {{0, -1, 1}}, {{0, 0, 1}}}, {"abs", {{0, -1}}, {{0, -1}}},
    {"norm", {{0, 0}}, {{0, 0}}}, {"norm", {{0, 1}}, {{0, 1}}, 1}, {"norm", {{2, -2, 1}},
      {{.5, -.5, 0}}, inf},
    {"norm", {{0, 0}}, {{0, 0}}, 3}, {"norm", {{0, 1, 4}}, {{0, 3, 1.5}}, 0.5}, {"norm", {{0, 0}},
      {{0, 0}}, 1.5},
    {"clamp", {{0, 1, 2, -1, .5}}, {{0, 0, 0, 0, 1}}, 0, 1},
    {"clamp", {{0, 5, 2}, {1, 1, 3}, {2, 2, 1}}, {{0, 0, 0}, {1, 0, 0}, {0, 1, 1}}},
    {"pow", {{0, 0, 0, 2}, {0, 2, .5, 0}}, {{0, 0, inf, 0}, {0, 0, 0, 0.6931471805599453}}},
    {"pow", {{0, 2}}, {{0, 0}}, 0}, {"std", {{1, 1, 1}}, {{0, 0, 0}}},
    {"copysign", {{0, -2, 3}, {-1, 1, -1}}, {{0, -1, -1}, {0, 0, 0}}},
    {"leaky_relu", {{0, -1}}, {{.01, .01}}}, {"elu", {{0, -1}}, {{1, 0.36787944117144233}}},
    {"nan_to_num", {{nan, inf, 1}}, {{0, 0, 1}}}, {"remainder", {{5.5, -5.5}, {2, -2}},
      {{1, 1}, {-2, -2}}},
    {"logsigmoid", {{0, -800, 800}}, {{.5, 1, 0}}}, {"softplus", {{0, 30, -800}}, {{.5, 1, 0}}},
    {"cumprod", {{2, 0, 3, 0}}, {{1, 8, 0, 0}}, 1}, {"prod", {{0, 3, 0}}, {{0, 0, 0}}},
    {"cummax", {{1, 1, 0, 2}}, {{1, 2, 0, 1}}, 1}, {"cummax", {{1, nan, 2, 3}}, {{1, 3, 0, 0}}, 1},
    {"cummin", {{1, 1, 3, 0}}, {{1, 2, 0, 1}}, 1},
    {"sqrt", {{0}}, {{inf}}}, {"hypot", {{0, 3}, {0, 4}}, {{nan, .6}, {nan, .8}}},
    {"softmax", {{-inf, 0}}, {{0, 0}}, 1}, {"logsumexp", {{-inf, -inf}}, {{0, 0}}, 1},
  }
  for _, kink in ipairs(kinks) do
    local name, data, want = kink[1], kink[2], kink[3]
    it(("of %s at ties and kinks are PyTorch's (%s)"):format(name, table.concat(data[1], " ")),
    function()
      local args = {}
      for i, d in ipairs(data) do args[i] = V(d) end
      local inputs = table.move(args, 1, #args, 1, {})
      for i = 4, #kink do args[#args + 1] = kink[i] end
      local y = ops[name](table.unpack(args))
      for i, g in ipairs(gradients(y:sum(), inputs)) do
        for k, w in ipairs(want[i]) do
          local got = g[k]:item()
          assert.is_true(got == w or (got ~= got and w ~= w) or math.abs(got - w) < EXACT,
            ("gradient %d, element %d is %g, expected %g"):format(i, k, got, w))
        end
      end
    end)
  end

  it("of an embedding leave the padding's row out", function()
    local w = R(3, 2)
    lt.embedding(w, I{3, 1, 3, 1}, 3):sum():backward()
    assert.are.same({{2.0, 2.0}, {0.0, 0.0}, {0.0, 0.0}}, w.grad:totable())
  end)

  it("of ctc_loss are those of the scores before log_softmax", function()
    local scores = R(4, 2, 3)
    local function loss(list)
      local labels = I{{2, 3}, {2, 2}}
      return lt.ctc_loss(list[1]:log_softmax(-1), labels, {4, 3}, {2, 1}, 1, "sum"), list
    end
    local args = {scores, n = 1}
    local expected = expected_gradients(loss, args, args)
    agree(gradients(loss(args), args)[1], expected[1], "ctc_loss")
  end)

  it("have samples for every op that has one, and for no other", function()
    local missing = {}
    for _, op in ipairs(lt.ops()) do
      if is_differentiable(op) ~= (samples[op.name] ~= nil) then missing[#missing + 1] = op.name end
    end
    assert.are.equal("", table.concat(missing, ", "))
  end)
end)

describe("the gradient of atan2", function()
  it("is that of floats beside integers and bool", function()
    for _, dtype in ipairs {"uint8", "int8", "int32", "int64"} do
      local y = lt.tensor({3., 0.}, {requires_grad = true})
      lt.atan2(y, lt.tensor({100, 16}):to(dtype)):sum():backward()
      assert.truthy(lt.allclose(y.grad, lt.tensor{100 / 10009, 1 / 16}), dtype)
    end
    local y = lt.tensor({1., 0.}, {requires_grad = true})
    lt.atan2(lt.tensor{true, true}, y):sum():backward()
    assert.same({-0.5, -1.0}, y.grad:totable())
  end)
end)

-- Both ways to compute it, the products of the others and the quotient, against products in Lua.
describe("the gradient of prod", function()
  local inf, nan, C = math.huge, 0 / 0, lt.complex

  -- For each number of a list the product of the others.
  local function products_of_others(list)
    local products, before, after = {}, 1, 1
    for i, x in ipairs(list) do products[i], before = before, before * x end
    for i = #list, 1, -1 do products[i], after = products[i] * after, after * list[i] end
    return products
  end

  local function size(x) return type(x) == "number" and math.abs(x) or x:abs() end

  local function is_close(expected, got, tolerance)
    if expected ~= expected then return got ~= got end
    return expected == got or size(got - expected) <= tolerance * size(expected)
  end

  local function first_row(t) return t[1] end
  local function first_column(t) return t:select(2, 1) end

  -- Checks the gradient of products of a list: of a vector, of rows, of columns, of two dims.
  local function check(list, dtype, tolerance)
    local row = lt.tensor(list, {dtype = dtype})
    local rows, exact = lt.stack{row, row, row}, {}
    for i = 1, #list do exact[i] = row[i]:item() end
    local products = products_of_others(exact)
    for number, call in ipairs{
      {row, function(x) return x:prod() end, function(t) return t end},
      {rows, function(x) return x:prod(2) end, first_row},
      {rows:t(), function(x) return x:prod{1, keepdim = true} end, first_column},
      {rows:t():contiguous(), function(x) return x:prod(1) end, first_column},
      {rows:view(3, 1, #list), function(x) return x:prod{2, 3} end,
        function(t) return t[1][1] end},
    } do
      for _, create_graph in ipairs{false, true} do
        local x = call[1]:detach():requires_grad_()
        local y = call[2](x)
        local grad = lt.autograd.grad(y, x, {grad_outputs = lt.ones_like(y),
          create_graph = create_graph}):detach()
        assert.equal(dtype, grad.dtype)
        local line = call[3](grad:is_complex() and grad:conj() or grad)
        for i, product in ipairs(products) do
          local expected = lt.tensor(product, {dtype = dtype}):item()
          if not is_close(expected, line[i]:item(), tolerance) then
            error(("call %d, %s element %d of %s: expected %s, got %s"):format(number, dtype, i,
              row, expected, line[i]:item()), 0)
          end
        end
      end
    end
  end

  it("is the product of the others", function()
    for dtype, tolerance in pairs{float32 = 3e-7, float64 = 1e-15, bfloat16 = 2^-7,
      float16 = 2^-10} do
      if not wide.is_narrow or dtype ~= "float64" then
        for _, list in ipairs{{2, 3, 4}, {1.5}, {0}, {2, 0, 3}, {0, 3, 0}, {-0., 2, -3},
          {2, nan, 3}, {2, inf, -3}, {inf, inf, 2}, {0, inf, 2}, {0.3, -0.7, 1.9, -2.1, 0.45}} do
          check(list, dtype, tolerance)
        end
      end
    end
  end)

  it("is the conjugate of that of complex numbers", function()
    if lt.get_default_device() ~= "cpu" then return end
    for dtype, tolerance in pairs{complex64 = 1e-6, complex128 = 1e-15} do
      check({C(1, 2), C(3, -1), C(0, 0.5)}, dtype, tolerance)
      check({C(1, 2), C(0, 0), C(3, -1)}, dtype, tolerance)
      check({C(0, 0), C(0, 0), C(3, -1)}, dtype, tolerance)
    end
    check({C(1e200, 1e200), C(1e-200, -1e-200), C(0, 1)}, "complex128", 1e-15)
  end)

  it("does not overflow or underflow before the others do", function()
    check({1e30, 1e30, 2}, "float32", 3e-7)   -- only the product of all overflows float32
    check({1e-30, 1e-20, 2}, "float32", 1e-4) -- likewise underflows it; one is subnormal
    if wide.is_narrow then return end
    check({1e200, 1e150, 3}, "float64", 1e-15)
    check({1e-200, 1e-150, 3}, "float64", 1e-15)
    check({1e-160, 1e-160, 3}, "float64", 1e-3) -- to a subnormal number
  end)

  it("of many elements is 0 or infinite where the product of the others is", function()
    for _, case in ipairs{{0.5, 0}, {2, inf}} do
      local x = lt.full({100000}, case[1], {dtype = "float32"}):requires_grad_()
      x:prod():backward()
      assert.is_true(x.grad:eq(case[2]):all():item())
    end
  end)
end)
