--- Formats errors: the message, the modules being called, then the lines of user code that led to
-- it.
--
-- The line that the message is about, else the innermost of the user's, is shown with marks and its
-- neighbours; other frames are one line each. Frames of the prompt itself are omitted; those of the
-- library are combined to one line, unless the error is in the library. Nothing here costs anything
-- before there is an error.

local host = require "lutra.repl.host"
local error_span = require "lutra.repl.error_span"
local source_location = require "lutra.repl.source_location"
local format_value = require "lutra.repl.format_value"
local source_lines = require "lutra.repl.source_lines"
local call_frames = require "lutra.repl.call_frames"

local traceback = {}

local most_frames = 22 -- the maximum number of frames; those in the middle are omitted

-- Returns f(...), or nil when it fails: for optional parts of a traceback.
local function attempt(f, ...)
  local ok, result = pcall(f, ...)
  return ok and result or nil
end

local inside = "  (calls inside lutra)"

-- Adds the text of the frame at `level` to `texts`, if it is shown. With `options.brief` the
-- frames of the library are one text, or omitted when they are inside the line that the message is
-- about; options.level is the level of that line's frame and options.block the source shown below
-- it.
local function add_frame(texts, co, level, options)
  local info = debug.getinfo(co, level, "Slntf")
  if not info or not call_frames.is_shown(info) then return end
  local ours = call_frames.is_library(info.source)
  if options.brief and ours then
    local told = texts[#texts] == inside or #texts == 0 and level < options.level
    if not told then texts[#texts + 1] = inside end
    return
  end
  local place = info.source:match "^[@=](.*)$" or info.short_src
  local label = call_frames.label(info, options.cells)
  local text = ("  %s:%d: in %s"):format(place, info.currentline, label)
  local lines = level == options.level and options.block
  if not lines and not ours then
    lines = attempt(source_lines.quote, info.source, info.currentline)
  end
  if lines then text = text .. "\n" .. lines end
  if info.istailcall then text = text .. "\n  (tail calls)" end
  texts[#texts + 1] = text
end

-- Replaces repeated equal texts, as of a recursion, by the first and the number of others.
local function collapse_repeats(texts)
  local folded, i = {}, 1
  while i <= #texts do
    local j = i
    while texts[j + 1] == texts[i] do j = j + 1 end
    folded[#folded + 1] = texts[i]
    if j > i then folded[#folded + 1] = ("  ... the same %d more times"):format(j - i) end
    i = j + 1
  end
  return folded
end

-- Returns the frames of `co` from the innermost, as texts; of many the first and the last.
local function frames(co, options)
  local texts, last = {}, call_frames.last_level(co)
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
  return collapse_repeats(texts)
end

-- Returns the lines around `number` of a chunk, with the position of the error marked.
local function block(chunk, number, message, frame)
  local text = source_lines.text(chunk)
  if not text then return nil end
  return source_lines.block(text, error_span.find(text, number, message, frame))
end

-- Returns the arguments of the function in C at the top of `co`: "{2, 3}, {3, 4}", tensors by
-- shape.
local function shapes(co)
  local info = debug.getinfo(co, 0, "S")
  local lt = package.loaded["lutra"]
  if not info or info.what ~= "C" or not lt then return nil end
  local list = {}
  for i = 1, 8 do
    local name, value = debug.getlocal(co, 0, i)
    if not name or not lt.is_tensor(value) then break end
    list[i] = require("lutra.core")._is_freed(value) and "freed" or tostring(value.shape)
  end
  return #list > 0 and table.concat(list, ", ") or nil
end

-- Returns the modules being called: " in net (Net) > layers (Sequential) > 3 (Linear): matmul({2,
-- 3}, {4, 5})".
local function module_chain(co, message)
  if not package.loaded["lutra.nn.module"] then return nil end
  local steps = {}
  for i, call in ipairs(require("lutra.nn.calls").chain(co)) do
    local class = call.class .. (call.place and ", " .. call.place or "")
    steps[i] = call.name and ("%s (%s)"):format(call.name, class) or class
  end
  if #steps == 0 then return nil end
  local op, given = message:match "^([%a_][%w_]*): ", attempt(shapes, co)
  local doing = op and given and ("%s(%s)"):format(op, given) or "forward"
  return "  in " .. table.concat(steps, " > ") .. ": " .. doing
end

-- Returns the message, or its replacement, followed by " hint: did you mean 'x'?".
local function with_hint(message, co)
  local ok, suggest = pcall(require, "lutra.repl.suggest")
  local instead = ok and co and suggest.without_self(co)
  if instead then return instead end
  local text = ok and suggest.hint(message, co)
  return message, text and "hint: " .. text or nil
end

-- Calls f, which may run the value's metamethods, so that an error or Ctrl-C ends only this call.
local function guarded(f, value)
  local co = coroutine.create(f)
  local ok, text = host.resume(co, value)
  if not ok then host.reset(co) end
  return ok and text or nil
end

--- Returns an error value as text.
function traceback.message(value)
  if type(value) == "string" then return value end
  local meta = debug.getmetatable(value)
  local has_text = type(meta) == "table" and (rawget(meta, "__tostring") or rawget(meta, "__name"))
  if type(value) == "number" or has_text then
    return guarded(tostring, value) or ("a %s was raised as an error"):format(type(value))
  end
  if value == nil then return "nil was raised as an error" end
  local text = guarded(format_value.value, value)
  return ("a %s was raised as an error%s"):format(type(value), text and ": " .. text or "")
end

-- Removes a location that is repeated, as after an error within coroutine.wrap.
local function once(message)
  local place = message:match "^[^\n:]+:%d+: "
  while place and message:sub(#place + 1, 2 * #place) == place do
    message = message:sub(#place + 1)
  end
  return message
end

--- Returns the text for the error `value` that ended coroutine `co` (nil: a chunk that cannot be
-- compiled). `cells` is the set of functions with the label "cell".
function traceback.format(value, co, cells)
  local message, hint = with_hint(once(traceback.message(value)), co)
  local place, rest = source_location.of(message)
  local parts = {message, hint}
  if not co then
    parts[#parts + 1] = place and attempt(block, source_location.chunk(place), place.number, rest)
    return table.concat(parts, "\n")
  end
  parts[#parts + 1] = attempt(module_chain, co, rest)

  local library = source_location.blames_library(message)
  local level, info = call_frames.level_of(co, place, library)
  if place and not level then -- in a coroutine that is gone, or in a file that cannot be compiled
    local lines = attempt(block, source_location.chunk(place), place.number, rest)
    parts[#parts + 1] = lines
    if not lines then level, info = call_frames.level_of(co, nil, library) end
  end
  local options = {cells = cells, brief = not library, level = level or 0}
  options.block = level and attempt(block, info.source, info.currentline, rest, {
    callee = level > 0 and debug.getinfo(co, level - 1, "n") or nil,
    nested = info.what ~= "main" and info.linedefined == info.currentline,
  })
  local texts = frames(co, options)
  local says_nothing = #texts == 0 or #texts == 1 and texts[1] == inside -- a command's own error
  if says_nothing then return table.concat(parts, "\n") end
  parts[#parts + 1] = "Traceback, the innermost call first:"
  return table.concat(parts, "\n") .. "\n" .. table.concat(texts, "\n")
end

return traceback
