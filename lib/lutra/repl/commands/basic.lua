--- The command :quit.

local basic = {}

--- Ends the session. Inputs remain in the history.
function basic.quit() return "quit" end

return basic
