--- Help pages of functions: ops, other functions in C, Lua's own, and those written in Lua, by the
-- comment above them.

local builtin = require "lutra.repl.help.builtin"
local core = require "lutra.core"
local lexer = require "lutra.repl.lexer"
local lua = require "lutra.repl.help.lua"
local ops = require "lutra.repl.help.ops"
local source = require "lutra.repl.help.source"
local wrap = require "lutra.repl.help.wrap"

local functions = {}

local by_function -- function in C -> {name, arguments, text}

-- Returns the arguments of a function as text, from the core's signature.
local function known_arguments(f)
  local method, text = core._signatures[f]:match "^(:?)(.*)$"
  local _, params = core._signature("", text)
  local list = {}
  for i = method == ":" and 2 or 1, #params do
    local p = params[i]
    list[#list + 1] = {name = p.name, optional = p.optional, default = p.default}
  end
  return source.call("", source.parameters_text(list))
end

local function add_builtin(name, f, row)
  if not f then return end
  if type(row) == "string" then row = {known_arguments(f), row} end
  by_function[f] = {name, row[1], row[2]}
end

local function index_builtin()
  by_function = {}
  local autograd = require "lutra.autograd"
  for name, row in pairs(builtin.functions) do
    local field = name:match "^autograd%.(%w+)$"
    add_builtin("lt." .. name, field and autograd[field] or rawget(core, name), row)
  end
  for name, row in pairs(builtin.methods) do add_builtin("x:" .. name, core._methods[name], row) end
end

-- Returns the row of a function in C that is not an op: {name, arguments, text}, or nil.
local function find_builtin(f)
  if not by_function then index_builtin() end
  local row = by_function[f]
  if row then return row end
  local standard, name = lua.find(f)
  if standard then return {name, standard[1], standard[2]} end
end

--- Returns a one-line description of a function, or nil.
function functions.summary(f)
  local row = find_builtin(f)
  if row then return row[3]:match "^(.-[%.%?!]) %u" or row[3] end
  local op = ops.find(f)
  if op then return op.doc end
  return source.summary(source.doc(f))
end

local function lua_page(name, f, width, paint)
  local out = {paint("heading", wrap.code(source.call(name, source.signature(f)), width, 4))}
  local where = source.where(f)
  out[#out + 1] = paint("faint", "function in " .. where)
  local doc = source.doc(f)
  out[#out + 1] = ""
  out[#out + 1] = doc and wrap.comment(doc, width)
    or wrap.text("It has no documentation comment. " .. name .. "?? shows its source.", width)
  return table.concat(out, "\n")
end

local function builtin_page(row, width, paint)
  return paint("heading", wrap.code(row[1] .. row[2], width, 4)) .. "\n\n"
    .. wrap.text(row[3], width)
end

--- Returns the page of a function that the user calls `name`.
function functions.page(name, f, width, paint)
  local row = find_builtin(f)
  if row then return builtin_page(row, width, paint) end
  local op = ops.find(f)
  if op then return ops.page(op, width, paint) end
  if source.location(f) then return lua_page(name, f, width, paint) end
  return paint("heading", name) .. "\n\n" .. wrap.text("A function written in C, without "
    .. "documentation.", width)
end

--- Returns Lua code with coloured tokens.
function functions.colored(text, paint)
  local known = {keyword = true, string = true, number = true, comment = true}
  local parts = {}
  for kind, token in lexer.tokens(text) do
    -- Colours end with each line, so that a pager may show any part.
    parts[#parts + 1] = known[kind]
      and token:gsub("[^\n]+", function(line) return paint(kind, line) end) or token
  end
  return table.concat(parts)
end

-- Returns lines without their common indentation.
local function outdent(lines)
  local least = math.huge
  for _, line in ipairs(lines) do
    if line:match "%S" then least = math.min(least, #line:match "^ *") end
  end
  local out = {}
  for i, line in ipairs(lines) do out[i] = line:sub(least == math.huge and 1 or least + 1) end
  return table.concat(out, "\n")
end

--- Returns lines of source below their location.
function functions.listing(where, lines, paint)
  return paint("faint", "-- " .. where) .. "\n" .. functions.colored(outdent(lines), paint)
end

--- Returns the source of a function, or nil and the reason.
function functions.source(name, f, paint)
  local op = ops.find(f)
  f = op and op.source or f
  local lines = source.text(f)
  if lines then return functions.listing(source.where(f), lines, paint) end
  if op then return ops.source_text(op) end
  local where = source.where(f)
  if where then
    return nil, ("cannot show the source of %s: the file is missing: %s"):format(name, where)
  end
  return nil, ("cannot show the source of %s: it is written in C"):format(name)
end

--- Returns how a function is called, and its description: a string, or the lines of the comment
-- above it, or nil. For the reference.
function functions.describe(name, f)
  local row = find_builtin(f)
  if row then return name .. row[2], row[3] end
  local op = ops.find(f)
  if op then return table.concat(ops.signatures(op), "\n"), op.doc end
  return source.call(name, source.signature(f)), source.doc(f)
end

return functions
