--- The command :reload: loads a module of the user's again (lutra.repl.reload).

local reload_module = require "lutra.repl.reload"
local command_line = require "lutra.repl.command_line"

local reload = {}

local function list_text()
  local names = reload_module.names()
  if #names == 0 then return "no module of yours is loaded" end
  return "loaded: " .. table.concat(names, ", ")
end

-- Replaces old functions in the session's variables by the new ones.
local function update_variables(session, replaced)
  for name, value, scope in session:variables() do
    local new = replaced[value]
    if new and scope == "global" then
      rawset(_G, name, new)
    elseif new then
      local variable = session.locals.variables[name]
      debug.setupvalue(variable.holder, variable.index, new)
    end
  end
end

local function counted(n, what) return n > 0 and (", %d %s"):format(n, what) or "" end

--- `:reload mymodule` runs the module's file again and replaces its functions: the module's table,
-- its classes and their instances remain the same objects with new code. File-level variables keep
-- their values; fields of the module get the new ones. When the file fails, nothing changes.
-- Without a name it lists the modules that can be reloaded.
function reload.reload(session, text)
  local name = command_line.arguments("reload", text, 1, "the name of one MODULE")[1]
  if not name then
    io.stdout:write(list_text(), "\n")
    return
  end
  if name == "lutra" or name:match "^lutra%." then
    error(("reload: cannot reload %s: it is part of Lutra"):format(name), 0)
  end
  if package.loaded[name] == nil then
    error(("reload: cannot find a loaded module \"%s\"; %s"):format(name, list_text()), 0)
  end
  local done = reload_module.module(name)
  update_variables(session, done.replaced)
  io.stdout:write(("reloaded %s: %d function%s%s%s\n"):format(done.path, done.functions,
    done.functions == 1 and "" or "s", counted(done.added, "new"), counted(done.gone, "removed")))
end

return reload
