--- A program that calls every C function of Lutra's that Lua can reach with arguments that no
-- function expects: hostile_calls_spec.lua runs it in a process of its own.
--
-- It walks over everything that is reachable from lt, from the loaded modules, from the registry
-- and from one object of each kind, upvalues and user values included. Each function that is not
-- one of Lua's own is called with values of every kind in every place, objects that were finalized
-- by hand among them. Each call may return or raise an error; nothing else. The name of each
-- function goes to stderr before its calls, so that the last line there names one that crashed.

local lt = require "lutra"
local core = require "lutra.core"
require("lutra.internal.strict_table").load_all(lt)
local host = package.loaded["lutra.repl.host"]

-- ---- functions that are not called, with the reason ------------------------------------------

local excluded = {}
if host then
  excluded[host.execute] = "starts other programs"
end
excluded[os.execute] = "starts other programs"
excluded[core._communication.job] = "starts MPI"

-- ---- Lua's own functions ---------------------------------------------------------------------

local standard = {}

local function add_standard(t)
  for _, f in pairs(t) do
    if type(f) == "function" then standard[f] = true end
  end
end

for _, name in ipairs {"string", "table", "math", "os", "io", "debug", "utf8"} do
  add_standard(_G[name])
end
local _, exit = debug.getupvalue(os.exit, 1) -- Lua's own, where the program has replaced it
if exit then standard[exit] = true end
for _, name in ipairs {"create", "isyieldable", "running", "status", "yield", "close"} do
  standard[coroutine[name]] = true
end
for _, name in ipairs {"assert", "collectgarbage", "dofile", "error", "getmetatable", "ipairs",
  "load", "loadfile", "next", "pairs", "pcall", "print", "rawequal", "rawget", "rawlen", "rawset",
  "require", "select", "setmetatable", "tonumber", "tostring", "type", "warn", "xpcall"} do
  standard[_G[name]] = true
end
local files = getmetatable(io.stdout)
add_standard(files)
add_standard(files.__index)
add_standard(getmetatable "")
add_standard {package.loadlib, package.searchpath, package.searchers[1], (ipairs {})}
local registry = debug.getregistry()
add_standard(registry["_UBOX*"] or {}) -- of buffers
add_standard(debug.getmetatable(registry._CLIBS) or {}) -- of libraries that require has loaded
for i = 3, #package.searchers do standard[package.searchers[i]] = true end

-- ---- objects of every kind -------------------------------------------------------------------

local emulated = core._device_count "cuda" > 0

-- By kind, a function that makes one.
local makers = {
  tensor = function() return lt.ones(2, 3) end,
  ["tensor of integers"] = function() return lt.tensor{1, 2} end,
  leaf = function() return lt.ones{3, requires_grad = true} end,
  result = function() return lt.ones{3, requires_grad = true} * 2 end,
  ["empty tensor"] = function()
    local x = lt.ones(3)
    x:free()
    return x
  end,
  shape = function() return lt.ones(3).shape end,
  generator = function() return lt.Generator(1) end,
  recorder = function() return core._trace.record {limit = 4} end,
  region = function()
    local recorder = core._trace.record {limit = 4}
    local region = core._trace.region "x"
    recorder:stop()
    return region
  end,
  guard = function() return core._trace.guard "allow" end,
  kernel = function() return core._kernel("", "f", {}, {}, false, "f") end,
  hook = function() return lt.ones{3, requires_grad = true}:register_hook(print) end,
}
if emulated then
  function makers.stream() return lt.cuda.Stream() end
  function makers.event() return lt.cuda.Event() end
  makers["recorded event"] = function()
    local e = lt.cuda.Event()
    e:record()
    return e
  end
end

local function make(kind)
  local ok, value = pcall(makers[kind])
  return ok and value or nil
end

local finalizers = {}
for kind in pairs(makers) do
  local meta = debug.getmetatable(make(kind))
  finalizers[kind] = type(meta) == "table" and rawget(meta, "__gc") or nil
end

-- One of each kind, then one of each that has a finalizer after a call of it.
local function make_all(list)
  for kind in pairs(makers) do list[#list + 1] = make(kind) end
  for kind, finalize in pairs(finalizers) do
    local object = make(kind)
    if object ~= nil then
      pcall(finalize, object)
      list[#list + 1] = object
    end
  end
  return list
end

local function hostile_values()
  local ended = coroutine.create(function() end)
  coroutine.resume(ended)
  local failed = coroutine.create(error)
  coroutine.resume(failed)
  local list = {42, -1, 0.5, "x", "cpu", {}, {1}, true, print, lt.add, function() end, io.stdout,
    ended, failed, coroutine.create(function() end), coroutine.running()}
  if emulated then list[#list + 1] = "cuda:0" end
  return make_all(list)
end

-- ---- the walk --------------------------------------------------------------------------------

local names, order = {}, {}

local function walk(roots)
  local seen, queue, first = {[names] = true, [order] = true, [standard] = true}, {}, 1
  local function see(value, name)
    local kind = type(value)
    local holds = kind == "table" or kind == "function" or kind == "userdata"
    if not holds or seen[value] then return end
    seen[value] = true
    queue[#queue + 1] = {value, name}
  end
  for name, root in pairs(roots) do see(root, name) end
  seen[queue] = true
  while queue[first] do
    local value, name = queue[first][1], queue[first][2]
    queue[first], first = nil, first + 1
    local kind = type(value)
    see(debug.getmetatable(value), name .. "'s metatable")
    if kind == "table" then
      for key, field in next, value do
        see(key, name .. "'s key")
        see(field, name .. "." .. tostring(key))
      end
    elseif kind == "userdata" then
      for i = 1, 8 do see((debug.getuservalue(value, i)), name .. "'s user value") end
    else
      if debug.getinfo(value, "S").what == "C" and not standard[value] and not excluded[value] then
        names[value] = name
        order[#order + 1] = value
      end
      for i = 1, 255 do
        local upvalue, held = debug.getupvalue(value, i)
        if not upvalue then break end
        see(held, name .. "'s upvalue " .. i)
      end
    end
  end
end

local roots = {lt = lt, loaded = package.loaded, registry = registry, coroutine = coroutine,
  wrap = coroutine.wrap(print), searchers = package.searchers}
for kind in pairs(makers) do roots["a " .. kind] = make(kind) end
walk(roots)

-- The functions of ops share a C function, so each is called less often.
local is_op = {}
for _, t in ipairs {core, core._ops, core._methods} do
  for name, f in pairs(t) do
    if core._ops[name] and type(f) == "function" then is_op[f] = true end
  end
end

-- ---- the calls -------------------------------------------------------------------------------

local calls = 0

local function try(f, ...)
  calls = calls + 1
  pcall(f, ...)
end

-- Of the pairs and longer lists a part is tried, another one with each function.
local function call_all(f, turn)
  local values = hostile_values()
  try(f)
  try(f, nil)
  for _, v in ipairs(values) do try(f, v) end
  values = hostile_values()
  for i, v in ipairs(values) do
    try(f, nil, v)
    if is_op[f] then
      try(f, lt.ones(2, 3), v)
      try(f, lt.ones(2, 3), v, values[i * 7 % #values + 1])
    else
      for k, w in ipairs(values) do
        if (i + k + turn) % 3 == 0 then try(f, v, w) end
        if (i + 2 * k + turn) % 7 == 0 then
          local last = values[(i * 5 + k * 3) % #values + 1]
          try(f, v, w, last)
          try(f, v, w, last, values[(i * 3 + k * 11) % #values + 1])
          try(f, v, last, w, {}, {}, "x", v)
        end
      end
    end
  end
  if not is_op[f] then
    -- Each object as the first argument once more, new: an earlier call may have closed it.
    for _, v in ipairs(hostile_values()) do
      try(f, v, v)
      try(f, v)
    end
  end
end

for turn, f in ipairs(order) do
  io.stderr:write(names[f], "\n")
  call_all(f, turn)
  if lt.get_default_device() ~= "cpu" then lt.set_default_device "cpu" end
  for _, object in ipairs(hostile_values()) do pcall(tostring, object) end
end
collectgarbage()
collectgarbage()
print(("called %d functions"):format(#order))
