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
