--- Source locations in error messages: "net.lua:12: text".

local host = require "lutra.repl.host"
local call_frames = require "lutra.repl.call_frames"

local source_location = {}

-- Returns whether the second location of a message may be one in a program: "a.lua:1: data.txt:2:
-- ..." is about a.lua.
local function is_program(name)
  return host.sources[name] ~= nil or name:find "%.lua$" ~= nil or name:find "^%[string " ~= nil
end

-- Returns a message without the path of a module at its beginning: "net.head: linear: ...".
local function without_path(text)
  local path, rest = text:match "^([%a_][%w_%.%[%] >]*): ([%a_][%w_]*: .*)$"
  return path and path:find "[%.%[>]" and rest or text
end

--- Splits a message: "a:1: b:2: text" -> {name = "b", number = 2}, "text"; nil and the message
-- without a location. The last of several is the origin, as coroutine.wrap adds its own in front.
-- `file` is the complete path when it is known. The path of a module before the text is left out.
function source_location.of(message)
  local place, rest = nil, message
  while true do
    local file, inner = rest:match "^error loading module '[^\n]*' from file '([^\n]*)':\n\t(.*)$"
    local text = inner or rest
    local name, number, after = text:match "^(%[string \".-\"%]):(%d+): (.*)$"
    if not name then name, number, after = text:match "^([^\n:]+):(%d+): (.*)$" end
    if not name or place and not file and not is_program(name) then
      return place, place and without_path(rest) or rest
    end
    place, rest = {name = name, number = tonumber(number), file = file}, after
  end
end

--- Returns the chunk of a location without a frame, for lutra.repl.source_lines. Messages truncate
-- a long path at its beginning.
function source_location.chunk(place)
  if place.file then return "@" .. place.file end
  if host.sources[place.name] then return "=" .. place.name end
  local script, ending = rawget(_G, "arg") and _G.arg[0], place.name:match "^%.%.%.(.*)$"
  if ending and type(script) == "string" and script:sub(-#ending) == ending then
    return "@" .. script
  end
  return "@" .. place.name
end

--- Returns whether the message names a line of the library instead of its user.
function source_location.blames_library(message)
  local name = message:match "^([^:\n]+):%d+: "
  local ending = name and name:match "^%.%.%.(.*)$"
  if ending then return ending:find("lutra/", 1, true) ~= nil end
  return name ~= nil and call_frames.is_library("@" .. name)
end

return source_location
