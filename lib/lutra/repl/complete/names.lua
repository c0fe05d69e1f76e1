--- Completion of names: keywords, variables of the text and the session, globals; in a table of
-- arguments their names, with their defaults.

local arguments = require "lutra.repl.complete.arguments"
local globals = require "lutra.repl.globals"
local tokens = require "lutra.repl.complete.tokens"
local values = require "lutra.repl.complete.values"

local names = {}

local keywords = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
    return then true until while]]):gmatch "%a+" do
  keywords[word] = true
end

--- Returns whether a string is a name that can be written after a dot.
function names.is_identifier(text)
  return type(text) == "string" and text:find "^[%a_][%w_]*$" ~= nil and not keywords[text]
end

local function add_variables(context, add)
  for name in next, context.variables do add(name, "local") end
  for name in next, context.assigned do add(name, "global") end
  if context.session then
    local variables = context.session.debugger or context.session.locals
    for name, value in variables:pairs() do add(name, "local", nil, value) end
  end
  for name, value in next, _G do
    if type(name) == "string" then add(name, "global", nil, value) end
  end
  for _, name in ipairs(globals.names()) do add(name, "global", nil, package.loaded[name]) end
end

-- Returns whether the cursor is at the declaration of a new name: local a, b; for a, b; function
-- f.g(a, b; goto a.
local function is_declaration(list)
  local at = #list
  while tokens.is(list, at, ",") and tokens.name(list, at - 1) do at = at - 2 end
  for _, word in ipairs {"local", "for", "goto", "::"} do
    if tokens.is(list, at, word) then return true end
  end
  if not tokens.is(list, at, "(") then return false end
  repeat
    at = at - 1
  until not (tokens.name(list, at) or tokens.is(list, at, ".") or tokens.is(list, at, ":"))
  return tokens.is(list, at, "function")
end

local function add_attributes(list, add)
  local at = #list
  if not (tokens.is(list, at, "<") and tokens.name(list, at - 1)) then return false end
  at = at - 2
  while tokens.is(list, at, ",") do
    at = at - 1
    if tokens.is(list, at, ">") then at = at - 3 end
    at = at - 1
  end
  if not tokens.is(list, at, "local") then return false end
  add("close", "keyword", "calls its __close at the end of the block")
  add("const", "keyword", "cannot be assigned again")
  return true
end

-- Adds the arguments that can be named at the cursor; returns whether there is one.
local function add_arguments(call, add)
  local any = false
  arguments.missing(call, function(param)
    local default = param.default and " = " .. param.default or ""
    add(param.name, "argument", param.type .. default)
    any = true
  end)
  return any
end

-- Adds the values that are possible behind = or ==; returns whether there is one.
local function add_values(context, call, add)
  local list = context.read.list
  local at = #list
  if not (tokens.is(list, at, "=") or tokens.is(list, at, "==") or tokens.is(list, at, "~=")) then
    return false
  end
  local kind = values.kind(context, call)
  if kind then values.add(kind, add, true) end
  return kind ~= nil
end

--- The source of completions of a name: calls add(text, kind, note, value, shown).
function names.source(context, add)
  local list = context.read.list
  if add_attributes(list, add) then return end
  if is_declaration(list) then
    if tokens.is(list, #list, "local") then add("function", "keyword") end
    return
  end
  local call = arguments.call(context)
  local special = add_values(context, call, add)
  if call and call.options and call.fresh then special = add_arguments(call, add) or special end
  if special and context.read.prefix == "" then return end
  add_variables(context, add)
  for word in next, keywords do add(word, "keyword") end
end

return names
