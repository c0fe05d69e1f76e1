-- A notebook with its outputs as a page of the site: `dofile "tools/docs/notebook_page.lua"`
-- returns a function of the text of a file .ipynb, which returns Markdown. Its further arguments
-- are functions: links(source) changes the links in Markdown, save(ending, bytes) stores a picture
-- and returns its address.
--
-- Of several forms of an output the richest is shown: SVG and PNG as images, HTML, else the text.

local markdown = dofile "tools/docs/markdown.lua"
local notebook_file = require "lutra.repl.notebook_file"

local function escaped(text)
  return (text:gsub("&", "&amp;"):gsub("<", "&lt;"):gsub(">", "&gt;"))
end

-- Returns the string of an output, which is stored as a string or as a list of lines.
local function joined(value)
  return type(value) == "table" and table.concat(value) or value
end

-- Returns a string without colours, as a block of HTML.
local function preformatted(text)
  text = text:gsub("\27%[[%d;]*%a", ""):gsub("%s+$", "")
  return text ~= "" and ('<pre class="output">%s</pre>'):format(escaped(text)) or nil
end

local function image(address)
  return ('<p class="output"><img alt="" src="%s"></p>'):format(address)
end

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- Returns the bytes of a string in base64.
local function decoded(text)
  local bits, count, bytes = 0, 0, {}
  for c in text:gmatch "[%w+/]" do
    bits, count = (bits << 6 | DIGITS:find(c, 1, true) - 1) & 0xffff, count + 6
    if count >= 8 then
      count = count - 8
      bytes[#bytes + 1] = string.char(bits >> count & 255)
    end
  end
  return table.concat(bytes)
end

-- Returns the Markdown of one output, or nil.
local function output_text(output, save)
  if output.output_type == "stream" then return preformatted(joined(output.text)) end
  if output.output_type == "error" then
    return preformatted(table.concat(output.traceback, "\n"))
  end
  local data = output.data
  local svg, png, html = data["image/svg+xml"], data["image/png"], data["text/html"]
  if svg then return image(save("svg", joined(svg))) end
  if png then return image(save("png", decoded(joined(png)))) end
  -- A line of its own in Markdown, which would read text in further lines.
  if html then
    html = joined(html):gsub("%s*\n%s*", " "):gsub("<table ", '<table class="output" ')
    return '<div class="output">' .. html .. "</div>"
  end
  return preformatted(joined(data["text/plain"]))
end

return function(text, links, save)
  local notebook, parts = assert(notebook_file.decode(text)), {}
  for _, cell in ipairs(notebook.cells) do
    if cell.kind == "markdown" then
      parts[#parts + 1] = links(cell.source)
    elseif cell.kind == "code" then
      parts[#parts + 1] = markdown.block(cell.source)
      for _, output in ipairs(cell.outputs) do
        parts[#parts + 1] = output_text(output, save)
      end
    end
  end
  return table.concat(parts, "\n\n") .. "\n"
end
