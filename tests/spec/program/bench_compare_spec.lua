-- Tests the table of bench/compare. A shell script replaces Lutra, and PyTorch is missing. The
-- measurements are not tested.

local program = require "program_support"
local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end

local LUTRA = [[
case "$1" in
--version) echo "Lutra 9.9 (Lua 5.4)" ;;
-e) printf 'VmHWM:\t    2048 kB\n' ;;
*) printf 'add one element\t2.5e-7\nexp 10^7\t0.002\nsum 10^7\t0.5\n' ;;
esac
]]

local function run(arguments)
  local folder = program.folder()
  local path = folder .. "/lutra"
  local file = assert(io.open(path, "w"))
  file:write("#!/bin/sh\n", LUTRA)
  file:close()
  assert(os.execute("chmod +x " .. path))
  local result = program.shell(("LUTRA=%s PYTHON=/no/such THREADS=3 python3 %sbench/compare %s")
    :format(path, root, arguments))
  program.remove(folder)
  return result
end

describe("bench/compare", function()
  it("prints the minimum of each measurement, and leaves out PyTorch", function()
    if not program.has_terminal() then return pending "needs python3" end
    local result = run "--rounds 1 --peer true true"
    assert.equal(0, result.status, result.err)
    assert.equal("left out PyTorch: cannot import torch in /no/such (PYTHON=...)\n", result.err)
    program.has(result.out, "Lutra 9.9 (Lua 5.4); 3 threads; ")
    assert.matches("\n +Lutra +true\n", result.out)
    assert.matches("\nstart to the first tensor +[%d.]+ %a+ +[%d.]+ %a+\n", result.out)
    assert.matches("\nmemory with one tensor +2%.0 MiB +[%d.]+ MiB\n", result.out)
    assert.matches("\nmemory with a matrix product +2%.0 MiB +%-\n", result.out)
    assert.matches("\nadd one element +250 ns +%-\n", result.out)
    assert.matches("\nexp 10%^7 +2 ms +%-\n", result.out)
    program.has_not(result.out, "sum 10^7")
  end)

  it("refuses unknown options", function()
    if not program.has_terminal() then return pending "needs python3" end
    local result = run "--fast"
    assert.equal(1, result.status)
    program.has(result.err, "bench/compare [--rounds N]")
  end)
end)
