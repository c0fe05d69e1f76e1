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

local function escaped(text) return (text:gsub("%p", "%%%0")) end

-- The first paragraph that matches, in files that contain the text `where`.
local function search(pattern, where)
  for _, file in ipairs(files) do
    if file.text:find(where, 1, true) or file.path == where then
      for _, paragraph in ipairs(file.paragraphs) do
        local code = paragraph:gsub("^%-%-[^\n]*\n", ""):gsub("\n%-%-[^\n]*", "")
        if code:find(pattern) then return paragraph end
      end
    end
  end
end

local examples = {}

function examples.find(entry)
  local function named(name) return search("%f[%w_.]" .. escaped(name) .. "%f[^%w_]", name) end
  local op = entry.op
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
