--- Warns on stderr about reads of undefined globals, once per source line: in scripts, and with
-- `lutra -W` everywhere.
--
-- Invariant: values do not change. A name that was ever assigned, also to nil, is defined, and
-- rawget is not checked.

local strict = {}

-- Prints the warning that code, with debug.getinfo's "Sl" and the variables visible to it, read
-- the undefined `name`.
local function warn(name, info, variables)
  local suggest = require "lutra.repl.suggest"
  local advice = suggest.global(name, variables)
  io.stdout:flush()
  io.stderr:write(("lutra: warning: %s:%d: undefined global '%s'%s\n"):format(info.short_src,
    info.currentline, name, advice and "; " .. advice or ""))
  io.stderr:flush()
end

-- Returns whether a chunk is the script or a file in its folder.
local function is_own(source)
  local script = rawget(_G, "arg") and _G.arg[0]
  local folder, file = tostring(script or ""):match "^(.*/)" or "", source:match "^@(.*)$" or ""
  if folder == "" then return file:sub(1, 1) ~= "/" end
  return file:sub(1, #folder) == folder
end

--- Enables the check of _G, for the script and the files in its folder, or everywhere.
function strict.install(everywhere)
  local meta = getmetatable(_G) or {}
  local index, newindex = meta.__index, meta.__newindex
  local declared, told = {}, {}

  function meta.__index(t, name)
    local value = nil
    if type(index) == "function" then
      value = index(t, name)
    elseif index then
      value = index[name]
    end
    if value ~= nil or declared[name] or type(name) ~= "string" then return value end
    local info = debug.getinfo(2, "Sl")
    if not info or info.currentline < 0 then return nil end
    if require("lutra.repl.call_frames").is_library(info.source) then return nil end
    if not everywhere and not is_own(info.source) then return nil end
    local place = info.short_src .. ":" .. info.currentline .. ":" .. name
    if not told[place] then
      told[place] = true
      warn(name, info, require("lutra.repl.suggest").variables(2))
    end
    return nil
  end

  function meta.__newindex(t, name, value)
    declared[name] = true
    if type(newindex) == "function" then newindex(t, name, value) else rawset(t, name, value) end
  end

  setmetatable(_G, meta)
end

return strict
