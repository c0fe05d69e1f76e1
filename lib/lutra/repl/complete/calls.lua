--- The static value of a call's result, without making the call.
--
-- Results of functions in C are declared in their signatures; a class returns its instances; a few
-- functions of the Lua library are listed here. The results of user functions are unknown.

local args = require "lutra.internal.args"
local namespaces = require "lutra.internal.namespaces"
local signatures = require "lutra.repl.complete.signatures"
local static_values = require "lutra.repl.complete.static_values"

local calls = {}

local tensor, text = {like = "tensor"}, {like = "string"}

local of_type = {Tensor = tensor, Index = tensor}

-- Methods of lutra.nn.module that return the module.
local chained = [[to cpu cuda mps to_empty float double half bfloat16 train eval requires_grad_
  zero_grad apply]]
local texts = "format gsub lower rep reverse sub upper"

-- function -> static value of its result, as a function of the callee and self.
local known

local function itself(_, self) return self end
local function always(thing) return function() return thing end end

local function state_dict(_, self)
  if self and static_values.module_state(self.value) then return {state_of = self.value} end
end

-- Adds the functions of loaded modules; others cannot be called yet.
local function read_library()
  known = setmetatable({}, {__mode = "k"})
  for name in texts:gmatch "%S+" do known[string[name] or false] = always(text) end
  known[tostring] = always(text)
  local Module = package.loaded["lutra.nn.module"]
  if Module then
    for name in chained:gmatch "%S+" do known[rawget(Module, name) or false] = itself end
    known[Module.state_dict] = state_dict
  end
  for _, ops in namespaces.each() do
    for _, f in next, ops do
      if type(f) == "function" then known[f] = always(tensor) end
    end
  end
  local nn = package.loaded["lutra.nn"]
  if nn then known[nn.Parameter] = always(tensor) end
end

-- Returns the result of a module's call, its forward; a layer of the library returns a tensor.
local function of_module(callee)
  if not callee.instance and not static_values.module_state(callee.value) then return nil end
  local forward = static_values.field(callee, "forward")
  local f = forward and forward.value
  return type(f) == "function" and args.is_library(debug.getinfo(f, "S")) and tensor or nil
end

--- Returns the static value of calling `callee`, or nil. `self` is the static value before the
-- colon of a method; `given` the text of a call with one string, as in require "x".
function calls.result(callee, self, given)
  local f = callee.value
  if f == nil or type(f) == "table" then
    if f ~= nil and static_values.is_class(f) then return {instance = f} end
    return of_module(callee)
  end
  if type(f) ~= "function" then return nil end
  if rawequal(f, rawget(_G, "require")) then
    local loaded = given and package.loaded[given]
    return loaded ~= nil and {value = loaded} or nil
  end
  local signature = signatures.of(f)
  if signature and #signature.results > 0 then return of_type[signature.results[1]] end
  read_library()
  return known[f] and known[f](callee, self)
end

return calls
