--- What a call gives, where that is known without making it.
--
-- Of functions in C the results are in their signatures; a class gives its objects; a few of the
-- Lua library's functions are said here. Of the user's functions nothing is known.

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

-- function -> what it gives, as a function of the callee and self
local known

local function itself(_, self) return self end
local function always(thing) return function() return thing end end

local function state_dict(_, self)
  if self and static_values.module_state(self.value) then return {state_of = self.value} end
end

-- Adds what is known by now; modules that are not loaded have no functions that could be called.
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

-- A module's call is its forward; a layer of the library gives a tensor.
local function of_module(callee)
  if not callee.instance and not static_values.module_state(callee.value) then return nil end
  local forward = static_values.field(callee, "forward")
  local f = forward and forward.value
  return type(f) == "function" and args.is_library(debug.getinfo(f, "S")) and tensor or nil
end

--- The thing that calling `callee` gives, or nil. `self` is the thing before the colon of a method;
-- `given` the text of a call with one string, as require "x".
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
