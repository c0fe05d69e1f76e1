-- A sample of PyTorch's operator database (tests/golden/opinfo, made by tools/opinfo/generate.py):
-- a few cases of each row, with their results, dtypes, shapes and gradients of first and second
-- order, on the default device. tools/opinfo/run.lua runs the whole database.
local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end
local harness = dofile(root .. "tools/opinfo/harness.lua")

describe("a sample of PyTorch's operator database", function()
  for _, file in ipairs(harness.open_sample(root .. "tests/golden/opinfo")) do
    it("has the same results: " .. file.cases.row, function()
      local failures = {}
      harness.run(file, function(case, text)
        if text then failures[#failures + 1] = case.id .. ": " .. text end
      end)
      assert.equal("", table.concat(failures, "\n"))
    end)
  end
end)
