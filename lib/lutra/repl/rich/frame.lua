--- The columns of a CSV file (data.read_csv) as an HTML table: names, dtypes, first and last rows.

local core = require "lutra.core"
local format_value = require "lutra.repl.format_value"
local html = require "lutra.repl.rich.html"
local inspect = require "lutra.repl.inspect"
local numbers = require "lutra.internal.numbers"
local texts = require "lutra.internal.text"

local frame = {}

-- All rows of a table of up to ROWS are shown, else EDGE at both ends; likewise columns.
local ROWS, EDGE = 20, 5
local COLUMNS, SIDE = 20, 8
local WIDTH = 40 -- the maximum width of a string

-- Returns the numbers 1 to n that are shown; false stands for those left out.
local function chosen(n, limit, edge)
  local list = {}
  for i = 1, n do
    if n <= limit or i <= edge or i > n - edge then
      list[#list + 1] = i
    elseif i == edge + 1 then
      list[#list + 1] = false
    end
  end
  return list
end

local function value_text(value)
  if core.is_tensor(value) then value = value:item() end
  if type(value) == "string" then return texts.cut(format_value.escape(value), WIDTH) end
  return numbers.text(value, math.type(value) == "float" and "%.6g" or nil)
end

local function type_of(column, missing)
  local name = core.is_tensor(column) and column.dtype or "string"
  return (missing or 0) > 0 and ("%s, %s missing"):format(name, texts.count(missing)) or name
end

local function header(csv, columns, align)
  local names, types = {""}, {""}
  for i, k in ipairs(columns) do
    local name = csv.names[k]
    names[i + 1] = k and texts.cut(format_value.escape(name), WIDTH) or "…"
    types[i + 1] = k and type_of(csv.columns[name], csv.missing[name]) or ""
  end
  local function align_behind(i) return i > 1 and align(i - 1) or "right" end
  return html.header_row(names, align_behind) .. html.header_row(types, align_behind)
end

--- Returns the HTML of what data.read_csv returns.
function frame.html(csv)
  local columns = chosen(#csv.names, COLUMNS, SIDE)
  local rows = {}
  local function align(i)
    local column = columns[i] and csv.columns[csv.names[columns[i]]]
    return type(column) == "table" and "left" or "right"
  end
  for r, index in ipairs(chosen(csv.rows, ROWS, EDGE)) do
    local cells = {}
    for i, k in ipairs(columns) do
      if not index or not k then
        cells[i] = not index and (k and "⋮" or "⋱") or "…"
      else
        cells[i] = value_text(csv.columns[csv.names[k]][index])
      end
    end
    rows[r] = html.row(index and tostring(index) or "⋮", cells, align)
  end
  local size = ("of %s, %s"):format(texts.plural(csv.rows, "row"),
    texts.plural(#csv.names, "column"))
  return html.block(html.heading(inspect.type_name(csv), size)
    .. html.table(header(csv, columns, align), rows))
end

return frame
