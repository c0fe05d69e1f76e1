--- Formatting for plots and tables: sizes, counts, lines, padding and truncation to a width.
--
-- Widths are columns of a terminal, not bytes. These functions write nothing and use no colours.

local texts = {}

local units = {"B", "KiB", "MiB", "GiB", "TiB"}

--- The short names of dtypes.
texts.short_dtypes = {
  float64 = "f64", float32 = "f32", float16 = "f16", bfloat16 = "bf16", int64 = "i64",
  int32 = "i32", int16 = "i16", int8 = "i8", uint8 = "u8", bool = "bool",
  complex64 = "c64", complex128 = "c128",
}

--- Formats a number of bytes: 460992 -> "450.2 KiB". `from` is the fraction of a unit from which it
-- is used (1).
function texts.bytes(n, from)
  local i = 1
  while i < #units and n >= 1024 * (i > 1 and from or 1) do n, i = n / 1024, i + 1 end
  return (i == 1 and "%d %s" or "%.1f %s"):format(n, units[i])
end

--- Splits a string into its lines, without line ends.
function texts.lines(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

--- Formats a count: 1234567 -> "1,234,567".
function texts.count(n)
  local text = ("%d"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^(%-?),", "%1"))
end

--- Returns a count with its noun: "1 item", "2 items".
function texts.plural(n, noun)
  return texts.count(n) .. " " .. noun .. (n == 1 and "" or "s")
end

--- Returns whether output is UTF-8: always in a notebook, else when the locale is, by POSIX's order
-- of variables.
function texts.is_utf8()
  local front = package.loaded["lutra.repl.front"]
  if front and front.notebook then return true end
  for _, name in ipairs {"LC_ALL", "LC_CTYPE", "LANG"} do
    local value = os.getenv(name)
    if value and value ~= "" then return value:upper():find "UTF%-?8" ~= nil end
  end
  return false
end

-- The range of combining characters, which take no column, and ranges of characters that take two
-- (wide in Unicode's UAX #11).
local marks = {0x300, 0x36F}
local wide = {
  {0x1100, 0x115F}, {0x2E80, 0x303E}, {0x3041, 0xA4CF}, {0xAC00, 0xD7A3}, {0xF900, 0xFAFF},
  {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF},
  {0x20000, 0x3FFFD},
}

local function columns_of(code)
  if code < marks[1] then return 1 end
  if code <= marks[2] then return 0 end
  for _, range in ipairs(wide) do
    if code <= range[2] then return code < range[1] and 1 or 2 end
  end
  return 1
end

--- Returns the number of columns of a string on a terminal; invalid UTF-8 counts in bytes.
function texts.width(text)
  local count = utf8.len(text)
  if not count or not text:find "[\xCC-\xCD\xE1-\xF4]" then return count or #text end
  local sum = 0
  for _, code in utf8.codes(text) do sum = sum + columns_of(code) end
  return sum
end

-- Returns the index of the last byte of the part that fits into `width` columns.
local function last_within(text, width)
  if not utf8.len(text) then return width end
  local sum = 0
  for at, code in utf8.codes(text) do
    sum = sum + columns_of(code)
    if sum > width then return at - 1 end
  end
  return #text
end

--- Truncates a string to at most `width` columns; ".." marks a truncated end when there is room.
function texts.cut(text, width)
  if texts.width(text) <= width then return text end
  local dots = width > 4 and ".." or ""
  return text:sub(1, last_within(text, math.max(0, width - #dots))) .. dots
end

--- Pads a string with spaces to `width` columns, in front of it when `right`.
function texts.pad(text, width, right)
  local space = (" "):rep(width - texts.width(text))
  return right and space .. text or text .. space
end

--- Wraps a string at spaces (not between a number and B, KiB, ms...) to lines of at most `width`
-- columns. Lines after the first start with `indent` spaces, which the first is assumed to have
-- already.
function texts.wrap(text, width, indent)
  local lines, line = {}, ""
  for _, unit in ipairs {"[KMGT]?i?B", "[nm]?s%f[%W]", "µs"} do
    text = text:gsub("(%d) (" .. unit .. ")", "%1\0%2")
  end
  for word in text:gmatch "[^ \n]+" do
    word = word:gsub("%z", " ")
    if line ~= "" and texts.width(line .. word) + 1 > width - indent then
      lines[#lines + 1], line = line, word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n" .. (" "):rep(indent))
end

--- Returns "one, two, three" as lines of at most `width` columns; no item is broken.
function texts.items(list, width)
  local lines = {}
  for i, item in ipairs(list) do
    if i < #list then item = item .. "," end
    local line = lines[#lines]
    if line and texts.width(line) + 1 + texts.width(item) <= width then
      lines[#lines] = line .. " " .. item
    else
      lines[#lines + 1] = item
    end
  end
  return lines
end

local time_units = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}

--- Formats a time: 0.0000123 -> "12.3 µs": three digits, in the largest unit not above it.
function texts.seconds(seconds)
  if seconds >= 999.5 then return ("%.0f s"):format(seconds) end
  for _, unit in ipairs(time_units) do
    if seconds >= 0.9995 * unit[1] then
      return ("%.3g %s"):format(seconds / unit[1], unit[2])
    end
  end
  return ("%.3g ns"):format(seconds * 1e9)
end

--- Wraps a sentence to lines of at most `width` columns; those after the first are indented.
function texts.wrap_sentence(sentence, width)
  local lines, line = {}, ""
  for word in sentence:gmatch "%S+" do
    if line ~= "" and texts.width(line) + 1 + texts.width(word) > width then
      lines[#lines + 1] = line
      line = "  " .. word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

-- ---- tables

local function widest(cells)
  local width = 0
  for _, cell in ipairs(cells) do width = math.max(width, texts.width(cell)) end
  return width
end

-- Returns the columns that are not empty: {column, cells (the title first), width}, in order.
local function read_columns(columns, rows)
  local used = {}
  for _, column in ipairs(columns) do
    local cells, empty = {column.title}, true
    for i, row in ipairs(rows) do
      cells[i + 1] = row[column.key] or ""
      empty = empty and cells[i + 1] == ""
    end
    if not empty then
      used[#used + 1] = {column = column, cells = cells, width = widest(cells)}
    end
  end
  return used
end

-- Returns the width of the table; with `least`, when each column is truncated as far as allowed.
local function total(used, least)
  local sum = 2 * (#used - 1)
  for _, u in ipairs(used) do
    sum = sum + (least and math.min(u.width, u.column.least) or u.width)
  end
  return sum
end

local function shorten(u)
  if not u.column.short then return end
  for i, cell in ipairs(u.cells) do u.cells[i] = u.column.short(cell) end
  u.width = widest(u.cells)
end

-- Shortens, removes and truncates columns, those of the highest ranks first, until the table fits.
local function fit(used, width)
  local by_rank = table.move(used, 1, #used, 1, {})
  table.sort(by_rank, function(a, b) return a.column.rank > b.column.rank end)
  for _, u in ipairs(by_rank) do
    if total(used) > width then shorten(u) end
  end
  for _, u in ipairs(by_rank) do
    if #used == 1 or total(used, true) <= width then break end
    for i = #used, 1, -1 do
      if used[i] == u then table.remove(used, i) end
    end
  end
  for _, u in ipairs(by_rank) do
    local over = total(used) - width
    if over <= 0 then break end
    u.width = math.max(math.min(u.width, u.column.least), u.width - over)
  end
end

--- Returns the lines of a table, its header first, in at most `width` columns. columns: {key,
-- title, rank, least (the width to which it may be truncated), right, short = f(text), a shorter
-- form}; columns with a high rank are shortened, removed and truncated first. Rows are tables of
-- strings by key; empty columns are omitted.
function texts.table(columns, rows, width)
  local used, lines = read_columns(columns, rows), {}
  fit(used, width)
  for i = 1, #rows + 1 do
    local parts = {}
    for k, u in ipairs(used) do
      parts[k] = texts.pad(texts.cut(u.cells[i], u.width), u.width, u.column.right)
    end
    lines[i] = table.concat(parts, "  "):gsub("%s+$", "")
  end
  return lines
end

return texts
