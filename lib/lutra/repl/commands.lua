--- The commands of the prompt: one row each. `:help`, completion and the manual come from here.
--
-- A command is a function of a module under lutra/repl/commands/, loaded when it is first used:
--
--     function module.name(session, text) ... end
--
-- `text` is what stands behind the command's word, without the spaces around it. It runs in a
-- coroutine of its own, so it may raise errors: error(message, 0) is what the user did wrong, and
-- is printed without a traceback. It may run code of the user's (session:compile). Returning "quit"
-- ends the session.

local commands = {}

--- The rows: name, other names, usage behind the name, one line of help, the module, the group it
-- is listed in, and what its argument is (for completion): code, expression, file, folder, module,
-- option, command, shell.
commands.rows = {
  {name = "help", also = {"h"}, usage = "[command]", module = "basic", group = "help",
    argument = "command", doc = "this list, or more about one command"},
  {name = "quit", also = {"q", "exit"}, module = "basic", group = "session",
    doc = "leave (also exit, quit, Ctrl-D)"},
}

local by_name = {}

--- Adds a row; what a command is called may not be taken yet.
function commands.add(row)
  for _, name in ipairs {row.name, table.unpack(row.also or {})} do
    assert(not by_name[name], "there are two commands :" .. name)
    by_name[name] = row
  end
end

for _, row in ipairs(commands.rows) do commands.add(row) end

--- The row of the command called `name`, or nil.
function commands.find(name) return by_name[name] end

--- The function of a row.
function commands.load(row)
  return require("lutra.repl.commands." .. row.module)[row.name]
end

return commands
