--- The columns of a CSV file, as data.read_csv returns them.

local lt = require "lutra"
local args = require "lutra.internal.args"

local Csv = {__name = "CSV data"}
Csv.__index = Csv

--- Returns the values of a column by its name or number: a tensor, or a list of strings. Raises an
-- error when there is no such column.
function Csv:column(name)
  local found = self.columns[math.type(name) == "integer" and self.names[name] or name]
  if found == nil then
    local near = type(name) == "string" and require("lutra.internal.nearest").find(name, self.names)
    args.fail("column: expected a column of the file, got %s%s", args.show(name),
      near and ("\nhint: did you mean '%s'?"):format(near) or "")
  end
  return found
end

local parse_tensor = args.signature("tensor", "list? names = nil, dtype? dtype = nil")

--- csv:tensor(names, dtype): returns the columns of a list of names, by default all columns, as a
-- tensor of shape {rows, columns} of the default dtype, or `dtype`. Raises an error for a column of
-- strings.
function Csv:tensor(...)
  local names, dtype = parse_tensor(...)
  local list = {}
  for i, name in ipairs(names or self.names) do
    local column = self:column(name)
    args.check(lt.is_tensor(column), "tensor: expected columns of numbers, got strings in '%s'",
      tostring(name))
    list[i] = column:to(dtype or lt.get_default_dtype())
  end
  args.check(#list > 0, "tensor: expected at least one column, got none")
  return lt.stack(list, 2)
end

--- Returns record i as a table of its values by name. Raises an error for an index out of range.
function Csv:row(i)
  args.check(math.type(i) == "integer" and i >= 1 and i <= self.rows,
    "row: expected an integer from 1 to %d for argument 'i', got %s", self.rows, args.show(i))
  local row = {}
  for name, column in pairs(self.columns) do
    local value = column[i]
    if lt.is_tensor(value) then value = value:item() end
    row[name] = value
  end
  return row
end

--- #csv: returns the number of records.
function Csv:__len() return self.rows end

function Csv:__tostring()
  return ("CSV data of %d rows: %s"):format(self.rows, table.concat(self.names, ", "))
end

-- In a notebook the columns are shown as a table.
function Csv:__mimebundle()
  return {["text/html"] = require("lutra.repl.rich.frame").html(self)}
end

return Csv
