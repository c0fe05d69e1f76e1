-- Special functions, of float64 first. The expected values have 40 digits in the arithmetic that
-- computed them.

local lt = require "lutra"

-- Checks f of each {x, value}: the difference is at most `near` plus `relative` times the value.
local function has_values(f, near, relative, pairs_of)
  for _, pair in ipairs(pairs_of) do
    local x, value = pair[1], pair[2]
    local got = f(lt.tensor({x}, {dtype = "float64"})):item()
    local is_nan = got ~= got and value ~= value
    assert(got == value or is_nan or math.abs(got - value) <= near + relative * math.abs(value),
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

describe("Bessel functions of float64", function()
  local j0, j1, y0, y1 = lt.special.bessel_j0, lt.special.bessel_j1, lt.special.bessel_y0,
    lt.special.bessel_y1

  it("are accurate", function()
    has_values(j0, 0, 2e-15, {
      {0.125, 0.99609756304198520462}, {-2.5, -0.048383776468197996327},
      {3.999, -0.39721566284621508645}, {4.5, -0.32054250898512142436},
      {6.75, 0.28945678978455655276}, {8.125, 0.14129138733820354781},
      {-25.75, 0.15487441908279072872}, {1000.25, 0.022846535354858312963},
      {1048000.5, -0.00039648350283338784657},
    })
    has_values(j1, 0, 2e-15, {
      {0.125, 0.062378009134494681094}, {-2.5, -0.49709410246427403801},
      {3.999, -0.065662610557324969524}, {4.5, -0.23106043192337063401},
      {6.75, -0.080322785255277215546}, {8.125, 0.25045056135481875055},
      {-25.75, 0.024061158861528617693}, {1000.25, 0.010711720806184071439},
      {1048000.5, 0.00067101557594071408816},
    })
    has_values(y0, 0, 2e-15, {
      {1e-300, -439.83516362276533173}, {0.125, -1.3896806251438405292},
      {2.5, 0.49807035961523188783}, {3.25, 0.28828690267308705392},
      {5.5, -0.33948059288191103829}, {6.75, -0.10138410327184662307},
      {8.125, 0.24134025273630947847}, {25.75, -0.027062210951935412941},
      {1000.25, 0.01070029905959667605}, {1048000.5, 0.00067101576510252401231},
    })
    has_values(y1, 0, 2e-15, {
      {1e-300, -6.3661977236758132712e+299}, {0.125, -5.199936112534774996},
      {1.5, -0.41230862697391129595}, {3.25, 0.37977777371708352322},
      {4.5, 0.30099732306965462342}, {6.75, -0.29769758332318409497},
      {8.125, -0.12675507909580879151}, {25.75, -0.15542883028536683477},
      {1000.25, -0.022841189398253215148}, {1048000.5, 0.0003964838229743895366},
    })
  end)

  it("are accurate near zeros", function()
    has_values(j0, 1e-31, 0, {
      {2.404825557695773, -6.1087652597367303971e-17},
      {5.520078110286311, -2.7522649432621831472e-17},
    })
    has_values(j1, 1e-31, 0, {
      {3.8317059702075125, -6.1498073569949060914e-17},
      {7.015586669815619, 2.8253394094789293756e-17},
    })
    has_values(y0, 3e-17, 0, {
      {0.8935769662791675, -2.3389279284062103119e-17},
      {3.957678419314858, -4.3331064642935196389e-17},
    })
    has_values(y1, 3e-16, 0, {
      {2.197141326031017, 2.5133066789221220687e-17},
      {5.429681040794135, 1.4165786380203692712e-16},
    })
  end)

  it("follow zeros, infinities and NaN", function()
    local x = lt.tensor({0, -0.0, -1, math.huge, 0 / 0}, {dtype = "float64"})
    for k, f in ipairs{j0, j1, y0, y1} do
      local y = f(x):tolist()
      assert.is_true(y[5] ~= y[5] and y[4] == 0)
      if k <= 2 then
        assert.equal(2 - k, y[1])
        assert.equal(2 - k, y[2])
      else
        assert.is_true(y[1] == -math.huge and y[2] == -math.huge and y[3] ~= y[3])
      end
    end
    assert.equal(-math.huge, 1 / j1(x)[2]:item())
    assert.equal(-j1(x[3] * -1):item(), j1(x)[3]:item())
  end)

  it("do not depend on the neighbours", function()
    for _, f in ipairs{j0, j1, y0, y1} do
      is_the_same_alone(f, {0.1, 5, 1e7, 9, 2 ^ 20, 1e300, math.huge, 0 / 0, -3, 1e-310, 0, 30})
    end
  end)
end)

describe("lgamma of float64", function()
  it("is accurate", function()
    has_values(lt.lgamma, 0, 2e-15, {
      {1e-300, 690.77552789821370518}, {0.125, 2.0194183575537963453},
      {0.625, 0.36082949548894018118}, {0.875, 0.085858707225334323502},
      {0.99999, 5.7722388960930893727e-6}, {1.375, -0.11775527074107877445},
      {1.99999, -4.2278111042416735176e-6}, {2.00001, 4.2278755976483595969e-6},
      {2.625, 0.37633368202490543534}, {3.75, 1.4868155785934170555},
      {4.875, 2.9915343110778099183}, {5.125, 3.3680319568817331518},
      {20.5, 40.83150097453079811}, {10000000000.0, 220258509288.81058147},
      {1e+305, 7.0128845336318389096e+307},
    })
    has_values(lt.lgamma, 4e-30, 2e-15, {
      {-1e-20, 46.051701859880913735}, {-0.25, 1.5895753125511859903},
      {-1.5, 0.86004701537648101451}, {-2.4570247382208006, 5.6191923589500964509e-17},
      {-2.625, -0.11751110030890485999}, {-2.747682646727413, 1.0234931857070283713e-15},
      {-3.5, -1.3090066849930420464}, {-4.000000001, 17.545211922351980169},
      {-5.00819, 0.0034807946091462690496}, {-7.5, -8.4045373714515975376},
      {-100.25, -363.40092322782154071},
    })
  end)

  it("is infinite at poles and infinities", function()
    local x = {0, -0.0, -1, -7, -1e300, math.huge, -math.huge}
    assert.same(lt.full({7}, math.huge):tolist(),
      lt.lgamma(lt.tensor(x, {dtype = "float64"})):tolist())
    assert.same(lt.full({7}, math.huge):tolist(), lt.lgamma(lt.tensor(x)):tolist())
    assert.is_true(lt.lgamma(lt.tensor({0 / 0}, {dtype = "float64"})):isnan():item())
  end)

  it("does not depend on the neighbours, and may replace its argument", function()
    is_the_same_alone(lt.lgamma, {0.1, 5, -2.5, -2.457, 1e300, -7.5, 0 / 0, -1, 1.3, 2.7, -30.2})
    local x = lt.linspace(-9.7, 9.3, 701):double()
    local expected = lt.lgamma(x)
    assert.is_true(x:lgamma_():equal(expected))
    local y = lt.linspace(-9.7, 9.3, 701)
    assert.is_true(lt.allclose(expected:float(), y:lgamma_(), {rtol = 1e-4, atol = 1e-5}))
  end)
end)

describe("ndtr of float64", function()
  it("is accurate relative to its value", function()
    -- a bound for CPUs without fused products, where the rounding of x / sqrt(2) counts
    has_values(lt.special.ndtr, 0, 2e-13, {
      {-37.5, 4.6053530095819548438e-308}, {-30.3, 5.7317235033154952943e-202},
      {-12.7, 2.9564853648520500771e-37}, {-5.1, 1.6982674071476014616e-7},
      {-1.3, 0.096800484585610325542}, {-0.6, 0.27425311775007358769}, {0.0, 0.5},
      {0.3, 0.61791142218895263307}, {2.2, 0.98609655248650139569},
      {9.0, 0.99999999999999999989},
    })
    local x = lt.tensor({math.huge, -math.huge, 0 / 0, -50}, {dtype = "float64"})
    local y = lt.special.ndtr(x):tolist()
    assert.is_true(y[1] == 1 and y[2] == 0 and y[3] ~= y[3] and y[4] == 0)
  end)
end)

describe("logarithms of float64 times numbers", function()
  it("follow zeros and NaN", function()
    local inf, nan = math.huge, 0 / 0
    has_values(lt.special.entr, 0, 4e-16, {{0, 0}, {0.25, 0.34657359027997265}, {-1, -inf}})
    local function of(x, y)
      local double = {dtype = "float64"}
      return lt.xlogy(lt.tensor({x}, double), lt.tensor({y}, double)):item()
    end
    assert.equal(0, of(0, 0))
    assert.equal(0, of(0, inf))
    assert.equal(-inf, of(2, 0))
    assert.is_true(of(0, nan) ~= of(0, nan) and of(nan, 1) ~= of(nan, 1))
    assert.is_true(lt.special.entr(lt.tensor({nan}, {dtype = "float64"})):isnan():item())
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

  it("keep 0 and -0, with any alpha", function()
    for _, dtype in ipairs {"float32", "float64"} do
      local zeros = lt.tensor({0, -0.0, -1}, {dtype = dtype})
      for _, alpha in ipairs {-1, math.huge, -math.huge, 0 / 0} do
        local y = F.elu(zeros, alpha):tolist()
        assert.same({math.huge, -math.huge}, {1 / y[1], 1 / y[2]})
      end
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

describe("a special function of float32", function()
  -- Threads share the elements of a long tensor.
  for _, name in ipairs {"gammaln", "digamma", "erfinv", "i0", "i1e", "ndtri", "log_ndtr",
    "bessel_j0", "bessel_y1", "erfcx", "entr", "logit", "sinc", "airy_ai"} do
    it("is that of the parts of a tensor: " .. name, function()
      local f, x = lt.special[name], lt.randn(7001) * 3
      x[1], x[5000], x[7001] = 0 / 0, -math.huge, -0.0
      local parts = {}
      for i, part in ipairs(x:split(1000)) do parts[i] = f(part) end
      assert.is_true(f(x):allclose(lt.cat(parts), 0, 0, true))
    end)
  end
end)

-- Vector code leaves these arguments to scalar code, or they get their results by conditions.
describe("functions of float64 at the ends of their ranges", function()
  local inf, nan = math.huge, 0 / 0
  local exponentials = {
    {-inf, 0}, {-1e300, 0}, {-750, 0}, {-745.5, 0}, {-745, 2.8223507304719370764e-324},
    {-720.25, 1.5827029403098689784e-313}, {-708.5, 2.0061323053313058204e-308},
    {-1.5, 0.22313016014842982893}, {0.25, 1.2840254166877414841},
    {700, 1.0142320547350045095e304}, {709.5, 1.3549863193146328309e308},
    {709.75, 1.7398368732641605577e308}, {710, inf}, {1e300, inf}, {inf, inf}, {nan, nan},
  }
  local powers_of_2 = {
    {-inf, 0}, {-1e300, 0}, {-1100, 0}, {-1076, 0}, {-1074, 4.9406564584124654418e-324},
    {-1050.5, 5.8612406775033423872e-317}, {-1022.5, 1.5733648139913586552e-308},
    {-1.5, 0.3535533905932737622}, {0.25, 1.1892071150027210667},
    {1020.5, 1.5889512576920578546e307}, {1023.5, 1.2711610061536462837e308}, {1024, inf},
    {inf, inf}, {nan, nan},
  }
  local logarithms = {
    {-inf, nan}, {-1, nan}, {-5e-324, nan}, {-0.0, -inf}, {0, -inf},
    {5e-324, -744.44007192138126231}, {1e-310, -713.8013788281541651},
    {2.2250738585072014e-308, -708.39641853226410622}, {0.25, -1.3862943611198906188},
    {3, 1.0986122886681096914}, {1.7976931348623157e308, 709.78271289338399673}, {inf, inf},
    {nan, nan},
  }
  local cases = {
    exp = exponentials,
    exp2 = powers_of_2,
    log = logarithms,
    log2 = {
      {-inf, nan}, {-1, nan}, {-0.0, -inf}, {0, -inf}, {5e-324, -1074},
      {1e-310, -1029.7977094150823322}, {0.25, -2}, {3, 1.5849625007211561815}, {inf, inf},
      {nan, nan},
    },
    log10 = {
      {-inf, nan}, {-1, nan}, {-0.0, -inf}, {0, -inf}, {5e-324, -323.30621534311580366},
      {1e-310, -310.00000000000000133}, {0.25, -0.60205999132796239043},
      {3, 0.4771212547196624373}, {inf, inf}, {nan, nan},
    },
    log1p = {
      {-inf, nan}, {-1.5, nan}, {-1, -inf}, {-0.9999999999999999, -36.736800569677101399},
      {-0.25, -0.28768207245178092744}, {1e-300, 1e-300}, {0.5, 0.40546510810816438198},
      {1.7976931348623157e308, 709.78271289338399673}, {inf, inf}, {nan, nan},
    },
    sinh = {
      {-inf, -inf}, {-711, -inf}, {-710.25, -1.434253030249512303e308},
      {-1.5, -2.1292794550948174968}, {1e-300, 1e-300}, {0.25, 0.25261231680816830791},
      {707.5, 9.168872865309058035e306}, {709.5, 6.7749315965731641544e307},
      {710.25, 1.434253030249512303e308}, {711, inf}, {1e300, inf}, {inf, inf}, {nan, nan},
    },
    cosh = {
      {-inf, inf}, {-711, inf}, {-710.25, 1.434253030249512303e308},
      {-1.5, 2.3524096152432473258}, {1e-300, 1}, {0.25, 1.0314130998795731762},
      {707.5, 9.168872865309058035e306}, {709.5, 6.7749315965731641544e307},
      {710.25, 1.434253030249512303e308}, {711, inf}, {1e300, inf}, {inf, inf}, {nan, nan},
    },
    sigmoid = {
      {-inf, 0}, {-1e300, 0}, {-750, 0}, {-709.5, 7.3801483140125808486e-309},
      {-700.5, 5.9801961186397912064e-305}, {-1.5, 0.18242552380635634039},
      {0.25, 0.56217650088579810403}, {700.5, 1}, {720, 1}, {750, 1}, {inf, 1}, {nan, nan},
    },
    silu = {
      {-inf, nan}, {-1e300, 0}, {-750, 0}, {-709.5, -5.2362152287919261e-306},
      {-1.5, -0.27363828570953451059}, {0.25, 0.14054412522144952601}, {700.5, 700.5}, {750, 750},
      {1e300, 1e300}, {inf, inf}, {nan, nan},
    },
    sin = {
      {-inf, nan}, {-1e300, 0.81788191211590859705}, {-281474976710656, -0.12949601773888191278},
      {-4123456789.25, 0.74999973820886076016}, {-16590376.95408192, -2.4483094430975720602e-14},
      {-4194305, -0.71336520213556285284}, {-3, -0.1411200080598672221}, {-0.0, 0},
      {0.5, 0.47942553860420300027}, {4194303.5, 0.74949843533017441578},
      {4194304, 0.97512939494170703682}, {12345678.9, -0.89730681248125983314},
      {1888182774.3577201, -5.8129491981530017908e-13}, {1e10, -0.48750602508751069153},
      {3e12, -0.92024981398700845861}, {25302243941856.973, -7.4073217169541456819e-9},
      {140737488355328.5, -0.53535698952039784842}, {1e22, -0.85220084976718880177}, {inf, nan},
      {nan, nan},
    },
    cos = {
      {-inf, nan}, {-1e300, -0.57538611195754904669}, {-281474976710656, 0.99157994200657930663},
      {-4123456789.25, -0.66143812460927917483}, {-3999691.9833802897, 4.8552946909900287589e-15},
      {-4194305, -0.70079247169335912621}, {-3, -0.98999249660044545727}, {-0.0, 1},
      {0.5, 0.87758256189037271612}, {4194303.5, 0.66200611435063072164},
      {4194304, 0.22163633077774126253}, {12345678.9, 0.44140739037166244815},
      {121336876.97560048, 2.8400009904177037682e-12},
      {6965213905.482843, -5.0276089671030799564e-9}, {1e10, 0.87311962267685600118},
      {3e12, -0.39133141946038057819},
      {140737488355328.5, -0.84462588983031808809}, {1e22, 0.5232147853951389455}, {inf, nan},
      {nan, nan},
    },
    expm1 = {
      {-inf, -1}, {-1e300, -1}, {-750, -1}, {-709, -1}, {-40, -1}, {-1.5, -0.77686983985157017107},
      {-1e-10, -9.9999999995000003643e-11}, {1e-300, 1e-300}, {0.25, 0.28402541668774148407},
      {700, 1.0142320547350045095e304}, {709.5, 1.3549863193146328309e308}, {710, inf}, {inf, inf},
      {nan, nan},
    },
    acosh = {
      {-inf, nan}, {-1, nan}, {0, nan}, {0.9999999999999999, nan}, {1, 0},
      {1.0000000000000002, 2.1073424255447015504e-8}, {1.5, 0.962423650119206895},
      {1e10, 23.71899811050040215}, {1.7976931348623157e308, 710.47586007394394204}, {inf, inf},
      {nan, nan},
    },
    atanh = {
      {-inf, nan}, {-1.5, nan}, {-1, -inf}, {-0.9999999999999999, -18.714973875118523327},
      {-0.5, -0.5493061443340548457}, {1e-300, 1e-300}, {0.25, 0.2554128118829953416},
      {0.999, 3.8002011672501995875}, {1, inf}, {1e300, nan}, {inf, nan}, {nan, nan},
    },
    logsigmoid = {
      {-inf, -inf}, {-1e300, -1e300}, {-750, -750}, {-709.5, -709.5},
      {-1.5, -1.7014132779827524095}, {0.25, -0.57593941987884356221},
      {30, -9.3576229688397367794e-14},
      {700.5, -5.9801961186397912064e-305}, {709.5, -7.3801483140125808486e-309},
      {740, -4.1887398800480489395e-322}, {750, 0}, {1e300, 0}, {inf, 0}, {nan, nan},
    },
    softplus = {
      {-inf, 0}, {-1e300, 0}, {-750, 0}, {-740, 4.1887398800480489395e-322},
      {-709.5, 7.3801483140125808486e-309}, {-1.5, 0.2014132779827524095},
      {0.25, 0.82593941987884356221}, {19.5, 19.500000003398267814}, {20.5, 20.5}, {709, 709},
      {1e300, 1e300}, {inf, inf}, {nan, nan},
    },
    elu = {
      {-inf, -1}, {-1e300, -1}, {-750, -1}, {-709.5, -1}, {-707, -1},
      {-1.5, -0.77686983985157017107}, {-1e-300, -1e-300}, {-0.0, 0}, {0.25, 0.25}, {750, 750},
      {1e300, 1e300}, {inf, inf}, {nan, nan},
    },
    selu = {
      {-inf, -1.7580993408473768599}, {-750, -1.7580993408473768599},
      {-709.5, -1.7580993408473768599}, {-1.5, -1.3658143533672527412},
      {-1e-300, -1.758099340847376904e-300}, {-0.0, 0}, {0.25, 0.26267524683887012335},
      {750, 788.02574051661037006}, {1e300, 1.0507009873554805486e300}, {inf, inf}, {nan, nan},
    },
    celu = {
      {-inf, -1}, {-750, -1}, {-1.5, -0.77686983985157017107}, {-1e-300, -1e-300}, {-0.0, 0},
      {0.25, 0.25}, {1e300, 1e300}, {inf, inf}, {nan, nan},
    },
  }
  for name, values in pairs(cases) do
    it(name .. " is accurate and does not depend on the neighbours", function()
      local f = lt[name] or lt.F[name]
      has_values(f, 5e-324, 1e-15, values)
      local arguments = {}
      for i, pair in ipairs(values) do arguments[i] = pair[1] end
      is_the_same_alone(f, arguments)
    end)
  end

  it("softplus has the values of its numbers", function()
    local function soft(x) return lt.F.softplus(x, 0.5, 30) end
    local arguments = {-inf, -1e300, -3000, -1480, -3, 0.5, 59, 61, 3000, inf, nan}
    has_values(soft, 5e-324, 1e-15, {
      {-inf, 0}, {-3000, 0}, {-1480, 2 * 4.1887398800480489395e-322},
      {-3, 2 * 0.2014132779827524095}, {0.5, 2 * 0.82593941987884356221}, {61, 61},
      {3000, 3000}, {inf, inf}, {nan, nan},
    })
    is_the_same_alone(soft, arguments)
  end)

  it("signs of zeros are kept where blocks have no other numbers", function()
    for _, name in ipairs{"sin", "expm1", "atanh", "elu", "selu", "celu"} do
      local y = (lt[name] or lt.F[name])(lt.tensor({-0.0, 0}, {dtype = "float64"}))
      assert.same({-inf, inf}, (1 / y):tolist(), name)
    end
  end)

  it("powers follow zeros, signs, infinities and NaN", function()
    local arguments = {-inf, -1e300, -2.5, -1, -0.0, 0, 1e-320, 0.25, 2.25, 1e300, inf, nan}
    local powers = {
      [1.5] = {inf, nan, nan, nan, 0, 0, 0, 0.125, 3.375, inf, inf, nan},
      [-1.5] = {0, nan, nan, nan, inf, inf, inf, 8, 0.29629629629629629, 0, 0, nan},
      [5] = {-inf, -inf, -97.65625, -1, 0, 0, 0, 0.0009765625, 57.6650390625, inf, inf, nan},
      [-5] = {0, 0, -0.01024, -1, -inf, inf, inf, 1024, 0.017341529915832613, 0, 0, nan},
      [4] = {inf, inf, 39.0625, 1, 0, 0, 0, 0.00390625, 25.62890625, inf, inf, nan},
      [inf] = {inf, inf, inf, 1, 0, 0, 0, 0, inf, inf, inf, nan},
      [-inf] = {0, 0, 0, 1, inf, inf, inf, inf, 0, 0, 0, nan},
    }
    for exponent, values in pairs(powers) do
      local expected = {}
      for i, value in ipairs(values) do expected[i] = {arguments[i], value} end
      local function power(x) return x:pow(exponent) end
      has_values(power, 0, 1e-15, expected)
      is_the_same_alone(power, arguments)
      local function by_tensor(x) return x:pow(lt.full_like(x, exponent)) end
      has_values(by_tensor, 0, 1e-15, expected)
      is_the_same_alone(by_tensor, arguments)
    end
    local zeros = lt.tensor({-0.0, 0}, {dtype = "float64"})
    assert.same({-inf, inf}, (1 / zeros:pow(5)):tolist())
    for _, exponent in ipairs {0.0, -0.0} do
      local y = lt.tensor(arguments, {dtype = "float64"}):pow(lt.full({12}, exponent):double())
      assert.is_true(y:eq(1):all():item())
    end
    assert.is_true(zeros:pow(nan):isnan():all():item())
  end)
end)
