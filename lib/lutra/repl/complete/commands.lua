--- Completion of commands: the commands with their help, and the argument according to the
-- command's row.

local commands = require "lutra.repl.commands"
local modules = require "lutra.repl.complete.modules"
local options = require "lutra.repl.options"
local paths = require "lutra.repl.complete.paths"

local complete = {}

local function add_commands(add)
  for _, row in ipairs(commands.rows) do
    add(row.name, "command", row.doc)
    for _, name in ipairs(row.also or {}) do add(name, "command", row.doc) end
  end
end

-- Calls visit for each flag of a usage: "[--sort KEY] [-n LOOPS] CODE" -> visit("--sort", "KEY")
-- ...
local function each_flag(usage, visit)
  for flag, value in usage:gmatch "%[(%-%-?%a[%w%-]*) ?([%w%.]*)%]" do visit(flag, value) end
end

local function add_flags(usage, add)
  each_flag(usage, function(flag, value) add(flag, "flag", value ~= "" and value or nil) end)
end

-- Skips the flags at the beginning of `text`. Returns the position behind them; and when the
-- cursor is in one of them, "flag" or the name of its value.
local function skip_flags(usage, text)
  local values, at = {}, 1
  each_flag(usage, function(flag, value) values[flag] = value end)
  while true do
    local flag, after = text:match("^(%-%-?%a[%w%-]*)%s+()", at)
    if not values[flag] then
      local begun = next(values) and text:match("^%-[%w%-]*$", at)
      return at, begun and "flag"
    end
    at = after
    if values[flag] ~= "" then
      after = text:match("^%S+%s+()", at)
      if not after then return at, values[flag] end
      at = after
    end
  end
end

-- Adds the words of a usage that is a choice, [full | short], or one word, [solution].
local function add_choice(usage, add)
  local choice = usage:gsub("%s", ""):match "^%[?([%l_|]+)%]?$"
  for word in (choice or ""):gmatch "[%l_]+" do add(word, "value") end
end

local function add_options(text, add)
  local name = text:match "^(%S+)%s+%S*$"
  for _, row in ipairs(options.rows) do
    if not name then
      add(row.name, "option", ("%s: %s"):format(options.text(row), row.doc))
    elseif row.name == name then
      for _, word in ipairs(row.words or {}) do add(word, "value") end
      if type(row.default) == "boolean" then
        add("on", "value")
        add("off", "value")
      end
    end
  end
end

-- Returns the last word of `text` as command_line.lua splits it: its start, its quote or nil, and
-- its value.
local function last_word(text)
  local at, start, quote, parts = 1, 1, nil, {}
  while at <= #text do
    local c = text:sub(at, at)
    if c == "\\" and quote ~= "'" then
      at = at + 1
      parts[#parts + 1] = text:sub(at, at)
    elseif quote and c == quote then
      quote = nil
    elseif not quote and (c == "'" or c == '"') then
      quote = c
    elseif not quote and c:match "%s" then
      start, parts = at + 1, {}
    else
      parts[#parts + 1] = c
    end
    at = at + 1
  end
  return start, quote, table.concat(parts)
end

local function escaper(quote)
  if quote == "'" then return function(text) return quote .. text:gsub("'", "'\\''") end end
  if quote then return function(text) return quote .. text:gsub('["\\]', "\\%0") end end
  return function(text) return (text:gsub("[%s\"'\\]", "\\%0")) end
end

local shell_escape = "[^%w%._/%-%+:,@%%~=]"

local function add_paths(context, text, add, argument)
  local start, quote, plain = last_word(text)
  local escape = escaper(quote)
  if argument == "shell" and not quote then
    escape = function(path) return (path:gsub(shell_escape, "\\%0")) end
  end
  context.first, context.match = context.offset + start, paths.base(plain)
  paths.add(plain, escape, add, argument == "folder" and "folder" or nil)
end

local function add_lessons(_, text, add)
  if text:find "%s" then return end
  local list = require("lutra.repl.lesson.catalog").list()
  for number, entry in ipairs(list) do add(tostring(number), "value", entry.name) end
  add("list", "value")
  add("end", "value")
end

local by_argument = {
  lesson = add_lessons,
  file = add_paths, folder = add_paths, shell = add_paths,
  command = function(context, text, add)
    if text:find "%s" then return end
    context.first, context.match = context.offset + 1, text
    add_commands(add)
  end,
  option = function(_, text, add) add_options(text, add) end,
  module = function(_, _, add) modules.add_loaded(add) end,
}

--- Recognizes the line of a command or of the shell. Returns "command" and the start of its word;
-- or its row (nil for an unknown command) and the start of its argument; or nothing.
function complete.parse(text)
  local bang = text:match "^%s*!%s*()"
  if bang then return commands.find "shell", bang end
  local word, after = text:match "^%s*:%s*(%S*)()"
  if not word or text:match "^%s*::" then return nil end
  if after > #text then return "command", after - #word end
  return commands.find(word), text:match("^%s*()", after)
end

--- The source for the command's word.
function complete.words(_, add) add_commands(add) end

--- Returns the source for the argument of `row`, whose text starts behind context.offset; nil for
-- code, which then starts behind context.offset.
function complete.argument(context, row)
  local usage = row.usage or ""
  local text = context.text:sub(context.offset + 1)
  local after, waiting = skip_flags(usage, text)
  context.first = #context.text - #text:match "%S*$" + 1
  context.match = context.text:sub(context.first)
  context.offset, text = context.offset + after - 1, text:sub(after)
  if waiting == "flag" then return function(_, add) add_flags(usage, add) end end
  if waiting then
    return function(_, add)
      if waiting:find "^FILE" then add_paths(context, text, add) end
    end
  end
  if row.argument == "code" or row.argument == "expression" then return nil end
  local source = by_argument[row.argument]
  return function(_, add)
    if source then source(context, text, add, row.argument) end
    if not text:find "%s" then add_choice(usage, add) end
  end
end

return complete
