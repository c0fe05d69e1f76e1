-- Runs the Lua code of docs/pytorch.md: its blocks, as one script, and the code in the last column
-- of its tables. `build/lutra --emulate mps tests/readme.lua`, from the repository's root; without
-- that device, or without MPI, the code about it is left out.
-- tests/spec/repl/transcripts_spec.lua replays the transcripts of the documents.

local lt = require "lutra"
local checks = dofile "tests/checks.lua"
local check = checks.check

local documents = dofile "tests/documents.lua"

local PATH = "docs/pytorch.md"
local text = documents.read(PATH)

local ok, problem, blocks = documents.run(PATH)
check(ok, "the Lua code: " .. tostring(problem))
check(blocks > 0, "no Lua code found")

-- The last column of the table: each piece is an expression or a statement that does not fail.
local dist = lt.distributed
if dist.is_available() then dist.init_process_group() end
local function names()
  local w = lt.ones(4, 4, {requires_grad = true})
  return setmetatable({
    lt = lt, m = lt.nn.Linear(4, 4), w = w, loss = w:sum(), a = lt.ones(2, 2), b = lt.ones(2, 2),
    x = lt.arange(16):view(4, 4):float(), y = lt.ones(4, 4), mask = lt.ones(4, 4):gt(0),
    source = "kernel void scale(device float *y, device const float *x) {}", n = 16,
    dist = dist, ddp = lt.nn.parallel.DistributedDataParallel(lt.nn.Linear(4, 4)),
    lib = {scale = function(...) return ... end},
  }, {__index = _G})
end
local pieces = 0
for row in text:gmatch "\n| `[^\n]*" do
  for piece in (row:match ".*|(.+)|" or ""):gmatch "`([^`]+)`" do
    local code = piece:gsub("%.%.%.", "return 1")
    local f = load("return " .. code, "=" .. piece, "t", names())
      or load(code, "=" .. piece, "t", names())
    -- `x:add_(1)`, beside names of folders, files and values: only code has a bracket or a dot.
    local runs = piece:match "[%(%[{]" or piece:match "^x%."
    local missing = piece:find "mps" and not lt.mps.is_available()
      or piece:find "dist%." and not dist.is_available()
    if runs and not missing then
      pieces = pieces + 1
      local why
      if f then ok, why = pcall(f) else ok, why = false, "is not Lua" end
      check(ok, ("%s: %s"):format(piece, why))
    end
  end
end
check(pieces > 20, ("only %d pieces of code found in the table"):format(pieces))

checks.finish()
