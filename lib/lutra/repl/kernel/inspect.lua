--- inspect_request: help about the name at the cursor, or about the function whose arguments
-- contain the cursor. Runs nothing of the user's.

local commands = require "lutra.repl.commands"
local expression = require "lutra.repl.complete.expression"
local fields = require "lutra.repl.kernel.fields"
local help = require "lutra.repl.help"
local lexer = require "lutra.repl.lexer"
local pieces = require "lutra.repl.kernel.pieces"
local position = require "lutra.repl.kernel.position"
local style = require "lutra.repl.style"
local tokens = require "lutra.repl.complete.tokens"

local inspect = {}

local MOST_COLUMNS = 80 -- of a page: front ends show it in a small window

-- Returns the token that contains byte `at`: kind, text, first position.
local function token_at(text, at)
  for kind, word, first in lexer.tokens(text) do
    if first <= at and at < first + #word then return kind, word, first end
  end
end

-- Returns the chain (a.b[1]:c) that ends with token `last` of `read`: its text, and its position;
-- nil for the name in a function's declaration.
local function chain(read, text, last)
  local first = expression.start(read, last)
  if not first or tokens.is(read.list, first - 1, "function") then return nil end
  local from, word = read.list[first][3], read.list[last]
  return (text:sub(from, word[3] + #word[2] - 1):gsub("%s*\n%s*", "")), from
end

-- Returns the subject of the name or keyword that contains byte `at`, and its position, or nil.
local function name_at(text, at)
  local kind, word, first = token_at(text, at)
  if kind == "keyword" then return word, first end
  if kind ~= "name" then return nil end
  local read = tokens.read(text:sub(1, first + #word - 1) .. " ")
  return chain(read, text, #read.list)
end

-- Calls visit(subject, position) for the functions whose arguments contain the cursor, behind byte
-- `point`: the innermost first.
local function each_call(text, point, visit)
  local read = tokens.read(text:sub(1, point))
  local list = read.list
  if read.inside == "comment" then return end
  local function callee(last)
    if not tokens.ends_expression(list, last) then return end
    local subject, from = chain(read, text, last)
    if subject then visit(subject, from) end
  end
  if read.inside == "string" then callee(#list) end -- f "text"
  for i = #read.open, 1, -1 do
    local at = read.open[i]
    if not tokens.is(list, at, "[") then callee(at - 1) end
  end
  local before = list[#list]
  local partner = before and before[1] == "op" and before[2]:find "^[)}]$" and read.partner[#list]
  if partner then callee(partner - 1) end -- behind the arguments
end

-- Returns the subjects at the cursor in Lua code, the most specific first: a list of {text,
-- position}.
local function subjects(text, point)
  local list = {}
  local function add(subject, from)
    if subject then list[#list + 1] = {subject, from} end
  end
  local _, _, first = token_at(text, point)
  if first then add(name_at(text, point)) end
  each_call(text, point, add)
  add(name_at(text, point + 1)) -- a name that starts at the cursor
  return list
end

-- Returns the subjects in a line that begins with a command.
local function subjects_of_command(text, point)
  local start, word = text:match "^%s*():%s*(%S*)"
  local behind = text:match "^%s*:%s*%S*()"
  local row = commands.find(word)
  local list = {}
  local argument = row and row.argument
  if point >= behind and (argument == "code" or argument == "expression") then
    list = subjects((" "):rep(behind - 1) .. text:sub(behind), point)
  end
  if row and point >= start - 1 then list[#list + 1] = {":" .. row.name, start} end
  return list
end

-- Returns the page about a subject, or its source for level 1 where there is one; nil without
-- either.
local function page_of(subject, level, session, before)
  local options = {width = math.min(style.width(), MOST_COLUMNS), paint = style.paint,
    before = before}
  local function ask(f)
    local ok, text = pcall(f, subject, session, options)
    return ok and text or nil
  end
  return level == 1 and ask(help.source) or ask(help.text)
end

--- Replies to inspect_request: {found, data, metadata}. detail_level 0: the help page; 1: the
-- source.
function inspect.inspect_request(kernel, content)
  local code, level = fields.string(content, "code"), fields.integer(content, "detail_level")
  local point = position.bytes(code, fields.integer(content, "cursor_pos"))
  local kind, text, offset = pieces.at(code, point)
  point = point - offset
  local list = {}
  if kind == "command" then
    list = subjects_of_command(text, point)
  elseif kind ~= "shell" then
    list = subjects(text, point)
  end
  for _, one in ipairs(list) do
    local page = page_of(one[1], level, kernel.session, text:sub(1, one[2] - 1))
    if page then
      return {status = "ok", found = true, data = {["text/plain"] = page}, metadata = {}}
    end
  end
  return {status = "ok", found = false, data = {}, metadata = {}}
end

return inspect
