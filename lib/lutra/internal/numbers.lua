--- Numbers as text for people. printf and tostring write NaN with its sign ("-nan" for 0 / 0),
-- which means nothing.

local numbers = {}

--- A number by `format` ("%.3g"), by default as tostring writes it; NaN is "nan" in any format.
-- Other values as tostring writes them.
function numbers.text(value, format)
  if value ~= value then return "nan" end
  if format and type(value) == "number" then return format:format(value) end
  return tostring(value)
end

--- string.format for messages: NaN is "nan" in any directive, and a NUL byte in a string is \0.
function numbers.format(format, ...)
  local values, i = table.pack(...), 0
  return (format:gsub("%%[-+ #0]*%d*%.?%d*[%a%%]", function(directive)
    if directive == "%%" then return "%" end
    i = i + 1
    local value = values[i]
    if value ~= value then return "nan" end
    if i > values.n then error(("no value for directive %d of %q"):format(i, format)) end
    return (directive:format(value):gsub("%z", "\\0"))
  end))
end

return numbers
