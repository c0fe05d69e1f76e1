-- The examples of the reference: the paragraphs of the files docs/reference/*.lua, which a test
-- runs, and for ops the examples that help shows. `dofile "tools/docs/examples.lua"`, from the
-- repository's root, gives a table with one function:
--
--   find(entry)   the example of an entry of lutra.repl.help.public, or nil
--
-- An example belongs to a name when it contains it: `lt.cuda.empty_cache` as it is, the method
-- nn.Module:train as `:train` in a file that contains nn.Module, the field x.shape as `.shape` in
-- tensor.lua.

local op_examples = require "lutra.repl.help.examples"

local folder = "docs/reference/"
local files = {} -- a list of {path, text, paragraphs}

local function read(path)
  local file <close> = assert(io.open(path))
  local text = file:read "a"
  local list = {}
  for paragraph in (text .. "\n\n"):gmatch "(.-)\n%s*\n" do list[#list + 1] = paragraph end
  files[#files + 1] = {path = path, text = text, paragraphs = list}
end

local listing <close> = assert(io.popen("ls " .. folder .. "*.lua"))
for path in listing:lines() do read(path) end

-- The local variables that a paragraph uses and that are declared before it, on one line each: the
-- text of these lines. `lt`, `nn` and their like are known to every reader.
local known = {lt = true, nn = true, F = true, optim = true, data = true}
local function declarations(file, paragraph)
  local lines, needed = {}, " " .. paragraph
  for i = #file.paragraphs, 1, -1 do
    if file.paragraphs[i] == paragraph then
      for k = i - 1, 1, -1 do
        local list = {}
        for line in file.paragraphs[k]:gmatch "[^\n]+" do table.insert(list, 1, line) end
        for _, line in ipairs(list) do
          local names, value = line:match "^local ([%w_, ]+) = (.*)$"
          local ends = value and not value:find "[%({%[]$" and not value:find "^function"
          for name in (ends and names or ""):gmatch "[%w_]+" do
            local declared = paragraph:find("local [%w_, ]*%f[%w_]" .. name .. "%f[^%w_]")
            if not known[name] and not declared
                and needed:find("[^%w_.:]" .. name .. "%f[^%w_]") then
              line = line:gsub("%s*%-%-.*$", "")
              if lines[1] ~= line then table.insert(lines, 1, line) end
              needed = needed .. " " .. line
            end
          end
        end
      end
      break
    end
  end
  return #lines > 0 and table.concat(lines, "\n") .. "\n" or ""
end

-- A paragraph as it is shown: behind the variables that it uses.
local function shown(file, paragraph)
  local title, rest = paragraph:match "^(%-%-[^\n]*\n)(.*)$"
  return (title or "") .. declarations(file, paragraph) .. (rest or paragraph)
end

local function escaped(text) return (text:gsub("%p", "%%%0")) end

-- The files about a name come first: those whose first line has the table that it is in.
local function ordered(name)
  local owner, first, others = (name:match "^(.*)[.:]" or name):gsub("%p", "%%%0"), {}, {}
  for _, file in ipairs(files) do
    local title = file.text:match "^[^\n]*":gsub("%.$", "")
    local about = title:find("%f[%w_.]" .. owner .. "%f[^%w_.]")
    local list = about and first or others
    list[#list + 1] = file
  end
  return table.move(others, 1, #others, #first + 1, first)
end

-- The first paragraph that matches, in files that contain the text `where`.
local function search(pattern, where)
  for _, file in ipairs(ordered(where)) do
    if file.text:find(where, 1, true) or file.path == where then
      for _, paragraph in ipairs(file.paragraphs) do
        local code = paragraph:gsub("^%-%-[^\n]*\n", ""):gsub("\n%-%-[^\n]*", "")
        if code:find(pattern) then return shown(file, paragraph) end
      end
    end
  end
end

local examples = {}

function examples.find(entry)
  local function named(name) return search("%f[%w_.]" .. escaped(name) .. "%f[^%w_]", name) end
  local op = entry.op
  if op and op.example then return op.example end
  if op and op.call then return named((op.namespace or "lt") .. "." .. op.name) end
  if op then return op_examples.of(op) end
  if entry.kind == "field" then
    return search("%." .. escaped(entry.key) .. "%f[^%w_]", folder .. "tensor.lua")
  end
  if entry.kind == "method" then
    local where = entry.made_by or entry.class or folder .. "tensor.lua"
    return search("[:.]" .. escaped(entry.key) .. "%f[^%w_]", where)
  end
  return named(entry.name) or entry.alias_of and named(entry.alias_of)
end

return examples
