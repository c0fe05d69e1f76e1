--- The command :print: how tensors are printed.

local core = require "lutra.core"

local print_command = {}

-- The options in the order in which they are printed.
local names = {"profile", "precision", "threshold", "edgeitems", "linewidth", "sci_mode"}

--- `:print full` prints every element; short: two digits and two elements at each end; summary:
-- range, histogram, mean, deviation, NaN and device on one line; default restores the defaults.
-- Without a word it shows the settings. lt.set_printoptions sets further options.
function print_command.print(_, text)
  if text ~= "" then
    local ok, message = pcall(core.set_printoptions, {profile = text})
    if not ok then error("print: " .. message:gsub("^.-set_printoptions: ", ""), 0) end
    return
  end
  local options = core.get_printoptions()
  for _, name in ipairs(names) do
    local value = options[name]
    if math.type(value) == "float" and value == math.floor(value) then
      value = value == math.huge and "inf" or ("%d"):format(value)
    end
    io.stdout:write(("%-10s %s\n"):format(name, tostring(value)))
  end
end

return print_command
