--- The result of nn.summary as an HTML table.

local html = require "lutra.repl.rich.html"
local summary_table = require "lutra.nn.summary_table"

local layers = {}

local ROWS = 500 -- the maximum number of rows

local function align(i) return i >= summary_table.FIRST_NUMBER and "right" or "left" end

--- Returns the HTML of a summary: a row for each module, then the sums.
function layers.html(summary)
  local rows = summary_table.rows(summary)
  local lines, numbers, sizes = {}, summary_table.sums(summary)
  for i = 2, math.min(#rows, ROWS + 1) do lines[#lines + 1] = html.row(nil, rows[i], align) end
  local left = #rows - 1 - #lines
  local note = left > 0 and html.note(("… %d more rows"):format(left)) or ""
  return html.block(html.table(html.header_row(rows[1], align), lines) .. note
    .. html.note(table.concat(numbers, ", ")) .. html.note(table.concat(sizes, ", ")))
end

return layers
