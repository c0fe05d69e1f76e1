--- :help and :quit.

local commands = require "lutra.repl.commands"

local basic = {}

local introduction = [[
Type Lua: an expression is printed, its value is kept in _ ; a semicolon at the end keeps it quiet.
lt, tensor, nn, F, optim and data are loaded. A cell goes on over several lines until it is
complete; an empty line ends it. Local variables live on in later cells.
Ctrl-C ends what runs and comes back here.]]

function basic.help()
  local lines = {introduction}
  for _, row in ipairs(commands.rows) do
    lines[#lines + 1] = ("  %-28s %s"):format(":" .. row.name .. " " .. (row.usage or ""), row.doc)
  end
  io.stdout:write(table.concat(lines, "\n"), "\n")
end

function basic.quit() return "quit" end

return basic
