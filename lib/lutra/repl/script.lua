--- Converts cells to a Lua script with the same effect.
--
-- The cells become one file, so that their locals persist as at the prompt. The prompt's work is
-- written out: the libraries are required, a value that was shown is printed, and when cells use
-- `_` or `_1` the script stores its results too.

local cell = require "lutra.repl.cell"
local globals = require "lutra.repl.globals"
local lexer = require "lutra.repl.lexer"

local script = {}

-- The globals of interactive code, in this order, as some depend on those before.
local names = {"lt", "tensor", "nn", "F", "optim", "data"}

local keeper = [[
-- Stores results in _ and _1 to _9, as the prompt does.
local function keep(...)
  local new = table.pack(...)
  for i = 1, 9 do
    if i > new.n then new[i] = rawget(_G, "_" .. i - new.n) end
  end
  _G._ = new[1]
  for i = 1, 9 do _G["_" .. i] = new[i] end
  return ...
end]]

local function loads(text) return load(text, "=save", "t") ~= nil end

-- Wraps an expression in a call, "print(%s)"; a comment at its end must not hide the bracket.
local function wrapped(call, expression)
  expression = expression:gsub("%s+$", "")
  local last
  for kind, text in lexer.tokens(expression) do last = kind == "comment" and text or nil end
  local line_comment = last and not last:match "^%-%-%[=*%["
  return call:format(expression .. (line_comment and "\n" or ""))
end

-- Removes the semicolon that suppressed the output.
local function without_semicolon(text)
  local tokens = lexer.significant(text)
  local last = tokens[#tokens]
  if last[2] ~= ";" then return text end
  return without_semicolon(text:sub(1, last[3] - 1) .. text:sub(last[3] + 1))
end

-- Splits a cell that ends in a `return` into the text before it and its expressions.
local function split_return(text)
  local tokens = lexer.significant(text)
  for i = #tokens, 1, -1 do
    if tokens[i][2] == "return" then
      local at = tokens[i][3]
      local before, value = text:sub(1, at - 1), text:sub(at + 6)
      if loads(before) and loads("return " .. value) then return before, value end
    end
  end
end

--- Converts the text of a cell to statements of a script, with or without storing its results.
-- `gave` is the number of its results, nil if unknown. Returns nil for text that is not valid.
function script.statements(text, gave, keeps)
  local status, code = cell.read(text, "=save")
  if status ~= "complete" then return nil end
  text = code.text or text
  local before, value
  if code.value_at then
    if gave == 0 and loads(text) then return text end
    before, value = text:sub(1, code.value_at - 1), text:sub(code.value_at)
  else
    before, value = split_return(text)
    if not before then return text end
  end
  value = without_semicolon(value)
  if code.quiet then
    return before .. (keeps and wrapped("keep(%s)", value) or "local _ = " .. value)
  end
  return before .. wrapped(keeps and "print(keep(%s))" or "print(%s)", value)
end

--- Returns the text as a comment.
function script.commented(text) return "-- " .. text:gsub("\n", "\n-- ") end

-- Returns the names in a list of texts, without those of fields and methods.
local function names_in(texts)
  local used = {}
  for _, text in ipairs(texts) do
    local before
    for _, token in ipairs(lexer.significant(text)) do
      if token[1] == "name" and before ~= "." and before ~= ":" then used[token[2]] = true end
      before = token[2]
    end
  end
  return used
end

local function uses_results(used)
  if used._ then return true end
  for i = 1, 9 do
    if used["_" .. i] then return true end
  end
  return false
end

--- Returns what a script needs before its cells, a list of their texts: a list of texts that
-- declare the libraries and the function that stores results; and whether there is that function.
function script.header(texts)
  local used, lines, parts = names_in(texts), {}, {}
  for _, name in ipairs(names) do
    if used[name] then lines[#lines + 1] = globals.declaration(name) end
  end
  if #lines > 0 then parts[#parts + 1] = table.concat(lines, "\n") end
  local keeps = uses_results(used)
  if keeps then parts[#parts + 1] = keeper end
  return parts, keeps
end

--- Removes the lines of script.header from the start of a script's text.
function script.without_header(text)
  for _, name in ipairs(names) do
    local line = globals.declaration(name) .. "\n"
    if text:sub(1, #line) == line then text = text:sub(#line + 1) end
  end
  text = text:gsub("^\n+", "")
  if text:sub(1, #keeper) == keeper then text = text:sub(#keeper + 1) end
  return (text:gsub("^\n+", ""))
end

--- The first line of the scripts that script.from writes.
script.first_line = "-- Written by :save of the Lutra prompt. Run it: lutra FILE"

--- Returns a script of `cells`, a list of {number, text, ok, gave}, in which a failed cell is a
-- comment; or nil and the reason why the cells cannot be combined.
function script.from(cells)
  local texts = {}
  for i, entry in ipairs(cells) do texts[i] = entry.text end
  local parts, keeps = script.header(texts)
  table.insert(parts, 1, script.first_line)
  for _, entry in ipairs(cells) do
    local text = entry.ok and script.statements(entry.text, entry.gave, keeps)
    parts[#parts + 1] = text and ("-- [%d]\n%s"):format(entry.number, text)
      or ("-- [%d] failed\n%s"):format(entry.number, script.commented(entry.text))
  end
  local whole = table.concat(parts, "\n\n") .. "\n"
  local ok, message = load(whole, "=script", "t")
  if ok then return whole end
  return nil, message:gsub("^script:%d+: ", "")
end

return script
