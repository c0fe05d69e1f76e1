--- Every function of the library and every method of its objects, called with nothing, with nil and
-- with values of wrong types: it works or raises an error in the library's words, at the caller's
-- line. What Lua itself says of a local variable of the library ("attempt to index a nil value") is
-- no such error.

local devices = require "device_support"
devices.elsewhere("core/library_arguments", _ENV, {compiles = true}) -- and here
local lt = require "lutra"
local nn, optim, data = lt.nn, lt.optim, lt.data

-- Functions that change the session or the terminal.
local LEFT_OUT = {
  breakpoint = true, coverage = true, set_num_threads = true, set_default_device = true,
  set_default_dtype = true, set_printoptions = true, set_grad_enabled = true, set_device = true,
  set_stream = true, set_device_index = true, set_fallback = true,
  set_per_process_memory_fraction = true,
  set_detect_anomaly = true, set_autocast_enabled = true, set_autocast_dtype = true,
  set_autocast_cache_enabled = true, set_default_validate_args = true,
  set_checkpoint_early_stop = true,
  SummaryWriter = true, -- makes a folder
  init_process_group = true, destroy_process_group = true,
}
for _, kind in ipairs {"forward_pre", "forward", "full_backward_pre", "full_backward",
  "buffer_registration", "module_registration", "parameter_registration"} do
  LEFT_OUT["register_module_" .. kind .. "_hook"] = true
end

-- Methods that the library calls itself: a subclass brings them (update, check_group), or they are
-- no part of the object (new, of); and write, which prints.
local INTERNAL = {
  apply = {SGD = true, Adam = true, AdamW = true}, buffers = {SGD = true, Adam = true,
    AdamW = true}, check_group = {SGD = true, Adam = true, AdamW = true},
  new = {Trace = true}, of = {Findings = true}, write = {progress = true},
}

local function values()
  local function f() end
  local word = "/dev/null/at/all" -- where it is a path, nothing can be written
  local x = lt.ones(2)
  local strings = setmetatable({}, { -- an object whose fields are all strings
    __len = function() return 3 end,
    __index = function(_, key) return type(key) == "string" and key or nil end,
  })
  return {
    {n = 0}, {nil, n = 1}, {42, n = 1}, {word, n = 1}, {{}, n = 1}, {true, n = 1}, {f, n = 1},
    {0 / 0, n = 1}, {x, n = 1}, {{1, 2}, n = 1}, {{word}, n = 1},
    {{x = 1}, n = 1},
    {nil, nil, n = 2}, {42, nil, n = 2}, {f, 42, n = 2}, {42, f, n = 2}, {{}, {}, n = 2},
    {strings, n = 1}, {strings, 1, n = 2}, {x, strings, n = 2},
    {x, {}, n = 2}, {x, word, n = 2}, {x, f, n = 2}, {{x}, f, n = 2}, {{x}, {}, n = 2},
  }
end

local RAW = {"attempt to ", "bad argument #", "stack overflow", "invalid option"}

-- The calls' errors that are not in the library's words.
local function wrong(name, call, list)
  for _, given in ipairs(values()) do
    local ok, message = pcall(call, table.unpack(given, 1, given.n))
    message = not ok and tostring(message) or ""
    local raw = message:match "^[^\n]*lib/lutra/[%w_/]+%.lua:%d+:" ~= nil
    for _, text in ipairs(RAW) do raw = raw or message:find(text, 1, true) ~= nil end
    if raw then
      local shown = {}
      for i = 1, given.n do shown[i] = type(given[i]) end
      list[#list + 1] = ("%s(%s): %s"):format(name, table.concat(shown, ", "),
        message:match "^[^\n]*")
    end
  end
end

-- Runs f without what it prints.
local function quietly(f)
  local write, out = io.write, io.output()
  local real = print
  local file = io.tmpfile()
  io.output(file)
  print = function() end -- luacheck: ignore 121
  local ok, message = pcall(f)
  print = real -- luacheck: ignore 121
  io.output(out)
  io.write = write -- luacheck: ignore 122
  file:close()
  assert(ok, message)
end

local function is_class(t)
  local meta = getmetatable(t)
  return rawget(t, "__index") ~= nil or rawget(t, "__name") ~= nil
    or type(meta) == "table" and meta.__call ~= nil
end

local function each_function(name, t, seen, visit)
  if seen[t] then return end
  seen[t] = true
  local names = {}
  for key in pairs(t) do
    if type(key) == "string" and not key:match "^_" then names[#names + 1] = key end
  end
  local meta = getmetatable(t)
  for key in pairs(meta and rawget(meta, "__libraries") or {}) do names[#names + 1] = key end
  table.sort(names)
  for _, key in ipairs(names) do
    local ok, value = pcall(function() return t[key] end)
    if not ok or LEFT_OUT[key] then value = nil end
    if type(value) == "function" then visit(name .. "." .. key, value) end
    if type(value) == "table" then
      if is_class(value) and (getmetatable(value) or {}).__call then
        visit(name .. "." .. key, function(...) return value(...) end)
      elseif not is_class(value) then
        each_function(name .. "." .. key, value, seen, visit)
      end
    end
  end
end

-- Names of the methods of an object: those of its classes.
local function methods_of(object)
  local names, seen = {}, {}
  local function collect(t)
    if type(t) ~= "table" or seen[t] then return end
    seen[t] = true
    for key, value in pairs(t) do
      if type(key) == "string" and type(value) == "function" and not key:match "^_" then
        names[key] = true
      end
    end
    collect(rawget(t, "__index"))
    collect(rawget(t, "__methods"))
    collect(getmetatable(t))
  end
  collect(object)
  collect(debug.getmetatable(object))
  local list = {}
  for name in pairs(names) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local function parameter() return lt.ones{2, requires_grad = true} end
local function dataset() return data.TensorDataset(lt.ones(4, 2), lt.ones(4)) end

local OBJECTS = {
  Linear = function() return nn.Linear(2, 2) end,
  Sequential = function() return nn.Sequential(nn.Linear(2, 2), nn.ReLU()) end,
  ModuleList = function() return nn.ModuleList{nn.Linear(2, 2)} end,
  Embedding = function() return nn.Embedding(2, 2) end,
  Dropout = function() return nn.Dropout(0.5) end,
  LayerNorm = function() return nn.LayerNorm(2) end,
  GELU = function() return nn.GELU() end,
  Flatten = function() return nn.Flatten() end,
  CrossEntropyLoss = function() return nn.CrossEntropyLoss() end,
  MSELoss = function() return nn.MSELoss() end,
  SGD = function() return optim.SGD({parameter()}, {lr = 0.1}) end,
  Adam = function() return optim.Adam({parameter()}, {lr = 0.1}) end,
  AdamW = function() return optim.AdamW({parameter()}, {lr = 0.1}) end,
  TensorDataset = dataset,
  Subset = function() return data.Subset(dataset(), {1, 2}) end,
  DataLoader = function() return data.DataLoader(dataset(), {batch_size = 2}) end,
  progress = function() return lt.progress({1, 2}, {file = io.tmpfile()}) end,
  Profile = function() return (lt.profiler.profile(function() return lt.ones(2) + 1 end)) end,
  Trace = function() return lt.placement.trace(function() return lt.ones(2) + 1 end) end,
  Findings = function() return lt.placement.lint(function() return lt.ones(2) + 1 end) end,
  Timer = function()
    local now = 0
    return lt.utils.benchmark.Timer{timer = function() now = now + 1 return now end}
  end,
  Measurement = function() return lt.utils.benchmark.Measurement(1, {1, 2}) end,
  Compare = function()
    return lt.utils.benchmark.Compare{lt.utils.benchmark.Measurement(1, {1, 2})}
  end,
  elementwise = function() return lt.elementwise "x + y" end,
  hook = function() return parameter():register_hook(function() end) end,
}
if lt.cuda.is_available() then
  function OBJECTS.Kernel()
    return lt.cuda.kernel("__global__ void f(float *x) { x[0] = 1; }", "f")
  end
  function OBJECTS.DataParallel() return nn.DataParallel(nn.Linear(2, 2):cuda(), {"cuda:0"}) end
end

describe("wrong arguments are named", function()
  it("by every function of the library", function()
    local list, count = {}, 0
    lt.ops() -- loads those written in Lua
    quietly(function()
      each_function("lt", lt, {}, function(name, f)
        count = count + 1
        wrong(name, f, list)
      end)
    end)
    assert.equal("", table.concat(list, "\n"))
    assert.is_true(count > 350, count)
  end)

  local kinds = {}
  for kind in pairs(OBJECTS) do kinds[#kinds + 1] = kind end
  table.sort(kinds)
  for _, kind in ipairs(kinds) do
    it("by every method of " .. kind, function()
      local make, list = OBJECTS[kind], {}
      quietly(function()
        for _, name in ipairs(methods_of(make())) do
          if not (INTERNAL[name] and INTERNAL[name][kind]) then
            wrong(("%s:%s"):format(kind, name), function(...)
              local object = make()
              return object[name](object, ...)
            end, list)
          end
        end
      end)
      assert.equal("", table.concat(list, "\n"))
    end)
  end

  it("with what was expected, and what it got", function()
    local function says(text, f, ...)
      local ok, message = pcall(f, ...)
      assert.is_false(ok, "no error was raised")
      assert.is_truthy(message:find(text, 1, true), ("%q is not in: %s"):format(text, message))
      assert.is_truthy(message:match "^[^\n]*_spec%.lua:%d+: ", message)
    end
    local layer = nn.Linear(2, 2)
    says("apply: expected a function for argument 'fn', got nil",
      function() layer:apply(nil) end)
    says("apply: expected a function for argument 'fn', got 42", function() layer:apply(42) end)
    says("fail: expected a string for argument 'message', got nil", function() layer:fail() end)
    says("default_collate: expected a list of samples for argument 'samples', got nil",
      function() data.default_collate(nil) end)
    says("default_collate: expected at least one sample for argument 'samples', got a table",
      function() data.default_collate{} end)
    says("default_collate: expected a list of values for argument 'samples[2]', got 7",
      function() data.default_collate{{1}, 7} end)
    says("get_batch: expected an integer tensor for argument 'positions', got nil",
      function() dataset():get_batch() end)
    says("extend: expected a string for argument 'name', got nil",
      function() optim.Optimizer:extend() end)
    says("extend: expected a signature such as \"float lr = 0.1\" for argument 'settings', got a "
      .. "table",
      function() optim.Optimizer:extend("Mine", {"lr"}) end)
    says('Mine: expected a signature, got "(data? params = nil, lr)"',
      function() optim.Optimizer:extend("Mine", "lr") end)
    says("isatty: expected the number of an open file for argument 'fd', got nil",
      function() lt.isatty() end)
    says("update: expected a number for argument 'count', got the string \"x\"",
      function() lt.progress({1}, {disable = true}):update "x" end)
  end)
end)
