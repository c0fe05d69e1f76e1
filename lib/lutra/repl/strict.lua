--- `lutra -W`: reading a global that nothing has assigned is told on stderr, once per place.
--
-- Invariant: values do not change. A name that was ever assigned, nil too, is no stranger, and
-- neither is what code reads by rawget.

local globals = require "lutra.repl.globals"
local nearest = require "lutra.nearest"
local suggest = require "lutra.repl.suggest"

local strict = {}

local folder = debug.getinfo(1, "S").source:match "^(.*[/\\])repl[/\\]strict%.lua$" or "@lutra/"

-- Adds the variables that the code at a level of the stack sees, and those of the session.
local function add_locals(names, level)
  for i = 1, 250 do
    local name = debug.getlocal(level + 1, i)
    if not name then break end
    names[#names + 1] = name
  end
  local f = debug.getinfo(level + 1, "f").func
  for i = 1, 255 do
    local name = debug.getupvalue(f, i)
    if not name then break end
    names[#names + 1] = name
  end
  local prompt = package.loaded["lutra.repl"]
  if prompt and prompt.session then
    for name in prompt.session.locals:pairs() do names[#names + 1] = name end
  end
end

-- What the code at a level of the stack may have meant, as text to put behind the warning.
local function advice(name, level)
  if #name < 2 then return "" end -- one letter is near to any other
  local names = nearest.names(_G)
  for _, short in ipairs(globals.names()) do names[#names + 1] = short end
  add_locals(names, level + 1)
  local found = nearest.find(name, names)
  if found then return ("; did you mean '%s'?"):format(found) end
  local text = suggest.global(name)
  return text and "; " .. text or ""
end

-- Says that the code at a level of the stack read the undefined `name`.
local function warn(name, info, level)
  local ok, more = pcall(advice, name, level + 2)
  io.stdout:flush()
  io.stderr:write(("lutra: warning: %s:%d: undefined global '%s'%s\n"):format(info.short_src,
    info.currentline, name, ok and more or ""))
  io.stderr:flush()
end

--- Watches _G from now on.
function strict.install()
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
    if not info or info.currentline < 0 or info.source:sub(1, #folder) == folder then return nil end
    local place = info.short_src .. ":" .. info.currentline .. ":" .. name
    if not told[place] then
      told[place] = true
      warn(name, info, 2)
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
