-- The tools of placement with "mps" in place of "cuda:0": the lint, the guard, traces, transfers,
-- pictures, lessons, completion, and what --info and :devices show.

local devices = require "device_support"
if devices.elsewhere("mps/placement", _ENV, {emulate = {"mps"}}) then return end

local lessons = require "lessons_support"
local lt = require "lutra"
local program = require "program_support"

local placement = lt.placement
local fails, has = devices.fails, lessons.has

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- Runs a prompt with these lines on an emulated GPU of Apple. Returns what it prints.
local home
before_each(function() home = program.folder() end)
after_each(function() program.remove(home) end)
local function prompt(lines, emulate)
  local result = lessons.session(home, lines .. "\n", ("--emulate %s -i"):format(emulate or "mps"))
  assert.equal("", result.err, result.out)
  return result.out
end

describe("the lint on mps", function()
  for i = 1, 9 do
    it(("finds what breaks T%d, and nothing in what keeps it"):format(i), function()
      for _, kind in ipairs {"breaks", "keeps"} do
        local text = read(("%stests/placement/T%d_%s.lua"):format(lessons.root, i, kind))
        local path = program.file((text:gsub('"cuda"', '"mps"'):gsub("lt%.cuda%.", "lt.mps.")))
        local result = program.run("--lint " .. program.quote(path))
        os.remove(path)
        local rules = {}
        for rule in ("\n" .. result.err):gmatch "\n%S+: (T%d): [^\n]+\n    fix: " do
          rules[#rules + 1] = rule
        end
        assert.same(kind == "breaks" and {"T" .. i} or {}, rules, result.err)
        assert.equal(kind == "breaks" and 1 or 0, result.status)
      end
    end)
  end
end)

describe("placement on mps", function()
  local x = lt.randn({4}, {device = "mps"})

  it("guards copies", function()
    assert.is_true(pcall(placement.guard, "disallow", function() return x:cpu() end))
    fails({"16 bytes", 'from "mps" to "cpu"', 'guard("disallow")', "x:cpu()"}, placement.guard,
      "disallow", function()
        local s = tostring(x)
        return s
      end)
    fails('from "cpu" to "mps"', placement.guard, "disallow_explicit",
      function() return lt.ones(3):mps() end)
    placement.guard("disallow_explicit", function() return x:add(1):sum() end)
  end)

  it("traces copies, kernels and waits", function()
    local trace, sum = placement.trace(function()
      return (lt.ones(256):to "mps" * 2):sum():item()
    end)
    assert.equal(512, sum)
    local totals, kernels = trace:totals(), 0
    assert.same({2, 1028}, {totals.copies, totals.bytes})
    for _, e in ipairs(trace.events) do
      if e.kind == "op" and e.op == "mul" then
        assert.equal("mps", e.to)
        kernels = kernels + 1
      end
    end
    assert.equal(1, kernels)
    has(tostring(trace), "cpu -> mps", "mps -> cpu")
  end)

  it("explains devices that do not match", function()
    fails({"matmul: cannot use tensors on different devices", 'is on "cpu"', 'is on "mps"',
      "hint: ", ':to('}, lt.matmul, lt.ones(2, 2), lt.ones(2, 2, {device = "mps"}))
  end)
end)

describe("the prompt with mps", function()
  it("shows the device and its tensors", function()
    local out = prompt 'x = lt.ones{1024, 256, device = "mps"}\n:devices'
    has(out, "mps Emulated Apple GPU", "1.0 MiB in tensors", "x 1.0 MiB")
  end)

  it("lists transfers and draws lanes", function()
    local out = prompt('x = lt.zeros(1000, 1000)\n'
      .. ':transfers local y = x:to "mps"; y = y:matmul(y):cpu()', "mps,link=pcie4")
    has(out, "to cpu -> mps 1 3.8 MiB", "cpu mps -> cpu 1 3.8 MiB", "2 copies, 7.6 MiB")
    assert.is_truthy(out:find "\nhost +%[" and out:find "\nmps +%[", out)
  end)

  it("completes its name and its functions", function()
    local names = {}
    local complete = require "lutra.repl.complete.values"
    complete.add("device", function(name) names[name] = true end, true)
    assert.is_true(names['"mps"'])
    has(prompt ":help lt.mps.compile_shader", "Metal Shading Language")
    has(prompt ":help lt.mps.unsupported_ops", "sorted list")
  end)

  it("has it in --info", function()
    local result = program.run "--info"
    has(result.out, "mps (emulated) available", "Emulated Apple GPU")
  end)
end)

describe("on mps the lesson", function()
  for number, file in ipairs(lessons.files()) do
    local lesson = dofile(lessons.root .. "lib/lutra/lessons/" .. file)
    it(file:match "^(.*)%.lua$" .. " fails at first and passes with its solution", function()
      local input = (":lesson %d\n:check\n:hint solution\n"):format(number)
      if (lesson.devices or 0) > 1 then
        local result = lessons.session(home, input, "--emulate mps,memory=256MiB -i")
        return has(result.out .. result.err, "expected 2 GPUs for lesson " .. number)
      end
      local solution = lesson.solution:gsub("cuda:0", "mps"):gsub("lt%.cuda%.", "lt.accelerator.")
      local out = prompt(input .. solution .. "\n:check", "mps,memory=256MiB")
      assert.is_nil(out:find("cuda:0", 1, true), out)
      has(out, "not yet: ", "done: ")
    end)
  end
end)
