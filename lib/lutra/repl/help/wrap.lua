--- Layout of text for a terminal: paragraphs and columns within a width.

local wrap = {}

local function width_of(text) return utf8.len(text) or #text end

--- Wraps `text` to lines of at most `width` columns; each but the first starts with `indent`
-- spaces. A longer word is not broken.
function wrap.text(text, width, indent)
  local space = (" "):rep(indent or 0)
  local lines, line = {}, nil
  for word in text:gmatch "%S+" do
    if line and width_of(line) + 1 + width_of(word) > width then
      lines[#lines + 1] = line
      line = space .. word
    else
      line = line and line .. " " .. word or word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

--- Wraps the code of a call like wrap.text; "name = value" is not broken.
function wrap.code(text, width, indent)
  local joined = text:gsub(" = ", "\u{a0}=\u{a0}")
  return (wrap.text(joined, width, indent):gsub("\u{a0}", " "))
end

-- Returns whether a line is code in a comment, or a list, which keeps its layout.
local function is_fixed(line)
  return line:match "^%s%s+%S" ~= nil or line:match "^%s*[%*%-] " ~= nil
end

--- Returns the lines of a comment as paragraphs of at most `width` columns; indented lines are
-- unchanged.
function wrap.comment(lines, width)
  local out, paragraph = {}, {}
  local function flush()
    if #paragraph > 0 then out[#out + 1] = wrap.text(table.concat(paragraph, " "), width) end
    paragraph = {}
  end
  for _, line in ipairs(lines) do
    if line == "" or is_fixed(line) then
      flush()
      out[#out + 1] = line
    else
      paragraph[#paragraph + 1] = line
    end
  end
  flush()
  while out[#out] == "" do out[#out] = nil end
  return table.concat(out, "\n")
end

--- Returns rows of {name, text} as two columns; when the names leave no room, the texts are below
-- them.
function wrap.rows(rows, width, indent)
  local space, widest = (" "):rep(indent), 0
  for _, row in ipairs(rows) do widest = math.max(widest, math.min(width_of(row[1]), 26)) end
  local below = indent + widest + 2 + 18 > width
  local at = below and indent + 4 or indent + widest + 2
  local out = {}
  for _, row in ipairs(rows) do
    local head = space .. row[1]
    if row[2] == "" then
      out[#out + 1] = head
    elseif below or width_of(row[1]) > widest then
      out[#out + 1] = head .. "\n" .. (" "):rep(at) .. wrap.text(row[2], width - at, 0)
        :gsub("\n", "\n" .. (" "):rep(at))
    else
      out[#out + 1] = head .. (" "):rep(at - indent - width_of(row[1]))
        .. wrap.text(row[2], width - at, 0):gsub("\n", "\n" .. (" "):rep(at))
    end
  end
  return table.concat(out, "\n")
end

return wrap
