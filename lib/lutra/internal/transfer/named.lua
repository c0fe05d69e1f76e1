--- The values that every Lua state with the same modules has: the modules, and the functions,
-- classes and tables in them. They travel as a path, such as lutra.nn, Linear, forward.
--
-- A path is a chain of nodes {parent, kind, key}: "module" (key: its name), "field" (of a table),
-- "metatable", "upvalue" (key: its number, of a function of the library).

local args = require "lutra.internal.args"

local named = {}

local BASE = {"assert", "collectgarbage", "dofile", "error", "getmetatable", "ipairs", "load",
  "loadfile", "next", "pairs", "pcall", "print", "rawequal", "rawget", "rawlen", "rawset",
  "require", "select", "setmetatable", "tonumber", "tostring", "type", "warn", "xpcall"}

--- The names of Lua's own libraries.
named.STANDARD = {"coroutine", "debug", "io", "math", "os", "package", "string", "table", "utf8"}

local DEEPEST = {library = 5, program = 2} -- fields of fields of modules that are searched

local library_globals = _ENV -- those of the library's files, which may be a copy of _G

--- Returns whether x is a table of globals.
function named.is_globals(x) return rawequal(x, _G) or rawequal(x, library_globals) end

local function is_c(f) return debug.getinfo(f, "S").what == "C" end

local OPENED = {["lutra.core"] = true, ["lutra.files"] = true} -- with every state

--- Returns the patterns of package.path with the library's own folder in front.
function named.search_path()
  local root = debug.getinfo(1, "S").source:match "^@(.*)lutra/internal/transfer/named%.lua$"
  if not root then return package.path end
  return ("%s?.lua;%s?/init.lua;%s"):format(root, root, package.path)
end

-- Returns whether a module can be loaded by require in another state. What is in package.preload
-- are the namespaces of ops, which the library creates, and modules of the program in C.
local function can_require(name, path)
  return OPENED[name] or package.searchpath(name, path) ~= nil
    or package.searchpath(name, package.cpath) ~= nil
    or (package.preload[name] ~= nil and name:sub(1, 6) == "lutra.")
end

local function is_library(name) return name == "lutra" or name:sub(1, 6) == "lutra." end

-- Returns whether a value under a module may be found there by its path.
local function is_shared(x, of_library)
  if type(x) == "table" then return not named.is_globals(x) and x ~= package.loaded end
  if type(x) ~= "function" then return false end
  local info = debug.getinfo(x, "S")
  return info.what == "C" or not of_library or args.is_library(info)
end

-- The search: breadth first, so that a value gets a short path.
local Search = {}
Search.__index = Search

function Search:add(x, parent, kind, key)
  if self.nodes[x] then return end
  local node = {parent = parent, kind = kind, key = key, depth = parent and parent.depth + 1 or 0}
  self.nodes[x] = node
  self.queue[#self.queue + 1] = x
end

function Search:expand_function(f, node)
  for i = 1, math.huge do
    local name, value = debug.getupvalue(f, i)
    if name == nil then break end
    if is_shared(value, true) then
      self:add(value, node, "upvalue", i)
      if type(value) == "table" then self.nodes[value].closed = true end
    end
  end
end

function Search:expand(x, of_library)
  local node = self.nodes[x]
  if type(x) == "function" then
    if of_library and not is_c(x) then self:expand_function(x, node) end
    return
  end
  if node.closed or node.depth >= DEEPEST[of_library and "library" or "program"] then return end
  for key, value in next, x do
    local kind = math.type(key) or type(key)
    if (kind == "string" or kind == "integer") and is_shared(value, of_library) then
      self:add(value, node, "field", key)
    end
  end
  local meta = debug.getmetatable(x)
  if type(meta) == "table" and is_shared(meta, of_library) then
    self:add(meta, node, "metatable")
  end
end

function Search:run(of_library)
  local first = 1
  while first <= #self.queue do
    self:expand(self.queue[first], of_library)
    first = first + 1
  end
  self.queue = {}
end

local function add_standard(search)
  local globals = {depth = 0, kind = "module", key = "_G"}
  for _, name in ipairs(BASE) do
    local f = rawget(_G, name)
    if type(f) == "function" and is_c(f) then
      search.nodes[f] = {parent = globals, kind = "field", key = name, depth = 1}
    end
  end
  for _, name in ipairs(named.STANDARD) do
    for _, t in pairs{package.loaded[name], rawget(library_globals, name), rawget(_G, name)} do
      if type(t) == "table" then
        local node = {depth = 0, kind = "module", key = name}
        search.nodes[t] = search.nodes[t] or node
        for key, f in next, t do
          if type(f) == "function" and is_c(f) and not search.nodes[f] then
            search.nodes[f] = {parent = node, kind = "field", key = key, depth = 1}
          end
        end
      end
    end
  end
  search.nodes[getmetatable ""] = {depth = 0, kind = "string metatable"}
end

--- Returns the map from each value that every state has to the node of its path.
function named.values()
  local search = setmetatable({nodes = {}, queue = {}}, Search)
  add_standard(search)
  local own, others, path = {}, {}, named.search_path()
  for name, module in pairs(package.loaded) do
    if type(name) == "string" and is_shared(module) and not search.nodes[module]
      and can_require(name, path) then
      local list = is_library(name) and own or others
      list[#list + 1] = name
    end
  end
  for _, list in ipairs{own, others} do
    table.sort(list)
    for _, name in ipairs(list) do search:add(package.loaded[name], nil, "module", name) end
    search:run(list == own)
  end
  return search.nodes
end

--- Returns the value of a path, given as its steps {kind, key} from the module on. Raises an error
-- when this state has no such value.
function named.resolve(steps)
  local value
  for i, step in ipairs(steps) do
    local kind, key = step[1], step[2]
    if kind == "module" then
      value = require(key)
    elseif kind == "field" then
      value = value[key]
    elseif kind == "metatable" then
      value = debug.getmetatable(value)
    elseif kind == "upvalue" then
      value = select(2, debug.getupvalue(value, key))
    else
      value = getmetatable ""
    end
    if value == nil then
      args.fail("DataLoader: cannot find '%s' of the module '%s' in a worker: the program changed "
        .. "the module", tostring(key), i > 1 and tostring(steps[1][2]) or "")
    end
  end
  return value
end

return named
