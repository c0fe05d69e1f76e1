--- The variables that the text before the cursor declares and that are visible at the cursor, each
-- with the expression assigned to it, if any.
--
-- One pass over the tokens with a stack of blocks and brackets. Incomplete or invalid code leaves
-- blocks open or closes none; nothing here fails.

local tokens = require "lutra.repl.complete.tokens"

local is = tokens.is
local scope = {}

-- Words that begin a statement, or end the one before.
local statement = {}
for word in ([[break do else elseif end for goto if local repeat return then until while
    ;]]):gmatch "%S+" do
  statement[word] = true
end

local opens = {["("] = true, ["["] = true, ["{"] = true, ["function"] = true}

-- Returns the last token of the expression that starts at i; a comma outside brackets also ends
-- it.
local function expression_end(read, i)
  local list = read.list
  local depth, start = 0, i -- depth of function ... end in this expression
  while list[i] do
    local kind, word = list[i][1], list[i][2]
    local syntax = kind == "op" or kind == "keyword"
    if depth == 0 then
      if syntax and (word == "," or word == ")" or word == "]" or word == "}") then return i - 1 end
      if syntax and statement[word] then return i - 1 end
      local follows = i > start and tokens.ends_expression(list, i - 1)
      if follows and (kind == "name" or kind == "number" or word == "function") then
        return i - 1
      end
    end
    if syntax and opens[word] and word ~= "function" and read.partner[i] then
      i = read.partner[i]
    elseif kind == "keyword" then
      if word == "function" or depth > 0 and (word == "if" or word == "do" or word == "repeat") then
        depth = depth + 1
      elseif depth > 0 and (word == "end" or word == "until") then
        depth = depth - 1
      end
    end
    i = i + 1
  end
  return i - 1
end

-- Returns the expressions after `=` at token i: a list of {first, last}.
local function expressions(read, i)
  local found = {}
  repeat
    local last = expression_end(read, i + 1)
    found[#found + 1] = {i + 1, last}
    i = last + 1
  until not is(read.list, i, ",")
  return found
end

-- Returns the names separated by commas from token i on, and the index after the last. Attributes
-- are skipped.
local function name_list(list, i)
  local names = {}
  while tokens.name(list, i) do
    names[#names + 1] = list[i][2]
    i = i + 1
    if is(list, i, "<") and is(list, i + 2, ">") then i = i + 3 end
    if not is(list, i, ",") then break end
    i = i + 1
  end
  return names, i
end

local function declare(state, name, value)
  local block = state.blocks[#state.blocks]
  block[#block + 1] = {name = name, value = value}
end

local function push(state, kind) state.blocks[#state.blocks + 1] = {kind = kind} end

-- Leaves the innermost block that is not a bracket, and the brackets in it.
local function pop(state)
  for i = #state.blocks, 2, -1 do
    local kind = state.blocks[i].kind
    state.blocks[i] = nil
    if kind == "block" then return end
  end
end

local function pop_bracket(state)
  if state.blocks[#state.blocks].kind == "bracket" then state.blocks[#state.blocks] = nil end
end

local function read_local(state, read, i)
  local list = read.list
  if is(list, i + 1, "function") then
    if tokens.name(list, i + 2) then declare(state, list[i + 2][2]) end
    return
  end
  local names, after = name_list(list, i + 1)
  local values = is(list, after, "=") and expressions(read, after) or {}
  for k, name in ipairs(names) do declare(state, name, values[k]) end
end

local function read_function(state, read, i)
  local list, method = read.list, false
  i = i + 1
  while list[i] and (list[i][1] == "name" or is(list, i, ".") or is(list, i, ":")) do
    method = method or is(list, i, ":")
    i = i + 1
  end
  push(state, "block")
  if method then declare(state, "self") end
  if not is(list, i, "(") then return end
  for _, name in ipairs((name_list(list, i + 1))) do declare(state, name) end
end

local words = {}
words["local"] = read_local
words["function"] = read_function
words["for"] = function(state, read, i) state.loop = name_list(read.list, i + 1) end
words["then"] = function(state) push(state, "block") end
words["repeat"] = words["then"]
words["do"] = function(state)
  push(state, "block")
  for _, name in ipairs(state.loop or {}) do declare(state, name) end
  state.loop = nil
end
words["end"] = pop
words["until"] = pop
words["elseif"] = pop
words["else"] = function(state)
  pop(state)
  push(state, "block")
end

-- Reads the statement name = expression: a global, or a local that was declared before.
local function read_assignment(state, read, i)
  local list = read.list
  if state.blocks[#state.blocks].kind == "bracket" or not is(list, i + 1, "=") then return end
  local before = list[i - 1]
  if before and (before[1] == "op" and before[2] ~= ";" and not tokens.ends_expression(list, i - 1)
    or before[2] == "local" or before[2] == "for") then return end
  state.assigned[list[i][2]] = {value = expressions(read, i + 1)[1], at = i}
end

--- Returns the variables that are visible at the end of the tokens `read` (tokens.read): a table by
-- name of {value = {first, last} or nil, at}, the indexes of the expression in read.list; and a
-- table of the same form for names that are assigned without a declaration.
function scope.variables(read)
  local state = {blocks = {{kind = "block"}}, assigned = {}}
  for i, token in ipairs(read.list) do
    local kind, word = token[1], token[2]
    if kind == "keyword" then
      if words[word] then words[word](state, read, i) end
    elseif kind == "name" then
      read_assignment(state, read, i)
    elseif kind == "op" and opens[word] then
      push(state, "bracket")
    elseif kind == "op" and (word == ")" or word == "]" or word == "}") then
      pop_bracket(state)
    end
  end
  local seen = {}
  for _, block in ipairs(state.blocks) do
    for _, variable in ipairs(block) do
      variable.outer = seen[variable.name]
      seen[variable.name] = variable
    end
  end
  return seen, state.assigned
end

return scope
