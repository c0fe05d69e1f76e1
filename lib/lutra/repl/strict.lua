--- `lutra -W`: reading a global that nothing has assigned is told on stderr, once per place.
--
-- Invariant: values do not change. A name that was ever assigned, nil too, is no stranger, and
-- neither is what code reads by rawget.

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

-- The nearest name that the code at a level of the stack could have meant, or nil.
local function nearest_to(name, level)
  local ok, nearest = pcall(require, "lutra.nearest")
  if not ok or #name < 2 then return nil end -- one letter is near to any other
  local names = nearest.names(_G)
  for _, short in ipairs(require("lutra.repl.globals").names()) do names[#names + 1] = short end
  add_locals(names, level + 1)
  local found
  ok, found = pcall(nearest.find, name, names)
  return ok and found or nil
end

-- Says that the code at a level of the stack read the undefined `name`.
local function warn(name, info, level)
  local meant = nearest_to(name, level + 1)
  io.stdout:flush()
  io.stderr:write(("lutra: warning: %s:%d: undefined global '%s'%s\n"):format(info.short_src,
    info.currentline, name, meant and ("; did you mean '%s'?"):format(meant) or ""))
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
