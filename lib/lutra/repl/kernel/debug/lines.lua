--- The lines of a program at which it can stop, those of nested functions included.
--
-- Lua reports such lines (debug.getinfo, "L") only for functions that exist. They are read from the
-- compiled code (string.dump), whose format is that of Lua 5.4. Invariant: for code of another
-- format there is no result, and a breakpoint stays where it was set.

local cell = require "lutra.repl.cell"

local lines = {}

-- Bytes of a constant behind its type, by type; a string has its size.
local constant_sizes = {[0x13] = 8, [0x03] = 8, [0] = 0, [1] = 0, [0x11] = 0}
local short_string, long_string = 0x04, 0x14

-- A reader of the bytes of `dump`, from `at` on.
local reader = {}
reader.__index = reader

function reader:byte()
  local value = self.dump:byte(self.at)
  self.at = self.at + 1
  return value
end

-- Reads an integer of variable size: 7 bits a byte, the last byte marked.
function reader:integer()
  local value = 0
  while true do
    local byte = self:byte()
    value = value << 7 | byte & 127
    if byte & 128 ~= 0 then return value end
  end
end

function reader:skip(bytes) self.at = self.at + bytes end

function reader:skip_string() self:skip(math.max(0, self:integer() - 1)) end

function reader:skip_constants()
  for _ = 1, self:integer() do
    local kind = self:byte()
    if kind == short_string or kind == long_string then
      self:skip_string()
    else
      self:skip(constant_sizes[kind])
    end
  end
end

local ABSOLUTE = -128 -- the next line is in the list of absolute lines

-- Adds to `found` the lines of a function but not that of its last instruction when it is a chunk:
-- the return behind the text. The function's debug information starts here.
function reader:read_lines(found, line, is_vararg, is_chunk)
  local count = self:integer()
  local relative = self.at
  self:skip(count)
  local absolute = {}
  for _ = 1, self:integer() do absolute[self:integer()] = self:integer() end
  for pc = 0, count - 1 do
    local step = ("b"):unpack(self.dump, relative + pc)
    line = step == ABSOLUTE and absolute[pc] or line + step
    local prepares = pc == 0 and is_vararg -- the arguments
    if not prepares and not (is_chunk and pc == count - 1) then found[line] = true end
  end
  for _ = 1, self:integer() do -- names of locals
    self:skip_string()
    self:integer()
    self:integer()
  end
  for _ = 1, self:integer() do self:skip_string() end -- names of upvalues
end

function reader:read_function(found, is_chunk)
  self:skip_string()
  local first = self:integer()
  self:integer()
  self:byte()
  local is_vararg = self:byte() ~= 0
  self:byte()
  self:skip(4 * self:integer())
  self:skip_constants()
  self:skip(3 * self:integer())
  for _ = 1, self:integer() do self:read_function(found) end
  self:read_lines(found, first, is_vararg, is_chunk)
end

local HEADER = 31 -- up to the number of upvalues

--- Returns the set of lines of a function's code at which it can stop; nil when it is unknown.
-- is_chunk: without the return behind the text of a chunk.
function lines.of(f, is_chunk)
  local dump = string.dump(f)
  if dump:sub(1, 5) ~= "\27LuaT" or dump:sub(13, 15) ~= "\4\8\8" then return nil end
  local found = {}
  local self = setmetatable({dump = dump, at = HEADER + 2}, reader)
  local ok = pcall(self.read_function, self, found, is_chunk)
  return ok and found or nil
end

-- Returns the lines of a piece of a cell; nil and a message when it does not compile.
local function lines_of_piece(text)
  local status, code = cell.read(text, "=cell")
  if status ~= "complete" then return nil, code end
  return lines.of(load(code.body or "", "=cell", "t"), true)
end

local function lines_of_cell(text)
  local all = {}
  for _, piece in ipairs(require("lutra.repl.kernel.pieces").split(text)) do
    if piece.kind == "lua" then
      local found, message = lines_of_piece(piece.text)
      if not found then return nil, message end
      for line in pairs(found) do all[line] = true end
    end
  end
  return all
end

--- Returns the set of lines of a cell's text or a file's; nil and a message when it does not
-- compile, or when they are unknown.
function lines.of_text(text, is_file)
  if not is_file then return lines_of_cell(text) end
  local body = text:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", "")
  local f, message = load(body, "=file", "t")
  if not f then return nil, message end
  return lines.of(f, true)
end

return lines
