--- Times and sentences as plain text.

local texts = require "lutra.internal.plot.texts"

local plain = {}

local units = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}

--- 0.0000123 -> "12.3 µs": three digits, in the largest unit that it fills.
function plain.seconds(seconds)
  if seconds >= 999.5 then return ("%.0f s"):format(seconds) end
  for _, unit in ipairs(units) do
    if seconds >= 0.9995 * unit[1] then
      return ("%.3g %s"):format(seconds / unit[1], unit[2])
    end
  end
  return ("%.3g ns"):format(seconds * 1e9)
end

--- A sentence as lines of at most `width` columns, those after the first indented.
function plain.wrap(sentence, width)
  local lines, line = {}, ""
  for word in sentence:gmatch "%S+" do
    if line ~= "" and texts.width(line) + 1 + texts.width(word) > width then
      lines[#lines + 1] = line
      line = "  " .. word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

return plain
