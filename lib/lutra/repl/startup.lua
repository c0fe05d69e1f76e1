--- init.lua: the user's code at the start of each interactive session.
--
-- The file is $XDG_CONFIG_HOME/lutra/init.lua, else ~/.config/lutra/init.lua. It runs as a script:
-- its globals are the session's, its locals are not.

local files = require "lutra.repl.files"
local traceback = require "lutra.repl.traceback"

local startup = {}

--- Returns the path of the file; nil without a home folder.
function startup.path() return files.user_path("config", "init.lua") end

--- Runs the file, if it exists. Errors in it are printed, and the session starts anyway.
function startup.run(session)
  local path = startup.path()
  if not path then return end
  local text, why, code = files.read(path)
  if not text then
    if code ~= files.missing then session:print_error(("cannot read init.lua: %s"):format(why)) end
    return
  end
  local f, message = load((text:gsub("^#[^\n]*", "")), "@" .. path, "t")
  if not f then
    session:print_error(traceback.format(message))
  else
    session:guard(function() f(path) end)
  end
end

return startup
