--- The names that typed code (the prompt, -e, stdin) finds without `require`.
--
-- Each is loaded when it is first read: a program that needs no optimizer does not wait for one.
-- Invariant: any other undefined global still gives nil, or what an earlier metatable gives.

local globals = {}

-- name -> the module that it is, or {module, the field of it}
local modules = {
  lt = "lutra",
  tensor = {"lutra", "tensor"},
  nn = "lutra.nn",
  F = "lutra.nn.functional",
  optim = "lutra.optim",
  data = "lutra.data",
}

--- Makes the names known in _G.
function globals.install()
  globals.installed = true
  local meta = getmetatable(_G) or {}
  local before = meta.__index
  meta.__index = function(t, name)
    if modules[name] then
      local value = globals.get(name)
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
  local module = modules[name]
  if type(module) == "table" then return require(module[1])[module[2]] end
  return module and require(module)
end

--- How a script declares the name: `local nn = require "lutra.nn"`; nil for any other name.
function globals.declaration(name)
  local module = modules[name]
  if not module then return nil end
  local value = type(module) == "table" and ('require("%s").%s'):format(module[1], module[2])
    or ("require %q"):format(module)
  return ("local %s = %s"):format(name, value)
end

--- The names, sorted.
function globals.names()
  local names = {}
  for name in pairs(modules) do names[#names + 1] = name end
  table.sort(names)
  return names
end

return globals
