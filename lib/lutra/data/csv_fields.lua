--- The fields of a CSV file (RFC 4180): records of fields between delimiters, in
-- quotes where a field contains a delimiter, a quote or a line break.
--
-- Accepted beside RFC 4180: lines that end with LF, CR or at the end of the file, a UTF-8 byte
-- order mark, empty lines (skipped), another delimiter. A failure is an error with line and column.

local fields = {}

local MOST_BYTES = 1 << 24 -- of a field
local MOST_COLUMNS = 1 << 14

local Reader = {}
Reader.__index = Reader

-- Raises an error at a byte of the text. The reader's caller catches it and adds the file's name.
local function fail(self, position, message, ...)
  error({line = self.line, column = position - self.line_start + 1,
    message = message:format(...)}, 0)
end

-- Counts the line breaks in a quoted field.
local function count_lines(self, first, last)
  local at = first
  while true do
    local _, line_break = self.text:find("\r?[\n\r]", at)
    if not line_break or line_break > last then return end
    if self.text:sub(line_break, line_break) == "\r"
      and self.text:sub(line_break + 1, line_break + 1) == "\n" then
      line_break = line_break + 1
    end
    self.line, self.line_start, at = self.line + 1, line_break + 1, line_break + 1
  end
end

-- Reads a field in quotes whose first quote is at `position`. Returns it and the position after its
-- last quote.
local function quoted(self, position)
  local text, quote = self.text, self.quote
  local at, escaped = position + 1, false
  while true do
    local found = text:find(quote, at, true)
    if not found then fail(self, position, "expected a closing quote, got the end of the file") end
    if text:sub(found + 1, found + 1) ~= quote then
      local value = text:sub(position + 1, found - 1)
      if escaped then value = value:gsub(quote .. quote, quote) end
      count_lines(self, position, found)
      return value, found + 1
    end
    at, escaped = found + 2, true
  end
end

-- Reads the field at `position`. Returns it and the position of what follows: a delimiter, a line
-- break or the end.
local function field(self, position)
  local text, value, after = self.text
  if self.quote and text:sub(position, position) == self.quote then
    value, after = quoted(self, position)
    local following = text:sub(after, after)
    if following ~= "" and not following:find(self.ends) then
      fail(self, after, "expected a delimiter or the end of the line after a quote, got %q",
        following)
    end
  else
    after = text:find(self.stops, position) or #text + 1
    value = text:sub(position, after - 1)
    if self.quote and text:sub(after, after) == self.quote then
      fail(self, after, "expected no quote in a field that does not begin with one\n"
        .. "hint: quote = false reads quotes as any other character")
    end
  end
  if #value > MOST_BYTES then
    fail(self, position, "expected at most %d bytes in a field, got %d", MOST_BYTES, #value)
  end
  return value, after
end

-- Returns the position after the line break at `position`.
local function after_break(self, position)
  local text = self.text
  local next_position = position + (text:sub(position, position + 1) == "\r\n" and 2 or 1)
  self.line, self.line_start = self.line + 1, next_position
  return next_position
end

--- Returns the fields of the next record as a list and a list of their columns, nil at the end.
function Reader:record()
  local text = self.text
  while self.position <= #text and text:find("^[\r\n]", self.position) do
    self.position = after_break(self, self.position) -- an empty line
  end
  if self.position > #text then return nil end
  self.record_line = self.line
  local values, columns, position = {}, {}, self.position
  while true do
    local n = #values + 1
    if n > MOST_COLUMNS then
      fail(self, position, "expected at most %d fields in a line", MOST_COLUMNS)
    end
    columns[n] = position - self.line_start + 1
    values[n], position = field(self, position)
    if text:sub(position, position) ~= self.delimiter then break end
    position = position + 1
  end
  self.position = position <= #text and after_break(self, position) or position
  return values, columns
end

local function escape(character) return (character:gsub("%W", "%%%0")) end

--- Returns a reader of the records of a string. `quote` is a character, or false for none.
function fields.reader(text, delimiter, quote)
  local start = text:sub(1, 3) == "\xEF\xBB\xBF" and 4 or 1
  return setmetatable({
    text = text, delimiter = delimiter, quote = quote, position = start, line = 1,
    line_start = start, ends = "[\r\n" .. escape(delimiter) .. "]",
    stops = "[\r\n" .. escape(delimiter) .. (quote and escape(quote) or "") .. "]",
  }, Reader)
end

return fields
