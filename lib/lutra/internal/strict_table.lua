--- Tables that raise an error for a missing field and suggest the nearest name.
--
-- Reading `lt.relue` is a mistake, which is reported at once instead of when nil is called. Fields
-- may still be added, and rawget(lt, "relue") is nil.

local strict_table = {}

local FEW = 8 -- a table with at most so many names is listed completely

-- Returns the suggestion for a missing key: the nearest name, or the list of a few names.
local function about(name, names, key)
  -- PyTorch's deprecated name of a function in place: kaiming_normal.
  for _, other in ipairs(names) do
    if other == key .. "_" then return ("\nhint: did you mean '%s.%s'?"):format(name, other) end
  end
  local of_pytorch = require("lutra.internal.missing").hint(name, key)
  if of_pytorch then return "\nhint: " .. of_pytorch end
  local near = require("lutra.internal.nearest").find(key, names)
  if near then return ("\nhint: did you mean '%s.%s'?"):format(name, near) end
  if #names == 0 or #names > FEW then return "" end
  table.sort(names)
  return "\nhint: its fields are " .. table.concat(names, ", ")
end

--- Raises the error for the missing field `key` of a table that users know as `name`; `others` are
-- valid names beside its own fields.
function strict_table.fail(t, name, key, others)
  local args = require "lutra.internal.args"
  if type(key) ~= "string" then
    return args.fail("%s has no field %s: its fields are named by strings", name, args.show(key))
  end
  local names = require("lutra.internal.nearest").names(t)
  for _, other in ipairs(others or {}) do names[#names + 1] = other end
  return args.fail('%s has no field "%s"%s', name, key, about(name, names, key))
end

--- Makes reading a missing field of `t`, which must have no metatable, an error; returns `t`.
function strict_table.strict(t, name)
  return setmetatable(t, {
    __name = name,
    __index = function(self, key) return strict_table.fail(self, name, key) end,
  })
end

-- table -> its fields that are modules loaded when they are first used: name -> module
local waiting = setmetatable({}, {__mode = "k"})

-- Loads "module", or the field of a module "module#field".
local function load_field(path)
  local module, field = path:match "^(.-)#(.*)$"
  if field then return require(module)[field] end
  return require(path)
end

--- Makes reading a missing field of `t` an error, and loads the fields of `libraries`, a table from
-- names to modules ("lutra.nn.summary") or to fields of modules ("lutra.nn.layers#ReLU"), when they
-- are first used; returns `t`.
function strict_table.lazy(t, name, libraries)
  waiting[t] = libraries
  return setmetatable(t, {
    __name = name, __libraries = libraries,
    __index = function(self, key)
      if libraries[key] then
        local value = load_field(libraries[key])
        rawset(self, key, value)
        return value
      end
      local names = {}
      for library in pairs(libraries) do
        if rawget(self, library) == nil then names[#names + 1] = library end
      end
      return strict_table.fail(self, name, key, names)
    end,
  })
end

--- Returns the fields of a table made by strict_table.lazy that are loaded when they are first
-- used: name -> module; nil for any other value.
function strict_table.libraries(t) return waiting[t] end

--- Loads the libraries of `lt`, and those inside of them, for what lists all names.
function strict_table.load_all(lt)
  for name in pairs(getmetatable(lt).__libraries) do local _ = lt[name] end
  local more = true
  while more do
    more = false
    local tables = {}
    for t in pairs(waiting) do tables[#tables + 1] = t end
    for _, t in ipairs(tables) do
      for name in pairs(waiting[t]) do
        more = more or rawget(t, name) == nil
        local _ = t[name]
      end
    end
  end
end

return strict_table
