-- Writes the lines of programs (see world.lua). A line is text, so that what was run can be read,
-- cut down and run again. It is chosen by random numbers of a generator of its own and by what is in
-- the program's slots at the moment.
--
-- Most arguments fit the signature of what is called, and most tensors of a program have shapes that
-- fit one another, so that calls get deep; then one argument in a few is replaced by something
-- hostile.

local functions = require "functions"
local world = require "world"
local core = require "lutra.core"

local generator = {}

local all = functions.list()
local methods, others = {}, {}
for _, entry in ipairs(all) do
  local list = entry.method and methods or others
  list[#list + 1] = entry
  world.private[entry.f] = entry.private
end

-- ---- random numbers (xorshift64*) --------------------------------------------------------------------

local state = 1

--- Begins the sequence that belongs to two numbers.
function generator.seed(a, b)
  state = a * 0x9E3779B97F4A7C15 ~ (b + 1) * 0xBF58476D1CE4E5B9
  if state == 0 then state = 1 end
  for _ = 1, 4 do generator.random(2) end
end

--- An integer from 1 to n.
function generator.random(n)
  state = state ~ (state >> 12)
  state = state ~ (state << 25)
  state = state ~ (state >> 27)
  return ((state * 0x2545F4914F6CDD1D) >> 33) % n + 1
end
local random = generator.random

local function pick(list) return list[random(#list)] end
--- True n times in a hundred.
local function percent(n) return random(100) <= n end
generator.pick, generator.percent = pick, percent

-- ---- values ------------------------------------------------------------------------------------------

local n, device = 2, "cpu" -- the size that the shapes of a program have, and where its tensors are
local devices = {"cpu"}

local numbers = {
  "0", "1", "-1", "2", "3", "-2", "7", "0.5", "-0.0", "0/0", "1/0", "-1/0", "1e308", "1e-310",
  "math.maxinteger", "math.mininteger", "2^53", "9007199254740993", "2^31", "-2147483649", "1e15",
  "255", "256", "65536", "2^62", "1000", "16777217",
}
local dtypes = {"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8",
  "uint8", "bool"}
local strings = {
  "mean", "sum", "none", "floor", "trunc", "tanh", "float32", "int64", "bool", "cpu", "meta",
  "cuda:0", "cuda:7", "cuda", "default", "full", "disallow", "log", "allow", "device_to_host", "2:3",
  ":", "...", "::-1", "fan_in", "relu", "x.npy", "x.safetensors", "/nonexistent/x.npy", "newaxis",
  "time", "op", "", "weight", "bias", "grad", "data", "requires_grad", "shape", "T", "mT", "a",
}

local function quoted(text) return ("%q"):format(text) end

local function number() return pick(numbers) end

local function string_value()
  if percent(6) then return pick{'"a\\0b"', '("x"):rep(3000)', '"\\xff\\xfe"', '"%s%n%d"', '"\\n"'} end
  return quoted(pick(strings))
end

local function a_function() return pick(world.function_names) end

-- A shape as text, "2, 2".
local function shape()
  local roll = random(100)
  if roll <= 50 then return ("%d, %d"):format(n, n) end
  if roll <= 68 then return tostring(n) end
  if roll <= 74 then return "" end
  if roll <= 82 then return ("%d, %d, %d"):format(n, n, n) end
  if roll <= 86 then return ("1, %d"):format(n) end
  if roll <= 90 then return ("%d, 1"):format(n) end
  if roll <= 94 then return pick{"0", "0, " .. n, n .. ", 0"} end
  if roll <= 98 then return ("1, %d, %d, %d"):format(n, n, n) end
  return pick{"2, 3, 4, 5", "1, 1, 1, 1, 1, 1, 1, 1", "300", "40, 40"}
end

local function options(dtype, grad)
  local where = device
  if percent(4) then where = pick(devices) elseif percent(3) then where = "meta" end
  local list = {}
  if dtype then list[#list + 1] = ("dtype = %q"):format(dtype) end
  if where ~= "cpu" then list[#list + 1] = ("device = %q"):format(where) end
  if grad then list[#list + 1] = "requires_grad = true" end
  return #list > 0 and ", " .. table.concat(list, ", ") or ""
end

local function fresh()
  local s, roll = shape(), random(100)
  if s == "" then return ("lt.full({{}, %s%s})"):format(pick{"1", "2.5", "true"}, options()) end
  if roll <= 35 then return ("lt.randn{%s%s}"):format(s, options()) end
  if roll <= 60 then return ("lt.randn{%s%s}"):format(s, options(nil, true)) end
  if roll <= 68 then return ("lt.ones{%s%s}"):format(s, options(pick(dtypes))) end
  if roll <= 76 then return ("lt.randint{1, %d, {%s}%s}"):format(n + 1, s, options()) end
  if roll <= 82 then return ("lt.randn{%s%s}"):format(s, options(pick{"float64", "float16", "bfloat16"})) end
  if roll <= 88 then return ("lt.zeros{%s%s}"):format(s, options(pick{"bool", "uint8", "int32"})) end
  if roll <= 92 then return ("(lt.randn{%s%s} * 2)"):format(s, options(nil, true)) end
  if roll <= 96 then return ("lt.empty{%s%s}"):format(s, options(pick(dtypes))) end
  return ("lt.full({%s}, %s)"):format(s, number())
end

local views = {
  ":t()", ":detach()", ":unsqueeze(1)", ":narrow(1, 1, 1)", ":view(-1)", ":transpose(1, -1)", "[1]",
  "['::2']", ":requires_grad_()", ":expand(3, -1, -1)", ":as_strided({2, 2}, {1, 1})", ":squeeze()",
  ":select(1, 1)", ":clone()", ":T()", ".T", ".mT", ".data", ":diagonal()", ":flip(1)", ":contiguous()",
  ":unfold(1, 1, 1)", ":expand_as(lt.ones(5, 2, 2))", ":to('meta')", ":double()", ":int()",
}

local function slot_text(kind)
  local P, from = world.P, random(world.slots)
  for i = 0, world.slots - 1 do
    local k = (from + i) % world.slots + 1
    local value = rawget(P, k)
    if value ~= nil and (kind == nil or core.is_tensor(value) == (kind == "tensor")) then
      return ("P[%d]"):format(k), value
    end
  end
end

local function tensor()
  local text = percent(55) and slot_text "tensor" or fresh()
  if percent(14) then text = text .. pick(views) end
  if percent(1) then text = ("freed(%s)"):format(text) end
  if percent(1) then
    text = pick{"lt.ones(1):expand(2^17)", "lt.ones{1, device = 'meta'}:expand(2^62)",
      "lt.ones(1):expand(3, 2^14)", "lt.ones{1, 1, device = 'meta'}:expand(2^40, 2^40)"}
  end
  return text
end

local function list(element, most)
  local parts = {}
  for i = 1, random(most or 3) do parts[i] = element() end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function integer() return percent(80) and tostring(random(n + 1)) or pick{"0", "-1", "-2", "4"} end
local function index()
  if percent(60) then return ("lt.randint{1, %d, {%s}}"):format(n + 1, pick{"2", n, n .. "," .. n}) end
  return percent(50) and "lt.tensor{1, -1}" or tensor()
end
local function sizes() return percent(80) and "{" .. shape() .. "}" or list(integer) end

local function a_device()
  return percent(70) and quoted(pick(devices)) or pick{"'meta'", "'cuda:9'", "1", "0", tensor()}
end

-- Something that no function expects.
local function hostile()
  local roll = random(100)
  if roll <= 28 then return number() end
  if roll <= 36 then return string_value() end
  if roll <= 44 then return tensor() end
  if roll <= 52 then return slot_text() or "nil" end
  if roll <= 60 then return a_function() end
  if roll <= 64 then return ("T[%d]"):format(random(6)) end
  if roll <= 68 then return "nil" end
  if roll <= 70 then return pick{"true", "false"} end
  if roll <= 72 then return ("mt(%s)"):format(a_function()) end
  if roll <= 75 then return ("with_gc({%s, %s}, %s)"):format(tensor(), number(), a_function()) end
  if roll <= 78 then return ("proxy(%s, %s)"):format(pick{"3", "-1", "2^40", "0.5", "'a'"}, a_function()) end
  if roll <= 80 then return "cyclic()" end
  if roll <= 82 then return ("deep(%s)"):format(pick{"10", "20", "70", "250"}) end
  if roll <= 85 then return ("{%s, nil, %s}"):format(tensor(), number()) end
  if roll <= 87 then return ("{{%s, %s}, {%s}}"):format(number(), number(), number()) end
  if roll <= 89 then return ("{[%s] = %s, x = %s}"):format(pick{"0", "1.5", "-1", "true", "3"}, number(), number()) end
  if roll <= 91 then return ("coroutine.create(%s)"):format(a_function()) end
  if roll <= 93 then return pick{"io.stdout", "lt.Generator(1)", "lt.ones(2).shape", "lt", "core"} end
  if roll <= 95 then return ("lt.ones(%d):numel(), %s"):format(n, number()) end
  if roll <= 97 then return ("setmetatable({%s}, {__mode = 'kv'})"):format(tensor()) end
  return pick{"lt.randn(2):split(1)", "{lt.ones(2), {lt.ones(2)}}", "{}", "{{}}", "{{{}}}"}
end

local by_type -- type of a parameter -> function that writes a value that fits

local function callable()
  local roll = random(10)
  if roll <= 7 then return a_function() end
  if roll == 8 then return ("co(%s)"):format(a_function()) end
  return ("hooked(%s, %s, %d)"):format(a_function(), a_function(), random(60))
end

-- A function is often one that does its work and something else behind the library's back.
local function any_object()
  return slot_text "other" or pick{"lt.nn.Linear(2, 2)", "lt.nn.ReLU()", "lt.nn.Sequential(lt.nn.Linear(2, 2))"}
end

by_type = {
  Tensor = tensor, tensor = tensor, Index = index, device = a_device, callable = callable,
  Operand = function() return percent(70) and tensor() or number() end,
  ["Tensor[]"] = function() return percent(85) and list(tensor) or ("T[%d]"):format(random(6)) end,
  Scalar = function() return percent(60) and integer() or number() end,
  int = integer, integer = integer, size = integer, count = integer, dim = integer,
  position = integer, number = function() return pick{"0.5", "1", "0.1", "2", number()} end,
  float = function() return pick{"0.5", "1.0", "0.1", "1e-5", number()} end,
  bool = function() return pick{"true", "false"} end,
  boolean = function() return pick{"true", "false"} end,
  string = string_value,
  dtype = function() return quoted(pick(dtypes)) end,
  Generator = function() return percent(80) and "lt.Generator(1)" or slot_text "other" or "nil" end,
  sizes = sizes, ints = function() return list(integer) end, dims = function() return list(integer) end,
  list = function() return percent(50) and list(tensor) or percent(50) and list(hostile) or list(number) end,
  table = function()
    return pick{any_object(), ("T[%d]"):format(random(6)), list(tensor), ("dataset(3, %s)"):format(a_function()),
      "lt.data.TensorDataset(lt.ones(3, 2))"}
  end,
  any = function() return percent(50) and tensor() or hostile() end,
}

-- What a parameter is by its name, where nothing else is known.
local by_name = {
  {"^fn$", callable}, {"func", callable}, {"hook", callable}, {"path", function() return quoted(pick{"f.npy", "f.safetensors", "g"}) end},
  {"name", string_value}, {"device", a_device}, {"dtype", by_type.dtype}, {"options", function() return pick{"T[3]", "T[5]", "{}", "{lr = 0.1}"} end},
  {"^x$", tensor}, {"input", tensor}, {"tensor", tensor}, {"target", tensor}, {"module", any_object},
  {"^params?", function() return list(tensor) end}, {"^self$", any_object}, {"state", function() return pick{"T[6]", any_object()} end},
}

local function value_for(param)
  local kinds = {}
  for kind in tostring(param.type):gmatch "[^|]+" do kinds[#kinds + 1] = kind end
  local kind = pick(kinds)
  if param.name == "path" then return quoted(pick{"f.npy", "f.safetensors", "f.idx"}) end
  return (by_type[kind] or hostile)()
end

local function value_by_name(name)
  for _, row in ipairs(by_name) do
    if name:match(row[1]) then return row[2]() end
  end
  return percent(60) and tensor() or hostile()
end

-- ---- arguments ---------------------------------------------------------------------------------------

-- The arguments of a function of known parameters, in one of the three spellings.
local function with_params(params)
  local given, values = #params, {}
  while given > 0 and not params[given].required and percent(55) do given = given - 1 end
  for i = 1, given do values[i] = value_for(params[i]) end
  if given > 0 and percent(22) then values[random(given)] = hostile() end
  if given < #params and percent(25) then
    local last = params[random(#params - given) + given]
    values[#values + 1] = ("{%s = %s}"):format(last.name, percent(80) and value_for(last) or hostile())
  elseif given > 0 and percent(12) then
    for i = 1, given do
      if i > 1 then values[i] = ("%s = %s"):format(params[i].name, values[i]) end
    end
    return "{" .. table.concat(values, ", ") .. "}"
  end
  return table.concat(values, ", ")
end

local function unknown_params(f, is_method)
  local values = {}
  local info = type(f) == "function" and debug.getinfo(f, "u") or {nparams = 0, isvararg = true}
  for i = is_method and 2 or 1, info.nparams do
    values[#values + 1] = value_by_name(debug.getlocal(f, i) or "?")
  end
  if info.isvararg or percent(5) then
    for _ = 1, random(4) - 1 do
      values[#values + 1] = percent(50) and tensor() or percent(40) and callable() or hostile()
    end
  end
  if #values > 0 and percent(22) then values[random(#values)] = hostile() end
  return table.concat(values, ", ")
end

local function with_comma(arguments) return arguments == "" and "" or ", " .. arguments end

-- ---- lines -------------------------------------------------------------------------------------------

local function caller() return percent(30) and "C" or "R" end
local function wrapped(text)
  if percent(3) then return ("co(%s)"):format(text) end
  if percent(1) then return ("closed(%s)"):format(text) end
  if percent(2) then return ("hooked(%s, %s, %d)"):format(text, a_function(), random(80)) end
  return text
end

local function function_line(entry)
  local arguments
  if entry.method then
    arguments = percent(97) and tensor() or hostile()
    arguments = arguments .. with_comma(entry.params and with_params(entry.params) or unknown_params(entry.f))
  else
    arguments = entry.params and with_params(entry.params) or unknown_params(entry.f)
  end
  return ("%s(%d, %s%s)"):format(caller(), random(world.slots), wrapped(entry.path), with_comma(arguments))
end

-- A method of an object that is in a slot, mostly with that object as its self.
local method_signatures = setmetatable({}, {__mode = "k"})
local function object_line()
  local text, value = slot_text "other"
  if not text then return end
  if type(value) == "function" then
    return ("%s(%d, %s%s)"):format(caller(), random(world.slots), text, with_comma(unknown_params(print)))
  end
  if type(value) == "thread" then return ("R(1, coroutine.resume, %s)"):format(text) end
  local kind = type(value)
  local names = (kind == "table" or kind == "userdata") and functions.methods(value) or {}
  if #names == 0 then return end
  local name = pick(names)
  local self = percent(93) and text or percent(50) and hostile() or slot_text "other"
  local f = value[name]
  local arguments
  if method_signatures[f] == nil then
    local ok, found = pcall(require "lutra.repl.complete.signatures".of, f, name)
    method_signatures[f] = ok and found or false
  end
  local signature = method_signatures[f]
  if signature then
    arguments = with_params(signature.params)
  else
    arguments = unknown_params(f, true)
  end
  return ("%s(%d, %s.%s, %s%s)"):format(caller(), random(world.slots), text, name, self, with_comma(arguments))
end

local fields = {"shape", "dtype", "device", "grad", "requires_grad", "grad_fn", "data", "T", "mT", "is_leaf", "nbytes"}
local operators = {"M.__add", "M.__sub", "M.__mul", "M.__div", "M.__idiv", "M.__mod", "M.__pow", "M.__unm", "M.__band", "M.__shl",
  "M.__lt", "M.__le", "M.__eq", "M.__len", "M.__tostring", "M.__index", "M.__newindex", "equal", "less", "concat", "length"}

local function key()
  local roll = random(10)
  if roll <= 3 then return integer() end
  if roll <= 5 then return quoted(pick{"1", ":", "1:2", "::2", "...", "-1", "2:1", "1, :", "newaxis", ":, 1"}) end
  if roll == 6 then return index() end
  if roll == 7 then return "lt.ones{" .. n .. ", dtype = 'bool'}" end
  if roll == 8 then return list(function() return pick{integer(), "':'", "'1:2'", index(), "'...'", "{1, 2}", "'newaxis'"} end) end
  if roll == 9 then return quoted(pick(fields)) end
  return hostile()
end

local constructors = {
  function() return ("custom(%s, %s)"):format(a_function(), a_function()) end,
  function() return ("module(%s)"):format(a_function()) end,
  function() return ("dataset(%s, %s)"):format(pick{"3", "0", "-1", "2^40"}, a_function()) end,
  function() return ("lt.nn.Linear(%d, %d)"):format(n, n) end,
  function() return ("lt.nn.Sequential(lt.nn.Linear(%d, %d), module(%s))"):format(n, n, a_function()) end,
  function() return ("lt.optim.%s({lt.randn{%d, requires_grad = true}, P[1]}, {lr = 0.1})"):format(pick{"SGD", "Adam", "AdamW"}, n) end,
  function() return ("lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 2)), {batch_size = %s})"):format(integer()) end,
  function() return ("lt.data.DataLoader(dataset(3, %s), {collate_fn = %s})"):format(a_function(), a_function()) end,
  function() return pick{"lt.accelerator.Stream()", "lt.accelerator.Event()", "lt.cuda.Stream()", "lt.cuda.Event()"} end,
  function() return "lt.Generator(" .. integer() .. ")" end,
}

local statements = {
  function() return ("%s(%d, index, %s, %s)"):format(caller(), random(world.slots), tensor(), key()) end,
  function() return ("%s(%d, index, %s, %s)"):format(caller(), random(world.slots), tensor(), key()) end,
  function()
    return ("%s(%d, newindex, %s, %s, %s)"):format(caller(), random(world.slots), tensor(), key(), percent(60) and tensor() or hostile())
  end,
  function() return ("%s(%d, %s, %s, %s)"):format(caller(), random(world.slots), pick(operators), tensor(), percent(60) and tensor() or hostile()) end,
  function() return ("R(%d, function() return %s end)"):format(random(world.slots), constructors[random(#constructors)]()) end,
  function() return ("R(%d, function() return %s end)"):format(random(world.slots), constructors[random(#constructors)]()) end,
  function() return ("R(%d, each, %s, 5)"):format(random(world.slots), tensor()) end,
  function() return ("R(%d, X.register_hook, %s, %s)"):format(random(world.slots), tensor(), callable()) end,
  function() return ("R(%d, X.backward, %s%s)"):format(random(world.slots), tensor(), pick{"", ":sum()", ", {retain_graph = true}", ", {create_graph = true}"}) end,
  function() return ("R(%d, X.backward, (%s):sum())"):format(random(world.slots), tensor()) end,
  function() return ("R(%d, lt.autograd.grad, (%s):sum(), %s, {create_graph = %s, allow_unused = true})"):format(random(world.slots), tensor(), tensor(), pick{"true", "false"}) end,
  function() return ("R(%d, %s, %s)"):format(random(world.slots), pick{"lt.no_grad", "lt.enable_grad", "lt.inference_mode", "lt.profiler.profile", "lt.placement.trace", "lt.placement.lint", "pcall"}, callable()) end,
  function() return ("R(%d, lt.placement.guard, 'disallow', %s)"):format(random(world.slots), callable()) end,
  function() return ("bomb(%s)"):format(a_function()) end,
  function() return ("R(%d, tostring, %s)"):format(random(world.slots), slot_text() or tensor()) end,
  function() return ("P[%d] = nil"):format(random(world.slots)) end,
  function() return "collectgarbage('step', 100)" end,
  function() return ("P[%d] = %s"):format(random(world.slots), tensor()) end,
}

local rare_turn = 0

-- A line that does nothing but prepare the next one, or nil.
local function preparation(mode)
  if mode.faults and percent(10) then
    return ("arm(%q, %d)"):format(pick{"core", "core", "core+", "lua", "lua+"}, random(12))
  end
  if mode.collect and percent(6) then return ("arm('collect', %d)"):format(random(25)) end
  if percent(3) then return ("bomb(%s)"):format(a_function()) end
end

--- The next line, or two.
function generator.lines(mode)
  local before, line = preparation(mode), nil
  while not line do
    local roll = random(100)
    local entry = roll <= 35 and pick(methods) or roll <= 70 and pick(others) or nil
    if entry then
      rare_turn = rare_turn + 1
      if entry.rarity == 1 or random(entry.rarity) == 1 then line = function_line(entry) end
    elseif roll <= 82 then
      line = object_line()
    else
      line = statements[random(#statements)]()
    end
  end
  if before then return before, line end
  return line
end

--- Chooses what the tensors of the next program are like.
function generator.begin(mode)
  n = pick{1, 2, 2, 2, 3, 3, 4}
  devices = mode.devices
  device = percent(mode.elsewhere) and devices[#devices] or "cpu"
end

--- How many functions there are.
generator.count = #all

return generator
