--- Call frames as they are shown to users: labels, variables, and which functions are the user's.
--
-- Tracebacks and the debugger use this module, so that both name a frame alike. It reads only the
-- results of debug.getinfo.

local call_frames = {}

local here = debug.getinfo(1, "S").source
local repl_folder = here:match "^(.*[/\\])call_frames%.lua$" or "@lutra/repl/"
local library_folder = repl_folder:match "^(.*[/\\])repl[/\\]$" or "@lutra/"

local function starts(text, prefix) return text:sub(1, #prefix) == prefix end

--- Returns whether a chunk (`source` of debug.getinfo) is one of Lutra's own files.
function call_frames.is_library(chunk) return starts(chunk, library_folder) end

--- Returns whether frames of a function are shown: it is neither written in C nor part of the
-- prompt. `info` is the result of debug.getinfo(f, "S").
function call_frames.is_shown(info)
  return info.what ~= "C" and not starts(info.source, repl_folder)
end

--- The chunk of lt.breakpoint.
call_frames.breakpoint = library_folder .. "breakpoint.lua"

local kinds = {method = "method", metamethod = "metamethod"}

--- Returns the label of a frame's function, such as "method 'forward'". `info` is the result of
-- debug.getinfo with "Snf"; `cells` is the set of functions that the prompt compiled from inputs,
-- or nil.
function call_frames.label(info, cells)
  local is_file = info.source:sub(1, 1) == "@" -- :run makes one of a file, too
  if cells and cells[info.func] and not is_file then return "cell" end
  if cells and cells[info.func] or info.what == "main" then return "main chunk" end
  if not info.name then return ("function <%s:%d>"):format(info.short_src, info.linedefined) end
  return ("%s '%s'"):format(kinds[info.namewhat] or "function", info.name)
end

--- Returns the outermost level of `co`, found by bisection: each access to a level walks the stack.
function call_frames.last_level(co)
  local low, high = 0, 1
  while debug.getinfo(co, high, "l") do low, high = high, high * 2 end
  while low + 1 < high do
    local middle = (low + high) // 2
    if debug.getinfo(co, middle, "l") then low = middle else high = middle end
  end
  return low
end

--- Returns the level of `co` that an error is about, and its debug.getinfo(co, level, "Slnf"): the
-- innermost at `place` (lutra.repl.source_location), or without `place` the innermost of the
-- user's. With `library`, functions of the library count as the user's. Returns nil when there is
-- none.
function call_frames.level_of(co, place, library)
  for level = 0, math.min(call_frames.last_level(co), 200) do
    local info = debug.getinfo(co, level, "Slnf")
    local counts = library or not call_frames.is_library(info.source)
    if info.currentline > 0 and call_frames.is_shown(info) and counts and (not place
        or info.short_src == place.name and info.currentline == place.number) then
      return level, info
    end
  end
end

-- ---- frames with their variables, for the debugger
-- A frame is a table with label ("function 'f'"), chunk (`source` of debug.getinfo), line,
-- is_library (true for Lutra's own functions), height (the number of calls below it, which does not
-- change while the frame exists), and two functions: list() returns its variables {name, kind =
-- "local" | "upvalue" | "vararg", index, value}, inner ones last, which hide outer ones;
-- set(variable, value) assigns one.
--
-- Invariant: a live frame accesses the variables themselves; a copied one holds values but no
-- stack.

local FIRST, LAST = 100, 20 -- frames that are kept of a deep recursion: innermost, outermost

-- Returns whether a variable is hidden: "(temporary)", and those that the prompt adds to a cell.
local function is_hidden(name) return name:match "^%(" or name:match "^lutra_" end

-- Returns the variables of the frame at `level` of `co`.
local function variables(co, level, func)
  local list = {}
  for i = 1, 255 do
    local name, value = debug.getupvalue(func, i)
    if not name then break end
    if not is_hidden(name) and name ~= "_ENV" then
      list[#list + 1] = {name = name, kind = "upvalue", index = i, value = value}
    end
  end
  for i = 1, math.huge do
    local name, value = debug.getlocal(co, level, -i)
    if not name then break end
    list[#list + 1] = {name = "...", kind = "vararg", index = -i, value = value}
  end
  for i = 1, 255 do
    local name, value = debug.getlocal(co, level, i)
    if not name then break end
    if not is_hidden(name) then
      list[#list + 1] = {name = name, kind = "local", index = i, value = value}
    end
  end
  return list
end

-- Returns the table of globals of a function; for Lutra's functions, which have private globals
-- (src/repl/private_globals.c), that of the program.
local function globals_of(func, library)
  for i = 1, 255 do
    local name, value = debug.getupvalue(func, i)
    if not name then break end
    if name == "_ENV" and type(value) == "table" then return library and _G or value end
  end
  return _G
end

-- Returns the frame at `level` of `co` without its functions, and the function that runs there;
-- nil for a frame that is not shown.
local function describe(co, level, last, mains)
  local info = debug.getinfo(co, level, "Slnf")
  if not info or not call_frames.is_shown(info) then return nil end
  if info.source == call_frames.breakpoint then return nil end
  return {
    label = call_frames.label(info, mains),
    chunk = info.source,
    line = info.currentline,
    is_library = call_frames.is_library(info.source),
    height = last - level,
    globals = globals_of(info.func, call_frames.is_library(info.source)),
  }, info.func
end

-- Calls make(frame, level, func) for the frames of `co`, innermost first, and returns the frames.
-- The field `skipped` of a frame is the number of levels of a deep recursion omitted after it.
local function collect(co, mains, make)
  local last, list = call_frames.last_level(co), {}
  local level = 0
  local function add()
    local frame, func = describe(co, level, last, mains)
    if frame then list[#list + 1] = make(frame, level, func) end
  end
  while level <= last and #list < FIRST do
    add()
    level = level + 1
  end
  if last - level >= LAST then
    list[#list].skipped = last - LAST + 1 - level
    level = last - LAST + 1
  end
  while level <= last do
    add()
    level = level + 1
  end
  return list
end

--- Returns copies of the frames of `co`, which has failed. mains: the set of functions with the
-- label "cell".
function call_frames.take(co, mains)
  return collect(co, mains, function(frame, level, func)
    local list = variables(co, level, func)
    function frame.list() return list end
    function frame.set(variable, value) variable.value = value end
    return frame
  end)
end

-- Calls f(...) from another coroutine: from inside `co`, levels change with every call.
local function from_outside(co, f, ...)
  if coroutine.running() ~= co then return f(...) end
  local ok, result = coroutine.resume(coroutine.create(f), ...)
  return ok and result or error(result, 0)
end

-- Makes `frame` access the variables of the function `func` that runs in `co`.
local function make_live(co, frame, func)
  local function level() return call_frames.last_level(co) - frame.height end
  local function list() return variables(co, level(), func) end
  local function set(variable, value)
    if variable.kind == "upvalue" then
      debug.setupvalue(func, variable.index, value)
    else
      debug.setlocal(co, level(), variable.index, value)
    end
    return true
  end
  function frame.list() return from_outside(co, list) end
  function frame.set(variable, value) from_outside(co, set, variable, value) end
  return frame
end

--- Returns live frames of `co`, a coroutine that has stopped at a breakpoint and continues later.
function call_frames.live(co, mains)
  return from_outside(co, function()
    return collect(co, mains, function(frame, _, func) return make_live(co, frame, func) end)
  end)
end

return call_frames
