--- The namespaces of ops beside lt: F, linalg, fft, special (src/tensor/namespaces.def). What is in
-- one comes from the op table and from composites written in Lua (lutra.internal.composites).
--
-- Invariant: a namespace with an op is a library of lt and a module: `require "lutra.linalg"` gives
-- lt.linalg. One without ops is neither.

local core = require "lutra.core"

local namespaces = {}

local modules = {F = "lutra.nn.functional"} -- which are files; the others are made here

local by_name = {}
for _, space in ipairs(core._namespaces) do by_name[space.name] = space end

local libraries -- of lt: name -> module

-- A namespace becomes a library with its first op.
local function show(space)
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

--- Adds the namespaces that have ops to the table of lt's libraries, and later ones when they get
-- their first op.
function namespaces.announce(list)
  libraries = list
  for _, space in ipairs(core._namespaces) do show(space) end
end

--- Is there a namespace of this name?
function namespaces.has(name) return by_name[name] ~= nil end

--- The functions of a namespace by name, ops and composites.
function namespaces.ops(name) return by_name[name].ops end

--- The names of all namespaces, as messages list them.
function namespaces.names()
  local list = {}
  for i, space in ipairs(core._namespaces) do list[i] = space.name end
  return table.concat(list, ", ")
end

--- Adds a function under a name.
function namespaces.add(name, op, f)
  rawset(by_name[name].ops, op, f)
  show(by_name[name])
end

--- The namespaces that have ops: an iterator of the name by which users call it ("lt.linalg"), its
-- functions, its description and whether it is a file of its own.
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
