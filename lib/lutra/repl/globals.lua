--- The names that typed code (the prompt, -e, stdin) finds without `require`.
--
-- Each is loaded when it is first read: a program that needs no optimizer does not wait for one.
-- Invariant: any other undefined global still gives nil, or what an earlier metatable gives.

local globals = {}

local loaders = {
  lt = function() return require "lutra" end,
  tensor = function() return require("lutra").tensor end,
  nn = function() return require "lutra.nn" end,
  F = function() return require "lutra.nn.functional" end,
  optim = function() return require "lutra.optim" end,
  data = function() return require "lutra.data" end,
}

--- Makes the names known in _G.
function globals.install()
  globals.installed = true
  local meta = getmetatable(_G) or {}
  local before = meta.__index
  meta.__index = function(t, name)
    local load_it = loaders[name]
    if load_it then
      local value = load_it()
      rawset(t, name, value)
      return value
    end
    if type(before) == "function" then return before(t, name) end
    return before and before[name]
  end
  setmetatable(_G, meta)
end

--- The value that reading the global of that name would load, loaded; nil for any other name.
function globals.get(name)
  local load_it = loaders[name]
  return load_it and load_it()
end

--- The names, sorted.
function globals.names()
  local names = {}
  for name in pairs(loaders) do names[#names + 1] = name end
  table.sort(names)
  return names
end

return globals
