-- Runs the guides and the examples of the reference: the Lua code of docs/guide/*.md and of
-- docs/reference/*.lua, and compares the output that they state. From the repository's root:
-- `build/lutra --emulate cuda:2,memory=1GiB tests/guides.lua [FILE...]`.

local lt = require "lutra"
local documents = dofile "tests/documents.lua"
local checks = dofile "tests/checks.lua"

local function files(pattern)
  local listing <close> = assert(io.popen("ls " .. pattern))
  local list = {}
  for path in listing:lines() do list[#list + 1] = path end
  return list
end

local paths = #arg > 0 and arg or files "docs/guide/*.md docs/reference/*.lua"
local state = lt.get_rng_state()
for _, path in ipairs(paths) do
  if path:find "distributed" and not lt.distributed.is_available() then
    print(("skipped %s: it needs MPI's library"):format(path))
  else
    lt.set_rng_state(state)
    local ok, why = documents.run(path, {lt = lt, nn = lt.nn, F = lt.F, optim = lt.optim,
      data = lt.data})
    checks.check(ok, ("%s: %s"):format(path, tostring(why)))
  end
end

-- C code in the guides compiles.
for _, path in ipairs(files "docs/guide/*.md") do
  for code in documents.read(path):gmatch "\n```c\n(.-)\n```" do
    local name = os.tmpname()
    local file <close> = assert(io.open(name, "w"))
    file:write(code, "\n")
    file:close()
    local compile = "cc -std=gnu11 -Wall -Werror -fsyntax-only -Isrc -Isrc/tensor -x c "
    local ok = os.execute(compile .. name)
    checks.check(ok, path .. ": its C code does not compile")
    os.remove(name)
  end
end

checks.finish()
