--- What the specs of several devices share.

local assert = require "luassert"
local lt = require "lutra"

local support = {}

--- The devices of a list of tensors: "cuda:0 cuda:1".
function support.device_names(tensors)
  local names = {}
  for i, x in ipairs(tensors) do names[i] = x.device end
  return table.concat(names, " ")
end

--- How many copies f() does, none of which it waits for.
function support.copies_in_the_background(f)
  local profile, copies = lt.profiler.profile(f, {synchronize = false}), 0
  for event in profile:events() do
    if event.kind == "copy" then
      copies = copies + 1
      assert.is_false(event.blocking, event.from .. " to " .. event.device)
    end
  end
  return copies
end

--- A module that computes fn(self, ...).
function support.made_of(fn)
  local Class = lt.nn.Module:extend "Test"
  Class.forward = fn
  return Class()
end

return support
