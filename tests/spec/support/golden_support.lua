-- Reads tests/golden: the files that tools/golden/generate.py writes, one a family, and
-- by_hand.lua.

local golden = {}

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end

-- The text of a file of the repository.
function golden.read(path)
  local file = assert(io.open(root .. path))
  local text = file:read "a"
  file:close()
  return text
end

-- The files' names without ".lua", in order.
function golden.names()
  local names, list = {}, assert(io.popen('ls "' .. root .. 'tests/golden"'))
  for name in list:lines() do names[#names + 1] = name:match "^(.*)%.lua$" end
  list:close()
  return names
end

-- What the file `name` returns: kind, version, and cases as the kind has them.
function golden.file(name) return dofile(root .. "tests/golden/" .. name .. ".lua") end

-- The cases of all files of a kind, in one list.
function golden.cases(kind)
  local cases = {}
  for _, name in ipairs(golden.names()) do
    local file = golden.file(name)
    if file.kind == kind then table.move(file, 1, #file, #cases + 1, cases) end
  end
  return cases
end

-- The version of PyTorch that makes the files.
function golden.version()
  return golden.read "tools/golden/generate.py":match '\nPYTORCH = "([%d.]+)"'
end

return golden
