-- Source code of values for the lines of programs: tensors of all kinds, numbers, tables,
-- functions... A string is made from a template, in which $name stands for a string of that kind:
-- fill "{$tensor, $number}" may be '{lt.ones(2, 2), 1/0}'.

local random = require "random"
local world = require "world"
local core = require "lutra.core"

local values = {}
local pick, percent = random.pick, random.percent

-- What the tensors of a program are like: sizes that fit one another, and where they are.
local n, device, devices = 2, "cpu", {"cpu"}

--- Chooses that for the next program.
function values.begin(mode)
  n = pick{1, 2, 2, 2, 3, 3, 4}
  devices = mode.devices
  device = percent(mode.elsewhere) and devices[#devices] or "cpu"
end

local kinds = {} -- name of a kind -> function that writes a string

--- The template with its kinds replaced by texts.
local function fill(template)
  return (template:gsub("%$([%w_]+)", function(name) return kinds[name]() end))
end
values.fill = fill

-- A kind of which each template is as likely as the number before it says, in a hundred.
local function weighted(rows)
  return function()
    local roll = random.integer(100)
    for i = 1, #rows, 2 do
      roll = roll - rows[i]
      if roll <= 0 then return fill(rows[i + 1]) end
    end
    return fill(rows[#rows])
  end
end

local function one_of(list)
  return function() return fill(pick(list)) end
end

local function quoted(list)
  return function() return ("%q"):format(pick(list)) end
end

-- "a b" -> {"a", "b"}
local function words(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = word end
  return list
end

-- ---- numbers and strings ------------------------------------------------------------------------

kinds.n = function() return tostring(n) end
kinds.above_n = function() return tostring(n + 1) end
kinds.count = function() return tostring(random.integer(80)) end
kinds.slot = function() return tostring(random.integer(world.slots)) end
kinds.small = function() return tostring(random.integer(n + 1)) end
kinds.integer = weighted{80, "$small", 5, "0", 10, "-1", 5, "4"}
kinds.bool = one_of{"true", "false"}
kinds.number = one_of(words [[0 1 -1 2 3 -2 7 0.5 -0.0 0/0 1/0 -1/0 1e308 1e-310 math.maxinteger
  math.mininteger 2^53 9007199254740993 2^31 -2147483649 1e15 255 256 65536 2^62 1000 16777217]])
kinds.float = weighted{25, "0.5", 25, "1.0", 20, "0.1", 15, "1e-5", 15, "$number"}
kinds.dtype = quoted(words "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool")
kinds.known_string = quoted(words [[mean sum none floor trunc tanh float32 int64 bool cpu meta
  cuda:0 cuda:7 cuda default full disallow log allow device_to_host 2:3 : ... ::-1 fan_in relu x.npy
  x.safetensors /nonexistent/x.npy newaxis time op weight bias grad data
  requires_grad shape T mT a]])
kinds.string = weighted{94, "$known_string", 1, '"a\\0b"', 1, '("x"):rep(3000)', 1, '"\\xff\\xfe"',
  1, '"%s%n%d"', 1, '"\\n"', 1, '""'}
kinds.path = quoted(words "f.npy f.safetensors f.idx g")
kinds.some_device = function() return ("%q"):format(pick(devices)) end
kinds.device = weighted{70, "$some_device", 10, "'meta'", 5, "'cuda:9'", 5, "1", 5, "0",
  5, "$tensor"}

-- ---- tensors ------------------------------------------------------------------------------------

kinds.shape = weighted{50, "$n, $n", 18, "$n", 8, "$n, $n, $n", 4, "1, $n", 4, "$n, 1", 2, "0",
  2, "0, $n", 2, "$n, 0", 6, "1, $n, $n, $n", 1, "2, 3, 4, 5", 1, "1, 1, 1, 1, 1, 1, 1", 1, "300",
  1, "40, 40"}

-- Where a tensor is, as an option: ", device = ..." or nothing.
kinds.there = function()
  local where = percent(4) and pick(devices) or percent(3) and "meta" or device
  return where == "cpu" and "" or (", device = %q"):format(where)
end

kinds.fresh = weighted{
  6, "lt.full({}, $float)", 31, "lt.randn{$shape$there}",
  25, "lt.randn{$shape$there, requires_grad = true}", 8, "lt.ones{$shape$there, dtype = $dtype}",
  8, "lt.randint{1, $above_n, {$shape}$there}", 3, "lt.randn{$shape$there, dtype = 'float64'}",
  3, "lt.randn{$shape$there}:half()", 2, "lt.zeros{$shape$there, dtype = 'bool'}",
  2, "lt.zeros{$shape$there, dtype = 'uint8'}", 2, "lt.zeros{$shape$there, dtype = 'int32'}",
  4, "(lt.randn{$shape$there, requires_grad = true} * 2)",
  4, "lt.empty{$shape$there, dtype = $dtype}", 2, "lt.full({$shape}, $number)",
}

local views = words [[:t() :detach() :unsqueeze(1) :narrow(1,1,1) :view(-1) :transpose(1,-1) [1]
  ['::2'] :requires_grad_() :expand(3,-1,-1) :as_strided({2,2},{1,1}) :squeeze() :select(1,1)
  :clone() .T .mT .data :diagonal() :flip(1) :contiguous() :unfold(1,1,1)
  :expand_as(lt.ones(5,2,2)) :to('meta') :double() :int() .grad]]

kinds.huge = one_of{"lt.ones(1):expand(2^17)", "lt.ones{1, device = 'meta'}:expand(2^62)",
  "lt.ones(1):expand(3, 2^14)", "lt.ones{1, 1, device = 'meta'}:expand(2^40, 2^40)"}

--- The text and the value of a slot that holds a tensor ("tensor"), something else ("other") or
-- anything (nil); nil when there is none.
function values.slot(kind)
  local from = random.integer(world.slots)
  for i = 0, world.slots - 1 do
    local k = (from + i) % world.slots + 1
    local value = rawget(world.P, k)
    if value ~= nil and (kind == nil or core.is_tensor(value) == (kind == "tensor")) then
      return ("P[%d]"):format(k), value
    end
  end
end

kinds.kept = function() return (values.slot()) or "nil" end
kinds.kept_other = function() return (values.slot "other") or "nil" end

kinds.tensor = function()
  if percent(1) then return kinds.huge() end
  local text = percent(55) and values.slot "tensor" or kinds.fresh()
  if percent(14) then text = text .. pick(views) end
  return percent(1) and ("freed(%s)"):format(text) or text
end

kinds.tensors = weighted{30, "{$tensor}", 40, "{$tensor, $tensor}",
  20, "{$tensor, $tensor, $tensor}", 10, "$shared"}
kinds.index = weighted{20, "lt.randint{1, $above_n, {2}}", 20, "lt.randint{1, $above_n, {$n}}",
  20, "lt.randint{1, $above_n, {$n, $n}}", 20, "lt.tensor{1, -1}", 20, "$tensor"}
kinds.sizes = weighted{80, "{$shape}", 10, "{$integer, $integer}", 10, "{$integer}"}
kinds.integers = weighted{50, "{$integer}", 40, "{$integer, $integer}", 10,
  "{$integer, $integer, $integer}"}

-- ---- functions and objects ----------------------------------------------------------------------

kinds.fn = function() return pick(world.function_names) end
kinds.callable = weighted{75, "$fn", 10, "co($fn)", 15, "hooked($fn, $fn, $count)"}
kinds.shared = function() return ("T[%d]"):format(random.integer(6)) end
kinds.module = one_of{"lt.nn.Linear($n, $n)", "lt.nn.ReLU()", "module($fn)",
  "lt.nn.Sequential(lt.nn.Linear($n, $n), module($fn))", "lt.nn.Embedding($n, 2)"}
kinds.dataset = one_of{"dataset(3, $fn)", "dataset(0, $fn)", "dataset(2^40, $fn)",
  "lt.data.TensorDataset(lt.ones(4, 2))"}
kinds.object = weighted{50, "$kept_other", 20, "$module", 10, "$dataset", 10,
  "lt.optim.SGD({lt.randn{$n, requires_grad = true}, P[1]}, {lr = 0.1})",
  10, "lt.data.DataLoader($dataset, {batch_size = $integer, collate_fn = $fn})"}
kinds.constructor = one_of{"custom($fn, $fn)", "$module", "$dataset",
  "lt.optim.Adam({lt.randn{$n, requires_grad = true}, P[1]}, {lr = 0.1})",
  "lt.optim.AdamW({$tensor}, {lr = 0.1})", "lt.optim.SGD({$tensor}, {lr = 0.1, momentum = 0.9})",
  "lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 2)), {batch_size = $integer})",
  "lt.data.DataLoader($dataset, {collate_fn = $fn})", "lt.Generator($integer)",
  "lt.accelerator.Stream()", "lt.accelerator.Event()", "lt.cuda.Stream()", "lt.cuda.Event()",
  "lt.cuda.CUDAGraph()"}

-- Something that few functions expect.
kinds.hostile = weighted{
  28, "$number", 8, "$string", 8, "$tensor", 8, "$kept", 8, "$fn", 4, "$shared", 4, "nil",
  2, "$bool", 2, "mt($fn)", 3, "with_gc({$tensor, $number}, $fn)", 1, "proxy(3, $fn)",
  1, "proxy(-1, $fn)",
  1, "proxy(2^40, $fn)", 2, "cyclic()", 1, "deep(20)", 1, "deep(250)", 3, "{$tensor, nil, $number}",
  2, "{{$number, $number}, {$number}}", 1, "{[0] = $number, x = $number}", 1, "{[1.5] = $tensor}",
  2, "coroutine.create($fn)", 1, "lt.Generator(1)", 1, "io.stdout", 1, "lt.ones(2).shape",
  1, "lt.ones($n), $number", 1, "setmetatable({$tensor}, {__mode = 'kv'})", 1, "{}", 1, "{{}}",
  1, "{lt.ones(2), {lt.ones(2)}}", 1, "lt.randn(2):split(1)", 1, "core",
}

kinds.key = weighted{
  30, "$integer", 4, "':'", 3, "'1:2'", 3, "'::2'", 3, "'...'", 3, "'2:1'", 3, "'1, :'",
  3, "'newaxis'", 10, "$index", 8, "lt.ones{$n, dtype = 'bool'}", 6, "{$integer, ':'}",
  4, "{$index, $integer}",
  4, "{'...', $index}", 4, "{{1, 2}, 'newaxis'}", 2, "'grad'", 2, "'data'", 2, "'requires_grad'",
  2, "'shape'", 2, "'mT'", 2, "$string"}

-- ---- by the type of a parameter -----------------------------------------------------------------

-- As core.ops() and the library's signatures name the types.
local by_type = {
  Tensor = "tensor", tensor = "tensor", Index = "index", device = "device", callable = "callable",
  ["Tensor[]"] = "tensors", Scalar = "scalar", Operand = "operand", int = "integer",
  integer = "integer", size = "integer", count = "integer", dim = "integer", position = "integer",
  number = "float", float = "float", bool = "bool", boolean = "bool", string = "string",
  dtype = "dtype", Generator = "generator", sizes = "sizes", ints = "integers", dims = "integers",
  list = "list", table = "table", any = "any",
}
kinds.scalar = weighted{60, "$integer", 40, "$number"}
kinds.operand = weighted{70, "$tensor", 30, "$number"}
kinds.generator = weighted{80, "lt.Generator(1)", 20, "$kept_other"}
kinds.list = weighted{50, "$tensors", 25, "{$hostile, $hostile}", 25, "{$number, $number}"}
kinds.table = weighted{40, "$object", 20, "$shared", 20, "$tensors", 20, "$dataset"}
kinds.any = weighted{50, "$tensor", 50, "$hostile"}

-- A parameter of which only the name is known: pattern -> template.
local by_name = {
  {"^fn$", "$callable"}, {"func", "$callable"}, {"hook", "$callable"}, {"path", "$path"},
  {"name", "$string"}, {"device", "$device"}, {"dtype", "$dtype"}, {"options", "$shared"},
  {"^x$", "$tensor"}, {"input", "$tensor"}, {"tensor", "$tensor"}, {"target", "$tensor"},
  {"module", "$object"}, {"^params?", "$tensors"}, {"^self$", "$object"}, {"state", "$object"},
}

--- A value for a parameter {name, type}.
function values.of(param)
  if param.name == "path" then return fill "$path" end
  local types = words(tostring(param.type):gsub("|", " "))
  return kinds[by_type[pick(types)] or "hostile"]()
end

--- A value for a parameter of that name.
function values.named(name)
  for _, row in ipairs(by_name) do
    if name:match(row[1]) then return fill(row[2]) end
  end
  return fill(percent(60) and "$tensor" or "$hostile")
end

return values
