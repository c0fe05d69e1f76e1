--- Returns a string that names a display which can be updated: no other display has it, also not
-- one of an earlier run of the notebook.

local count = 0
local run = ("%p"):format({}):gsub("^0x", "")

return function()
  count = count + 1
  return ("lutra-%x-%s-%d"):format(os.time(), run, count)
end
