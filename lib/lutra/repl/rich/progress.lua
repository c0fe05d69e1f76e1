--- A progress bar in a notebook: one display, which is updated.

local progress = {}

-- Returns the forms of a line: `before` and `after` are the texts around the bar, `bar` its
-- characters (empty without a total), `share` how much of it is filled, 0 to 1.
local function forms(before, bar, after, share)
  local escape = require("lutra.repl.rich.html").escape
  local middle = bar == "" and ""
    or (' <progress value="%.4f" max="1" style="vertical-align:middle"></progress> '):format(share)
  return {
    ["text/plain"] = before .. bar .. after,
    ["text/html"] = ('<div style="font:12px monospace;white-space:pre">%s%s%s</div>'):format(
      escape((before:gsub("|$", ""))), middle, escape((after:gsub("^| ?", "")))),
  }
end

--- Returns the display of a bar in a notebook (lutra.repl.front); nothing is shown yet.
function progress.new(notebook)
  local id
  local display = {}

  --- Shows the bar: see forms.
  function display.draw(...)
    local data = forms(...)
    if id then return notebook:update(data, nil, id) end
    id = require "lutra.repl.display_id"()
    notebook:display(data, nil, id)
  end

  --- Empties the display.
  function display.clear()
    if id then notebook:update({["text/plain"] = "", ["text/html"] = ""}, nil, id) end
  end

  return display
end

return progress
