--- lt.clear_output: removes what a cell of a notebook has shown.

local args = require "lutra.internal.args"
local front = require "lutra.repl.front"

local parse = args.signature("clear_output", "bool wait = false")

--- lt.clear_output{wait = false}: removes the output of the cell so far; with `wait` when the next
-- output is shown, so that the page does not jump. At a terminal erases the current line; in a
-- script it has no effect.
return function(...)
  local wait = parse(...)
  io.stdout:flush()
  if front.notebook then return front.notebook:clear(wait) end
  if require("lutra").isatty(1) then
    io.stdout:write "\r\27[K"
    io.stdout:flush()
  end
end
