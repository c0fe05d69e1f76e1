-- The files of tests/golden name the scripts that made them and one version of PyTorch, the one
-- that tools/golden/generate.py asks for.
local golden = require "golden_support"

local function check(name)
  local head = golden.read("tests/golden/" .. name .. ".lua"):sub(1, 400)
  local script = assert.truthy(head:match "^%-%-[^{]- (tools/[%w_/]+%.py)", "no script in the head")
  for version in head:gmatch "PyTorch (%d+%.%d+%.%d+)" do
    assert.equal(golden.version(), version)
  end
  local file = golden.file(name)
  assert.equal(golden.version(), (file.version or golden.version()):match "^[%d.]+")
  if script == "tools/golden/generate.py" then
    assert.truthy(head:find "^[^\n]*PyTorch %d")
    assert.is_string(file.kind)
  end
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
