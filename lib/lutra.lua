--- lutra: tensors, automatic differentiation and neural networks for Lua.
--
--     local lt = require "lutra"
--     local x = lt.randn{3, 4, requires_grad = true}
--     (x * x):sum():backward()
--     print(x.grad)
--
-- Idea: the ops, the tensors and their methods come from C (lutra.core); this file
-- adds what is better said in Lua, and the libraries, each loaded when first used.

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
lt.inf, lt.nan = math.huge, 0 / 0
lt.newaxis = "newaxis"

for name, value in pairs(scopes) do lt[name] = value end
for name, value in pairs(dtypes) do lt[name] = value end
for name, value in pairs(require "lutra.internal.archive") do lt[name] = value end

--- The tensor on one line: dtype, shape, range and histogram of its values, mean, standard
-- deviation, how many are NaN and infinite, device.
function core._methods.summary(x) return require "lutra.internal.summary"(x) end
core._summarise(core._methods.summary)

--- The device to calculate on: "cuda:0" (the current GPU) where there is one, else "mps", else
-- "cpu".
function lt.best_device() return core.device(core._accelerator.kind() or "cpu") end

--- The op table as data: a list of {name, signature, doc, kind, variants, namespaces, params,
-- results, has_gradient, composite, support}, those written in Lua last.
function lt.ops() return require "lutra.internal.composites".ops() end

--- Registers a composite written in Lua, {signature, doc, fn}, and returns its function.
function lt._define(row) return require "lutra.internal.composites".define(row) end

-- Libraries, by the name they have in lt.
local libraries = {
  accelerator = "lutra.accelerator",
  autograd = "lutra.autograd",
  cuda = "lutra.cuda",
  mps = "lutra.mps",
  backends = "lutra.backends",
  breakpoint = "lutra.breakpoint",
  elementwise = "lutra.elementwise",
  nn = "lutra.nn",
  F = "lutra.nn.functional",
  optim = "lutra.optim",
  data = "lutra.data",
  progress = "lutra.progress",
  profiler = "lutra.profiler",
  placement = "lutra.placement",
}

require("lutra.internal.namespaces").announce(libraries)

-- A field that is not there: an error. The names of libraries that wait are among the near ones.
local function missing(self, name)
  local waiting = {}
  for library in pairs(libraries) do waiting[#waiting + 1] = library end
  return require("lutra.internal.strict_table").fail(self, "lt", name, waiting)
end

return setmetatable(lt, {
  __name = "lutra",
  __libraries = libraries, -- for completion
  __index = function(self, name)
    local library = libraries[name]
    if library then rawset(self, name, require(library)) end
    if not library and require("lutra.internal.composites").load() then return self[name] end
    local value = rawget(self, name)
    if value == nil then return missing(self, name) end
    return value
  end,
})
