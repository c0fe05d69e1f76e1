-- Every public op against PyTorch's values (the files of kind "ops" in tests/golden, made from
-- tools/golden/ops.py) on the default device, which LUTRA_TEST_DEVICE chooses, and the same cases
-- on meta, whose shapes, dtypes and strides must be the CPU's, as those of every device must. Then
-- the values of tests/golden/by_hand.lua.
local lt = require "lutra"
local golden = require "golden_support"

-- Relative and absolute tolerance by dtype: a few units in the last place, more where sums are
-- long.
local TOLERANCE = {
  float64 = {1e-11, 1e-12}, float32 = {2e-5, 2e-6},
  float16 = {2e-3, 1e-5}, bfloat16 = {1.6e-2, 1e-5},
}

-- Their results' shapes depend on values, which meta tensors do not have.
local NEEDS_DATA = {
  nonzero = true, argwhere = true, combinations = true, index_put = true, narrow = true,
  repeat_interleave = true, tensor_split = true, masked_select = true, where = true,
  one_hot = true, equal = true, allclose = true,
  unique = true, unique_consecutive = true, bincount = true, histc = true, histogram = true,
  histogramdd = true, segment_reduce = true,
}

-- Public ops without a case, and why. Internal ones ("_name") are reached through those that call
-- them; optimizers' steps through the trajectories of optim_values_spec.lua.
local WITHOUT_VALUES = {dropout = "random numbers"}
for name in ([[rand randn randint rand_like randn_like randint_like uniform normal exponential
    random bernoulli randperm multinomial cauchy log_normal geometric poisson
    binomial]]):gmatch "%S+" do
  WITHOUT_VALUES[name] = "random numbers"
end
for _, name in ipairs{"fill_diagonal_", "apply_", "map_"} do
  WITHOUT_VALUES[name] = "core/in_place_spec.lua has them"
end

local function numel(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end

local function wave(n)
  local data = {}
  for k = 1, n do data[k] = 7919 * k % 1009 / 1009.0 - 0.5 end
  return data
end

-- A golden tensor as a tensor on a device, with the strides it had.
local function build(spec, device)
  if device == "meta" then
    local x = lt.empty(spec.shape, {dtype = spec.dtype, device = "meta"})
    return spec.strides and lt.empty({numel(spec.shape)}, {dtype = spec.dtype, device = "meta"})
      :as_strided(spec.shape, spec.strides) or x
  end
  local data = spec.wave and wave(numel(spec.shape)) or spec.data
  local x = lt.tensor(data, {dtype = spec.dtype, device = device}):view(spec.shape)
  if not spec.strides then return x end
  local y = lt.zeros({numel(spec.shape)}, {dtype = spec.dtype, device = device})
    :as_strided(spec.shape, spec.strides)
  return y:copy_(x)
end

local function put(x, index, value)
  local y = x:clone()
  y[index] = value
  return y
end

-- Runs a case on a device: its results as a list.
local function run(case, device)
  local env = {put = put, math = math, F = lt.F,
    lt = setmetatable({unpack = table.unpack}, {__index = lt})}
  for name, spec in pairs(case.inputs) do env[name] = build(spec, device) end
  local call = assert(load("return " .. case.code, "=" .. case.code, "t", env))
  return lt.with_device(device, function() return {call()} end)
end

-- The results have the dtypes, shapes and strides that the CPU's have.
local function same_form(case, got, device, label)
  for k, want in ipairs(run(case, "cpu")) do
    if not lt.is_tensor(want) then break end
    assert.equal(device, got[k].device, label)
    assert.equal(want.dtype, got[k].dtype, label)
    assert.same({table.unpack(want.shape)}, {table.unpack(got[k].shape)}, label)
    assert.same({want:stride()}, {got[k]:stride()}, label .. ": strides")
  end
end

local function close(got, want, dtype)
  if got == want or (got ~= got and want ~= want) then return true end
  local tolerance = TOLERANCE[dtype]
  if not tolerance or got ~= got or want ~= want then return false end
  return math.abs(got - want) <= tolerance[1] * math.abs(want) + tolerance[2]
end

local function check(case, got, want, label)
  if type(want) ~= "table" then return assert.equal(want, got, label) end
  assert.equal(want.dtype, got.dtype, label .. ": dtype")
  assert.same(want.shape, {table.unpack(got.shape)}, label .. ": shape")
  local values = got:contiguous():view(-1):totable()
  for k, expected in ipairs(want.data) do
    if type(expected) == "boolean" or type(values[k]) == "boolean" then
      assert.equal(expected, values[k], ("%s: element %d"):format(label, k))
    elseif not close(values[k], expected, want.dtype) then
      error(("%s: element %d is %s, PyTorch's is %s"):format(label, k, values[k], expected), 0)
    end
  end
  return case
end

local function describe_inputs(case)
  local parts = {}
  for name, spec in pairs(case.inputs) do
    parts[#parts + 1] = ("%s %s{%s}%s"):format(name, spec.dtype, table.concat(spec.shape, ","),
      spec.strides and " strided" or "")
  end
  table.sort(parts)
  return case.code .. " with " .. table.concat(parts, ", ")
end

local here = lt.get_default_device()

-- On a device without float64 and complex128, their cases run in float32 and complex64, except
-- those whose values are limits of float64.
local NARROWER = {float64 = "float32", complex128 = "complex64"}
local LIMITS = {nan_to_num = true}
local is_narrow = not pcall(lt.empty, {1}, {dtype = "float64", device = here})
local function narrow(case)
  case.code = case.code:gsub("%w+", NARROWER)
  for _, specs in ipairs {case.inputs, case.outputs} do
    for _, spec in pairs(specs) do
      if type(spec) == "table" and NARROWER[spec.dtype] then
        spec.dtype = NARROWER[spec.dtype]
        for k, v in ipairs(specs == case.outputs and spec.data or {}) do
          if type(v) == "number" then spec.data[k] = string.unpack("f", string.pack("f", v)) end
        end
      end
    end
  end
end
-- Ops whose results are float64 or complex128 for narrower inputs, or depend on an element's size.
local WIDENS = {float_power = true, bincount = true, view = true}
local function is_left_out(case)
  if not is_narrow then return false end
  if LIMITS[case.op] and describe_inputs(case):find "float64" then return true end
  return WIDENS[case.op] and case.outputs[1].dtype and NARROWER[case.outputs[1].dtype]
end

local by_op, names, covered = {}, {}, {}
for _, make in ipairs(golden.cases "ops") do
  local case = make()
  covered[case.op] = true
  if not is_left_out(case) then
    if is_narrow then narrow(case) end
    if not by_op[case.op] then
      by_op[case.op] = {}
      names[#names + 1] = case.op
    end
    table.insert(by_op[case.op], case)
  end
end

describe("values equal PyTorch " .. golden.version() .. "'s:", function()
  for _, name in ipairs(names) do
    it(name, function()
      for _, case in ipairs(by_op[name]) do
        local label = describe_inputs(case)
        local ok, got = pcall(run, case, here)
        if not ok then error(label .. ": " .. tostring(got), 0) end
        assert.equal(#case.outputs, #got, label .. ": number of results")
        for k, want in ipairs(case.outputs) do check(case, got[k], want, label) end
        if here ~= "cpu" then same_form(case, got, here, label) end
      end
    end)
  end
end)

describe("on meta, shape, dtype and strides are the CPU's:", function()
  for _, name in ipairs(names) do
    it(name, function()
      for _, case in ipairs(by_op[name]) do
        local label = describe_inputs(case)
        local ok, got = pcall(run, case, "meta")
        local by_mask = case.code:find("x[m]", 1, true) or case.code:find("x:lt(0)", 1, true)
        local needs_data = NEEDS_DATA[name] or by_mask
        if not ok and needs_data then
          assert.matches("meta", got, 1, true)
        else
          if not ok then error(label .. ": " .. tostring(got), 0) end
          same_form(case, got, "meta", label)
        end
      end
    end)
  end
end)

-- Fails where `got` is not `want`: a number, a boolean or a list of such, of lists.
local function same_values(want, got, label)
  if type(want) ~= "table" then
    local equal = type(want) == "number" and type(got) == "number" and close(got, want, "float32")
    if not equal then assert.equal(want, got, label) end
    return
  end
  assert.equal(#want, #got, label .. ": size")
  for k, element in ipairs(want) do same_values(element, got[k], label .. ", " .. k) end
end

local by_hand = golden.cases "by_hand"

describe("values by hand:", function()
  for _, case in ipairs(by_hand) do
    local op, code, want = table.unpack(case)
    it(("%s: %s"):format(op, code), function()
      local env = {lt = lt, F = lt.F, math = math, inf = math.huge, nan = 0 / 0}
      local got = assert(load("return " .. code, "=" .. code, "t", env))()
      same_values(want, lt.is_tensor(got) and got:totable() or got, code)
    end)
  end
end)

describe("the op table", function()
  it("has values for every public op that can have some", function()
    local has, missing, public = {}, {}, {}
    for name in pairs(covered) do has[name] = true end
    for _, case in ipairs(by_hand) do has[case[1]] = true end
    for _, op in ipairs(lt.ops()) do
      local named = op.variants
      local spelled = named["function"] or named.method or named.in_place or op.namespace
      if spelled and not op.name:find "^_" then
        public[op.name] = true
        local excepted = WITHOUT_VALUES[op.name]
        if not excepted and not has[op.name] then missing[#missing + 1] = op.name end
        if excepted and has[op.name] then missing[#missing + 1] = op.name .. ": has values" end
      end
    end
    for name in pairs(WITHOUT_VALUES) do
      if not public[name] then missing[#missing + 1] = name .. ": no public op" end
    end
    assert.same({}, missing)
  end)

  it("gives each op the spellings its row names", function()
    local x, count = lt.zeros(1), 0
    for _, op in ipairs(require "lutra.core".ops()) do
      local named = op.variants
      for _, given in pairs(named) do count = count + (given and 1 or 0) end
      if named["function"] then assert.is_function(lt[op.name], "lt." .. op.name) end
      if named.method then assert.is_function(x[op.name], "x:" .. op.name) end
      if named.in_place then assert.is_function(x[op.name .. "_"], "x:" .. op.name .. "_") end
    end
    assert.is_true(count >= 200, "spellings: " .. count)
  end)
end)
