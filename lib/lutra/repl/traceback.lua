--- Errors as people read them: the message, then the lines of their own code that led to it.
--
-- Frames of the prompt itself are left out; those of the library are one line together, so that
-- what stands out is the user's -- unless the error is the library's own. Source text comes from
-- the file, or from host.sources for code that no file holds (cells, -e, stdin).

local host = require "lutra.repl.host"
local show = require "lutra.repl.show"

local traceback = {}

local most_frames = 22 -- of a deep recursion the first and the last are shown

local here = debug.getinfo(1, "S").source
local repl_folder = here:match "^(.*[/\\])traceback%.lua$" or "@lutra/repl/"
local library_folder = repl_folder:match "^(.*[/\\])repl[/\\]$" or "@lutra/"

local function starts(text, prefix) return text:sub(1, #prefix) == prefix end

local function nth_line(text, wanted)
  local n = 0
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do
    n = n + 1
    if n == wanted then return line end
  end
end

local function file_line(path, wanted)
  local file = io.open(path, "r")
  if not file then return nil end
  local n = 0
  for line in file:lines() do
    n = n + 1
    if n == wanted then
      file:close()
      return line
    end
  end
  file:close()
end

-- The text of a line of the chunk `source` (as in debug.getinfo), or nil.
local function source_line(source, wanted)
  local kind, name = source:match "^([@=])(.*)$"
  if kind == "@" then return file_line(name, wanted) end
  if kind == "=" then
    local text = host.sources[name]
    return text and nth_line(text, wanted)
  end
  return nth_line(source, wanted)
end

local function quote_line(source, number)
  local line = source_line(source, number)
  if not line or not line:match "%S" then return nil end
  line = line:gsub("^%s+", ""):gsub("%s+$", ""):gsub("%c", " ")
  if #line > 100 then line = line:sub(1, 97) .. "..." end
  return ("    %4d | %s"):format(number, line)
end

local function frame_name(info, main)
  if main and main[info.func] then return "cell" end
  if info.what == "main" then return "main chunk" end
  local kinds = {method = "method", metamethod = "metamethod"}
  if info.name then
    return ("%s '%s'"):format(kinds[info.namewhat] or "function", info.name)
  end
  return "a function"
end

local function is_wanted(info)
  return info.what ~= "C" and not starts(info.source, repl_folder)
end

--- The outermost level of `co`. Going there one by one would take the square of the depth.
function traceback.last_level(co)
  local low, high = 0, 1
  while debug.getinfo(co, high, "l") do low, high = high, high * 2 end
  while low + 1 < high do
    local middle = (low + high) // 2
    if debug.getinfo(co, middle, "l") then low = middle else high = middle end
  end
  return low
end

local inside = "  (calls inside lutra)"

-- Adds the text of the frame at `level` to `texts`, if it is one to show. With `brief` the frames
-- of the library are one text.
local function add_frame(texts, co, level, main, brief)
  local info = debug.getinfo(co, level, "Slntf")
  if not info or not is_wanted(info) then return end
  if brief and starts(info.source, library_folder) then
    if texts[#texts] ~= inside then texts[#texts + 1] = inside end
    return
  end
  local place = info.source:match "^[@=](.*)$" or info.short_src
  local text = ("  %s:%d: in %s"):format(place, info.currentline, frame_name(info, main))
  if not starts(info.source, library_folder) then
    local line = quote_line(info.source, info.currentline)
    if line then text = text .. "\n" .. line end
  end
  if info.istailcall then text = text .. "\n  (tail calls)" end
  texts[#texts + 1] = text
end

-- Of equal texts in a row, as a recursion gives, the first and how many more.
local function fold(texts)
  local folded, i = {}, 1
  while i <= #texts do
    local j = i
    while texts[j + 1] == texts[i] do j = j + 1 end
    folded[#folded + 1] = texts[i]
    if j > i then folded[#folded + 1] = ("  ... the same %d times more"):format(j - i) end
    i = j + 1
  end
  return folded
end

-- The frames of `co` from the innermost, as texts; of many the first and the last.
local function frames(co, main, brief)
  local texts, last = {}, traceback.last_level(co)
  local level = 0
  while level <= last and #texts < most_frames // 2 do
    add_frame(texts, co, level, main, brief)
    level = level + 1
  end
  local rest = {}
  local bottom = last
  while bottom >= level and #rest < most_frames // 2 do
    add_frame(rest, co, bottom, main, brief)
    bottom = bottom - 1
  end
  if bottom >= level then
    texts[#texts + 1] = ("  ... %d more ..."):format(bottom - level + 1)
  end
  for i = #rest, 1, -1 do texts[#texts + 1] = rest[i] end
  return fold(texts)
end

-- Messages name a chunk by its short name, a long path by its end; this finds the line.
local function line_of_message(message)
  local name, number = message:match "^(.-):(%d+): "
  if not name then return nil end
  number = tonumber(number)
  local script = rawget(_G, "arg") and arg[0]
  local ending = name:match "^%.%.%.(.*)$"
  if ending and script and script:sub(-#ending) == ending then name = script end
  if host.sources[name] then return quote_line("=" .. name, number) end
  return quote_line("@" .. name, number)
end

-- Is the message about a line of the library, not of its user?
local function blames_library(message)
  local place = message:match "^([^:\n]+):%d+: "
  local ending = place and place:match "^%.%.%.(.*)$"
  if ending then return ending:find("lutra/", 1, true) ~= nil end
  return place and starts("@" .. place, library_folder)
end

--- An error value as text.
function traceback.message(value)
  if type(value) == "string" then return value end
  local meta = getmetatable(value)
  if type(value) == "number" or type(meta) == "table" and (meta.__tostring or meta.__name) then
    local ok, text = pcall(tostring, value)
    if ok then return text end
  end
  if value == nil then return "nil was raised as an error" end
  local ok, text = pcall(show.value, value)
  return ("a %s was raised as an error%s"):format(type(value), ok and ": " .. text or "")
end

--- The text for the error `value` that ended coroutine `co` (nil: a chunk that did not load).
-- `main` is a set of functions that are called "cell" in it.
function traceback.format(value, co, main)
  local message = traceback.message(value)
  if not co then
    local line = line_of_message(message)
    return line and message .. "\n" .. line or message
  end
  local texts = frames(co, main, not blames_library(message))
  if #texts == 0 then return message end
  return message .. "\nTraceback, the innermost call first:\n" .. table.concat(texts, "\n")
end

return traceback
