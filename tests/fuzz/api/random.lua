-- Random choices.

local fuzz = require "fuzz"

local random = {}

--- An integer from 1 to n.
random.integer = fuzz.random
local integer = fuzz.random

--- Begins the sequence that belongs to two numbers.
random.seed = fuzz.seed

--- An element of a list.
function random.pick(list) return list[integer(#list)] end

--- True n times in a hundred.
function random.percent(n) return integer(100) <= n end

return random
