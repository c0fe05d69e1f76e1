--- The words that an argument of a known meaning can be: names of dtypes and of devices.

local core = require "lutra.core"
local arguments = require "lutra.repl.complete.arguments"
local tokens = require "lutra.repl.complete.tokens"

local values = {}

-- Functions whose only argument is a dtype, though nothing in their signature says so.
local of_dtypes = {finfo = true, iinfo = true, promote_types = true}

-- What a name of an argument, a field or a function tells: "dtype", "device" or nil.
local function by_name(name)
  return name and (name:match "dtype$" or name:match "device$" or of_dtypes[name] and "dtype")
end

--- What the value at the cursor is: "dtype", "device", "both" or nil. `call` is
-- arguments.call(place).
function values.kind(place, call)
  local list = place.read.list
  local last = #list
  if tokens.is(list, last, "==") or tokens.is(list, last, "~=") then
    return by_name(tokens.name(list, last - 1))
  end
  if tokens.is(list, last, "=") then
    local name = by_name(tokens.name(list, last - 1))
    if name then return name end
  end
  if not call then return nil end
  if call.name == "to" and not call.key then return "both" end
  local param = arguments.parameter(call)
  if param then
    local kind = param.type:match "dtype" or param.type:match "device"
    return kind or by_name(param.name)
  end
  return not call.options and by_name(call.name) or nil
end

-- The core has a field of its own name for each dtype.
local function dtypes()
  local list = {}
  for name, value in next, core do
    if name == value then list[#list + 1] = name end
  end
  return list
end

local function add_one(name, kind, add, quoted)
  add(quoted and '"' .. name .. '"' or name, kind)
end

--- Adds the words of a kind (values.kind), in quotes where `quoted`.
function values.add(kind, add, quoted)
  if kind ~= "device" then
    for _, name in ipairs(dtypes()) do add_one(name, "dtype", add, quoted) end
  end
  if kind ~= "dtype" then
    for _, name in ipairs(core._devices_here()) do add_one(name, "device", add, quoted) end
  end
end

return values
