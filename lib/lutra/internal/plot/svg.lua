--- Elements of SVG pictures: texts, boxes, and the frame around them.
--
-- Invariant: no information is conveyed by colour alone. Colours also differ in lightness, so that
-- they are distinguishable in print and with colour blindness, and labels are written where there
-- is room.

local texts = require "lutra.internal.text"

local svg = {}

--- Colours of the uses of a device's memory and time: {the colour of the box, that of the text on
-- it, height (the share of a lane that the box fills, 1)}.
svg.kinds = {
  work = {"#1f4e79", "#ffffff"}, to_device = {"#d55e00", "#000000"},
  to_host = {"#6cc0f0", "#000000"}, between = {"#cc79a7", "#000000"},
  ranks = {"#009e73", "#000000"}, wait = {"#c79a1b", "#000000", 0.35},
  idle = {"#f2f2f2", "#222222"},
  used = {"#1f4e79", "#ffffff"}, part = {"#6a93b8", "#000000"}, cached = {"#b9d7f1", "#000000"},
  others = {"#767676", "#ffffff"}, free = {"#f2f2f2", "#222222"},
}

--- The width of a character of 12 points.
svg.LETTER = 7.4

local names = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;"}

-- Replaces U+FFFE and U+FFFF, which XML does not allow.
local function known(text)
  return utf8.len(text) and text:gsub("\xEF\xBF[\xBE\xBF]", "?") or ("?"):rep(#text)
end

--- Escapes a string for XML; characters that XML does not allow are removed or replaced by a
-- question mark.
function svg.escape(text)
  return (text:gsub("[\x80-\xff]+", known):gsub('[&<>"]', names):gsub("[%z\1-\8\11\12\14-\31]", ""))
end

--- Returns a string that begins at x on the base line y. class: "title", "small" or nil.
function svg.text(x, y, text, class)
  return ('<text x="%.1f" y="%.1f"%s xml:space="preserve">%s</text>\n'):format(x, y,
    class and (' class="%s"'):format(class) or "", svg.escape(text))
end

--- Returns a box; `tip` (optional) is its tooltip.
function svg.box(x, y, width, height, color, tip)
  return ('<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s">%s</rect>\n'):format(x, y,
    width, height, color, tip and ("<title>%s</title>"):format(svg.escape(tip)) or "")
end

--- Returns a box of a kind with the first of the labels that fits: `words` is a list, the longest
-- first, or nil.
function svg.kind_box(x, y, width, height, kind, tip, words)
  local fill, ink, share = table.unpack(svg.kinds[kind])
  local low = height * (share or 1)
  local parts = {svg.box(x, y + (height - low) / 2, width, low, fill, tip)}
  for _, word in ipairs(share and {} or words or {}) do
    local length = texts.width(word) * svg.LETTER
    if length + 6 <= width then
      parts[2] = ('<text x="%.1f" y="%.1f" style="fill: %s">%s</text>\n'):format(
        x + (width - length) / 2, y + height / 2 + 4, ink, svg.escape(word))
      break
    end
  end
  return table.concat(parts)
end

--- Returns a legend, boxes with a label each, from x on in lines of that width: list of {kind,
-- word}; and the height of its lines beyond the first.
function svg.legend(x, y, list, width)
  local parts, left, top = {}, x, y
  for _, item in ipairs(list) do
    local length = 34 + 6.9 * texts.width(item[2])
    if left > x and left + length - x > width then left, y = x, y + 18 end
    parts[#parts + 1] = svg.kind_box(left, y - 10, 14, 12, item[1])
      .. svg.text(left + 19, y, item[2], "small")
    left = left + length
  end
  return table.concat(parts), y - top
end

local head = [[
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">
<title>%s</title>
<style>
text { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; }
text { font-size: 12px; fill: #222222; }
.title { font-size: 14px; font-weight: bold; }
.small { font-size: 11px; fill: #444444; }
</style>
<rect width="%d" height="%d" fill="#ffffff"/>
]]

--- Returns the complete picture of that size from a list of its elements.
function svg.picture(width, height, title, parts)
  width, height = math.ceil(width), math.ceil(height)
  return head:format(width, height, width, height, svg.escape(title), width, height)
    .. table.concat(parts) .. "</svg>\n"
end

--- Returns a picture whose styles and ids apply to itself only, so that several pictures can be
-- part of one HTML page. Its id follows from its text.
function svg.scoped(picture)
  local id = ("lutra-%08x"):format(require("lutra.core")._crc32(picture))
  local function scope(css)
    css = css:gsub("([^{}]-)%s*(%b{})", function(selector, body)
      selector = selector:match "^%s*(.-)$"
      return ("\n#%s%s %s"):format(id, selector == "svg" and "" or " " .. selector, body)
    end)
    return "<style>" .. css:gsub("url%(#", "%0" .. id .. "-") .. "</style>"
  end
  picture = picture:gsub("<style>(.-)</style>", scope)
    :gsub('(<%w+ id=")(%w+")', "%1" .. id .. "-%2"):gsub("^<svg", "")
  return ('<svg id="%s" style="max-width:100%%;height:auto"'):format(id) .. picture
end

return svg
