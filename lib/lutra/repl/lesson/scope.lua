--- What :check finds, whatever the session did before: modes as in a session that has just begun,
-- Lutra's own functions, random numbers that were not seen in a check before. Behind the check the
-- session has back what it had; that is the invariant, also where the check raises an error or is
-- interrupted. So code passes by what it does, not by what it was put upon.

local lt = require "lutra"

local scope = {}

-- name, how it is read and set, what it is at the beginning
local modes = {
  {"the default device", lt.get_default_device, lt.set_default_device, "cpu"},
  {"the default dtype", lt.get_default_dtype, lt.set_default_dtype, "float32"},
  {"whether gradients are on", lt.is_grad_enabled, lt.set_grad_enabled, true},
  {"the random numbers", lt.get_rng_state, lt.set_rng_state},
}

-- The modes of CUDA. To set a stream makes its device the current one, which so is the first to be
-- set and the last to be set back.
local function cuda_modes()
  local cuda = lt.cuda
  local list = {{"the current device", cuda.current_device, cuda.set_device, 0}}
  for i = 0, cuda.device_count() - 1 do
    list[#list + 1] = {("the current stream of cuda:%d"):format(i),
      function() return cuda.current_stream(i) end,
      function(stream)
        cuda.set_stream(stream)
        cuda.set_device(0)
      end, cuda.default_stream(i)}
  end
  return list
end

-- Sets the modes; adds to `self.aside` which were others.
local function set_modes(self, list)
  for _, mode in ipairs(list) do
    local name, get, set, value = table.unpack(mode)
    local before = get()
    self.undo[#self.undo + 1] = function() set(before) end
    if value ~= nil and before ~= value then
      set(value)
      self.aside[#self.aside + 1] = name
    end
  end
end

-- ---- Lutra's functions

local watched = {lt = lt, ["lt.cuda"] = lt.cuda, ["lt.placement"] = lt.placement, ["lt.nn"] = lt.nn,
  ["lt.F"] = lt.F, ["lt.optim"] = lt.optim}

local pristine = {}
for of, t in pairs(watched) do
  pristine[of] = {}
  for name, value in next, t do
    if type(value) == "function" then pristine[of][name] = value end
  end
end

-- Calls visit("lt.zeros", lt, "zeros", the function that was there) for each that is another now.
local function each_replaced(visit)
  for of, t in pairs(watched) do
    for name, own in next, pristine[of] do
      if rawget(t, name) ~= own then visit(of .. "." .. name, t, name, own) end
    end
  end
end

-- Puts Lutra's functions back; adds to `self.aside` which were others.
local function set_functions(self)
  each_replaced(function(called, t, name, own)
    local other = rawget(t, name)
    rawset(t, name, own)
    self.undo[#self.undo + 1] = function() rawset(t, name, other) end
    self.aside[#self.aside + 1] = called
  end)
  table.sort(self.aside)
end

-- ---- the scope

local Scope = {}
Scope.__index = Scope

local checks = 0

--- A scope, which must be closed (`<close>`, or :close()). aside: the names of what the session had
-- changed.
function scope.new()
  checks = checks + 1
  local self = setmetatable({aside = {}, undo = {}}, Scope)
  set_functions(self)
  set_modes(self, modes)
  if lt.cuda.device_count() > 0 then set_modes(self, cuda_modes()) end
  lt.manual_seed(checks)
  return self
end

--- The names of Lutra's functions that were replaced within the scope.
function Scope:replaced() -- luacheck: ignore self
  local names = {}
  each_replaced(function(called) names[#names + 1] = called end)
  table.sort(names)
  return names
end

function Scope:close()
  each_replaced(function(_, t, name, own) rawset(t, name, own) end)
  for i = #self.undo, 1, -1 do self.undo[i]() end
  self.undo = {}
  collectgarbage()
end
Scope.__close = Scope.close

return scope
