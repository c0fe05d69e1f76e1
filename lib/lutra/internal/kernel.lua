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
local args = require "lutra.internal.args"
local explain = require "lutra.internal.kernel.explain"
local nearest = require "lutra.internal.nearest"
local parameters = require "lutra.internal.kernel.parameters"

local Kernel = {__name = "cuda kernel"}
Kernel.__index = Kernel

local function refuse(self, log)
  args.fail("cuda.kernel: %s does not compile\n%s", self.name, explain(log, self))
end

local function names_of(kernels)
  local names = {}
  for i, k in ipairs(kernels) do names[i] = k.name end
  return names
end

-- The kernel of that name in the source; without a name, the only one.
local function find(source, name)
  local kernels, bad = parameters.kernels(source)
  local names = names_of(kernels)
  args.check(#kernels > 0 or not bad, "cuda.kernel: in line %d no function can be read behind "
    .. "__global__: it wants __global__ void name(...), with as many ) as (", bad)
  args.check(#kernels > 0, "cuda.kernel: the source has no kernel: a function that is declared "
    .. "__global__ void name(...)")
  if name == nil then
    args.check(#kernels == 1, 'cuda.kernel: argument "name" is missing: the source has the kernels '
      .. "%s", table.concat(names, ", "))
    name = kernels[1].name
  end
  local own = name:gsub("%b<>$", ""):match "[^:]*$" -- of "a::f" and of "f<float>"
  for _, k in ipairs(kernels) do
    if k.name == own then return k, name end
  end
  local near = nearest.find(own, names)
  return args.fail('cuda.kernel: the source has no kernel "%s"; %s', name,
    near and ('did you mean "%s"?'):format(near) or "it has " .. table.concat(names, ", "))
end

local function read_parameters(kernel)
  args.check(not kernel.template, "cuda.kernel: %s is a template, whose parameters are not known. "
    .. "Write it for one type: without \"template <...>\", and float in place of T; or make the "
    .. "template __device__, and call it in an extern \"C\" __global__ function", kernel.name)
  local list, bad = parameters.read(kernel)
  return list or args.fail("cuda.kernel: the parameter \"%s\" of %s is of a kind that cannot be "
    .. "checked. It wants numbers (float, double, half, bool, int, long long, size_t ...), and "
    .. "pointers to them or to CUDA's vectors of them (float4 *), by these names. Of a struct, "
    .. "pass the fields one by one", bad, kernel.name)
end

local function check_text(text, what)
  local at = text:find("\0", 1, true)
  args.check(not at, "cuda.kernel: %s has a byte 0 at position %d, and a compiler would read no "
    .. "further", what, at)
end

local function read_options(options)
  if type(options) == "string" then options = {options} end
  for i, option in ipairs(options or {}) do
    args.check(type(option) == "string" and option:find "^%-",
      'cuda.kernel: option %d is %s, it wants an option of the compiler such as "-DN=16" or '
      .. '"--use_fast_math"', i, args.show(option))
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
  return ("cuda kernel %s(%s)"):format(self.name, parameters.text(self.parameters))
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

return kernel
