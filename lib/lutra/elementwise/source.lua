--- CUDA source of the kernel for an elementwise program.
--
-- The formulas of the ops, written with the macros of mathx.h, become a function for each op and
-- compute type. The kernel's parameters are the outputs, the inputs, numbers, the number of
-- elements and, for a rank above 0, the sizes of the dimensions and the strides of each input.

local core = require "lutra.core"
local calls = require "lutra.elementwise.calls"

local source = {}

-- dtype -> the type in memory, the compute type, and the conversions between them.
local DTYPES = {
  float32 = {memory = "float", compute = "float32"},
  float64 = {memory = "double", compute = "float64"},
  float16 = {memory = "__half", compute = "float32", load = "__half2float(%s)",
    store = "__float2half(%s)", include = "#include <cuda_fp16.h>"},
  bfloat16 = {memory = "__nv_bfloat16", compute = "float32", load = "__bfloat162float(%s)",
    store = "__float2bfloat16(%s)", include = "#include <cuda_bf16.h>"},
  bool = {memory = "bool", compute = "bool", store = "(%s) != 0"},
  uint8 = {memory = "unsigned char", compute = "int32", wraps = true},
  int8 = {memory = "signed char", compute = "int32", wraps = true},
  int16 = {memory = "short", compute = "int32", wraps = true},
  int32 = {memory = "int", compute = "int32"},
  int64 = {memory = "long long", compute = "int64"},
}
-- Compute types: T, its unsigned counterpart U, the spelling M of a math function.
local TYPES = {
  float32 = {T = "float", M = "name##f", float = true},
  float64 = {T = "double", M = "name", float = true},
  int32 = {T = "int", U = "unsigned int"},
  int64 = {T = "long long", U = "unsigned long long"},
  bool = {T = "unsigned char", U = "unsigned char"},
}
local LARGEST = {float32 = "3.40282346638528859812e+38f", float16 = "65504.0f",
  bfloat16 = "3.38953138925153547590e+38f", float64 = "1.79769313486231570815e+308"}
local INTEGER = {int32 = true, int64 = true}

--- Returns whether kernels support tensors of this dtype.
function source.is_dtype(dtype) return DTYPES[dtype] ~= nil end
--- Returns whether this is a floating-point dtype that kernels support.
function source.is_float(dtype) return LARGEST[dtype] ~= nil end

local function compute_of(dtype) return DTYPES[dtype].compute end

-- Returns the dtype of a value of the program; nil for a number.
local function dtype_of(made, x)
  if not x.value then return nil end
  return made.inputs[x.value] or made[x.value - #made.inputs].result
end

--- Returns whether a kernel can compute the program. Excluded are complex numbers, integer division
-- by a tensor or by 0, as the ops report a divisor of 0, and the conversion of floats to integers,
-- for which the ops have their own rules.
function source.fits(made)
  for _, dtype in ipairs(made.inputs) do
    if not DTYPES[dtype] then return false end
  end
  for _, step in ipairs(made) do
    if not (TYPES[step.compute] and DTYPES[step.result]) then return false end
    if step.op and not calls.formulas(step.op) then return false end
    if step.op and INTEGER[step.compute] and calls.formulas(step.op).rule == "DIVIDE"
      and (step[2].value or step[2].number == 0) then return false end
    for k = 1, #step do
      local from = dtype_of(made, step[k])
      if from and TYPES[compute_of(from)].float and INTEGER[step.compute] then return false end
    end
  end
  return true
end

-- Values ----------------------------------------------------------------------------------

local function float_text(value)
  if value ~= value then return "(0.0 / 0.0)" end
  if value == math.huge then return "(1.0 / 0.0)" end
  if value == -math.huge then return "(-1.0 / 0.0)" end
  return math.type(value) == "integer" and ("%d.0"):format(value) or ("%.17g"):format(value)
end

local function integer_text(value)
  value = math.tointeger(value) or math.tointeger(value // 1) or 0
  if value == math.mininteger then return "(-9223372036854775807LL - 1)" end
  return ("%dLL"):format(value)
end

-- Returns a number in a compute type: a literal, or a parameter of the kernel.
local function number_text(state, value, compute)
  if type(value) == "boolean" then value = value and 1 or 0 end
  if compute == "bool" then return value ~= 0 and "1" or "0" end
  local integer = INTEGER[compute]
  local text = integer and integer_text(value) or float_text(value)
  if state.numbers then
    local key = (integer and "i" or "f") .. text
    if not state.numbers[key] then
      state.numbers[#state.numbers + 1] = {symbol = "c" .. #state.numbers + 1,
        type = integer and "long long" or "double", value = integer
          and (math.tointeger(value) or math.tointeger(value // 1) or 0) or value + 0.0}
      state.numbers[key] = state.numbers[#state.numbers]
    end
    text = state.numbers[key].symbol
  end
  return ("(%s)%s"):format(TYPES[compute].T, text)
end

local function converted(text, from, compute)
  local own = compute_of(from)
  if own == compute then return text end
  if compute == "bool" then return ("(%s != 0)"):format(text) end
  return ("(%s)%s"):format(TYPES[compute].T, text)
end

local function operand(state, x, compute)
  if not x.value then return number_text(state, x.number, compute) end
  return converted("v" .. x.value, dtype_of(state.made, x), compute)
end

local function step_text(state, step)
  local text = operand(state, step[1], step.compute)
  if step.op then
    local list, zero = {text}, "0"
    for k = 2, 3 do list[k] = step[k] and operand(state, step[k], step.compute) or zero end
    list[4] = number_text(state, step.a, step.compute)
    list[5] = number_text(state, step.b, step.compute)
    list[6] = LARGEST[step.result] or zero
    text = ("lt_%s::op_%s(%s)"):format(step.compute, step.op, table.concat(list, ", "))
    text = text:gsub("lt_(%w+)::op_%1", "%0")
  end
  local dtype = DTYPES[step.result]
  return dtype.wraps and ("(%s)(%s)"):format(dtype.memory, text) or text
end

-- Functions of the ops ----------------------------------------------------------------------

local mathx -- without comments and system headers, which NVRTC lacks

local function vocabulary()
  if not mathx then
    mathx = core._elementwise_texts():gsub("/%*.-%*/", ""):gsub("#include[^\n]*\n", "")
      :gsub("[ \t]+\n", "\n"):gsub("\n\n+", "\n"):gsub("^\n", "")
  end
  return mathx
end

-- Appends the functions of one compute type. `names`: the sorted list of ops computed in it.
local function write_functions(lines, compute, names)
  local types, body, words = TYPES[compute], {}, false
  for _, op in ipairs(names) do
    local row = calls.formulas(op)
    local text = types.float and row.float or row.integer
    words = words or text:gsub("M%b()", ""):find "%u%u" ~= nil or text:find "WRAP" ~= nil
    local test = row.rule == "TEST"
    local value = (test or compute == "bool") and ("(%s) != 0"):format(text)
      or ("(T)(%s)"):format(text)
    body[#body + 1] = ("static __device__ %s op_%s(T x, T y, T z, T a, T b, T MAXFINITE) {\n"
      .. "  return %s;\n}"):format(test and "bool" or "T", op, value)
  end
  lines[#lines + 1] = ("namespace lt_%s {\ntypedef %s T;"):format(compute, types.T)
  if types.U then lines[#lines + 1] = ("typedef %s U;"):format(types.U) end
  if types.float then lines[#lines + 1] = ("#define M(name) %s"):format(types.M) end
  if words then
    local kind = types.float and "LT_MATHX_FLOAT" or "LT_MATHX_INTEGER"
    lines[#lines + 1] = ("#define %s static __device__\n%s#undef %s"):format(kind, vocabulary(),
      kind)
    if compute == "bool" then lines[#lines + 1] = "#undef NOT\n#define NOT(x) (!(x))" end
  end
  table.move(body, 1, #body, #lines + 1, lines)
  if words and compute == "bool" then lines[#lines + 1] = "#undef NOT\n#define NOT(x) (~(x))" end
  if types.float then lines[#lines + 1] = "#undef M" end
  lines[#lines + 1] = "}"
end

local function add_functions(lines, made)
  local used = {}
  for _, step in ipairs(made) do
    if step.op then
      used[step.compute] = used[step.compute] or {}
      used[step.compute][step.op] = true
    end
  end
  for _, compute in ipairs {"bool", "int32", "int64", "float32", "float64"} do
    local names = {}
    for op in pairs(used[compute] or {}) do names[#names + 1] = op end
    table.sort(names)
    if #names > 0 then write_functions(lines, compute, names) end
  end
end

-- The kernel ------------------------------------------------------------------------------

local function declare(state, rank)
  local made, words = state.made, {}
  for i, out in ipairs(made.outputs) do
    words[#words + 1] = ("%s *out%d"):format(DTYPES[out.dtype].memory, i)
  end
  for i, dtype in ipairs(made.inputs) do
    words[#words + 1] = ("const %s *p%d"):format(DTYPES[dtype].memory, i)
  end
  for _, number in ipairs(state.numbers or {}) do
    words[#words + 1] = number.type .. " " .. number.symbol
  end
  words[#words + 1] = "long long n"
  for d = 1, rank do words[#words + 1] = "long long size" .. d end
  for i = 1, #made.inputs do
    for d = 1, rank do words[#words + 1] = ("long long p%d_%d"):format(i, d) end
  end
  return table.concat(words, ", ")
end

-- Returns the lines that compute the offset of each input's element.
local function find_elements(made, rank)
  local lines, starts = {}, {}
  if rank == 0 then return lines end
  for i = 1, #made.inputs do starts[i] = ("p%d_at = 0"):format(i) end
  lines[1] = "  long long rest = i, step, " .. table.concat(starts, ", ") .. ";"
  for d = rank, 1, -1 do
    local line = ("  step = rest %% size%d; rest /= size%d;"):format(d, d)
    for i = 1, #made.inputs do line = line .. (" p%d_at += step * p%d_%d;"):format(i, i, d) end
    lines[#lines + 1] = line
  end
  return lines
end

local function add_body(lines, state, rank)
  local made = state.made
  local function declared(dtype, index, text)
    lines[#lines + 1] = ("  const %s v%d = %s;"):format(TYPES[compute_of(dtype)].T, index, text)
  end
  for i, dtype in ipairs(made.inputs) do
    local element = ("p%d[%s]"):format(i, rank > 0 and ("p%d_at"):format(i) or "i")
    declared(dtype, i, (DTYPES[dtype].load or "%s"):format(element))
  end
  for i, step in ipairs(made) do declared(step.result, #made.inputs + i, step_text(state, step)) end
  for i, out in ipairs(made.outputs) do
    local text = operand(state, out, compute_of(out.dtype))
    lines[#lines + 1] = ("  out%d[i] = %s;"):format(i, (DTYPES[out.dtype].store or "%s"):format(
      text))
  end
end

local function includes(made)
  local own, lines = {}, {}
  for _, dtype in ipairs(made.inputs) do own[dtype] = true end
  for _, out in ipairs(made.outputs) do own[out.dtype] = true end
  for _, dtype in ipairs {"float16", "bfloat16"} do
    if own[dtype] then lines[#lines + 1] = DTYPES[dtype].include end
  end
  return lines
end

--- Returns the source of the kernel "elementwise" for a program with contiguous inputs, or with
-- inputs of `rank` dimensions with strides, and the list of number parameters. With
-- `pass_numbers`, numbers are parameters, so that the kernel serves other values; otherwise they
-- are literals.
function source.write(made, rank, comment, pass_numbers)
  local state = {made = made, numbers = pass_numbers and {} or nil}
  local lines, body = includes(made), {}
  lines[#lines + 1] = "// " .. comment
  lines[#lines + 1] = "#ifndef INFINITY\n#define INFINITY (1.0 / 0.0)\n#endif"
  add_functions(lines, made)
  add_body(body, state, rank)
  table.move({
    "__global__ void elementwise(" .. declare(state, rank) .. ") {",
    "  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;",
    "  if (i >= n) return;",
  }, 1, 3, #lines + 1, lines)
  local offsets = find_elements(made, rank)
  table.move(offsets, 1, #offsets, #lines + 1, lines)
  table.move(body, 1, #body, #lines + 1, lines)
  lines[#lines + 1] = "}\n"
  local numbers = {}
  for i, number in ipairs(state.numbers or {}) do numbers[i] = number.value end
  return table.concat(lines, "\n"), numbers
end

return source
