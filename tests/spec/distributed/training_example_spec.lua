--- examples/distributed_mnist.lua on two ranks: it checks its own result.

local devices = require "device_support"
local program = require "program_support"
local ranks = require "ranks_support"

local folder = os.getenv "LUTRA_TEST_DATA"

-- Runs the example with these arguments of `lutra` and of its own; returns its output.
local function run(arguments, own)
  if not folder then return pending "no LUTRA_TEST_DATA" end
  if not ranks.available() then return pending "needs mpirun" end
  local result = program.shell(("env OMP_NUM_THREADS=1 timeout -k 5 120 %s %s "
    .. "examples/distributed_mnist.lua --data %s %s"):format(program.quote(program.program),
    arguments, program.quote(folder .. "/mnist"), own))
  assert.equal(0, result.status, result.out .. result.err)
  return result.out
end

describe("The example of distributed training", function()
  it("reaches its accuracy on two ranks, and prints each line once", function()
    local out = run("--nproc 2", "")
    local _, lines = out:gsub("epoch %d: loss", "")
    assert.equal(5, lines, out)
  end)

  it("trains on two emulated devices", function()
    if not devices.can_emulate() then return pending "needs the emulated devices" end
    local out = run("--emulate cuda:2 --nproc 2", "--device cuda --epochs 1")
    assert.is_truthy(out:find("epoch 1: loss", 1, true), out)
  end)
end)
