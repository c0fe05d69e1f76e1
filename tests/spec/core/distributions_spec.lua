--- Random distributions: moments and probabilities of many draws, within six standard errors of
-- what the distributions state; generators and their states; the errors.

local lt = require "lutra"

local N = 40000

-- Checks that the mean of x is `mean`; `deviation` is the standard deviation of an element.
local function has_mean(mean, deviation, x, what)
  local got = x:to("float64"):mean():item()
  local limit = 6 * deviation / math.sqrt(x:numel())
  assert.is_true(math.abs(got - mean) <= limit,
    ("%s: mean %.5g, expected %.5g within %.2g"):format(what or "", got, mean, limit))
end

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

before_each(function() lt.manual_seed(20261123) end)

describe("poisson", function()
  for _, rate in ipairs {0.01, 0.7, 4, 9.9, 10, 35.5, 1000, 1e6} do
    it(("of rate %g has its mean and variance"):format(rate), function()
      local x = lt.poisson(lt.full({N}, rate, {dtype = "float64"}))
      has_mean(rate, math.sqrt(rate), x)
      local fourth = rate + 3 * rate * rate -- the fourth central moment
      has_mean(rate, math.sqrt(fourth - rate * rate), (x - rate):square(), "variance")
      assert.is_true(lt.equal(x, x:floor()) and x:min():item() >= 0)
    end)
  end

  it("has its probabilities on both sides of 10", function()
    for _, rate in ipairs {3, 12} do
      local x = lt.poisson(lt.full({N}, 1.0 * rate))
      local p = math.exp(-rate)
      for k = 0, 25 do
        has_mean(p, math.sqrt(p * (1 - p)), x:eq(k), "P(" .. k .. ")")
        p = p * rate / (k + 1)
      end
    end
  end)

  it("of 0 is 0, of NaN NaN, in each dtype, and has no negative rates", function()
    assert.same({0, 0}, lt.poisson(lt.zeros(2)):totable())
    assert.is_true(lt.poisson(lt.tensor{0 / 0}):isnan():item())
    for _, dtype in ipairs {"float32", "float64", "float16", "bfloat16"} do
      assert.equal(dtype, lt.poisson(lt.ones{2, 2, dtype = dtype}).dtype)
    end
    assert.same({0, 3}, {table.unpack(lt.poisson(lt.ones(0, 3)).shape)})
    assert.matches("poisson: expected numbers of at least 0 for argument 'self', got %-1",
      message_of(lt.poisson, lt.tensor{1., -1.}))
    assert.matches("poisson: expected a float dtype", message_of(lt.poisson, lt.tensor{1}))
  end)
end)

describe("binomial", function()
  for _, case in ipairs {{5, 0.3}, {40, 0.5}, {100, 0.9}, {1000, 0.02}, {1e6, 0.4}, {3, 0.999}} do
    local n, p = case[1], case[2]
    it(("of %g trials of probability %g has its mean and variance"):format(n, p), function()
      local x = lt.binomial(lt.full({N}, n, {dtype = "float64"}),
        lt.full({N}, p, {dtype = "float64"}))
      local v = n * p * (1 - p)
      has_mean(n * p, math.sqrt(v), x)
      local fourth = v * (1 + 3 * v - 6 * v / n)
      has_mean(v, math.sqrt(math.max(fourth - v * v, 0)), (x - n * p):square(), "variance")
      assert.is_true(x:min():item() >= 0 and x:max():item() <= n)
    end)
  end

  it("has its probabilities for n p of 10 and more", function()
    local n, p = 40, 0.45
    local x = lt.binomial(lt.full({N}, 1.0 * n), lt.full({1}, p))
    local q = (1 - p) ^ n
    for k = 0, n do
      has_mean(q, math.sqrt(q * (1 - q)) + 1e-6, x:eq(k), "P(" .. k .. ")")
      q = q * (n - k) / (k + 1) * p / (1 - p)
    end
  end)

  it("is certain at 0 and 1, broadcasts, and checks its arguments", function()
    local x = lt.binomial(lt.tensor{{3.}, {5.}}, lt.tensor{0., 1.})
    assert.is_true(lt.equal(lt.tensor{{0., 3.}, {0., 5.}}, x))
    assert.matches("binomial: expected probabilities from 0 to 1 for argument 'prob', got 2",
      message_of(lt.binomial, lt.tensor{3.}, lt.tensor{2.}))
    assert.matches("binomial: cannot broadcast count {2} and prob {3} together",
      message_of(lt.binomial, lt.ones(2), lt.ones(3)))
  end)
end)

describe("normal", function()
  it("has a mean and a deviation for each element", function()
    local x = lt.normal(lt.tensor{{-3.}, {5.}}:expand(2, N), lt.tensor{{0.5}, {2.}})
    has_mean(-3, 0.5, x[1])
    has_mean(5, 2, x[2])
    has_mean(0.25, 0.25 * math.sqrt(2), (x[1] + 3):square(), "variance")
    has_mean(1, 3, lt.normal(1, 3, {N}))
    has_mean(2, 1, lt.normal(lt.full({N}, 2.0)))
    has_mean(2, 1, lt.normal(2, lt.ones(N)))
  end)

  it("has gradient 0, and checks its arguments", function()
    local mean = lt.ones(3):requires_grad_(true)
    lt.normal(mean, 2):sum():backward()
    assert.same({0, 0, 0}, mean.grad:totable())
    assert.matches("normal: expected a number of at least 0 for argument 'std', got %-1",
      message_of(lt.normal, lt.ones(2), -1))
    assert.matches("normal: expected a tensor or a number for argument 'std', got true",
      message_of(lt.normal, lt.ones(2), true))
    assert.matches("normal: expected a tensor or a number for argument 'mean', got true",
      message_of(lt.normal, true, 1, {2}))
    assert.matches("normal: expected sizes", message_of(lt.normal, 0, 1))
  end)

  it("of complex numbers has half the variance in each part", function()
    local z = lt.empty{N, dtype = "complex64"}:normal_(1, 2)
    has_mean(1, math.sqrt(2), z.real)
    has_mean(0, math.sqrt(2), z.imag)
    has_mean(2, 2 * math.sqrt(2), z.imag:square(), "variance")
    has_mean(0.5, math.sqrt(1 / 12), lt.empty{N, dtype = "complex64"}:uniform_().imag)
  end)
end)

describe("in place,", function()
  it("cauchy_ has its quartiles", function()
    local x = lt.empty(N):cauchy_(2, 3)
    has_mean(0.5, 0.5, x:lt(2))
    has_mean(0.25, 0.5, x:lt(-1))
    has_mean(0.75, 0.5, x:lt(5))
  end)

  it("log_normal_ has normal logarithms", function()
    local x = lt.empty(N):log_normal_(0.5, 0.25):log()
    has_mean(0.5, 0.25, x)
    has_mean(0.0625, 0.0625 * math.sqrt(2), (x - 0.5):square())
  end)

  it("geometric_ has its probabilities, in float and integer dtypes", function()
    for _, dtype in ipairs {"float32", "float64", "float16", "int64", "int32", "uint8"} do
      local x = lt.empty{N, dtype = dtype}:geometric_(0.3)
      assert.equal(dtype, x.dtype)
      local q = 0.3
      for k = 1, 8 do
        has_mean(q, 0.5, x:eq(k), dtype .. " P(" .. k .. ")")
        q = q * 0.7
      end
      assert.equal(1, x:min():item())
    end
  end)

  it("they check their arguments", function()
    assert.matches("geometric_: expected a probability above 0 and below 1", message_of(function()
      lt.ones(2):geometric_(1)
    end))
    assert.matches("cauchy_: expected a number above 0 for argument 'sigma'", message_of(function()
      lt.ones(2):cauchy_(0, 0)
    end))
    assert.matches("log_normal_: expected a float dtype", message_of(function()
      lt.tensor{1}:log_normal_()
    end))
  end)
end)

describe("a generator", function()
  it("gives the same numbers again from the same state", function()
    local g = lt.Generator(5)
    local state = g:get_state()
    for _, draw in ipairs {
      function() return lt.poisson(lt.full({100}, 20.0), g) end,
      function() return lt.binomial(lt.full({100}, 50.0), lt.full({100}, 0.5), g) end,
      function() return lt.normal(lt.zeros(100), 1, {generator = g}) end,
      function() return lt.empty(100):cauchy_{generator = g} end,
      function() return lt.empty(100):geometric_(0.5, {generator = g}) end,
    } do
      g:set_state(state)
      local x = draw()
      local other = draw()
      assert.is_false(lt.equal(x, other))
      g:set_state(state)
      assert.is_true(lt.equal(x, draw()))
    end
  end)

  it("is restored by fork_rng, after errors too", function()
    lt.manual_seed(3)
    local x = lt.rand(4)
    lt.manual_seed(3)
    assert.equal(7, lt.random.fork_rng(function(v) lt.rand(10) return v end, 7))
    pcall(lt.random.fork_rng, function() lt.rand(10) error "stop" end)
    assert.is_true(lt.equal(x, lt.rand(4)))
    lt.manual_seed(3)
    lt.random.fork_rng({enabled = false}, function() lt.rand(10) end)
    assert.is_false(lt.equal(x, lt.rand(4)))
    assert.matches("fork_rng: expected a function for argument 'f'",
      message_of(lt.random.fork_rng, 5))
  end)
end)
