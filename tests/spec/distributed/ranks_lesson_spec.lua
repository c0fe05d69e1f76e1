-- examples/placement/26_data_parallel_ranks.lua and docs/guide/distributed.md on several ranks. (On
-- one rank placement_examples_spec.lua and tests/guides.lua run them.)

local devices = require "device_support"
local program = require "program_support"
local ranks = require "ranks_support"

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or ""
local path = root .. "examples/placement/26_data_parallel_ranks.lua"

local function run(count, options)
  options = options or {}
  options.setup = ("dofile %q do os.exit(true, true) end"):format(path)
  return ranks.check(count, "", options)
end

-- Asserts that one rank printed, and what.
local function check(text, count)
  local _, oks = text:gsub("ok: each rank computed", "")
  assert.equal(1, oks, text)
  program.has(text, ("a job of %d; rank 0 is on "):format(count))
  program.has(text, ("each rank got 12 of %d samples"):format(12 * count))
  program.has_not(text, "skipped")
end

describe("examples/placement/26_data_parallel_ranks.lua", function()
  for count = 2, 3 do
    it("runs on " .. count .. " ranks", function()
      if not ranks.available() then return pending "needs mpirun" end
      check(run(count), count)
    end)
  end

  it("runs on two ranks with emulated GPUs", function()
    if not ranks.available() then return pending "needs mpirun" end
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local text = run(2, {args = {"--emulate", "cuda:2"}})
    check(text, 2)
    program.has(text, "rank 0 is on cuda:0")
  end)
end)

describe("docs/guide/distributed.md", function()
  it("says the same on two ranks", function()
    if not ranks.available() then return pending "needs mpirun" end
    ranks.check(2, "", {setup = [[
      local documents = dofile "tests/documents.lua"
      assert(documents.run("docs/guide/distributed.md", {lt = lt, nn = lt.nn, F = lt.F,
        optim = lt.optim, data = lt.data}))
      do os.exit(true, true) end]]})
  end)
end)
