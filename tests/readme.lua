-- README.md's statements about the language, run: its Lua code, the code of its tables, and its
-- transcripts, whose results must be what the prompt prints. `build/lutra tests/readme.lua`, from
-- the repository's root, with the program again as an argument when it is not build/lutra.

local program = arg[1] or "build/lutra"
local lt = require "lutra"
local passed, failed = 0, 0
local function check(good, message)
  if good then
    passed = passed + 1
  else
    failed = failed + 1
    print("FAILED " .. message)
  end
end

local file <close> = assert(io.open "README.md")
local text = file:read "a"

-- The Lua blocks are one script.
local script = {}
for code in text:gmatch "\n```lua\n(.-)\n```" do script[#script + 1] = code end
local chunk, problem = load(table.concat(script, "\n"), "=README.md", "t")
local ok = chunk ~= nil
if ok then ok, problem = xpcall(chunk, debug.traceback) end
check(ok, "the Lua code: " .. tostring(problem))
check(#script > 0, "no Lua code found")

-- The last column of the table: each piece is an expression or a statement that does not fail.
local function names()
  local w = lt.ones(4, 4, {requires_grad = true})
  return setmetatable({
    lt = lt, w = w, loss = w:sum(), a = lt.ones(2, 2), b = lt.ones(2, 2),
    x = lt.arange(16):view(4, 4):float(), y = lt.ones(4, 4), mask = lt.ones(4, 4):gt(0),
  }, {__index = _G})
end
local pieces = 0
for row in text:gmatch "\n| `[^\n]*" do
  for piece in (row:match ".*|(.+)|" or ""):gmatch "`([^`]+)`" do
    local code = piece:gsub("%.%.%.", "return 1")
    local f = load("return " .. code, "=" .. piece, "t", names())
      or load(code, "=" .. piece, "t", names())
    -- `x:add_(1)`, beside names of folders, files and values: only code has a bracket or a dot.
    if piece:match "[%(%[{]" or piece:match "^x%." then
      pieces = pieces + 1
      local why
      if f then ok, why = pcall(f) else ok, why = false, "is not Lua" end
      check(ok, ("%s: %s"):format(piece, why))
    end
  end
end
check(pieces > 20, ("only %d pieces of code found in the table"):format(pieces))

-- Transcripts: blocks whose first line is an input at the prompt.
local function session(inputs)
  local path = os.tmpname()
  local input <close> = assert(io.open(path, "w"))
  input:write(table.concat(inputs, "\n"), "\n")
  input:flush()
  local pipe <close> = assert(io.popen(("%s -i <%s 2>&1"):format(program, path)))
  local out = pipe:read "a"
  os.remove(path)
  return out
end
local transcripts = 0
for block in text:gmatch "\n```\n(> .-)\n```" do
  transcripts = transcripts + 1
  local inputs, results = {}, {}
  for line in (block .. "\n"):gmatch "(.-)\n" do
    if line:match "^> " then
      inputs[#inputs + 1] = line:sub(3)
    else
      results[#results + 1] = line
    end
  end
  local out = session(inputs):gsub("> ", ""):gsub("%s+$", "")
  local wanted = table.concat(results, "\n")
  check(out == wanted, ("the prompt printed\n%s\nREADME.md says\n%s"):format(out, wanted))
end
check(transcripts > 0, "no transcript found")

print(("%d passed, %d failed, 0 skipped"):format(passed, failed))
os.exit(failed == 0, true)
