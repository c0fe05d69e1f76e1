--- FFTW, where it is installed: the tests of Fourier transforms with LUTRA_FFTW=1, for which it
-- computes all sizes. transforms_spec.lua itself runs Lutra's own code for most sizes.
local support = require "program_support"
local lt = require "lutra"

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/"

describe("FFTW", function()
  it("computes the same transforms as Lutra's own code", function()
    if not lt.backends.fftw.is_available() then return pending "FFTW is not installed" end
    assert.is_truthy(lt.backends.fftw.info():find "^FFTW %d")
    local result = support.shell(("LUTRA_FFTW=1 %s %s %s"):format(support.quote(support.program),
      support.quote(root .. "tests/busted.lua"),
      support.quote(root .. "tests/spec/core/transforms_spec.lua")))
    assert.matches(" passed, 0 failed", result.out)
    assert.equal(0, result.status)
  end)

  it("is not loaded with LUTRA_FFTW=0", function()
    local script = "print(lt.backends.fftw.is_available(), lt.fft.fft(lt.ones(2)))"
    local result = support.shell(("LUTRA_FFTW=0 %s -e %s"):format(support.quote(support.program),
      support.quote(script)))
    assert.matches("^false\ttensor{2", result.out)
  end)
end)
