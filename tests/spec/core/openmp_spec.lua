-- How long OpenMP's threads spin while they wait, in the program that runs this spec.
local lt = require "lutra"

-- Runs code in a new process with these variables in its environment; returns what it prints, with
-- the settings that GNU's OpenMP library has read.
local function run(environment, code)
  local interpreter, i = arg[-1] or "lua5.4", -1
  while arg[i - 1] do
    i = i - 1
    interpreter = arg[i]
  end
  local file = os.tmpname()
  local handle = assert(io.open(file, "w"))
  handle:write(("package.path = %q\npackage.cpath = %q\n"):format(package.path, package.cpath),
    'local lt = require "lutra"\n', code)
  handle:close()
  local pipe = assert(io.popen(("env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose "
    .. "%s '%s' '%s' 2>&1"):format(environment, interpreter, file)))
  local text = pipe:read "a"
  pipe:close()
  os.remove(file)
  return text
end

local ok = 'print("sum", lt.ones(1000, 1000):sum():item())'
local gnu = run("", ok):find("GOMP_SPINCOUNT", 1, true)
local test = gnu and it or pending

describe("waiting threads", function()
  test("spin for a short time", function()
    local text = run("", ok)
    assert.matches("GOMP_SPINCOUNT = '4000'", text, 1, true)
    assert.matches("sum\t1000000", text, 1, true)
  end)

  test("do what the user has set", function()
    assert.matches("GOMP_SPINCOUNT = '0'", run("OMP_WAIT_POLICY=passive", ok), 1, true)
    assert.matches("GOMP_SPINCOUNT = '77'", run("GOMP_SPINCOUNT=77", ok), 1, true)
  end)

  test("leave no trace in the environment", function()
    local code = 'print("in it:", os.getenv "GOMP_SPINCOUNT", lt.get_num_threads() >= 1)'
    assert.matches("in it:\tnil\ttrue", run("", code), 1, true)
    assert.matches("in it:\t77\ttrue", run("GOMP_SPINCOUNT=77", code), 1, true)
  end)

  it("are as many as the program has set", function()
    local before = lt.get_num_threads()
    lt.set_num_threads(3)
    assert.equal(3, lt.get_num_threads())
    assert.equal(1000000, lt.ones(1000, 1000):sum():item())
    lt.set_num_threads(before)
  end)
end)
