-- Tests the table of bench/ops.py. A small module replaces PyTorch; no measurement is tested.

local program = require "program_support"
local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end

-- A PyTorch whose tensors hold nothing, so that each of its calls is faster than Lutra's.
local TORCH = [[
__version__ = "9.9"
class Namespace: pass
class Tensor:
    def __add__(self, other): return self
    def copy_(self, other): return self
    def mm(self, other): return self
def made(*sizes): return Tensor()
zeros = ones = randn = made
nn, optim, backends = Namespace(), None, Namespace()
nn.functional, backends.cpu = None, Namespace()
backends.cpu.get_cpu_capability = lambda: "FAKE"
def set_num_threads(n): pass
def manual_seed(n): pass
]]

-- Runs bench/ops.py, or the program `name`, with these arguments; `torch`: with this text as the
-- module torch.
local function run(arguments, torch, name)
  local folder = program.folder()
  if torch then
    local file = assert(io.open(folder .. "/torch.py", "w"))
    file:write(torch)
    file:close()
  end
  local result = program.shell(("PYTHONPATH=%s python3 %sbench/%s --rounds 1 --lutra %s %s")
    :format(folder, root, name or "ops.py", program.quote(program.program), arguments))
  program.remove(folder)
  return result
end

describe("bench/ops.py", function()
  it("prints the machine, its limits, ratios and a summary", function()
    if not program.has_terminal() then return pending "needs python3" end
    local path = os.tmpname()
    local result = run("--only '^add, (1|10\\^7)$' " .. path, TORCH)
    assert.equal(0, result.status, result.err)
    assert.matches("^Lutra %d+%.%d+%.%d+ %(%u+%d*%); PyTorch 9%.9 %(FAKE%); 2 threads; "
      .. "%d+%-%d+%-%d+\n", result.out)
    assert.matches("\nLimits: copy of 4 MB [%d.]+ GB/s, of 40 MB [%d.]+ GB/s; "
      .. "product of %d+ x %d+ %d+ and %d+ GFLOP/s\n", result.out)
    assert.matches("\nadd, 1 +[%d.]+ +[%d.]+ +[%d.]+\n", result.out)
    assert.matches("\nadd, 10%^7 +[%d.]+ +[%d.]+ +[%d.]+ +%d+ %%\n", result.out)
    assert.matches("\n2 rows: 0 at 0.7 or less, 2 slower than PyTorch, geometric mean [%d.]+\n",
      result.out)
    local file <close> = assert(io.open(path))
    assert.equal(result.out, file:read "a")
    os.remove(path)
  end)

  it("measures Lutra alone where PyTorch is missing, and with AVX2", function()
    if not program.has_terminal() then return pending "needs python3" end
    local result = run("--only '^add, 1$' --isa avx2", 'raise ImportError("none")')
    assert.equal(0, result.status, result.err)
    program.has(result.err, "PyTorch is not installed")
    assert.matches("^Lutra [%d.]+ %(%u+%d*%); 2 threads; ", result.out)
    program.has_not(result.out, "AVX512")
    assert.matches("\nadd, 1 +[%d.]+\n", result.out)
    program.has_not(result.out, "rows:")
  end)

  it("has rows of other ops in bench/breadth.py", function()
    if not program.has_terminal() then return pending "needs python3" end
    local result = run("--only 'erfinv|rfft|create'", 'raise ImportError("none")',
      "breadth.py")
    assert.equal(0, result.status, result.err)
    assert.matches("\n10%^6: x%.erfinv%(%) +[%d.]+\n", result.out)
    program.has_not(result.out, "error")
  end)

  it("has rows of layouts and dtypes in bench/layouts.py", function()
    if not program.has_terminal() then return pending "needs python3" end
    local result = run("--only 'index: x.:, i|product: dot|uint8: sum.x, -1'",
      'raise ImportError("none")', "layouts.py")
    assert.equal(0, result.status, result.err)
    assert.matches("\nindex: x%[:, i%] +[%d.]+\n", result.out)
    assert.matches("\nuint8: sum%(x, %-1%) +[%d.]+\n", result.out)
    program.has_not(result.out, "error")
  end)

  it("refuses unknown options", function()
    if not program.has_terminal() then return pending "needs python3" end
    assert.equal(2, run("--fast").status)
  end)
end)
