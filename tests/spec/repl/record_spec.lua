-- Tests the pictures of the prompt in docs/images, and tools/docs/record, which makes them: a
-- picture has the text of a new session. After a change of the prompt's output run
-- `tools/docs/record`.

local support = require "program_support"
local devices = require "device_support"
local quote = support.quote

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or ""
if root == "" then root = "./" end
local tool = root .. "tools/docs/record"

-- What the test needs and this machine lacks, or nil.
local function missing()
  local file = io.open(tool)
  if not file then return "no tools/docs in a bundle" end
  file:close()
  if not support.has_terminal() then return "needs python3" end
  if not devices.can_emulate() then return "no emulated CUDA in this build" end
end

local function record(arguments)
  return support.shell(("LUTRA=%s python3 %s %s"):format(quote(support.program), quote(tool),
    arguments))
end

local function names()
  local list = {}
  local pipe <close> = assert(io.popen("ls " .. quote(root .. "docs/images")))
  for name in pipe:lines() do list[#list + 1] = name:match "^(.*)%.session$" end
  return list
end

describe("docs/images", function()
  for _, name in ipairs(names()) do
    it(name .. ".svg has the text of a new session", function()
      if missing() then return pending(missing()) end
      local result = record("--check " .. name)
      assert.equal("1 passed, 0 failed, 0 skipped\n", result.out, result.err)
      assert.equal(0, result.status)
    end)
  end
end)

describe("tools/docs/record", function()
  it("reports a program that cannot run", function()
    if missing() then return pending(missing()) end
    local result = support.shell(("LUTRA=/no/such/lutra python3 %s --check prompt"):format(
      quote(tool)))
    assert.equal(1, result.status)
    support.has(result.err, "cannot run /no/such/lutra: No such file or directory")
  end)
end)
