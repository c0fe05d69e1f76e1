--- Help pages of commands, from the table of commands and the comments above their functions. They
-- do not need the core, so that :help works when it cannot be loaded.

local commands = require "lutra.repl.commands"
local source = require "lutra.repl.help.source"
local wrap = require "lutra.repl.help.wrap"

local pages = {}

-- Returns the comment above a command's function, without a first line that is only the usage.
local function command_doc(row)
  local ok, f = pcall(commands.load, row)
  local doc = ok and type(f) == "function" and source.doc(f)
  if not doc then return nil end
  local only_usage = doc[1]:match "^`:[^`]*`%.?$" or doc[1]:match "^:[%l]+[^:%l]*$"
  if only_usage or doc[1]:match "^:[%l]+ [^:]*EXPRESSION$" then table.remove(doc, 1) end
  return #doc > 0 and doc or nil
end

--- Returns the page of a command (a row of commands.rows).
function pages.page(row, width, paint)
  local usage = row.usage and " " .. row.usage or ""
  local out = {paint("heading", ":" .. row.name .. usage)}
  if row.also then out[#out + 1] = paint("faint", "also :" .. table.concat(row.also, ", :")) end
  out[#out + 1] = "\n" .. wrap.text(row.doc:sub(1, 1):upper() .. row.doc:sub(2) .. ".", width)
  local doc = command_doc(row)
  if doc then out[#out + 1] = "\n" .. wrap.comment(doc, width) end
  return table.concat(out, "\n")
end

--- Returns the list of all commands by group, with their usage.
function pages.list(width, paint)
  local groups, order = {}, {}
  for _, row in ipairs(commands.rows) do
    local group = groups[row.group]
    if not group then
      group = {}
      groups[row.group], order[#order + 1] = group, row.group
    end
    group[#group + 1] = {":" .. row.name .. (row.usage and " " .. row.usage or ""), row.doc}
  end
  local out = {}
  for _, name in ipairs(order) do
    out[#out + 1] = paint("heading", name:sub(1, 1):upper() .. name:sub(2))
    out[#out + 1] = wrap.rows(groups[name], width, 2)
    out[#out + 1] = ""
  end
  out[#out] = nil
  return table.concat(out, "\n")
end

return pages
