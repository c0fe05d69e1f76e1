--- The commands :help, :doc (?x), :source (x??) and :apropos: the pages of lutra.repl.help.

local commands = require "lutra.repl.commands"
local front = require "lutra.repl.front"
local pages = require "lutra.repl.help.commands"
local pager = require "lutra.repl.help.pager"
local style = require "lutra.repl.style"
local wrap = require "lutra.repl.help.wrap"

local module = {}

local beginning = "Type Lua code. The value of an expression is printed and kept in _ ; a "
  .. "semicolon at the end suppresses printing. lt, tensor, nn, F, optim and data are loaded. "
local at_a_terminal = "A cell continues over several lines until it is complete; an empty line "
  .. "ends it. Local variables stay defined in later cells. Ctrl-C interrupts running code."
local in_a_notebook = "Local variables stay defined in later cells. A command is a line that "
  .. "begins in the first column; :time, alone in its line, takes the rest of the cell."

local function introduction()
  local rest = front.notebook and in_a_notebook or at_a_terminal
  return wrap.text(beginning .. rest, style.width())
end

local function help() return require "lutra.repl.help" end -- needs the core, which may be missing

local function options() return {width = style.width(), paint = style.paint} end

-- Shows a string, or raises an error with the reason when there is none.
local function show(name, text, why)
  if not text then error(name .. ": " .. why, 0) end
  pager.show(text)
end

--- `:help` lists the commands; `:help time` describes one of them; `:help NAME` is the same as
-- ?NAME for any other name.
function module.help(session, text)
  if text == "" then
    return pager.show(introduction() .. "\n?x or x? shows help about x, "
    .. "x?? its source.\n\n" .. pages.list(style.width(), style.paint))
  end
  local name = text:match "^:?(%S+)"
  local row = commands.find(name)
  if row then return pager.show(pages.page(row, style.width(), style.paint)) end
  local page = not text:match "^:" and help().text(text, session, options())
  show("help", page or nil, commands.unknown(name))
end

--- For an op: its signature, shapes, dtypes, gradient, devices and an example. For a function or
-- class written in Lua: the comment above it. For a variable: its type and value. Nothing is run:
-- a name is looked up in tables, modules and tensors, as in net[1].weight.
function module.doc(session, text)
  if text == "" then error("doc: expected a name, got none\nhint: ?lt.matmul", 0) end
  show("doc", help().text(text, session, options()))
end

--- Shows the source of a function or a class, of the library and of your own cells.
function module.source(session, text)
  if text == "" then error("source: expected a name, got none\nhint: nn.Linear??", 0) end
  show("source", help().source(text, session, options()))
end

--- Searches for a word in the names and descriptions of ops, of the library, of Lua's functions, of
-- the commands and of your variables. Matching names come first.
function module.apropos(session, text)
  if text == "" then error("apropos: expected a word, got none\nhint: :apropos softmax", 0) end
  show("apropos", help().apropos(text, session, options()))
end

return module
