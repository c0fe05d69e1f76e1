--- The table of the prompt's commands, from which `:help`, completion and the manual are generated.
--
-- A command is a function of a module under lutra/repl/commands/, loaded when it is first used:
--
--     function module.name(session, text) ... end
--
-- `:help NAME` shows the comment above this function below the row's description.
--
-- `text` is the text behind the command's word, without surrounding spaces. The function runs in
-- its own coroutine and may raise errors: error(message, 0) reports a user error, which is printed
-- without a traceback. It may run the user's code (session:compile). Returning "quit" ends the
-- session.

local commands = {}

--- The rows: name, aliases, usage behind the name, one line of help, the module, the group in which
-- it is listed, and the kind of its argument (for completion): code, expression, file, folder,
-- module, option, command, shell.
commands.rows = {
  {name = "help", also = {"h"}, usage = "[COMMAND]", module = "help", group = "help",
    argument = "command", doc = "this list, or more about one command"},
  {name = "doc", usage = "NAME", module = "help", group = "help", argument = "expression",
    doc = "help about a function, op, class or variable; also ?NAME and NAME?"},
  {name = "source", usage = "NAME", module = "help", group = "help", argument = "expression",
    doc = "show the source of a function or class; also NAME??"},
  {name = "apropos", usage = "WORD", module = "help", group = "help",
    doc = "search ops, library, commands and variables for a word"},
  {name = "quit", also = {"q", "exit"}, module = "basic", group = "session",
    doc = "leave the prompt (also exit, quit, Ctrl-D)"},
  {name = "run", usage = "FILE [ARGUMENTS]", module = "run", group = "session", argument = "file",
    doc = "run a script in the session; its locals and globals stay"},
  {name = "edit", usage = "[FILE | N]", module = "edit", group = "session", argument = "file",
    doc = "edit the last cell, cell N or a file in $EDITOR, then run it"},
  {name = "reload", usage = "[MODULE]", module = "reload", group = "session", argument = "module",
    doc = "load a module's file again; its functions are replaced in place"},
  {name = "shell", usage = "COMMAND", module = "shell", group = "session", argument = "shell",
    doc = "run a shell command; also !COMMAND"},
  {name = "save", usage = "[--force] FILE [1-3 5]", module = "save", group = "session",
    argument = "file", doc = "write cells to a Lua script; without numbers, all that succeeded"},
  {name = "history", usage = "[N | TEXT]", module = "save", group = "session",
    doc = "the cells of this session; the last N, or those with TEXT in them"},
  {name = "keep", usage = "FILE", module = "workspace", group = "session", argument = "file",
    doc = "save the tensors and plain values of the session to a safetensors file"},
  {name = "load", usage = "FILE", module = "workspace", group = "session", argument = "file",
    doc = "load a file written by :keep"},
  {name = "reset", module = "reset", group = "session",
    doc = "remove the variables and results of the session"},
  {name = "cd", usage = "[FOLDER]", module = "cd", group = "session", argument = "folder",
    doc = "change the folder; without one: home, with -: the previous one"},
  {name = "pwd", module = "cd", group = "session", doc = "show the current folder"},
  {name = "set", usage = "[OPTION [VALUE]]", module = "set", group = "session",
    argument = "option", doc = "list, show or change options of the prompt"},
  {name = "emulate", usage = "DEVICES", module = "emulate", group = "session",
    doc = "emulate devices that are not in use yet, such as cuda:2, as lutra --emulate does"},
  {name = "lesson", usage = "[N | list | end]", module = "lesson", group = "lessons",
    argument = "lesson",
    doc = "open lesson N, or the first that is not done; :next opens the next"},
  {name = "check", module = "lesson", group = "lessons",
    doc = "check your solution of the lesson"},
  {name = "hint", usage = "[solution]", module = "lesson", group = "lessons",
    doc = "the next hint of the lesson, or its solution"},
  {name = "whos", usage = "[PATTERN]", module = "whos", group = "inspection",
    doc = "list variables: type, shape, dtype, device, bytes, shared memory; totals by device"},
  {name = "devices", usage = "[--svg FILE]", module = "devices", group = "inspection",
    doc = "list devices: their tensors, memory use and fragmentation"},
  {name = "where", usage = "[--svg FILE] EXPR", module = "where", group = "inspection",
    argument = "expression",
    doc = "the memory of a tensor: device, address, strides, bytes, what shares it"},
  {name = "transfers", usage = "[--svg FILE] [CODE]", module = "transfers", group = "inspection",
    argument = "code",
    doc = "run once: copies and waits, a timeline, memory in use; without CODE: the last"},
  {name = "tree", usage = "EXPR", module = "tree", group = "inspection", argument = "expression",
    doc = "a module or nested tables as a tree, with shapes, counts, bytes and devices"},
  {name = "plot", usage = "[--hist] [--bins N] [--points] EXPR[, EXPR]", module = "plot",
    group = "inspection", argument = "expression",
    doc = "plot a tensor as a curve (of x and y, of each row) or as a histogram"},
  {name = "image", usage = "[--out FILE.ppm] EXPR", module = "image", group = "inspection",
    argument = "expression", doc = "show a tensor as an image; a batch as a grid"},
  {name = "print", usage = "[full | short | default | summary]", module = "print",
    group = "inspection", doc = "how tensors are printed; summary: one line each"},
  {name = "grad", usage = "[--svg FILE] [--lines N] EXPR", module = "grad", group = "inspection",
    argument = "expression", doc = "the autograd graph of a tensor, as text or as an SVG file"},
  {name = "time", usage = "CODE", module = "time", group = "profiling", argument = "code",
    doc = "run once: wall time, CPU time, memory; synchronizes devices"},
  {name = "timeit", usage = "[-n LOOPS] [-r RUNS] CODE", module = "time", group = "profiling",
    argument = "code", doc = "run many times: mean and standard deviation; synchronizes devices"},
  {name = "prof", usage = "[--sort KEY] [--trace FILE] CODE", module = "prof", group = "profiling",
    argument = "code", doc = "profile: ops by calls, time, bytes, device; copies between devices"},
  {name = "debug", module = "debug", group = "debugging",
    doc = "inspect the frames of the last error: a name shows its value there"},
  {name = "bt", module = "debug", group = "debugging", doc = "in the debugger: list the frames"},
  {name = "up", usage = "[N]", module = "debug", group = "debugging",
    doc = "in the debugger: go to the calling frame"},
  {name = "down", usage = "[N]", module = "debug", group = "debugging",
    doc = "in the debugger: go to the called frame"},
  {name = "frame", usage = "[N]", module = "debug", group = "debugging",
    doc = "in the debugger: go to frame N"},
  {name = "locals", module = "debug", group = "debugging",
    doc = "in the debugger: list the variables of the frame"},
  {name = "next", also = {"n"}, module = "lesson", group = "debugging",
    doc = "at a breakpoint: run to the next line; in a lesson: open the next lesson"},
  {name = "step", also = {"s"}, module = "debug", group = "debugging",
    doc = "at a breakpoint: run to the next line, also inside a call"},
  {name = "continue", also = {"c"}, module = "debug", group = "debugging",
    doc = "at a breakpoint: continue; after an error: leave the debugger"},
}

local by_name = {}

--- Adds a row; raises an error when its name or an alias is taken.
function commands.add(row)
  for _, name in ipairs {row.name, table.unpack(row.also or {})} do
    assert(not by_name[name], "there are two commands :" .. name)
    by_name[name] = row
  end
end

for _, row in ipairs(commands.rows) do commands.add(row) end

--- Returns the row of the command `name`, or nil.
function commands.find(name) return by_name[name] end

--- Returns the message for an unknown command, with the nearest name.
function commands.unknown(name)
  local ok, placement = pcall(require, "lutra.placement")
  if ok and rawget(placement, name) then
    return ("unknown command :%s\nhint: the function lt.placement.%s"):format(name, name)
  end
  local names = {}
  for called in pairs(by_name) do names[#names + 1] = called end
  local near = require("lutra.internal.nearest").find(name, names)
  return ("unknown command :%s\nhint: %s"):format(name,
    near and ("did you mean :%s?"):format(near) or ":help lists the commands")
end

--- Returns the function of a row; loads its module.
function commands.load(row)
  return require("lutra.repl.commands." .. row.module)[row.name]
end

return commands
