--- The frames of a call stack as people are told of them: whose a function is, what it is called.
--
-- Used for tracebacks and by the debugger, so that both name a frame alike. Reads only what
-- debug.getinfo gives.

local stack = {}

local here = debug.getinfo(1, "S").source
local repl_folder = here:match "^(.*[/\\])stack%.lua$" or "@lutra/repl/"
local library_folder = repl_folder:match "^(.*[/\\])repl[/\\]$" or "@lutra/"

local function starts(text, prefix) return text:sub(1, #prefix) == prefix end

--- Is a chunk (debug.getinfo's `source`) one of Lutra's own files?
function stack.is_library(chunk) return starts(chunk, library_folder) end

--- Is a function, of which debug.getinfo(f, "S") is known, neither in C nor the prompt's own?
function stack.is_wanted(info)
  return info.what ~= "C" and not starts(info.source, repl_folder)
end

--- The chunk of lt.breakpoint.
stack.breakpoint = library_folder .. "breakpoint.lua"

local kinds = {method = "method", metamethod = "metamethod"}

--- What the function of a frame is called: "method 'forward'". `info` is what debug.getinfo gives
-- for "Snf"; `cells` is a set of functions that the prompt made of what was entered, or nil.
function stack.label(info, cells)
  local is_file = info.source:sub(1, 1) == "@" -- :run makes one of a file, too
  if cells and cells[info.func] and not is_file then return "cell" end
  if cells and cells[info.func] or info.what == "main" then return "main chunk" end
  if not info.name then return ("function <%s:%d>"):format(info.short_src, info.linedefined) end
  return ("%s '%s'"):format(kinds[info.namewhat] or "function", info.name)
end

--- The outermost level of `co`. Going there one by one would take the square of the depth.
function stack.last_level(co)
  local low, high = 0, 1
  while debug.getinfo(co, high, "l") do low, high = high, high * 2 end
  while low + 1 < high do
    local middle = (low + high) // 2
    if debug.getinfo(co, middle, "l") then low = middle else high = middle end
  end
  return low
end

--- The level of `co` that an error is about, and its debug.getinfo(co, level, "Slnf"): the
-- innermost at `place` (lutra.repl.place), or, when that is nil, the innermost of the user's. With
-- `library`, functions of the library count as the user's. Nil when there is none.
function stack.level_of(co, place, library)
  for level = 0, math.min(stack.last_level(co), 200) do
    local info = debug.getinfo(co, level, "Slnf")
    local counts = library or not stack.is_library(info.source)
    if info.currentline > 0 and stack.is_wanted(info) and counts and (not place
        or info.short_src == place.name and info.currentline == place.number) then
      return level, info
    end
  end
end

return stack
