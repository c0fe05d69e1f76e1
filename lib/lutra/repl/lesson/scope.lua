--- The environment of :check, independent of the session: the modes of a new session, Lutra's own
-- functions, and random numbers that no earlier check used. Invariant: after the check the
-- session's state is restored, also when the check raises an error or is interrupted. So the
-- result depends only on the code that is checked.

local core = require "lutra.core"
local lt = require "lutra"

local accelerator = lt.accelerator

local scope = {}

-- name, getter and setter, initial value
local modes = {
  {"the default device", lt.get_default_device, lt.set_default_device, "cpu"},
  {"the default dtype", lt.get_default_dtype, lt.set_default_dtype, "float32"},
  {"whether gradients are on", lt.is_grad_enabled, lt.set_grad_enabled, true},
  {"the random numbers", lt.get_rng_state, lt.set_rng_state},
}

-- Returns the modes of the accelerators. Setting a stream makes its device the current one, so the
-- current device is set first and restored last.
local function device_modes()
  local list = {}
  for _, kind in ipairs(core._accelerator.kinds()) do
    local names = core._accelerator.names(kind)
    local function reset() accelerator.set_device_index(names[1]) end
    if #names > 1 then
      list[#list + 1] = {"the current device", function() return core.device(kind) end,
        accelerator.set_device_index, names[1]}
    end
    for _, name in ipairs(names) do
      list[#list + 1] = core._accelerator.has_streams(name) and {
        "the current stream of " .. name,
        function() return accelerator.current_stream(name) end,
        function(stream)
          accelerator.set_stream(stream)
          reset()
        end, accelerator.default_stream(name)} or nil
    end
  end
  return list
end

-- Sets the modes; adds those that were different to `self.aside`.
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

local watched = {lt = lt, ["lt.accelerator"] = accelerator, ["lt.cuda"] = lt.cuda,
  ["lt.mps"] = lt.mps, ["lt.placement"] = lt.placement, ["lt.nn"] = lt.nn, ["lt.F"] = lt.F,
  ["lt.optim"] = lt.optim}

local pristine = {}
for of, t in pairs(watched) do
  pristine[of] = {}
  for name, value in next, t do
    if type(value) == "function" then pristine[of][name] = value end
  end
end

-- Calls visit("lt.zeros", lt, "zeros", the original function) for each function that was replaced.
local function each_replaced(visit)
  for of, t in pairs(watched) do
    for name, own in next, pristine[of] do
      if rawget(t, name) ~= own then visit(of .. "." .. name, t, name, own) end
    end
  end
end

-- Restores Lutra's functions; adds those that were replaced to `self.aside`.
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

--- Returns a scope, which must be closed (`<close>` or :close()). aside: the names of what the
-- session had changed.
function scope.new()
  checks = checks + 1
  local self = setmetatable({aside = {}, undo = {}}, Scope)
  set_functions(self)
  set_modes(self, modes)
  set_modes(self, device_modes())
  lt.manual_seed(checks)
  return self
end

--- Returns the names of Lutra's functions that were replaced within the scope.
function Scope:replaced() -- luacheck: ignore self
  local names = {}
  each_replaced(function(called) names[#names + 1] = called end)
  table.sort(names)
  return names
end

--- Restores the session's state. May be called again.
function Scope:close()
  each_replaced(function(_, t, name, own) rawset(t, name, own) end)
  for i = #self.undo, 1, -1 do self.undo[i]() end
  self.undo = {}
  collectgarbage()
end
Scope.__close = Scope.close

return scope
