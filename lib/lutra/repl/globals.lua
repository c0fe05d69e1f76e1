--- The globals that interactive code (the prompt, -e, stdin) can use without `require`.
--
-- Each module is loaded when its global is first read. Invariant: any other undefined global still
-- is nil, or the value of an earlier metatable.

local globals = {}

-- name -> its module, or {module, field}
local modules = {
  lt = "lutra",
  tensor = {"lutra", "tensor"},
  nn = "lutra.nn",
  F = "lutra.nn.functional",
  optim = "lutra.optim",
  data = "lutra.data",
}

--- Defines the names in _G.
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

--- Loads and returns the value of the global `name`; nil for any other name.
function globals.get(name)
  local module = modules[name]
  if type(module) == "table" then return require(module[1])[module[2]] end
  return module and require(module)
end

--- Returns the declaration of the name in a script: `local nn = require "lutra.nn"`; nil for any
-- other name.
function globals.declaration(name)
  local module = modules[name]
  if not module then return nil end
  local value = type(module) == "table" and ('require("%s").%s'):format(module[1], module[2])
    or ("require %q"):format(module)
  return ("local %s = %s"):format(name, value)
end

--- Returns the sorted list of names.
function globals.names()
  local names = {}
  for name in pairs(modules) do names[#names + 1] = name end
  table.sort(names)
  return names
end

return globals
