--- lt.isinstance: the class of an object of the library.

local args = require "lutra.internal.args"

local instances = {}

-- Returns the table where `t` looks up what it lacks, or nil.
local function parent_of(t)
  local meta = getmetatable(t)
  local index = type(meta) == "table" and rawget(meta, "__index")
  return type(index) == "table" and index or nil
end

-- Returns the class of a value: a module keeps it in its state, as its fields are a table between
-- the two; other objects have it as their metatable.
local function class_of(value)
  local meta = type(value) == "table" and getmetatable(value)
  if type(meta) ~= "table" then return nil end
  local state = rawget(meta, "__state")
  return state and state.class or meta
end

local function is_class(value)
  return type(value) == "table" and (rawget(value, "__name") or args.is_callable(value))
end

--- lt.isinstance(value, class): returns whether the value is an instance of a class of the library,
-- such as nn.Linear, or of one made by extend. `class` may be a list of classes. Raises an error
-- when it is neither.
function instances.isinstance(value, class)
  local classes = args.is_plain(class) and not is_class(class) and class or {class}
  args.expect(#classes > 0, "isinstance", "a class, or a list of classes", "class", class)
  for _, wanted in ipairs(classes) do
    args.expect(is_class(wanted), "isinstance", "a class, such as nn.Linear", "class", wanted)
  end
  local found = class_of(value)
  for _ = 1, 100 do -- other tables may be their own metatable
    if not found then return false end
    for _, wanted in ipairs(classes) do
      if rawequal(found, wanted) then return true end
    end
    found = parent_of(found)
  end
  return false
end

return instances
