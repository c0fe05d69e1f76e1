--- map_location: the devices to which the tensors of a file are loaded.

local core = require "lutra.core"
local args = require "lutra.internal.args"

local locations = {}

-- Returns whether a device that a file names is available.
local function is_here(location)
  local kind, index = location:match "^(%l+):?(%d*)$"
  if kind == "cpu" or kind == "meta" then return true end
  local ok, count = pcall(core._device_count, kind)
  return kind ~= nil and ok and count > (tonumber(index) or 0)
end

-- Moves a tensor to the device that it was saved from.
local function restore(title, path)
  return function(t, location)
    if location == "cpu" then return t end
    if not is_here(location) then
      args.fail('%s: cannot read "%s": it has a tensor on device "%s", which is not available\n'
        .. 'hint: lt.load(path, {map_location = "cpu"})', title, path, location)
    end
    return t:to{device = location}
  end
end

--- Returns a function that moves a tensor from the CPU to where `map_location` sends the device
-- `location` that it was saved from: a device for all, a table from devices to devices, or a
-- function that gets the tensor and its location and returns a tensor, or nil for no change. By
-- default tensors return to the device that they were saved from.
function locations.mapper(title, path, map_location)
  local default = restore(title, path)
  if map_location == nil then return default end
  if args.is_callable(map_location) then
    return function(t, location)
      local moved = map_location(t, location)
      if moved == nil then return default(t, location) end
      if not core.is_tensor(moved) or tostring(moved.shape) ~= tostring(t.shape)
        or moved.dtype ~= t.dtype then
        args.fail("%s: expected a tensor of the same shape and dtype as result of 'map_location', "
          .. "got %s", title, args.show(moved))
      end
      return moved
    end
  end
  if type(map_location) == "table" and getmetatable(map_location) == nil then
    local devices = {}
    for from, to in pairs(map_location) do
      args.expect(type(from) == "string" and type(to) == "string", title,
        "devices as keys and values", "map_location", map_location)
      devices[from] = args.device(title, to)
    end
    return function(t, location)
      local device = devices[location]
      if not device then return default(t, location) end
      return t:to{device = device}
    end
  end
  args.expect(type(map_location) == "string", title, "a device, a table or a function",
    "map_location", map_location)
  local device = args.device(title, map_location)
  return function(t) return t:to{device = device} end
end

return locations
