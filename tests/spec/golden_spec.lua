-- The files of tests/golden are those of one PyTorch, the one that tools/golden/generate.py names.
local golden = require "tests.spec.golden_support"

local KINDS = {ops = true, kinks = true, programs = true, layers = true, optimizers = true}

-- The first lines of a file that says where it is from, and what it returns.
local function check(name)
  local head = ("-- Made by tools/golden/generate.py with PyTorch %s. Do not edit.\n")
    :format(golden.version())
  assert.equal(head, golden.read("tests/golden/" .. name .. ".lua"):sub(1, #head))
  local file = golden.file(name)
  assert.equal(golden.version(), file.version)
  assert.is_true(KINDS[file.kind], "kind " .. tostring(file.kind))
end

describe("tests/golden", function()
  it("is made by a version of PyTorch", function()
    assert.matches("^%d+%.%d+%.%d+$", golden.version())
  end)

  for _, name in ipairs(golden.names()) do
    if name ~= "by_hand" then
      it(name .. " is of that version", function() check(name) end)
    end
  end

  it("has a few files of at most 20 MB", function()
    local bytes, names = 0, golden.names()
    for _, name in ipairs(names) do
      bytes = bytes + #golden.read("tests/golden/" .. name .. ".lua")
    end
    assert.is_true(#names >= 12 and bytes < 20e6, ("%d files, %d bytes"):format(#names, bytes))
  end)
end)
