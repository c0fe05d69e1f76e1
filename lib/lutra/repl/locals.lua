--- Local variables that persist between cells.
--
-- A closure over the locals declared at the top level of a cell is added at its end and stored. A
-- later cell that uses such a name is compiled inside a function that declares it, and its upvalue
-- is then joined to the stored one (debug.upvaluejoin): it is the same variable, not a copy, also
-- for closures made in either cell.
--
-- A cell that fails has no such closure: the values at the error are read from its stack.
-- Variables marked <close> end with their cell; so does `_`, which at the prompt is the last
-- result.
--
-- Invariant: the code compiled around a cell consists of the cell's own names and of constants of
-- this file. For a variable from a file (:load), only its value and whether it is constant are
-- used.

local lexer = require "lutra.repl.lexer"
local call_frames = require "lutra.repl.call_frames"

local locals = {}
locals.__index = locals

local opens = {["function"] = true, ["do"] = true, ["if"] = true, ["repeat"] = true}
local closes = {["end"] = true, ["until"] = true}

-- Reads `local a, b <const>` whose `local` is token i; adds the names to `names`.
local function read_declaration(tokens, i, names)
  i = i + 1
  if tokens[i] and tokens[i][2] == "function" then i = i + 1 end
  while tokens[i] and tokens[i][1] == "name" do
    local name, attribute = tokens[i][2], nil
    if tokens[i + 1] and tokens[i + 1][2] == "<" and tokens[i + 3] and tokens[i + 3][2] == ">" then
      attribute = tokens[i + 2][2]
      i = i + 3
    end
    names[#names + 1] = {name = name, attribute = attribute}
    if not (tokens[i + 1] and tokens[i + 1][2] == ",") then break end
    i = i + 2
  end
end

-- Analyses a cell: returns the locals of its top level (the last of each name), the position of
-- its last `return`, and every name in it. A `local function f` counts its `function` as a block.
local function analyse(body)
  local tokens = lexer.significant(body)
  local declared, used, depth, return_at = {}, {}, 0, nil
  for i, token in ipairs(tokens) do
    local kind, word, at = token[1], token[2], token[3]
    if kind == "name" then
      used[word] = true
    elseif kind == "keyword" then
      if depth == 0 and word == "local" then read_declaration(tokens, i, declared) end
      if depth == 0 and word == "return" then return_at = at end
      if opens[word] then depth = depth + 1 end
      if closes[word] then depth = depth - 1 end
    end
  end
  local names, seen = {}, {}
  for i = #declared, 1, -1 do
    local d = declared[i]
    if not seen[d.name] then
      seen[d.name] = true
      if d.attribute ~= "close" and locals.can_keep(d.name) then table.insert(names, 1, d) end
    end
  end
  return names, used, return_at
end

--- Returns an empty set of variables.
function locals.new()
  return setmetatable({variables = {}}, locals)
end

-- Returns a new variable, which no code uses yet.
local function box(value)
  return function() return value end, 1
end

-- Returns the index of the upvalue `name` of `f`, or nil.
local function upvalue(f, name)
  for i = 1, 255 do
    local found = debug.getupvalue(f, i)
    if found == name then return i end
    if not found then return nil end
  end
end

-- Stores `names` by the closure `f` that returns them all; a constant is in it by value only.
local function keep(self, names, f)
  local values
  for position, d in ipairs(names) do
    local holder, index = f, upvalue(f, d.name)
    if not index then
      values = values or table.pack(f())
      holder, index = box(values[position])
    end
    self.variables[d.name] = {holder = holder, index = index, constant = d.attribute == "const"}
  end
end

local function list(names)
  local texts = {}
  for i, d in ipairs(names) do texts[i] = d.name .. (d.constant and " <const>" or "") end
  return table.concat(texts, ", ")
end

--- Compiles the body of a cell so that it uses the stored variables and its own are stored. Returns
-- the function and the names it declares, or nil and Lua's message.
function locals:compile(body, chunk_name)
  local names, used, return_at = analyse(body)
  local known = {}
  for name in pairs(used) do
    local variable = self.variables[name]
    if variable then known[#known + 1] = {name = name, constant = variable.constant} end
  end
  table.sort(known, function(a, b) return a.name < b.name end)
  if #names == 0 and #known == 0 then
    local f, message = load(body, chunk_name, "t")
    return f, f and names or message
  end

  local ending = #names > 0 and "lutra_keep(function() return " .. list(names) .. " end) " or ""
  local function wrap(text)
    local declare = #known > 0 and "local " .. list(known) .. " = ... " or ""
    return load("local lutra_keep = ... " .. declare .. "return function(...) " .. text .. "\nend",
      chunk_name, "t")
  end
  -- A newline and a semicolon end a comment but are not valid everywhere after a label: then the
  -- cell runs without storing its new names.
  local make, message
  if return_at then
    make, message = wrap(body:sub(1, return_at - 1) .. ending .. body:sub(return_at))
  else
    make, message = wrap(body .. "\n;" .. ending)
  end
  if not make then make, message = wrap(body) end
  if not make then return nil, message end

  local f = make(function(g) keep(self, names, g) end)
  for i = 1, 255 do
    local name = debug.getupvalue(f, i)
    if not name then break end
    local variable = self.variables[name]
    if variable then debug.upvaluejoin(f, i, variable.holder, variable.index) end
  end
  return f, names
end

-- Returns the level of `f` in `co`: near the outermost; below it may be a command of the prompt.
local function level_of(co, f)
  local last = call_frames.last_level(co)
  for level = last, math.max(0, last - 20), -1 do
    local info = debug.getinfo(co, level, "f")
    if info and info.func == f then return level end
  end
end

--- Stores the current values of the locals of a cell's function `f`, which failed in coroutine
-- `co`.
function locals:rescue(names, co, f)
  local level = level_of(co, f)
  if not level then return end -- it ended in a tail call
  local values = {}
  for i = 1, 200 do
    local name, value = debug.getlocal(co, level, i)
    if not name then break end
    values[name] = {value}
  end
  for _, d in ipairs(names) do
    if values[d.name] then self:set(d.name, values[d.name][1], d.attribute == "const") end
  end
end

--- Returns whether there is a variable of that name, and its value.
function locals:get(name)
  local variable = self.variables[name]
  if not variable then return false end
  return true, select(2, debug.getupvalue(variable.holder, variable.index))
end

--- Returns whether the variable is a constant.
function locals:is_constant(name)
  local variable = self.variables[name]
  return variable ~= nil and variable.constant
end

--- Returns whether a variable of that name can be stored. Those that the code around a cell uses
-- itself cannot.
function locals.can_keep(name)
  return lexer.is_name(name) and name ~= "_" and name ~= "lutra_keep"
end

--- Creates a variable; replaces one of that name.
function locals:set(name, value, constant)
  assert(locals.can_keep(name), "no name of a variable")
  local holder, index = box(value)
  self.variables[name] = {holder = holder, index = index, constant = constant == true}
end

--- Assigns the variable `name`, also for the closures that share it. Returns false when there is
-- none.
function locals:assign(name, value)
  local variable = self.variables[name]
  if not variable then return false end
  debug.setupvalue(variable.holder, variable.index, value)
  return true
end

--- Removes a variable, or all of them.
function locals:forget(name)
  if name then self.variables[name] = nil else self.variables = {} end
end

--- Iterates over names and values, in no order.
function locals:pairs()
  local name
  return function()
    name = next(self.variables, name)
    if name then return name, select(2, self:get(name)) end
  end
end

return locals
