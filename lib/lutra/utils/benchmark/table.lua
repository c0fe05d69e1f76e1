--- The text of a table of measurements with one label: a row for each number of threads, env and
-- name, a column for each description.

local texts = require "lutra.internal.text"
local units = require "lutra.utils.benchmark.units"

local BEST, GOOD, BAD, VERY_BAD = "\27[92m", "\27[34m", "\27[2m\27[91m", "\27[31m"
local BOLD, RESET = "\27[1m", "\27[0m"
local BETWEEN = "  |  "

-- Centers a string in `width` columns of `fill`, as Python's str.center does.
local function center(text, width, fill)
  local space = math.max(0, width - texts.width(text))
  local left = space // 2 + (space & width & 1)
  return (fill or " "):rep(left) .. text .. (fill or " "):rep(space - left)
end

-- Returns the least median of the measurements with indices 1 to n, some of which may be missing;
-- nil without any.
local function least_median(cells, n)
  local least
  for i = 1, n do
    local m = cells[i]
    if m and (not least or m.median < least) then least = m.median end
  end
  return least
end

-- Returns the rows {num_threads, env, name, cells = column -> measurement}, sorted by threads and
-- env, else in their order, and the list of columns' names.
local function grid(results)
  local rows, columns, row_of, column_of = {}, {}, {}, {}
  for _, m in ipairs(results) do
    local key = ("%d %q %q"):format(m.num_threads, m.env or "", m.as_row_name)
      .. tostring(m.env == nil)
    if not row_of[key] then
      row_of[key] = {num_threads = m.num_threads, env = m.env, name = m.as_row_name,
        order = #rows, cells = {}}
      rows[#rows + 1] = row_of[key]
    end
    local column = m.description or ""
    if not column_of[column] then
      columns[#columns + 1] = column
      column_of[column] = #columns
    end
    row_of[key].cells[column_of[column]] = m
  end
  table.sort(rows, function(a, b)
    if a.num_threads ~= b.num_threads then return a.num_threads < b.num_threads end
    if (a.env or "") ~= (b.env or "") then return (a.env or "") < (b.env or "") end
    return a.order < b.order
  end)
  return rows, columns
end

-- Returns a function that formats a measurement of column j, or spaces for nil.
local function formatter(rows, j, unit, options)
  local whole, decimals, warns = 1, math.huge, false
  for _, row in ipairs(rows) do
    local m = row.cells[j]
    if m then
      local digits = units.digits(m.median / unit.scale)
      whole = math.max(whole, digits)
      decimals = math.min(decimals, math.max(m.significant_figures - digits, 0))
      warns = warns or m.has_warnings
    end
  end
  if not options.trim then decimals = 1 end
  warns = warns and options.highlight
  local width = whole + decimals + (decimals > 0 and 1 or 0)
  return function(m)
    if not m then return (" "):rep(width + (warns and 7 or 0)) end
    local value = m.median / unit.scale
    if options.trim then value = units.trim(value, m.significant_figures) end
    local mark = ""
    if warns and m.has_warnings then mark = (" (! %.0f%%)"):format(m.iqr / m.median * 100) end
    return ("%" .. width .. "s"):format(("%." .. decimals .. "f"):format(value))
      .. (warns and ("%7s"):format(mark) or "")
  end
end

-- Colors the text of a median by how it compares with the best.
local function colored(text, value, best)
  if value <= best * 1.01 or value <= best + 100e-9 then return BEST .. BOLD .. text
    .. RESET .. RESET end
  if value <= best * 1.1 then return GOOD .. BOLD .. text .. RESET .. RESET end
  if value >= best * 5 then return VERY_BAD .. BOLD .. text .. RESET .. RESET end
  if value >= best * 2 then return BAD .. text .. RESET .. RESET end
  return text
end

-- Returns the median with which that of a cell is compared: the best of the row, or of the column
-- in the rows with as many threads.
local function best_of(rows, row, j, columns, by)
  if by == "rows" then return least_median(row.cells, #columns) end
  local cells = {}
  for i, other in ipairs(rows) do
    if other.num_threads == row.num_threads then cells[i] = other.cells[j] end
  end
  return least_median(cells, #rows)
end

-- Returns the names of the rows. The env is written where it changes.
local function row_names(rows)
  local width, varies, names = 0, false, {}
  for _, row in ipairs(rows) do
    varies = varies or row.env ~= rows[1].env
    row.env_name = row.env or "Unspecified env"
    width = math.max(width, texts.width(row.env_name))
  end
  for i, row in ipairs(rows) do
    local above = rows[i - 1]
    local is_new = not above or above.num_threads ~= row.num_threads or above.env ~= row.env
    local env = varies and is_new and ("(%s)"):format(row.env_name) or ""
    names[i] = "  " .. texts.pad(env, varies and width + 4 or 4) .. row.name
  end
  return names
end

--- Returns the table of measurements with the same label. options.trim rounds to significant
-- figures, options.highlight marks measurements with warnings, options.color ("rows" or "columns")
-- colors times by the best of their row or column.
return function(results, options)
  local rows, columns = grid(results)
  local unit = units.of(least_median(results, #results))
  local names, strings, widths = row_names(rows), {}, {0}
  for i, name in ipairs(names) do
    strings[i], widths[1] = {}, math.max(widths[1], texts.width(name))
  end
  for j, column in ipairs(columns) do
    local format = formatter(rows, j, unit, options)
    widths[j + 1] = texts.width(column)
    for i, row in ipairs(rows) do
      strings[i][j] = format(row.cells[j])
      widths[j + 1] = math.max(widths[j + 1], #strings[i][j])
    end
  end

  local head = {center("", widths[1])}
  for j, column in ipairs(columns) do head[j + 1] = center(column, widths[j + 1]) end
  local lines = {"", table.concat(head, BETWEEN)}
  local width = texts.width(lines[2])
  lines[1] = ("[%s]"):format(center((" %s "):format(results[1].label or ""), width - 2, "-"))
  local warns = false
  for i, row in ipairs(rows) do
    if i == 1 or rows[i - 1].num_threads ~= row.num_threads then
      local text = ("%d threads: "):format(row.num_threads)
      lines[#lines + 1] = text .. ("-"):rep(width - #text)
    end
    local parts = {texts.pad(names[i], widths[1])}
    for j = 1, #columns do
      local m, text = row.cells[j], center(strings[i][j], widths[j + 1])
      if m and options.color then
        text = colored(text, m.median, best_of(rows, row, j, columns, options.color))
      end
      warns = warns or m and m.has_warnings
      parts[j + 1] = text
    end
    lines[#lines + 1] = table.concat(parts, BETWEEN)
  end
  lines[#lines + 1] = ("\nTimes are in %s (%s)."):format(unit.word, unit.name)
  if warns and options.highlight then
    lines[#lines + 1] = "(! XX%) Measurement has high variance, where XX is the IQR / median * "
      .. "100."
  end
  return table.concat(lines, "\n") .. "\n"
end
