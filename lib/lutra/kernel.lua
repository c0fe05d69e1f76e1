--- lt.cuda.kernel(source, name, options): a CUDA kernel from its source text.
--
--     local scale = lt.cuda.kernel([[
--       __global__ void scale(float *y, const float *x, float a, int n) {
--         int i = blockIdx.x * blockDim.x + threadIdx.x;
--         if (i < n) y[i] = a * x[i];
--       }]], "scale")
--     scale({(n + 255) // 256, 256}, y, x, 2, n)
--
-- A GPU's kernels are compiled by NVIDIA's NVRTC, an emulated device's by the system's C++
-- compiler. What was compiled is kept: in memory by source, name and options, on disk beside them
-- by the kind of device (src/cuda/kernel_cache.c).
--
-- Invariant: a kernel object is compiled, on the device that was current when it was made; and it
-- is never launched with arguments that its declaration does not allow.

local core = require "lutra.core"
local args = require "lutra.args"
local parameters = require "lutra.kernel.parameters"

local Kernel = {__name = "cuda kernel"}
Kernel.__index = Kernel

-- Compile errors ----------------------------------------------------------------

-- How compilers tell of an error: NVRTC, then g++ and clang++.
local FORMATS = {
  "^(.-)%((%d+)%): [%a ]*error:? ?(.*)$",
  "^(.-):(%d+):%d+: %a* ?error: (.*)$",
  "^(.-):(%d+): %a* ?error: (.*)$",
}

-- The errors of a compiler's text: a list of {file, line, message}.
local function errors_in(log)
  local found = {}
  for text in log:gmatch "[^\n]+" do
    local last = text:match "^At end of source: error:? (.*)$"
    if last then found[#found + 1] = {message = last} end
    for _, format in ipairs(FORMATS) do
      local file, line, message = text:match(format)
      if file then
        found[#found + 1] = {file = file, line = tonumber(line), message = message}
        break
      end
    end
  end
  return found
end

local function source_line(source, number)
  local i = 0
  for line in (source .. "\n"):gmatch "([^\n]*)\n" do
    i = i + 1
    if i == number then return line:match "^%s*(.-)%s*$" end
  end
end

--- What a compiler said, for people: each error with its line of the source, at most three.
local function explain(log, source, name)
  local lines, own, more = {}, name .. ".cu", 0
  for _, e in ipairs(errors_in(log)) do
    local text = e.file == own and source_line(source, e.line)
    if #lines >= 6 then
      more = more + 1
    elseif not e.file then
      lines[#lines + 1] = "  at the end: " .. e.message
    elseif text then
      lines[#lines + 1] = ("  line %d: %s"):format(e.line, e.message)
      lines[#lines + 1] = "    " .. text
    end
  end
  if #lines == 0 then
    for text in log:gmatch "[^\n]+" do
      if #lines < 10 then lines[#lines + 1] = "  " .. text end
    end
  end
  if more > 0 then lines[#lines + 1] = ("  and %d more"):format(more) end
  return table.concat(lines, "\n")
end

local function refuse(self, log)
  args.fail("cuda.kernel: %s does not compile\n%s", self.name, explain(log, self.source, self.name))
end

-- Making --------------------------------------------------------------------------

local function names_of(kernels)
  local names = {}
  for i, k in ipairs(kernels) do names[i] = k.name end
  return table.concat(names, ", ")
end

-- The kernel of that name in the source; without a name, the only one.
local function find(source, name)
  local kernels = parameters.kernels(source)
  args.check(#kernels > 0, "cuda.kernel: the source has no kernel: a function that is declared "
    .. "__global__ void name(...)")
  if name == nil then
    args.check(#kernels == 1, 'cuda.kernel: argument "name" is missing: the source has the kernels '
      .. "%s", names_of(kernels))
    name = kernels[1].name
  end
  for _, k in ipairs(kernels) do
    if k.name == name then return k end
  end
  return args.fail('cuda.kernel: the source has no kernel "%s"; it has %s', name, names_of(kernels))
end

local function read_parameters(kernel)
  args.check(not kernel.template, "cuda.kernel: %s is a template, whose parameters are not known. "
    .. "Write the type out, or exchange it in the source with string.gsub", kernel.name)
  local list, bad = parameters.read(kernel)
  return list or args.fail("cuda.kernel: the parameter \"%s\" of %s is of a kind that cannot be "
    .. "checked. It wants numbers (float, double, half, bool, int, long long, size_t ...) and "
    .. "pointers to them", bad, kernel.name)
end

local function read_options(options)
  if type(options) == "string" then options = {options} end
  for i, option in ipairs(options or {}) do
    args.check(type(option) == "string" and option:find "^%-",
      'cuda.kernel: option %d is %s, it wants an option of the compiler such as "-DN=16" or '
      .. '"--use_fast_math"', i, args.show(option))
  end
  return options or {}
end

local parse = args.signature("cuda.kernel", "source:string, name:string?, options:table|string?")
local made = {} -- kernels by source, name and options

local function new(source, name, options, any_layout)
  local device = core._accelerator.device("cuda", nil, "cuda.kernel")
  local key = table.concat({source, name or "", tostring(any_layout or false),
    table.unpack(options)}, "\0")
  if made[key] then return made[key] end
  local kernel = find(source, name)
  local list = read_parameters(kernel)
  local self = setmetatable({name = kernel.name, source = source, parameters = list}, Kernel)
  self._kernel = core._kernel(source, kernel.name, options, list, any_layout)
  local ok, log = self._kernel:build(device)
  if not ok then refuse(self, log) end
  made[key] = self
  return self
end

--- Puts the kernel on the current stream of its tensors' device: kernel({grid, block,
-- shared_bytes}, arguments...). grid (blocks) and block (threads) are numbers or lists of up to
-- three.
function Kernel:__call(settings, ...)
  local ok, log = self._kernel:launch(settings, ...)
  if not ok then refuse(self, log) end
end

function Kernel:__tostring()
  local list = {}
  for i, p in ipairs(self.parameters) do
    list[i] = p.type .. (p.pointer and "" or " ") .. p.name
  end
  return ("cuda kernel %s(%s)"):format(self.name, table.concat(list, ", "))
end

local kernel = {}

--- See the top of the file; `name` may be left out where the source has one kernel. `options`:
-- options of the compiler, a list.
function kernel.new(...)
  local source, name, options = parse(...)
  return new(source, name, read_options(options))
end

--- The same without checks of the layout: for the library, which passes strides.
function kernel.internal(source, name) return new(source, name, {}, true) end

kernel._explain = explain

return kernel
