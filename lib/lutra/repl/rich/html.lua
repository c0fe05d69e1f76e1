--- Elements of HTML for notebooks.
--
-- Invariants: every text is escaped by html.escape; no JavaScript; colours are those of the front
-- end's theme (currentColor) or semi-transparent, so that light and dark themes both work. Styles
-- are inline, because front ends remove style sheets of outputs.

local html = {}

--- Escapes a string for HTML; characters that HTML does not allow are removed or replaced.
html.escape = require("lutra.internal.plot.svg").escape

local FONT = "font-family:monospace;font-size:12px;line-height:1.4;text-align:left"
local LINE = "1px solid #8886"

-- Returns the style of a cell; `align` is "right" or "left".
local function cell_style(align, background)
  return ("padding:1px 7px;text-align:%s;white-space:pre;border:%s%s"):format(align, LINE,
    background and ";background:" .. background or "")
end

--- Returns a block in the font of code; `content` is HTML.
function html.block(content)
  return ('<div style="%s;overflow-x:auto;max-width:100%%">%s</div>'):format(FONT, content)
end

--- Returns a line of text in a faint colour.
function html.note(text)
  return ('<div style="opacity:.7">%s</div>'):format(html.escape(text))
end

--- Returns a line of text, with a first word in bold.
function html.heading(word, text)
  return ("<div><b>%s</b>%s</div>"):format(html.escape(word),
    text ~= "" and " " .. html.escape(text) or "")
end

local function header_cell(text, align)
  return ('<th style="%s;font-weight:normal;opacity:.7">%s</th>'):format(cell_style(align),
    html.escape(text))
end

--- Returns a row of header cells. align(i) returns the alignment of cell i; nil: all are right.
function html.header_row(texts, align)
  local cells = {}
  for i, text in ipairs(texts) do cells[i] = header_cell(text, align and align(i) or "right") end
  return "<tr>" .. table.concat(cells) .. "</tr>"
end

--- Returns a row of cells: a header (a string or nil), then texts. align(i) returns the alignment
-- of cell i, background(i) its colour or nil; both may be nil.
function html.row(header, texts, align, background)
  local cells = {}
  if header then cells[1] = header_cell(header, "right") end
  for i, text in ipairs(texts) do
    cells[#cells + 1] = ('<td style="%s">%s</td>'):format(
      cell_style(align and align(i) or "right", background and background(i)), html.escape(text))
  end
  return "<tr>" .. table.concat(cells) .. "</tr>"
end

--- Returns a table of rows: a header, or nil, and a list.
function html.table(head, rows)
  head = head and "<thead>" .. head .. "</thead>" or ""
  return ('<table style="border-collapse:collapse;margin:2px 0 4px 0;%s">%s<tbody>%s</tbody>'
    .. "</table>"):format(FONT, head, table.concat(rows))
end

--- Returns an element that opens and closes; `summary` and `content` are HTML.
function html.details(summary, content, open)
  return ('<details%s style="margin-left:1.2em"><summary style="cursor:pointer;margin-left:-1.2em">'
    .. '%s</summary>%s</details>'):format(open and " open" or "", summary, content)
end

return html
