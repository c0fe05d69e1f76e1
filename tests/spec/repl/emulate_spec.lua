-- The command :emulate.

local support = require "program_support"

local has = support.has
local built = support.shell("ls " .. (os.getenv "LUTRA_BUILD" or "build")
  .. "/lib/lutra/cuda_emulated.so").status == 0

describe(":emulate", function()
  local function session(input)
    local result = support.shell(("env -u LUTRA_EMULATE %s -i --no-init"):format(
      support.quote(support.program)), input)
    result.out = result.out:gsub("%[%d+%]> ", ""):gsub("\n$", "")
    return result
  end

  it("emulates devices in a session that has started", function()
    if not built then return pending "this build has no emulated devices" end
    local result = session(":emulate\n:emulate cuda:2\nlt.cuda.device_count()\n"
      .. "(lt.ones{2, device = 'cuda:1'} * 2):sum():item()\n:emulate cuda:2\n:emulate\n")
    assert.equal("", result.err)
    assert.equal("no devices are emulated\n2\n4.0\nemulated: cuda:2\n", result.out)
  end)

  it("reports devices that are in use and other words", function()
    if not built then return pending "this build has no emulated devices" end
    local result = session(":emulate cuda:2\nlt.cuda.device_count()\n:emulate cuda:3\n")
    has(result.err, 'error: emulate: cannot emulate "cuda": the device type is already in use')
    has(result.err, "hint: :emulate cuda:3 must be the first cell of a session")
    has(session(":emulate tpu\n").err, 'emulate: expected a device type, got "tpu"')
    has(session(":emulate memory=1GiB\n").err, "emulate: expected a device type first")
  end)
end)
