--- The line editor's questions about the text being typed (src/repl/editor/): whether it is
-- complete, its indentation, completion, and the code in a paste.
--
-- Invariant: an answer depends only on the text and the session; nothing here runs the input.

local host = require "lutra.repl.host"
local lexer = require "lutra.repl.lexer"
local listing = require "lutra.repl.complete.listing"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local editor = {}

local step = "  " -- of indentation

-- The words that end or continue a block -> the words that begin such a block.
local closes = {
  ["end"] = "function do if", ["else"] = "if", ["elseif"] = "if", ["until"] = "repeat",
  ["}"] = "{", [")"] = "(", ["]"] = "[",
}
local opens = {}
for _, words in pairs(closes) do
  for word in words:gmatch "%S+" do opens[word] = true end
end
local continues = {["else"] = true, ["elseif"] = true}

local function may_close(word, opening)
  return closes[word] and (" " .. closes[word] .. " "):find(" " .. opening .. " ", 1, true)
end

local function line_indent(text, at)
  local start = at
  while start > 1 and text:sub(start - 1, start - 1) ~= "\n" do start = start - 1 end
  return text:match("^[ \t]*", start)
end

-- Returns the blocks that are open at the end of `text`: {word, position}; and whether it ends
-- inside a long string or comment.
local function open_blocks(text)
  local stack, inside = {}, false
  for kind, word, at in lexer.tokens(text) do
    if kind == "keyword" or kind == "op" then
      local top = stack[#stack]
      if opens[word] then
        stack[#stack + 1] = {word, at}
      elseif top and not continues[word] and may_close(word, top[1]) then
        stack[#stack] = nil
      end
    end
    inside = at + #word > #text and (kind == "bad" and word:find "^%[" or kind == "comment"
      and word:find "^%-%-%[=*%[" and not word:find "%]=*%]$") and true or false
  end
  return stack, inside
end

local function indent_in(text, stack)
  local top = stack[#stack]
  return top and line_indent(text, top[2]) .. step or ""
end

--- Returns the indentation of a line that starts behind the first `point` bytes of `text`: two
-- spaces more than the line that began the innermost open block.
function editor.indent(text, point)
  local before = text:sub(1, point)
  local stack, inside = open_blocks(before)
  return inside and "" or indent_in(before, stack)
end

-- Returns the word that closes or continues (`ending`) a block that begins with `word`, or nil.
local function closing_word(word)
  local keyword = word:match "^[}%])]$" or word:match "^end" or word:match "^elseif"
    or word:match "^else" or word:match "^until"
  return keyword and word:find("^[%w_]*$", #keyword + 1) and keyword
end

--- Returns the new indentation of the line that ends at `point` and consists of one word, or nil to
-- leave it: a word that closes a block gets the indentation of the block's beginning, and a word
-- that only started like one (`ending`) is indented again. A line that the user indented is left.
function editor.reindent(text, point)
  local start, blanks, word = text:sub(1, point):match "\n()([ \t]*)(%S+)$"
  local keyword = word and closing_word(word)
  if not keyword then return nil end
  local rest = text:sub(1, start - 1)
  local stack, inside = open_blocks(rest)
  local top = stack[#stack]
  if inside or not top or not may_close(keyword, top[1]) then return nil end
  local inner, outer = indent_in(rest, stack), line_indent(rest, top[2])
  if word == keyword then return blanks == inner and outer or nil end
  return blanks == outer and word ~= "elsei" and inner or nil
end

-- ---- pasting

-- Returns the cells of a pasted session. A line continues the cell before it when
-- continuation(line, cell so far) returns its text; other lines are output, which is removed.
local function cells_of(lines, start_of, continuation)
  local kept, cell = {}, nil
  for _, line in ipairs(lines) do
    local first, width = start_of(line)
    local more = not first and cell and continuation(line, cell)
    if first then
      cell = {width = width, text = first}
      kept[#kept + 1] = cell
    elseif more then
      cell.text = cell.text .. "\n" .. more
    else
      cell = nil
    end
  end
  for i, c in ipairs(kept) do kept[i] = c.text end
  return table.concat(kept, "\n")
end

local function own_start(line)
  local mark, code = line:match "^%s*(%[%d+%]> ?)(.*)$"
  if mark then return code, #mark end
end

-- Lines of a cell are aligned under its first line. So may be output: it is removed when the cell
-- is complete without it and invalid with it.
local function own_continuation(session)
  return function(line, cell)
    local blank = not line:find "%S"
    if not blank and #line:match "^ *" < cell.width then return nil end
    local rest = line:sub(cell.width + 1)
    if #cell.text > 1 << 14 or session:status(cell.text) == "incomplete" then return rest end
    return not blank and session:status(cell.text .. "\n" .. rest) ~= "error" and rest or nil
  end
end

local function stock_start(line)
  if not line:find "^>>" then return line:match "^> ?(.*)$", 2 end
end
local function stock_continuation(line) return line:match "^>> ?(.*)$" end

--- Returns the code of a paste: line ends become \n, control characters are removed; when its first
-- line has a prompt of Lutra or of stock Lua, prompts, the indentation under them, and output
-- between them are removed too.
function editor.clean(session, text)
  text = text:gsub("\r\n?", "\n"):gsub("\27%[[%d;?]*%a", ""):gsub("[%z\1-\8\11-\31\127]", "")
  local first = text:match "[^\n]*%S[^\n]*" or ""
  if own_start(first) then
    return cells_of(texts.lines(text), own_start, own_continuation(session))
  elseif first:find "^> " then
    return cells_of(texts.lines(text), stock_start, stock_continuation)
  end
  return text
end

-- ---- Tab

local function common_prefix(items)
  local prefix = items[1].text
  for _, item in ipairs(items) do
    local n = 0
    while n < #prefix and prefix:byte(n + 1) == item.text:byte(n + 1) do n = n + 1 end
    prefix = prefix:sub(1, n)
  end
  return prefix
end

--- Completes behind the first `point` bytes: returns the first and the last byte to be replaced,
-- the replacement, and a list of candidates to be shown, or nil. Returns nothing without
-- candidates.
function editor.complete(session, text, point)
  local ok, complete = pcall(require, "lutra.repl.complete")
  local found = ok and complete.at(text, point, session)
  if not found or #found.items == 0 then return nil end
  local typed = text:sub(found.first, found.last)
  local new = common_prefix(found.items)
  if #found.items == 1 then return found.first, found.last, new, nil end
  if #new < #typed then new = typed end -- the candidates differ from it in more than their end
  local _, rows = host.terminal_size()
  local most_rows = math.max(2, (rows or 24) // 2 - 2)
  return found.first, found.last, new, listing.text(found.items, style.width(), most_rows)
end

-- ---- the user's own editor

local function read_back(path)
  local file = io.open(path, "r")
  local text = file and file:read "a"
  if file then file:close() end
  return text and (text:gsub("%s+$", ""))
end

--- Returns the text as edited in $VISUAL or $EDITOR; nil when that fails.
function editor.edit(text)
  local path = os.tmpname()
  local file = io.open(path, "w")
  if not file then return nil end
  file:write(text, "\n")
  file:close()
  local program = os.getenv "VISUAL" or os.getenv "EDITOR" or "vi"
  local ok = os.execute(("%s '%s'"):format(program, path))
  local edited = ok and read_back(path)
  os.remove(path)
  return edited or nil
end

-- ---- all of it

--- Returns the table of callbacks of host.readline, for a session.
function editor.new(session)
  return {
    unfinished = function(text) return session:status(text) == "incomplete" end,
    indent = editor.indent,
    reindent = editor.reindent,
    clean = function(text) return editor.clean(session, text) end,
    complete = function(text, point) return editor.complete(session, text, point) end,
    edit = editor.edit,
    colors = style.on(1) and style.syntax or nil,
  }
end

return editor
