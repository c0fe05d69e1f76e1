--- What SVG pictures for slides and handouts are made of: texts, boxes, the frame around them.

local svg = {}

--- The colours of what a device's memory and time go to.
svg.colors = {
  work = "#3b6ea8", copy = "#a8503b", wait = "#e0b040", idle = "#eeeeee", used = "#3b6ea8",
  cached = "#a9c4e4", others = "#bbbbbb", free = "#eeeeee", mark = "#a8503b",
}

local names = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;"}

--- The text as XML reads it; what no picture can hold is left out.
function svg.escape(text)
  return (text:gsub('[&<>"]', names):gsub("[%z\1-\8\11\12\14-\31]", ""))
end

--- A text whose line begins at x and stands on y. class: "title", "small" or nil.
function svg.text(x, y, text, class)
  return ('<text x="%.1f" y="%.1f"%s xml:space="preserve">%s</text>\n'):format(x, y,
    class and (' class="%s"'):format(class) or "", svg.escape(text))
end

--- A box in that colour; `tip` (may be left out) is shown when one points at it.
function svg.box(x, y, width, height, color, tip)
  return ('<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s">%s</rect>\n'):format(x, y,
    width, height, color, tip and ("<title>%s</title>"):format(svg.escape(tip)) or "")
end

--- Boxes with a word each, from x on: list of {color, word}.
function svg.legend(x, y, list)
  local parts = {}
  for _, item in ipairs(list) do
    parts[#parts + 1] = svg.box(x, y - 9, 10, 10, item[1]) .. svg.text(x + 15, y, item[2], "small")
    x = x + 30 + 6.5 * (utf8.len(item[2]) or #item[2])
  end
  return table.concat(parts)
end

local head = [[
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">
<title>%s</title>
<style>
text { font-family: monospace; font-size: 12px; fill: #222222; }
.title { font-size: 14px; font-weight: bold; }
.small { font-size: 10px; fill: #555555; }
</style>
<rect width="%d" height="%d" fill="#ffffff"/>
]]

--- The whole picture: a list of the parts above, of that size.
function svg.picture(width, height, title, parts)
  width, height = math.ceil(width), math.ceil(height)
  return head:format(width, height, width, height, svg.escape(title), width, height)
    .. table.concat(parts) .. "</svg>\n"
end

return svg
