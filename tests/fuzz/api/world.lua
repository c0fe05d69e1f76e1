-- The world that the fuzzer's programs run in: the names that their text uses, and what is checked
-- after each call.
--
-- A program is a list of lines, each a chunk of its own. P[1] to P[16] hold what earlier calls
-- returned, T[1] to T[6] tables that functions called behind the library's back change.
--
--     R(3, lt.add, P[1], 2)        P[3] = lt.add(P[1], 2), protected, the error looked at
--     C(3, lt.add, P[1], 2)        the same; a call that fails must leave its operands unchanged
--     arm("core", 2)               the second allocation of the core in the next call fails
--     bomb(free_all)               garbage whose finalizer calls free_all

local fuzz = require "fuzz"
local lt = require "lutra"
local core = require "lutra.core"
local everywhere = require("lutra.nn.module.hooks").everywhere
local signatures = require "lutra.repl.complete.signatures"

local world = {slots = 16, private = {}} -- private: function -> has it no public name?

local P, T = {}, {}
local touched = 0 -- how often a function of ours has changed tensors behind the library's back
local is_tensor = core.is_tensor

-- What checks have found: called with a kind, a key by which equal findings are recognized, and a
-- message.
world.found = function(kind, key, text) error(("%s: %s: %s"):format(kind, key, text)) end

-- ---- functions that programs hand to the library ------------------------------------------------

local raised = setmetatable({}, {
  __name = "fuzz error", __tostring = function() return "fuzz: a table" end,
})
local inside = 0

-- Functions that are called from anywhere must not call themselves without end.
local function bounded(fn)
  return function(...)
    if inside > 3 then return end
    inside = inside + 1
    local results = table.pack(pcall(fn, ...))
    inside = inside - 1
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
  end
end

local function each_tensor(fn)
  touched = touched + 1
  for i = 1, world.slots do
    local x = P[i]
    if is_tensor(x) then pcall(fn, x) end
  end
end

local functions = {
  raise = function() error("fuzz: raised", 0) end,
  raise_table = function() error(raised) end,
  raise_nil = function() error(nil) end,
  yield = function(...) return coroutine.yield(...) end,
  identity = function(...) return ... end,
  none = function() end,
  number = function() return 42 end,
  text = function() return "text" end,
  fresh_table = function() return {} end,
  fresh_tensor = function() return lt.ones(2, 2) end,
  many = function() return table.unpack({}, 1, 150) end,
  collect = function() collectgarbage() end,
  free_all = function() each_tensor(function(x) x:free() end) end,
  zero_all = function() each_tensor(function(x) x:detach():zero_() end) end,
  free_arguments = function(...)
    touched = touched + 1
    for i = 1, select("#", ...) do
      local x = select(i, ...)
      if is_tensor(x) then pcall(x.free, x) end
    end
  end,
  drop_all = function()
    for i = 1, world.slots do P[i] = nil end
    collectgarbage()
  end,
  replace_data = bounded(function() each_tensor(function(x) x.data = lt.ones(5) end) end),
  shrink_tables = function()
    for i = 1, 6 do
      for key in next, T[i] do T[i][key] = nil end
    end
  end,
  grow_tables = function()
    for i = 1, 6 do
      for k = 1, 20 do T[i][k] = k end
    end
  end,
  numbers_in_tables = function()
    for i = 1, 6 do
      for key in next, T[i] do T[i][key] = 1 end
    end
  end,
  run_op = bounded(function() return lt.ones(3, 3):mm(lt.ones(3, 3)):sum():item() end),
  run_backward = bounded(function()
    for i = 1, world.slots do
      local x = P[i]
      if is_tensor(x) and x.requires_grad then pcall(function() x:sum():backward() end) end
    end
  end),
  grad_off = function() lt.set_grad_enabled(false) end,
  garbage = function() for _ = 1, 20 do local _ = lt.ones(3) end end,
}

local names = {}
for name in pairs(functions) do names[#names + 1] = name end
table.sort(names)
--- The names of those functions.
world.function_names = names

-- ---- values that programs build -----------------------------------------------------------------

local function freed(x)
  x:free()
  return x
end

-- A table with every metamethod; __concat only where Lua's fault with it is fixed
-- (tools/build/asserting-lua).
local function mt(f)
  local meta = {__name = 5, __metatable = false, __concat = fuzz.asserting and f or nil}
  for event in ("index newindex call len pairs tostring gc close add eq lt le unm idiv band")
    :gmatch "%w+" do
    meta["__" .. event] = f
  end
  return setmetatable({}, meta)
end

local function bomb(f)
  local _ = setmetatable({}, {__gc = function() f() end})
end

local function with_gc(t, f) return setmetatable(t, {__gc = function() f() end}) end

-- A list that computes its elements.
local function proxy(n, f)
  return setmetatable({}, {
    __len = function() return n end, __index = function(_, i) return f(i) end,
  })
end

local function cyclic()
  local t = {1, 2}
  t[3], t.self = t, t
  return t
end

local function deep(n)
  local t = {1}
  for _ = 1, n do t = {t} end
  return t
end

-- What co, closed and hooked return: such a function may fail when f has done its work.
local around = setmetatable({}, {__mode = "k"})

local function wrapper(f)
  around[f] = true
  return f
end

-- f in a coroutine, which is left as it is when f yields.
local function co(f)
  return wrapper(function(...)
    local thread = coroutine.create(f)
    local results = table.pack(coroutine.resume(thread, ...))
    if coroutine.status(thread) == "suspended" then P[world.slots] = thread end
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
  end)
end

-- As co, but a coroutine that has yielded is closed.
local function closed(f)
  return wrapper(function(...)
    local thread = coroutine.create(f)
    local results = table.pack(coroutine.resume(thread, ...))
    coroutine.close(thread)
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
  end)
end

-- f with h called at every n-th instruction of Lua, until h raises an error.
local function hooked(f, h, n)
  local function hook()
    debug.sethook()
    h()
    debug.sethook(hook, "", n)
  end
  return wrapper(function(...)
    debug.sethook(hook, "", n)
    local results = table.pack(pcall(f, ...))
    debug.sethook()
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
  end)
end

local function custom(forward, backward)
  local class = lt.autograd.Function:extend "Fuzz"
  class.forward = function(_, ...) return forward(...) end
  class.backward = function(_, ...) return backward(...) end
  return class
end

local function module(forward)
  local class = lt.nn.Identity:extend "Fuzz"
  function class.forward(_, ...) return forward(...) end
  return class()
end

local function dataset(n, get)
  local class = lt.data.Dataset:extend "Fuzz"
  function class.__len() return n end
  function class.get(_, ...) return get(...) end
  return class()
end

-- ---- calls --------------------------------------------------------------------------------------

-- The values of a tensor as text, nil where they cannot be read without side effects or are many.
local function content(x)
  local ok, text = pcall(function()
    if x.is_meta or x:numel() > 64 or not x.is_cpu then return nil end
    local values = x:detach():reshape(-1):totable()
    for i = 1, #values do values[i] = tostring(values[i]) end
    return ("%s %s %s: %s"):format(x.shape, x.dtype, x.requires_grad, table.concat(values, " "))
  end)
  return ok and text or nil
end

local function contents(...)
  local list = {}
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    if is_tensor(x) then list[#list + 1] = {x, content(x)} end
  end
  return list
end

local function check_unchanged(list, message)
  local count = touched
  for _, row in ipairs(list) do
    local now = row[2] and content(row[1])
    if now and now ~= row[2] and count == touched then
      world.found("changed", message:match "([%w_]+): " or "?",
        ("a call that failed with\n  %s\nchanged an operand from\n  %s\nto\n  %s"):format(message,
          row[2], now))
    end
  end
end

-- Errors that Lua itself raises for reasons of ours.
local allowed = {"fuzz: ", "not enough memory", "C stack overflow", "stack overflow",
  "yield across a C%-call boundary", "yield from outside a coroutine", "error in error handling",
  "cannot resume"}

-- Does the function check all its arguments by a signature? Only then is an error of Lua's from
-- inside the library, as "attempt to index a nil value", a finding. A method of a table does not
-- check self.
local function has_signature(f)
  if world.private[f] then return false end
  if type(f) == "function" and debug.getlocal(f, 1) == "self" then return false end
  local ok, signature = pcall(signatures.of, f, "?")
  return ok and signature ~= nil
end

local current = "" -- the line that runs

--- Looks at what a call (of f, when that is known) raised.
function world.judge(message, f)
  if message == raised or message == nil then return end
  if type(message) ~= "string" then
    if type(message) ~= "table" and type(message) ~= "userdata" then return end
    return world.found("error", type(message), "an error that is no text: " .. type(message))
  end
  for _, pattern in ipairs(allowed) do
    if message:find(pattern) then return end
  end
  if message:find "interrupted$" then
    return world.found("slow", current:match "^%u%(%d+, ([^,]*)" or "?", message)
  end
  if message:find "%(local 'self'%)" then return end -- a method, called with another self
  local place = message:match "^[^\n]-(lib/lutra[%w_/]*%.lua:%d+): attempt to "
    or message:match "^[^\n]-(lib/lutra[%w_/]*%.lua:%d+): bad argument"
  if place then
    if f and has_signature(f) then world.found("raw", place, message) end
    return
  end
  if message:find "internal error" or message:find "%(null%)" then
    return world.found("internal", message:sub(1, 60), message)
  end
end

local function keep(slot, results)
  for i = 2, math.min(results.n, 4) do
    P[(slot + i - 3) % world.slots + 1] = results[i]
  end
end

local function call(slot, f, ...)
  local results = table.pack(fuzz.call(f, ...))
  if results[1] then
    keep(slot, results)
    return true
  end
  world.judge(results[2], f)
  return false, results[2]
end

local function call_and_compare(slot, f, ...)
  local count = touched
  local before = contents(...)
  local ok, message = call(slot, f, ...)
  if ok or count ~= touched or #before == 0 or around[f] then return end
  message = tostring(message)
  -- Where a function of ours has raised the error, the call may have been over.
  if message:find "fuzz: " or message:find "interrupted$" then return end
  check_unchanged(before, message)
end

-- The first n values of a loop over x.
local function each(x, n)
  local last
  for _, value in pairs(x) do
    last, n = value, n - 1
    if n == 0 then break end
  end
  return last
end

local env = {
  lt = lt, core = core, nn = lt.nn, F = lt.F, optim = lt.optim, data = lt.data, math = math,
  P = P, T = T, X = core._methods, O = core._ops, M = debug.getmetatable(core.ones(1)),
  R = call, C = call_and_compare, arm = fuzz.arm, bomb = bomb, mt = mt, with_gc = with_gc,
  proxy = proxy, cyclic = cyclic, deep = deep, co = co, closed = closed, hooked = hooked,
  custom = custom, module = module, dataset = dataset, freed = freed, tostring = tostring,
  collectgarbage = collectgarbage, coroutine = coroutine, getmetatable = debug.getmetatable,
  setmetatable = setmetatable, io = {stdout = io.stdout}, print = print, pairs = pairs,
  ipairs = ipairs, next = next, string = string, pcall = pcall, select = select, type = type,
  index = function(x, k) return x[k] end, newindex = function(x, k, v) x[k] = v end,
  length = function(x) return #x end, concat = function(a, b) return a .. b end,
  less = function(a, b) return a < b end, equal = function(a, b) return a == b end,
  construct = function(f) return f() end, each = each,
}

-- A function that the library takes for an iterator would never end.
local turns = 0
local function finite(f)
  return function(...)
    turns = turns + 1
    if turns > 300 then error("fuzz: called without end", 0) end
    return f(...)
  end
end
for name, f in pairs(functions) do env[name] = finite(f) end
world.env, world.P = env, P

-- ---- programs -----------------------------------------------------------------------------------

-- backward with create_graph makes a cycle of gradients that only x.grad = nil breaks, as in
-- PyTorch: it would be reported as a leak.
local function without_graph(backward)
  return function(...)
    local list = table.pack(...)
    for i = 1, list.n do
      if list[i] == true then list[i] = false end
      if type(list[i]) == "table" and getmetatable(list[i]) == nil then
        list[i] = table.move(list[i], 1, #list[i], 1, {retain_graph = list[i].retain_graph})
      end
    end
    return backward(table.unpack(list, 1, list.n))
  end
end

--- Takes that out of reach. To be called when the functions' parameters are known.
function world.guard()
  local guarded = without_graph(core._methods.backward)
  core._methods.backward = guarded
  lt.autograd.backward = without_graph(lt.autograd.backward)
  core._backward = lt.autograd.backward
end

--- Forgets everything and sets what is process-wide to its defaults, for the next program.
function world.reset()
  debug.sethook()
  fuzz.move(false)
  collectgarbage("incremental", 200, 100, 13)
  for i = 1, world.slots do P[i] = nil end
  inside = 0
  for _, name in ipairs{"_scope_grad", "_scope_inference", "_scope_device"} do
    if core[name] then core[name](nil) end
  end
  if core._set_inference then core._set_inference(false) end
  lt.set_grad_enabled(true)
  lt.set_default_dtype "float32"
  pcall(lt.set_default_device, world.device or "cpu")
  pcall(lt.set_printoptions, "default")
  lt.manual_seed(1)
  everywhere.hooks = nil
  everywhere.refreshed(false)
  for i = 1, 6 do T[i] = nil end
end

--- Fills the shared tables. Tensors in them are fresh.
function world.prepare()
  local x = lt.ones(2, 2)
  T[1] = {x, lt.zeros(2, 2), lt.ones{2, 2, requires_grad = true}}
  T[2] = {2, 2}
  T[3] = {dim = 1, keepdim = true}
  T[4] = {{1, 2}, {3, 4}}
  T[5] = {2, 2, requires_grad = true, dtype = "float32"}
  T[6] = {a = x, b = lt.ones(3), c = 1}
end

--- Runs one line of a program.
function world.run(line)
  fuzz.record(line)
  current = line
  turns = 0
  local chunk, why = load(line, "=program", "t", env)
  if not chunk then error(why .. "\n" .. line) end
  local ok, message = pcall(chunk)
  debug.sethook()
  if not ok then world.judge(message) end
end

return world
