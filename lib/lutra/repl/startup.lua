--- init.lua, the user's own code at the start of each interactive session.
--
-- $XDG_CONFIG_HOME/lutra/init.lua, else ~/.config/lutra/init.lua. It is a script of its own: its
-- globals are the session's, its locals are not.

local files = require "lutra.repl.files"
local traceback = require "lutra.repl.traceback"

local startup = {}

--- Where the file would be; nil without a home folder.
function startup.path() return files.place("config", "init.lua") end

--- Runs it, if it is there. What is wrong in it is told, and the session starts all the same.
function startup.run(session)
  local path = startup.path()
  if not path then return end
  local text, why, code = files.read(path)
  if not text then
    if code ~= files.missing then session:complain(("cannot read init.lua: %s"):format(why)) end
    return
  end
  local f, message = load((text:gsub("^#[^\n]*", "")), "@" .. path, "t")
  if not f then
    session:complain(traceback.format(message))
  else
    session:guard(function() f(path) end)
  end
end

return startup
