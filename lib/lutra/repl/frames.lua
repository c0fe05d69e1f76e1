--- The frames of a coroutine as a debugger shows them: those of Lua functions, not of the prompt.
--
-- A frame is a table with label ("function 'f'"), chunk (as in debug.getinfo's `source`), line,
-- library (is it one of Lutra's own), a number `height` that does not change while the frame lives
-- (calls below it, from the outermost: 0), and two functions: list() gives its variables {name,
-- kind = "local" | "upvalue" | "vararg", index, value}, the ones that hide others last;
-- set(variable, value) changes one.
--
-- Invariant: a live frame reads and writes the variables themselves; a taken one is a copy, which
-- holds values but no stack.

local stack = require "lutra.repl.stack"

local frames = {}

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
-- own (src/repl/own.c).
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
  if not info or not stack.is_wanted(info) or info.source == stack.breakpoint then return nil end
  return {
    label = stack.label(info, mains),
    chunk = info.source,
    line = info.currentline,
    library = stack.is_library(info.source),
    height = last - level,
    globals = globals_of(info.func, stack.is_library(info.source)),
  }, info.func
end

-- Calls make(frame, level, func) for the frames of `co`, the innermost first, and returns the
-- frames. How many levels in the middle of a deep recursion were left out is `skipped` of the frame
-- before them.
local function collect(co, mains, make)
  local last, list = stack.last_level(co), {}
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
function frames.take(co, mains)
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
  local function level() return stack.last_level(co) - frame.height end
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
function frames.live(co, mains)
  return from_outside(co, function()
    return collect(co, mains, function(frame, _, func) return make_live(co, frame, func) end)
  end)
end

return frames
