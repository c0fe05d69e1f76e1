-- Special functions of float64. The expected values have 40 digits in the arithmetic that computed
-- them.

local lt = require "lutra"

-- Checks f of each {x, value}: the difference is at most `near` plus `relative` times the value.
local function has_values(f, near, relative, pairs_of)
  for _, pair in ipairs(pairs_of) do
    local x, value = pair[1], pair[2]
    local got = f(lt.tensor({x}, {dtype = "float64"})):item()
    assert(math.abs(got - value) <= near + relative * math.abs(value),
      ("f(%.17g): expected %.17g, got %.17g"):format(x, value, got))
  end
end

describe("airy_ai of float64", function()
  it("is accurate where it oscillates", function()
    has_values(lt.special.airy_ai, 5e-16, 0, {
      {-9.249, 0.20448381095688231}, {-8.421875, -0.32428829151453701},
      {-7.94333508095377, 0.00075645276771174815}, {-5.25, 0.21900944784501321},
      {-0.875, 0.53028908986993246},
    })
    has_values(lt.special.airy_ai, 4e-15, 0, {{-12.5, -0.27627456138116025}})
  end)

  it("is accurate relative to its value where that decays", function()
    has_values(lt.special.airy_ai, 0, 1e-15, {
      {0, 0.35502805388781724}, {0.3125, 0.27574875327400354}, {1.125, 0.11644642687889935},
      {2, 0.034924130423274379}, {7.875, 6.6986475106819679e-8}, {9.125, 1.6904903942761333e-9},
    })
    has_values(lt.special.airy_ai, 0, 1e-14, {
      {9.25, 1.1535041557283402e-9}, {30, 3.2082175915504956e-49},
    })
  end)

  it("is 0 at the infinities, and NaN of NaN", function()
    local x = lt.tensor({math.huge, -math.huge, 0 / 0, 1000}, {dtype = "float64"})
    local y = lt.special.airy_ai(x):tolist()
    assert.same({0, 0, 0}, {y[1], y[2], y[4]})
    assert.is_true(y[3] ~= y[3])
  end)
end)

-- Checks f of long vectors, whose elements are computed side by side: each as if it were alone.
local function is_the_same_alone(f, values)
  local x = lt.tensor(values, {dtype = "float64"})
  local y, repeated = f(x), f(x:repeat_interleave(7))
  for i = 1, #values do
    local alone = f(x[i]):item()
    assert(y[i]:item() == alone and repeated[7 * i - 3]:item() == alone
      or alone ~= alone and y[i]:item() ~= y[i]:item(), ("f(%.17g)"):format(values[i]))
  end
end

describe("erfinv of float64", function()
  it("is accurate relative to its value", function()
    has_values(lt.erfinv, 0, 4e-16, {
      {1e-300, 8.8622692545275804e-301}, {-1e-06, -8.8622692545298999e-7},
      {0.125, 0.11123545184094996}, {-0.5, -0.47693627620446987}, {0.875, 1.0847870400692831},
      {-0.998, -2.1851242191330041}, {0.99999, 3.1234132743415709},
      {0.9999999, 3.7665625816384709}, {0.9999999990686774, 4.3280282758009465},
      {0.9999999999999999, 5.8635847487551679},
    })
  end)

  it("has the values at the ends and outside of its domain", function()
    local y = lt.erfinv(lt.tensor({1, -1, 0.0, -0.0, 1.5, -math.huge, 0 / 0},
      {dtype = "float64"})):tolist()
    assert.same({math.huge, -math.huge, 0.0, -math.huge}, {y[1], y[2], y[3], 1 / y[4]})
    for i = 5, 7 do assert.is_true(y[i] ~= y[i]) end
  end)

  it("does not depend on the other elements", function()
    is_the_same_alone(lt.erfinv, {0.1, -0.9, 0.999, 1 - 2 ^ -40, 1, 2, -0.3, 1e-10, 0.5})
  end)
end)

describe("ndtri of float64", function()
  it("is accurate relative to its value", function()
    has_values(lt.special.ndtri, 0, 3.2e-16, {
      {5e-324, -38.467405617144346}, {1.7782794100389227e-45, -14.104628770783401},
      {3.162277660168379e-38, -12.873761366414207}, {1e-300, -37.047096299361199},
      {1e-100, -21.273453560965324}, {1e-36, -12.604276277268245}, {1e-35, -12.421412039437843},
      {1e-10, -6.3613409024040562}, {0.001, -3.0902323061678135},
      {0.19686162624821682, -0.85288469030519991}, {0.21398002853067047, -0.7926872559962644},
      {0.25, -0.67448975019608174}, {0.375, -0.31863936396437516},
      {0.5000001, 2.5066282733116483e-7}, {0.75, 0.67448975019608174},
      {0.9375, 1.5341205443525463}, {0.9999999999873318, 6.6714061286287799},
      {0.9999999999999999, 8.2095361516013869},
    })
  end)

  it("has the values at the ends and outside of its domain", function()
    local y = lt.special.ndtri(lt.tensor({1, 0, 0.5, 1.5, -1e-9, 0 / 0},
      {dtype = "float64"})):tolist()
    assert.same({math.huge, -math.huge, 0}, {y[1], y[2], y[3]})
    for i = 4, 6 do assert.is_true(y[i] ~= y[i]) end
  end)

  it("does not depend on the other elements", function()
    is_the_same_alone(lt.special.ndtri, {0.1, 0.9, 0.999, 1e-200, 1, 2, 0, 1e-10, 0.5})
  end)
end)

describe("logit of float64", function()
  it("is accurate relative to its value, also where that is near 0", function()
    has_values(lt.logit, 0, 4.5e-16, {
      {1e-300, -690.7755278982137}, {2 ^ -60, -41.58883083359671856}, {0.2, -1.386294361119890549},
      {0.25, -1.098612288668109691}, {0.4, -0.4054651081081642895},
      {0.5 - 2 ^ -30, -3.725290298461914067e-9}, {0.5 - 2 ^ -54, -2.220446049250313081e-16},
      {0.5, 0}, {0.5 + 2 ^ -53, 4.440892098500626162e-16},
      {0.5 + 2 ^ -20, 3.814697265629625929e-6}, {0.7, 0.8472978603872034022},
      {0.75, 1.098612288668109691}, {0.9, 2.19722457733621963},
      {1 - 2 ^ -53, 36.73680056967710129},
    })
  end)

  it("has the values at the ends, outside of its domain and with eps", function()
    local x = lt.tensor({0, 1, -0.5, 1.5, math.huge, 0 / 0}, {dtype = "float64"})
    local y, inner = x:logit():tolist(), x:logit(0.25):tolist()
    assert.same({-math.huge, math.huge}, {y[1], y[2]})
    for i = 3, 6 do assert.is_true(y[i] ~= y[i]) end
    for i, sign in ipairs{-1, 1, -1, 1, 1} do
      assert.is_true(math.abs(inner[i] - sign * math.log(3)) < 3e-16)
    end
    assert.is_true(inner[6] ~= inner[6])
    local crossed = lt.tensor({0.5, 0.9}, {dtype = "float64"}):logit(0.75):tolist()
    for i, sign in ipairs{1, -1} do -- the lower bound is checked first
      assert.is_true(math.abs(crossed[i] - sign * math.log(3)) < 3e-16)
    end
  end)

  it("does not depend on the other elements", function()
    is_the_same_alone(lt.logit, {0.1, 0.9, 0.999, 1e-200, 1, 2, 0, 1e-310, 0.5, 0.4999})
  end)
end)

describe("activations of float64", function()
  local F = require "lutra.nn.functional"

  it("are accurate relative to their values", function()
    has_values(F.mish, 0, 7e-16, {
      {-700, -6.9017735806318396e-302}, {-30, -2.807286890651921e-12},
      {-3.5, -0.1040957544863712168}, {-1e-9, -5.999999996800000374e-10}, {0, 0},
      {0.25, 0.1695724096638175913}, {7, 6.99998837980974146}, {25, 25}, {1e300, 1e300},
    })
    has_values(F.selu, 0, 5e-16, {
      {-700, -1.75809934084737686}, {-3.5, -1.705009340957283199}, {0, 0},
      {-1e-9, -1.758099339968327299e-9}, {-1e-300, -1.758099340847376904e-300},
      {0.25, 0.2626752468388701234}, {1e300, 1.050700987355480549e300},
    })
    has_values(function(x) return F.celu(x, 0.75) end, 0, 5e-16, {
      {-700, -0.75}, {-3.5, -0.7429473280863785939}, {-1e-9, -9.999999993333333959e-10},
      {-1e-300, -1e-300}, {0, 0}, {0.25, 0.25}, {1e300, 1e300},
    })
  end)

  it("have values at the infinities, of -0 and of NaN", function()
    local x = lt.tensor({math.huge, -math.huge, -0.0, 0 / 0}, {dtype = "float64"})
    local mish, selu, celu = F.mish(x):tolist(), F.selu(x):tolist(), F.celu(x, 2):tolist()
    assert.same({math.huge, math.huge, math.huge, -2}, {mish[1], selu[1], celu[1], celu[2]})
    assert.is_true(math.abs(selu[2] + 1.758099340847376624) < 1e-15)
    for _, y in ipairs{mish, selu, celu} do
      assert.equal(-math.huge, 1 / y[3])
      assert.is_true(y[4] ~= y[4])
    end
  end)

  it("do not depend on the other elements", function()
    for _, f in ipairs{F.mish, F.selu, F.celu} do
      is_the_same_alone(f, {0.1, -0.9, 40, -750, 1e-310, -1e-310, 1e300, 0, -1, 31})
    end
  end)
end)

describe("a special function of integers of 8 bits", function()
  -- Few elements are computed one by one, many with a table.
  for _, dtype in ipairs {"uint8", "int8"} do
    for _, name in ipairs {"i1e", "ndtr", "bessel_j0", "sinc"} do
      it(("is the same in a long tensor: %s of %s"):format(name, dtype), function()
        local f = lt.special[name]
        local few = lt.arange(256):to(dtype)
        local expected = f(few)
        assert.is_true(lt.allclose(expected, f(few:double()):float(), {rtol = 1e-6, atol = 1e-30}))
        local got = f(few:flip(1):repeat_interleave(13))
        assert.is_true(lt.equal(got, expected:flip(1):repeat_interleave(13)))
      end)
    end
  end
end)

describe("a special function of integers", function()
  -- They become the default float, as for other functions.
  for _, dtype in ipairs {"bool", "int16", "int32", "int64"} do
    for _, name in ipairs {"i1e", "ndtr", "digamma", "bessel_j0", "entr"} do
      it(("is that of their floats: %s of %s"):format(name, dtype), function()
        local x, f = lt.arange(2000):remainder(90):to(dtype), lt.special[name]
        assert.is_true(lt.equal(f(x), f(x:float())))
        assert.is_true(lt.equal(f(x:narrow(1, 1, 50)), f(x:narrow(1, 1, 50):float())))
        if dtype == "int32" or dtype == "int64" then -- rounded first
          local large = lt.tensor({2 ^ 31 - 1, -2 ^ 31 + 1, 2 ^ 24 + 1}, {dtype = dtype})
          assert.is_true(f(large):allclose(f(large:float()), 0, 0, true))
          local compiled = lt.compile(function(v) return f(v) * 2 end)
          assert.is_true(compiled(large):allclose(f(large:float()) * 2, 1e-5, 0, true))
        end
      end)
    end
  end
end)
