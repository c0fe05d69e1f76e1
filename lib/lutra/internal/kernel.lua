--- lt.cuda.kernel(source, name, options): compiles a CUDA kernel from source.
--
--     local scale = lt.cuda.kernel([[
--       __global__ void scale(float *y, const float *x, float a, int n) {
--         int i = blockIdx.x * blockDim.x + threadIdx.x;
--         if (i < n) y[i] = a * x[i];
--       }]], "scale")
--     scale({(n + 255) // 256, 256}, y, x, 2, n)
--
-- Kernels for GPUs are compiled by NVIDIA's NVRTC, those for emulated devices by the system's C++
-- compiler. Compiled kernels are cached: in memory by source, name and options, on disk also by the
-- kind of device (src/cuda/kernel_cache.c).
--
-- Invariant: a kernel object has been compiled on the device that was current when it was made, and
-- it is never launched with arguments that do not match its declaration.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local explain = require "lutra.internal.kernel.explain"
local nearest = require "lutra.internal.nearest"
local parameters = require "lutra.internal.kernel.parameters"

local Kernel = {__name = "cuda kernel"}
Kernel.__index = Kernel

-- Raises the error for a failed compilation.
local function fail_compile(self, log)
  args.fail("cuda.kernel: cannot compile %s\n%s", self.name, explain(log, self))
end

local function names_of(kernels)
  local names = {}
  for i, k in ipairs(kernels) do names[i] = k.name end
  return names
end

-- Returns the kernel of that name in the source, by default the only one, and its name as given.
-- Raises an error when there is none.
local function find(source, name)
  local kernels, bad = parameters.kernels(source)
  local names = names_of(kernels)
  args.check(#kernels > 0 or not bad, "cuda.kernel: cannot read the kernel in line %d: expected "
    .. "__global__ void name(...), with as many ) as (", bad)
  args.check(#kernels > 0, "cuda.kernel: expected a kernel in argument 'source', got none\n"
    .. "hint: __global__ void name(float *x, int n) { ... }")
  if name == nil then
    args.check(#kernels == 1, "cuda.kernel: expected one of %s for argument 'name', got nil",
      table.concat(names, ", "))
    name = kernels[1].name
  end
  local own = name:gsub("%b<>$", ""):match "[^:]*$" -- of "a::f" and of "f<float>"
  for _, k in ipairs(kernels) do
    if k.name == own then return k, name end
  end
  local near = nearest.find(own, names)
  return args.fail("cuda.kernel: expected one of %s for argument 'name', got \"%s\"%s",
    table.concat(names, ", "), name, near and ('\nhint: did you mean "%s"?'):format(near) or "")
end

local function read_parameters(kernel)
  args.check(not kernel.template, "cuda.kernel: cannot launch the template %s: the types of its "
    .. "parameters are not known\nhint: write it for one type, with float in place of T; or make "
    .. "the template __device__, and call it in an extern \"C\" __global__ function", kernel.name)
  local list, bad = parameters.read(kernel)
  return list or args.fail("cuda.kernel: cannot check the parameter \"%s\" of %s: expected a "
    .. "number (float, double, half, bool, int, long long, size_t ...), or a pointer to one or to "
    .. "one of CUDA's vector types (float4 *)\nhint: pass the fields of a struct one by one", bad,
    kernel.name)
end

local function check_text(text, what)
  local at = text:find("\0", 1, true)
  args.check(not at, "cuda.kernel: expected text without NUL bytes for %s, got one at byte %d",
    what, at)
end

local function read_options(options)
  if type(options) == "string" then options = {options} end
  for i, option in ipairs(options or {}) do
    args.check(type(option) == "string" and option:find "^%-",
      "cuda.kernel: expected a compiler option such as \"-DN=16\" for argument 'options[%d]', got "
      .. "%s", i, args.show(option))
    check_text(option, "option " .. i)
  end
  return options or {}
end

local parse = args.signature("cuda.kernel",
  "string source, string? name = nil, table|string? options = nil")
local made = {} -- kernels by source, name and options

local function new(source, name, options, any_layout)
  local device = core._accelerator.device("cuda", nil, "cuda.kernel")
  local key = table.concat({source, name or "", tostring(any_layout or false),
    table.unpack(options)}, "\0")
  if made[key] then return made[key] end
  check_text(source, "the source")
  local kernel, whole_name = find(source, name)
  local list = read_parameters(kernel)
  local self = setmetatable({name = kernel.name, source = source, parameters = list}, Kernel)
  self._kernel = core._kernel(source, kernel.name, options, list, any_layout,
    parameters.expression(whole_name, list))
  local ok, log = self._kernel:build(device)
  if not ok then fail_compile(self, log) end
  made[key] = self
  return self
end

--- kernel({grid, block, shared_bytes}, arguments...): launches the kernel on the current stream of
-- its tensors' device. grid (blocks) and block (threads) are numbers or lists of up to three.
-- Raises an error for arguments that do not match the declaration.
function Kernel:__call(settings, ...)
  local ok, log = self._kernel:launch(settings, ...)
  if not ok then fail_compile(self, log) end
end

function Kernel:__tostring()
  return ("cuda kernel %s(%s)"):format(self.name, parameters.text(self.parameters))
end

local kernel = {}

--- Returns a kernel as described at the top of this file. `name` may be omitted when the source has
-- one kernel; `options` is a list of compiler options.
function kernel.new(...)
  local source, name, options = parse(...)
  return new(source, name, read_options(options))
end

--- Returns a kernel that accepts tensors of any layout, for the library, which passes strides.
function kernel.internal(source, name) return new(source, name, {}, true) end

return kernel
