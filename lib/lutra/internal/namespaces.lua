--- The namespaces of ops beside lt: F, linalg, fft, special (src/tensor/namespaces.def). They
-- contain ops of the op table and composites written in Lua (lutra.internal.composites).
--
-- Invariant: a namespace with an op is a library of lt and a module: `require "lutra.linalg"`
-- returns lt.linalg. One without ops is neither.

local core = require "lutra.core"

local namespaces = {}

local modules = {F = "lutra.nn.functional"} -- those that are files; the others are created here

local by_name = {}
for _, space in ipairs(core._namespaces) do by_name[space.name] = space end

local libraries -- of lt: name -> module

-- Makes a namespace a library when it has an op.
local function publish(space)
  local module = modules[space.name] or "lutra." .. space.name
  if libraries[space.name] or next(space.ops) == nil then return end
  libraries[space.name] = module
  if modules[space.name] then return end
  package.loaded[module] = setmetatable(space.ops, {
    __name = "lt." .. space.name,
    __index = function(self, key)
      return require("lutra.internal.strict_table").fail(self, "lt." .. space.name, key)
    end,
  })
end

--- Adds the namespaces that have ops to `list`, the table of lt's libraries, and later ones when
-- they get their first op.
function namespaces.announce(list)
  libraries = list
  for _, space in ipairs(core._namespaces) do publish(space) end
end

--- Returns whether there is a namespace of this name.
function namespaces.has(name) return by_name[name] ~= nil end

--- Returns the functions of a namespace by name, ops and composites.
function namespaces.ops(name) return by_name[name].ops end

--- Returns the names of all namespaces, separated by commas.
function namespaces.names()
  local list = {}
  for i, space in ipairs(core._namespaces) do list[i] = space.name end
  return table.concat(list, ", ")
end

--- Adds the function `f` to a namespace under the name `op`.
function namespaces.add(name, op, f)
  rawset(by_name[name].ops, op, f)
  publish(by_name[name])
end

--- Iterates over the namespaces that have ops: their name for users ("lt.linalg"), their functions,
-- their description, and whether they are a file.
function namespaces.each()
  local i = 0
  return function()
    repeat
      i = i + 1
      if not core._namespaces[i] then return nil end
    until next(core._namespaces[i].ops) ~= nil
    local space = core._namespaces[i]
    local is_file = modules[space.name] ~= nil
    return is_file and space.name or "lt." .. space.name, space.ops, space.doc, is_file
  end
end

return namespaces
