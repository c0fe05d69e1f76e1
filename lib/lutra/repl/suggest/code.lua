--- Suggestions from the code of a line that failed: names that are nil, and a dot in place of a
-- colon.
--
-- A view is the argument of completion's expression.resolve: the tokens of the line -- and of the
-- next ones, while a bracket is open -- with the variables of its function. Invariant: no user code
-- runs.

local error_span = require "lutra.repl.error_span"
local expression = require "lutra.repl.complete.expression"
local globals = require "lutra.repl.globals"
local namespaces = require "lutra.internal.namespaces"
local nearest = require "lutra.internal.nearest"
local source_lines = require "lutra.repl.source_lines"
local static_values = require "lutra.repl.complete.static_values"
local tokens = require "lutra.repl.complete.tokens"

local is, name_at = tokens.is, tokens.name
local code = {}

local MOST_LINES = 20

-- Returns line `number` with the following lines that its open brackets include.
local function statement(text, number)
  local line = source_lines.line(text, number)
  for n = number + 1, number + MOST_LINES do
    local read = line and tokens.read(line .. "\n")
    local more = read and (#read.open > 0 or read.inside == "string") and source_lines.line(text, n)
    if not more then break end
    line = line .. "\n" .. more
  end
  return line
end

--- Returns a view of line `number` of `text`. `variables` are {value} by name; `session` is the
-- prompt's or nil; `nested`: whether the running function starts in this line. Returns nil when
-- there is no such line.
function code.view(text, number, variables, session, nested)
  local line = statement(text, number)
  if not line then return nil end
  local function get(_, name)
    if variables[name] then return true, variables[name][1] end
    if session then return session.locals:get(name) end
    return false
  end
  return {
    text = line, nested = nested or false, read = tokens.read(line .. " "),
    session = {locals = {get = get}}, variables = {}, assigned = {}, depth = 0,
  }
end

-- Returns the text of the tokens first..last.
local function written(view, first, last)
  local list = view.read.list
  return view.text:sub(list[first][3], list[last][3] + #list[last][2] - 1)
end

-- Returns the static value before the dot or colon at token `at`, and its text when it is short.
local function owner(view, at)
  local first = expression.start(view.read, at - 1)
  local thing = first and expression.resolve(view, first, at - 1)
  if not thing then return nil end
  local text = written(view, first, at - 1)
  return thing, #text <= 30 and text or nil
end

-- ---- fields

-- Returns the field of `thing` nearest to `name`, or nil; and whether there is one of that name.
local function near_field(thing, name)
  local names, there = {}, false
  static_values.members(thing, function(field)
    if field == name then there = true end
    if type(field) == "string" and field:match "^[^_]" then names[#names + 1] = field end
  end)
  return not there and nearest.find(name, names) or nil, there
end

--- Returns, for a field or method `name` of the line that is nil, the code with the nearest name,
-- or nil; its code when there is no such field, or nil; and advice about a method that modules have
-- in PyTorch, or nil.
function code.field(view, name)
  local list, missing = view.read.list, nil
  for i = 3, #list do
    local member = is(list, i - 1, ".") or is(list, i - 1, ":")
    local thing, text = nil, nil
    if member and name_at(list, i) == name then thing, text = owner(view, i - 1) end
    if thing then
      local near, there = near_field(thing, name)
      local before = text and text .. list[i - 1][2] or ""
      local absent = not there and static_values.module_state(thing.value)
        and require("lutra.internal.missing").hint("m", name)
      if absent then return nil, nil, absent end
      if near then return before .. near end
      if not there then missing = before .. name end
    end
  end
  return nil, missing
end

-- ---- names that are nil

-- Adds the names separated by commas from token i on to `found`.
local function add_names(list, i, found)
  while name_at(list, i) do
    found[name_at(list, i)] = true
    if is(list, i + 1, "<") then i = i + 3 end
    if not is(list, i + 1, ",") then return end
    i = i + 2
  end
end

-- Returns the names that the tokens declare, which are undefined before, or in another function
-- only.
local function declared(list)
  local found = {}
  for i = 1, #list do
    if is(list, i, "local") or is(list, i, "for") then add_names(list, i + 1, found) end
    if is(list, i, "function") then
      if is(list, i - 1, "local") then add_names(list, i + 1, found) end
      local open = i + 1
      while list[open] and not is(list, open, "(") do open = open + 1 end
      add_names(list, open + 1, found)
    end
  end
  return found
end

-- Returns the set of indexes of tokens that are assigned to, or are a key in a table.
local function targets(read)
  local list, found, depth = read.list, {}, 0
  for i = 1, #list do
    if list[i][1] == "op" and list[i][2]:match "^[%(%[{]$" then depth = depth + 1 end
    if list[i][1] == "op" and list[i][2]:match "^[%)%]}]$" then depth = depth - 1 end
    if is(list, i, "=") then
      local at = i - 1
      while name_at(list, at) do
        found[at] = true
        at = depth == 0 and is(list, at - 1, ",") and at - 2 or 0
      end
    end
  end
  return found
end

-- Returns the set of indexes of tokens in a function that starts in these lines.
local function inner_functions(list)
  local plain = {}
  for i, token in ipairs(list) do plain[i] = {kind = token[1], text = token[2]} end
  return error_span.in_functions(plain, 1, #plain)
end

-- Returns the names that the function reads in these lines: a list of {index, name, member}.
local function names_read(view)
  local list, found = view.read.list, {}
  local inside, hidden, assigned = inner_functions(list), declared(list), targets(view.read)
  for i = 1, #list do
    local name = name_at(list, i)
    local member = is(list, i - 1, ".") or is(list, i - 1, ":")
    local elsewhere = hidden[name] and not member and not view.session.locals:get(name)
    if name and not assigned[i] and inside[i] == view.nested and not elsewhere then
      found[#found + 1] = {i, name, member}
    end
  end
  return found
end

-- Returns whether there is a variable of that name, and its value.
local function variable(view, name)
  local there, value = view.session.locals:get(name)
  if there then return true, value end
  value = rawget(_G, name)
  if value == nil then value = globals.get(name) end
  return value ~= nil, value
end

--- Returns whether there is a variable of that name that is not nil.
function code.has_variable(view, name)
  return select(2, variable(view, name)) ~= nil
end

-- Returns "list[0] is nil: lists count from 1", for the first index in the line that is just
-- outside a list, or nil.
local function outside(view)
  local list, partner = view.read.list, view.read.partner
  for i = 2, #list do
    local close = is(list, i, "[") and tokens.ends_expression(list, i - 1) and partner[i]
    local thing, text = nil, nil
    if close then thing, text = owner(view, i) end
    local key = text and expression.resolve(view, i + 1, close - 1)
    local t, at = thing and thing.value, key and key.value
    local last = text and type(t) == "table" and rawlen(t) or 0
    if last > 0 and (at == 0 or at == last + 1) and rawget(t, at) == nil then
      return ("%s[%d] is nil: %s"):format(text, at,
        at == 0 and "indices start at 1" or "the last index is " .. last)
    end
  end
end

--- Returns advice when the line after `number` of `text`, which starts with a bracket, calls the
-- value at the end of line `number`. `name` is Lua's name for that value, or nil.
function code.goes_on(text, number, name)
  local line, after = source_lines.line(text, number), source_lines.line(text, number + 1)
  if not after or not after:match "^%s*%(" then return false end
  local list = tokens.read(line .. " ").list
  return #list > 0 and (list[#list][2] == name or not name and is(list, #list, ")"))
end

--- Returns the names in the line that are nil, as text, or nil. advise(name) returns advice about
-- an undefined name, or nil.
function code.nil_names(view, advise)
  local _, environment = view.session.locals:get "_ENV"
  if environment ~= nil and environment ~= _G then return nil end
  local names, unset = names_read(view), nil
  local index = outside(view)
  if index then return index end
  for _, row in ipairs(names) do
    local there, value = variable(view, row[2])
    if not row[3] and not there then
      local advice = advise(row[2])
      return row[2] .. " is not defined" .. (advice and "; " .. advice or "")
    end
    if not row[3] and value == nil then unset = unset or row[2] end
  end
  for _, row in ipairs(names) do
    local thing, text = nil, nil
    if row[3] then thing, text = owner(view, row[1] - 1) end
    local near = text and type(thing.value) == "table" and near_field(thing, row[2])
    if near then return ("%s.%s is nil; did you mean '%s.%s'?"):format(text, row[2], text, near) end
  end
  return unset and ("the variable %s is nil"):format(unset)
end

-- ---- dots and colons

local libraries = {
  "math", "string", "table", "os", "io", "utf8", "coroutine", "lutra", "lutra.nn",
  "lutra.nn.functional", "lutra.nn.init", "lutra.optim", "lutra.data", "lutra.cuda",
  "lutra.mps", "lutra.accelerator",
}

local function is_library(value)
  for _, name in ipairs(libraries) do
    if type(value) == "table" and rawequal(value, package.loaded[name]) then return true end
  end
  for _, ops in namespaces.each() do
    if rawequal(value, ops) then return true end
  end
  return false
end

-- Returns whether the value has a method of that name: a function of its class, not of its own.
local function has_method(thing, name)
  local value = thing.value
  if type(value) == "table" then
    local state = static_values.module_state(value)
    if not debug.getmetatable(value) or static_values.is_class(value) or rawget(value, name) ~= nil
        or state and rawget(state.fields, name) ~= nil then
      return false
    end
  elseif not (thing.like or static_values.is_tensor(value) or type(value) == "string") then
    return false
  end
  local method = static_values.field(thing, name)
  return method ~= nil and type(method.value) == "function"
end

local function is_called(list, i)
  return is(list, i, "(") or is(list, i, "{") or list[i] ~= nil and list[i][1] == "string"
end

--- Returns advice about a call of `name` in the line with a dot in place of a colon, or the
-- reverse, and for the former the value before the dot; nil without any.
function code.call(view, name)
  local list = view.read.list
  for i = 3, #list do
    local colon, dot = is(list, i - 1, ":"), is(list, i - 1, ".")
    if (colon or dot) and name_at(list, i) == name and is_called(list, i + 1) then
      local thing, text = owner(view, i - 1)
      if thing and text and colon and is_library(thing.value) then
        return ("call a function of %s with a dot: %s.%s(...)"):format(text, text, name)
      end
      local itself = name_at(list, i + 2) == "self" or text and name_at(list, i + 2) == text
      if thing and text and dot and not itself and has_method(thing, name) then
        return ("call a method with a colon: %s:%s(...)"):format(text, name), thing.value
      end
    end
  end
end

return code
