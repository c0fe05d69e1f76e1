--- The frames of a call stack as people are told of them: whose a function is, what it is called.
--
-- Used for tracebacks and by the debugger, so that both name a frame alike. Reads only what
-- debug.getinfo gives.

local call_frames = {}

local here = debug.getinfo(1, "S").source
local repl_folder = here:match "^(.*[/\\])call_frames%.lua$" or "@lutra/repl/"
local library_folder = repl_folder:match "^(.*[/\\])repl[/\\]$" or "@lutra/"

local function starts(text, prefix) return text:sub(1, #prefix) == prefix end

--- Is a chunk (debug.getinfo's `source`) one of Lutra's own files?
function call_frames.is_library(chunk) return starts(chunk, library_folder) end

--- Is a function, of which debug.getinfo(f, "S") is known, neither in C nor the prompt's own?
function call_frames.is_wanted(info)
  return info.what ~= "C" and not starts(info.source, repl_folder)
end

--- The chunk of lt.breakpoint.
call_frames.breakpoint = library_folder .. "breakpoint.lua"

local kinds = {method = "method", metamethod = "metamethod"}

--- What the function of a frame is called: "method 'forward'". `info` is what debug.getinfo gives
-- for "Snf"; `cells` is a set of functions that the prompt made of what was entered, or nil.
function call_frames.label(info, cells)
  local is_file = info.source:sub(1, 1) == "@" -- :run makes one of a file, too
  if cells and cells[info.func] and not is_file then return "cell" end
  if cells and cells[info.func] or info.what == "main" then return "main chunk" end
  if not info.name then return ("function <%s:%d>"):format(info.short_src, info.linedefined) end
  return ("%s '%s'"):format(kinds[info.namewhat] or "function", info.name)
end

--- The outermost level of `co`. Going there one by one would take the square of the depth.
function call_frames.last_level(co)
  local low, high = 0, 1
  while debug.getinfo(co, high, "l") do low, high = high, high * 2 end
  while low + 1 < high do
    local middle = (low + high) // 2
    if debug.getinfo(co, middle, "l") then low = middle else high = middle end
  end
  return low
end

--- The level of `co` that an error is about, and its debug.getinfo(co, level, "Slnf"): the
-- innermost at `place` (lutra.repl.source_location), or, when that is nil, the innermost of the
-- user's. With `library`, functions of the library count as the user's. Nil when there is none.
function call_frames.level_of(co, place, library)
  for level = 0, math.min(call_frames.last_level(co), 200) do
    local info = debug.getinfo(co, level, "Slnf")
    local counts = library or not call_frames.is_library(info.source)
    if info.currentline > 0 and call_frames.is_wanted(info) and counts and (not place
        or info.short_src == place.name and info.currentline == place.number) then
      return level, info
    end
  end
end

-- ---- frames with their variables, for the debugger
--
-- A frame is a table with label ("function 'f'"), chunk (as in debug.getinfo's `source`), line,
-- library (is it one of Lutra's own), a number `height` that does not change while the frame lives
-- (calls below it, from the outermost: 0), and two functions: list() gives its variables {name,
-- kind = "local" | "upvalue" | "vararg", index, value}, the ones that hide others last;
-- set(variable, value) changes one.
--
-- Invariant: a live frame reads and writes the variables themselves; a taken one is a copy, which
-- holds values but no stack.

local FIRST, LAST = 100, 20 -- of a deep recursion these are kept: innermost, outermost

-- Names that no one wrote: "(temporary)", and what the prompt adds to a cell.
local function is_hidden(name) return name:match "^%(" or name:match "^lutra_" end

-- The variables of the frame at `level` of `co`.
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

-- The table that is the globals of a function; the program's of Lutra's functions, which have their
-- own (src/repl/private_globals.c).
local function globals_of(func, library)
  for i = 1, 255 do
    local name, value = debug.getupvalue(func, i)
    if not name then break end
    if name == "_ENV" and type(value) == "table" then return library and _G or value end
  end
  return _G
end

-- The frame at `level` of `co` without its functions, and the function that runs there; nil when
-- it is not one to show.
local function describe(co, level, last, mains)
  local info = debug.getinfo(co, level, "Slnf")
  if not info or not call_frames.is_wanted(info) then return nil end
  if info.source == call_frames.breakpoint then return nil end
  return {
    label = call_frames.label(info, mains),
    chunk = info.source,
    line = info.currentline,
    library = call_frames.is_library(info.source),
    height = last - level,
    globals = globals_of(info.func, call_frames.is_library(info.source)),
  }, info.func
end

-- Calls make(frame, level, func) for the frames of `co`, the innermost first, and returns the
-- frames. How many levels in the middle of a deep recursion were left out is `skipped` of the frame
-- before them.
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

--- Copies the frames of `co`, which has failed. mains: a set of functions that are called "cell".
function call_frames.take(co, mains)
  return collect(co, mains, function(frame, level, func)
    local list = variables(co, level, func)
    function frame.list() return list end
    function frame.set(variable, value) variable.value = value end
    return frame
  end)
end

-- Calls f(...) from outside of `co`: seen from inside, levels change with every call.
local function from_outside(co, f, ...)
  if coroutine.running() ~= co then return f(...) end
  local ok, result = coroutine.resume(coroutine.create(f), ...)
  return ok and result or error(result, 0)
end

-- A frame of `co` that reads and writes the variables of the function `func` that runs there.
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

--- The frames of `co`, which goes on later: of a coroutine that has stopped to ask.
function call_frames.live(co, mains)
  return from_outside(co, function()
    return collect(co, mains, function(frame, _, func) return make_live(co, frame, func) end)
  end)
end

return call_frames
