--- The commands :cd and :pwd: the current folder.

local host = require "lutra.repl.host"
local command_line = require "lutra.repl.command_line"

local cd = {}

local previous -- the folder before the last :cd, for `:cd -`

-- Returns the folder named by the text, which may be quoted and may contain spaces.
local function read_folder(text)
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

--- `:cd FOLDER` changes the current folder, from which relative paths start; `:cd` changes to the
-- home folder, `:cd -` to the previous folder.
function cd.cd(_, text)
  local folder = read_folder(text)
  local here = host.getcwd()
  local ok, why = host.chdir(folder)
  if not ok then error("cd: cannot change the folder: " .. why, 0) end
  previous = here
  cd.pwd()
end

--- `:pwd` prints the current folder.
function cd.pwd()
  local folder, why = host.getcwd()
  if not folder then error("pwd: cannot find the current folder: " .. why, 0) end
  io.stdout:write(folder, "\n")
end

return cd
