-- Environment variables are checked before any work: a value that cannot be used is reported. The
-- rules for other CPUs than this one are tested by tests/c/test_capability.c.

local support = require "program_support"
local shell, quote, has = support.shell, support.quote, support.has

local PRODUCT = quote "local a = lt.ones(300, 300) print(a:matmul(a):sum():item())"
local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"

-- Runs the program, with the shell text of assignments `environment`.
local function run(environment, arguments)
  return shell(("env %s %s %s"):format(environment, quote(support.program),
    arguments or "-e " .. PRODUCT))
end

-- The program refuses to start, with this line and no other.
local function refuses(environment, line, arguments)
  local result = run(environment, arguments)
  assert.same({out = "", err = "lutra: " .. line .. "\n", status = 1}, result)
end

local function cpu_flags()
  local file = io.open "/proc/cpuinfo"
  if not file then return "" end
  local text <close> = file
  return " " .. ((text:read "a"):match "flags%s*:([^\n]*)" or "") .. " "
end

local LEVELS = '"base"'
local flags = cpu_flags()
local x86 = flags:find(" sse2 ", 1, true) ~= nil

describe("LUTRA_CPU_CAPABILITY", function()
  it("must be a level that there is", function()
    local result = run "LUTRA_CPU_CAPABILITY=sse9"
    assert.same({"", 1}, {result.out, result.status})
    has(result.err, "lutra: LUTRA_CPU_CAPABILITY: expected one of " .. LEVELS)
    has(result.err, ', got "sse9"\n')
    assert.equal(1, run("LUTRA_CPU_CAPABILITY=AVX2", "--info").status)
  end)

  it("lowers the instruction set, and may be empty", function()
    has(run("LUTRA_CPU_CAPABILITY=base", "--info").out, "base")
    assert.equal("27000000.0\n", run("LUTRA_CPU_CAPABILITY=base").out)
    assert.equal("27000000.0\n", run("LUTRA_CPU_CAPABILITY=").out)
  end)
end)

describe("LUTRA_OPENBLAS_CORETYPE", function()
  it("must be a core type that there is", function()
    if not x86 then return pending "the list is of x86-64" end
    local result = run "LUTRA_OPENBLAS_CORETYPE=SKYLAKE"
    assert.same({"", 1}, {result.out, result.status})
    has(result.err, "lutra: LUTRA_OPENBLAS_CORETYPE: expected one of Prescott, ")
    has(result.err, ', SapphireRapids, got "SKYLAKE"\n')
    assert.equal(result.err, run("LUTRA_OPENBLAS_CORETYPE=SKYLAKE", "--info").err)
    assert.equal(1, run("LUTRA_OPENBLAS_CORETYPE=SKYLAKE", "--info").status)
  end)

  it("must be one that the CPU can run, instead of an illegal instruction", function()
    if not x86 then return pending "the list is of x86-64" end
    if not flags:find(" fma4 ", 1, true) then
      refuses("LUTRA_OPENBLAS_CORETYPE=Piledriver",
        'LUTRA_OPENBLAS_CORETYPE: cannot use "Piledriver": this CPU lacks fma4'
        .. (flags:find(" fma ", 1, true) and "" or ", fma"))
    end
    if not flags:find(" avx512f ", 1, true) then
      local result = run "LUTRA_OPENBLAS_CORETYPE=SKYLAKEX"
      assert.equal(1, result.status)
      has(result.err, 'cannot use "SKYLAKEX": this CPU lacks avx512f, ')
    end
    assert.equal("27000000.0\n", run("LUTRA_OPENBLAS_CORETYPE=prescott").out)
    assert.equal("27000000.0\n", run("LUTRA_OPENBLAS_CORETYPE=").out)
  end)

  it("must be one that the installed OpenBLAS has", function()
    local result = run("LUTRA_OPENBLAS_CORETYPE=SAPPHIRERAPIDS", "--info")
    if result.status == 0 then return has(result.out:lower(), "core type sapphirerapids") end
    has(result.err, 'lutra: LUTRA_OPENBLAS_CORETYPE: cannot use "SAPPHIRERAPIDS": ')
  end)

  it("alone chooses the core type: OPENBLAS_CORETYPE is not used", function()
    assert.equal("27000000.0\n", run("OPENBLAS_CORETYPE=BULLDOZER").out)
    local shown = quote "lt.ones(9, 9):matmul(lt.ones(9, 9)) print(os.getenv 'OPENBLAS_CORETYPE')"
    assert.equal("BULLDOZER\n", run("OPENBLAS_CORETYPE=BULLDOZER", "-e " .. shown).out)
  end)
end)

describe("other variables", function()
  it("with invalid values are errors", function()
    refuses("LUTRA_MEMORY_DEBUG=yes", 'LUTRA_MEMORY_DEBUG: expected 0 or 1, got "yes"')
    refuses("LUTRA_FALLBACK=maybe", 'LUTRA_FALLBACK: expected 0 or 1, got "maybe"')
    refuses("LUTRA_MPS_BLOCKING=yes", 'LUTRA_MPS_BLOCKING: expected 0 or 1, got "yes"')
    refuses("LUTRA_MPS_STORAGE=fast", 'LUTRA_MPS_STORAGE: expected shared or private, got "fast"')
    refuses("OMP_NUM_THREADS=5000", "OMP_NUM_THREADS: expected an integer from 1 to 1024, got 5000")
    has(run("OMP_NUM_THREADS=few").err, "OMP_NUM_THREADS") -- by OpenMP
    local result = run "LUTRA_EMULATE=cuda:99"
    assert.same({"", 2}, {result.out, result.status})
    has(result.err, '"cuda:99"')
  end)

  it("LUTRA_FALLBACK decides until lt.set_fallback does", function()
    local shown = "-e " .. quote "print(lt.get_fallback()) lt.set_fallback(false) "
      .. quote "print(lt.get_fallback()) lt.set_fallback(true) print(lt.get_fallback())"
    for value, first in pairs {["=1"] = "true", ["=0"] = "false", ["="] = "false"} do
      assert.equal(first .. "\nfalse\ntrue\n", run("LUTRA_FALLBACK" .. value, shown).out)
    end
  end)

  it("raise an error where stock Lua loads the library", function()
    if not os.execute "command -v lua5.4 >/dev/null" then return pending "there is no lua5.4" end
    local build = support.program:match "^(.*)/[^/]*$"
    local function load(environment)
      local paths = ("LUA_PATH='%slib/?.lua;;' LUA_CPATH='%s/lib/?.so;;'"):format(root, build)
      return shell(("env %s %s lua5.4 -e %s"):format(environment, paths,
        quote "print(pcall(require, 'lutra'))"))
    end
    if load("").out:sub(1, 4) ~= "true" then return pending "the module needs the program" end
    has(load("LUTRA_CPU_CAPABILITY=sse9").out, "false\tLUTRA_CPU_CAPABILITY: expected one of ")
    has(load("LUTRA_EMULATE=cuda:99").out,
      'false\tLUTRA_EMULATE: expected a number of devices from 1 to 8')
    has(load("LUTRA_EMULATE=gpu").out, 'false\tLUTRA_EMULATE: expected a device type, got "gpu"')
    has(load("LUTRA_EMULATE=").out, "true\t")
  end)

  it("report a line-editing library that cannot be loaded, and the prompt works without", function()
    if not support.has_terminal() then return pending "there is no Python" end
    local result = support.terminal({"expect [1]>", "send 1 + 1\\r", "expect 2", "send \\x04"},
      "LUTRA_READLINE=/nonexistent/lib.so", "--no-init")
    assert.equal(0, result.status)
    has(result.out, 'lutra: LUTRA_READLINE: cannot use "/nonexistent/lib.so": ')
    local other = support.terminal({"expect [1]>", "send 1 + 1\\r", "expect 2", "send \\x04"},
      "LUTRA_READLINE=libm.so.6", "--no-init")
    assert.equal(0, other.status)
    has(other.out, 'cannot use "libm.so.6": it is not a line editing library')
  end)
end)
