--- The sources that a front end knows by paths: cells and files.
--
-- The path of a cell is the hash of its text between a prefix and a suffix; a front end computes it
-- too, so that the cell that has the path can be found. No such file exists. A chunk of Lua is
-- "=cell[3]" or "@file.lua".

local hash = require "lutra.repl.kernel.debug.hash"
local host = require "lutra.repl.host"
local lines = require "lutra.repl.kernel.debug.lines"
local source_lines = require "lutra.repl.source_lines"

local sources = {SEED = 0x6c757472, SUFFIX = ".lua"}
sources.__index = sources

-- Returns a prefix of paths that no other process has: after a restart breakpoints are set again.
-- JupyterLab shows a path as "Cell [3]" when it contains the name ipykernel_.
local function new_prefix()
  local folder = os.getenv "TMPDIR" or "/tmp"
  return ("%s/lutra_ipykernel_%x%s/"):format(folder:gsub("/$", ""), os.time(),
    ("%p"):format({}):match "(%x%x%x%x%x%x)0*$" or "")
end

--- Returns a set of sources; `prefix` is that of the paths of its cells. texts: the texts of cells
-- that have run, by chunk.
function sources.new(texts)
  return setmetatable({
    prefix = new_prefix(),
    texts = {},    -- path -> text of a cell
    chunks = texts or {}, -- chunk of a cell -> its text
    paths = {},    -- chunk -> path
    known = {},    -- path -> {lines, message}: the lines with code
  }, sources)
end

--- Adds the text of a cell. Returns its path.
function sources:add(text)
  local path = ("%s%d%s"):format(self.prefix, hash.murmur2(text, sources.SEED), sources.SUFFIX)
  self.texts[path] = text
  return path
end

--- Records that the chunk is compiled from the text of a cell.
function sources:started(text, chunk)
  self.chunks[chunk], self.paths[chunk] = text, nil
end

-- Returns an absolute path.
local function absolute(path)
  if path:sub(1, 1) == "/" then return path end
  return host.getcwd() .. "/" .. path:gsub("^%./", "")
end

--- Returns the path of a chunk, or nil.
function sources:path(chunk)
  local path = self.paths[chunk]
  if path then return path end
  if self.chunks[chunk] then
    path = self:add(self.chunks[chunk])
  elseif chunk:sub(1, 1) == "@" then
    path = absolute(chunk:sub(2))
  end
  self.paths[chunk] = path
  return path
end

--- Returns whether a line belongs to the text of a chunk, not to the code that the prompt adds
-- behind a cell.
function sources:has_line(chunk, line)
  local text = self.chunks[chunk]
  return not text or line <= select(2, text:gsub("\n", "")) + 1
end

--- Returns the text of the source with this path, or nil.
function sources:text(path)
  return self.texts[path] or source_lines.text("@" .. path)
end

--- Returns the number of the first line from `line` on at which the program can stop. Returns nil
-- and the reason when there is none.
function sources:line_with_code(path, line)
  local known = self.known[path]
  if not known then
    local text = self:text(path)
    if not text then return nil, "the source is not available" end
    known = table.pack(lines.of_text(text, not self.texts[path]))
    if self.texts[path] then self.known[path] = known end -- a file may change
  end
  local found, message = known[1], known[2]
  if not found then
    if message then return nil, message end
    return line
  end
  local last = 0
  for with_code in pairs(found) do last = math.max(last, with_code) end
  for number = line, last do
    if found[number] then return number end
  end
  return nil, "there is no code at this line or behind it"
end

return sources
