--- Shows the output of a command: at a terminal its text, in a notebook also its picture.

local front = require "lutra.repl.front"

--- Writes `text` to stdout; in a notebook displays it with the strings by MIME type that forms()
-- returns. When forms() fails, the text is displayed alone.
return function(text, forms)
  if not front.notebook then
    io.stdout:write(text, "\n")
    return
  end
  io.stdout:flush()
  local rich = require "lutra.repl.rich"
  local shown = rich.attempt(forms)
  local picture = shown["image/svg+xml"]
  if picture then
    shown["image/svg+xml"] = require("lutra.internal.plot.svg").scoped(picture)
  end
  front.notebook:display(rich.encode(shown, text))
end
