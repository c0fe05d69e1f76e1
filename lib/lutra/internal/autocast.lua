--- Autocast of composite ops written in Lua, and the settings of autocast. The op table's own ops
-- are cast in C (src/tensor/autocast.c), which has the settings.

local core = require "lutra.core"
local scope_guard = require "lutra.internal.scope_guard"
local tree = require "lutra.internal.tree"

local autocast = {}

-- Calls f(...) with other settings, which are restored afterwards.
function autocast.with(settings, f, ...)
  local old = core._scope_autocast(settings)
  local _ <close> = scope_guard(core._scope_autocast, old)
  return f(...)
end

-- Returns the device type of the first tensor among the arguments, or nil.
local function device_type(arguments)
  for i = 1, arguments.n do
    local first = core.is_tensor(arguments[i]) and arguments[i] or tree.leaves(arguments[i])[1]
    if first then return first.device:match "^%a+" end
  end
end

-- Returns the dtype in which an op of a class gets its tensors, or nil: as they are.
local function dtype_of(class, kind, arguments)
  local gpu = kind ~= "cpu"
  local _, low = core._autocast_of(kind)
  if class == "LOW" or class == "LOW_GPU" and gpu then return low end
  if class == "HIGH" or class == "HIGH_CPU" and not gpu or class == "HIGH_GPU" and gpu then
    return "float32"
  end
  if class ~= "WIDEST" then return nil end
  for i = 1, arguments.n do
    for _, t in ipairs(tree.leaves(arguments[i])) do
      if t:is_floating_point() and t.dtype ~= "float64" then
        low = core.promote_types(low, t.dtype)
      end
    end
  end
  return low
end

--- Returns fn with its tensors cast as the class states, and with autocast paused inside, while
-- autocast is on for the device of its first tensor; else fn(...) is called as it is. The class may
-- be a function of the device type and the arguments that returns it, or nil.
function autocast.wrap(class, fn)
  return function(...)
    if not core._autocast_any() then return fn(...) end
    local arguments = table.pack(...)
    local kind = device_type(arguments)
    if kind ~= "cpu" and kind ~= "cuda" and kind ~= "mps" or not core._autocast_of(kind) then
      return fn(...)
    end
    local own = class
    if type(class) == "function" then own = class(kind, ...) end
    if not own then return fn(...) end
    local dtype = dtype_of(own, kind, arguments)
    for i = 1, dtype and arguments.n or 0 do
      arguments[i] = tree.map(arguments[i], function(t)
        local cast = t:is_floating_point() and t.dtype ~= "float64" and t.dtype ~= dtype
          and t.device:match "^%a+" == kind
        return cast and t:to{dtype = dtype} or t
      end)
    end
    return autocast.with(core._autocast_with(kind, false), fn,
      table.unpack(arguments, 1, arguments.n))
  end
end

return autocast
