--- The modules that are being called, read from a call stack for error messages.
--
-- Nothing is recorded while modules run: a frame is the call of a module when its function is the
-- __call of its first argument. Invariant: tables are read with rawget, and no user code runs.

local names = require "lutra.internal.names"

local calls = {}

-- The number of frames that are examined at each end of a stack: each access to a frame walks the
-- stack, so that all frames of a deep stack take quadratic time.
local FRAMES = 400

local function state_of(x)
  if type(x) ~= "table" then return nil end
  local meta = debug.getmetatable(x)
  return type(meta) == "table" and rawget(meta, "__state") or nil
end

-- Returns the modules called in coroutine `co`, outermost first: a list of {module, level}.
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

-- Returns the path of module `inner` below `outer`, or nil. `seen` is the set of visited modules.
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

-- Returns the module that a replica (lutra.nn.parallel) was made from, or the module itself.
local function original(module) return state_of(module).origin or module end

--- Returns the path of module `inner` below `outer`, such as "layers.2"; nil when `outer` does not
-- contain it. A replica stands for the module that it was made from.
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

--- Returns the modules being called in coroutine `co` (nil: the running one), outermost first: a
-- list of {module, name, class, place}. `name` is a variable's name for the first module, its path
-- below the module before it for the others, or nil. `place` describes a replica ("replica 2 of 4,
-- on cuda:1"), or is nil.
function calls.chain(co)
  if co then return chain(co) end
  -- In a coroutine of its own, chain() adds no frames to the stack that it examines.
  return coroutine.wrap(chain)((coroutine.running()))
end

--- Returns the path of the innermost module being called, from a variable or the class of the
-- outermost one, as errors put it before their message: "net.blocks.3.attn.qkv: ", or
-- "Sequential.1: "; " > " comes before the class of a module that its caller does not contain.
-- Returns nil outside of a module that another one calls.
function calls.error_path()
  local list = calls.chain()
  if #list < 2 then return nil end
  local path, nested = list[1].name or list[1].class, false
  for i = 2, #list do
    local call = list[i]
    if not rawequal(call.module, list[i - 1].module) then
      nested = true
      path = path .. (call.name and "." .. call.name or " > " .. call.class)
    end
  end
  return nested and path .. ": " or nil
end

return calls
