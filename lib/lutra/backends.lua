--- lt.backends: the libraries and instruction sets that compute, and their settings.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local cuda = require "lutra.cuda"
local strict_table = require "lutra.internal.strict_table"
local mps = require "lutra.mps"

local c = core._accelerator

-- Returns a table whose fields are settings of a backend. `names` maps each field to the name of
-- the setting. Without this backend a setting stores its value and has no effect, so that programs
-- that set it run everywhere. The table has the fields of `functions`, too.
local function settings(kind, title, names, functions)
  local stored = {}
  local function check(field)
    return args.check(names[field], "%s has no switch %s", title, args.show(field))
  end
  local function get(_, field)
    local name = names[field]
    if not name then return nil end
    local value = c.option(kind, name)
    if value == nil then return stored[field] or false end
    return value
  end
  return setmetatable(functions or {}, {
    __name = title,
    __index = get,
    __names = names, -- where __index looks, for completion
    __newindex = function(_, field, value)
      local name = check(field)
      args.check(type(value) == "boolean", "%s.%s: expected a boolean, got %s",
        title, field, args.show(value))
      if c.option(kind, name, value) == nil then stored[field] = value end
    end,
    __pairs = function(self)
      return function(_, field)
        local following = next(names, field)
        if following ~= nil then return following, get(self, following) end
      end, self, nil
    end,
  })
end

local backends = {}

--- lt.backends.cuda.matmul.allow_tf32: whether products of float32 matrices may be computed in TF32
-- (10 bits of mantissa, faster). false by default.
backends.cuda = {
  is_available = cuda.is_available,
  is_built = cuda.is_built,
  matmul = settings("cuda", "backends.cuda.matmul", {allow_tf32 = "matmul.allow_tf32"}),
}

local cudnn = {}

--- Returns false: convolutions do not use cuDNN.
function cudnn.is_available() return false end

--- Returns nil, in place of cuDNN's version.
function cudnn.version() return nil end

--- lt.backends.cudnn.benchmark, deterministic, enabled and allow_tf32: settings of PyTorch, for
-- programs that set them. They have no effect, because convolutions do not use cuDNN.
backends.cudnn = settings("cuda", "backends.cudnn", {benchmark = "cudnn.benchmark",
  deterministic = "cudnn.deterministic", enabled = "cudnn.enabled",
  allow_tf32 = "cudnn.allow_tf32"}, cudnn)

--- lt.backends.mps.matmul.prefer_apple: whether Apple's MPSMatrixMultiplication computes the
-- products of float32 and float16 matrices that it can. false by default.
backends.mps = {
  is_available = mps.is_available,
  is_built = mps.is_built,
  matmul = settings("mps", "backends.mps.matmul", {prefer_apple = "matmul.prefer_apple"}),
}

backends.cpu = {}

--- Returns the instruction set of the CPU's kernels: "AVX512", "AVX2" or "DEFAULT".
function backends.cpu.capability()
  local isa = c.fact("cpu", "isa")
  if not isa or isa == "base" then return "DEFAULT" end
  return isa:upper()
end
backends.cpu.get_cpu_capability = backends.cpu.capability

backends.openblas = {}

--- Returns the name of the BLAS library that computes matrix products on the CPU, or nil when none
-- was found.
function backends.openblas.info() return c.fact("cpu", "blas") end

--- Returns whether a BLAS library was found.
function backends.openblas.is_available() return backends.openblas.info() ~= nil end

backends.fftw = {}

--- Returns the name and version of the FFTW library, which computes those Fourier transforms on the
-- CPU that it computes faster than Lutra's own code, or nil when it was not found.
function backends.fftw.info() return c.fact("cpu", "fftw") end

--- Returns whether the FFTW library was found.
function backends.fftw.is_available() return backends.fftw.info() ~= nil end

backends.openmp = {}

--- Returns whether the CPU's kernels use several threads.
function backends.openmp.is_available() return c.openmp() end

for name, backend in pairs(backends) do
  if name ~= "cudnn" then strict_table.strict(backend, "lt.backends." .. name) end
end

local onednn = {}

--- Returns the name and version of the oneDNN library, or nil when it was not found.
function onednn.info() return c.fact("cpu", "onednn") end

--- Returns whether the oneDNN library was found.
function onednn.is_available() return onednn.info() ~= nil end

local onednn_names = {enabled = "onednn.enabled"}

--- lt.backends.onednn.enabled: whether oneDNN, where it is found, computes convolutions of float32
-- and bfloat16 tensors on the CPU. true by default.
backends.onednn = settings("cpu", "backends.onednn", onednn_names, onednn)

--- lt.backends.mkldnn: PyTorch's name for lt.backends.onednn.
backends.mkldnn = settings("cpu", "backends.mkldnn", onednn_names,
  {info = onednn.info, is_available = onednn.is_available})

return strict_table.strict(backends, "lt.backends")
