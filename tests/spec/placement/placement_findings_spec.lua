-- The text of what lt.placement.lint and trace give: as it is, and in so many columns.

local devices = require "device_support"
if devices.elsewhere("placement/placement_findings", _ENV) then return end

local assert = require "luassert"
local lt = require "lutra"
local look = require "pictures_support".look

-- A function that reads a number of the device in a loop, at a short name's line.
local function reader()
  local x = lt.ones{3, device = "cuda"}
  return load("local x = ... return function() for i = 1, 12 do x:sum():item() end end",
    "=t.lua")(x)
end

local function fits(text, width)
  for line in text:gmatch "[^\n]+" do assert.is_true(utf8.len(line) <= width, line) end
end

describe("findings", function()
  local read = reader()
  local findings = lt.placement.lint(function()
    read()
    error(("a long way down "):rep(9) .. "\nand a note", 0)
  end)

  it("are two lines each, which other programs can read", function()
    local first, second = tostring(findings):match "^([^\n]+)\n([^\n]+)\n1 finding\n"
    assert.truthy(first:find "^t%.lua:1: T1: item reads one number from cuda:0 12 times; ")
    assert.truthy(second:find "^    fix: accumulate on the device and read once: ")
    assert.equal(first .. "\n" .. second, tostring(findings[1]))
  end)

  it("are as wide as is asked for", function()
    local words = tostring(findings):gsub("%s+", " ")
    for _, width in ipairs {36, 40, 79} do
      fits(findings:table(width), width)
      fits(findings[1]:table(width), width)
      assert.equal(words, (findings:table(width):gsub("%s+", " ")))
    end
    local start = "\n    fix: accumulate on the device and\n         read once:"
    assert.truthy(findings:table(40):find(start, 1, true))
    assert.truthy(findings:table(40):find("\nand a note", 1, true))
    local refusal = {"expected a number of columns for argument 'width', got", "wide"}
    devices.fails(refusal, findings.table, findings, "wide")
    devices.fails(refusal, findings[1].table, findings[1], "wide")
    local trace = lt.placement.trace(read)
    devices.fails(refusal, trace.table, trace, "wide")
    for _, width in ipairs {-3, 0, 1} do -- whatever fits
      assert.is_string(findings:table(width) .. trace:table(width))
    end
  end)

  it("fit a narrow terminal, and so does a trace", function()
    local out = look({":set width 40", "x = lt.ones{3, device = 'cuda'}",
      "function f() for i = 1, 12 do x:sum():item() end end",
      "lt.placement.lint(f)", "_[1]", "lt.placement.trace(f)"}, {arguments = ""})
    local seen = out:match "T1: .*"
    assert.equal(2, select(2, seen:gsub("\n    fix: ", "")), out)
    assert.truthy(seen:find "12 copies, 48 B, 12 blocking; 0", seen)
    fits(seen, 39)
  end)
end)

describe("the table of a trace", function()
  -- A trace of copies of 12 KiB, 5 ms each, over these ways.
  local function trace_of(...)
    local list = {...}
    for i, way in ipairs(list) do
      list[i] = {kind = "copy", from = way[1], to = way[2], bytes = 12288, begin = 0, finish = 5000,
        op = "to", where = "some/folder/train.lua:12", explicit = true}
    end
    return require("lutra.placement.trace").new{dropped = function() return 0 end,
      events = function() return function() return table.remove(list, 1) end end}
  end

  it("keeps lines, ways, counts and times in 40 columns, and cuts no number", function()
    local trace = trace_of({"cpu", "cuda:0"}, {"cuda:0", "cpu"}, {"cuda:1", "cuda:0"})
    assert.equal("line          direction    count  time\n"
      .. "train.lua:12  cpu->cuda:0      1  5 ms\n"
      .. "train.lua:12  cuda:0->cpu      1  5 ms\n"
      .. "train.lua:12  cuda:1->0        1  5 ms\n", trace:table(39):match "^.-\n.-\n.-\n.-\n")
    for width = 20, 100 do
      fits(trace:table(width), width)
      assert.is_nil(trace:table(width):find "12[%.%dKi ]*%.%. ", width)
    end
    assert.truthy(trace:table(100):find("cuda:1 -> cuda:0 ", 1, true))
    assert.truthy(trace:table(100):find("12.0 KiB", 1, true))
  end)
end)
