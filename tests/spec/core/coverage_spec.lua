-- lt.coverage: the table of ops, dtypes and devices.
local lt = require "lutra"

local function quiet(pattern)
  local lines = {}
  local list = require("lutra.internal.coverage").print(pattern, function(text)
    lines[#lines + 1] = text
  end)
  return list, lines
end

local function entry(list, name)
  for _, e in ipairs(list) do
    if e.name == name then return e end
  end
end

describe("lt.coverage", function()
  local list, lines = quiet()

  it("has one entry and one line for each public op", function()
    local names = {}
    for _, e in ipairs(list) do
      assert.is_nil(e.name:find "^_")
      names[e.name] = true
    end
    for _, row in ipairs(lt.ops()) do
      if row.variants["function"] and not row.name:find "^_" then
        assert.is_true(names[row.name], row.name)
      end
    end
    assert.equal(#list + 2, #lines)
  end)

  it("states the dtypes that an op accepts", function()
    local add, relu, mm = entry(list, "add"), entry(list, "relu"), entry(list, "mm")
    assert.is_true(add.devices.cpu.float32 and add.devices.cpu.bool and add.devices.cpu.complex64)
    assert.is_nil(relu.devices.cpu.complex64)
    assert.is_true(mm.devices.cpu.float64)
    assert.is_true(add.devices.meta.int8)
  end)

  it("leaves out what a device lacks", function()
    local add = entry(list, "add")
    if add.devices.mps then assert.is_nil(add.devices.mps.float64) end
  end)

  it("takes a part of a name", function()
    for _, e in ipairs((quiet "soft")) do assert.is_truthy(e.name:find "soft") end
  end)
end)
