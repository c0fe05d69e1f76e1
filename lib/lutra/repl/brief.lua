--- Values in one line with few items, for lists of variables.

local format_value = require "lutra.repl.format_value"
local limits = require("lutra.repl.options").value
local texts = require "lutra.internal.text"

local brief = {}

-- Formats a value with few items.
local function format_briefly(value)
  local depth, items = limits.depth, limits.items
  limits.depth, limits.items = 2, 8
  local ok, text = pcall(format_value.value, value)
  limits.depth, limits.items = depth, items
  return ok and text or ("(a %s that cannot be shown)"):format(type(value))
end

--- Returns whether a value is a tensor that exists.
function brief.is_tensor(value)
  local core = package.loaded["lutra.core"]
  return core and core.is_tensor(value) and not core._is_freed(value) or false
end

--- Returns a value in one line of at most `width` columns. Runs __tostring, which may fail.
function brief.text(value, width)
  if brief.is_tensor(value) and value:numel() > 1 then
    return ("tensor %s %s on %s"):format(value.shape, value.dtype, value.device)
  end
  local text = format_briefly(value):gsub("%s*\n%s*", " ")
  return texts.cut(text, math.max(8, width))
end

return brief
