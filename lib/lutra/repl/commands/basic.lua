--- :quit.

local basic = {}

--- Leaves the session; what was entered is in the history.
function basic.quit() return "quit" end

return basic
