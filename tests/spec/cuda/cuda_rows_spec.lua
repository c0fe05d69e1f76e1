-- Softmax, layer norm, the negative log likelihood and the step of Adam on devices: all dtypes, row
-- lengths on both sides of each switch between kernels, layouts and corner cases. The CPU gives
-- what is expected.

local devices = require "device_support"

-- Bits of everything that adds up numbers, as text.
local DIGEST = [[
local lt = require "lutra"
local device = (os.getenv "LUTRA_EMULATE" or ""):find "^mps" and "mps" or "cuda"
lt.manual_seed(3)
local function show(t)
  local x, out = t:cpu():reshape(-1):to "float64":totable(), {}
  for i = 1, #x do out[i] = ("%a"):format(x[i]) end
  print(table.concat(out, " "))
end
for _, n in ipairs {3, 65, 600, 9000} do
  local x = lt.randn({300, n}):to(device):requires_grad_()
  local w, b = lt.randn(n):to(device):requires_grad_(), lt.randn(n):to(device):requires_grad_()
  local t = lt.randint(n, {300}):to(device)
  local y = lt.layer_norm(x, {n}, w, b)
  lt.cross_entropy(y, t, lt.rand(n):to(device)):backward()
  x:softmax(1):pow(2):sum():backward()
  show(x.grad:sum(2))
  show(w.grad)
  show(b.grad)
end
]]

local options = {
  any = true, emulate = {"cuda:2", "mps"}, reverse = true, memory = "1GiB", bits = DIGEST,
}
if devices.elsewhere("cuda/cuda_rows", _ENV, options) then return end

local lt = require "lutra"
local core = require "lutra.core"
local DEVICE = devices.device()

local FLOATS = devices.dtypes {"float16", "bfloat16", "float32", "float64"}
local TOLERANCE = {float64 = 1e-12, float32 = 1e-5, float16 = 2e-3, bfloat16 = 1.6e-2}

-- ---- comparing ----------------------------------------------------------------------------------

local function same(want, got, label, scale)
  assert.equal(DEVICE, tostring(got.device), label)
  assert.equal(want.dtype, got.dtype, label)
  assert.equal(table.concat(want.shape, ","), table.concat(got.shape, ","), label)
  local tolerance = TOLERANCE[want.dtype] or 0
  local a, b = got:detach():cpu():to "float64", want:detach():to "float64"
  if not lt.allclose(a, b, tolerance, tolerance * (scale or 1), true) then
    error(("%s: the largest difference is %s"):format(label, (a - b):abs():max():item()), 0)
  end
end

local function here(t) return t end
local function there(t) return t:to(DEVICE) end

-- What f makes is the same on both devices; f(on, leaf) moves its tensors with `on`, and those
-- whose gradients are compared with `leaf`.
local function both(label, f, scale)
  local function run(on)
    local leaves = {}
    local function leaf(t)
      t = on(t):detach():clone():requires_grad_()
      leaves[#leaves + 1] = t
      return t
    end
    return table.pack(f(on, leaf)), leaves
  end
  local want, want_leaves = run(here)
  local got, got_leaves = run(there)
  for i = 1, want.n do same(want[i], got[i], ("%s, result %d"):format(label, i), scale) end
  for i, t in ipairs(want_leaves) do
    same(t.grad, got_leaves[i].grad, ("%s, gradient %d"):format(label, i), scale)
  end
end

-- The tensor laid out in memory in another way: 1 as it is, 2 with the first and last dim
-- exchanged, 3 with gaps, 4 behind an odd offset, so that nothing is aligned.
local function lay(x, layout)
  if layout == 2 then return x:transpose(1, -1):contiguous():transpose(1, -1) end
  if layout == 3 then return lt.stack({x, x}, -1)[{"...", 1}] end
  if layout == 4 and x:numel() > 0 then
    local flat = x:reshape(-1)
    return lt.cat {flat:narrow(1, 1, 1), flat}:narrow(1, 2, x:numel()):view(x.shape)
  end
  return x
end

local function fails(text, f)
  local ok, message = pcall(function()
    f()
    lt.accelerator.synchronize(DEVICE)
  end)
  assert.is_false(ok, "no error; expected: " .. text)
  message = tostring(message)
  assert.is_truthy(message:find(text, 1, true), "expected: " .. text .. "\ngot: " .. message)
end

lt.manual_seed(11)

-- ---- softmax ------------------------------------------------------------------------------------

-- 128 is the most that four numbers a thread of a warp hold, 8192 what a group does.
local LENGTHS = {
  1, 2, 3, 4, 5, 8, 31, 32, 33, 64, 127, 128, 129, 132, 511, 513, 1023, 1024, 1025, 5000, 8191,
  8192, 8193, 20000, 70000,
}

describe("softmax on a device", function()
  local function case(label, x, dim, layout, scale)
    for _, name in ipairs {"softmax", "log_softmax"} do
      local g = lt.randn(x.shape):to(x.dtype)
      both(("%s of %s"):format(name, label), function(on, leaf)
        local a = leaf(x)
        local y = lay(a, layout or 1)[name](lay(a, layout or 1), dim)
        y:backward(lay(on(g), layout or 1))
        return y
      end, scale)
    end
  end

  for _, dtype in ipairs(FLOATS) do
    it("and its gradient are the CPU's for rows of all lengths in " .. dtype, function()
      for _, n in ipairs(LENGTHS) do
        local rows = n <= 8 and 300 or n <= 1025 and 5 or 2
        case(("%d rows of %d"):format(rows, n), (lt.randn(rows, n) * 3):to(dtype), 2)
      end
    end)

    it("and its gradient are the CPU's along other dims in " .. dtype, function()
      for _, shape in ipairs {{4, 5, 6}, {2, 70, 3}, {3, 9, 300}, {1, 2000, 2}, {2, 3, 1, 40}} do
        for dim = 1, #shape do
          case(("{%s} dim %d"):format(table.concat(shape, ", "), dim), lt.randn(shape):to(dtype),
            dim)
        end
      end
    end)
  end

  it("takes any layout", function()
    for _, dtype in ipairs(FLOATS) do
      for layout = 1, 4 do
        for dim = 1, 3 do
          case(("%s, dim %d, layout %d"):format(dtype, dim, layout), lt.randn(3, 20, 8):to(dtype),
            dim, layout)
        end
      end
    end
  end)

  it("has many short rows", function()
    for _, n in ipairs {1, 2, 7, 16, 65} do
      case("many rows of " .. n, lt.randn(5000, n), 2)
    end
    case("columns", lt.randn(40, 6, 200), 2)
  end)

  it("keeps NaN and infinities where mathematics has them", function()
    local inf, nan = math.huge, 0 / 0
    local specials = {
      {-inf}, {inf}, {nan}, {-inf, inf}, {-inf, nan}, {inf, nan}, {-inf, 1e4}, {-1e4},
    }
    for _, n in ipairs {1, 2, 40, 130, 9000} do
      for i, values in ipairs(specials) do
        for whole = 0, 1 do
          local x = lt.randn(2, n)
          if whole == 1 then x[1]:fill_(values[1]) end
          for k, v in ipairs(values) do x[{1, math.min(n, 1 + (k - 1) * (n // 2))}] = v end
          for _, dtype in ipairs(devices.dtypes {"float32", "bfloat16", "float64"}) do
            local label = ("special values %d in %d, whole %d, %s"):format(i, n, whole, dtype)
            both(label, function(on)
              local y = on(x:to(dtype))
              return y:softmax(2), y:log_softmax(2), y:t():softmax(1), y:t():log_softmax(1),
                y:t():contiguous():softmax(1), y:t():contiguous():log_softmax(1)
            end)
          end
        end
      end
    end
  end)

  it("has large differences in one row", function()
    both("large", function(on)
      local x = on((lt.arange(1, 20000) - 10000):to "float32" * 10)
      return x:softmax(1), x:log_softmax(1), (-x):softmax(1), x:view(-1, 1):softmax(1)
    end)
  end)

  it("casts first where a dtype is asked for", function()
    local dtypes = {"int32", "uint8", "float16", "bfloat16", "float32", "float64"}
    for _, from in ipairs(devices.dtypes(dtypes)) do
      for _, to in ipairs(FLOATS) do
        local x = (lt.rand(3, 40) * 9):to(from)
        both(from .. " to " .. to, function(on)
          x = on(x)
          return x:softmax(2, to), x:log_softmax(1, to)
        end)
      end
    end
  end)

  it("takes 0-d and empty tensors", function()
    for _, dtype in ipairs(FLOATS) do
      case("0-d " .. dtype, lt.randn({}):to(dtype), 1)
      case("no rows " .. dtype, lt.randn(0, 4):to(dtype), 2)
      case("empty rows " .. dtype, lt.randn(4, 0):to(dtype), 2)
      case("no columns " .. dtype, lt.randn(4, 0, 3):to(dtype), 2)
    end
  end)
end)

-- ---- layer norm ---------------------------------------------------------------------------------

describe("layer norm on a device", function()
  -- with: 0 without weight and bias, 1 weight, 2 bias, 3 both
  local function case(label, x, normalized, with, layout, scale)
    local dims, tail = #x.shape, {}
    for d = dims - normalized + 1, dims do tail[#tail + 1] = x.shape[d] end
    local w, b = lt.randn(tail):to(x.dtype), lt.randn(tail):to(x.dtype)
    local g = lt.randn(x.shape):to(x.dtype)
    both(label, function(on, leaf)
      local a = leaf(x)
      local weight, bias = with % 2 == 1 and leaf(w) or nil, with >= 2 and leaf(b) or nil
      local y = lt.layer_norm(lay(a, layout or 1), tail, weight, bias)
      y:backward(lay(on(g), layout or 1))
      return y
    end, scale)
  end

  for _, dtype in ipairs(FLOATS) do
    it("and its gradients are the CPU's for rows of all lengths in " .. dtype, function()
      for i, n in ipairs(LENGTHS) do
        local rows = n <= 130 and 100 or n <= 1025 and 37 or 3
        case(("%d rows of %d, %s"):format(rows, n, dtype), (lt.randn(rows, n) * 2 + 1):to(dtype), 1,
          i % 4, 1, 20)
      end
    end)
  end

  it("adds up the gradients of many rows", function()
    for _, shape in ipairs {{5000, 3}, {3000, 16}, {2100, 130}, {260, 1030}, {40, 8200}} do
      for _, dtype in ipairs(devices.dtypes {"float32", "float64"}) do
        case(("{%d, %d} %s"):format(shape[1], shape[2], dtype), lt.randn(shape):to(dtype), 1, 3, 1,
          100)
      end
    end
  end)

  it("takes any layout, and several dims", function()
    for _, dtype in ipairs(FLOATS) do
      for layout = 1, 4 do
        for normalized = 1, 3 do
          case(("%s layout %d, %d dims"):format(dtype, layout, normalized),
            lt.randn(6, 4, 8):to(dtype), normalized, 3, layout, 10)
        end
      end
    end
    for with = 0, 3 do case("with " .. with, lt.randn(5, 12), 1, with) end
  end)

  it("takes empty tensors and rows that do not vary", function()
    for _, dtype in ipairs {"float32", "bfloat16"} do
      case("no rows", lt.randn(0, 4):to(dtype), 1, 3)
      case("empty rows", lt.randn(4, 0):to(dtype), 1, 3)
      case("constant", lt.ones(4, 20):to(dtype), 1, 3)
    end
    local x = lt.randn(3, 50)
    x[{1, 7}], x[{2, 8}] = 0 / 0, math.huge
    both("NaN and infinity", function(on)
      return lt.layer_norm(on(x), {50}), lt.layer_norm(on(x):repeat_interleave(200, 2), {10000})
    end)
  end)

  it("heeds eps, and is exact far from 0", function()
    local x, far = lt.randn(4, 10), lt.randn(3, 500) + 1000
    both("eps", function(on) return lt.layer_norm(on(x), {10}, nil, nil, 0.5) end)
    both("far", function(on)
      return lt.layer_norm(on(far), {500}),
        lt.layer_norm(on(far:repeat_interleave(20, 2)), {10000})
    end, 100)
  end)
end)

-- ---- the negative log likelihood ----------------------------------------------------------------

describe("the negative log likelihood on a device", function()
  for _, reduction in ipairs {"mean", "sum", "none"} do
    it("and its gradient are the CPU's, reduction " .. reduction, function()
      local sizes = {{0, 3}, {1, 1}, {5, 4}, {1023, 7}, {1025, 2}, {5000, 3}, {3, 9000}}
      for _, dtype in ipairs(FLOATS) do
        for _, size in ipairs(sizes) do
          local n, classes = size[1], size[2]
          local x = lt.randn(n, classes):log_softmax(2):to(dtype)
          local target, weight = lt.randint(classes, {n}), lt.rand(classes):to(dtype)
          if n > 3 then target[2], target[4] = -100, -100 end
          for with = 0, 1 do
            both(("%s {%d, %d} with %d"):format(dtype, n, classes, with), function(on, leaf)
              local y = lt.nll_loss(lay(leaf(x), 1 + n % 4), on(target),
                {weight = with == 1 and on(weight) or nil, reduction = reduction})
              y:sum():backward()
              return y
            end, 10)
          end
        end
      end
    end)
  end

  it("takes targets of every integer dtype and layout, and any ignore_index", function()
    local x = lt.randn(40, 9)
    for _, dtype in ipairs {"int8", "int16", "int32", "int64"} do
      for layout = 1, 4 do
        local target = lt.randint(9, {40}):to(dtype)
        both(("%s layout %d"):format(dtype, layout), function(on, leaf)
          local a = leaf(x)
          local y = lt.nll_loss(a, lay(on(target), layout == 2 and 1 or layout),
            {ignore_index = 3})
          y:backward()
          return y, lt.cross_entropy(a, on(target), nil, nil, 300, nil, "none")
        end)
      end
    end
  end)

  it("is NaN where nothing takes part, and adds up a half's weights again", function()
    local x, target = lt.randn(3, 4), lt.full({3000}, 2, {dtype = "int64"})
    both("ignored", function(on, leaf)
      local y = lt.nll_loss(leaf(x), on(lt.full({3}, -100, {dtype = "int64"})))
      y:backward()
      return y
    end)
    both("half", function(on, leaf)
      local weight = lt.full({4}, 0.30005):to "float16"
      local y = lt.nll_loss(leaf(lt.ones({3000, 4}, {dtype = "float16"}) * 0.1),
        on(target), on(weight))
      y:backward()
      return y
    end)
  end)

  it("says which target is out of range, in the CPU's words", function()
    local x, y = lt.randn(2000, 4), lt.randint(4, {2000})
    for _, value in ipairs {0, 5, -1, 100} do
      local target = y:clone()
      target[1500], target[1700] = value, 77
      local _, message = pcall(lt.nll_loss, x, target)
      message = message:match "expected a class from [^\n]*"
      fails(message, function() return lt.nll_loss(there(x), there(target)) end)
      fails(message, function()
        return lt.cross_entropy(there(x), there(target), {reduction = "none"})
      end)
    end
    same(lt.nll_loss(x, y), lt.nll_loss(there(x), there(y)), "afterwards")
  end)
end)

-- ---- Adam ---------------------------------------------------------------------------------------

describe("a step of Adam on a device", function()
  it("is the CPU's in all dtypes, sizes and layouts", function()
    for _, dtype in ipairs(FLOATS) do
      for _, n in ipairs {0, 1, 3, 4, 5, 1000, 1023, 5001} do
        for layout = 1, 4 do
          local function noise() return lt.randn(n, 2):to(dtype) end
          local p, g, m, v = noise(), noise(), noise(), noise():abs()
          both(("%s %d layout %d"):format(dtype, n, layout), function(on)
            local results = {}
            for decoupled = 0, 1 do
              local q, a, b = lay(on(p:clone()), layout), on(m:clone()), lay(on(v:clone()), layout)
              for step = 1, 3 do
                core._ops._adam_step({q}, {lay(on(g), layout)}, {a}, {b}, step, 0.01, 0.9,
                  0.999, 1e-8, 0.1, decoupled == 1, step == 2)
              end
              results[#results + 1], results[#results + 2], results[#results + 3] = q, a, b
            end
            return table.unpack(results)
          end)
        end
      end
    end
  end)
end)
