--- lt.backends: what calculates, and its switches.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local cuda = require "lutra.cuda"
local strict_table = require "lutra.internal.strict_table"
local mps = require "lutra.mps"

local c = core._accelerator

-- A table whose fields are switches of a backend: name of the field -> name of the switch.
-- Where there is no such backend, a switch keeps what it is given, so that programs that
-- set it run everywhere.
local function switches(kind, title, names)
  local kept = {}
  local function check(field)
    return args.check(names[field], "%s: there is no switch %s", title, args.show(field))
  end
  local function get(_, field)
    local name = names[field]
    if not name then return nil end
    local value = c.option(kind, name)
    if value == nil then return kept[field] or false end
    return value
  end
  return setmetatable({}, {
    __name = title,
    __index = get,
    __names = names, -- where __index looks, for completion
    __newindex = function(_, field, value)
      local name = check(field)
      args.check(type(value) == "boolean", "%s.%s: the value is %s, it wants true or false",
        title, field, args.show(value))
      if c.option(kind, name, value) == nil then kept[field] = value end
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

--- cuda.matmul.allow_tf32: may products of float32 matrices be computed in TF32 (10 bits of
-- mantissa, faster)? false unless set.
backends.cuda = {
  is_available = cuda.is_available,
  is_built = cuda.is_built,
  matmul = switches("cuda", "backends.cuda.matmul", {allow_tf32 = "matmul.allow_tf32"}),
}

backends.mps = {is_available = mps.is_available, is_built = mps.is_built}

backends.cpu = {}

--- The instruction set that the CPU's loops use: "AVX512", "AVX2", "DEFAULT".
function backends.cpu.capability()
  local isa = c.fact("cpu", "isa")
  if not isa or isa == "base" then return "DEFAULT" end
  return isa:upper()
end
backends.cpu.get_cpu_capability = backends.cpu.capability

backends.openblas = {}

--- What calculates matrix products on the CPU, or nil where no library was found.
function backends.openblas.info() return c.fact("cpu", "blas") end

--- Was a BLAS library found?
function backends.openblas.is_available() return backends.openblas.info() ~= nil end

backends.openmp = {}

--- Do the CPU's loops use several threads?
function backends.openmp.is_available() return c.openmp() end

for name, backend in pairs(backends) do strict_table.strict(backend, "lt.backends." .. name) end

return strict_table.strict(backends, "lt.backends")
