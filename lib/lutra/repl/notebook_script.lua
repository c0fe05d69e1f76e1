--- Converts a notebook to a Lua script and back.
--
-- The script is in the percent format, which VS Code, Spyder and Jupytext read: a line `-- %%` is
-- before each cell, `-- %% [markdown]` before Markdown, which is a comment. What is no Lua in a
-- file is converted (lutra.repl.script) and noted in the line of the cell, so that it can be
-- converted back:
--
--     shown=true      the cell ends in print(VALUE), in the notebook in VALUE
--     quiet=true      the cell ends in local _ = VALUE, in the notebook in VALUE;
--     commented=true  the whole cell is a comment: a `:command`, `!shell`, help, invalid code, or
--                     code that is to fail (tag "raises-exception")
--     commands=2,5    these lines are comments: commands between lines of Lua

local json = require "lutra.internal.json"
local lexer = require "lutra.repl.lexer"
local notebook_file = require "lutra.repl.notebook_file"
local pieces = require "lutra.repl.kernel.pieces"
local script = require "lutra.repl.script"
local texts = require "lutra.internal.text"

local notebook_script = {}

local first_line = "-- Written by lutra --export. Run it: lutra FILE"
local many_locals = "-- The cells have too many locals for one script: they are globals here."

local function trimmed(text) return (text:gsub("^[ \t]*\n", ""):gsub("%s+$", "")) end

-- Returns the text as comments, without spaces at the ends of lines.
local function commented(text) return (script.commented(text):gsub("%-%- \n", "--\n")) end

local function uncommented(text)
  return (("\n" .. text):gsub("\n%-%- ?", "\n"):sub(2))
end

-- ---- results

-- Returns the index of the bracket that opens what token number `last`, a ")", closes.
local function opening(tokens, last)
  local depth = 0
  for i = last, 1, -1 do
    local word = tokens[i][1] == "op" and tokens[i][2]
    if word == ")" then depth = depth + 1 end
    if word == "(" then depth = depth - 1 end
    if depth == 0 then return i end
  end
end

-- Removes the call of `name` around the expression at the end of code: "x = 1 print(x)" becomes
-- "x = 1 x". Returns nil when there is none.
local function without_call(text, name)
  local tokens = lexer.significant(text)
  local last = tokens[#tokens]
  local first = last and last[2] == ")" and opening(tokens, #tokens)
  local called = first and tokens[first - 1]
  if not called or called[2] ~= name then return nil end
  local inside = text:sub(tokens[first][3] + 1, last[3] - 1):gsub("\n$", "")
  return text:sub(1, called[3] - 1) .. inside
end

-- Converts the end of a cell of a script, which shows its value, to that of a notebook.
local function with_value(text)
  local shown = without_call(text, "print")
  return shown and (without_call(shown, "keep") or shown)
end

-- Converts the end of a cell of a script, which computes a value, to that of a notebook.
local function with_quiet_value(text)
  local value = without_call(text, "keep")
  if value then return value .. ";" end
  local before, rest = text:match "^(.*)local _ = (.*)$"
  return before and before .. rest .. ";"
end

-- ---- from a notebook

-- Comments out the commands of a cell. Returns the text, the numbers of these lines, and whether
-- there is Lua code.
local function comment_commands(text)
  local lines, numbers, has_code = texts.lines(text), {}, false
  for _, piece in ipairs(pieces.split(text)) do
    has_code = has_code or piece.kind == "lua"
    for n = piece.line, piece.line + #texts.lines(piece.text) - 1 do
      if piece.kind ~= "lua" then
        lines[n] = "-- " .. lines[n]
        numbers[#numbers + 1] = n
      end
    end
  end
  return table.concat(lines, "\n"), numbers, has_code
end

-- Reverts comment_commands.
local function uncomment_lines(text, numbers)
  local lines = texts.lines(text)
  for n in numbers:gmatch "%d+" do
    n = tonumber(n)
    if lines[n] then lines[n] = uncommented(lines[n]) end
  end
  return table.concat(lines, "\n")
end

local function has_tag(cell, tag)
  for _, other in ipairs(cell.tags) do
    if other == tag then return true end
  end
  return false
end

local function has_result(cell)
  for _, output in ipairs(cell.outputs or {}) do
    if type(output) == "table" and output.output_type == "execute_result" then return true end
  end
  return false
end

-- Returns the attribute of a cell whose text was converted to `code`, or nil.
local function conversion(text, code)
  if code == text then return nil end
  if with_value(code) == text then return "shown=true" end
  if with_quiet_value(code) == text then return "quiet=true" end
end

-- Returns the statements for a cell of code, and the list of attributes of its line.
local function code_of(cell, keeps)
  local text = trimmed(cell.source)
  local lua, numbers, has_code = comment_commands(text)
  local runs = not has_tag(cell, "raises-exception") and (has_code or #numbers == 0)
  local code = runs and script.statements(lua, has_result(cell) and 1 or 0, keeps)
  if not code then return commented(text), {"commented=true"} end
  local attributes = {conversion(lua, code)}
  if #numbers > 0 then
    attributes[#attributes + 1] = "commands=" .. table.concat(numbers, ",")
  end
  return code, attributes
end

-- Returns the line before a cell.
local function marker(cell, attributes)
  local parts = {"-- %%"}
  if cell.kind ~= "code" then parts[#parts + 1] = "[" .. cell.kind .. "]" end
  if #cell.tags > 0 then
    parts[#parts + 1] = "tags=" .. json.encode(json.array{table.unpack(cell.tags)})
  end
  for _, attribute in ipairs(attributes) do parts[#parts + 1] = attribute end
  return table.concat(parts, " ")
end

local opens = {["function"] = true, ["do"] = true, ["if"] = true, ["repeat"] = true}
local closes = {["end"] = true, ["until"] = true}

-- Reads the names of a declaration whose `local` is token i. Returns the index of the token after
-- them and the names; nil for a function or a variable that is closed.
local function read_names(tokens, i)
  local names = {}
  i = i + 1
  while tokens[i] and tokens[i][1] == "name" do
    names[#names + 1] = tokens[i][2]
    i = i + 1
    if tokens[i] and tokens[i][2] == "<" then
      if tokens[i + 1][2] == "close" then return nil end
      i = i + 3
    end
    if not (tokens[i] and tokens[i][2] == ",") then return #names > 0 and i or nil, names end
    i = i + 1
  end
end

-- Converts the locals of the top level of a cell to globals.
local function with_globals(text)
  local tokens, parts, at, depth = lexer.significant(text), {}, 1, 0
  for i, token in ipairs(tokens) do
    local word, first = token[2], token[3]
    if token[1] == "keyword" then
      local following = tokens[i + 1] and tokens[i + 1]
      if word == "local" and depth == 0 and following then
        local after, names = read_names(tokens, i)
        if following[2] == "function" then
          parts[#parts + 1] = text:sub(at, first - 1)
          at = following[3]
        elseif after then
          local assigned = tokens[after] and tokens[after][2] == "="
          parts[#parts + 1] = text:sub(at, first - 1) .. table.concat(names, ", ")
            .. (assigned and " " or " = nil")
          local behind = tokens[after - 1]
          at = assigned and tokens[after][3] or behind[3] + #behind[2]
        end
      end
      depth = depth + (opens[word] and 1 or 0) - (closes[word] and 1 or 0)
    end
  end
  return table.concat(parts) .. text:sub(at)
end

-- Returns the script of converted cells, a list of {line, text, code = true for Lua}.
local function assembled(header, cells, convert)
  local parts = {table.unpack(header)}
  for _, cell in ipairs(cells) do
    local text = cell.code and convert and convert(cell.text) or cell.text
    parts[#parts + 1] = cell.line .. (text ~= "" and "\n" .. text or "")
  end
  return table.concat(parts, "\n\n") .. "\n"
end

--- Returns the script of a notebook; or nil and the reason why its cells cannot be combined.
function notebook_script.from_notebook(notebook)
  local codes, cells = {}, {}
  for _, cell in ipairs(notebook.cells) do
    if cell.kind == "code" then codes[#codes + 1] = comment_commands(trimmed(cell.source)) end
  end
  local header, keeps = script.header(codes)
  table.insert(header, 1, first_line)
  for i, cell in ipairs(notebook.cells) do
    local text, attributes = commented(trimmed(cell.source)), {}
    if cell.kind == "code" then text, attributes = code_of(cell, keeps) end
    cells[i] = {line = marker(cell, attributes), text = text, code = cell.kind == "code"
      and attributes[1] ~= "commented=true"}
  end
  local whole = assembled(header, cells)
  local ok, message = load(whole, "=script", "t")
  if ok then return whole end
  if message:find("too many local variables", 1, true) then
    table.insert(header, 2, many_locals)
    whole = assembled(header, cells, with_globals)
    ok, message = load(whole, "=script", "t")
    if ok then return whole end
  end
  return nil, message:gsub("^script:", "line ")
end

-- ---- from a script

-- Parses what is behind `-- %%`. Returns the kind of the cell, its tags and its attributes.
local function parse_marker(rest)
  local kind = rest:match "%[(%a+)%]"
  if kind == "md" then kind = "markdown" end
  if kind ~= "markdown" and kind ~= "raw" then kind = "code" end
  local tags = {}
  local list = json.decode(rest:match "tags=(%b[])" or "[]")
  for _, tag in ipairs(list or {}) do
    if type(tag) == "string" then tags[#tags + 1] = tag end
  end
  local has = {}
  for name, value in rest:gmatch "(%a+)=([%w,]+)" do has[name] = value end
  return kind, tags, has
end

-- Returns the cell with the lines after a marker.
local function marked_cell(rest, text)
  local kind, tags, has = parse_marker(rest)
  text = trimmed(text)
  if kind ~= "code" then
    local long = text:match "^%-%-%[%[\n?(.*)%]%]$"
    text = long and trimmed(long) or uncommented(text)
  elseif has.commented then
    text = uncommented(text)
  elseif has.shown then
    text = with_value(text) or text
  elseif has.quiet then
    text = with_quiet_value(text) or text
  end
  if has.commands then text = uncomment_lines(text, has.commands) end
  return notebook_file.cell(kind, text, tags)
end

-- Returns the text before the first cell without what other programs wrote there.
local function without_preamble(text)
  text = text:gsub("^%-%- %-%-%-\n.-\n%-%- %-%-%-\n", "") -- of Jupytext
  local own = false
  for _, line in ipairs {first_line, script.first_line, many_locals} do
    if text:sub(1, #line + 1) == line .. "\n" then
      own, text = true, text:sub(#line + 2):gsub("^\n+", "")
    end
  end
  return own and script.without_header(text) or text
end

-- Splits a script at lines that match `pattern`, whose capture is passed to make(rest, text).
local function split_at(text, pattern, make)
  local cells, rest, lines = {}, nil, {}
  local function flush()
    local body = table.concat(lines, "\n") .. "\n"
    if rest then
      cells[#cells + 1] = make(rest, body)
    else
      body = without_preamble(body)
      if body:find "%S" then cells[#cells + 1] = notebook_file.cell("code", trimmed(body)) end
    end
    lines = {}
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do
    local found = line:match(pattern)
    if found then
      flush()
      rest = found
    else
      lines[#lines + 1] = line
    end
  end
  flush()
  return cells
end

-- Splits a script without markers at empty lines, where the text before is complete Lua. A comment
-- at the start of the file becomes Markdown, another one belongs to the code after it.
local function split_complete(text)
  local cells, pending = {}, nil
  for part in (text .. "\n\n"):gmatch "(.-)\n%s*\n" do
    pending = pending and pending .. "\n\n" .. part or part
    local code = #lexer.significant(pending) > 0
    if not code and #cells == 0 and pending:find "^%-%-[^%[]" then
      cells[1], pending = notebook_file.cell("markdown", uncommented(trimmed(pending))), nil
    elseif code and load(pending, "=script", "t") then
      cells[#cells + 1], pending = notebook_file.cell("code", trimmed(pending)), nil
    end
  end
  if not (pending and pending:find "%S") then return cells end
  local ok, message = load(pending, "=script", "t")
  if not ok then return nil, message:gsub("^script:%d+: ", "") end
  cells[#cells + 1] = notebook_file.cell("code", trimmed(pending))
  return cells
end

--- Returns the notebook of a script: one cell for each marker `-- %%`, for each cell that :save
-- wrote, or else for each part between empty lines that is complete. Returns nil and the reason
-- for a script without markers that is not valid Lua.
function notebook_script.to_notebook(text)
  text = text:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*\n", ""):gsub("\r\n", "\n")
  local notebook = notebook_file.new()
  local cells, why
  if ("\n" .. text):find "\n%-%-%s*%%%%" then
    cells = split_at(text, "^%-%-%s*%%%%(.*)$", marked_cell)
  elseif text:sub(1, #script.first_line) == script.first_line then
    cells = split_at(text, "^%-%- %[%d+%](.*)$", function(_, body)
      return notebook_file.cell("code", trimmed(body))
    end)
  else
    cells, why = split_complete(text)
  end
  notebook.cells = cells
  if cells then return notebook end
  return nil, why
end

return notebook_script
