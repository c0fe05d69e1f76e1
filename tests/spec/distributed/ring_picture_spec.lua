-- docs/images/ring.svg: the picture is what tools/docs/ring.lua draws.

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or ""

describe("docs/images/ring.svg", function()
  it("is what tools/docs/ring.lua draws", function()
    local file <close> = assert(io.open(root .. "docs/images/ring.svg"))
    local picture = file:read "a"
    local drawn, write = {}, io.write
    -- luacheck: ignore 122
    io.write = function(text) drawn[#drawn + 1] = text end
    local ok, why = pcall(dofile, root .. "tools/docs/ring.lua")
    io.write = write
    assert.is_true(ok, why)
    assert.equal(picture, table.concat(drawn),
      "run 'lua5.4 tools/docs/ring.lua >docs/images/ring.svg' and look at the picture")
  end)

  it("ends with the sum in all chunks of all ranks", function()
    local file <close> = assert(io.open(root .. "docs/images/ring.svg"))
    local last = file:read "a":match "after step 6.*$"
    local _, sums = last:gsub(">sum<", "")
    assert.equal(16, sums)
  end)
end)
