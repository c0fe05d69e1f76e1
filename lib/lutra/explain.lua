--- What is known of two tensors that an error is about: texts to put behind its message.
--
-- The core asks one function; here it asks all who know something.

local core = require "lutra.core"

local explain = {}

local explainers = {}

--- Adds a function: f(a, b), with two lightuserdata that stand for the memory of the tensors
-- (core._memory), gives lines, each after a newline, or nil.
function explain.add(f) explainers[#explainers + 1] = f end

core._explain(function(a, b)
  local parts = {}
  for _, f in ipairs(explainers) do parts[#parts + 1] = f(a, b) end
  return table.concat(parts)
end)

return explain
