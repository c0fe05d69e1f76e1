--- Errors as people read them: the message, what was being computed, then the lines of their code
-- that led to it.
--
-- The line that the message is about, else the innermost of the user's, is shown with marks and
-- its neighbours; other frames are one line each. Frames of the prompt itself are left out; those
-- of the library are one line together -- unless the error is the library's own. Nothing here is
-- done before there is an error.

local host = require "lutra.repl.host"
local caret = require "lutra.repl.caret"
local show = require "lutra.repl.show"
local source = require "lutra.repl.source"

local traceback = {}

local most_frames = 22 -- of a deep recursion the first and the last are shown

local here = debug.getinfo(1, "S").source
local repl_folder = here:match "^(.*[/\\])traceback%.lua$" or "@lutra/repl/"
local library_folder = repl_folder:match "^(.*[/\\])repl[/\\]$" or "@lutra/"

local function starts(text, prefix) return text:sub(1, #prefix) == prefix end

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

local function is_library(info) return starts(info.source, library_folder) end

-- For what only adds to a traceback: f(...), or nil when it fails.
local function attempt(f, ...)
  local ok, result = pcall(f, ...)
  return ok and result or nil
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

-- Adds the text of the frame at `level` to `texts`, if it is one to show. With `options.brief` the
-- frames of the library are one text. options.block is the source below the frame at options.level.
local function add_frame(texts, co, level, options)
  local info = debug.getinfo(co, level, "Slntf")
  if not info or not is_wanted(info) then return end
  if options.brief and is_library(info) then
    if texts[#texts] ~= inside then texts[#texts + 1] = inside end
    return
  end
  local place = info.source:match "^[@=](.*)$" or info.short_src
  local text = ("  %s:%d: in %s"):format(place, info.currentline, frame_name(info, options.main))
  local lines = level == options.level and options.block
  if not lines and not is_library(info) then
    lines = attempt(source.quote, info.source, info.currentline)
  end
  if lines then text = text .. "\n" .. lines end
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
local function frames(co, options)
  local texts, last = {}, traceback.last_level(co)
  local level = 0
  while level <= last and #texts < most_frames // 2 do
    add_frame(texts, co, level, options)
    level = level + 1
  end
  local rest = {}
  local bottom = last
  while bottom >= level and #rest < most_frames // 2 do
    add_frame(rest, co, bottom, options)
    bottom = bottom - 1
  end
  if bottom >= level then
    texts[#texts + 1] = ("  ... %d more ..."):format(bottom - level + 1)
  end
  for i = #rest, 1, -1 do texts[#texts + 1] = rest[i] end
  return fold(texts)
end

-- Is the message about a line of the library, not of its user?
local function blames_library(message)
  local place = message:match "^([^:\n]+):%d+: "
  local ending = place and place:match "^%.%.%.(.*)$"
  if ending then return ending:find("lutra/", 1, true) ~= nil end
  return place and starts("@" .. place, library_folder)
end

-- May a message's second place be one in a program? "a.lua:1: data.txt:2: ..." is about a.lua.
local function is_program(name)
  return host.sources[name] ~= nil or name:find "%.lua$" ~= nil or name:find "^%[string " ~= nil
end

-- "a:1: b:2: text" -> {name = "b", number = 2}, "text"; nil and the message when it names no place.
-- Of several the last is where it began: coroutine.wrap puts its own in front.
local function place_of(message)
  local place, rest = nil, message
  while true do
    local file, inner = rest:match "^error loading module '[^\n]*' from file '([^\n]*)':\n\t(.*)$"
    local text = inner or rest
    local name, number, after = text:match "^(%[string \".-\"%]):(%d+): (.*)$"
    if not name then name, number, after = text:match "^([^\n:]+):(%d+): (.*)$" end
    if not name or place and not file and not is_program(name) then return place, rest end
    place, rest = {name = name, number = tonumber(number), file = file}, after
  end
end

-- The chunk of a place that no frame is at. Messages shorten a long path to its end.
local function chunk_of(place)
  if place.file then return "@" .. place.file end
  if host.sources[place.name] then return "=" .. place.name end
  local script, ending = rawget(_G, "arg") and arg[0], place.name:match "^%.%.%.(.*)$"
  if ending and type(script) == "string" and script:sub(-#ending) == ending then
    return "@" .. script
  end
  return "@" .. place.name
end

-- The level of `co` whose line gets the marks: the one the message is about; when it names none,
-- the innermost of the user's.
local function level_of(co, place, brief)
  for level = 0, math.min(traceback.last_level(co), 200) do
    local info = debug.getinfo(co, level, "Sl")
    if info.currentline > 0 and is_wanted(info) and not (brief and is_library(info)) then
      if not place then return level, info end
      if info.short_src == place.name and info.currentline == place.number then
        return level, info
      end
    end
  end
end

-- The lines around `number` of a chunk, marked by what the message says.
local function block(chunk, number, message, frame)
  local text = source.text(chunk)
  if not text then return nil end
  return source.block(text, caret.find(text, number, message, frame))
end

-- What the function of C at the top of `co` was called with: "{2, 3}, {3, 4}", tensors by shape.
local function shapes(co)
  local info = debug.getinfo(co, 0, "S")
  local lt = package.loaded["lutra"]
  if not info or info.what ~= "C" or not lt then return nil end
  local list = {}
  for i = 1, 8 do
    local name, value = debug.getlocal(co, 0, i)
    if not name or not lt.is_tensor(value) then break end
    list[i] = tostring(value.shape)
  end
  return #list > 0 and table.concat(list, ", ") or nil
end

-- "  in net (Net) > layers (Sequential) > 3 (Linear): matmul({2, 3}, {4, 5})"
local function module_chain(co, message)
  if not package.loaded["lutra.nn.module"] then return nil end
  local steps = {}
  for i, call in ipairs(require("lutra.nn.calls").chain(co)) do
    steps[i] = call.name and ("%s (%s)"):format(call.name, call.class) or call.class
  end
  if #steps == 0 then return nil end
  local op, given = message:match "^([%a_][%w_]*): ", attempt(shapes, co)
  local doing = op and given and ("%s(%s)"):format(op, given) or "forward"
  return "  in " .. table.concat(steps, " > ") .. ": " .. doing
end

-- "  hint: did you mean 'x'?"
local function hint(message, co)
  local ok, suggest = pcall(require, "lutra.repl.suggest")
  local text = ok and attempt(suggest.hint, message, co)
  return text and "  hint: " .. text or nil
end

-- Calls f where an error, and Ctrl-C, stop only it: the value's own metamethods may run.
local function guarded(f, value)
  local co = coroutine.create(f)
  local ok, text = host.resume(co, value)
  if not ok then host.reset(co) end
  return ok and text or nil
end

--- An error value as text.
function traceback.message(value)
  if type(value) == "string" then return value end
  local meta = debug.getmetatable(value)
  local has_text = type(meta) == "table" and (rawget(meta, "__tostring") or rawget(meta, "__name"))
  if type(value) == "number" or has_text then
    return guarded(tostring, value) or ("a %s was raised as an error"):format(type(value))
  end
  if value == nil then return "nil was raised as an error" end
  local text = guarded(show.value, value)
  return ("a %s was raised as an error%s"):format(type(value), text and ": " .. text or "")
end

--- The text for the error `value` that ended coroutine `co` (nil: a chunk that did not load).
-- `main` is a set of functions that are called "cell" in it.
function traceback.format(value, co, main)
  local message = traceback.message(value)
  local place, rest = place_of(message)
  local parts = {message}
  parts[#parts + 1] = attempt(hint, message, co)
  if not co then
    parts[#parts + 1] = place and attempt(block, chunk_of(place), place.number, rest)
    return table.concat(parts, "\n")
  end
  parts[#parts + 1] = attempt(module_chain, co, rest)

  local options = {main = main, brief = not blames_library(message)}
  local level, info = level_of(co, place, options.brief)
  if place and not level then -- in a coroutine that is gone, or in a file that did not load
    local lines = attempt(block, chunk_of(place), place.number, rest)
    parts[#parts + 1] = lines
    if not lines then level, info = level_of(co, nil, options.brief) end
  end
  if level then
    options.level = level
    options.block = attempt(block, info.source, info.currentline, rest, {
      callee = level > 0 and debug.getinfo(co, level - 1, "n") or nil,
      nested = info.what ~= "main" and info.linedefined == info.currentline,
    })
  end
  local texts = frames(co, options)
  local says_nothing = #texts == 0 or #texts == 1 and texts[1] == inside -- a command's own error
  if says_nothing then return table.concat(parts, "\n") end
  parts[#parts + 1] = "Traceback, the innermost call first:"
  return table.concat(parts, "\n") .. "\n" .. table.concat(texts, "\n")
end

return traceback
