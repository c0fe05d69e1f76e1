-- Text as Markdown. `dofile "tools/docs/markdown.lua"` gives a table of functions.

local markdown = {}

--- `text` with the characters that Markdown would read as markup escaped.
function markdown.escape(text)
  return (text:gsub("[\\`*_{}%[%]>#|]", "\\%0"):gsub("<", "&lt;"))
end

--- `text` as code on a line of its own or in a sentence.
function markdown.code(text)
  return text:find("`", 1, true) and "`` " .. text .. " ``" or "`" .. text .. "`"
end

--- A fenced block.
function markdown.block(text, language)
  return ("```%s\n%s\n```"):format(language or "lua", text)
end

--- A table of rows; the cells are Markdown. `head` is the list of its column titles.
function markdown.table(head, rows)
  local lines = {"| " .. table.concat(head, " | ") .. " |", "|" .. (" --- |"):rep(#head)}
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do cells[i] = cell:gsub("\n", " "):gsub("([^\\])|", "%1\\|") end
    lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  return table.concat(lines, "\n")
end

--- The lines of a comment: indented lines are code, the rest is paragraphs. `link(word)` gives the
-- address of a name, or nil.
function markdown.comment(lines, link)
  local out, paragraph, code = {}, {}, {}
  local function flush()
    if #paragraph > 0 then
      out[#out + 1] = markdown.sentence(table.concat(paragraph, " "), link)
    end
    while code[#code] == "" do code[#code] = nil end
    if #code > 0 then out[#out + 1] = markdown.block(table.concat(code, "\n"), "text") end
    paragraph, code = {}, {}
  end
  for _, line in ipairs(lines) do
    local indented = line:match "^  +(.*)$"
    if indented then
      if #code == 0 then flush() end
      code[#code + 1] = line:match "^    (.*)$" or indented
    elseif line == "" then
      if #code > 0 then code[#code + 1] = "" else flush() end
    elseif line:match "^%* " then
      flush()
      paragraph[1] = "* " .. line:sub(3)
    else
      if #code > 0 then flush() end
      paragraph[#paragraph + 1] = line
    end
  end
  flush()
  return table.concat(out, "\n\n")
end

-- Text outside of code: escaped, names of the library as links.
local function prose(text, link)
  local parts, at = {}, 1
  while true do
    local from, to = text:find("%f[%w_][%a]+[.:][%w_.:]*[%w_]", at)
    if not from then break end
    local name = text:sub(from, to)
    local address = link and link(name)
    parts[#parts + 1] = markdown.escape(text:sub(at, from - 1))
    parts[#parts + 1] = address and ("[%s](%s)"):format(markdown.code(name), address)
      or markdown.escape(name)
    at = to + 1
  end
  parts[#parts + 1] = markdown.escape(text:sub(at))
  return table.concat(parts)
end

--- A sentence or an item of a list. What is between backquotes is code; the rest is escaped, with
-- names of the library as links.
function markdown.sentence(text, link)
  local item = text:match "^%* "
  if item then text = text:sub(3) end
  local parts, at = {}, 1
  for before, inside, after in text:gmatch "([^`]*)(%b``)()" do
    parts[#parts + 1] = prose(before, link)
    local address = link and link(inside:sub(2, -2))
    parts[#parts + 1] = address and ("[%s](%s)"):format(inside, address) or inside
    at = after
  end
  parts[#parts + 1] = prose(text:sub(at), link)
  return (item or "") .. table.concat(parts)
end

return markdown
