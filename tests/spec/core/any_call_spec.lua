-- Any function with any arguments: it works or raises an error that names a function, and a call
-- that fails has changed nothing. The debug build looks at the memory while this runs.
local lt = require "lutra"
local wide = require "wide_support"

-- Functions that would change the session, or that write files.
local left_out = {
  save_npy = true, save_safetensors = true, set_num_threads = true, set_default_device = true,
  set_default_dtype = true, set_grad_enabled = true, set_printoptions = true, with_device = true,
  no_grad = true, enable_grad = true, inference_mode = true, set_rng_state = true,
  set_fallback = true, isatty = true, terminal_width = true,
  coverage = true, breakpoint = true,
}

local function functions()
  lt.ops() -- loads those written in Lua
  local list = {}
  local function add(prefix, from)
    for name, f in pairs(from) do
      if type(f) == "function" and not left_out[name] then list[#list + 1] = {prefix .. name, f} end
    end
  end
  add("op ", lt._ops)
  add("method ", lt._methods)
  add("function ", lt)
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

local tensors = {
  function() return lt.randn(2, 3) end,
  function() return lt.randn(3) end,
  function() return lt.randn(3, 4):t() end,
  function() return lt.randn(2, 3, 4) end,
  function() return lt.randn(1):expand(3) end,
  function() return lt.randn{2, 3, requires_grad = true} end,
  function() return lt.randn{3, 3, requires_grad = true} * 2 end,
  function() return lt.tensor{1, 2, 3} end,
  function() return lt.tensor{{1, 2}, {2, 1}} end,
  function() return lt.tensor{-1, 5, 100} end,
  function() return lt.tensor{true, false, true} end,
  function() return lt.tensor{{true, false}, {true, true}} end,
  function() return lt.tensor(1) end,
  function() return lt.tensor(2.0) end,
  function() return lt.empty(0, 3) end,
  function() return lt.ones{2, 3, dtype = "bfloat16"} end,
  function() return lt.ones{2, 3, dtype = wide.dtype} end,
  function() return lt.tensor({1, 2, 3}, {dtype = "uint8"}) end,
  function() return lt.zeros{2, 3, device = "meta"} end,
  function() return lt.zeros{3, dtype = "int64", device = "meta"} end,
  function() return lt.randn(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1) end,
}

local others = {
  function() return nil end, function() return true end, function() return {} end,
  function() return {1, 2} end, function() return {0} end, function() return {{1, 2}} end,
  function() return {1, "a"} end, function() return {dim = 1} end,
  function() return {keepdim = true, dim = -1} end, function() return {2, 3, dtype = "int8"} end,
  function() return {lt.randn(2), lt.randn(2)} end, function() return lt.randn(2, 3).shape end,
  function() return print end, function() return lt.Generator(1) end,
}
for _, constant in ipairs{0, 1, 2, 3, -1, 2.5, 0 / 0, math.huge, math.maxinteger, math.mininteger,
    "mean", "float64", "meta", "2:3", false} do
  others[#others + 1] = function() return constant end
end

local function any(list) return list[math.random(#list)] end
local function any_value() return any(math.random() < 0.5 and tensors or others)() end

-- What a tensor holds, as text; NaN is NaN.
local function content(t)
  if t.is_meta then return "meta" end
  local parts = {}
  local function walk(x)
    if type(x) ~= "table" then
      parts[#parts + 1] = tostring(x)
      return
    end
    for _, y in ipairs(x) do walk(y) end
  end
  walk(t:totable())
  return tostring(t.shape) .. t.dtype .. table.concat(parts, " ")
end

local function check_one(name, f)
  local arguments = {n = math.random(0, 4)}
  for i = 1, arguments.n do arguments[i] = any_value() end
  if math.random() < 0.7 then
    arguments[1], arguments.n = any(tensors)(), math.max(1, arguments.n)
  end
  local before = {}
  for i = 1, arguments.n do
    if lt.is_tensor(arguments[i]) then before[i] = content(arguments[i]) end
  end
  local results = table.pack(pcall(f, table.unpack(arguments, 1, arguments.n)))
  if not results[1] then
    assert.equal("string", type(results[2]), name)
    assert.matches(": ", results[2], 1, true)
    assert.is_nil(results[2]:find("attempt to ", 1, true), results[2])
    for i, old in pairs(before) do assert.equal(old, content(arguments[i]), name) end
    return
  end
  for i = 2, results.n do
    local t = results[i]
    if lt.is_tensor(t) then
      assert.matches("^tensor[{(]", tostring(t), nil, nil, name)
      if t.requires_grad then pcall(function() t:sum():backward() end) end
    end
  end
end

describe("any call", function()
  it("works or fails as a whole", function()
    math.randomseed(20, 24)
    local state, all, device = lt.get_rng_state(), functions(), lt.get_default_device()
    for _ = 1, 6000 do
      local entry = any(all)
      check_one(entry[1], entry[2])
    end
    lt.set_rng_state(state)
    math.randomseed()
    assert.is_true(lt.is_grad_enabled())
    assert.equal(device, lt.get_default_device())
  end)

  it("of an index works or fails as a whole", function()
    math.randomseed(20, 25)
    for _ = 1, 3000 do
      local x, key, value = any(tensors)(), any_value(), any_value()
      if math.random() < 0.5 then key = {key, any_value()} end
      local old = content(x)
      local ok, message = pcall(function() return x[key] end)
      assert.is_true(ok or type(message) == "string" and message:find(": ", 1, true) ~= nil)
      assert.equal(old, content(x))
      if not pcall(function() x[key] = value end) then assert.equal(old, content(x)) end
    end
    math.randomseed()
  end)
end)
