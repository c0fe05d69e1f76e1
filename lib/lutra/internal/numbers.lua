--- Formatting of numbers for messages and tables. printf and tostring write NaN with a sign ("-nan"
-- for 0 / 0), which is meaningless.

local numbers = {}

--- Returns a number formatted by `format` ("%.3g"), by default by tostring; NaN is "nan" in any
-- format. Other values are formatted by tostring.
function numbers.text(value, format)
  if value ~= value then return "nan" end
  if format and type(value) == "number" then return format:format(value) end
  return tostring(value)
end

--- Formats like string.format, with NaN as "nan" and other values than numbers by tostring in any
-- directive, and a NUL byte in a string as \0.
function numbers.format(format, ...)
  local values, i = table.pack(...), 0
  return (format:gsub("%%[-+ #0]*%d*%.?%d*[%a%%]", function(directive)
    if directive == "%%" then return "%" end
    i = i + 1
    local value = values[i]
    if value ~= value then return "nan" end
    if i > values.n then error(("no value for directive %d of %q"):format(i, format)) end
    if type(value) ~= "number" and not directive:find "[sqp]$" then return tostring(value) end
    return (directive:format(value):gsub("%z", "\\0"))
  end))
end

return numbers
