-- The readers of files written in Lua against altered files, with a fixed seed (tests/fuzz).

local support = require "program_support"

describe("readers of files", function()
  it("read altered files or refuse them in one line", function()
    local result = support.run("tests/fuzz/files.lua 1 20261123 >/dev/null")
    assert.equal(0, result.status, result.err)
    support.has(result.err, "seed 20261123")
  end)
end)
