-- bench/run-cuda: the table is the same whatever the machine lacks. Small scripts stand in the
-- places of Lutra, Python and cuBLAS; what they measure is not tested here.

local program = require "program_support"
local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"

-- Runs it with the texts of three scripts of the shell; its output and what it says on stderr.
local function run(lutra, python, cublas)
  local folder = program.folder()
  for name, text in pairs {lutra = lutra, python = python, cublas = cublas} do
    local path = folder .. "/" .. name
    local file = assert(io.open(path, "w"))
    file:write("#!/bin/sh\n", text, "\n")
    file:close()
    assert(os.execute("chmod +x " .. path))
  end
  local result = program.shell(("LUTRA=%s/lutra PYTHON=%s/python CUBLAS=%s/cublas %sbench/run-cuda")
    :format(folder, folder, folder, root == "" and "./" or root))
  program.remove(folder)
  assert.equal(0, result.status, result.out .. result.err)
  return result.out, result.err
end

local LUTRA = [[
case "$1" in
--version) echo "Lutra 9.9.9" ;;
-e) case "$2" in *get_device_name*) echo "a GPU" ;; *) echo nil ;; esac ;;
*) printf 'copy on the device\t0.001\t1000000000\tB\nadd\t0.002\t1000000000\tB\n'
   printf 'matmul float32\t0.001\t1000000000000\tF\n' ;;
esac]]
local PYTHON = [[
[ "$1" != -c ] || exit 0
printf 'version\t9.9\ncopy on the device\t0.002\nadd\t0.001\n'
printf 'matmul float32\t0.002\n']]
local CUBLAS = [[printf 'matmul float32\t0.0009\n']]

describe("bench/run-cuda", function()
  it("puts PyTorch and cuBLAS beside Lutra", function()
    local out, err = run(LUTRA, PYTHON, CUBLAS)
    assert.equal("", err)
    assert.matches("^Lutra 9%.9%.9, a GPU, ", out)
    assert.matches("PyTorch 9%.9\n", out)
    assert.matches("\ncopy on the device +1%.00 ms +1000%.0 GB/s +2%.00 ms +0%.50\n", out)
    assert.matches("\nadd +2%.00 ms +500%.0 GB/s +50%.0 %% of the copy +1%.00 ms +2%.00\n", out)
    assert.matches("\nmatmul float32 +1%.00 ms +1000%.0 TF/s +90%.0 %% of cuBLAS alone +2%.00 ms",
      out)
  end)

  it("keeps its table without PyTorch", function()
    local out, err = run(LUTRA, "echo 'no module named torch' >&2; exit 1", CUBLAS)
    assert.equal("left out PyTorch: no module named torch\n", err)
    assert.matches("\nmatmul float32 +1%.00 ms +1000%.0 TF/s +90%.0 %% of cuBLAS alone +%- +\n",
      out)
  end)

  it("keeps its table where PyTorch fails in the middle", function()
    local fails = PYTHON .. "\necho 'out of memory' >&2; exit 1"
    local out, err = run(LUTRA, fails, CUBLAS)
    assert.equal("left out some of PyTorch: out of memory\n", err)
    assert.matches("\nadd +2%.00 ms +500%.0 GB/s +50%.0 %% of the copy +1%.00 ms +2%.00\n", out)
  end)

  it("keeps its table where cuBLAS is missing", function()
    local fails = "echo 'libcublas.so.13: cannot open shared object file' >&2; exit 127"
    local out, err = run(LUTRA, PYTHON, fails)
    assert.equal("left out cuBLAS alone: libcublas.so.13: cannot open shared object file\n", err)
    assert.matches("\nmatmul float32 +1%.00 ms +1000%.0 TF/s +2%.00 ms +0%.50\n", out)
  end)

  it("keeps the lines that Lutra could measure", function()
    local out, err = run(LUTRA .. '\n[ "$1" != bench/device.lua ] || exit 1', PYTHON, CUBLAS)
    assert.equal("the measurements of Lutra ended early\n", err)
    assert.matches("\nadd +2%.00 ms", out)
  end)
end)
