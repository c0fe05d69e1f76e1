--- The modules that are being called, read from a call stack when an error wants to name them.
--
-- Nothing is recorded while modules run: a call of one is a frame whose function is the __call of
-- its first argument. Invariant: reads tables raw and calls nothing of the user's.

local names = require "lutra.internal.names"

local calls = {}

local FRAMES = 400 -- of a deeper stack, as many at each end are looked at: each look walks to it

local function state_of(x)
  if type(x) ~= "table" then return nil end
  local meta = debug.getmetatable(x)
  return type(meta) == "table" and rawget(meta, "__state") or nil
end

-- The modules called in `co`, outermost first: a list of {module, level}.
local function called(co)
  local list, last = {}, require("lutra.repl.call_frames").last_level(co)
  for level = last, 0, -1 do
    if level < FRAMES or level > last - FRAMES then
      local _, module = debug.getlocal(co, level, 1)
      if state_of(module) then
        local f = debug.getinfo(co, level, "f").func
        if rawequal(f, rawget(debug.getmetatable(module), "__call")) then
          list[#list + 1] = {module, level}
        end
      end
    end
  end
  return list
end

-- The path of a module below another one; nil when it is not there.
local function path_below(outer, inner, seen)
  local state = state_of(outer)
  seen[outer] = true
  for _, name in ipairs(state.entries) do
    local child = rawget(state.fields, name)
    if state.kinds[name] == "module" and child ~= nil and not seen[child] then
      if rawequal(child, inner) then return name end
      local path = path_below(child, inner, seen)
      if path then return name .. "." .. path end
    end
  end
end

-- A replica (lutra.nn.parallel) has the places of the module that it was made from.
local function original(module) return state_of(module).origin or module end

--- The path of module `inner` below `outer`, "layers.2"; nil when it is not there.
function calls.path(outer, inner) return path_below(original(outer), original(inner), {}) end

local function chain(co)
  local list, result = called(co), {}
  for i, call in ipairs(list) do
    local module, before = call[1], result[i - 1]
    local name
    if not before then
      name = names.find(function(value) return rawequal(value, module) end, co, call[2], FRAMES)
    elseif not rawequal(before.module, module) then
      name = calls.path(before.module, module)
    end
    result[i] = {module = module, name = name, class = rawget(debug.getmetatable(module), "__name"),
      place = state_of(module).place}
  end
  return result
end

--- The modules being called in coroutine `co` (nil: the running one), outermost first: a list of
-- {module, name, class, place}. A name is a variable's for the first, a path below the one before
-- for the others, and nil when there is none. A place is a replica's: "replica 2 of 4, on cuda:1".
function calls.chain(co)
  if co then return chain(co) end
  -- From a coroutine of its own the levels of the stack are those of the stack looked at.
  return coroutine.wrap(chain)((coroutine.running()))
end

return calls
