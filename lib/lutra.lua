--- lutra: tensors, automatic differentiation and neural networks for Lua.
--
--     local lt = require "lutra"
--     local x = lt.randn{3, 4, requires_grad = true}
--     (x * x):sum():backward()
--     print(x.grad)
--
-- The ops, the tensors and their methods are written in C (lutra.core). This file adds the
-- functions that are written in Lua, and the libraries, each of which is loaded when it is first
-- used.

local core = require "lutra.core"
core._library(debug.getinfo(1, "S").source)

local scopes = require "lutra.internal.scopes"
local dtypes = require "lutra.internal.dtypes"

core._explain(function(...) return require("lutra.internal.explain").tensors(...) end)

local lt = {}
for name, value in pairs(core) do
  if name:sub(1, 1) ~= "_" then lt[name] = value end
end

lt._VERSION = core._VERSION
lt._ops = core._ops
lt._methods = core._methods
lt._parameter = core._parameter
lt.device = require "lutra.internal.device"

lt.pi, lt.e = math.pi, math.exp(1)
lt.inf, lt.nan = math.huge, math.abs(0 / 0) -- the sign of 0 / 0 depends on the CPU
lt.newaxis = "newaxis"

for name, value in pairs(scopes) do lt[name] = value end
for name, value in pairs(dtypes) do lt[name] = value end
for name, value in pairs(require "lutra.internal.archive") do lt[name] = value end
lt.isinstance = require("lutra.internal.instances").isinstance

--- Returns one line about a tensor: dtype, shape, range and histogram of its values, mean, standard
-- deviation, numbers of NaN and infinite values, device. Synchronizes with the device.
function core._methods.summary(x) return require "lutra.internal.summary"(x) end

local parse_type = core._signature("type", "(Tensor self, dtype? dtype = nil)")

--- x:type(): returns the dtype of x; x:type(dtype) returns x in that dtype, as x:to(dtype) does.
function core._methods.type(...)
  local x, dtype = parse_type(...)
  if dtype == nil then return x.dtype end
  return x:to(dtype)
end

--- Registers hook(x), which is called after each backward that has accumulated a gradient in
-- x.grad. Returns a handle; handle:remove() removes the hook. Raises an error unless x is a leaf
-- tensor that requires grad.
function core._methods.register_post_accumulate_grad_hook(x, hook)
  return require("lutra.autograd.post_hooks").register(x, hook)
end

setmetatable(core._methods, {
  __index = function(t, name) return require("lutra.internal.composites").find(t, name) end,
})
core._summarise(core._methods.summary)

-- Returns the hint for a method that does not exist, or nil.
function core._methods._missing(name) return require("lutra.internal.missing").hint("x", name) end

--- Returns the name of the device to compute on: "cuda:0" (the current GPU) when there is one, else
-- "mps", else "cpu".
function lt.best_device() return core.device(core._accelerator.kind() or "cpu") end

--- lt.vmap: lt.func.vmap.
function lt.vmap(...) return require("lutra.func").vmap(...) end

--- Sets how precisely GPUs multiply float32 matrices: "highest" computes in float32, "high" and
-- "medium" allow TF32, as lt.backends.cuda.matmul.allow_tf32 does.
function lt.set_float32_matmul_precision(precision)
  local args = require "lutra.internal.args"
  args.expect(precision == "highest" or precision == "high" or precision == "medium",
    "set_float32_matmul_precision", '"highest", "high" or "medium"', "precision", precision)
  lt.backends.cuda.matmul.allow_tf32 = precision ~= "highest"
end

--- Returns "high" where GPUs may multiply float32 matrices in TF32, else "highest".
function lt.get_float32_matmul_precision()
  return lt.backends.cuda.matmul.allow_tf32 and "high" or "highest"
end

--- Returns the table of ops: a list of {name, signature, doc, kind, variants, namespaces, params,
-- results, has_gradient, composite, support}, the ops written in Lua last.
function lt.ops() return require "lutra.internal.composites".ops() end

--- Prints which ops accept which dtypes on which devices, for the ops whose names contain the
-- string `pattern` (all by default). Returns the list: {name, kind, host, devices}, where
-- devices[type] is a set of dtypes, or true where dtypes do not matter or are unknown.
function lt.coverage(...) return require "lutra.internal.coverage".call(...) end

--- Registers a composite op written in Lua, {signature, doc, fn}, and returns its function.
function lt._define(row) return require "lutra.internal.composites".define(row) end

-- The libraries that are loaded when first used: field of lt -> module.
local libraries = {
  accelerator = "lutra.accelerator",
  amp = "lutra.amp",
  autograd = "lutra.autograd",
  cuda = "lutra.cuda",
  mps = "lutra.mps",
  backends = "lutra.backends",
  breakpoint = "lutra.breakpoint",
  clear_output = "lutra.clear_output",
  compile = "lutra.compile",
  display = "lutra.display",
  distributed = "lutra.distributed",
  elementwise = "lutra.elementwise",
  nn = "lutra.nn",
  F = "lutra.nn.functional",
  func = "lutra.func",
  optim = "lutra.optim",
  data = "lutra.data",
  progress = "lutra.progress",
  profiler = "lutra.profiler",
  placement = "lutra.placement",
  random = "lutra.random",
  tokenizers = "lutra.tokenizers",
  audio = "lutra.audio",
  distributions = "lutra.distributions",
  utils = "lutra.utils",
  vision = "lutra.vision",
  plot = "lutra.plot",
}

require("lutra.internal.namespaces").announce(libraries)

-- Raises the error for a missing field. The libraries that are not loaded yet are among the names
-- that it suggests.
local function missing(self, name)
  local names = {}
  for library in pairs(libraries) do names[#names + 1] = library end
  return require("lutra.internal.strict_table").fail(self, "lt", name, names)
end

return setmetatable(lt, {
  __name = "lutra",
  __libraries = libraries, -- for completion
  __index = function(self, name)
    local library = libraries[name]
    local value
    if not library then value = require("lutra.internal.composites").find(self, name) end
    library = library or libraries[name] -- a namespace that got its first op
    if value == nil and library then
      value = require(library)
      rawset(self, name, value)
    end
    if value == nil then return missing(self, name) end
    return value
  end,
})
