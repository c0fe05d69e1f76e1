-- bench/run-mps: its table, with scripts in the places of Lutra and Python, and its measurements on
-- the emulated device, whose times say nothing.

local program = require "program_support"
local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end

local LUTRA = [[
case "$1" in
--version) echo "Lutra 9.9.9" ;;
-e) echo "an Apple GPU" ;;
*) [ "$2" = mps ] || exit 2
   printf 'copy on the device\t0.001\t1000000000\tB\nmatmul float16\t0.001\t1000000000000\tF\n' ;;
esac]]

-- Runs it with the texts of two scripts of the shell; its output and what it says on stderr.
local function run(lutra, python)
  local folder = program.folder()
  for name, text in pairs {lutra = lutra, python = python} do
    local path = folder .. "/" .. name
    local file = assert(io.open(path, "w"))
    file:write("#!/bin/sh\n", text, "\n")
    file:close()
    assert(os.execute("chmod +x " .. path))
  end
  local result = program.shell(("LUTRA=%s/lutra PYTHON=%s/python %sbench/run-mps")
    :format(folder, folder, root))
  program.remove(folder)
  assert.equal(0, result.status, result.out .. result.err)
  return result.out, result.err
end

describe("bench/run-mps", function()
  it("puts PyTorch beside Lutra", function()
    local out, err = run(LUTRA, [[
[ "$1" != -c ] || exit 0
[ "$3" = mps ] || exit 2
printf 'version\t9.9\ncopy on the device\t0.002\nmatmul float16\t0.002\n']])
    assert.equal("", err)
    assert.matches("^Lutra 9%.9%.9, an Apple GPU, ", out)
    assert.matches("PyTorch 9%.9\n", out)
    assert.matches("\ncopy on the device +1%.00 ms +1000%.0 GB/s +2%.00 ms +0%.50\n", out)
    assert.matches("\nmatmul float16 +1%.00 ms +1000%.0 TF/s +2%.00 ms +0%.50\n", out)
  end)

  it("keeps its table without PyTorch", function()
    local out, err = run(LUTRA, "echo 'no module named torch' >&2; exit 1")
    assert.equal("left out PyTorch: no module named torch\n", err)
    assert.matches("\nmatmul float16 +1%.00 ms +1000%.0 TF/s +%- +\n", out)
  end)

  local emulated = io.open(root .. "build/lib/lutra/mps_emulated.so")
  if not emulated then return end
  emulated:close()
  it("measures every line on an emulated device", function()
    local result = program.shell(
      ("LUTRA_EMULATE=mps,memory=1GiB SCALE=0.0001 PYTHON=false %sbench/run-mps"):format(root))
    assert.equal(0, result.status, result.err)
    assert.equal("left out PyTorch: \n", result.err)
    for _, name in ipairs {
      "submit a %+ b", "read a %+ b", "host to device, pageable", "device to host, pageable",
      "copy on the device", "add", "gelu", "sum", "add bfloat16", "softmax of 1024",
      "layer_norm of 4096", "transposed copy of 1024", "cross_entropy of 32768", "AdamW step",
      "matmul float32", "matmul float16", "matmul bfloat16", "character GPT step",
    } do
      assert.matches("\n" .. name .. " +[%d.]+ [mu]s", result.out)
    end
  end)
end)
