--- Lua's string methods, the only state that the prompt shares with user code.
--
-- The metatable of strings is one for all code, so a program that removes string.format removes it
-- for the prompt, too.

local string_methods = {}

local metatable = getmetatable "" -- of strings, and with them the program's `string`
local program = metatable.__index

-- Returns whether the methods that the prompt needs are functions; with `own`, Lua's own.
local function are_usable(own)
  if debug.getmetatable "" ~= metatable or rawget(metatable, "__index") ~= program then
    return false
  end
  for name, f in next, string do
    local now = rawget(program, name)
    if type(now) ~= "function" or own and now ~= f then return false end
  end
  return true
end

--- Restores the methods when one of them is missing, or, after a failure of the prompt, when one is
-- not Lua's own. Returns a message when it restored them.
function string_methods.restore(failed)
  if are_usable(failed) then return nil end
  for name, f in next, string do rawset(program, name, f) end
  rawset(metatable, "__index", program)
  debug.setmetatable("", metatable)
  return "the functions of string were changed; the prompt needs them and restored them"
end

return string_methods
