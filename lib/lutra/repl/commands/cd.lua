--- :cd and :pwd, the folder that relative paths start from.

local host = require "lutra.repl.host"
local command_line = require "lutra.repl.command_line"

local cd = {}

local previous -- the folder before the last :cd, for `:cd -`

-- The folder that the text means: quoted or not, with spaces or not.
local function meant(text)
  if text == "-" then
    return previous or error("cd: cannot go back: there is no previous folder", 0)
  end
  if text == "" then
    local home = os.getenv "HOME"
    return home and home ~= "" and home or error("cd: cannot go home: HOME is not set", 0)
  end
  local list = command_line.split(text)
  return list and #list == 1 and list[1] or command_line.home(text)
end

--- `:cd [FOLDER]`: goes there; without one home, with - back.
function cd.cd(_, text)
  local folder = meant(text)
  local here = host.getcwd()
  local ok, why = host.chdir(folder)
  if not ok then error("cd: cannot change the folder: " .. why, 0) end
  previous = here
  cd.pwd()
end

--- `:pwd`: the folder.
function cd.pwd()
  local folder, why = host.getcwd()
  if not folder then error("pwd: cannot find the current folder: " .. why, 0) end
  io.stdout:write(folder, "\n")
end

return cd
