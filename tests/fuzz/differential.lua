-- The differential fuzzer: the same call of an op in several ways that must agree. It runs in
-- lutra-fuzz (program.c).
--
--     lutra-fuzz tests/fuzz/differential.lua --seed N [--seconds S]   random cases
--     lutra-fuzz tests/fuzz/differential.lua --seed N --case K        one of them, printed
--
-- A case is an op with operands of random shapes, dtypes and values. Its results on contiguous
-- operands on the CPU are compared with those on views (strided, transposed, at an offset,
-- expanded), on an emulated GPU, with more threads, in place, and with the arguments in the other
-- spellings; meta must give the same shapes, dtypes and strides. Where one way fails the others
-- must fail.

local fuzz = require "fuzz"
local root = arg[0]:match "^(.*)/tests/fuzz/[^/]*$" or "."
package.path = root .. "/lib/?.lua;" .. root .. "/lib/?/init.lua;" .. package.path

local options = {seed = 1}
for i = 1, #arg, 2 do options[arg[i]:match "^%-%-(%w+)$"] = tonumber(arg[i + 1]) or arg[i + 1] end

pcall(fuzz.emulate, "cuda:1,memory=256MiB")
local lt = require "lutra"
local core = require "lutra.core"
local examples = require "lutra.repl.help.examples"
local X = core._methods
local has_cuda = lt.cuda.is_available()

-- Ops whose results depend on more than the values of their operands.
local exempt = {
  empty = "is not initialized", empty_like = "is not initialized", new_empty = "is not initialized",
  as_strided = "reads the memory behind a view", view = "needs strides that fit",
  contiguous = "gives a view its own strides", set_data = "replaces memory",
}

local tolerance = {float64 = 1e-9, float32 = 3e-4, float16 = 8e-3, bfloat16 = 5e-2}

-- ---- random choices -----------------------------------------------------------------------------

local random = math.random
local function pick(list) return list[random(#list)] end
local function percent(n) return random(100) <= n end

local dtypes = {"float32", "float32", "float32", "float64", "float16", "bfloat16", "int64", "int64",
  "int32", "int16", "int8", "uint8", "bool"}

local function random_shape(square)
  local shape, rank = {}, pick{0, 1, 1, 2, 2, 2, 3, 3, 4}
  local n = pick{1, 2, 3, 4, 5, 17}
  for i = 1, rank do shape[i] = square and n or pick{0, 1, 1, 2, 3, 4, 5, 8, 17} end
  if percent(2) then shape = {pick{300, 1030}, pick{70, 129}} end
  return shape
end

-- A shape that may be broadcast with another.
local function partner(shape)
  local out = {}
  local first = percent(15) and math.min(#shape, 1) or 0
  for i = first + 1, #shape do out[#out + 1] = percent(12) and 1 or shape[i] end
  return out
end

-- ---- operands -----------------------------------------------------------------------------------

-- An operand is {shape, dtype, seed, special, layout}, or {value = tensor of an example}.
local function operand(shape, dtype)
  return {operand = true, shape = shape, dtype = dtype, seed = random(1 << 30),
    special = percent(6) and pick{0 / 0, 1 / 0, -1 / 0, -0.0, 0.0, 1e30}, positive = percent(20),
    layout = "contiguous"}
end

local values_of
function values_of(o)
  if o.value then return o.value:clone() end
  lt.manual_seed(o.seed)
  local x
  if #o.shape == 0 then
    local scalar = {shape = {1}}
    for key, value in pairs(o) do scalar[key] = scalar[key] or value end
    return values_of(scalar):squeeze()
  elseif o.dtype == "bool" then
    x = lt.randint(0, 2, o.shape):to "bool"
  elseif o.dtype:match "int" then
    x = lt.randint(o.dtype == "uint8" and 0 or o.positive and 1 or -5, 6, o.shape):to(o.dtype)
  else
    x = lt.randn(o.shape) * 2
    if o.positive then x = x:abs() + 0.1 end
    x = x:to(o.dtype)
    if o.special and x:numel() > 0 then
      x:view(-1)[1] = o.special
    end
  end
  if o.expanded and x:dim() > 0 and x:size(o.expanded) > 0 then
    x = x:narrow(o.expanded, 1, 1):expand(o.shape)
  end
  return x
end

local layouts = {}
function layouts.contiguous(x) return x:contiguous() end
function layouts.transposed(x)
  if x:dim() < 2 then return layouts.strided(x) end
  return x:transpose(1, -1):contiguous():transpose(1, -1)
end
function layouts.strided(x)
  local last = x:dim() + 1
  return lt.stack({x, lt.zeros_like(x)}, last):select(last, 1)
end
function layouts.offset(x)
  if x:dim() == 0 then return layouts.strided(x) end
  return lt.cat({lt.zeros_like(x), x}, 1):narrow(1, x:size(1) + 1, x:size(1))
end

-- ---- arguments ----------------------------------------------------------------------------------

local function number(dtype)
  if dtype and dtype:match "int" then return pick{0, 1, 2, 3, -1, -2} end
  return pick{0, 1, 2, -1, 0.5, -1.5, 3}
end

local make -- type of a parameter -> an argument, for a first operand of that shape and dtype
make = {
  Tensor = function(shape, dtype)
    return operand(percent(70) and shape or partner(shape), percent(85) and dtype or pick(dtypes))
  end,
  Operand = function(shape, dtype)
    return percent(65) and make.Tensor(shape, dtype) or number(dtype)
  end,
  ["Tensor[]"] = function(shape, dtype)
    local list = {}
    for i = 1, random(3) do list[i] = operand(shape, dtype) end
    return list
  end,
  Index = function(shape)
    local o = operand(percent(50) and {random(4)} or shape, "int64")
    o.index = math.max(1, math.min(table.unpack(shape, 1, math.max(#shape, 1)) or 1, 3))
    return o
  end,
  Scalar = function(_, dtype) return number(dtype) end,
  int = function() return pick{0, 1, 2, 3, -1} end,
  float = function() return pick{0.5, 1.0, 2.0, 0.1} end,
  bool = function() return percent(50) end,
  dim = function(shape) return percent(80) and random(math.max(#shape, 1)) or -1 end,
  dims = function(shape)
    local list = {random(math.max(#shape, 1))}
    if #shape > 1 and percent(50) then list[2] = list[1] % #shape + 1 end
    return list
  end,
  position = function() return pick{1, 1, 2, -1} end,
  sizes = function(shape)
    return percent(50) and {table.unpack(shape)} or {pick{-1, 1, 2}, pick{1, 2}}
  end,
  ints = function() return {pick{1, 2}, pick{1, 2}} end,
  dtype = function() return pick(dtypes) end,
  string = function() return pick{"mean", "sum", "none", "floor", "trunc", "tanh"} end,
}

-- Random arguments of an op by its parameters, nil where there is no such value.
local function by_parameters(op)
  local shape, dtype = random_shape(percent(60)), pick(dtypes)
  if percent(50) then dtype = "float32" end
  local arguments, last = {}, 0
  for i, p in ipairs(op.params) do
    if p.optional and p.type ~= "Operand" and not percent(35) then
      arguments[i] = nil
    else
      local maker = make[p.type]
      if not maker then
        if not p.optional then return nil end
      else
        local first = i == 1 and (p.type == "Tensor" or p.type == "Operand")
        arguments[i] = first and operand(shape, dtype) or maker(shape, dtype)
        last = i
      end
    end
  end
  arguments.n = last
  return arguments
end

-- The arguments of the op's example, its float tensors with other values.
local function by_example(op)
  local text = examples.of(op)
  if not text then return nil end
  local taken
  local function take(...) taken = table.pack(...) end
  local env = {lt = setmetatable({[op.name] = take}, {__index = lt}), X = X}
  local self, rest = text:match("^(.*):" .. op.name .. "_?(%b())$")
  local code = self and ("lt.%s(%s%s)"):format(op.name, self,
    rest:match "^%(%s*%)$" and "" or ", " .. rest:sub(2, -2)) or text
  local chunk = load(code, "=example", "t", env)
  if not chunk or not pcall(chunk) or not taken then return nil end
  local function convert(value)
    if core.is_tensor(value) then
      if value:is_floating_point() then
        local o = operand({table.unpack(value.shape)}, value.dtype)
        o.special = false
        return o
      end
      return {operand = true, value = value, layout = "contiguous", shape = value.shape,
        dtype = value.dtype}
    elseif type(value) == "table" and getmetatable(value) == nil then
      local out = {}
      for k, v in pairs(value) do out[k] = convert(v) end
      return out
    end
    return value
  end
  for i = 1, taken.n do taken[i] = convert(taken[i]) end
  return taken
end

-- ---- a case -------------------------------------------------------------------------------------

local function is_operand(value) return type(value) == "table" and value.operand end

-- The arguments with tensors made by fn(operand).
local function realize(arguments, fn)
  local out = {n = arguments.n}
  for key, value in pairs(arguments) do
    if is_operand(value) then
      out[key] = fn(value)
    elseif type(value) == "table" then
      out[key] = realize(value, fn)
    else
      out[key] = value
    end
  end
  return out
end

local function tensor_of(o)
  local x = values_of(o)
  if o.index then x = x:abs() % o.index + 1 end
  return x:contiguous()
end

local function show(value)
  if is_operand(value) then
    return ("%s{%s}%s%s"):format(value.dtype, table.concat(value.shape, ", "),
      value.seed and " of seed " .. value.seed or " " .. tostring(value.value),
      value.expanded and ", expanded" or "")
  elseif type(value) == "table" then
    local parts = {}
    for i = 1, value.n or #value do parts[i] = show(value[i]) end
    for key, v in pairs(value) do
      if type(key) == "string" and key ~= "n" then parts[#parts + 1] = key .. " = " .. show(v) end
    end
    return "{" .. table.concat(parts, ", ") .. "}"
  end
  return tostring(value)
end

local function flat(results)
  local out = {}
  for i = 1, results.n do
    local value = results[i]
    if type(value) == "table" and getmetatable(value) == nil then
      for _, v in ipairs(value) do out[#out + 1] = v end
    else
      out[#out + 1] = value
    end
  end
  return out
end

local function run(f, arguments)
  lt.manual_seed(7)
  local results = table.pack(fuzz.call(f, table.unpack(arguments, 1, arguments.n)))
  if not results[1] then return nil, tostring(results[2]):gsub("^[^\n]-:%d+: ", "", 1) end
  return flat(table.pack(table.unpack(results, 2, results.n)))
end

local function same_shape(a, b) return tostring(a.shape) == tostring(b.shape) end

local least_precise = 0 -- the largest tolerance of the case's operands

-- An op may compute a part of a float64 result from float32 operands in float32, as PyTorch does.
local function find_least_precise(arguments)
  for _, value in pairs(arguments) do
    if is_operand(value) then
      least_precise = math.max(least_precise, tolerance[value.dtype] or 0)
    elseif type(value) == "table" then
      find_least_precise(value)
    end
  end
end

-- What is different in two results, or nil.
local function difference(a, b)
  if not core.is_tensor(a) or not core.is_tensor(b) then
    if a ~= b then return ("%s and %s"):format(a, b) end
    return nil
  end
  if not same_shape(a, b) then return ("shapes %s and %s"):format(a.shape, b.shape) end
  if a.dtype ~= b.dtype then return ("dtypes %s and %s"):format(a.dtype, b.dtype) end
  if a.is_meta or b.is_meta or a:numel() == 0 then return nil end
  a, b = a:detach():cpu(), b:detach():cpu()
  if a.dtype:find "complex" then a, b = lt.view_as_real(a), lt.view_as_real(b) end
  local t = tolerance[a.dtype]
  if not t then
    if lt.equal(a, b) then return nil end
  else
    t = math.max(t, least_precise)
    local x, y = a:double(), b:double()
    if lt.allclose(x, y, t, t, true) then return nil end
    local finite = lt.where(y:isfinite(), y, lt.zeros_like(y))
    if lt.allclose(x, y, t, t * math.max(1, finite:abs():amax():item()), true) then return nil end
  end
  if a:numel() > 40 then return "values" end
  return ("values\n%s\nand\n%s"):format(a, b)
end

local case_text, found, reported = "", 0, {}

local function finding(kind, op, text)
  local key = kind .. " " .. op.name
  if reported[key] then return end
  reported[key] = true
  found = found + 1
  fuzz.report(("== finding %s: %s\n%s\n== program\n%s\n== end of program\n"):format(kind, op.name,
    text, case_text))
end

-- An error that says nothing of the op: Ctrl-C of the watchdog, or the limits of this process.
local function is_outside(message)
  message = tostring(message or "")
  return message:find "interrupted" or message:find "out of memory"
    or message:find "not enough memory"
end

local function compare(kind, op, want, want_error, got, got_error)
  if is_outside(want_error) or is_outside(got_error) then return end
  if want and not got then
    return finding(kind, op, "fails: " .. got_error)
  elseif got and not want then
    return finding(kind, op, "works, where contiguous operands on the CPU fail: " .. want_error)
  elseif not want then
    return
  end
  if #want ~= #got then return finding(kind, op, ("%d results and %d"):format(#want, #got)) end
  for i = 1, #want do
    local text = difference(want[i], got[i])
    if text then return finding(kind, op, ("result %d: %s"):format(i, text)) end
  end
end

-- ---- the ways -----------------------------------------------------------------------------------

local function on_views(op, f, arguments, want, why)
  if op.kind == "view" and not want then return end
  local used = {}
  local values = realize(arguments, function(o)
    local name = pick{"transposed", "strided", "offset", "contiguous"}
    used[#used + 1] = name
    return layouts[name](tensor_of(o))
  end)
  local got, message = run(f, values)
  if op.kind == "view" and not got then return end -- strides that do not fit
  case_text = case_text .. "\n-- " .. table.concat(used, ", ")
  compare("views", op, want, why, got, message)
end

local function on_expanded(op, f, arguments)
  if op.name:match "[^_]_$" then return end -- it cannot write into an expanded tensor
  local tensors = {}
  local values = realize(arguments, function(o)
    local x = tensor_of(o)
    if x:dim() > 0 and x:numel() > 0 and not o.value then x = x:narrow(1, 1, 1):expand(x.shape) end
    tensors[#tensors + 1] = x
    return x
  end)
  local i = 0
  local copies = realize(arguments, function()
    i = i + 1
    return tensors[i]:contiguous()
  end)
  local want, why = run(f, copies)
  local got, message = run(f, values)
  if op.kind == "view" and not (want and got) then return end
  compare("expanded", op, want, why, got, message)
end

local function strides(x) return table.concat({table.unpack(x:stride())}, " ") end

-- In errors about values, which meta does not have.
local about_values = {"index", "a class from", "NaN", "probabilit", "weight", "by zero",
  "true element", "numbers of at least"}

local function on_meta(op, f, arguments, want, why)
  local got, message = run(f, realize(arguments, function(o) return tensor_of(o):to "meta" end))
  if not got and message:find "meta" then return end -- it needs values
  if got and not want then
    for _, word in ipairs(about_values) do
      if why:find(word) then return end
    end
    return finding("meta", op, "works, where the CPU fails: " .. why)
  end
  compare("meta", op, want, why, got, message)
  for i = 1, #(want or {}) do
    local a, b = want[i], got and got[i]
    local both = core.is_tensor(a) and core.is_tensor(b) and b.is_meta and same_shape(a, b)
    if both and a:numel() > 0 and strides(a) ~= strides(b) then
      finding("meta strides", op, ("result %d: strides %s on the CPU, %s on meta"):format(i,
        strides(a), strides(b)))
    end
  end
end

local function on_cuda(op, f, arguments, want, why)
  local values = realize(arguments, function(o) return tensor_of(o):to "cuda:0" end)
  local got, message = run(function(...)
    local results = table.pack(f(...))
    lt.cuda.synchronize()
    return table.unpack(results, 1, results.n)
  end, values)
  compare("cuda", op, want, why, got, message)
end

local function with_threads(op, f, values, want, why)
  lt.set_num_threads(3)
  local got, message = run(f, values)
  lt.set_num_threads(1)
  compare("threads", op, want, why, got, message)
end

local function in_place(op, arguments, want)
  local values = realize(arguments, tensor_of)
  local self = values[1]
  if not core.is_tensor(self) then return end
  local before = self:clone()
  local got, message = run(X[op.name .. "_"], values)
  if not got then
    local text = difference(before, self)
    if text then
      return finding("in place", op, ("fails with\n%s\nand changes self: %s"):format(message, text))
    end
    if is_outside(message) then return end
    local same = want and core.is_tensor(want[1]) and same_shape(want[1], self)
      and want[1].dtype == self.dtype
    if same and not message:find "share memory" then
      finding("in place", op, "fails: " .. message)
    end
    return
  end
  if not want then return finding("in place", op, "works, where op out of place fails") end
  if not core.is_tensor(want[1]) then return end
  compare("in place", op, {want[1]:to(self.dtype)}, nil, {self}, nil)
end

-- The last argument by name, and all in one table.
local function in_other_spellings(op, f, values, want, why)
  if op.name == "to" then return end -- its first argument may be a dtype
  if values.n < 2 or type(values[values.n]) == "table" then return end
  for i = 1, values.n do
    if values[i] == nil then return end
  end
  local name = op.params[values.n] and op.params[values.n].name
  if not name or not op.params[values.n] then return end
  local by_name = table.move(values, 1, values.n - 1, 1, {n = values.n})
  by_name[values.n] = {[name] = values[values.n]}
  local got, message = run(f, by_name)
  compare("a trailing table", op, want, why, got, message)
  if not op.variants["function"] then return end
  local one, p = {}, op.params[1].type
  if p == "Tensor[]" or p == "sizes" or p == "ints" or p == "dims" then return end
  for i = 1, values.n do one[op.params[i].name] = values[i] end
  got, message = run(f, {one, n = 1})
  compare("one table", op, want, why, got, message)
end

-- ---- running ------------------------------------------------------------------------------------

local ops = {}
for _, op in ipairs(core.ops()) do
  local is_public = op.variants["function"] or op.variants.method
  if is_public and not exempt[op.name] then ops[#ops + 1] = op end
end

local function has_tensors(arguments)
  for _, value in pairs(arguments) do
    if is_operand(value) or (type(value) == "table" and has_tensors(value)) then return true end
  end
end

local function has_generator(op)
  for _, p in ipairs(op.params) do
    if p.type == "Generator" then return true end
  end
end

local function one_case(k)
  math.randomseed(options.seed, k)
  local op = pick(ops)
  local arguments = percent(30) and by_example(op) or by_parameters(op)
  if not arguments or not has_tensors(arguments) then return end
  case_text = ("-- seed %d, case %d\n%s%s"):format(options.seed, k, op.name, show(arguments))
  fuzz.case(case_text)
  least_precise = 0
  find_least_precise(arguments)
  local f = op.variants["function"] and core[op.name] or X[op.name]
  local values = realize(arguments, tensor_of)
  local want, why = run(f, values)
  if options.case then
    fuzz.report(case_text .. "\n" .. (why or "") .. "\n")
    for _, t in ipairs(want or {}) do fuzz.report(tostring(t) .. "\n") end
  end
  if is_outside(why) then return end
  local ways = {
    function() on_views(op, f, arguments, want, why) end,
    function() on_expanded(op, f, arguments) end,
    function() on_meta(op, f, arguments, want, why) end,
    function() in_other_spellings(op, f, realize(arguments, tensor_of), want, why) end,
    function() with_threads(op, f, values, want, why) end,
    function()
      if op.variants.in_place and not has_generator(op) then in_place(op, arguments, want) end
    end,
    function()
      if has_cuda and (options.case or percent(25)) then on_cuda(op, f, arguments, want, why) end
    end,
  }
  for _, way in ipairs(ways) do way() end
end

local first, k = fuzz.clock(), options.case or 1
lt.set_num_threads(1)
while true do
  local ok, message = pcall(one_case, k)
  lt.set_num_threads(1)
  if not ok and not is_outside(message) then error(message, 0) end
  if options.case or (fuzz.clock() - first >= (options.seconds or 10)) then break end
  k = k + 1
end
fuzz.report(("== %d calls, %d findings (seed %d)\n"):format(fuzz.calls(), found, options.seed))
os.exit(found == 0, true)
