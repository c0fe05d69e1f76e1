-- The transcripts of tests/repl/ are what the prompt prints, and those of README.md and of the
-- guides are among them.

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
package.path = root .. "tests/repl/?.lua;" .. package.path
local replay = require "replay"
local devices = require "device_support"
local support = require "program_support"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text
end

local function list(pattern)
  local names = {}
  for name in support.shell("ls " .. pattern .. " 2>/dev/null").out:gmatch "[^\n]+" do
    names[#names + 1] = name
  end
  return names
end

local texts = {}
describe("the transcript", function()
  for _, path in ipairs(list(root .. "tests/repl/*.txt")) do
    local text = read(path)
    texts[text] = true
    it(path:match "[^/]*$", function()
      if text:find("cuda.kernel", 1, true) and not devices.can_compile() then
        return pending "needs a C++ compiler"
      end
      local problem = replay.check(text)
      assert(not problem, problem)
    end)
  end
end)

describe("the examples of", function()
  for _, path in ipairs(list(root .. "README.md " .. root .. "docs/*.md")) do
    it(path:match "[^/]*$" .. " are transcripts of tests/repl", function()
      local is_guide = path:find("docs/", 1, true) ~= nil -- there every block is one
      for _, block in ipairs(replay.blocks("\n" .. read(path), is_guide)) do
        assert(texts[block], "no file of tests/repl/ is\n" .. block)
      end
    end)
  end
end)

-- The anchors of a document: its headings in small letters, with - for blanks.
local function anchors(text)
  local found = {}
  for heading in ("\n" .. text):gmatch "\n#+ ([^\n]*)" do
    found[heading:lower():gsub("[^%w%- ]", ""):gsub(" ", "-")] = true
  end
  return found
end

describe("the links of", function()
  for _, path in ipairs(list(root .. "README.md " .. root .. "docs/*.md")) do
    it(path:match "[^/]*$" .. " lead to files and headings that are there", function()
      for link in read(path):gmatch "%]%(([^)]*)%)" do
        local name, anchor = link:match "^([^#]*)#?(.*)$"
        if not name:find "^<?https?:" then
          local target = name == "" and path or (path:match "^.*/" or "") .. name
          local file = io.open(target)
          assert(file, link)
          file:close()
          assert(anchor == "" or anchors(read(target))[anchor], link)
        end
      end
    end)
  end
end)

describe("replaying", function()
  it("reports the differences", function()
    local problem = replay.check "[1]> 1 + 1\n3\n"
    assert.truthy(problem:find("printed\n2\nthe transcript says\n3", 1, true), problem)
    assert.truthy(replay.check "[1]> x = 1\n[3]> x\n1\n")
    assert.falsy(replay.check "[1]> 1 + 1\n2\n[2]> for i=1,2 do\n       print(i)\n     end\n1\n2")
  end)

  it("runs the commands of a shell on the files that were shown", function()
    local said = "$ cat a.lua\nprint(6 * 7, ...)\n\n$ lutra a.lua b\n42\tb\n$ lutra -e 'x()'\n...\n"
    assert.falsy(replay.check(said))
    local problem = replay.check((said:gsub("42\tb", "43")))
    assert.truthy(problem:find("$ lutra a.lua b\nprinted\n42\tb\nthe transcript says\n43", 1, true))
    assert.truthy(replay.check "$ rm a.lua\n")
  end)

  it("finds the transcripts of a document", function()
    local text = "\n```\n[1]> 1\n```\n\n```\nmake\n```\n\n```lua\nx()\n```\n\n```\n"
      .. "$ lutra a.lua\n```\n"
    assert.same({"[1]> 1\n", "$ lutra a.lua\n"}, replay.blocks(text))
    assert.same({"[1]> 1\n", "make\n", "$ lutra a.lua\n"}, replay.blocks(text, true))
  end)

  it("matches anything where a transcript has dots", function()
    assert.truthy(replay.matches("took 12 ms.", "took ... ms."))
    assert.falsy(replay.matches("took 12\n ms.", "took ... ms."))
    assert.truthy(replay.matches("a\nb\nc\nd", "a\n...\nd"))
    assert.falsy(replay.matches("a\nb\nc\nd", "a\n...\ne"))
  end)
end)
