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
