--- The namespaces of ops beside lt: F, linalg, fft, special, ... (src/tensor/namespaces.def). They
-- contain ops of the op table and composites written in Lua (lutra.internal.composites). One whose
-- name has two parts, signal.windows, is a field of a library: lt.signal.
--
-- Invariant: a namespace with an op is a library of lt and a module: `require "lutra.linalg"`
-- returns lt.linalg. One without ops is neither.

local core = require "lutra.core"

local namespaces = {}

local modules = {F = "lutra.nn.functional"} -- those that are files; the others are created here

local by_name = {}
for _, space in ipairs(core._namespaces) do by_name[space.name] = space end

local libraries -- of lt: name -> module

local parents = {} -- libraries that contain namespaces: lt.signal

-- Returns t with a metatable that defines its composites on first use and otherwise raises an
-- error for a missing field.
local function lazy(t, name)
  return setmetatable(t, {
    __name = name,
    __index = function(self, key)
      local value = require("lutra.internal.composites").find(self, key)
      if value ~= nil then return value end
      return require("lutra.internal.strict_table").fail(self, name, key)
    end,
  })
end

-- Makes `t` what `require(module)` returns, also after package.loaded was cleared.
local function offer(module, t)
  package.loaded[module] = t
  package.preload[module] = function() return t end
end

-- Makes a namespace a library when it has an op.
local function publish(space)
  local module = modules[space.name] or "lutra." .. space.name
  local name = "lt." .. space.name
  if package.preload[module] or libraries[space.name] or next(space.ops) == nil then return end
  local parent, child = space.name:match "^(.*)%.(.*)$"
  if not modules[space.name] then offer(module, lazy(space.ops, name)) end
  if not parent then
    libraries[space.name] = module
  else
    libraries[parent] = "lutra." .. parent
    if not parents[parent] then
      parents[parent] = lazy({}, "lt." .. parent)
      offer("lutra." .. parent, parents[parent])
    end
    rawset(parents[parent], child, space.ops)
  end
end

--- Makes F, the table of a module, load its composites on first use; returns it.
function namespaces.lazy(t, name) return lazy(t, name) end

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

--- Iterates over the namespaces that have ops, and libraries that contain one, as lt.signal: their
-- name for users ("lt.linalg"), their functions, their description, and whether they are a file.
function namespaces.each()
  local list, seen, i = {}, {}, 0
  for _, space in ipairs(core._namespaces) do
    local parent = space.name:match "^(.*)%."
    local used, is_file = next(space.ops) ~= nil, modules[space.name] ~= nil
    if used and parent and not seen[parent] then
      seen[parent] = true
      list[#list + 1] = {"lt." .. parent, parents[parent],
        "The library with the namespace lt." .. space.name .. "."}
    end
    if used then
      list[#list + 1] = {is_file and space.name or "lt." .. space.name, space.ops, space.doc,
        is_file}
    end
  end
  return function()
    i = i + 1
    if list[i] then return table.unpack(list[i], 1, 4) end
  end
end

return namespaces
