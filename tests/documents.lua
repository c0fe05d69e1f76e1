-- Runs the Lua code of a document. `dofile "tests/documents.lua"`, from the repository's root,
-- returns a table:
--
--   read(path)          the text of a file
--   run(path, names)    runs the ```lua blocks of a Markdown file, or the paragraphs of a Lua file,
--                       as one script in which the global variables `names` are defined. Returns
--                       whether it succeeded, the error or nil, and how many blocks there were
--
-- A comment `--> text` in a block states what the block prints: all lines after such an arrow are
-- what `print` writes in that block, in order. `...` in an expected line matches anything.

local documents = {}

function documents.read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- The paragraphs of a Lua file, in the form of lua_blocks.
local function paragraphs(text)
  local blocks, block, number = {}, nil, 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    if line:find "^%s*$" then
      block = nil
    else
      if not block then
        block = {line = number, lines = {}}
        blocks[#blocks + 1] = block
      end
      block.lines[#block.lines + 1] = line
    end
  end
  return blocks
end

-- The blocks of a document: a list of {line = number of its first line, lines}.
local function lua_blocks(text)
  local blocks, block, number = {}, nil, 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    if block and line:find "^%s*```%s*$" then
      block = nil
    elseif block then
      block.lines[#block.lines + 1] = line
    elseif line:find "^```lua%s*$" then
      block = {line = number + 1, lines = {}}
      blocks[#blocks + 1] = block
    end
  end
  return blocks
end

local function trimmed(line) return (line:gsub("%s+$", "")) end

-- What a block says that it prints, as a list of lines.
local function expected_output(block)
  local list = {}
  for _, line in ipairs(block.lines) do
    local text = line:match "%-%->%s?(.*)$"
    if text then list[#list + 1] = trimmed(text) end
  end
  return list
end

-- One chunk whose line numbers are those of the document: blocks after one another, so that locals
-- of one are known in the next.
local function script(blocks)
  local lines, at = {}, 1
  for i, block in ipairs(blocks) do
    while at < block.line do
      lines[at], at = "", at + 1
    end
    local mark = ("__block(%d); "):format(i)
    if block.line > 1 then
      lines[block.line - 1] = mark
    else
      block.lines[1] = mark .. block.lines[1]
    end
    for _, line in ipairs(block.lines) do lines[at], at = line, at + 1 end
  end
  lines[at] = (";__block(%d)"):format(#blocks + 1)
  return table.concat(lines, "\n")
end

local function compare(block, printed, path)
  local expected = expected_output(block)
  if #expected == 0 then return end
  local text, got = table.concat(expected, "\n"), table.concat(printed, "\n")
  local pattern = text:gsub("%p", "%%%0"):gsub("%%%.%%%.%%%.", "[^\n]*")
  if not got:find("^" .. pattern .. "$") then
    error(("%s:%d: expected the output\n%s\ngot\n%s"):format(path, block.line, text, got), 0)
  end
end

function documents.run(path, names)
  local text = documents.read(path)
  local blocks = path:find "%.lua$" and paragraphs(text) or lua_blocks(text)
  local environment = setmetatable({}, {__index = _G})
  for name, value in pairs(names or {}) do environment[name] = value end
  local printed, current = {}, nil
  function environment.print(...)
    local parts = table.pack(...)
    for i = 1, parts.n do parts[i] = tostring(parts[i]) end
    for line in (table.concat(parts, "\t") .. "\n"):gmatch "(.-)\n" do
      printed[#printed + 1] = trimmed(line)
    end
  end
  function environment.__block(i)
    if current then compare(current, printed, path) end
    current, printed = blocks[i], {}
  end
  local chunk, problem = load(script(blocks), "@" .. path, "t", environment)
  if not chunk then return nil, problem, #blocks end
  local ok, why = xpcall(chunk, function(e)
    return type(e) == "string" and debug.traceback(e, 2) or tostring(e)
  end)
  return ok, why, #blocks
end

return documents
