--- Parameters of a notebook, as of Papermill: values for the variables of the cell with the tag
-- "parameters", in a cell with the tag "injected-parameters" after it.

local lexer = require "lutra.repl.lexer"
local notebook_file = require "lutra.repl.notebook_file"

local parameters = {}

-- Returns the text of a value as Lua: numbers, true, false and nil are themselves, any other text,
-- also one in quotes, is a string.
local function literal(text)
  if text == "true" or text == "false" or text == "nil" then return text end
  if text:find "^[-+]?[%d.]" and tonumber(text) then return (text:gsub("^%+", "")) end
  local inner = text:match "^'(.*)'$" or text:match '^"(.*)"$' or text
  return (("%q"):format(inner):gsub("\\\n", "\\n"))
end

--- Parses "name=value". Returns the assignment in Lua, or nil and what is expected.
function parameters.assignment(word)
  local name, value = word:match "^%s*([^=%s]+)%s*=(.*)$"
  if not name then return nil, "NAME=VALUE" end
  if not lexer.is_name(name) then return nil, "the name of a variable before =" end
  return name .. " = " .. literal(value)
end

-- Returns the index of the first cell with the tag, or nil.
local function tagged(notebook, tag)
  for i, cell in ipairs(notebook.cells) do
    for _, other in ipairs(cell.tags) do
      if other == tag then return i end
    end
  end
end

--- Adds a cell of the assignments to a notebook, or replaces the one that was added before, and
-- removes all outputs, which belong to other values. Returns whether a cell has the tag
-- "parameters"; without one the new cell is the first.
function parameters.inject(notebook, assignments)
  local cell = notebook_file.cell("code", "-- Parameters\n" .. table.concat(assignments, "\n"),
    {"injected-parameters"})
  local declared, injected = tagged(notebook, "parameters"), tagged(notebook, "injected-parameters")
  if injected then
    notebook.cells[injected] = cell
  else
    table.insert(notebook.cells, (declared or 0) + 1, cell)
  end
  for _, other in ipairs(notebook.cells) do
    if other.kind == "code" then other.outputs, other.count = {}, nil end
  end
  return declared ~= nil
end

return parameters
